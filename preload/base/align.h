/* SPDX-License-Identifier: Apache-2.0 */
/* Rounding and small arithmetic on sizes. Alignments are powers of two. */
#ifndef GML_BASE_ALIGN_H
#define GML_BASE_ALIGN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define GML_KIB ((uint64_t)1 << 10)
#define GML_MIB ((uint64_t)1 << 20)
#define GML_GIB ((uint64_t)1 << 30)

static inline uint64_t gml_align_down(uint64_t value, uint64_t alignment)
{
    return value & ~(alignment - 1);
}

/* The caller makes sure that value + alignment does not overflow. */
static inline uint64_t gml_align_up(uint64_t value, uint64_t alignment)
{
    return (value + alignment - 1) & ~(alignment - 1);
}

static inline uint64_t gml_min(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

static inline uint64_t gml_max(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

/* Index of the highest set bit; value must not be 0. */
static inline unsigned gml_log2(uint64_t value)
{
    return 63u - (unsigned)__builtin_clzll(value);
}

#endif
