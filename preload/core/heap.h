/* SPDX-License-Identifier: Apache-2.0 */
/* Heap: the memory of one device, served by one policy. This is what the interposition layer calls.
 *
 * Thread-safety: every function may be called from any thread, unless it says otherwise.
 * The heap knows no CUDA, clock, environment, file or global; it reaches the device only through
 * the contract in device/device.h. */
#ifndef GML_CORE_HEAP_H
#define GML_CORE_HEAP_H

#include "base/status.h"
#include "base/tally.h"
#include "core/stats.h"
#include "device/device.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct gml_heap gml_heap;

typedef enum gml_goal { GML_GOAL_BALANCED, GML_GOAL_MEMORY, GML_GOAL_THROUGHPUT } gml_goal;

typedef struct gml_heap_options {
    gml_goal goal;
    uint64_t limit_bytes;            /* most physical memory to hold; 0 is no limit */
    uint64_t max_driver_time_ppm;    /* share of elapsed time that stitching may cost; 0 is the default */
    uint64_t reuse_allowance_ns;     /* driver time that stitching may cost at first; 0 is the default */
    bool no_cross_stream;            /* the program set cudaMemPoolReuse* to 0: never reuse across streams */
    gml_stats *stats;                /* where the counters live (shared memory); NULL: inside the heap */
    uint64_t *sequence;              /* sequence lock around every change of `stats`; may be NULL */
    uint64_t *size_counts;           /* request counts by size class (telemetry/layout.h); may be NULL */
} gml_heap_options;

/* How an allocation was asked for; it decides the alignment. */
typedef enum gml_api {
    GML_API_ASYNC, /* stream-ordered: 512 bytes */
    GML_API_PLAIN  /* cudaMalloc, cuMemAlloc: below 64 KiB 512 bytes, then 64 KiB; from 2 MiB on chunk boundaries, sharing no chunk */
} gml_api;

/* A heap on `dev`, which must outlive it. No device call is made. Errors: OUT_OF_METADATA. */
GML_CHECKED gml_status gml_heap_create(gml_device *dev, const gml_heap_options *options, gml_heap **out_heap);

/* Gives everything back to the device. No block may be in use by the device. Single-threaded. */
void gml_heap_destroy(gml_heap *heap);

/* Memory of at least `bytes` (> 0) for use on `stream` (GML_STREAM_NONE: may be used at once on any
 * stream). `out_address` is written only on success.
 * Errors: OUT_OF_MEMORY (after the whole ladder of the design, except forwarding, which is the
 * caller's), OUT_OF_METADATA, and whatever the device answered. */
GML_CHECKED gml_status gml_heap_alloc(gml_heap *heap, size_t bytes, gml_stream stream, gml_api api, uintptr_t *out_address);

/* Gives back the block that starts at `address`; work submitted to `stream` so far may still use it.
 * GML_STREAM_NONE: any work submitted to the device so far may. Errors: NOT_FOUND when no live block
 * of this heap starts there (nothing changed). */
GML_CHECKED gml_status gml_heap_free(gml_heap *heap, uintptr_t address, gml_stream stream);

/* True when `address` lies in a live block of this heap; the outs may be NULL. */
bool gml_heap_find(gml_heap *heap, uintptr_t address, uintptr_t *out_base, size_t *out_bytes);

/* True when `address` lies anywhere in this heap's reserved address space. */
bool gml_heap_covers(gml_heap *heap, uintptr_t address);

/* Waits for finished work of pending frees, then unmaps and releases wholly free chunks until at
 * most `keep_bytes` are reserved, or nothing more can go. Makes no device call while capturing. */
GML_CHECKED gml_status gml_heap_trim(gml_heap *heap, uint64_t keep_bytes, uint64_t *out_released_bytes);

/* Releases as much as was idle at every moment since the last call (or since the heap began), without
 * waiting for any work: called at intervals, it gives back what the program no longer needs. Makes no
 * device call while capturing. */
GML_CHECKED gml_status gml_heap_release_idle(gml_heap *heap, uint64_t *out_released_bytes);

/* The stream's handle is about to become invalid; call before the driver destroys it. */
void gml_heap_stream_destroyed(gml_heap *heap, gml_stream stream);

/* Whether memory freed on one stream may be given to another that waits for it on the device: the
 * program's cudaMemPoolReuse* attributes. Allowed at first unless the options say otherwise. */
void gml_heap_set_cross_stream(gml_heap *heap, bool allowed);

/* Number of stream captures in progress in the process. While it is above zero the heap makes no
 * event, sync or unmap call. */
void gml_heap_set_captures(gml_heap *heap, unsigned count);

/* Wholly free chunks in bytes: what cudaMemGetInfo may count as free. Two loads, no lock. */
uint64_t gml_heap_idle_bytes(const gml_heap *heap);

/* Brings the computed counters (largest_servable_bytes, largest_gap_bytes, pools) up to date and
 * copies all. Cost grows with the number of chunks: for observers and failures, not the hot path. */
void gml_heap_stats(gml_heap *heap, gml_stats *out_stats);

/* Fills `cells` with the state of the physical memory, as telemetry/layout.h encodes it. */
void gml_heap_map(gml_heap *heap, uint8_t *cells, size_t cell_count);

/* Adds the sizes of all live blocks, as they were asked for. Cost grows with their number: for failures. */
void gml_heap_live_sizes(gml_heap *heap, gml_tally *tally);

/* Every invariant of the bookkeeping. On failure returns INTERNAL and a text in `out_why`. */
GML_CHECKED gml_status gml_heap_check(gml_heap *heap, const char **out_why);

#endif
