/* SPDX-License-Identifier: Apache-2.0 */
/* A sorted table of reserved ranges, each with a bitmap of its mapped chunks. */
#include "device/cuda_ranges.h"

#include "base/bitmap.h"
#include "base/pages.h"

#include <string.h>

static size_t chunk_count(const gml_cuda_ranges *ranges, size_t bytes)
{
    return bytes / ranges->chunk_bytes;
}

static size_t bitmap_bytes(const gml_cuda_ranges *ranges, size_t bytes)
{
    return GML_BITMAP_WORDS(chunk_count(ranges, bytes)) * sizeof(uint64_t);
}

/* Index of the first range that begins above `va`. */
static size_t above(const gml_cuda_ranges *ranges, uintptr_t va)
{
    size_t low = 0;
    size_t high = ranges->count;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (ranges->items[middle].va <= va)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static bool grow(gml_cuda_ranges *ranges)
{
    if (ranges->count < ranges->capacity)
        return true;
    size_t capacity = ranges->capacity == 0 ? 256 : ranges->capacity * 2;
    gml_cuda_range *items = gml_pages_map(capacity * sizeof *items);
    if (items == NULL)
        return false;
    if (ranges->count > 0)
        memcpy(items, ranges->items, ranges->count * sizeof *items);
    gml_pages_unmap(ranges->items, ranges->capacity * sizeof *items);
    ranges->items = items;
    ranges->capacity = capacity;
    return true;
}

void gml_cuda_ranges_add(gml_cuda_ranges *ranges, uintptr_t va, size_t bytes)
{
    uint64_t *mapped = gml_pages_map(bitmap_bytes(ranges, bytes));
    if (mapped == NULL || !grow(ranges)) {
        gml_pages_unmap(mapped, bitmap_bytes(ranges, bytes));
        return;
    }
    size_t at = above(ranges, va);
    memmove(&ranges->items[at + 1], &ranges->items[at], (ranges->count - at) * sizeof ranges->items[0]);
    ranges->items[at] = (gml_cuda_range){va, bytes, mapped};
    ranges->count++;
}

void gml_cuda_ranges_remove(gml_cuda_ranges *ranges, uintptr_t va)
{
    size_t at = above(ranges, va);
    if (at == 0 || ranges->items[at - 1].va != va)
        return;
    gml_pages_unmap(ranges->items[at - 1].mapped, bitmap_bytes(ranges, ranges->items[at - 1].bytes));
    memmove(&ranges->items[at - 1], &ranges->items[at], (ranges->count - at) * sizeof ranges->items[0]);
    ranges->count--;
}

void gml_cuda_ranges_mark(gml_cuda_ranges *ranges, uintptr_t va, size_t bytes, bool mapped)
{
    size_t at = above(ranges, va);
    if (at == 0 || va - ranges->items[at - 1].va + bytes > ranges->items[at - 1].bytes)
        return;
    gml_cuda_range *range = &ranges->items[at - 1];
    size_t first = (va - range->va) / ranges->chunk_bytes;
    for (size_t i = 0; i < chunk_count(ranges, bytes); i++) {
        if (mapped)
            gml_bitmap_set(range->mapped, first + i);
        else
            gml_bitmap_clear(range->mapped, first + i);
    }
}

void gml_cuda_ranges_visit(const gml_cuda_ranges *ranges, void (*visit)(void *user, uintptr_t va, size_t bytes),
                           void *user)
{
    for (size_t i = 0; i < ranges->count; i++) {
        const gml_cuda_range *range = &ranges->items[i];
        size_t bits = chunk_count(ranges, range->bytes);
        size_t begin = gml_bitmap_next(range->mapped, bits, 0);
        while (begin != GML_BITMAP_NONE) {
            size_t end = gml_bitmap_next_clear(range->mapped, bits, begin);
            visit(user, range->va + begin * ranges->chunk_bytes, (end - begin) * ranges->chunk_bytes);
            begin = gml_bitmap_next(range->mapped, bits, end);
        }
    }
}

void gml_cuda_ranges_clear(gml_cuda_ranges *ranges)
{
    for (size_t i = 0; i < ranges->count; i++)
        gml_pages_unmap(ranges->items[i].mapped, bitmap_bytes(ranges, ranges->items[i].bytes));
    gml_pages_unmap(ranges->items, ranges->capacity * sizeof ranges->items[0]);
    *ranges = (gml_cuda_ranges){.chunk_bytes = ranges->chunk_bytes};
}
