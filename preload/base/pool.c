/* SPDX-License-Identifier: Apache-2.0 */
/* Pool: objects of one size from whole pages, with a free list. */
#include "base/pool.h"

#include "base/pages.h"

#include <string.h>

#define SLAB_BYTES ((size_t)256 << 10)

typedef struct link {
    struct link *next;
} link;

void gml_pool_init(gml_pool *pool, size_t object_bytes)
{
    memset(pool, 0, sizeof *pool);
    pool->object_bytes = object_bytes;
}

void gml_pool_destroy(gml_pool *pool)
{
    link *slab = pool->slabs;
    while (slab != NULL) {
        link *next = slab->next;
        gml_pages_unmap(slab, SLAB_BYTES);
        slab = next;
    }
    gml_pool_init(pool, pool->object_bytes);
}

static gml_status add_slab(gml_pool *pool)
{
    char *slab = gml_pages_map(SLAB_BYTES);
    if (slab == NULL)
        return GML_OUT_OF_METADATA;
    ((link *)(void *)slab)->next = pool->slabs;
    pool->slabs = slab;
    pool->bytes += SLAB_BYTES;
    /* The first 64 bytes hold the slab's link, so that objects stay on cache line boundaries. */
    size_t count = (SLAB_BYTES - 64) / pool->object_bytes;
    for (size_t i = count; i-- > 0;) {
        link *object = (link *)(void *)(slab + 64 + i * pool->object_bytes);
        object->next = pool->free;
        pool->free = object;
    }
    pool->free_count += count;
    return GML_OK;
}

gml_status gml_pool_ensure(gml_pool *pool, size_t count)
{
    while (pool->free_count < count) {
        gml_status status = add_slab(pool);
        if (status != GML_OK)
            return status;
    }
    return GML_OK;
}

void *gml_pool_take(gml_pool *pool)
{
    if (gml_pool_ensure(pool, 1) != GML_OK)
        return NULL;
    link *object = pool->free;
    pool->free = object->next;
    pool->free_count--;
    memset(object, 0, pool->object_bytes);
    return object;
}

void gml_pool_give(gml_pool *pool, void *object)
{
    link *freed = object;
    freed->next = pool->free;
    pool->free = freed;
    pool->free_count++;
}
