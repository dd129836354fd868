/* SPDX-License-Identifier: Apache-2.0 */
/* Gap index: the FREE spans of all fine arenas of a heap, by size.
 *
 * Two-level segregated fit (Masmano et al., TLSF, ECRTS 2004): a power of two is a row of 64 bins,
 * two bitmaps find the next non-empty bin. Insert and remove are O(1); a search looks at no more
 * than GML_GAPS_TRIES spans a bin and GML_GAPS_BINS bins, so its cost does not grow with the number of blocks. */
#ifndef GML_CORE_GAPS_H
#define GML_CORE_GAPS_H

#include "core/types.h"

#define GML_GAPS_TRIES 6
#define GML_GAPS_BINS 12

void gml_gaps_insert(gml_heap *heap, gml_span *span);
void gml_gaps_remove(gml_heap *heap, gml_span *span);

/* What a search found. */
typedef struct gml_gap_choice {
    gml_span *settled; /* a gap usable at once; NULL if none was found */
    gml_span *pending; /* a gap that fits once its tags are waited for; NULL if none was seen */
} gml_gap_choice;

/* A small gap that holds `bytes` (a multiple of GML_BLOCK_BYTES) at a multiple of `alignment`. */
gml_gap_choice gml_gaps_find(gml_heap *heap, uint64_t bytes, uint64_t alignment, uint32_t requester);

/* Bytes in gaps that `requester` could not use at once. O(gaps), O(1) with a single stream. */
uint64_t gml_gaps_held(const gml_heap *heap, uint32_t requester);

/* Size of the largest gap; 0 if there is none. */
uint64_t gml_gaps_largest(const gml_heap *heap);

#endif
