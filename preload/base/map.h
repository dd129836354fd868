/* SPDX-License-Identifier: Apache-2.0 */
/* Map: 64-bit key (not 0) to pointer, open addressing with linear probing.
 *
 * Not thread-safe. Lookups and changes are O(1) expected; the table doubles at half load, so there
 * is no tombstone and no slow decay. */
#ifndef GML_BASE_MAP_H
#define GML_BASE_MAP_H

#include "base/status.h"

#include <stddef.h>
#include <stdint.h>

typedef struct gml_map_entry {
    uint64_t key;
    void *value;
} gml_map_entry;

typedef struct gml_map {
    gml_map_entry *entries;
    size_t capacity; /* a power of two, or 0 */
    size_t count;
} gml_map;

void gml_map_destroy(gml_map *map);

/* Makes the next `put` succeed. Errors: OUT_OF_METADATA. */
GML_CHECKED gml_status gml_map_ensure(gml_map *map);

/* Adds a key that is not in the map yet. Pre: a successful `ensure` since the last `put`. */
void gml_map_put(gml_map *map, uint64_t key, void *value);
void *gml_map_get(const gml_map *map, uint64_t key); /* NULL when absent */
void *gml_map_remove(gml_map *map, uint64_t key);    /* the value, NULL when absent */

#endif
