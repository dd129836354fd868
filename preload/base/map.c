/* SPDX-License-Identifier: Apache-2.0 */
/* Map: 64-bit key to pointer, open addressing; removal shifts the following run back. */
#include "base/map.h"

#include "base/pages.h"

#include <string.h>

#define FIRST_CAPACITY ((size_t)4096)

/* Fibonacci hashing: addresses differ in their middle bits, the product spreads them to the top. */
static size_t home(const gml_map *map, uint64_t key)
{
    return (size_t)((key * 0x9E3779B97F4A7C15u) >> 20) & (map->capacity - 1);
}

void gml_map_destroy(gml_map *map)
{
    gml_pages_unmap(map->entries, map->capacity * sizeof *map->entries);
    memset(map, 0, sizeof *map);
}

static void insert(gml_map *map, uint64_t key, void *value)
{
    size_t i = home(map, key);
    while (map->entries[i].key != 0)
        i = (i + 1) & (map->capacity - 1);
    map->entries[i] = (gml_map_entry){key, value};
    map->count++;
}

gml_status gml_map_ensure(gml_map *map)
{
    if (2 * (map->count + 1) <= map->capacity)
        return GML_OK;
    gml_map larger = {.capacity = map->capacity != 0 ? 2 * map->capacity : FIRST_CAPACITY};
    larger.entries = gml_pages_map(larger.capacity * sizeof *larger.entries);
    if (larger.entries == NULL)
        return GML_OUT_OF_METADATA;
    for (size_t i = 0; i < map->capacity; i++)
        if (map->entries[i].key != 0)
            insert(&larger, map->entries[i].key, map->entries[i].value);
    gml_map_destroy(map);
    *map = larger;
    return GML_OK;
}

void gml_map_put(gml_map *map, uint64_t key, void *value)
{
    insert(map, key, value);
}

static size_t find(const gml_map *map, uint64_t key)
{
    if (map->capacity == 0)
        return SIZE_MAX;
    for (size_t i = home(map, key); map->entries[i].key != 0; i = (i + 1) & (map->capacity - 1))
        if (map->entries[i].key == key)
            return i;
    return SIZE_MAX;
}

void *gml_map_get(const gml_map *map, uint64_t key)
{
    size_t i = find(map, key);
    return i == SIZE_MAX ? NULL : map->entries[i].value;
}

void *gml_map_remove(gml_map *map, uint64_t key)
{
    size_t hole = find(map, key);
    if (hole == SIZE_MAX)
        return NULL;
    void *value = map->entries[hole].value;
    size_t mask = map->capacity - 1;
    for (size_t i = (hole + 1) & mask; map->entries[i].key != 0; i = (i + 1) & mask) {
        /* An entry may move back into the hole unless its home lies cyclically after the hole. */
        size_t distance = (i - home(map, map->entries[i].key)) & mask;
        if (distance >= ((i - hole) & mask)) {
            map->entries[hole] = map->entries[i];
            hole = i;
        }
    }
    map->entries[hole] = (gml_map_entry){0, NULL};
    map->count--;
    return value;
}
