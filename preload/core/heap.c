/* SPDX-License-Identifier: Apache-2.0 */
/* Heap: the entry points. */
#include "core/heap.h"

#include "base/align.h"
#include "base/bitmap.h"
#include "base/pages.h"
#include "core/giveback.h"
#include "core/grow.h"
#include "core/place.h"
#include "core/streams.h"
#include "core/trim.h"

#include <string.h>

/* No device has this much; larger requests would overflow the arithmetic. */
#define REQUEST_MAX ((uint64_t)1 << 46)

/* ---- life ---- */

typedef struct table {
    void **slot;
    size_t bytes;
} table;

#define TABLE_COUNT 8

static void list_tables(gml_heap *heap, table tables[TABLE_COUNT])
{
    size_t bits = GML_BITMAP_WORDS(GML_MAX_CHUNKS) * sizeof(uint64_t);
    const table list[TABLE_COUNT] = {
        {(void **)&heap->chunks, GML_MAX_CHUNKS * sizeof(gml_chunk)},
        {(void **)&heap->chunk_tags, GML_MAX_CHUNKS * sizeof(gml_tag)},
        {(void **)&heap->free_bits, bits},
        {(void **)&heap->exist_bits, bits},
        {(void **)&heap->scratch_bits, bits},
        {(void **)&heap->streams, GML_MAX_STREAMS * sizeof(gml_stream_state)},
        {(void **)&heap->unmaps, GML_MAX_CHUNKS * sizeof(gml_range)},
        {(void **)&heap->free_vas, GML_MAX_CHUNKS * sizeof(gml_range)},
    };
    memcpy(tables, list, sizeof list);
}

static void free_tables(gml_heap *heap)
{
    table tables[TABLE_COUNT];
    list_tables(heap, tables);
    for (unsigned i = 0; i < TABLE_COUNT; i++)
        gml_pages_unmap(*tables[i].slot, tables[i].bytes);
}

gml_status gml_heap_create(gml_device *dev, const gml_heap_options *options, gml_heap **out_heap)
{
    gml_heap *heap = gml_pages_map(sizeof *heap);
    if (heap == NULL)
        return GML_OUT_OF_METADATA;
    heap->dev = dev;
    heap->options = *options;
    heap->stats = options->stats != NULL ? options->stats : &heap->own_stats;
    heap->sequence_lock = options->sequence != NULL ? options->sequence : &heap->own_sequence_lock;
    heap->lock = heap->grow_lock = (gml_lock)GML_LOCK_INIT;
    heap->stream_end = GML_INDEX_FIRST;
    gml_pool_init(&heap->spans, sizeof(gml_span));
    gml_pool_init(&heap->mappings, sizeof(gml_mapping));
    gml_pool_init(&heap->arenas, sizeof(gml_arena));
    table tables[TABLE_COUNT];
    list_tables(heap, tables);
    for (unsigned i = 0; i < TABLE_COUNT; i++) {
        *tables[i].slot = gml_pages_map(tables[i].bytes);
        if (*tables[i].slot == NULL) {
            free_tables(heap);
            gml_pages_unmap(heap, sizeof *heap);
            return GML_OUT_OF_METADATA;
        }
    }
    *out_heap = heap;
    return GML_OK;
}

static void unmap_arena(gml_heap *heap, gml_arena *arena)
{
    for (uint32_t slot = 0; slot < arena->slot_end; slot++)
        if (arena->slots[slot] != GML_NO_CHUNK)
            gml_giveback_mapping(heap, gml_slot_address(heap, arena, slot), heap->dev->chunk_bytes);
    gml_giveback_range(heap, arena->base, arena->bytes);
    gml_pages_unmap(arena->pages, arena->pages_bytes);
}

