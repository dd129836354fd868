/* SPDX-License-Identifier: Apache-2.0 */
/* Plans: setting memory aside, calling the device, finishing or undoing. */
#include "core/plan.h"

#include "base/align.h"
#include "base/bitmap.h"
#include "core/arena.h"
#include "core/chunks.h"
#include "core/fine.h"
#include "core/giveback.h"
#include "core/streams.h"

#include <string.h>

/* The best run of candidate chunks for `wanted` more: the shortest one that holds them all, else
 * the longest. Long runs keep the number of pieces of a stitch small. */
static uint32_t pick_run(const gml_heap *heap, uint32_t wanted, uint32_t *out_count)
{
    size_t best = GML_NO_CHUNK, best_count = 0, end = heap->chunk_end, count = 0;
    for (size_t at = 0; (at = gml_bitmap_next_run(heap->scratch_bits, end, at, &count)) != GML_BITMAP_NONE; at += count) {
        bool better = best_count < wanted ? count > best_count : count >= wanted && count < best_count;
        if (better) {
            best = at;
            best_count = count;
        }
    }
    *out_count = (uint32_t)gml_min(best_count, wanted);
    return (uint32_t)best;
}

static gml_status link_reused(gml_heap *heap, gml_plan *plan)
{
    gml_tag last = 0;
    for (uint32_t done = 0; done < plan->reuse;) {
        uint32_t count = 0;
        uint32_t first = pick_run(heap, plan->reuse - done, &count);
        if (count == 0)
            return GML_INTERNAL;
        for (uint32_t i = 0; i < count; i++) {
            uint32_t id = first + i;
            gml_bitmap_clear(heap->scratch_bits, id);
            gml_chunks_link(heap, plan->arena, plan->slot + done + i, id);
            if (heap->chunk_tags[id] != last) {
                last = heap->chunk_tags[id];
                gml_tags_add(heap, &plan->tags, last);
            }
        }
        done += count;
    }
    return GML_OK;
}

static void unlink_slots(gml_heap *heap, gml_plan *plan)
{
    for (uint32_t slot = plan->slot; slot < plan->slot + plan->count; slot++) {
        uint32_t id = gml_slot_chunk(plan->arena, slot);
        if (id == GML_NO_CHUNK)
            continue;
        gml_chunks_unlink(heap, plan->arena, slot);
        if (heap->chunks[id].handle == 0) {
            gml_bitmap_clear(heap->free_bits, id);
            gml_count_free(heap, -1);
            gml_chunks_drop_id(heap, id);
        }
    }
}

/* New chunks count as free for the moment, so that going live is the same for all. */
static gml_status link_created(gml_heap *heap, gml_plan *plan)
{
    uint32_t near = heap->chunk_end;
    for (uint32_t i = 0; i < plan->create; i++) {
        uint32_t id = gml_chunks_new_id(heap, i == 0 ? 0 : near);
        if (id == GML_NO_CHUNK)
            return GML_OUT_OF_METADATA;
        near = id + 1;
        gml_bitmap_set(heap->free_bits, id);
        gml_count_free(heap, 1);
        gml_chunks_link(heap, plan->arena, plan->slot + plan->reuse + i, id);
    }
    return GML_OK;
}

/* The LIVE span of the block over gap, new slots and gap; and what is left of the last chunk. */
static void cut_block(gml_heap *heap, gml_plan *plan)
{
    uint64_t filled_begin = gml_slot_address(heap, plan->arena, plan->slot);
    uint64_t filled_end = gml_slot_address(heap, plan->arena, plan->slot + plan->count);
    gml_span *block = NULL;
    if (plan->begin < filled_begin) {
        block = gml_fine_cover(heap, plan->arena, filled_begin)->previous;
        block = gml_fine_carve(heap, block, plan->begin, filled_begin, GML_SPAN_LIVE, NULL);
    }
    uint64_t stop = gml_max(plan->end, filled_end);
    gml_span *middle = gml_fine_cover(heap, plan->arena, filled_begin);
    middle = gml_fine_carve(heap, middle, filled_begin, filled_end, GML_SPAN_LIVE, NULL);
    block = block == NULL ? middle : gml_fine_fuse(heap, block, middle);
    if (plan->end > filled_end) {
        gml_span *after = gml_fine_carve(heap, block->next, filled_end, plan->end, GML_SPAN_LIVE, NULL);
        block = gml_fine_fuse(heap, block, after);
    }
    plan->rest = stop > plan->end ? gml_fine_carve(heap, block, plan->end, stop, GML_SPAN_LIVE, NULL) : NULL;
    plan->block = plan->rest != NULL ? plan->rest->previous : block;
}

