/* SPDX-License-Identifier: Apache-2.0 */
/* replay_trace: feeds a recorded allocation trace to the heap on the model device, and prints what it cost.
 *
 * usage: replay_trace [--memory BYTES] [--goal memory|balanced|throughput] [--slices N] [--check N] [--clock 1] < TRACE
 * --slices N prints the placements and maps of each N-th part of the trace on stderr.
 * --check N verifies every invariant each N events; --clock 1 times every call on its own and prints
 * percentiles for the calls that made no device memory call (the clock's own cost is taken off).
 * A line an event: "A id bytes stream" allocates, "F id stream" frees. Streams are small integers.
 * Prints one JSON object: peaks, waste, placements, driver calls, virtual driver time, ns per call. */
#define _POSIX_C_SOURCE 200809L
#include "core/heap.h"
#include "device/model.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

typedef struct trace_event {
    uint64_t bytes; /* 0: a free */
    uint32_t id;
    uint32_t stream;
} trace_event;

typedef struct trace_file {
    trace_event *events;
    size_t count;
    uint32_t ids;
} trace_file;

static bool read_trace(FILE *in, trace_file *out)
{
    char line[128];
    size_t capacity = 0;
    while (fgets(line, sizeof line, in) != NULL) {
        trace_event event = {0};
        bool ok = line[0] == 'A' ? sscanf(line, "A %" SCNu32 " %" SCNu64 " %" SCNu32, &event.id, &event.bytes, &event.stream) == 3
                                 : sscanf(line, "F %" SCNu32 " %" SCNu32, &event.id, &event.stream) == 2;
        if (!ok) {
            fprintf(stderr, "replay_trace: line %zu is not an event: %s", out->count + 1, line);
            return false;
        }
        if (out->count == capacity) {
            capacity = capacity != 0 ? 2 * capacity : 65536;
            trace_event *larger = realloc(out->events, capacity * sizeof event);
            if (larger == NULL)
                return false;
            out->events = larger;
        }
        out->events[out->count++] = event;
        out->ids = event.id + 1 > out->ids ? event.id + 1 : out->ids;
    }
    return true;
}

static uint64_t host_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* Times of single calls, split by what they did. */
typedef struct call_times {
    uint32_t *alloc_ns, *free_ns; /* calls without device memory calls */
    size_t allocs, frees;
    uint64_t clock_ns; /* cost of reading the clock, taken off */
} call_times;

static uint64_t clock_cost(void)
{
    uint64_t best = UINT64_MAX;
    for (int i = 0; i < 1000; i++) {
        uint64_t start = host_ns(), end = host_ns();
        best = end - start < best ? end - start : best;
    }
    return best;
}

static int ascending(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return (x > y) - (x < y);
}

static void print_percentiles(const char *name, uint32_t *times, size_t count)
{
    if (count == 0)
        return;
    qsort(times, count, sizeof *times, ascending);
    printf(", \"%s_p50_ns\": %u, \"%s_p99_ns\": %u, \"%s_p999_ns\": %u", name, times[count / 2], name,
           times[count * 99 / 100], name, times[count * 999 / 1000]);
}

static void note_time(call_times *times, bool alloc, uint64_t ns, bool device_calls)
{
    if (times == NULL || device_calls)
        return;
    ns = ns > times->clock_ns ? ns - times->clock_ns : 0;
    uint32_t value = ns < UINT32_MAX ? (uint32_t)ns : UINT32_MAX;
    if (alloc)
        times->alloc_ns[times->allocs++] = value;
    else
        times->free_ns[times->frees++] = value;
}

static void print_slice(size_t event, const gml_stats *stats, gml_stats *last)
{
    fprintf(stderr, "%9zu: extend %5" PRIu64 " stitch %4" PRIu64 " grow %4" PRIu64 " map %6" PRIu64 " unmap %5" PRIu64 " arenas %" PRIu64
            " reserved %" PRIu64 " MiB\n", event, stats->place_extend - last->place_extend, stats->place_stitch - last->place_stitch,
            stats->place_grow - last->place_grow, stats->driver_map - last->driver_map, stats->driver_unmap - last->driver_unmap,
            stats->arenas, stats->reserved_bytes >> 20);
    *last = *stats;
}

