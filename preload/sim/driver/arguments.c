/* SPDX-License-Identifier: Apache-2.0 */
/* Parameters of the kernels that are understood (kernel.h), read while the launch is submitted.
 *
 * Structures are read only where they prove themselves: sizes divide by the magic numbers that PyTorch put beside
 * them and multiply to the number of elements, a reduction's configuration is that of the launch, pointers lead to
 * device memory, widths are those of their types. */
#include "sim/driver/driver.h"

#include <stdlib.h>
#include <string.h>

enum { TORCH_DIMS = 25 }; /* MAX_DIMS of OffsetCalculator.cuh */

/* OffsetCalculator<operands>: dims, sizes with the magic numbers of their division, strides in bytes. */
struct offsets {
    unsigned dims;
    uint32_t size[SIM_DIMS];
    uint32_t stride[SIM_DIMS][SIM_OPERANDS];
};

static uint32_t word(const char *at, size_t index)
{
    uint32_t value;
    memcpy(&value, at + 4 * index, sizeof value);
    return value;
}

static uintptr_t pointer(const char *at, size_t index)
{
    uintptr_t value;
    memcpy(&value, at + 8 * index, sizeof value);
    return value;
}

static size_t offsets_bytes(unsigned operands)
{
    return 4 + 12 * TORCH_DIMS + 4 * (size_t)TORCH_DIMS * operands;
}

static bool divides(uint32_t divisor, uint32_t magic, uint32_t shift)
{
    uint32_t s = 0;
    if (!divisor || divisor > INT32_MAX) return false;
    while (s < 32 && (uint32_t)1 << s < divisor) s++;
    const uint64_t one = 1;
    return shift == s && magic == (uint32_t)((one << 32) * ((one << s) - divisor) / divisor + 1);
}

/* False unless its sizes multiply to `count`. */
static bool read_offsets(const char *at, unsigned operands, uint64_t count, struct offsets *out)
{
    uint64_t product = 1;
    out->dims = word(at, 0);
    if (out->dims > SIM_DIMS) return false;
    for (unsigned d = 0; d < out->dims; d++) {
        const size_t entry = 1 + 3 * (size_t)d;
        if (!divides(word(at, entry), word(at, entry + 1), word(at, entry + 2))) return false;
        out->size[d] = word(at, entry);
        product *= out->size[d];
        for (unsigned i = 0; i < operands; i++)
            out->stride[d][i] = word(at, 1 + 3 * (size_t)TORCH_DIMS + (size_t)d * operands + i);
    }
    return product == count;
}

static bool on_device(uintptr_t va)
{
    return sim_range_find_locked(va) != NULL;
}

/* ---- functors ---- */

static bool is_half(enum sim_type type)
{
    return type == SIM_F16 || type == SIM_BF16;
}

/* How a functor lays its own numbers out: the order of a comparison first; then the scalar that it holds or fills
 * with; for an addition the scale behind that. Half precision is filled with as it is and added in single. */
struct state {
    enum sim_type type;
    size_t scalar, scale, bytes; /* places, and all of it */
};

static struct state state_of(const struct sim_plan *plan)
{
    const bool compares = plan->action == SIM_DO_EQUAL || plan->action == SIM_DO_COMPARE;
    const bool fills = plan->action == SIM_DO_FILL, adds = plan->action == SIM_DO_ADD;
    struct state state = {.type = fills ? plan->result : plan->type[0]};
    if (adds && is_half(state.type)) state.type = SIM_F32;
    const size_t width = sim_type_bytes(state.type);
    state.scalar = fills || adds ? 0 : ((compares ? 4 : 1) + width - 1) / width * width;
    state.scale = adds && plan->scalar ? width : 0;
    if (adds) state.bytes = state.scale + width;
    else state.bytes = fills ? width : plan->scalar ? state.scalar + width : compares ? 4 : 1;
    return state;
}

static void read_state(struct sim_computation *c, const char *functor)
{
    const struct state state = state_of(&c->plan);
    const bool fills = c->plan.action == SIM_DO_FILL, adds = c->plan.action == SIM_DO_ADD;
    if (c->plan.action == SIM_DO_EQUAL || c->plan.action == SIM_DO_COMPARE) c->order = word(functor, 0);
    if (fills || c->plan.scalar) c->scalar = sim_value_load(state.type, functor + state.scalar);
    if (adds) c->scale = sim_value_load(state.type, functor + state.scale);
    c->scalar_unknown = c->plan.scalar && is_half(state.type);
}

/* ---- element-wise loops ---- */

