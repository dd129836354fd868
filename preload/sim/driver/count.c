/* SPDX-License-Identifier: Apache-2.0 */
/* Counters of calls, the report at exit, and what a call does whose outputs nothing fills. */
#include "sim/driver/driver.h"
#include "sim/driver/exports.h"
#include "sim/stub.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static pthread_mutex_t list_lock = PTHREAD_MUTEX_INITIALIZER;
static struct sim_counter *list;

struct sim_counter *sim_counter_get(const char *name)
{
    pthread_mutex_lock(&list_lock);
    struct sim_counter *counter = list;
    while (counter && strcmp(counter->name, name) != 0) counter = counter->next;
    if (!counter && (counter = calloc(1, sizeof *counter))) {
        counter->name = name;
        counter->next = list;
        list = counter;
    }
    pthread_mutex_unlock(&list_lock);
    return counter;
}

_Atomic uint64_t *gml_sim_counter(const char *name)
{
    struct sim_counter *counter = sim_counter_get(name);
    return counter ? &counter->calls : NULL;
}

uint64_t gml_sim_calls(const char *name)
{
    uint64_t calls = 0;
    pthread_mutex_lock(&list_lock);
    for (struct sim_counter *c = list; c; c = c->next)
        if (!strcmp(c->name, name)) calls = c->calls;
    pthread_mutex_unlock(&list_lock);
    return calls;
}

/* Stubs live in all three libraries; each call of one ends here. */
void gml_sim_stub(const char *name, int has_outputs)
{
    struct sim_counter *counter = sim_counter_get(name);
    if (counter) {
        counter->stub = counter->stub || has_outputs;
        counter->calls++;
    }
    if (!has_outputs) {
        sim_lock();
        sim.launches++; /* what it would have written may be read back next */
        sim_unlock();
    }
    if (!has_outputs || !sim_config_get()->strict) return;
    fprintf(stderr,
            "gml-sim: %s is not simulated: what it returns is not filled in.\n"
            "gml-sim: avoid the feature that calls it, or run without GML_SIM_STRICT=1 to get its\n"
            "gml-sim: \"not supported\" error instead of this stop.\n",
            name);
    abort();
}

static void write_counts(FILE *out, bool stubs)
{
    const char *comma = "";
    for (struct sim_counter *c = list; c; c = c->next) {
        if (!c->calls || c->stub != stubs) continue;
        fprintf(out, "%s\n    \"%s\": %llu", comma, c->name, (unsigned long long)c->calls);
        comma = ",";
    }
}

static pid_t armed_pid;

/* At exit only: a process that is killed leaves no such file, and nothing depends on it. */
static void write_report(void)
{
    const char *folder = getenv("GML_RUN_DIR");
    char path[4096];
    if (!folder || !*folder || getpid() != armed_pid) return;
    if (snprintf(path, sizeof path, "%s/sim-%ld.json", folder, (long)getpid()) >= (int)sizeof path) return;
    FILE *out = fopen(path, "w");
    if (!out) return;
    const struct sim_config *config = sim_config_get();
    fprintf(out, "{\"schema_version\": 1, \"device\": \"%s\", \"total_bytes\": %zu,\n \"devices\": [",
            config->profile ? config->profile->full_name : "", config->total_bytes);
    for (int i = 0; i < config->devices; i++)
        fprintf(out, "%s{\"used_bytes\": %zu, \"peak_bytes\": %zu, \"foreign_bytes\": %zu}", i ? ", " : "",
                gml_sim_used_bytes(i), gml_sim_peak_bytes(i), sim_fault_foreign_bytes());
    size_t handles, reservations, maps, allocations;
    gml_sim_ledger(&handles, &reservations, &maps, &allocations);
    fprintf(out, "],\n \"held_at_exit\": {\"handles\": %zu, \"reservations\": %zu, \"maps\": %zu, \"allocations\": %zu},",
            handles, reservations, maps, allocations);
    fprintf(out, "\n \"virtual_ns\": %llu,\n ", (unsigned long long)gml_sim_now_ns());
    sim_values_write(out);
    fprintf(out, ",\n \"calls\": {");
    write_counts(out, false);
    fprintf(out, "},\n \"unfilled\": {");
    write_counts(out, true);
    fprintf(out, "}}\n");
    fclose(out);
}

void sim_report_arm(void)
{
    armed_pid = getpid();
    atexit(write_report);
}

void sim_stub_called(const char *name, int has_outputs)
{
    gml_sim_stub(name, has_outputs);
}
