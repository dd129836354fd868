/* SPDX-License-Identifier: Apache-2.0 */
/* Trimming: giving free chunks back to the driver, and dropping arenas that have gone cold.
 *
 * All functions: heap->grow_lock is held, heap->lock is not; they take it themselves and make the
 * device calls without it. */
#ifndef GML_CORE_TRIM_H
#define GML_CORE_TRIM_H

#include "core/types.h"

/* Waits for the device: what was freed before is over afterwards. Pre: no stream is being captured. */
GML_CHECKED gml_status gml_trim_drain(gml_heap *heap);

/* Releases free chunks whose work is over until at most `keep_bytes` are reserved. */
GML_CHECKED gml_status gml_trim_chunks(gml_heap *heap, uint64_t keep_bytes, uint64_t *out_released_bytes);

/* Drops the coldest arenas without a live block until `mappings` more mappings and `va_bytes` more
 * address space stay within the caps, or none is left. */
void gml_trim_arenas(gml_heap *heap, uint64_t mappings, uint64_t va_bytes);

#endif