static bool play(gml_heap *heap, gml_device *device, const trace_file *trace, unsigned check_every,
                 call_times *times, gml_stats *stats, size_t slices)
{
    gml_stats last = {0};
    uintptr_t *address = calloc(trace->ids, sizeof *address);
    for (size_t i = 0; address != NULL && i < trace->count; i++) {
        const trace_event *event = &trace->events[i];
        if (slices != 0 && (i + 1) % (trace->count / slices) == 0)
            print_slice(i + 1, stats, &last);
        uint64_t calls = stats->driver_map + stats->driver_unmap, start = times != NULL ? host_ns() : 0;
        gml_status status = event->bytes != 0 ? gml_heap_alloc(heap, event->bytes, event->stream, GML_API_ASYNC, &address[event->id])
                                              : gml_heap_free(heap, address[event->id], event->stream);
        if (times != NULL)
            note_time(times, event->bytes != 0, host_ns() - start, calls != stats->driver_map + stats->driver_unmap);
        const char *why = NULL;
        if (status == GML_OK && check_every != 0 && i % check_every == 0)
            status = gml_heap_check(heap, &why);
        if (status != GML_OK || gml_model_violation(device) != NULL) {
            fprintf(stderr, "replay_trace: event %zu: %s %s %s\n", i + 1, gml_status_text(status), why != NULL ? why : "",
                    gml_model_violation(device) != NULL ? gml_model_violation(device) : "");
            free(address);
            return false;
        }
    }
    free(address);
    return true;
}

static void print(const gml_stats *stats, gml_model_usage usage, const trace_file *trace, uint64_t ns)
{
    double waste = 1.0 - (double)stats->peak_live_bytes / (double)stats->peak_reserved_bytes;
    printf("{\"events\": %zu, \"ns_per_event\": %.1f, \"waste_percent\": %.3f, \"device_peak_bytes\": %" PRIu64, trace->count,
           (double)ns / (double)trace->count, 100.0 * waste, usage.peak_used_bytes);
#define X(name, meaning) printf(", \"" #name "\": %" PRIu64, stats->name);
    GML_STATS(X)
#undef X
}

int main(int argc, char **argv)
{
    gml_model_options model_options = {.total_bytes = (uint64_t)80 << 30};
    gml_heap_options options = {.goal = GML_GOAL_MEMORY};
    unsigned check_every = 0;
    bool clocked = false;
    size_t slices = 0;
    static gml_stats live_stats;
    options.stats = &live_stats;
    for (int i = 1; i + 1 < argc; i += 2) {
        if (strcmp(argv[i], "--memory") == 0)
            model_options.total_bytes = strtoull(argv[i + 1], NULL, 10);
        else if (strcmp(argv[i], "--check") == 0)
            check_every = (unsigned)strtoul(argv[i + 1], NULL, 10);
        else if (strcmp(argv[i], "--slices") == 0)
            slices = strtoull(argv[i + 1], NULL, 10);
        else if (strcmp(argv[i], "--clock") == 0)
            clocked = argv[i + 1][0] == '1';
        else if (strcmp(argv[i], "--goal") == 0)
            options.goal = strcmp(argv[i + 1], "memory") == 0       ? GML_GOAL_MEMORY
                           : strcmp(argv[i + 1], "throughput") == 0 ? GML_GOAL_THROUGHPUT
                                                                    : GML_GOAL_BALANCED;
    }
    model_options.check_order = check_every != 0;
    trace_file trace = {0};
    gml_device *device = NULL;
    gml_heap *heap = NULL;
    if (!read_trace(stdin, &trace) || gml_model_create(&model_options, &device) != GML_OK ||
        gml_heap_create(device, &options, &heap) != GML_OK)
        return 1;
    call_times times = {.clock_ns = clock_cost()};
    times.alloc_ns = calloc(trace.count, sizeof(uint32_t));
    times.free_ns = calloc(trace.count, sizeof(uint32_t));
    if (times.alloc_ns == NULL || times.free_ns == NULL)
        return 1;
    uint64_t start = host_ns();
    bool ok = play(heap, device, &trace, check_every, clocked ? &times : NULL, &live_stats, slices);
    uint64_t ns = host_ns() - start;
    gml_stats stats;
    gml_heap_stats(heap, &stats);
    print(&stats, gml_model_usage_of(device), &trace, ns);
    print_percentiles("alloc", times.alloc_ns, times.allocs);
    print_percentiles("free", times.free_ns, times.frees);
    printf("}\n");
    return ok ? 0 : 1;
}
