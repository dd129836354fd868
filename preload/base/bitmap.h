/* SPDX-License-Identifier: Apache-2.0 */
/* Bitmaps over 64-bit words: single bits, ranges, and searches in both directions. */
#ifndef GML_BASE_BITMAP_H
#define GML_BASE_BITMAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define GML_BITMAP_WORDS(bits) (((bits) + 63) / 64)
#define GML_BITMAP_NONE SIZE_MAX

static inline bool gml_bitmap_get(const uint64_t *words, size_t bit)
{
    return (words[bit / 64] >> (bit % 64)) & 1;
}

static inline void gml_bitmap_set(uint64_t *words, size_t bit)
{
    words[bit / 64] |= (uint64_t)1 << (bit % 64);
}

static inline void gml_bitmap_clear(uint64_t *words, size_t bit)
{
    words[bit / 64] &= ~((uint64_t)1 << (bit % 64));
}

/* First bit at or after `from` (below `bits`) that is set in `words`; GML_BITMAP_NONE if none. */
static inline size_t gml_bitmap_next(const uint64_t *words, size_t bits, size_t from)
{
    if (from >= bits)
        return GML_BITMAP_NONE;
    size_t word = from / 64;
    uint64_t value = words[word] & (~(uint64_t)0 << (from % 64));
    while (value == 0) {
        if (++word >= GML_BITMAP_WORDS(bits))
            return GML_BITMAP_NONE;
        value = words[word];
    }
    size_t bit = word * 64 + (size_t)__builtin_ctzll(value);
    return bit < bits ? bit : GML_BITMAP_NONE;
}

/* First bit at or after `from` that is clear; `bits` if all are set. */
static inline size_t gml_bitmap_next_clear(const uint64_t *words, size_t bits, size_t from)
{
    if (from >= bits)
        return bits;
    size_t word = from / 64;
    uint64_t value = ~words[word] & (~(uint64_t)0 << (from % 64));
    while (value == 0) {
        if (++word >= GML_BITMAP_WORDS(bits))
            return bits;
        value = ~words[word];
    }
    size_t bit = word * 64 + (size_t)__builtin_ctzll(value);
    return bit < bits ? bit : bits;
}

/* The first run of set bits at or after `from`, and its length; GML_BITMAP_NONE and 0 if there is none. */
static inline size_t gml_bitmap_next_run(const uint64_t *words, size_t bits, size_t from, size_t *out_count)
{
    size_t first = gml_bitmap_next(words, bits, from);
    *out_count = first == GML_BITMAP_NONE ? 0 : gml_bitmap_next_clear(words, bits, first) - first;
    return first;
}

/* Last set bit at or before `from`; GML_BITMAP_NONE if none. */
static inline size_t gml_bitmap_previous(const uint64_t *words, size_t from)
{
    size_t word = from / 64;
    uint64_t value = words[word] & (~(uint64_t)0 >> (63 - from % 64));
    while (value == 0) {
        if (word-- == 0)
            return GML_BITMAP_NONE;
        value = words[word];
    }
    return word * 64 + 63 - (size_t)__builtin_clzll(value);
}

#endif
