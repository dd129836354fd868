/* SPDX-License-Identifier: Apache-2.0 */
/* Kernels that are understood (kernel.h): what is known of their inputs becomes known of their results.
 *
 * Frameworks steer themselves by small tensors: sizes of objects that ranks exchange, whether all sequences are
 * finished, whether a parameter is valid. Where such values are known (a host or a fill wrote them, a rank sent
 * them, a kernel was computed), results of up to MOST elements are computed. Where one side alone decides, so it
 * does: nothing & 0 is 0.
 *
 * Unknown values are taken to be what a working program has: a check of floating-point numbers holds (x > 0, x == x,
 * x != inf), and so does one of integers that 0 would pass; that numbers are equal is not taken for granted (it ends
 * loops: a token is the last one), except of floating-point tensors of one shape. Such answers are no values yet:
 * a flag among them still reads as no. Only all() of them reads as yes, any() never does. */
#include "sim/driver/driver.h"

#include <math.h>
#include <string.h>

enum { MOST = 2048, MOST_APART = 256 };

struct cell {
    enum sim_known state;
    struct sim_value value;
};

static const struct cell unknown = {SIM_UNKNOWN, {0, 0}}, holds = {SIM_HOLDS, {0, 0}};

static struct cell known_of(enum sim_type type, int64_t i, double f)
{
    struct cell cell = {SIM_KNOWN, {i, f}};
    if (type == SIM_F32) cell.value.f = (float)f;
    return cell;
}

static bool is_known(struct cell cell)
{
    return cell.state == SIM_KNOWN;
}

static bool is_held(struct cell cell)
{
    return cell.state == SIM_HOLDS || cell.state == SIM_ALL;
}

/* Known to be 0, or known to be anything else. */
static bool truth_is(enum sim_type type, struct cell cell, bool wanted)
{
    return is_known(cell) && (sim_type_floats(type) ? cell.value.f != 0 : cell.value.i != 0) == wanted;
}

/* ---- one element ---- */

enum { EQUAL_TO, UNEQUAL_TO }; /* the numbers of PyTorch's EqOpType and OpType */
enum { AT_LEAST, MORE, AT_MOST, LESS };

static bool ordered(unsigned order, double a, double b, int64_t i, int64_t j, bool floats)
{
    switch (order) {
    case AT_LEAST: return floats ? a >= b : i >= j;
    case MORE: return floats ? a > b : i > j;
    case AT_MOST: return floats ? a <= b : i <= j;
    default: return floats ? a < b : i < j;
    }
}

static struct cell compare(const struct sim_computation *c, struct cell a, struct cell b)
{
    const enum sim_type type = c->plan.type[0];
    const bool floats = sim_type_floats(type), same = c->operand[1].va == c->operand[2].va && c->plan.arity == 2;
    if (c->order > (c->plan.action == SIM_DO_EQUAL ? UNEQUAL_TO : LESS)) return unknown;
    if (c->plan.action == SIM_DO_COMPARE) {
        bool answer = ordered(c->order, a.value.f, b.value.f, a.value.i, b.value.i, floats);
        if (is_known(a) && is_known(b)) return known_of(SIM_BOOL, answer, 0);
        if (floats || c->plan.arity == 2) return holds;
        return answer ? holds : unknown; /* what is not known has the value 0 here */
    }
    const bool equal = c->order == EQUAL_TO;
    /* What a division by 1 leaves of numbers that nobody knows is nothing: they are taken to be whole. */
    const struct cell number = c->plan.scalar == 1 ? b : a, other = c->plan.scalar == 1 ? a : b;
    if (type != SIM_BOOL && is_held(number) && c->plan.scalar && truth_is(type, other, false))
        return equal ? holds : unknown;
    if (is_known(a) && is_known(b)) {
        bool are = floats ? a.value.f == b.value.f : a.value.i == b.value.i;
        return known_of(SIM_BOOL, are == equal, 0);
    }
    const bool alike = floats && c->plan.arity == 2 && (same || c->plan.form != SIM_FORM_STRIDED);
    return alike == equal ? holds : unknown;
}