/* c10::ScalarType, whose numbers are those of saved tensors. */
static enum sim_type type_of(unsigned char number)
{
    static const unsigned char types[] = {SIM_U8,  SIM_I8,  SIM_I16,   SIM_I32,   SIM_I64,   SIM_F16,  SIM_F32,  SIM_F64,
                                          SIM_OTHER, SIM_OTHER, SIM_OTHER, SIM_BOOL, SIM_OTHER, SIM_OTHER, SIM_OTHER, SIM_BF16};
    return number < sizeof types ? types[number] : SIM_OTHER;
}

/* The types of a loader or storer, which holds their widths as well. */
static bool read_types(const char *at, unsigned count, struct sim_operand *operand)
{
    const size_t widths = (count + 3) / 4 * 4;
    for (unsigned i = 0; i < count; i++) {
        operand[i].type = type_of((unsigned char)at[i]);
        if (!operand[i].type || word(at + widths, i) != sim_type_bytes(operand[i].type)) return false;
    }
    return true;
}

static void types_of_plan(struct sim_computation *c)
{
    c->operand[0].type = c->plan.action ? c->plan.result : SIM_I64; /* not understood: the widest */
    for (unsigned i = 1; i < c->plan.operands; i++) c->operand[i].type = sim_plan_type(&c->plan, i - 1);
}

static bool read_flat(struct sim_computation *c, void *const *params)
{
    const unsigned operands = c->plan.operands;
    c->dims = 1;
    c->size[0] = (uint32_t)c->count;
    types_of_plan(c);
    if (c->plan.form == SIM_FORM_CAST) {
        if (!read_types(params[6], 1, &c->operand[0])) return false;
        if (operands > 1 && !read_types(params[5], operands - 1, &c->operand[1])) return false;
    }
    for (unsigned i = 0; i < operands; i++) {
        c->operand[i].va = pointer(params[2], i); /* an array of pointers, or with an index the one pointer itself */
        c->operand[i].stride[0] = (uint32_t)sim_type_bytes(c->operand[i].type);
    }
    if (c->plan.action) read_state(c, params[1]);
    return on_device(c->operand[0].va);
}

static bool read_strided(struct sim_computation *c, void *const *params)
{
    const unsigned operands = c->plan.operands;
    const char *loop = params[1], *pointers = loop + sim_round_up(offsets_bytes(operands), 8);
    struct offsets offsets;
    if (!read_offsets(loop, operands, c->count, &offsets)) return false;
    c->dims = offsets.dims;
    types_of_plan(c);
    const char *functor = pointers + 8 * operands;
    const struct state state = state_of(&c->plan);
    if (c->plan.casts && c->plan.scalar && is_half(state.type)) return false;
    for (unsigned i = 0; i < operands; i++) {
        c->operand[i].va = pointer(pointers, i);
        if (!on_device(c->operand[i].va)) return false;
        if (c->plan.casts) c->operand[i].type = type_of((unsigned char)functor[state.bytes + i]);
        if (!c->operand[i].type) return false;
        for (unsigned d = 0; d < c->dims; d++) {
            c->size[d] = offsets.size[d];
            c->operand[i].stride[d] = offsets.stride[d][i];
        }
    }
    read_state(c, functor);
    return true;
}

/* ---- reductions ---- */

enum { /* words of ReduceConfig */
    INPUTS = 1,
    OUTPUTS = 2,
    CTAS = 5,
    BLOCK_WIDTH = 11,
    BLOCK_HEIGHT = 12,
    THREADS = 13,
    CONFIG_WORDS = 16
};

static bool is_config(const char *at, const unsigned grid[3], const unsigned block[3])
{
    return word(at, BLOCK_WIDTH) == block[0] && word(at, BLOCK_HEIGHT) == block[1] &&
           word(at, THREADS) == block[0] * block[1] && word(at, CTAS) == grid[1] && word(at, INPUTS) - 1 < INT32_MAX &&
           word(at, OUTPUTS) - 1 < INT32_MAX;
}

/* ReduceOp: {operation, identity, configuration, offsets of the input, offsets of both, source, destinations,
 * buffers, first index, accumulate, final, number of outputs}, with its configuration at `config`. */
