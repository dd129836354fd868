/* SPDX-License-Identifier: Apache-2.0 */
/* Values of tensors' elements: from memory, to memory, and from type to type. */
#include "sim/driver/driver.h"

#include <math.h>
#include <string.h>

bool sim_type_floats(enum sim_type type)
{
    return type >= SIM_F16;
}

static float bits_as_float(uint32_t bits)
{
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static float from_half(uint16_t h)
{
    const float sign = h & 0x8000 ? -1.0f : 1.0f;
    const int exponent = h >> 10 & 31, fraction = h & 1023;
    if (exponent == 31) return fraction ? NAN : sign * INFINITY;
    return sign * (exponent ? ldexpf((float)(fraction + 1024), exponent - 25) : ldexpf((float)fraction, -24));
}

/* To the nearest, to even where two are as near. */
static uint16_t to_half(float value)
{
    const uint16_t sign = signbit(value) ? 0x8000 : 0;
    if (isnan(value)) return sign | 0x7e00;
    const float size = fabsf(value);
    if (size >= 65520.0f) return sign | 0x7c00;
    if (size < 0x1p-14f) return sign | (uint16_t)nearbyintf(size * 0x1p24f);
    int exponent;
    const float fraction = frexpf(size, &exponent); /* in [0.5, 1) */
    return sign | (uint16_t)(((unsigned)(exponent + 13) << 10) + (unsigned)nearbyintf(fraction * 2048.0f));
}

static uint16_t to_bfloat(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    if (isnan(value)) return 0x7fc0;
    return (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

#define INTEGERS(X) X(SIM_U8, uint8_t) X(SIM_I8, int8_t) X(SIM_I16, int16_t) X(SIM_I32, int32_t) X(SIM_I64, int64_t)

struct sim_value sim_value_load(enum sim_type type, const void *from)
{
    struct sim_value value = {0, 0};
    uint16_t half;
    float single;
    switch ((int)type) {
#define X(name, type)                        \
    case name: {                             \
        type raw;                            \
        memcpy(&raw, from, sizeof raw);      \
        value.i = (int64_t)raw;              \
        break;                               \
    }
        INTEGERS(X)
#undef X
    case SIM_BOOL: value.i = *(const unsigned char *)from != 0; break;
    case SIM_F16:
    case SIM_BF16:
        memcpy(&half, from, sizeof half);
        value.f = type == SIM_F16 ? from_half(half) : bits_as_float((uint32_t)half << 16);
        break;
    case SIM_F32:
        memcpy(&single, from, sizeof single);
        value.f = single;
        break;
    case SIM_F64: memcpy(&value.f, from, sizeof value.f); break;
    default: break;
    }
    return value;
}

void sim_value_store(enum sim_type type, struct sim_value value, void *to)
{
    uint16_t half;
    float single;
    switch ((int)type) {
#define X(name, type)                        \
    case name: {                             \
        type raw = (type)value.i;            \
        memcpy(to, &raw, sizeof raw);        \
        break;                               \
    }
        INTEGERS(X)
#undef X
    case SIM_BOOL: *(unsigned char *)to = value.i != 0; break;
    case SIM_F16:
    case SIM_BF16:
        half = type == SIM_F16 ? to_half((float)value.f) : to_bfloat((float)value.f);
        memcpy(to, &half, sizeof half);
        break;
    case SIM_F32:
        single = (float)value.f;
        memcpy(to, &single, sizeof single);
        break;
    case SIM_F64: memcpy(to, &value.f, sizeof value.f); break;
    default: break;
    }
}

/* What a device does with a number that an integer cannot hold is not defined; here it is the nearest one. */
static int64_t to_integer(double f)
{
    if (isnan(f)) return 0;
    return f >= 0x1p63 ? INT64_MAX : f <= -0x1p63 ? INT64_MIN : (int64_t)f;
}

struct sim_value sim_value_cast(enum sim_type from, enum sim_type to, struct sim_value value)
{
    if (sim_type_floats(from) == sim_type_floats(to) && to != SIM_BOOL && to == from) return value;
    char room[8];
    if (to == SIM_BOOL) value.i = sim_type_floats(from) ? value.f != 0 : value.i != 0;
    else if (sim_type_floats(from) && !sim_type_floats(to)) value.i = to_integer(value.f);
    else if (!sim_type_floats(from) && sim_type_floats(to)) value.f = (double)value.i;
    sim_value_store(to, value, room); /* rounds, and cuts off what has no room */
    return sim_value_load(to, room);
}