static struct cell logical(const struct sim_computation *c, struct cell a, struct cell b)
{
    const enum sim_type first = c->plan.type[0], second = c->plan.type[1];
    const bool logical = c->plan.action == SIM_DO_LOGICAL_AND || c->plan.action == SIM_DO_LOGICAL_OR;
    const bool truths = logical || first == SIM_BOOL;
    const bool conjunction = c->plan.action == SIM_DO_AND || c->plan.action == SIM_DO_LOGICAL_AND ||
                             c->plan.action == SIM_DO_MULTIPLY;
    const bool floats = sim_type_floats(first) && !logical;
    if (conjunction && !floats && (truth_is(first, a, false) || truth_is(second, b, false)))
        return known_of(SIM_I64, 0, 0);
    if (!truths) return unknown;
    if (!conjunction && (truth_is(first, a, true) || truth_is(second, b, true))) return known_of(SIM_BOOL, 1, 0);
    bool left = is_held(a) || truth_is(first, a, true), right = is_held(b) || truth_is(second, b, true);
    return (conjunction ? left && right : left || right) ? holds : unknown;
}

/* Of two known values. */
static struct cell combine(const struct sim_computation *c, struct sim_value a, struct sim_value b)
{
    const enum sim_type first = c->plan.type[0], second = c->plan.type[1];
    const bool floats = sim_type_floats(first);
    const uint64_t i = (uint64_t)a.i, j = (uint64_t)b.i, scale = (uint64_t)c->scale.i;
    const bool one = floats ? a.f != 0 : a.i != 0, other = sim_type_floats(second) ? b.f != 0 : b.i != 0;
    switch ((int)c->plan.action) {
    case SIM_DO_ADD: return known_of(first, (int64_t)(i + scale * j), a.f + c->scale.f * b.f);
    case SIM_DO_MULTIPLY: return known_of(first, (int64_t)(i * j), a.f * b.f);
    case SIM_DO_AND: return known_of(first, a.i & b.i, 0);
    case SIM_DO_OR: return known_of(first, a.i | b.i, 0);
    case SIM_DO_XOR: return known_of(first, a.i ^ b.i, 0);
    case SIM_DO_LOGICAL_AND: return known_of(SIM_BOOL, one && other, 0);
    default: return known_of(SIM_BOOL, one || other, 0);
    }
}

static struct cell remainder_of(const struct sim_computation *c, struct cell a, struct cell b)
{
    const enum sim_type type = c->plan.type[0];
    const bool floats = sim_type_floats(type);
    if (c->plan.scalar != 2 || !(floats ? b.value.f == 1 : b.value.i == 1)) return unknown;
    if (!is_known(a)) return holds;
    return known_of(type, 0, floats ? a.value.f - floor(a.value.f) : 0);
}

static struct cell alone(const struct sim_computation *c, struct cell a)
{
    const enum sim_type type = c->plan.type[0];
    const bool opposite = c->plan.action == SIM_DO_LOGICAL_NOT || (c->plan.action == SIM_DO_NOT && type == SIM_BOOL);
    if (opposite && is_known(a)) return known_of(SIM_BOOL, truth_is(type, a, false), 0);
    if (opposite) return is_held(a) ? unknown : holds;
    if (!is_known(a)) return c->plan.action == SIM_DO_COPY && type == SIM_BOOL ? a : unknown;
    const uint64_t negated = 0 - (uint64_t)a.value.i;
    switch ((int)c->plan.action) {
    case SIM_DO_NOT: return known_of(type, ~a.value.i, 0);
    case SIM_DO_NEGATE: return known_of(type, (int64_t)negated, -a.value.f);
    case SIM_DO_ABSOLUTE: return known_of(type, a.value.i < 0 ? (int64_t)negated : a.value.i, fabs(a.value.f));
    default: return a;
    }
}

