/* SPDX-License-Identifier: Apache-2.0 */
/* Chunks: live counts, ownership, and the news to aliases in fine arenas.
 *
 * Only fine arenas are told: they keep their usable ranges in an index. Coarse arenas read the free
 * bitmap when they are searched. Neighbouring slots of one arena are told in one piece. */
#include "core/chunks.h"

#include "base/align.h"
#include "base/bitmap.h"
#include "core/fine.h"
#include "core/streams.h"

#include <string.h>

#define OPEN_PIECES 8

/* Slots of other fine arenas that are about to be told, collected into contiguous pieces. */
typedef struct gml_news {
    gml_heap *heap;
    const gml_tags *tags; /* NULL: the chunks are taken */
    struct {
        gml_arena *arena;
        uint32_t slot, count;
    } piece[OPEN_PIECES];
    unsigned count, next;
} gml_news;

static void tell(gml_news *news, unsigned i)
{
    if (news->tags == NULL)
        gml_fine_take(news->heap, news->piece[i].arena, news->piece[i].slot, news->piece[i].count);
    else
        gml_fine_give(news->heap, news->piece[i].arena, news->piece[i].slot, news->piece[i].count, news->tags);
}

static void add_slot(gml_news *news, gml_arena *arena, uint32_t slot)
{
    for (unsigned i = 0; i < news->count; i++) {
        if (news->piece[i].arena == arena && news->piece[i].slot + news->piece[i].count == slot) {
            news->piece[i].count++;
            return;
        }
    }
    unsigned i = news->count;
    if (i < OPEN_PIECES) {
        news->count++;
    } else {
        i = news->next;
        news->next = (news->next + 1) % OPEN_PIECES;
        tell(news, i);
    }
    news->piece[i].arena = arena;
    news->piece[i].slot = slot;
    news->piece[i].count = 1;
}

static void add_aliases(gml_news *news, const gml_chunk *chunk, const gml_arena *self)
{
    if (chunk->fine_mappings == 0 || (chunk->fine_mappings == 1 && self->fine))
        return;
    for (const gml_mapping *mapping = chunk->mappings; mapping != NULL && mapping->arena->fine; mapping = mapping->next)
        if (mapping->arena != self)
            add_slot(news, mapping->arena, mapping->slot);
}

static void tell_all(gml_news *news)
{
    for (unsigned i = 0; i < news->count; i++)
        tell(news, i);
}

size_t gml_chunks_span_bound(const gml_heap *heap, uint32_t count)
{
    return 8 + 2 * (size_t)count * heap->fine_count;
}

void gml_chunks_enter(gml_heap *heap, gml_arena *arena, uint32_t slot, uint32_t count)
{
    gml_news news = {.heap = heap};
    for (uint32_t i = slot; i < slot + count; i++) {
        uint32_t id = arena->slots[i];
        gml_chunk *chunk = &heap->chunks[id];
        if (chunk->live++ != 0)
            continue;
        heap->stitched_chunks -= gml_chunk_is_stitched(chunk);
        chunk->owner = arena;
        heap->stitched_chunks += gml_chunk_is_stitched(chunk);
        gml_bitmap_clear(heap->free_bits, id);
        gml_count_free(heap, -1);
        add_aliases(&news, chunk, arena);
    }
    tell_all(&news);
}

void gml_chunks_leave(gml_heap *heap, gml_arena *arena, uint32_t slot, uint32_t count, const gml_tags *tags)
{
    gml_news news = {.heap = heap, .tags = tags};
    gml_tag tag = gml_tags_collapse(heap, tags);
    for (uint32_t i = slot; i < slot + count; i++) {
        uint32_t id = arena->slots[i];
        gml_chunk *chunk = &heap->chunks[id];
        if (--chunk->live != 0)
            continue;
        heap->stitched_chunks -= gml_chunk_is_stitched(chunk);
        chunk->owner = NULL;
        heap->stitched_chunks += gml_chunk_is_stitched(chunk);
        heap->chunk_tags[id] = tag;
        gml_bitmap_set(heap->free_bits, id);
        gml_count_free(heap, 1);
        add_aliases(&news, chunk, arena);
    }
    tell_all(&news);
}

