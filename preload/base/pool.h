/* SPDX-License-Identifier: Apache-2.0 */
/* Pool: objects of one size from whole pages, with a free list. Objects never move.
 *
 * Not thread-safe: the owner's lock covers it. Every operation is O(1). */
#ifndef GML_BASE_POOL_H
#define GML_BASE_POOL_H

#include "base/status.h"

#include <stddef.h>
#include <stdint.h>

typedef struct gml_pool {
    size_t object_bytes; /* a multiple of 8, at least 8 */
    void *free;          /* singly linked through the objects' first word */
    size_t free_count;
    void *slabs; /* singly linked through each slab's first word */
    uint64_t bytes;
} gml_pool;

void gml_pool_init(gml_pool *pool, size_t object_bytes);
void gml_pool_destroy(gml_pool *pool);

/* Makes the next `count` calls of `take` succeed. Errors: OUT_OF_METADATA. */
GML_CHECKED gml_status gml_pool_ensure(gml_pool *pool, size_t count);

/* A zeroed object, or NULL when no page is left (never after a sufficient `ensure`). */
void *gml_pool_take(gml_pool *pool);
void gml_pool_give(gml_pool *pool, void *object);

#endif
