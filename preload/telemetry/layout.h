/* SPDX-License-Identifier: Apache-2.0 */
/* Telemetry layout: what one process shares with its observers, as one memory-mapped file.
 *
 * `<run directory>/telemetry/<pid>.gml` is created at the first served or observed call and stays
 * when the process ends, however it ends. No pointers, little endian, every field naturally
 * aligned. Readers only map it; reading costs the writer nothing.
 *
 * A device block is guarded by its `sequence`: odd while the writer is inside, so a reader copies
 * the block, and takes the copy only if `sequence` was even and the same before and after.
 *
 * The Python mirror gml_run/_abi.py is generated from the lists here by `make gen`. */
#ifndef GML_TELEMETRY_LAYOUT_H
#define GML_TELEMETRY_LAYOUT_H

#include "core/stats.h"

#include <stdint.h>

#define GML_TELEMETRY_MAGIC "GMLTLM01" /* 8 bytes, no terminator */
#define GML_TELEMETRY_VERSION 6u
#define GML_TELEMETRY_DEVICES 16
#define GML_TELEMETRY_OOMS 32
#define GML_TELEMETRY_MAP_CELLS 512
#define GML_TELEMETRY_SIZE_CLASSES 48 /* class i counts requests of (2^(i-1), 2^i] bytes */
#define GML_TELEMETRY_TEXT 256
#define GML_TELEMETRY_STEPS 64 /* the last ones whose times are kept */
#define GML_TELEMETRY_WINDOWS 32
#define GML_TELEMETRY_WINDOW_NS 250000000u
#define GML_TELEMETRY_LATENCIES 128 /* buckets, see telemetry/latency.h */
#define GML_TELEMETRY_SAMPLE 251    /* an ordinary call in so many is timed, and counts for all of them; odd, as
                                     * allocations and frees often alternate */
#define GML_TELEMETRY_EVENTS 128    /* the last ones are kept */
#define GML_TELEMETRY_EVENT_TEXT 208
#define GML_TELEMETRY_TOPS 6   /* sizes named in an out-of-memory record */

/* X(name, meaning): counters of the whole process, each a uint64_t. */
#define GML_PROCESS_FIELDS(X)                                                                  \
    X(served_calls, "allocation and free calls that the heap served")                          \
    X(forwarded_calls, "allocation and free calls passed to the real driver")                  \
    X(observed_calls, "allocations and frees of PyTorch's own allocator that were watched")    \
    X(captures, "stream captures begun")                                                       \
    X(degraded, "1: an internal fault was met, new requests go to the driver")                 \
    X(torch_seen, "1: PyTorch's CUDA library is loaded")                                       \
    X(reporter_seen, "1: PyTorch's memory reports arrive")                                     \
    X(async_seen, "1: cudaMallocAsync arrived")                                                \
    X(backend_dropped, "1: backend:native or expandable_segments of the user's was replaced")

/* X(name, meaning): counters of PyTorch's own allocator on one device (`observe` and the forced
 * backends), each a uint64_t. */
#define GML_TORCH_FIELDS(X)                                                                    \
    X(torch_allocated_bytes, "allocated, as PyTorch reports it")                               \
    X(torch_reserved_bytes, "reserved, as PyTorch reports it")                                 \
    X(torch_peak_allocated_bytes, "highest allocated")                                         \
    X(torch_peak_reserved_bytes, "highest reserved")                                           \
    X(torch_at_peak_allocated_bytes, "allocated when reserved was at its peak")                \
    X(torch_allocs, "blocks that PyTorch's allocator gave out")                                \
    X(torch_frees, "blocks that it took back")                                                 \
    X(torch_ooms, "out-of-memory reports")