/* Arguments as the functor sees them. */
static struct cell apply(const struct sim_computation *c, struct cell a, struct cell b)
{
    const struct cell own = {c->scalar_unknown ? SIM_UNKNOWN : SIM_KNOWN, c->scalar};
    switch ((int)c->plan.action) {
    case SIM_DO_NOTHING: return unknown;
    case SIM_DO_FILL: return own;
    case SIM_DO_COPY:
    case SIM_DO_NOT:
    case SIM_DO_LOGICAL_NOT:
    case SIM_DO_NEGATE:
    case SIM_DO_ABSOLUTE: return alone(c, a);
    default: break;
    }
    if (c->plan.scalar == 1) b = a, a = own;
    else if (c->plan.scalar == 2) b = own;
    if (c->plan.action == SIM_DO_EQUAL || c->plan.action == SIM_DO_COMPARE) return compare(c, a, b);
    if (c->plan.action == SIM_DO_REMAINDER) return remainder_of(c, a, b);
    if (is_known(a) && is_known(b)) return combine(c, a.value, b.value);
    if (c->plan.action == SIM_DO_ADD || c->plan.action == SIM_DO_XOR) return unknown;
    return logical(c, a, b);
}

/* ---- memory ---- */

static uintptr_t address(const struct sim_operand *operand, const uint32_t *size, const uint32_t *stride,
                         unsigned dims, uint64_t index)
{
    uintptr_t va = operand->va;
    for (unsigned d = 0; d < dims; index /= size[d], d++) va += index % size[d] * stride[d];
    return va;
}

/* Bytes from the first to the last element. */
static size_t extent(const struct sim_computation *c, unsigned which)
{
    const struct sim_operand *operand = &c->operand[which];
    size_t bytes = sim_type_bytes(operand->type);
    for (unsigned d = 0; d < c->dims; d++) bytes += (size_t)(c->size[d] - 1) * operand->stride[d];
    for (unsigned d = 0; which && d < c->over_dims; d++) bytes += (size_t)(c->over_size[d] - 1) * c->over_stride[d];
    return bytes;
}

/* The result does not lie in one piece. */
static bool has_gaps(const struct sim_computation *c)
{
    return extent(c, 0) != c->count * sim_type_bytes(c->operand[0].type);
}

/* An input, read at once where it lies in one place and has room here: most do. */
struct window {
    struct sim_place place;
    uintptr_t va;
    size_t bytes;
    enum sim_known state; /* of all of it; SIM_UNKNOWN: each element has its own */
    char data[MOST * 8];
};

static struct window windows[2]; /* used under the lock */

static void look_at(const struct sim_computation *c, unsigned input)
{
    struct window *w = &windows[input];
    w->va = c->operand[input + 1].va;
    w->bytes = extent(c, input + 1);
    w->place = sim_locate_locked(w->va, w->bytes);
    bool fits = w->place.phys && w->place.bytes == w->bytes && w->bytes <= sizeof w->data;
    if (fits) fits = sim_phys_read(w->place.phys, w->place.at, w->data, w->bytes);
    if (!fits) w->bytes = 0;
    w->state = fits ? sim_known_get_locked(w->place.phys, w->place.at, w->bytes) : SIM_UNKNOWN;
}

/* An element that lies in no window is not known: its input is large or crosses maps. */
static struct cell load(const struct window *w, enum sim_type type, uintptr_t va, enum sim_type as)
{
    const size_t bytes = sim_type_bytes(type), at = va - w->va;
    struct cell cell = unknown;
    if (va < w->va || at + bytes > w->bytes) return cell;
    cell.state = w->state ? w->state : sim_known_get_locked(w->place.phys, w->place.at + at, bytes);
    if (is_held(cell) && type != as) cell.state = SIM_UNKNOWN;
    if (is_known(cell)) cell.value = sim_value_cast(type, as, sim_value_load(type, w->data + at));
    return cell;
}

