/* SPDX-License-Identifier: Apache-2.0 */
/* Arenas: their life, and the search for free stretches in coarse ones.
 *
 * A stretch is a maximal sequence of slots whose chunks are all free. It is found by walking the
 * arena's runs (consecutive slots over consecutive chunk ids) through the free bitmap, a word of 64
 * chunks at a time; nothing is stored, so nothing can be stale. */
#include "core/arena.h"

#include "base/align.h"
#include "base/bitmap.h"
#include "base/pages.h"
#include "core/chunks.h"
#include "core/fine.h"
#include "core/streams.h"

#include <string.h>

static void link_arena(gml_heap *heap, gml_arena *arena)
{
    gml_arena **head = arena->fine ? &heap->fine : &heap->coarse;
    arena->next = *head;
    if (*head != NULL)
        (*head)->previous = arena;
    *head = arena;
    heap->fine_count += arena->fine;
    heap->stats->arenas++;
    heap->stats->reserved_va_bytes += arena->bytes;
}

gml_status gml_arena_open(gml_heap *heap, bool fine, uint64_t base, uint64_t bytes, gml_arena **out_arena)
{
    uint32_t slot_count = (uint32_t)(bytes / heap->dev->chunk_bytes);
    size_t slots = gml_align_up(slot_count * sizeof(uint32_t), 8);
    size_t members = GML_BITMAP_WORDS(GML_MAX_CHUNKS) * sizeof(uint64_t);
    size_t runs = fine ? 0 : gml_align_up(slot_count * sizeof(gml_run), 8);
    size_t last_start = fine ? slot_count * sizeof(gml_span *) : 0;
    size_t starts = fine ? GML_BITMAP_WORDS(slot_count) * sizeof(uint64_t) : 0;
    size_t total = gml_align_up(slots + members + runs + last_start + starts, 4096);
    gml_arena *arena = gml_pool_take(&heap->arenas);
    if (arena == NULL)
        return GML_OUT_OF_METADATA;
    char *pages = gml_pages_map(total);
    if (pages == NULL) {
        gml_pool_give(&heap->arenas, arena);
        return GML_OUT_OF_METADATA;
    }
    arena->fine = fine;
    arena->base = base;
    arena->bytes = bytes;
    arena->slot_count = slot_count;
    arena->pages = pages;
    arena->pages_bytes = total;
    arena->members = (uint64_t *)(void *)pages;
    arena->last_start = (gml_span **)(void *)(pages + members);
    arena->starts = (uint64_t *)(void *)(pages + members + last_start);
    arena->runs = (gml_run *)(void *)(pages + members + last_start + starts);
    arena->slots = (uint32_t *)(void *)(pages + members + last_start + starts + runs);
    link_arena(heap, arena);
    if (fine)
        gml_fine_open(heap, arena);
    *out_arena = arena;
    return GML_OK;
}

void gml_arena_close(gml_heap *heap, gml_arena *arena)
{
    if (arena->fine)
        gml_fine_close(heap, arena);
    if (arena->next != NULL)
        arena->next->previous = arena->previous;
    if (arena->previous != NULL)
        arena->previous->next = arena->next;
    else if (arena->fine)
        heap->fine = arena->next;
    else
        heap->coarse = arena->next;
    heap->fine_count -= arena->fine;
    heap->stats->arenas--;
    heap->stats->stitched_arenas -= arena->stitched;
    heap->stats->reserved_va_bytes -= arena->bytes;
    gml_pages_unmap(arena->pages, arena->pages_bytes);
    gml_pool_give(&heap->arenas, arena);
}

void gml_arena_index_runs(gml_arena *arena)
{
    arena->run_count = 0;
    arena->tail = 0;
    for (uint32_t slot = 0; slot < arena->slot_end; slot++) {
        uint32_t chunk = arena->slots[slot];
        if (chunk == GML_NO_CHUNK)
            continue;
        arena->tail = slot + 1;
        gml_run *last = arena->run_count == 0 ? NULL : &arena->runs[arena->run_count - 1];
        if (last != NULL && last->slot + last->count == slot && last->chunk + last->count == chunk)
            last->count++;
        else
            arena->runs[arena->run_count++] = (gml_run){slot, chunk, 1};
    }
}

gml_span *gml_coarse_block(gml_heap *heap, gml_arena *arena, uint64_t begin, uint64_t end)
{
    gml_span *block = gml_pool_take(&heap->spans);
    *block = (gml_span){.begin = begin, .end = end, .arena = arena, .state = GML_SPAN_LIVE, .next = arena->first};
    if (arena->first != NULL)
        arena->first->previous = block;
    arena->first = block;
    return block;
}

