/* SPDX-License-Identifier: Apache-2.0 */
/* Trimming: bookkeeping first, under the lock; then the device calls, without it.
 *
 * Once a chunk has left the free set and its slots are EMPTY, no other thread can reach it, so the
 * unmap and release calls need no lock but the grow lock, which keeps plans away. */
#include "core/trim.h"

#include "base/align.h"
#include "base/bitmap.h"
#include "core/arena.h"
#include "core/chunks.h"
#include "core/fine.h"
#include "core/giveback.h"
#include "core/streams.h"

#include <string.h>

/* Address space over all arenas, as a multiple of the device's memory. */
#define VA_CAP 24

gml_status gml_trim_drain(gml_heap *heap)
{
    gml_lock_acquire(&heap->lock);
    uint64_t sequence = heap->sequence;
    gml_lock_release(&heap->lock);
    gml_status status = heap->dev->ops->sync(heap->dev);
    if (status != GML_OK)
        return status;
    gml_lock_acquire(&heap->lock);
    gml_streams_all_done(heap, sequence);
    gml_lock_release(&heap->lock);
    return GML_OK;
}

static void add_unmap(gml_heap *heap, uint64_t begin, uint64_t bytes)
{
    gml_range *last = heap->unmap_count == 0 ? NULL : &heap->unmaps[heap->unmap_count - 1];
    if (last != NULL && last->begin + last->bytes == begin)
        last->bytes += bytes;
    else
        heap->unmaps[heap->unmap_count++] = (gml_range){begin, bytes};
}

/* Runs the collected device calls. */
static void run_calls(gml_heap *heap, const uint64_t *chunk_bits, uint64_t *out_ns)
{
    const gml_device_ops *ops = heap->dev->ops;
    uint64_t start = ops->now_ns(heap->dev);
    for (uint32_t i = 0; i < heap->unmap_count; i++)
        gml_giveback_mapping(heap, heap->unmaps[i].begin, heap->unmaps[i].bytes);
    for (uint32_t i = 0; i < heap->free_va_count; i++)
        gml_giveback_range(heap, heap->free_vas[i].begin, heap->free_vas[i].bytes);
    for (size_t id = 0; chunk_bits != NULL && id < heap->chunk_end; id++) {
        id = gml_bitmap_next(chunk_bits, heap->chunk_end, id);
        if (id == GML_BITMAP_NONE)
            break;
        gml_giveback_handle(heap, heap->chunks[id].handle);
    }
    *out_ns = ops->now_ns(heap->dev) - start;
}

/* ---- chunks ---- */

/* Chooses the free chunks with the highest ids: low ids then stay together for later plans. */
static uint32_t choose(gml_heap *heap, uint32_t wanted)
{
    uint32_t chosen = 0;
    memset(heap->scratch_bits, 0, GML_BITMAP_WORDS(heap->chunk_end) * sizeof(uint64_t));
    for (uint32_t id = heap->chunk_end; id-- > 0 && chosen < wanted;) {
        if (!gml_bitmap_get(heap->free_bits, id))
            continue;
        gml_tags tags = {{heap->chunk_tags[id]}};
        if (!gml_tags_settled(heap, &tags, GML_INDEX_NONE))
            continue;
        gml_bitmap_set(heap->scratch_bits, id);
        chosen++;
    }
    return chosen;
}

static void empty_slots(gml_heap *heap, gml_arena *arena, uint32_t slot, uint32_t count)
{
    uint64_t begin = gml_slot_address(heap, arena, slot);
    uint64_t end = gml_slot_address(heap, arena, slot + count);
    add_unmap(heap, begin, end - begin);
    if (arena->fine)
        (void)gml_fine_carve(heap, gml_fine_cover(heap, arena, begin), begin, end, GML_SPAN_EMPTY, NULL);
    for (uint32_t i = slot; i < slot + count; i++)
        gml_chunks_unlink(heap, arena, i);
}

/* Takes the chosen chunks out of one arena, in pieces as long as possible. */
static void leave_arena(gml_heap *heap, gml_arena *arena)
{
    uint32_t first = 0, count = 0;
    for (uint32_t slot = 0; slot < arena->slot_end; slot++) {
        uint32_t id = arena->slots[slot];
        if (id != GML_NO_CHUNK && gml_bitmap_get(heap->scratch_bits, id)) {
            first = count == 0 ? slot : first;
            count++;
            continue;
        }
        if (count != 0)
            empty_slots(heap, arena, first, count);
        count = 0;
    }
    if (count != 0)
        empty_slots(heap, arena, first, count);
    if (!arena->fine)
        gml_arena_index_runs(arena);
}

static void close_arena(gml_heap *heap, gml_arena *arena)
{
    heap->free_vas[heap->free_va_count++] = (gml_range){arena->base, arena->bytes};
    gml_arena_close(heap, arena);
}

static void leave_arenas(gml_heap *heap, gml_arena *list)
{
    for (gml_arena *arena = list, *next; arena != NULL; arena = next) {
        next = arena->next;
        leave_arena(heap, arena);
        if (arena->mapped == 0)
            close_arena(heap, arena);
    }
}

