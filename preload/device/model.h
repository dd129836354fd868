/* SPDX-License-Identifier: Apache-2.0 */
/* Model device: the driver's memory rules without a driver, for tests and replay.
 *
 * It keeps a budget, an address space, handles and mappings, and refuses what the contract forbids:
 * a broken rule is answered with INVALID and remembered (`gml_model_violation`). Work on streams is
 * counted, not done: `submit` adds work to a stream, `finish` completes it. Every reuse that is
 * reported through `note` is checked against the frees of the same physical memory with vector
 * clocks (Mattern, 1988; Fidge, 1988), so a missing dependency is a violation although no data
 * exists. Not thread-safe unless a caller's lock serialises it; the heap's locks do. */
#ifndef GML_DEVICE_MODEL_H
#define GML_DEVICE_MODEL_H

#include "device/device.h"

#include <stdbool.h>

#define GML_MODEL_STREAMS 16 /* stream handles 0..15 */

/* Costs in virtual nanoseconds; defaults are published figures for an A100. */
typedef struct gml_model_costs {
    uint64_t create_ns, release_ns, reserve_ns, map_ns, unmap_ns, set_access_ns; /* a chunk; reserve: a call */
} gml_model_costs;

typedef struct gml_model_options {
    uint64_t total_bytes;
    size_t chunk_bytes; /* 0: 2 MiB */
    bool asynchronous;  /* work stays unfinished until gml_model_finish; else it is over at once */
    bool check_order;   /* check every noted reuse against the frees of the same bytes */
    bool no_context_events; /* event_record(GML_STREAM_NONE) answers UNSUPPORTED */
    gml_model_costs costs;  /* all 0: the defaults */
} gml_model_options;

/* Errors: OUT_OF_METADATA. */
GML_CHECKED gml_status gml_model_create(const gml_model_options *options, gml_device **out_device);
void gml_model_destroy(gml_device *device);

void gml_model_submit(gml_device *device, gml_stream stream);
void gml_model_finish(gml_device *device, gml_stream stream);

/* How much of the work submitted to `stream` has to end before what is submitted to `waiter` next: a
 * count of gml_model_submit calls. */
uint64_t gml_model_awaits(const gml_device *device, gml_stream waiter, gml_stream stream);

/* The first broken rule, or NULL. */
const char *gml_model_violation(const gml_device *device);

typedef struct gml_model_usage {
    uint64_t used_bytes, peak_used_bytes;
    uint64_t handles, mappings, reserved_va_bytes, events;
    uint64_t calls[GML_CALL_COUNT];
} gml_model_usage;

gml_model_usage gml_model_usage_of(const gml_device *device);

#endif
