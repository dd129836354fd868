/* SPDX-License-Identifier: Apache-2.0 */
/* Growing: requests that no free range serves. Extends, stitches or grows by one plan (core/plan.h), and
 * climbs the ladder when memory runs out: finished events, waiting for the device, idle chunks. */
#ifndef GML_CORE_GROW_H
#define GML_CORE_GROW_H

#include "core/types.h"

/* Pre: heap->grow_lock is held, heap->lock is not. `*out_block` is NULL before; set on success.
 * Errors: OUT_OF_MEMORY, OUT_OF_METADATA, OUT_OF_ADDRESSES, and whatever the device answered. */
GML_CHECKED gml_status gml_grow(gml_heap *heap, const gml_request *request, gml_span **out_block);

#endif