/* X(name, meaning): figures of the device itself, each a uint64_t. */
#define GML_DEVICE_FIELDS(X)                                                                   \
    X(total_bytes, "memory of the device")                                                     \
    X(free_bytes, "free memory of the device at the last look")                                \
    X(peak_used_bytes, "most memory seen in use on the device, by all processes")              \
    X(driver_live_bytes, "live bytes of calls passed to the real driver")                      \
    X(peak_driver_live_bytes, "highest driver_live_bytes")                                     \
    X(updated_ns, "CLOCK_MONOTONIC time of the last change")                                   \
    X(step_count, "steps, as step_source says; see telemetry/steps.h")                         \
    X(step_begun, "1: a further one is under way, its last backward pass has begun")           \
    X(step_source, "a number of STEP_SOURCES")                                                 \
    X(step_low_bytes, "fewest live bytes between the last two steps")

/* X(type, name, meaning): one out-of-memory failure. */
#define GML_OOM_FIELDS(X)                                                                      \
    X(uint64_t, time_ns, "CLOCK_REALTIME")                                                     \
    X(uint64_t, device, "device index")                                                        \
    X(uint64_t, request_bytes, "size asked for")                                               \
    X(uint64_t, stream, "stream it was asked on; all ones when none")                          \
    X(uint64_t, live_bytes, "live then")                                                       \
    X(uint64_t, requested_bytes, "requested then")                                             \
    X(uint64_t, reserved_bytes, "reserved then")                                               \
    X(uint64_t, stream_held_bytes, "waiting on other streams then")                            \
    X(uint64_t, largest_servable_bytes, "largest request that was servable then")              \
    X(uint64_t, largest_gap_bytes, "largest request that was servable without stitching")      \
    X(uint64_t, free_bytes, "free on the device then, as the driver reports it")               \
    X(uint64_t, total_bytes, "memory of the device")                                           \
    X(uint64_t, source, "0 heap, 1 PyTorch's own allocator, 2 the real driver")                \
    X(uint64_t, step_count, "steps until then")                                                \
    X(uint64_t, step_low_bytes, "live at the last low between steps; 0: not known")            \
    X(uint64_t, allocs, "requests that got memory until then")                                 \
    X(uint64_t, retries, "times that memory had been short until then")                        \
    X(uint64_t, top1_bytes, "size whose live blocks held most")                                \
    X(uint64_t, top1_count, "how many of them were live; 0: not known")                        \
    X(uint64_t, top2_bytes, "the next size")                                                   \
    X(uint64_t, top2_count, "live blocks of it")                                               \
    X(uint64_t, top3_bytes, "the next size")                                                   \
    X(uint64_t, top3_count, "live blocks of it")                                               \
    X(uint64_t, top4_bytes, "the next size")                                                   \
    X(uint64_t, top4_count, "live blocks of it")                                               \
    X(uint64_t, top5_bytes, "the next size")                                                   \
    X(uint64_t, top5_count, "live blocks of it")                                               \
    X(uint64_t, top6_bytes, "the next size")                                                   \
    X(uint64_t, top6_count, "live blocks of it")

/* X(NAME, words): what happened. The words are for people. */
#define GML_EVENT_KINDS(X)                                            \
    X(MESSAGE, "note")                                                \
    X(BEGIN, "first GPU memory call")                                 \
    X(OOM, "out of memory")                                           \
    X(RETRY, "memory was short, tried again")                         \
    X(DRAIN, "waited for the device")                                 \
    X(RELEASE, "gave idle memory back and asked the driver again")    \
    X(FORWARD, "asked the real driver instead")                       \
    X(BUDGET, "took new memory: stitching was over its time budget")  \
    X(FLUSH, "cudaMalloc failed: PyTorch empties its cache or gives up") \
    X(CAPTURE, "a stream capture began")                              \
    X(SETTING, "a setting of PyTorch's allocator was replaced")

typedef enum gml_event_kind {
#define X(name, words) GML_EVENT_##name,
    GML_EVENT_KINDS(X)
#undef X
    GML_EVENT_KIND_COUNT
} gml_event_kind;

