/* SPDX-License-Identifier: Apache-2.0 */
/* Chunks: the physical memory, and what happens to every alias when a chunk goes live or free.
 *
 * All functions: heap->lock is held. Cost: O(chunks touched + their aliases in fine arenas). */
#ifndef GML_CORE_CHUNKS_H
#define GML_CORE_CHUNKS_H

#include "core/types.h"

/* Spans that `enter` or `leave` over `count` slots may need at most. */
size_t gml_chunks_span_bound(const gml_heap *heap, uint32_t count);

/* A live block of `arena` now touches slots [slot, slot + count). Chunks that were free leave the
 * free set and become TAKEN in every other fine arena. */
void gml_chunks_enter(gml_heap *heap, gml_arena *arena, uint32_t slot, uint32_t count);

/* That block is gone. Chunks without a live byte become free everywhere, with `tags`. */
void gml_chunks_leave(gml_heap *heap, gml_arena *arena, uint32_t slot, uint32_t count, const gml_tags *tags);

/* Records that `chunk` stands at `slot`. Pre: one object in heap->mappings. */
void gml_chunks_link(gml_heap *heap, gml_arena *arena, uint32_t slot, uint32_t chunk);
void gml_chunks_unlink(gml_heap *heap, gml_arena *arena, uint32_t slot);

/* The union of the tags of the free chunks at slots [slot, slot + count). */
void gml_chunks_tags(gml_heap *heap, const gml_arena *arena, uint32_t slot, uint32_t count, gml_tags *out_tags);

/* An id for a chunk to be created: consecutive calls give consecutive ids where they can.
 * GML_NO_CHUNK when the table is full. */
uint32_t gml_chunks_new_id(gml_heap *heap, uint32_t near);
void gml_chunks_drop_id(gml_heap *heap, uint32_t chunk);

#endif
