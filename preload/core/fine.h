/* SPDX-License-Identifier: Apache-2.0 */
/* Fine arenas: byte-granular ranges whose blocks share chunks, covered by spans in address order.
 *
 *   [LIVE][FREE     ][LIVE][TAKEN        ][FREE][EMPTY ...............]
 *
 * Invariants: spans are contiguous and cover the whole range; two neighbours are never both FREE,
 * both TAKEN or both EMPTY; TAKEN and EMPTY spans begin and end on chunk boundaries; every FREE span
 * is in the gap index. All functions: heap->lock is held; those that may split a span need one or
 * two objects from heap->spans (gml_pool_ensure). O(1) unless said otherwise. */
#ifndef GML_CORE_FINE_H
#define GML_CORE_FINE_H

#include "core/types.h"

/* The whole range of a new arena as one EMPTY span. */
void gml_fine_open(gml_heap *heap, gml_arena *arena);

/* The span that covers `address`. O(distance / 64 slots). */
gml_span *gml_fine_cover(const gml_heap *heap, const gml_arena *arena, uint64_t address);

/* Cuts [begin, end) out of `span` (which covers it) and gives the piece `state`; merges it with equal
 * neighbours unless it becomes LIVE. A piece that becomes FREE starts with `tags`. */
gml_span *gml_fine_carve(gml_heap *heap, gml_span *span, uint64_t begin, uint64_t end, gml_span_state state,
                         const gml_tags *tags);

/* Two neighbouring LIVE spans become one, which is returned. */
gml_span *gml_fine_fuse(gml_heap *heap, gml_span *left, gml_span *right);

/* Chunks at slots [slot, slot + count) went live in another arena, or are free again (with `tags`). */
void gml_fine_take(gml_heap *heap, gml_arena *arena, uint32_t slot, uint32_t count);
void gml_fine_give(gml_heap *heap, gml_arena *arena, uint32_t slot, uint32_t count, const gml_tags *tags);

/* Returns every span object; the arena holds nothing afterwards. */
void gml_fine_close(gml_heap *heap, gml_arena *arena);

#endif