static void store(uintptr_t va, const char *bytes, size_t size, enum sim_known state)
{
    struct sim_place place = sim_locate_locked(va, size);
    if (!place.phys || place.bytes != size) sim_known_mark_locked(va, size, SIM_UNKNOWN);
    else if (state != SIM_KNOWN) sim_known_set_locked(place.phys, place.at, size, state);
    else if (!sim_phys_write(place.phys, place.at, bytes, size)) return;
    else sim_known_set_locked(place.phys, place.at, size, SIM_KNOWN);
}

/* ---- whole results ---- */

/* Every element of each input is in the same state, and none is a value. */
static void compute_alike(const struct sim_computation *c)
{
    struct cell in[2] = {unknown, unknown};
    for (unsigned i = 0; i < c->plan.arity; i++) {
        enum sim_known state = sim_known_of_locked(c->operand[i + 1].va, extent(c, i + 1));
        if (c->operand[i + 1].type == sim_plan_type(&c->plan, i) && (state == SIM_HOLDS || state == SIM_ALL)) in[i].state = state;
    }
    struct cell out = unknown;
    if (c->plan.action == SIM_DO_ALL)
        out.state = is_held(in[0]) && c->plan.type[0] == SIM_BOOL ? SIM_ALL : SIM_UNKNOWN;
    else if (c->plan.action < SIM_DO_SUM) out = apply(c, in[0], in[1]);
    const bool told = (c->operand[0].type == SIM_BOOL || c->plan.action == SIM_DO_REMAINDER) && !has_gaps(c);
    if (is_known(out)) out.state = truth_is(c->plan.result, out, true) ? SIM_HOLDS : SIM_UNKNOWN;
    sim_known_mark_locked(c->operand[0].va, extent(c, 0), told ? out.state : SIM_UNKNOWN);
}

/* Stores a result, runs of neighbours at once. */
struct run {
    uintptr_t va;
    size_t bytes;
    enum sim_known state;
    char data[MOST * 8];
};

static void flush(struct run *run)
{
    if (run->bytes) store(run->va, run->data, run->bytes, run->state);
    run->bytes = 0;
}

static void put(const struct sim_computation *c, struct run *run, uint64_t index, struct cell cell)
{
    const struct sim_operand *out = &c->operand[0];
    const size_t width = sim_type_bytes(out->type);
    const uintptr_t va = address(out, c->size, out->stride, c->dims, index);
    if (is_held(cell) && out->type != SIM_BOOL && c->plan.action != SIM_DO_REMAINDER) cell = unknown;
    if (run->bytes && (run->va + run->bytes != va || run->state != cell.state || run->bytes + width > sizeof run->data))
        flush(run);
    if (!run->bytes) run->va = va, run->state = cell.state;
    if (is_known(cell))
        sim_value_store(out->type, sim_value_cast(c->plan.result, out->type, cell.value), run->data + run->bytes);
    run->bytes += width;
}

