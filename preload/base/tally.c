/* SPDX-License-Identifier: Apache-2.0 */
/* An open-addressed table of sizes; sizes without a block are swept out when it fills up. */
#include "base/tally.h"

#include "base/pages.h"

#define FIRST_CAPACITY 1024u

static size_t place_of(uint64_t bytes, size_t capacity)
{
    /* Sizes are multiples of 512 and often of large powers of two: the high bits of a product mix them. */
    return (size_t)((bytes * UINT64_C(0x9E3779B97F4A7C15)) >> 32) & (capacity - 1);
}

static gml_tally_entry *entry_of(const gml_tally *tally, uint64_t bytes)
{
    size_t place = place_of(bytes, tally->capacity);
    while (tally->entries[place].bytes != 0 && tally->entries[place].bytes != bytes)
        place = (place + 1) & (tally->capacity - 1);
    return &tally->entries[place];
}

/* Makes room for one more size; false without memory, and the table is as it was. */
static int make_room(gml_tally *tally)
{
    if (tally->used < tally->capacity / 2)
        return 1;
    size_t alive = 0;
    for (size_t i = 0; i < tally->capacity; i++)
        alive += tally->entries[i].count != 0;
    gml_tally fresh = {.capacity = tally->capacity == 0 ? FIRST_CAPACITY : tally->capacity};
    while (alive >= fresh.capacity / 4)
        fresh.capacity *= 2;
    fresh.entries = gml_pages_map(fresh.capacity * sizeof *fresh.entries);
    if (fresh.entries == NULL)
        return 0;
    for (size_t i = 0; i < tally->capacity; i++)
        if (tally->entries[i].count != 0) {
            *entry_of(&fresh, tally->entries[i].bytes) = tally->entries[i];
            fresh.used++;
        }
    gml_tally_destroy(tally);
    *tally = fresh;
    return 1;
}

void gml_tally_add(gml_tally *tally, uint64_t bytes, int64_t change)
{
    if (bytes == 0 || !make_room(tally))
        return;
    gml_tally_entry *entry = entry_of(tally, bytes);
    tally->used += entry->bytes == 0;
    entry->bytes = bytes;
    entry->count += change;
}

static uint64_t sum_of(const gml_tally_entry *entry)
{
    return entry->bytes * (uint64_t)entry->count;
}

size_t gml_tally_top(const gml_tally *tally, gml_tally_entry *out_entries, size_t most)
{
    size_t count = 0;
    for (size_t i = 0; i < tally->capacity; i++) {
        const gml_tally_entry *entry = &tally->entries[i];
        size_t place = count;
        if (entry->count <= 0)
            continue;
        while (place > 0 && sum_of(&out_entries[place - 1]) < sum_of(entry))
            place--;
        if (place >= most)
            continue;
        count += count < most;
        for (size_t k = count - 1; k > place; k--)
            out_entries[k] = out_entries[k - 1];
        out_entries[place] = *entry;
    }
    return count;
}

void gml_tally_destroy(gml_tally *tally)
{
    if (tally->entries != NULL)
        gml_pages_unmap(tally->entries, tally->capacity * sizeof *tally->entries);
    *tally = (gml_tally){0};
}
