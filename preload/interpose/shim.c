/* SPDX-License-Identifier: Apache-2.0 */
/* The library's state: made at the first use, passed by in forked children. */
#define _GNU_SOURCE
#include "interpose/shim.h"

#include "base/config.h"
#include "base/pages.h"
#include "interpose/torch_env.h"
#include "os/os.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#define PPM_PER_PERCENT 10000u

_Thread_local gml_thread gml_this_thread __attribute__((tls_model("initial-exec"), visibility("hidden")));

/* The only mutable globals besides the lookup cache and getenv's texts. */
static struct {
    gml_lock lock;
    _Atomic(gml_shim *) shim;
    _Atomic bool forked; /* this process is a fork of one that had the state */
    _Atomic bool failed; /* no memory for the state: never tried again */
} shim_global = {.lock = GML_LOCK_INIT};

static void forked_child(void)
{
    atomic_store(&shim_global.forked, true);
}

/* ---- options ---- */

static gml_goal goal_of(const char *text)
{
    return strcmp(text, "memory") == 0       ? GML_GOAL_MEMORY
           : strcmp(text, "throughput") == 0 ? GML_GOAL_THROUGHPUT
                                             : GML_GOAL_BALANCED;
}

/* "1" or "0.5" percent as parts per million; anything else is the heap's default. */
static uint64_t driver_time_ppm(const char *text)
{
    uint64_t whole = 0;
    uint64_t fraction = 0;
    uint64_t scale = PPM_PER_PERCENT;
    for (; *text >= '0' && *text <= '9' && whole < 100; text++)
        whole = whole * 10 + (uint64_t)(*text - '0');
    if (*text == '.')
        for (text++; *text >= '0' && *text <= '9' && scale > 1; text++) {
            scale /= 10;
            fraction += scale * (uint64_t)(*text - '0');
        }
    return *text == '\0' ? whole * PPM_PER_PERCENT + fraction : 0;
}

static void read_options(gml_shim *shim)
{
    const char *allocator = gml_config_text(GML_OPTION_ALLOCATOR);
    bool serve = strcmp(allocator, "vms") == 0;
    shim->mode = serve ? GML_SHIM_SERVE : GML_SHIM_FORWARD;
    shim->backend = gml_torch_env_backend();
    shim->tensors = serve && shim->backend == GML_TORCH_ASYNC;
    shim->uncached = shim->backend == GML_TORCH_UNCACHED ||
                     gml_config_environment("PYTORCH_NO_CUDA_MEMORY_CACHING") != NULL;
    shim->check = strcmp(gml_config_text(GML_OPTION_CHECK), "1") == 0;
    shim->goal = goal_of(gml_config_text(GML_OPTION_GOAL));
    shim->max_driver_time_ppm = driver_time_ppm(gml_config_text(GML_OPTION_MAX_DRIVER_TIME));
    shim->has_prices = gml_prices_parse(gml_config_text(GML_OPTION_DRIVER_COSTS), &shim->prices);
    (void)gml_config_parse_size(gml_config_text(GML_OPTION_LIMIT), &shim->limit_bytes);
    shim->release_idle_ns = gml_config_number(GML_OPTION_RELEASE_IDLE, 0) * 1000000000u;
}

/* ---- the state ---- */

static void find_simulator(gml_shim *shim)
{
    void *peak = dlsym(RTLD_DEFAULT, "gml_sim_peak_bytes");
    void *used = dlsym(RTLD_DEFAULT, "gml_sim_used_bytes");
    memcpy(&shim->sim_peak_bytes, &peak, sizeof peak);
    memcpy(&shim->sim_used_bytes, &used, sizeof used);
}

static void step_aside(gml_shim *shim, const char *rival)
{
    char text[GML_TELEMETRY_TEXT];
    shim->mode = GML_SHIM_FORWARD;
    shim->tensors = false;
    (void)snprintf(text, sizeof text, "%s is preloaded too and replaces cudaMalloc: gml-run steps aside and only measures",
                   rival);
    gml_telemetry_message(shim->telemetry, text);
}

static gml_shim *build(void)
{
    gml_shim *shim = gml_pages_map(sizeof *shim);
    if (shim == NULL)
        return NULL;
    read_options(shim);
    gml_ledger_init(&shim->ledger);
    shim->open_lock = (gml_lock)GML_LOCK_INIT;
    shim->oom_lock = (gml_lock)GML_LOCK_INIT;
    /* Before any lock of ours: the loader's lock is taken in here. */
    find_simulator(shim);
    shim->simulated = gml_lookup_simulated();
    shim->rival = gml_lookup_rival();
    shim->has_driver = gml_cuda_driver_load(&shim->driver) == GML_OK;
    shim->stacks = gml_stacks_new();
    return shim;
}

