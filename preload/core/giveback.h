/* SPDX-License-Identifier: Apache-2.0 */
/* Giving things back to the device: unmap, free a range, release a handle.
 *
 * These calls fail only when the driver is in trouble, and nobody can be told. One retry rides out a
 * passing fault; after that the range or handle is left alone: it has already left the bookkeeping,
 * so it is never handed out again, and memory that stays held harms nobody. */
#ifndef GML_CORE_GIVEBACK_H
#define GML_CORE_GIVEBACK_H

#include "core/types.h"

void gml_giveback_mapping(gml_heap *heap, uint64_t begin, uint64_t bytes);
void gml_giveback_range(gml_heap *heap, uint64_t begin, uint64_t bytes);
void gml_giveback_handle(gml_heap *heap, gml_handle handle);

#endif