/* A checking device is told that the live blocks end here. */
static void note_end_of_blocks(const gml_heap *heap)
{
    if (heap->dev->ops->note == NULL)
        return;
    for (size_t i = 0; i < heap->blocks.capacity; i++) {
        const gml_span *block = heap->blocks.entries[i].value;
        if (heap->blocks.entries[i].key != 0)
            heap->dev->ops->note(heap->dev, GML_NOTE_FREE, block->begin, block->end - block->begin, GML_STREAM_NONE);
    }
}

void gml_heap_destroy(gml_heap *heap)
{
    note_end_of_blocks(heap);
    for (gml_arena *arena = heap->fine; arena != NULL; arena = arena->next)
        unmap_arena(heap, arena);
    for (gml_arena *arena = heap->coarse; arena != NULL; arena = arena->next)
        unmap_arena(heap, arena);
    if (heap->spare_va != 0)
        gml_giveback_range(heap, heap->spare_va, heap->spare_va_bytes);
    for (uint32_t id = 0; id < heap->chunk_end; id++)
        if (gml_bitmap_get(heap->exist_bits, id))
            gml_giveback_handle(heap, heap->chunks[id].handle);
    gml_streams_destroy(heap);
    gml_map_destroy(&heap->blocks);
    gml_pool_destroy(&heap->spans);
    gml_pool_destroy(&heap->mappings);
    gml_pool_destroy(&heap->arenas);
    free_tables(heap);
    gml_pages_unmap(heap, sizeof *heap);
}

/* ---- allocation ---- */

static gml_request make_request(gml_heap *heap, size_t bytes, gml_stream stream, gml_api api)
{
    gml_request request = {.requested_bytes = bytes, .alignment = GML_BLOCK_BYTES};
    uint64_t unit = GML_BLOCK_BYTES;
    if (api == GML_API_PLAIN && bytes >= heap->dev->chunk_bytes)
        unit = request.alignment = heap->dev->chunk_bytes;
    else if (api == GML_API_PLAIN && bytes >= GML_PLAIN_ALIGN)
        request.alignment = GML_PLAIN_ALIGN;
    request.coarse = bytes >= GML_COARSE_BYTES;
    if (request.coarse)
        unit = heap->dev->chunk_bytes;
    request.bytes = gml_align_up(bytes, unit);
    if (request.bytes >= GML_ALIGNED_BYTES && request.bytes % heap->dev->chunk_bytes == 0)
        request.alignment = heap->dev->chunk_bytes; /* elsewhere it would keep one chunk more from being free */
    request.requester = gml_streams_index(heap, stream, GML_INDEX_NONE);
    if (request.requester == GML_INDEX_DEVICE)
        request.requester = GML_INDEX_NONE; /* the stream table is full: treat it as unnamed */
    return request;
}

static void count_size(gml_heap *heap, size_t bytes)
{
    if (heap->options.size_counts != NULL)
        heap->options.size_counts[bytes <= 1 ? 0 : gml_min(gml_log2(bytes - 1) + 1, 47)]++;
}

gml_status gml_heap_alloc(gml_heap *heap, size_t bytes, gml_stream stream, gml_api api, uintptr_t *out_address)
{
    if (bytes == 0)
        return GML_INVALID;
    gml_lock_acquire(&heap->lock);
    gml_stats_begin(heap);
    count_size(heap, bytes);
    gml_span *block = NULL;
    gml_status status = GML_OUT_OF_MEMORY;
    gml_request request = {0};
    if (bytes <= REQUEST_MAX) {
        request = make_request(heap, bytes, stream, api);
        status = gml_place(heap, &request, &block);
    }
    gml_unlock_changed(heap);
    if (bytes <= REQUEST_MAX && (status == GML_NOT_FOUND || status == GML_NOT_READY)) {
        gml_lock_acquire(&heap->grow_lock);
        status = gml_grow(heap, &request, &block);
        gml_lock_release(&heap->grow_lock);
    }
    if (status == GML_OUT_OF_MEMORY) {
        gml_lock_acquire(&heap->lock);
        gml_stats_begin(heap);
        heap->stats->ooms++;
        heap->stats->place_fail++;
        gml_unlock_changed(heap);
    }
    if (status != GML_OK)
        return status;
    /* The block is this caller's alone from here on: no lock is needed to read it. */
    if (heap->dev->ops->note != NULL)
        heap->dev->ops->note(heap->dev, GML_NOTE_REUSE, block->begin, block->end - block->begin, stream);
    *out_address = block->begin;
    return GML_OK;
}