void gml_coarse_drop_block(gml_heap *heap, gml_span *block)
{
    if (block->next != NULL)
        block->next->previous = block->previous;
    if (block->previous != NULL)
        block->previous->next = block->next;
    else
        block->arena->first = block->next;
    gml_pool_give(&heap->spans, block);
}

/* One search: what is wanted, and the best found so far. */
typedef struct gml_finder {
    gml_heap *heap;
    uint32_t count, requester;
    gml_slots settled, pending;
} gml_finder;

static bool shorter(const gml_slots *a, const gml_slots *b)
{
    return b->arena == NULL || a->count < b->count;
}

static void offer(gml_finder *finder, gml_slots stretch)
{
    if (stretch.count < finder->count)
        return;
    if (!shorter(&stretch, &finder->settled))
        return;
    gml_tags tags;
    gml_chunks_tags(finder->heap, stretch.arena, stretch.slot, finder->count, &tags);
    if (gml_tags_settled(finder->heap, &tags, finder->requester))
        finder->settled = stretch;
    else if (shorter(&stretch, &finder->pending))
        finder->pending = stretch;
}

static void find_in(gml_finder *finder, gml_arena *arena)
{
    const uint64_t *bits = finder->heap->free_bits;
    gml_slots stretch = {arena, 0, 0};
    for (uint32_t i = 0; i < arena->run_count; i++) {
        gml_run run = arena->runs[i];
        size_t end = (size_t)run.chunk + run.count;
        for (size_t at = run.chunk; at < end;) {
            size_t length = 0, first = gml_bitmap_next_run(bits, end, at, &length);
            if (first == GML_BITMAP_NONE)
                break;
            size_t stop = first + length;
            uint32_t slot = run.slot + (uint32_t)(first - run.chunk), count = (uint32_t)length;
            if (stretch.count != 0 && stretch.slot + stretch.count == slot) {
                stretch.count += count;
            } else {
                offer(finder, stretch);
                stretch = (gml_slots){arena, slot, count};
            }
            at = stop;
            /* What is left may be too short: most arenas end here at their first live chunk. */
            if (stop < end && arena->tail - (slot + count) < finder->count && stretch.count < finder->count)
                return;
        }
    }
    offer(finder, stretch);
}

/* Slots that every stretch of `count` chunks would have to cover, in an arena that is shorter than two. */
static bool in_every_stretch(const gml_arena *arena, uint32_t slot, uint32_t count)
{
    return slot < count && slot + count >= arena->tail;
}

static bool is_live(const gml_heap *heap, const gml_arena *arena, uint32_t slot)
{
    uint32_t chunk = arena->slots[slot];
    return chunk != GML_NO_CHUNK && !gml_bitmap_get(heap->free_bits, chunk);
}

/* Most arenas fail again for the reason they failed before: one look at that slot tells. */
static bool still_blocked(const gml_finder *finder, const gml_arena *arena)
{
    return in_every_stretch(arena, arena->blocker, finder->count) && is_live(finder->heap, arena, arena->blocker);
}

static void remember_blocker(const gml_finder *finder, gml_arena *arena)
{
    uint32_t first = arena->tail > finder->count ? arena->tail - finder->count : 0;
    for (uint32_t slot = first; slot < finder->count && slot < arena->tail; slot++) {
        if (is_live(finder->heap, arena, slot)) {
            arena->blocker = slot;
            return;
        }
    }
}

void gml_arena_find(gml_heap *heap, uint32_t count, uint32_t requester, gml_slots *out_settled, gml_slots *out_pending)
{
    gml_finder finder = {.heap = heap, .count = count, .requester = requester};
    for (gml_arena *arena = heap->coarse; arena != NULL; arena = arena->next) {
        if (arena->mapped < count || still_blocked(&finder, arena))
            continue;
        gml_slots before[] = {finder.settled, finder.pending};
        find_in(&finder, arena);
        if (finder.settled.arena == before[0].arena && finder.pending.arena == before[1].arena)
            remember_blocker(&finder, arena);
        if (finder.settled.arena != NULL && finder.settled.count == count)
            break;
    }
    *out_settled = finder.settled;
    *out_pending = finder.pending;
}

gml_slots gml_arena_tail(const gml_heap *heap, gml_arena *arena)
{
    uint32_t slot = arena->tail;
    while (slot > 0 && arena->slots[slot - 1] != GML_NO_CHUNK &&
           gml_bitmap_get(heap->free_bits, arena->slots[slot - 1]))
        slot--;
    return (gml_slots){arena, slot, arena->tail - slot};
}