static gml_status open_arena(gml_heap *heap, gml_plan *plan)
{
    gml_status status =
        gml_arena_open(heap, !plan->request.coarse, heap->spare_va, heap->spare_va_bytes, &plan->arena);
    if (status != GML_OK)
        return status;
    heap->spare_va = 0;
    plan->arena->stitched = plan->reuse != 0;
    heap->stats->stitched_arenas += plan->arena->stitched;
    plan->begin += plan->arena->base;
    plan->end += plan->arena->base;
    return GML_OK;
}

/* An arena that nothing came to stand in goes again; its address range is kept for the next one. */
static void close_if_new(gml_heap *heap, gml_plan *plan)
{
    gml_arena *arena = plan->arena;
    if (plan->va_bytes == 0 || arena == NULL || arena->mapped != 0)
        return;
    heap->spare_va = arena->base;
    heap->spare_va_bytes = arena->bytes;
    gml_arena_close(heap, arena);
}

gml_status gml_plan_set_aside(gml_heap *heap, gml_plan *plan)
{
    gml_status status = gml_block_ensure(heap, plan->request.bytes);
    if (status == GML_OK)
        status = gml_pool_ensure(&heap->mappings, plan->count);
    if (status != GML_OK)
        return status;
    if (plan->arena != NULL)
        plan->va_bytes = 0;
    else if ((status = open_arena(heap, plan)) != GML_OK)
        return status;
    status = link_reused(heap, plan);
    if (status == GML_OK)
        status = gml_streams_order(heap, &plan->tags, plan->request.requester);
    if (status == GML_OK)
        status = link_created(heap, plan);
    if (status != GML_OK) {
        unlink_slots(heap, plan);
        close_if_new(heap, plan);
        return status;
    }
    if (plan->arena->fine) {
        cut_block(heap, plan);
    } else {
        plan->block = gml_coarse_block(heap, plan->arena, plan->begin, plan->end);
    }
    uint32_t count = 0, first = gml_slots_of(heap, plan->arena, plan->begin, plan->end, &count);
    gml_chunks_enter(heap, plan->arena, first, count);
    if (!plan->arena->fine)
        gml_arena_index_runs(plan->arena);
    return GML_OK;
}

static gml_status create_handles(gml_heap *heap, gml_plan *plan)
{
    for (uint32_t i = plan->reuse; i < plan->count; i++) {
        gml_chunk *chunk = &heap->chunks[plan->arena->slots[plan->slot + i]];
        gml_status status = heap->dev->ops->create(heap->dev, heap->dev->chunk_bytes, &chunk->handle);
        plan->calls_create++;
        if (status != GML_OK) {
            chunk->handle = 0;
            return status;
        }
    }
    return GML_OK;
}

static gml_status map_slots(gml_heap *heap, gml_plan *plan, uint32_t *out_mapped)
{
    size_t bytes = heap->dev->chunk_bytes;
    uint64_t begin = gml_slot_address(heap, plan->arena, plan->slot);
    for (uint32_t i = 0; i < plan->count; i++) {
        gml_handle handle = heap->chunks[plan->arena->slots[plan->slot + i]].handle;
        gml_status status = heap->dev->ops->map(heap->dev, begin + i * bytes, bytes, handle);
        plan->calls_map++;
        if (status != GML_OK)
            return status;
        *out_mapped = i + 1;
    }
    plan->calls_set_access++;
    return heap->dev->ops->set_access(heap->dev, begin, plan->count * bytes);
}

static void undo_device(gml_heap *heap, gml_plan *plan, uint32_t mapped)
{
    size_t bytes = heap->dev->chunk_bytes;
    if (mapped != 0) {
        gml_giveback_mapping(heap, gml_slot_address(heap, plan->arena, plan->slot), mapped * bytes);
        plan->calls_unmap++;
    }
    for (uint32_t i = plan->count; i-- > plan->reuse;) {
        gml_chunk *chunk = &heap->chunks[plan->arena->slots[plan->slot + i]];
        if (chunk->handle == 0)
            continue;
        gml_giveback_handle(heap, chunk->handle);
        plan->calls_release++;
        chunk->handle = 0;
    }
}