static bool open_telemetry(gml_shim *shim)
{
    gml_telemetry_setup setup = {
        .run_directory = gml_config_text(GML_OPTION_RUN_DIR),
        .allocator = gml_config_text(GML_OPTION_ALLOCATOR),
        .intercept = gml_config_text(GML_OPTION_INTERCEPT),
        .goal = gml_config_text(GML_OPTION_GOAL),
        .simulated = shim->simulated,
    };
    shim->telemetry = gml_telemetry_open(&setup);
    if (shim->telemetry == NULL)
        return false;
    for (int i = 0; i < GML_SHIM_DEVICES; i++) {
        shim->devices[i].ordinal = i;
        shim->devices[i].block = &shim->telemetry->devices[i];
        shim->devices[i].torch_lock = (gml_lock)GML_LOCK_INIT;
        gml_steps_init(&shim->devices[i].steps);
    }
    if (shim->stacks != NULL && !gml_stacks_open(shim->stacks, setup.run_directory)) {
        gml_stacks_destroy(shim->stacks);
        shim->stacks = NULL;
        gml_telemetry_message(shim->telemetry, "--stacks: no file can be made beside the telemetry");
    }
    if (shim->rival != NULL)
        step_aside(shim, shim->rival);
    return true;
}

static gml_shim *create(void)
{
    gml_this_thread.depth++;
    gml_shim *built = build();
    gml_lock_acquire(&shim_global.lock);
    gml_shim *shim = atomic_load(&shim_global.shim);
    if (shim == NULL && built != NULL && open_telemetry(built)) {
        (void)pthread_atfork(NULL, NULL, forked_child);
        shim = built;
        built = NULL;
        atomic_store_explicit(&shim_global.shim, shim, memory_order_release);
    }
    if (shim == NULL)
        atomic_store(&shim_global.failed, true);
    gml_lock_release(&shim_global.lock);
    if (built != NULL) {
        gml_stacks_destroy(built->stacks);
        gml_pages_unmap(built, sizeof *built);
    }
    gml_this_thread.depth--;
    return shim;
}

gml_shim *gml_shim_peek(void)
{
    if (atomic_load_explicit(&shim_global.forked, memory_order_relaxed))
        return NULL;
    return atomic_load_explicit(&shim_global.shim, memory_order_acquire);
}

const char *gml_shim_thread_name(void)
{
    gml_thread *thread = &gml_this_thread;
    if (thread->name[0] == '\0')
        gml_os_thread_name(thread->name);
    return thread->name;
}

bool gml_shim_inherited(gml_torch_backend backend)
{
    const gml_shim *shim = atomic_load_explicit(&shim_global.shim, memory_order_acquire);
    return atomic_load_explicit(&shim_global.forked, memory_order_relaxed) && shim != NULL && shim->backend == backend;
}

gml_shim *gml_shim_get(void)
{
    gml_shim *shim = gml_shim_peek();
    if (shim != NULL)
        return shim;
    if (atomic_load(&shim_global.forked) || atomic_load(&shim_global.failed))
        return NULL;
    return create();
}

/* ---- messages ---- */

void gml_shim_say(gml_shim *shim, unsigned said, const char *text)
{
    if (atomic_fetch_or(&shim->said, said) & said)
        return;
    gml_telemetry_message(shim->telemetry, text);
    /* Without a run directory nobody else would tell the user. */
    if (!gml_config_is_set(GML_OPTION_RUN_DIR)) {
        char line[GML_TELEMETRY_TEXT + 16];
        (void)snprintf(line, sizeof line, "gml-run: %s", text);
        gml_os_write_line(line);
    }
}

void gml_shim_degrade(gml_shim *shim, const char *why)
{
    char text[GML_TELEMETRY_TEXT];
    gml_telemetry_set(&shim->telemetry->degraded, 1);
    (void)snprintf(text, sizeof text, "internal fault (%s): new requests go to the driver", why);
    gml_shim_say(shim, GML_SAID_DEGRADED, text);
}

bool gml_shim_degraded(const gml_shim *shim)
{
    return gml_telemetry_get(&shim->telemetry->degraded) != 0;
}