gml_status gml_trim_chunks(gml_heap *heap, uint64_t keep_bytes, uint64_t *out_released_bytes)
{
    gml_stats *stats = heap->stats;
    *out_released_bytes = 0;
    gml_lock_acquire(&heap->lock);
    uint64_t excess = stats->reserved_bytes > keep_bytes ? stats->reserved_bytes - keep_bytes : 0;
    uint32_t chosen = choose(heap, (uint32_t)((excess + heap->dev->chunk_bytes - 1) / heap->dev->chunk_bytes));
    /* A chunk in the middle of a gap needs two more spans, in every fine arena that maps it. */
    if (chosen == 0 || gml_pool_ensure(&heap->spans, gml_chunks_span_bound(heap, chosen)) != GML_OK) {
        gml_lock_release(&heap->lock);
        return chosen == 0 ? GML_OK : GML_OUT_OF_METADATA;
    }
    gml_stats_begin(heap);
    heap->unmap_count = heap->free_va_count = 0;
    leave_arenas(heap, heap->fine);
    leave_arenas(heap, heap->coarse);
    for (size_t i = 0; i < GML_BITMAP_WORDS(heap->chunk_end); i++)
        heap->free_bits[i] &= ~heap->scratch_bits[i];
    gml_count_free(heap, -(int64_t)chosen);
    gml_stats_end(heap);
    gml_lock_release(&heap->lock);

    uint64_t ns = 0;
    run_calls(heap, heap->scratch_bits, &ns);

    gml_lock_acquire(&heap->lock);
    gml_stats_begin(heap);
    for (uint32_t id = 0; id < heap->chunk_end; id++)
        if (gml_bitmap_get(heap->scratch_bits, id))
            gml_chunks_drop_id(heap, id);
    *out_released_bytes = (uint64_t)chosen * heap->dev->chunk_bytes;
    stats->reserved_bytes -= *out_released_bytes;
    stats->chunks -= chosen;
    stats->driver_release += chosen;
    stats->driver_unmap += heap->unmap_count;
    stats->driver_ns += ns;
    gml_stats_end(heap);
    gml_lock_release(&heap->lock);
    return GML_OK;
}

/* ---- arenas ---- */

static gml_arena *coldest(gml_heap *heap)
{
    gml_arena *best = NULL;
    for (gml_arena *arena = heap->coarse; arena != NULL; arena = arena->next)
        if (arena->live_blocks == 0 && (best == NULL || arena->last_use < best->last_use))
            best = arena;
    /* Fine arenas are few and hold what every small request looks for first: they go last. */
    for (gml_arena *arena = best != NULL ? NULL : heap->fine; arena != NULL; arena = arena->next)
        if (arena->live_blocks == 0 && (best == NULL || arena->last_use < best->last_use))
            best = arena;
    return best;
}

static bool over_cap(const gml_heap *heap, uint64_t mappings, uint64_t va_bytes)
{
    uint64_t cap = GML_ALIAS_CAP * gml_max(heap->stats->chunks, 64) + 1024;
    uint64_t va_cap = VA_CAP * heap->total_bytes;
    return heap->mapping_count + mappings > cap || heap->stats->reserved_va_bytes + va_bytes > va_cap;
}

static void unlink_arena(gml_heap *heap, gml_arena *arena)
{
    for (uint32_t slot = 0; slot < arena->slot_end; slot++) {
        if (arena->slots[slot] == GML_NO_CHUNK)
            continue;
        add_unmap(heap, gml_slot_address(heap, arena, slot), heap->dev->chunk_bytes);
        gml_chunks_unlink(heap, arena, slot);
    }
    close_arena(heap, arena);
}

/* Work that used the arena must be over before it is unmapped; if need be, wait for the device. */
static bool work_over(gml_heap *heap, gml_arena *arena)
{
    gml_streams_poll(heap, &arena->used);
    if (gml_tags_settled(heap, &arena->used, GML_INDEX_NONE))
        return true;
    if (heap->captures != 0)
        return false;
    gml_lock_release(&heap->lock);
    (void)!gml_trim_drain(heap); /* the tags tell */
    gml_lock_acquire(&heap->lock);
    return gml_tags_settled(heap, &arena->used, GML_INDEX_NONE) && arena->live_blocks == 0;
}

void gml_trim_arenas(gml_heap *heap, uint64_t mappings, uint64_t va_bytes)
{
    gml_lock_acquire(&heap->lock);
    while (heap->captures == 0 && over_cap(heap, mappings, va_bytes)) {
        gml_arena *arena = coldest(heap);
        if (arena == NULL || !work_over(heap, arena))
            break;
        heap->unmap_count = heap->free_va_count = 0;
        gml_stats_begin(heap);
        unlink_arena(heap, arena);
        gml_stats_end(heap);
        gml_lock_release(&heap->lock);
        uint64_t ns = 0;
        run_calls(heap, NULL, &ns);
        gml_lock_acquire(&heap->lock);
        gml_stats_begin(heap);
        heap->stats->driver_unmap += heap->unmap_count;
        heap->stats->driver_ns += ns;
        gml_stats_end(heap);
    }
    gml_lock_release(&heap->lock);
}
