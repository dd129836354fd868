/* SPDX-License-Identifier: Apache-2.0 */
/* Arenas: their life, and the search in coarse ones.
 *
 * All functions: heap->lock is held. */
#ifndef GML_CORE_ARENA_H
#define GML_CORE_ARENA_H

#include "core/types.h"

/* An arena over the reserved range [base, base + bytes), with nothing mapped, in the heap's list.
 * Errors: OUT_OF_METADATA. */
GML_CHECKED gml_status gml_arena_open(gml_heap *heap, bool fine, uint64_t base, uint64_t bytes, gml_arena **out_arena);

/* Takes an arena with nothing mapped out of the heap. The address range stays the caller's. */
void gml_arena_close(gml_heap *heap, gml_arena *arena);

/* Brings the runs of a coarse arena up to date after its slots changed. */
void gml_arena_index_runs(gml_arena *arena);

/* The LIVE span of a block in a coarse arena, in the arena's list. Pre: one object in heap->spans. */
gml_span *gml_coarse_block(gml_heap *heap, gml_arena *arena, uint64_t begin, uint64_t end);
void gml_coarse_drop_block(gml_heap *heap, gml_span *block);

typedef struct gml_slots {
    gml_arena *arena; /* NULL: none found */
    uint32_t slot, count;
} gml_slots;

/* The best fit for `count` chunks among the free stretches of all coarse arenas: `out_settled`
 * usable at once, `out_pending` once its tags are waited for. O(runs of the coarse arenas). */
void gml_arena_find(gml_heap *heap, uint32_t count, uint32_t requester, gml_slots *out_settled, gml_slots *out_pending);

/* The free stretch that ends at the arena's tail; its count may be 0. */
gml_slots gml_arena_tail(const gml_heap *heap, gml_arena *arena);

#endif
