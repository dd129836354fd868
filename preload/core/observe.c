/* SPDX-License-Identifier: Apache-2.0 */
/* Looking at a heap: lookups by address, computed statistics, the map of physical memory. */
#include "base/align.h"
#include "base/bitmap.h"
#include "core/fine.h"
#include "core/gaps.h"
#include "core/types.h"

#include <string.h>

static const gml_arena *arena_at(const gml_heap *heap, uintptr_t address)
{
    for (const gml_arena *arena = heap->fine; arena != NULL; arena = arena->next)
        if (address - arena->base < arena->bytes)
            return arena;
    for (const gml_arena *arena = heap->coarse; arena != NULL; arena = arena->next)
        if (address - arena->base < arena->bytes)
            return arena;
    return NULL;
}

static const gml_span *block_at(const gml_heap *heap, uintptr_t address)
{
    const gml_arena *arena = arena_at(heap, address);
    if (arena == NULL)
        return NULL;
    if (arena->fine) {
        const gml_span *span = gml_fine_cover(heap, arena, address);
        return span->state == GML_SPAN_LIVE ? span : NULL;
    }
    for (const gml_span *block = arena->first; block != NULL; block = block->next)
        if (address - block->begin < block->end - block->begin)
            return block;
    return NULL;
}

bool gml_heap_find(gml_heap *heap, uintptr_t address, uintptr_t *out_base, size_t *out_bytes)
{
    gml_lock_acquire(&heap->lock);
    const gml_span *block = block_at(heap, address);
    if (block != NULL && out_base != NULL)
        *out_base = block->begin;
    if (block != NULL && out_bytes != NULL)
        *out_bytes = block->u.block.requested_bytes;
    gml_lock_release(&heap->lock);
    return block != NULL;
}

bool gml_heap_covers(gml_heap *heap, uintptr_t address)
{
    gml_lock_acquire(&heap->lock);
    bool covered = arena_at(heap, address) != NULL;
    gml_lock_release(&heap->lock);
    return covered;
}

uint64_t gml_heap_idle_bytes(const gml_heap *heap)
{
    return __atomic_load_n(&heap->free_chunks, __ATOMIC_RELAXED) * heap->dev->chunk_bytes;
}

static void compute(gml_heap *heap)
{
    gml_stats *stats = heap->stats;
    stats->stream_held_bytes = gml_gaps_held(heap, heap->requester);
    stats->largest_gap_bytes = gml_gaps_largest(heap);
    stats->mappings = heap->mapping_count;
    stats->metadata_bytes = heap->spans.bytes + heap->mappings.bytes + heap->arenas.bytes +
                            heap->blocks.capacity * sizeof(gml_map_entry) + heap->chunk_end * sizeof(gml_chunk) +
                            heap->chunk_end * sizeof(gml_tag) + 3 * (uint64_t)(heap->chunk_end / 8);
    for (const gml_arena *arena = heap->fine; arena != NULL; arena = arena->next)
        stats->metadata_bytes += arena->slot_end * (sizeof(uint32_t) + sizeof(void *)) + arena->slot_end / 8;
    for (const gml_arena *arena = heap->coarse; arena != NULL; arena = arena->next)
        stats->metadata_bytes += arena->slot_end * sizeof(uint32_t) + arena->run_count * sizeof(gml_run);
}

void gml_heap_stats(gml_heap *heap, gml_stats *out_stats)
{
    gml_lock_acquire(&heap->lock);
    gml_stats_begin(heap);
    compute(heap);
    gml_stats_end(heap);
    *out_stats = *heap->stats;
    gml_lock_release(&heap->lock);
}

void gml_heap_live_sizes(gml_heap *heap, gml_tally *tally)
{
    gml_lock_acquire(&heap->lock);
    for (size_t i = 0; i < heap->blocks.capacity; i++)
        if (heap->blocks.entries[i].key != 0) {
            const gml_span *block = heap->blocks.entries[i].value;
            gml_tally_add(tally, block->u.block.requested_bytes, 1);
        }
    gml_lock_release(&heap->lock);
}

/* Live bytes of a cell's chunks are not kept by chunk; a chunk counts as wholly live or not. */
static uint8_t cell_of(const gml_heap *heap, size_t first, size_t end)
{
    unsigned exist = 0, live = 0, aliased = 0, stitched = 0;
    for (size_t id = first; id < end; id++) {
        const gml_chunk *chunk = &heap->chunks[id];
        if (!gml_bitmap_get(heap->exist_bits, id))
            continue;
        exist++;
        live += chunk->live != 0;
        stitched += chunk->owner != NULL && chunk->owner->stitched;
        aliased += chunk->mappings != NULL && chunk->mappings->next != NULL;
    }
    if (exist == 0)
        return 0;
    if (live == 0)
        return aliased != 0 ? 2 : 1;
    unsigned eighths = (live * 8 + exist - 1) / exist;
    return (uint8_t)(2 + eighths + (2 * stitched > live ? 128 : 0));
}

void gml_heap_map(gml_heap *heap, uint8_t *cells, size_t cell_count)
{
    gml_lock_acquire(&heap->lock);
    for (size_t cell = 0; cell < cell_count; cell++)
        cells[cell] = cell_of(heap, heap->chunk_end * cell / cell_count, heap->chunk_end * (cell + 1) / cell_count);
    gml_lock_release(&heap->lock);
}
