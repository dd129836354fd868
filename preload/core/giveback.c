/* SPDX-License-Identifier: Apache-2.0 */
/* Giving things back to the device, with one retry. */
#include "core/giveback.h"

void gml_giveback_mapping(gml_heap *heap, uint64_t begin, uint64_t bytes)
{
    for (unsigned tries = 0; tries < 2; tries++)
        if (heap->dev->ops->unmap(heap->dev, begin, bytes) == GML_OK)
            return;
}

void gml_giveback_range(gml_heap *heap, uint64_t begin, uint64_t bytes)
{
    for (unsigned tries = 0; tries < 2; tries++)
        if (heap->dev->ops->free_va(heap->dev, begin, bytes) == GML_OK)
            return;
}

void gml_giveback_handle(gml_heap *heap, gml_handle handle)
{
    for (unsigned tries = 0; tries < 2; tries++)
        if (heap->dev->ops->release(heap->dev, handle) == GML_OK)
            return;
}