static bool read_reduction_at(struct sim_computation *c, const char *op, const char *config)
{
    struct offsets in, out;
    const char *input = config + 4 * CONFIG_WORDS, *output = input + offsets_bytes(1);
    c->over = word(config, INPUTS);
    c->count = word(config, OUTPUTS);
    if (!read_offsets(input, 1, c->over, &in) || !read_offsets(output, 2, c->count, &out)) return false;
    const char *tail = op + sim_round_up((size_t)(output + offsets_bytes(2) - op), 8);
    const bool accumulates = tail[56], final = tail[57];
    if (pointer(tail, 6) || accumulates || !final || word(tail, 15) != 1) return false;
    c->dims = out.dims;
    c->over_dims = in.dims;
    for (unsigned d = 0; d < in.dims; d++) {
        c->over_size[d] = in.size[d];
        c->over_stride[d] = in.stride[d][0];
    }
    for (unsigned d = 0; d < out.dims; d++) {
        c->size[d] = out.size[d];
        c->operand[0].stride[d] = out.stride[d][0];
        c->operand[1].stride[d] = out.stride[d][1];
    }
    c->operand[0].type = c->plan.result ? c->plan.result : SIM_I64;
    c->operand[1].type = c->plan.type[0];
    c->operand[1].va = pointer(tail, 0);
    c->operand[0].va = pointer(tail, 1);
    return on_device(c->operand[0].va) && on_device(c->operand[1].va);
}

/* The operation and the identity before the configuration have sizes of their own. */
static bool read_reduction(struct sim_computation *c, const char *op, const unsigned grid[3], const unsigned block[3])
{
    enum { MOST_BEFORE = 64 };
    for (const char *config = op + 4; config < op + MOST_BEFORE && !c->plan.wide; config += 4)
        if (is_config(config, grid, block) && read_reduction_at(c, op, config)) return true;
    return false;
}

/* ---- concatenations ---- */

/* Inputs are {pointers, offsets, sizes, elements, …}, each for a whole batch. Along the outermost dimension the
 * result is one input behind the other; along another one only where it lies is known. */
static bool read_concatenation(struct sim_computation *c, void *const *params)
{
    const size_t width = c->plan.width, batch = c->plan.batch;
    const char *inputs = params[1], *offsets = inputs + 8 * batch, *sizes = offsets + 4 * batch;
    const char *elements = sizes + 4 * batch;
    int dimension;
    uint32_t stride;
    memcpy(&dimension, params[3], sizeof dimension);
    memcpy(&stride, params[4], sizeof stride);
    c->operand[0].va = pointer(params[0], 0);
    uint64_t total = 0;
    for (unsigned i = 0; i < c->parts; i++) {
        struct sim_part *part = &c->part[i];
        *part = (struct sim_part){pointer(inputs, i), word(offsets, i) * (uint64_t)stride * width,
                                  word(elements, i) * (uint64_t)width};
        if (!on_device(part->from)) return false;
        if (dimension == 0 && i && part->at != part[-1].at + part[-1].bytes) return false;
        if (!word(sizes, i) || word(elements, i) % word(sizes, i)) return false;
        total += part->bytes;
    }
    if (dimension != 0) { /* interleaved: unknown, all of it */
        if (word(offsets, 0)) return false; /* a later batch */
        c->part[0].at = 0;
        c->part[0].bytes = total;
        c->parts = 1;
        c->plan.action = SIM_DO_NOTHING;
    } else {
        c->plan.action = SIM_DO_COPY;
    }
    return on_device(c->operand[0].va);
}

/* ---- the step of a loss scaler ---- */

static bool read_scaler(struct sim_computation *c, void *const *params)
{
    for (unsigned i = 0; i < 3; i++) {
        c->operand[i].va = pointer(params[i], 0);
        if (!on_device(c->operand[i].va)) return false;
    }
    memcpy(&c->scalar.f, params[3], sizeof c->scalar.f);
    memcpy(&c->scale.f, params[4], sizeof c->scale.f);
    c->order = word(params[5], 0);
    return true;
}

struct sim_computation *sim_arguments_read_locked(const struct sim_plan *plan, void *const *params,
                                                  const unsigned grid[3], const unsigned block[3])
{
    const bool cat = plan->form == SIM_FORM_CAT;
    if (plan->form == SIM_FORM_NONE || !params || (cat && grid[1] > plan->batch)) return NULL;
    struct sim_computation *c = calloc(1, sizeof *c + (cat ? grid[1] * sizeof c->part[0] : 0));
    bool ok = false;
    if (!c) return NULL;
    c->refs = 1;
    c->plan = *plan;
    c->over = 1;
    if (cat) {
        c->parts = grid[1];
        ok = read_concatenation(c, params);
    } else if (plan->form == SIM_FORM_SCALER) {
        ok = read_scaler(c, params);
    } else if (plan->form == SIM_FORM_REDUCE) {
        ok = read_reduction(c, params[0], grid, block);
    } else {
        c->count = word(params[0], 0);
        ok = c->count - 1 < INT32_MAX &&
             (plan->form == SIM_FORM_STRIDED ? read_strided(c, params) : read_flat(c, params));
    }
    if (ok) return c;
    free(c);
    return NULL;
}

void sim_computation_unref_locked(struct sim_computation *computation)
{
    if (computation && --computation->refs == 0) free(computation);
}
