/* SPDX-License-Identifier: Apache-2.0 */
/* Gap index: two-level segregated fit over the FREE spans of all fine arenas. */
#include "core/gaps.h"

#include "base/align.h"
#include "core/streams.h"

/* Sizes count in units of GML_BLOCK_BYTES. Row 0 holds 1..63 units, one bin each; row r > 0 holds
 * [64, 128) << (r - 1) in steps of 1 << (r - 1). */
static unsigned bin_of(uint64_t bytes)
{
    uint64_t units = bytes / GML_BLOCK_BYTES;
    if (units < GML_BIN_COLUMNS)
        return (unsigned)units;
    unsigned row = gml_log2(units) - GML_BIN_LINEAR_LOG2 + 1;
    unsigned column = (unsigned)(units >> (row - 1)) - GML_BIN_COLUMNS;
    return row * GML_BIN_COLUMNS + column;
}

void gml_gaps_insert(gml_heap *heap, gml_span *span)
{
    gml_gaps *gaps = &heap->gaps;
    unsigned bin = bin_of(span->end - span->begin);
    gml_span *head = gaps->bins[bin];
    span->bin = (uint16_t)bin;
    span->u.list.previous = NULL;
    span->u.list.next = head;
    if (head != NULL)
        head->u.list.previous = span;
    gaps->bins[bin] = span;
    gaps->rows |= (uint64_t)1 << (bin / GML_BIN_COLUMNS);
    gaps->columns[bin / GML_BIN_COLUMNS] |= (uint64_t)1 << (bin % GML_BIN_COLUMNS);
    gaps->count++;
}

void gml_gaps_remove(gml_heap *heap, gml_span *span)
{
    gml_gaps *gaps = &heap->gaps;
    unsigned bin = span->bin;
    if (span->u.list.next != NULL)
        span->u.list.next->u.list.previous = span->u.list.previous;
    if (span->u.list.previous != NULL)
        span->u.list.previous->u.list.next = span->u.list.next;
    else
        gaps->bins[bin] = span->u.list.next;
    if (gaps->bins[bin] == NULL) {
        unsigned row = bin / GML_BIN_COLUMNS;
        gaps->columns[row] &= ~((uint64_t)1 << (bin % GML_BIN_COLUMNS));
        if (gaps->columns[row] == 0)
            gaps->rows &= ~((uint64_t)1 << row);
    }
    gaps->count--;
}

/* The first non-empty bin at or after `bin`; GML_BIN_ROWS * GML_BIN_COLUMNS if there is none. */
static unsigned next_bin(const gml_gaps *gaps, unsigned bin)
{
    unsigned row = bin / GML_BIN_COLUMNS;
    if (row >= GML_BIN_ROWS)
        return GML_BIN_ROWS * GML_BIN_COLUMNS;
    uint64_t columns = gaps->columns[row] & (~(uint64_t)0 << (bin % GML_BIN_COLUMNS));
    if (columns == 0) {
        uint64_t rows = gaps->rows & (~(uint64_t)0 << row) & ~((uint64_t)1 << row);
        if (rows == 0)
            return GML_BIN_ROWS * GML_BIN_COLUMNS;
        row = (unsigned)__builtin_ctzll(rows);
        columns = gaps->columns[row];
    }
    return row * GML_BIN_COLUMNS + (unsigned)__builtin_ctzll(columns);
}

static bool fits(const gml_span *span, uint64_t bytes, uint64_t alignment)
{
    uint64_t begin = gml_align_up(span->begin, alignment);
    return begin < span->end && span->end - begin >= bytes;
}

static bool better(const gml_span *span, const gml_span *best)
{
    if (best == NULL)
        return true;
    uint64_t size = span->end - span->begin, best_size = best->end - best->begin;
    return size < best_size || (size == best_size && span->begin < best->begin);
}

/* Looks at the bins from the one of `floor_bytes` on. */
static void search(gml_heap *heap, uint64_t floor_bytes, uint64_t bytes, uint64_t alignment, uint32_t requester,
                   gml_gap_choice *out_choice)
{
    gml_gap_choice choice = *out_choice;
    const gml_gaps *gaps = &heap->gaps;
    unsigned bins_left = GML_GAPS_BINS;
    unsigned bin = next_bin(gaps, bin_of(floor_bytes));
    while (bin < GML_BIN_ROWS * GML_BIN_COLUMNS && bins_left-- > 0) {
        unsigned tries = GML_GAPS_TRIES;
        for (gml_span *span = gaps->bins[bin]; span != NULL && tries-- > 0; span = span->u.list.next) {
            if (!fits(span, bytes, alignment))
                continue;
            if (gml_tags_settled(heap, &span->tags, requester)) {
                if (better(span, choice.settled))
                    choice.settled = span;
            } else if (better(span, choice.pending)) {
                choice.pending = span;
            }
        }
        /* A larger bin cannot hold a better fit. */
        if (choice.settled != NULL)
            break;
        bin = next_bin(gaps, bin + 1);
    }
    *out_choice = choice;
}

gml_gap_choice gml_gaps_find(gml_heap *heap, uint64_t bytes, uint64_t alignment, uint32_t requester)
{
    gml_gap_choice choice = {NULL, NULL};
    search(heap, bytes, bytes, alignment, requester, &choice);
    /* A gap that is just large enough may lie across the alignment; one this large never does. */
    if (choice.settled == NULL && alignment > GML_BLOCK_BYTES)
        search(heap, bytes + alignment, bytes, alignment, requester, &choice);
    return choice;
}

uint64_t gml_gaps_largest(const gml_heap *heap)
{
    const gml_gaps *gaps = &heap->gaps;
    if (gaps->rows == 0)
        return 0;
    unsigned row = gml_log2(gaps->rows);
    unsigned column = gml_log2(gaps->columns[row]);
    uint64_t largest = 0;
    for (const gml_span *span = gaps->bins[row * GML_BIN_COLUMNS + column]; span != NULL; span = span->u.list.next)
        largest = gml_max(largest, span->end - span->begin);
    return largest;
}

uint64_t gml_gaps_held(const gml_heap *heap, uint32_t requester)
{
    uint64_t idle = heap->stats->reserved_bytes - gml_min(heap->stats->reserved_bytes, heap->given_bytes);
    const gml_stream_state *device = &heap->streams[GML_INDEX_DEVICE];
    if (heap->stream_end <= GML_INDEX_FIRST + 1 && device->last_free <= device->done)
        return 0;
    uint64_t held = 0;
    for (unsigned bin = next_bin(&heap->gaps, 0); bin < GML_BIN_ROWS * GML_BIN_COLUMNS;
         bin = next_bin(&heap->gaps, bin + 1))
        for (const gml_span *span = heap->gaps.bins[bin]; span != NULL; span = span->u.list.next)
            if (!gml_tags_settled(heap, &span->tags, requester))
                held += span->end - span->begin;
    /* A free chunk that several arenas map stands in a gap of each. */
    return gml_min(held, idle);
}
