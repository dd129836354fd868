/* SPDX-License-Identifier: Apache-2.0 */
/* NCCL: reductions of small data on the host, for every type of NCCL but the 8-bit floats. */
#include "sim/libs/nccl.h"

#include <string.h>

/* Bytes of an element of ncclDataType_t: int8, uint8, int32, uint32, int64, uint64, half, float, double,
 * bfloat16, and the 8-bit floats. */
size_t sim_nccl_width(int type)
{
    static const unsigned char bytes[] = {1, 1, 4, 4, 8, 8, 2, 4, 8, 2, 1, 1};
    return type >= 0 && (size_t)type < sizeof bytes ? bytes[type] : 0;
}

static float from_half(uint16_t h)
{
    uint32_t sign = (uint32_t)(h >> 15) << 31, exponent = h >> 10 & 31, fraction = h & 1023, bits;
    if (exponent == 0) {
        float value = (float)fraction / 16777216.0f; /* 2^-24 each */
        return sign ? -value : value;
    }
    bits = sign | (exponent == 31 ? 255u : exponent + 112) << 23 | fraction << 13;
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

/* Rounds towards zero below the smallest normal number and to nearest above it. */
static uint16_t to_half(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    uint32_t sign = bits >> 16 & 0x8000, exponent = bits >> 23 & 255, fraction = bits & 0x7fffff;
    if (exponent == 255) return (uint16_t)(sign | 0x7c00 | (fraction ? 0x200 : 0));
    if (exponent < 113) {
        uint32_t shift = 126 - exponent;
        return (uint16_t)(sign | (shift > 24 ? 0 : (fraction | 0x800000) >> shift));
    }
    uint32_t rounded = ((exponent - 112) << 10 | fraction >> 13) + (fraction >> 12 & 1);
    return (uint16_t)(sign | (rounded > 0x7c00 ? 0x7c00 : rounded));
}

static float from_bfloat(uint16_t b)
{
    uint32_t bits = (uint32_t)b << 16;
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static uint16_t to_bfloat(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    if ((bits & 0x7fffffff) > 0x7f800000) return 0x7fc0;
    return (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

#define COMBINE(a, b, op)                                              \
    ((op) == NCCL_PROD  ? (a) * (b)                                    \
     : (op) == NCCL_MAX ? ((b) > (a) ? (b) : (a))                      \
     : (op) == NCCL_MIN ? ((b) < (a) ? (b) : (a))                      \
                        : (a) + (b)) /* sum, average, and sums scaled before: the scale is passed over */

#define REDUCE(stored, wide, load, store)                                                     \
    for (size_t i = 0; i < count; i++) {                                                      \
        wide sum = 0;                                                                         \
        for (int r = 0; r < ranks; r++) {                                                     \
            stored raw;                                                                       \
            memcpy(&raw, parts + (size_t)r * stride + i * sizeof raw, sizeof raw);            \
            wide value = (wide)load(raw);                                                     \
            sum = r ? (wide)COMBINE(sum, value, op) : value;                                  \
        }                                                                                     \
        if (op == NCCL_AVG) sum = (wide)(sum / (wide)ranks);                                  \
        stored out = (stored)store(sum);                                                      \
        memcpy((char *)into + i * sizeof out, &out, sizeof out);                              \
    }

void sim_nccl_reduce(void *into, const char *parts, size_t stride, int ranks, size_t count, int type, int op)
{
    switch (type) {
    case 0: REDUCE(int8_t, int64_t, , ) break;
    case 1: REDUCE(uint8_t, uint64_t, , ) break;
    case 2: REDUCE(int32_t, int64_t, , ) break;
    case 3: REDUCE(uint32_t, uint64_t, , ) break;
    case 4: REDUCE(int64_t, int64_t, , ) break;
    case 5: REDUCE(uint64_t, uint64_t, , ) break;
    case 6: REDUCE(uint16_t, float, from_half, to_half) break;
    case 7: REDUCE(float, float, , ) break;
    case 8: REDUCE(double, double, , ) break;
    case 9: REDUCE(uint16_t, float, from_bfloat, to_bfloat) break;
    default: memcpy(into, parts, count); /* 8-bit floats: the first rank's */
    }
}
