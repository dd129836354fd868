/* SPDX-License-Identifier: Apache-2.0 */
/* Which chunks of which reserved ranges are mapped, so that a peer enabled later gets access to them.
 *
 * Not thread-safe. A range that cannot be recorded for want of memory is left out: the new peer then
 * cannot touch it, as if it had been enabled too late. */
#ifndef GML_DEVICE_CUDA_RANGES_H
#define GML_DEVICE_CUDA_RANGES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct gml_cuda_range {
    uintptr_t va;
    size_t bytes;
    uint64_t *mapped; /* bitmap by chunk */
} gml_cuda_range;

typedef struct gml_cuda_ranges {
    gml_cuda_range *items; /* ascending addresses */
    size_t count, capacity;
    size_t chunk_bytes;
} gml_cuda_ranges;

void gml_cuda_ranges_add(gml_cuda_ranges *ranges, uintptr_t va, size_t bytes);
void gml_cuda_ranges_remove(gml_cuda_ranges *ranges, uintptr_t va);
void gml_cuda_ranges_mark(gml_cuda_ranges *ranges, uintptr_t va, size_t bytes, bool mapped);

/* Calls `visit` for every contiguous run of mapped chunks. */
void gml_cuda_ranges_visit(const gml_cuda_ranges *ranges, void (*visit)(void *user, uintptr_t va, size_t bytes),
                           void *user);
void gml_cuda_ranges_clear(gml_cuda_ranges *ranges);

#endif
