/* SPDX-License-Identifier: Apache-2.0 */
/* Makes the telemetry file and writes what is not the heap's. */
#include "telemetry/writer.h"

#include "base/config.h"
#include "base/pages.h"
#include "os/os.h"

#include <stdio.h>
#include <string.h>

#define PATH_BYTES 4096
#define EXEC_TRIES 64
#define COALESCE_NS 10000000000u /* ten seconds */
#define LOOK_BACK 16u            /* events among which one to add to is looked for */

static void copy_text(char *to, size_t capacity, const char *from)
{
    size_t length = strlen(from);
    if (length >= capacity)
        length = capacity - 1;
    memcpy(to, from, length);
    to[length] = '\0';
}

static gml_telemetry *create_file(const char *run_directory)
{
    char path[PATH_BYTES];
    int length = snprintf(path, sizeof path, "%s/telemetry", run_directory);
    if (run_directory[0] == '\0' || length < 0 || (size_t)length + 64 > sizeof path)
        return NULL;
    gml_os_make_directory(path);
    unsigned long long pid = gml_os_pid();
    (void)snprintf(path + length, sizeof path - (size_t)length, "/%llu.gml", pid);
    for (int image = 1; image < EXEC_TRIES; image++) {
        bool exists = false;
        gml_telemetry *telemetry = gml_os_create_shared(path, sizeof *telemetry, &exists);
        if (telemetry != NULL || !exists)
            return telemetry;
        (void)snprintf(path + length, sizeof path - (size_t)length, "/%llu.%d.gml", pid, image);
    }
    return NULL;
}

/* The first of the variables that holds a number; all ones when none does. */
static uint64_t rank_from(const char *const *names, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const char *text = gml_config_environment(names[i]);
        uint64_t rank = 0;
        if (text == NULL || text[0] == '\0' || strlen(text) > 9)
            continue;
        while (*text >= '0' && *text <= '9')
            rank = rank * 10 + (uint64_t)(*text++ - '0');
        if (*text == '\0')
            return rank;
    }
    return UINT64_MAX;
}

static void fill_header(gml_telemetry *t, const gml_telemetry_setup *setup)
{
    static const char *const ranks[] = {"RANK", "SLURM_PROCID", "OMPI_COMM_WORLD_RANK", "PMI_RANK"};
    static const char *const local_ranks[] = {"LOCAL_RANK", "SLURM_LOCALID", "OMPI_COMM_WORLD_LOCAL_RANK",
                                              "MPI_LOCALRANKID"};
    t->version = GML_TELEMETRY_VERSION;
    t->header_bytes = (uint32_t)offsetof(gml_telemetry, devices);
    t->total_bytes = sizeof *t;
    t->pid = gml_os_pid();
    t->parent_pid = gml_os_parent_pid();
    t->start_ns = gml_os_realtime_ns();
    t->rank = rank_from(ranks, sizeof ranks / sizeof ranks[0]);
    t->local_rank = rank_from(local_ranks, sizeof local_ranks / sizeof local_ranks[0]);
    t->simulated = setup->simulated;
    copy_text(t->allocator, sizeof t->allocator, setup->allocator);
    copy_text(t->intercept, sizeof t->intercept, setup->intercept);
    copy_text(t->goal, sizeof t->goal, setup->goal);
    (void)gml_os_read_file("/proc/self/cmdline", t->command, sizeof t->command - 1);
}

gml_telemetry *gml_telemetry_open(const gml_telemetry_setup *setup)
{
    gml_telemetry *t = create_file(setup->run_directory);
    if (t == NULL)
        t = gml_pages_map(sizeof *t);
    if (t == NULL)
        return NULL;
    fill_header(t, setup);
    /* The magic comes last: an observer that sees it may trust the header. */
    __atomic_thread_fence(__ATOMIC_RELEASE);
    memcpy(t->magic, GML_TELEMETRY_MAGIC, sizeof t->magic);
    return t;
}

void gml_telemetry_message(gml_telemetry *telemetry, const char *text)
{
    copy_text(telemetry->message, sizeof telemetry->message, text);
    gml_telemetry_event(telemetry, GML_EVENT_MESSAGE, GML_EVENT_NO_DEVICE, 1, 0, text);
}

/* The newest event of the kind on the device, when it is recent enough to be added to. */
static gml_log_event *recent(gml_telemetry *telemetry, gml_event_kind kind, uint64_t device, uint64_t now_ns)
{
    uint64_t newest = __atomic_load_n(&telemetry->event_count, __ATOMIC_ACQUIRE);
    for (uint64_t back = 1; back <= LOOK_BACK && back <= newest; back++) {
        gml_log_event *event = &telemetry->events[(newest - back) % GML_TELEMETRY_EVENTS];
        if (__atomic_load_n(&event->number, __ATOMIC_ACQUIRE) == newest - back + 1 && event->kind == (uint64_t)kind &&
            event->device == device && event->text[0] == '\0')
            return now_ns - event->time_ns < COALESCE_NS ? event : NULL;
    }
    return NULL;
}

void gml_telemetry_event(gml_telemetry *telemetry, gml_event_kind kind, uint64_t device, uint64_t count,
                         uint64_t bytes, const char *text)
{
    uint64_t now_ns = gml_os_realtime_ns();
    gml_log_event *event = text == NULL ? recent(telemetry, kind, device, now_ns) : NULL;
    if (event != NULL) {
        gml_telemetry_add(&event->count, count);
        gml_telemetry_set(&event->bytes, bytes);
        return;
    }
    uint64_t number = __atomic_fetch_add(&telemetry->event_count, 1, __ATOMIC_ACQ_REL);
    event = &telemetry->events[number % GML_TELEMETRY_EVENTS];
    __atomic_store_n(&event->number, 0, __ATOMIC_RELEASE);
    event->time_ns = now_ns;
    event->kind = (uint64_t)kind;
    event->device = device;
    event->count = count;
    event->bytes = bytes;
    copy_text(event->text, sizeof event->text, text != NULL ? text : "");
    __atomic_store_n(&event->number, number + 1, __ATOMIC_RELEASE);
}

void gml_telemetry_oom(gml_telemetry *telemetry, const gml_oom_record *record)
{
    uint64_t number = telemetry->oom_count;
    gml_oom_record *slot = &telemetry->ooms[number % GML_TELEMETRY_OOMS];
    *slot = *record;
    slot->time_ns = gml_os_realtime_ns();
    __atomic_store_n(&telemetry->oom_count, number + 1, __ATOMIC_RELEASE);
}
