/* SPDX-License-Identifier: Apache-2.0 */
/* Plans: requests that need the driver. Decide without side effects, set memory aside, call the
 * device, and finish or undo.
 *
 *   decide     under heap->lock, no side effect: which slots to fill, how many chunks to create
 *   set_aside  under heap->lock: takes the chunks and slots, so that no other thread can
 *   commit     under heap->grow_lock alone: create, map, set access; rolls back in reverse
 *   finish     under heap->lock: publishes the block, or undoes set_aside */
#ifndef GML_CORE_PLAN_H
#define GML_CORE_PLAN_H

#include "core/types.h"

typedef struct gml_plan {
    gml_request request;
    gml_arena *arena;     /* NULL: a new arena of `va_bytes` */
    uint64_t va_bytes;
    uint64_t begin, end;  /* the block; offsets from the base for a new arena */
    uint32_t slot, count; /* slots to fill: `reuse` free chunks, then `create` new ones */
    uint32_t reuse, create;
    gml_tags tags;        /* of the free chunks and of the gap in front: to be ordered before use */
    gml_span *block, *rest;
    bool over_budget;     /* reuse would have gone over the budget of driver time */
    uint32_t calls_create, calls_map, calls_unmap, calls_set_access, calls_release;
    uint64_t driver_ns;
} gml_plan;

/* The cheapest way to place `request` (fewest chunks created, then fewest mapped).
 * Errors: OUT_OF_MEMORY when the limit forbids it, INVALID when it is larger than any arena. */
GML_CHECKED gml_status gml_plan_decide(gml_heap *heap, const gml_request *request, gml_plan *out_plan);

/* Errors: OUT_OF_METADATA, NOT_READY (earlier work cannot be ordered without the host). Nothing has
 * changed then. Pre: for a new arena, heap->spare_va holds at least plan->va_bytes. */
GML_CHECKED gml_status gml_plan_set_aside(gml_heap *heap, gml_plan *plan);
GML_CHECKED gml_status gml_plan_commit(gml_heap *heap, gml_plan *plan);

/* `status` is what commit answered. The block is live afterwards if it was OK. */
void gml_plan_finish(gml_heap *heap, gml_plan *plan, gml_status status);

/* Takes the bookkeeping memory for placing or freeing a block of `bytes`. Errors: OUT_OF_METADATA. */
GML_CHECKED gml_status gml_block_ensure(gml_heap *heap, uint64_t bytes);

/* Counts a placed block and makes it findable. Shared with placements that need no plan. */
void gml_block_publish(gml_heap *heap, gml_span *block, const gml_request *request);

#endif
