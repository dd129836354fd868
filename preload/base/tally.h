/* SPDX-License-Identifier: Apache-2.0 */
/* Tally: how many live blocks there are of each size, and which sizes hold most.
 *
 * Not thread-safe. Adding is O(1) expected; `top` looks at every size. What cannot be counted for
 * want of memory is left out: this is for statements about failures, not for bookkeeping. */
#ifndef GML_BASE_TALLY_H
#define GML_BASE_TALLY_H

#include <stddef.h>
#include <stdint.h>

typedef struct gml_tally_entry {
    uint64_t bytes; /* 0: unused */
    int64_t count;
} gml_tally_entry;

typedef struct gml_tally {
    gml_tally_entry *entries;
    size_t capacity; /* a power of two, or 0 */
    size_t used;     /* entries in use, those with a count of 0 included */
} gml_tally;

/* Adds `change` blocks of `bytes` (> 0). */
void gml_tally_add(gml_tally *tally, uint64_t bytes, int64_t change);

/* The sizes whose blocks hold most, the largest sum first; returns how many there are of `most`. */
size_t gml_tally_top(const gml_tally *tally, gml_tally_entry *out_entries, size_t most);

void gml_tally_destroy(gml_tally *tally);

#endif