/* One event. `number` is its own, from 1, and is written last: then the rest is there. */
typedef struct gml_log_event {
    uint64_t number;
    uint64_t time_ns; /* CLOCK_REALTIME of the first, when it stands for several */
    uint64_t kind;
    uint64_t device;  /* all ones: none */
    uint64_t count;
    uint64_t bytes;   /* of the request; 0: not known */
    char text[GML_TELEMETRY_EVENT_TEXT];
} gml_log_event;

/* X(NAME, words): what steps are found by. The words are for people. */
#define GML_STEP_SOURCES(X)                                           \
    X(TURNS, "the rise and fall of live blocks")                      \
    X(PASSES, "backward passes")                                      \
    X(GRADIENTS, "gradients that were dropped")

typedef enum gml_step_source {
#define X(name, words) GML_STEPS_BY_##name,
    GML_STEP_SOURCES(X)
#undef X
    GML_STEP_SOURCE_COUNT
} gml_step_source;

typedef struct gml_oom_record {
#define X(type, name, meaning) type name;
    GML_OOM_FIELDS(X)
#undef X
} gml_oom_record;

typedef struct gml_device_block {
    uint64_t sequence;
    uint64_t present; /* 1 once this device was used */
    char name[GML_TELEMETRY_TEXT];
#define X(name, meaning) uint64_t name;
    GML_DEVICE_FIELDS(X)
    GML_TORCH_FIELDS(X)
#undef X
    gml_stats stats;
    uint64_t size_counts[GML_TELEMETRY_SIZE_CLASSES];
    /* Most live bytes in each of the last windows of time, so that an observer misses no peak: window i of
     * CLOCK_MONOTONIC stands at i modulo the length, when window_number says so. */
    uint64_t window_number[GML_TELEMETRY_WINDOWS];
    uint64_t window_live[GML_TELEMETRY_WINDOWS];
    /* Times of served calls: an allocation, a free, and the driver work of one. */
    uint64_t alloc_latency[GML_TELEMETRY_LATENCIES];
    uint64_t free_latency[GML_TELEMETRY_LATENCIES];
    uint64_t driver_latency[GML_TELEMETRY_LATENCIES];
    uint64_t step_ns[GML_TELEMETRY_STEPS]; /* how long step i took, at i modulo the length; 0: not known */
    /* The physical memory, chunk ids in equal cells: 0 no memory, 1 idle, 2 idle and aliased,
     * 3..10 live in eighths of the cell, 128 added when most of it is live in a stitched arena. */
    uint8_t map[GML_TELEMETRY_MAP_CELLS];
} gml_device_block;

typedef struct gml_telemetry {
    char magic[8];
    uint32_t version;
    uint32_t header_bytes; /* offset of `devices` */
    uint64_t total_bytes;  /* size of the file */
    uint64_t pid;
    uint64_t parent_pid;
    uint64_t start_ns;     /* CLOCK_REALTIME at creation */
    uint64_t rank;         /* all ones when the environment names none */
    uint64_t local_rank;
    uint64_t simulated;
    char allocator[32];
    char intercept[32];
    char goal[32];
    char command[GML_TELEMETRY_TEXT]; /* /proc/self/cmdline, NUL separated, cut */
    char message[GML_TELEMETRY_TEXT]; /* the last thing that an observer should tell the user */
    uint64_t oom_count;               /* all failures; the last GML_TELEMETRY_OOMS are kept */
#define X(name, meaning) uint64_t name;
    GML_PROCESS_FIELDS(X)
#undef X
    gml_oom_record ooms[GML_TELEMETRY_OOMS];
    uint64_t event_count; /* all events; event n (from 0) lies at n modulo the length */
    gml_log_event events[GML_TELEMETRY_EVENTS];
    gml_device_block devices[GML_TELEMETRY_DEVICES];
} gml_telemetry;

#endif
