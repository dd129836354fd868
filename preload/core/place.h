/* SPDX-License-Identifier: Apache-2.0 */
/* Placing: requests that a free range serves at once, with no driver memory call.
 *
 * All functions: heap->lock is held. */
#ifndef GML_CORE_PLACE_H
#define GML_CORE_PLACE_H

#include "core/types.h"

/* Errors: NOT_FOUND when no free range fits, NOT_READY when one fits but its earlier work cannot be
 * ordered without the host, OUT_OF_METADATA. */
GML_CHECKED gml_status gml_place(gml_heap *heap, const gml_request *request, gml_span **out_block);

/* The same in a fine arena, also for requests that belong in a coarse one: better than new memory. */
GML_CHECKED gml_status gml_place_fine(gml_heap *heap, const gml_request *request, gml_span **out_block);

/* Takes back a live block whose earlier work is `tag`. Errors: OUT_OF_METADATA, nothing changed. */
GML_CHECKED gml_status gml_unplace(gml_heap *heap, gml_span *block, gml_tag tag);

#endif
