/* SPDX-License-Identifier: Apache-2.0 */
/* Placing: the fast path. Exact and split in fine arenas, free stretches in coarse ones; and the way
 * back when a block is freed.
 *
 *   [ gap                ]  =>  [ block      ][ gap  ]      split
 *   [ gap ][ block ][ gap]  =>  [ gap                ]      free */
#include "core/place.h"

#include "base/align.h"
#include "core/arena.h"
#include "core/chunks.h"
#include "core/fine.h"
#include "core/gaps.h"
#include "core/plan.h"
#include "core/streams.h"

gml_status gml_block_ensure(gml_heap *heap, uint64_t bytes)
{
    uint32_t slots = (uint32_t)(bytes / heap->dev->chunk_bytes) + 2;
    gml_status status = gml_pool_ensure(&heap->spans, gml_chunks_span_bound(heap, slots) + GML_SPARE_SPANS);
    return status == GML_OK ? gml_map_ensure(&heap->blocks) : status;
}

/* Learn what has finished; if that is not enough, let the requester's stream wait. */
static gml_status settle(gml_heap *heap, const gml_tags *tags, uint32_t requester)
{
    if (gml_tags_settled(heap, tags, requester))
        return GML_OK;
    gml_streams_poll(heap, tags);
    if (gml_tags_settled(heap, tags, requester))
        return GML_OK;
    return gml_streams_order(heap, tags, requester);
}

static void take_gap(gml_heap *heap, gml_span *gap, const gml_request *request, gml_span **out_block)
{
    uint64_t begin = gml_align_up(gap->begin, request->alignment);
    uint64_t end = begin + request->bytes;
    bool exact = begin == gap->begin && end == gap->end;
    gml_span *block = gml_fine_carve(heap, gap, begin, end, GML_SPAN_LIVE, NULL);
    uint32_t count = 0, first = gml_slots_of(heap, block->arena, begin, end, &count);
    gml_chunks_enter(heap, block->arena, first, count);
    heap->stats->place_exact += exact;
    heap->stats->place_split += !exact;
    gml_block_publish(heap, block, request);
    *out_block = block;
}

gml_status gml_place_fine(gml_heap *heap, const gml_request *request, gml_span **out_block)
{
    gml_gap_choice choice = gml_gaps_find(heap, request->bytes, request->alignment, request->requester);
    gml_span *gap = choice.settled != NULL ? choice.settled : choice.pending;
    if (gap == NULL)
        return GML_NOT_FOUND;
    gml_status status = gml_block_ensure(heap, request->bytes);
    if (status == GML_OK && choice.settled == NULL)
        status = settle(heap, &gap->tags, request->requester);
    if (status == GML_OK)
        take_gap(heap, gap, request, out_block);
    return status;
}

static gml_status place_coarse(gml_heap *heap, const gml_request *request, gml_span **out_block)
{
    uint32_t wanted = (uint32_t)(request->bytes / heap->dev->chunk_bytes);
    gml_slots settled, pending;
    gml_arena_find(heap, wanted, request->requester, &settled, &pending);
    gml_slots place = settled.arena != NULL ? settled : pending;
    if (place.arena == NULL)
        return GML_NOT_FOUND;
    gml_status status = gml_block_ensure(heap, request->bytes);
    if (status == GML_OK && settled.arena == NULL) {
        gml_tags tags;
        gml_chunks_tags(heap, place.arena, place.slot, wanted, &tags);
        status = settle(heap, &tags, request->requester);
    }
    if (status != GML_OK)
        return status;
    uint64_t begin = gml_slot_address(heap, place.arena, place.slot);
    gml_span *block = gml_coarse_block(heap, place.arena, begin, begin + request->bytes);
    gml_chunks_enter(heap, place.arena, place.slot, wanted);
    heap->stats->place_exact += place.count == wanted;
    heap->stats->place_split += place.count != wanted;
    gml_block_publish(heap, block, request);
    *out_block = block;
    return GML_OK;
}

gml_status gml_place(gml_heap *heap, const gml_request *request, gml_span **out_block)
{
    return request->coarse ? place_coarse(heap, request, out_block) : gml_place_fine(heap, request, out_block);
}

/* What reserved consists of at the moment it is highest. */
static void note_peak(gml_heap *heap)
{
    gml_stats *stats = heap->stats;
    stats->peak_reserved_bytes = stats->reserved_bytes;
    stats->at_peak_live_bytes = stats->live_bytes;
    stats->at_peak_requested_bytes = stats->requested_bytes;
    stats->at_peak_internal_bytes = heap->given_bytes - stats->requested_bytes;
    stats->at_peak_stream_held_bytes = gml_gaps_held(heap, heap->requester);
    stats->at_peak_external_bytes = stats->reserved_bytes - heap->given_bytes - stats->at_peak_stream_held_bytes;
    stats->at_peak_largest_servable_bytes =
        gml_max(gml_gaps_largest(heap), heap->free_chunks * heap->dev->chunk_bytes);
}

static void count_live(gml_heap *heap, const gml_span *block, uint64_t requested_bytes, bool added)
{
    gml_stats *stats = heap->stats;
    uint64_t sign = added ? 1 : UINT64_MAX; /* modulo 2^64, adding this once subtracts one */
    uint64_t live = sign * gml_align_up(requested_bytes, GML_BLOCK_BYTES);
    uint64_t given = sign * (block->end - block->begin);
    stats->live_bytes += live;
    stats->requested_bytes += sign * requested_bytes;
    heap->given_bytes += given;
    *(block->arena->stitched ? &stats->stitched_live_bytes : &stats->primitive_live_bytes) += given;
    block->arena->live_bytes += given;
    block->arena->live_blocks += (uint32_t)sign;
    block->arena->last_use = ++heap->clock;
    if (stats->live_bytes > stats->peak_live_bytes)
        stats->peak_live_bytes = stats->live_bytes;
    if (stats->reserved_bytes > stats->peak_reserved_bytes)
        note_peak(heap);
    stats->waste_mib_sum += (stats->reserved_bytes - stats->live_bytes) >> 20;
    stats->reserved_mib_sum += stats->reserved_bytes >> 20;
}

void gml_block_publish(gml_heap *heap, gml_span *block, const gml_request *request)
{
    block->u.block.requested_bytes = request->requested_bytes;
    block->u.block.stream = request->requester;
    heap->requester = request->requester;
    gml_map_put(&heap->blocks, block->begin, block);
    heap->stats->allocs++;
    count_live(heap, block, request->requested_bytes, true);
}

gml_status gml_unplace(gml_heap *heap, gml_span *block, gml_tag tag)
{
    gml_arena *arena = block->arena;
    gml_status status = gml_block_ensure(heap, block->end - block->begin);
    if (status != GML_OK)
        return status;
    gml_map_remove(&heap->blocks, block->begin);
    count_live(heap, block, block->u.block.requested_bytes, false);
    heap->stats->frees++;
    gml_tags tags = {{tag}};
    gml_tags_add(heap, &arena->used, tag);
    uint32_t count = 0, first = gml_slots_of(heap, arena, block->begin, block->end, &count);
    if (!arena->fine) {
        gml_coarse_drop_block(heap, block);
        gml_chunks_leave(heap, arena, first, count, &tags);
        return GML_OK;
    }
    gml_span *gap = gml_fine_carve(heap, block, block->begin, block->end, GML_SPAN_FREE, &tags);
    tags = gap->tags; /* a chunk that is free now may hold memory that was freed earlier, elsewhere */
    gml_chunks_leave(heap, arena, first, count, &tags);
    return GML_OK;
}