/* ---- free, trim, news from the program ---- */

gml_status gml_heap_free(gml_heap *heap, uintptr_t address, gml_stream stream)
{
    gml_lock_acquire(&heap->lock);
    gml_span *block = gml_map_get(&heap->blocks, address);
    if (block == NULL) {
        gml_lock_release(&heap->lock);
        return GML_NOT_FOUND;
    }
    gml_stats_begin(heap);
    uint32_t index = gml_streams_index(heap, stream, GML_INDEX_DEVICE);
    uint64_t sequence = ++heap->sequence;
    heap->streams[index].last_free = sequence;
    if (index != block->u.block.stream)
        gml_streams_mark(heap, index);
    if (heap->dev->ops->note != NULL)
        heap->dev->ops->note(heap->dev, GML_NOTE_FREE, block->begin, block->end - block->begin, stream);
    gml_status status = gml_unplace(heap, block, gml_tag_make(index, sequence));
    gml_unlock_changed(heap);
    /* Without bookkeeping memory the block stays live: a leak, but the program's free succeeds. */
    return status == GML_OUT_OF_METADATA ? GML_OK : status;
}

gml_status gml_heap_trim(gml_heap *heap, uint64_t keep_bytes, uint64_t *out_released_bytes)
{
    uint64_t released = 0;
    gml_status status = GML_OK;
    gml_lock_acquire(&heap->grow_lock);
    gml_lock_acquire(&heap->lock);
    bool capturing = heap->captures != 0;
    bool pending = gml_streams_pending(heap);
    gml_lock_release(&heap->lock);
    if (!capturing && pending)
        status = gml_trim_drain(heap);
    if (!capturing && status == GML_OK)
        status = gml_trim_chunks(heap, keep_bytes, &released);
    gml_lock_release(&heap->grow_lock);
    if (out_released_bytes != NULL)
        *out_released_bytes = released;
    return status;
}

gml_status gml_heap_release_idle(gml_heap *heap, uint64_t *out_released_bytes)
{
    gml_status status = GML_OK;
    *out_released_bytes = 0;
    gml_lock_acquire(&heap->grow_lock);
    gml_lock_acquire(&heap->lock);
    uint64_t idle_bytes = heap->captures != 0 ? 0 : heap->free_low * heap->dev->chunk_bytes;
    uint64_t reserved_bytes = heap->stats->reserved_bytes;
    heap->free_low = heap->free_chunks;
    if (idle_bytes != 0)
        gml_streams_poll_all(heap);
    gml_lock_release(&heap->lock);
    if (idle_bytes != 0)
        status = gml_trim_chunks(heap, reserved_bytes - idle_bytes, out_released_bytes);
    gml_lock_release(&heap->grow_lock);
    return status;
}

void gml_heap_stream_destroyed(gml_heap *heap, gml_stream stream)
{
    gml_lock_acquire(&heap->lock);
    gml_streams_retire(heap, stream);
    gml_lock_release(&heap->lock);
}

void gml_heap_set_cross_stream(gml_heap *heap, bool allowed)
{
    gml_lock_acquire(&heap->lock);
    heap->options.no_cross_stream = !allowed;
    gml_lock_release(&heap->lock);
}

void gml_heap_set_captures(gml_heap *heap, unsigned count)
{
    gml_lock_acquire(&heap->lock);
    heap->captures = count;
    gml_lock_release(&heap->lock);
}
