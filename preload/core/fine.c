/* SPDX-License-Identifier: Apache-2.0 */
/* Fine arenas: spans in address order, found by slot.
 *
 * Idea: boundary tags by doubly linked spans (Knuth, TAOCP 1, 2.5) for O(1) split and merge; and for
 * the lookup from a chunk to its span, a bitmap of the slots in which a span begins. A free chunk lies
 * wholly inside one span, so the last span that begins at or before it is the one. */
#include "core/fine.h"

#include "base/bitmap.h"
#include "core/gaps.h"
#include "core/streams.h"

static void index_start(const gml_heap *heap, gml_span *span)
{
    gml_arena *arena = span->arena;
    uint32_t slot = gml_slot_of(heap, arena, span->begin);
    if (span->next != NULL && gml_slot_of(heap, arena, span->next->begin) == slot)
        return;
    arena->last_start[slot] = span;
    gml_bitmap_set(arena->starts, slot);
}

static void unindex_start(const gml_heap *heap, const gml_span *span)
{
    gml_arena *arena = span->arena;
    uint32_t slot = gml_slot_of(heap, arena, span->begin);
    if (arena->last_start[slot] != span)
        return;
    if (span->previous != NULL && gml_slot_of(heap, arena, span->previous->begin) == slot) {
        arena->last_start[slot] = span->previous;
    } else {
        arena->last_start[slot] = NULL;
        gml_bitmap_clear(arena->starts, slot);
    }
}

static void list_empty(gml_span *span)
{
    gml_arena *arena = span->arena;
    span->u.list.previous = NULL;
    span->u.list.next = arena->empty;
    if (arena->empty != NULL)
        arena->empty->u.list.previous = span;
    arena->empty = span;
}

static void unlist_empty(gml_span *span)
{
    if (span->u.list.next != NULL)
        span->u.list.next->u.list.previous = span->u.list.previous;
    if (span->u.list.previous != NULL)
        span->u.list.previous->u.list.next = span->u.list.next;
    else
        span->arena->empty = span->u.list.next;
}

/* FREE spans stand in the gap index, EMPTY ones in the arena's list, the others nowhere. */
static void list_span(gml_heap *heap, gml_span *span)
{
    if (span->state == GML_SPAN_FREE)
        gml_gaps_insert(heap, span);
    else if (span->state == GML_SPAN_EMPTY)
        list_empty(span);
}

static void unlist_span(gml_heap *heap, gml_span *span)
{
    if (span->state == GML_SPAN_FREE)
        gml_gaps_remove(heap, span);
    else if (span->state == GML_SPAN_EMPTY)
        unlist_empty(span);
}

/* [ span            ] => [ span   ][ rest   ]; neither is listed afterwards. */
static gml_span *cut(gml_heap *heap, gml_span *span, uint64_t at)
{
    gml_span *rest = gml_pool_take(&heap->spans);
    rest->arena = span->arena;
    rest->state = span->state;
    rest->tags = span->tags;
    rest->begin = at;
    rest->end = span->end;
    span->end = at;
    rest->previous = span;
    rest->next = span->next;
    if (rest->next != NULL)
        rest->next->previous = rest;
    span->next = rest;
    index_start(heap, rest);
    return rest;
}

/* [ left ][ right ] => [ left           ]; right's object goes. Neither is listed before. */
static void join(gml_heap *heap, gml_span *left, gml_span *right)
{
    if (left->state == GML_SPAN_FREE)
        gml_tags_unite(heap, &left->tags, &right->tags);
    unindex_start(heap, right);
    left->end = right->end;
    left->next = right->next;
    if (left->next != NULL)
        left->next->previous = left;
    gml_pool_give(&heap->spans, right);
}

static bool joins(const gml_span *a, const gml_span *b)
{
    return a != NULL && b != NULL && a->state == b->state && a->state != GML_SPAN_LIVE;
}

void gml_fine_open(gml_heap *heap, gml_arena *arena)
{
    gml_span *span = gml_pool_take(&heap->spans);
    span->arena = arena;
    span->state = GML_SPAN_EMPTY;
    span->begin = arena->base;
    span->end = arena->base + arena->bytes;
    arena->first = span;
    index_start(heap, span);
    list_empty(span);
}

gml_span *gml_fine_cover(const gml_heap *heap, const gml_arena *arena, uint64_t address)
{
    uint32_t slot = gml_slot_of(heap, arena, address);
    gml_span *span = arena->last_start[gml_bitmap_previous(arena->starts, slot)];
    while (span->begin > address)
        span = span->previous;
    return span;
}

gml_span *gml_fine_carve(gml_heap *heap, gml_span *span, uint64_t begin, uint64_t end, gml_span_state state,
                         const gml_tags *tags)
{
    unlist_span(heap, span);
    if (begin > span->begin) {
        gml_span *before = span;
        span = cut(heap, span, begin);
        list_span(heap, before);
    }
    if (end < span->end)
        list_span(heap, cut(heap, span, end));
    span->state = (uint8_t)state;
    if (state == GML_SPAN_FREE)
        span->tags = *tags;
    if (joins(span, span->next)) {
        unlist_span(heap, span->next);
        join(heap, span, span->next);
        heap->stats->merges += state == GML_SPAN_FREE;
    }
    if (joins(span->previous, span)) {
        span = span->previous;
        unlist_span(heap, span);
        join(heap, span, span->next);
        heap->stats->merges += state == GML_SPAN_FREE;
    }
    if (state != GML_SPAN_LIVE)
        list_span(heap, span);
    return span;
}

gml_span *gml_fine_fuse(gml_heap *heap, gml_span *left, gml_span *right)
{
    join(heap, left, right);
    return left;
}

void gml_fine_take(gml_heap *heap, gml_arena *arena, uint32_t slot, uint32_t count)
{
    uint64_t begin = gml_slot_address(heap, arena, slot);
    uint64_t end = gml_slot_address(heap, arena, slot + count);
    (void)gml_fine_carve(heap, gml_fine_cover(heap, arena, begin), begin, end, GML_SPAN_TAKEN, NULL);
}

void gml_fine_give(gml_heap *heap, gml_arena *arena, uint32_t slot, uint32_t count, const gml_tags *tags)
{
    uint64_t begin = gml_slot_address(heap, arena, slot);
    uint64_t end = gml_slot_address(heap, arena, slot + count);
    (void)gml_fine_carve(heap, gml_fine_cover(heap, arena, begin), begin, end, GML_SPAN_FREE, tags);
}

void gml_fine_close(gml_heap *heap, gml_arena *arena)
{
    gml_span *span = arena->first;
    while (span != NULL) {
        gml_span *next = span->next;
        unlist_span(heap, span);
        gml_pool_give(&heap->spans, span);
        span = next;
    }
    arena->first = NULL;
}
