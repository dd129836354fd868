/* SPDX-License-Identifier: Apache-2.0 */
/* Checking: every invariant of the bookkeeping as one function, for tests and --check runs. */
#include "base/bitmap.h"
#include "core/types.h"

#define REQUIRE(condition)                   \
    do {                                     \
        if (!(condition)) {                  \
            *out_why = #condition;           \
            return GML_INTERNAL;             \
        }                                    \
    } while (0)

static gml_status check_span(const gml_heap *heap, const gml_arena *arena, const gml_span *span, const char **out_why)
{
    size_t chunk_bytes = heap->dev->chunk_bytes;
    bool whole = (span->begin - arena->base) % chunk_bytes == 0 && (span->end - arena->base) % chunk_bytes == 0;
    bool mapped = span->state != GML_SPAN_EMPTY;
    REQUIRE(span->begin < span->end && span->arena == arena);
    REQUIRE(span->begin % GML_BLOCK_BYTES == 0 && span->end % GML_BLOCK_BYTES == 0);
    REQUIRE(whole || span->state == GML_SPAN_FREE || span->state == GML_SPAN_LIVE);
    for (uint32_t slot = gml_slot_of(heap, arena, span->begin); slot <= gml_slot_of(heap, arena, span->end - 1); slot++) {
        uint32_t id = gml_slot_chunk(arena, slot);
        REQUIRE((id != GML_NO_CHUNK) == mapped);
        if (!mapped)
            continue;
        uint64_t address = gml_slot_address(heap, arena, slot);
        bool covered = address >= span->begin && address + chunk_bytes <= span->end;
        const gml_chunk *chunk = &heap->chunks[id];
        REQUIRE(span->state != GML_SPAN_LIVE || chunk->owner == arena);
        REQUIRE(span->state != GML_SPAN_FREE || (covered ? chunk->owner == NULL : chunk->owner == arena));
        REQUIRE(span->state != GML_SPAN_TAKEN || (chunk->owner != NULL && chunk->owner != arena));
    }
    return GML_OK;
}

static gml_status check_fine(const gml_heap *heap, const gml_arena *arena, uint64_t *gaps, const char **out_why)
{
    uint64_t at = arena->base, live_bytes = 0;
    uint32_t live_blocks = 0;
    for (const gml_span *span = arena->first; span != NULL; span = span->next) {
        REQUIRE(span->begin == at);
        REQUIRE(span->next == NULL || span->next->previous == span);
        REQUIRE(span->next == NULL || span->state == GML_SPAN_LIVE || span->state != span->next->state);
        gml_status status = check_span(heap, arena, span, out_why);
        if (status != GML_OK)
            return status;
        uint32_t slot = gml_slot_of(heap, arena, span->begin);
        bool last = span->next == NULL || gml_slot_of(heap, arena, span->next->begin) != slot;
        REQUIRE(gml_bitmap_get(arena->starts, slot));
        REQUIRE(!last || arena->last_start[slot] == span);
        if (span->state == GML_SPAN_LIVE) {
            REQUIRE(gml_map_get(&heap->blocks, span->begin) == span);
            live_bytes += span->end - span->begin;
            live_blocks++;
        }
        *gaps += span->state == GML_SPAN_FREE;
        at = span->end;
    }
    REQUIRE(at == arena->base + arena->bytes);
    REQUIRE(live_bytes == arena->live_bytes && live_blocks == arena->live_blocks);
    return GML_OK;
}

static gml_status check_coarse(const gml_heap *heap, const gml_arena *arena, const char **out_why)
{
    uint64_t live_bytes = 0;
    uint32_t live_blocks = 0, in_runs = 0;
    for (const gml_span *block = arena->first; block != NULL; block = block->next) {
        REQUIRE(block->arena == arena && gml_map_get(&heap->blocks, block->begin) == block);
        for (uint32_t slot = gml_slot_of(heap, arena, block->begin); slot <= gml_slot_of(heap, arena, block->end - 1); slot++) {
            REQUIRE(arena->slots[slot] != GML_NO_CHUNK);
            REQUIRE(heap->chunks[arena->slots[slot]].owner == arena);
            REQUIRE(heap->chunks[arena->slots[slot]].live == 1);
        }
        live_bytes += block->end - block->begin;
        live_blocks++;
    }
    for (uint32_t i = 0; i < arena->run_count; i++) {
        gml_run run = arena->runs[i];
        for (uint32_t k = 0; k < run.count; k++)
            REQUIRE(arena->slots[run.slot + k] == run.chunk + k);
        in_runs += run.count;
    }
    REQUIRE(in_runs == arena->mapped);
    REQUIRE(live_bytes == arena->live_bytes && live_blocks == arena->live_blocks);
    return GML_OK;
}