static void count_mapping(gml_heap *heap, gml_chunk *chunk, const gml_arena *arena, int change)
{
    heap->stitched_chunks -= gml_chunk_is_stitched(chunk);
    chunk->fine_mappings = (uint16_t)(chunk->fine_mappings + (arena->fine ? change : 0));
    chunk->stitched_mappings = (uint16_t)(chunk->stitched_mappings + (arena->stitched ? change : 0));
    heap->stitched_chunks += gml_chunk_is_stitched(chunk);
}

void gml_chunks_link(gml_heap *heap, gml_arena *arena, uint32_t slot, uint32_t chunk)
{
    gml_mapping *mapping = gml_pool_take(&heap->mappings);
    mapping->arena = arena;
    mapping->slot = slot;
    /* Mappings in fine arenas come first: only they are told when the chunk goes live or free. */
    gml_mapping **link = &heap->chunks[chunk].mappings;
    while (!arena->fine && *link != NULL && (*link)->arena->fine)
        link = &(*link)->next;
    mapping->next = *link;
    *link = mapping;
    count_mapping(heap, &heap->chunks[chunk], arena, 1);
    heap->mapping_count++;
    while (arena->slot_end <= slot)
        arena->slots[arena->slot_end++] = GML_NO_CHUNK;
    arena->slots[slot] = chunk;
    arena->mapped++;
    gml_bitmap_set(arena->members, chunk);
}

void gml_chunks_unlink(gml_heap *heap, gml_arena *arena, uint32_t slot)
{
    uint32_t id = arena->slots[slot];
    gml_chunk *chunk = &heap->chunks[id];
    gml_mapping **link = &chunk->mappings;
    while ((*link)->arena != arena || (*link)->slot != slot)
        link = &(*link)->next;
    gml_mapping *mapping = *link;
    *link = mapping->next;
    gml_pool_give(&heap->mappings, mapping);
    count_mapping(heap, chunk, arena, -1);
    heap->mapping_count--;
    arena->slots[slot] = GML_NO_CHUNK;
    arena->mapped--;
    gml_bitmap_clear(arena->members, id);
}

void gml_chunks_tags(gml_heap *heap, const gml_arena *arena, uint32_t slot, uint32_t count, gml_tags *out_tags)
{
    memset(out_tags, 0, sizeof *out_tags);
    gml_tag last = 0;
    for (uint32_t i = slot; i < slot + count; i++) {
        gml_tag tag = heap->chunk_tags[arena->slots[i]];
        if (tag == last)
            continue;
        gml_tags_add(heap, out_tags, tag);
        last = tag;
    }
}

uint32_t gml_chunks_new_id(gml_heap *heap, uint32_t near)
{
    size_t id = gml_bitmap_next_clear(heap->exist_bits, GML_MAX_CHUNKS, near);
    if (id >= GML_MAX_CHUNKS)
        id = gml_bitmap_next_clear(heap->exist_bits, GML_MAX_CHUNKS, 0);
    if (id >= GML_MAX_CHUNKS)
        return GML_NO_CHUNK;
    gml_bitmap_set(heap->exist_bits, id);
    if (heap->chunk_end <= id)
        heap->chunk_end = (uint32_t)id + 1;
    memset(&heap->chunks[id], 0, sizeof heap->chunks[id]);
    heap->chunk_tags[id] = 0;
    return (uint32_t)id;
}

void gml_chunks_drop_id(gml_heap *heap, uint32_t chunk)
{
    gml_bitmap_clear(heap->exist_bits, chunk);
    heap->chunks[chunk].handle = 0;
}