static struct cell reduce(const struct sim_computation *c, uint64_t index)
{
    const struct sim_operand *in = &c->operand[1];
    const enum sim_type type = c->plan.type[0];
    const bool floats = sim_type_floats(type);
    const uintptr_t base = address(in, c->size, in->stride, c->dims, index);
    struct sim_operand slice = {.va = base};
    struct cell sum = known_of(type, 0, 0);
    bool all_known = true, all_hold = true, found = false;
    const bool looked_for = c->plan.action == SIM_DO_ANY;
    for (uint64_t i = 0; i < c->over; i++) {
        struct cell cell = load(&windows[0], in->type, address(&slice, c->over_size, c->over_stride, c->over_dims, i), type);
        found |= truth_is(type, cell, looked_for);
        all_hold &= (is_held(cell) && type == SIM_BOOL) || truth_is(type, cell, true);
        if (!(all_known &= is_known(cell))) continue;
        bool more = floats ? cell.value.f > sum.value.f : cell.value.i > sum.value.i;
        bool take = c->plan.action == SIM_DO_MAX ? more : !more;
        if (c->plan.action == SIM_DO_SUM)
            sum = known_of(type, (int64_t)((uint64_t)sum.value.i + (uint64_t)cell.value.i), sum.value.f + cell.value.f);
        else if (i == 0 || take || isnan(cell.value.f)) sum = isnan(sum.value.f) ? sum : cell;
    }
    if (c->plan.action == SIM_DO_ALL || c->plan.action == SIM_DO_ANY) {
        if (found) return known_of(SIM_BOOL, looked_for, 0);
        if (all_known) return known_of(SIM_BOOL, !looked_for, 0);
        return c->plan.action == SIM_DO_ALL && all_hold ? (struct cell){SIM_ALL, {0, 0}} : unknown;
    }
    if (!all_known) return unknown;
    sum.value = sim_value_cast(type, c->plan.result, sum.value);
    return sum;
}

static void compute_each(const struct sim_computation *c)
{
    static struct run run; /* used under the lock */
    run.bytes = 0;
    for (unsigned n = 0; n < c->plan.arity; n++) look_at(c, n);
    for (uint64_t i = 0; i < c->count; i++) {
        struct cell in[2] = {unknown, unknown};
        for (unsigned n = 0; n < c->plan.arity && c->plan.action < SIM_DO_SUM; n++) {
            const struct sim_operand *operand = &c->operand[n + 1];
            const uintptr_t va = address(operand, c->size, operand->stride, c->dims, i);
            in[n] = load(&windows[n], operand->type, va, sim_plan_type(&c->plan, n));
        }
        put(c, &run, i, c->plan.action < SIM_DO_SUM ? apply(c, in[0], in[1]) : reduce(c, i));
    }
    flush(&run);
}

static void concatenate(const struct sim_computation *c)
{
    static char room[MOST * 8];
    for (unsigned i = 0; i < c->parts; i++) {
        const struct sim_part *part = &c->part[i];
        const uintptr_t to = c->operand[0].va + part->at;
        enum sim_known state = sim_known_of_locked(part->from, part->bytes);
        struct sim_place from = sim_locate_locked(part->from, part->bytes);
        bool read = c->plan.action == SIM_DO_COPY && state == SIM_KNOWN && part->bytes <= sizeof room;
        if (read) read = sim_phys_read(from.phys, from.at, room, part->bytes);
        if (read) store(to, room, part->bytes, SIM_KNOWN);
        else sim_known_mark_locked(to, part->bytes, SIM_UNKNOWN);
    }
}

static void note_fill(const struct sim_computation *c)
{
    const size_t bytes = sim_type_bytes(c->operand[0].type);
    const struct sim_place place = sim_locate_locked(c->operand[0].va, bytes);
    if (place.phys && place.bytes == bytes) sim_known_give_locked(place.phys, place.at, bytes, SIM_GIVEN_ELEMENT);
}

void sim_compute_locked(const struct sim_computation *c)
{
    if (c->plan.form == SIM_FORM_CAT) {
        concatenate(c);
        return;
    }
    if (c->plan.form == SIM_FORM_SCALER) {
        sim_scaler_step_locked(c);
        return;
    }
    bool some = c->plan.action == SIM_DO_FILL;
    for (unsigned i = 0; i < c->plan.arity && !some; i++)
        some = c->plan.action != SIM_DO_NOTHING && sim_known_some_locked(c->operand[i + 1].va, extent(c, i + 1));
    uint64_t most = c->dims > 1 || has_gaps(c) ? MOST_APART : MOST;
    if (some && c->count * c->over <= most && sim_type_bytes(c->operand[0].type)) compute_each(c);
    else compute_alike(c);
    if (c->plan.action == SIM_DO_FILL && c->count == 1) note_fill(c);
}