static gml_status check_slots(const gml_heap *heap, const gml_arena *arena, const char **out_why)
{
    uint32_t mapped = 0;
    for (uint32_t slot = 0; slot < arena->slot_end; slot++) {
        uint32_t id = arena->slots[slot];
        if (id == GML_NO_CHUNK)
            continue;
        mapped++;
        REQUIRE(gml_bitmap_get(heap->exist_bits, id) && gml_bitmap_get(arena->members, id));
        unsigned found = 0; /* a chunk never stands twice in one arena */
        for (const gml_mapping *mapping = heap->chunks[id].mappings; mapping != NULL; mapping = mapping->next)
            found += mapping->arena == arena;
        REQUIRE(found == 1);
    }
    REQUIRE(mapped == arena->mapped);
    return GML_OK;
}

static gml_status check_chunks(const gml_heap *heap, const char **out_why)
{
    uint64_t exist = 0, free_chunks = 0, mappings = 0, stitched_chunks = 0;
    for (size_t id = 0; id < heap->chunk_end; id++) {
        const gml_chunk *chunk = &heap->chunks[id];
        bool free_bit = gml_bitmap_get(heap->free_bits, id);
        if (!gml_bitmap_get(heap->exist_bits, id)) {
            REQUIRE(!free_bit);
            continue;
        }
        exist++;
        free_chunks += free_bit;
        REQUIRE(chunk->handle != 0);
        REQUIRE(free_bit == (chunk->live == 0) && free_bit == (chunk->owner == NULL));
        uint16_t fine = 0, stitched = 0;
        for (const gml_mapping *mapping = chunk->mappings; mapping != NULL; mapping = mapping->next) {
            REQUIRE(mapping->arena->slots[mapping->slot] == id);
            REQUIRE(mapping->arena->fine || mapping->next == NULL || !mapping->next->arena->fine);
            fine = (uint16_t)(fine + mapping->arena->fine);
            stitched = (uint16_t)(stitched + mapping->arena->stitched);
            mappings++;
        }
        REQUIRE(fine == chunk->fine_mappings && stitched == chunk->stitched_mappings);
        stitched_chunks += gml_chunk_is_stitched(chunk);
    }
    REQUIRE(exist == heap->stats->chunks);
    REQUIRE(exist * heap->dev->chunk_bytes == heap->stats->reserved_bytes);
    REQUIRE(free_chunks == heap->free_chunks && mappings == heap->mapping_count);
    REQUIRE(stitched_chunks == heap->stitched_chunks);
    return GML_OK;
}

static gml_status check_bins(const gml_heap *heap, uint64_t gaps, const char **out_why)
{
    uint64_t listed = 0;
    for (unsigned bin = 0; bin < GML_BIN_ROWS * GML_BIN_COLUMNS; bin++) {
        bool bit = (heap->gaps.columns[bin / GML_BIN_COLUMNS] >> (bin % GML_BIN_COLUMNS)) & 1;
        REQUIRE(bit == (heap->gaps.bins[bin] != NULL));
        for (const gml_span *span = heap->gaps.bins[bin]; span != NULL; span = span->u.list.next) {
            REQUIRE(span->state == GML_SPAN_FREE && span->bin == bin);
            listed++;
        }
    }
    REQUIRE(listed == gaps && listed == heap->gaps.count);
    return GML_OK;
}

static gml_status check_all(const gml_heap *heap, const char **out_why)
{
    uint64_t gaps = 0, live = 0, blocks = 0;
    gml_status status = GML_OK;
    for (const gml_arena *arena = heap->fine; arena != NULL && status == GML_OK; arena = arena->next) {
        status = check_fine(heap, arena, &gaps, out_why);
        if (status == GML_OK)
            status = check_slots(heap, arena, out_why);
        live += arena->live_bytes;
        blocks += arena->live_blocks;
    }
    for (const gml_arena *arena = heap->coarse; arena != NULL && status == GML_OK; arena = arena->next) {
        status = check_coarse(heap, arena, out_why);
        if (status == GML_OK)
            status = check_slots(heap, arena, out_why);
        live += arena->live_bytes;
        blocks += arena->live_blocks;
    }
    if (status == GML_OK)
        status = check_chunks(heap, out_why);
    if (status == GML_OK)
        status = check_bins(heap, gaps, out_why);
    if (status != GML_OK)
        return status;
    REQUIRE(live == heap->given_bytes && blocks == heap->blocks.count);
    REQUIRE(heap->stats->primitive_live_bytes + heap->stats->stitched_live_bytes == live);
    REQUIRE(heap->stats->allocs - heap->stats->frees == blocks);
    REQUIRE(heap->stats->primitive_live_bytes + heap->stats->primitive_idle_bytes + heap->stats->stitched_live_bytes +
                heap->stats->stitched_idle_bytes == heap->stats->reserved_bytes);
    return GML_OK;
}

gml_status gml_heap_check(gml_heap *heap, const char **out_why)
{
    /* The grow lock keeps half-done plans out of sight. */
    gml_lock_acquire(&heap->grow_lock);
    gml_lock_acquire(&heap->lock);
    gml_status status = check_all(heap, out_why);
    gml_lock_release(&heap->lock);
    gml_lock_release(&heap->grow_lock);
    return status;
}