/* Creating thousands of chunks only to release them again would take seconds: ask first. */
static bool device_full(gml_heap *heap, const gml_plan *plan)
{
    size_t free_bytes = 0, total_bytes = 0;
    if (plan->create < 2 || heap->dev->ops->mem_info(heap->dev, &free_bytes, &total_bytes) != GML_OK)
        return false;
    return free_bytes < (uint64_t)plan->create * heap->dev->chunk_bytes;
}

gml_status gml_plan_commit(gml_heap *heap, gml_plan *plan)
{
    if (device_full(heap, plan))
        return GML_OUT_OF_MEMORY;
    uint64_t start = heap->dev->ops->now_ns(heap->dev);
    uint32_t mapped = 0;
    gml_status status = create_handles(heap, plan);
    if (status == GML_OK)
        status = map_slots(heap, plan, &mapped);
    if (status != GML_OK)
        undo_device(heap, plan, mapped);
    plan->driver_ns = heap->dev->ops->now_ns(heap->dev) - start;
    return status;
}

static void undo(gml_heap *heap, gml_plan *plan)
{
    gml_arena *arena = plan->arena;
    uint32_t count = 0, first = gml_slots_of(heap, plan->arena, plan->begin, plan->end, &count);
    gml_chunks_leave(heap, arena, first, count, &plan->tags);
    if (!arena->fine) {
        gml_coarse_drop_block(heap, plan->block);
        unlink_slots(heap, plan);
        gml_arena_index_runs(arena);
        close_if_new(heap, plan);
        return;
    }
    uint64_t filled_begin = gml_slot_address(heap, arena, plan->slot);
    uint64_t filled_end = gml_slot_address(heap, arena, plan->slot + plan->count);
    gml_span *block = plan->block;
    if (plan->rest != NULL)
        block = gml_fine_fuse(heap, block, plan->rest);
    uint64_t begin = block->begin, end = block->end;
    (void)gml_fine_carve(heap, block, filled_begin, filled_end, GML_SPAN_EMPTY, NULL);
    if (begin < filled_begin)
        (void)gml_fine_carve(heap, gml_fine_cover(heap, arena, filled_begin)->previous, begin, filled_begin,
                             GML_SPAN_FREE, &plan->tags);
    if (end > filled_end) {
        gml_span *empty = gml_fine_cover(heap, arena, filled_end - 1);
        (void)gml_fine_carve(heap, empty->next, filled_end, end, GML_SPAN_FREE, &plan->tags);
    }
    unlink_slots(heap, plan);
    close_if_new(heap, plan);
}

static void count_calls(gml_heap *heap, const gml_plan *plan)
{
    gml_stats *stats = heap->stats;
    stats->driver_create += plan->calls_create;
    stats->driver_map += plan->calls_map;
    stats->driver_unmap += plan->calls_unmap;
    stats->driver_set_access += plan->calls_set_access;
    stats->driver_release += plan->calls_release;
    stats->driver_ns += plan->driver_ns;
    stats->budget_refusals += plan->over_budget;
    /* A plan that does both is rare: creating, mapping and opening a chunk costs about six times as
     * much as mapping and opening one. */
    uint64_t reuse_ns = plan->driver_ns * plan->reuse / (plan->reuse + 6 * (uint64_t)plan->create);
    heap->reuse_ns += reuse_ns;
    heap->grow_ns += plan->driver_ns - reuse_ns;
    heap->reuse_chunks += plan->reuse;
}

void gml_plan_finish(gml_heap *heap, gml_plan *plan, gml_status status)
{
    gml_stats *stats = heap->stats;
    count_calls(heap, plan);
    if (status != GML_OK) {
        undo(heap, plan);
        return;
    }
    if (plan->rest != NULL)
        (void)gml_fine_carve(heap, plan->rest, plan->rest->begin, plan->rest->end, GML_SPAN_FREE, &plan->tags);
    stats->chunks += plan->create;
    stats->reserved_bytes += (uint64_t)plan->create * heap->dev->chunk_bytes;
    if (plan->create != 0)
        stats->place_grow++;
    else if (plan->va_bytes != 0)
        stats->place_stitch++;
    else
        stats->place_extend++;
    gml_block_publish(heap, plan->block, &plan->request);
}
