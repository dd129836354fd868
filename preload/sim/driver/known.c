/* SPDX-License-Identifier: Apache-2.0 */
/* What is known of the contents of device memory: a sorted list of pieces.
 *
 * Copies and fills make their bytes known, kernels that are computed (compute.c) those of their results. A kernel
 * that is not understood may have written anything: the list is emptied. What stands in no piece is unknown. */
#include "sim/driver/driver.h"
#include "sim/driver/exports.h"

#include <stdlib.h>
#include <string.h>

static struct piece {
    uint64_t phys;
    size_t at, end;
    enum sim_known state;
} *pieces; /* by phys, then by place; they neither overlap nor, with the same state, touch */
static size_t count, room;

/* The first piece that ends behind `at`. */
static size_t find(uint64_t phys, size_t at)
{
    size_t low = 0, high = count;
    while (low < high) {
        size_t middle = (low + high) / 2;
        const struct piece *p = &pieces[middle];
        if (p->phys < phys || (p->phys == phys && p->end <= at)) low = middle + 1;
        else high = middle;
    }
    return low;
}

static bool insert(size_t index, struct piece piece)
{
    if (count == room) {
        size_t wanted = room ? room * 2 : 256;
        struct piece *grown = realloc(pieces, wanted * sizeof *grown);
        if (!grown) return false;
        pieces = grown;
        room = wanted;
    }
    memmove(&pieces[index + 1], &pieces[index], (count - index) * sizeof *pieces);
    pieces[index] = piece;
    count++;
    return true;
}

/* Removes what is known of a piece; the place where a new one belongs. Without memory nothing is known any more. */
static size_t cut(uint64_t phys, size_t at, size_t end)
{
    size_t i = find(phys, at);
    if (i == count || pieces[i].phys != phys || pieces[i].at >= end) return i;
    if (pieces[i].at < at) {
        struct piece rest = pieces[i];
        pieces[i++].end = at;
        if (rest.end > end) {
            rest.at = end;
            if (!insert(i, rest)) count = i = 0;
            return i;
        }
    }
    size_t last = i;
    while (last < count && pieces[last].phys == phys && pieces[last].end <= end) last++;
    memmove(&pieces[i], &pieces[last], (count - last) * sizeof *pieces);
    count -= last - i;
    if (i < count && pieces[i].phys == phys && pieces[i].at < end) pieces[i].at = end;
    return i;
}

void sim_known_set_locked(const struct sim_phys *phys, size_t at, size_t bytes, enum sim_known state)
{
    const size_t end = at + bytes;
    if (!bytes || (state == SIM_UNKNOWN && !count)) return;
    size_t i = cut(phys->id, at, end);
    if (state == SIM_UNKNOWN) return;
    struct piece *before = i ? &pieces[i - 1] : NULL, *after = i < count ? &pieces[i] : NULL;
    bool joins = before && before->phys == phys->id && before->end == at && before->state == state;
    bool joined = after && after->phys == phys->id && after->at == end && after->state == state;
    if (joins && joined) {
        before->end = after->end;
        memmove(after, after + 1, (--count - i) * sizeof *pieces);
    } else if (joins) before->end = end;
    else if (joined) after->at = at;
    else if (!insert(i, (struct piece){phys->id, at, end, state})) count = 0;
}

enum sim_known sim_known_get_locked(const struct sim_phys *phys, size_t at, size_t bytes)
{
    size_t i = find(phys->id, at);
    if (i == count || pieces[i].phys != phys->id || pieces[i].at > at || pieces[i].end < at + bytes) return SIM_UNKNOWN;
    return pieces[i].state;
}

bool sim_known_any_locked(const struct sim_phys *phys, size_t at, size_t bytes)
{
    size_t i = find(phys->id, at);
    return i < count && pieces[i].phys == phys->id && pieces[i].at < at + bytes;
}

void sim_known_copy_locked(const struct sim_phys *from, size_t at, size_t bytes, const struct sim_phys *to,
                           size_t to_at)
{
    sim_known_set_locked(to, to_at, bytes, SIM_UNKNOWN);
    /* Found anew each time: the list changes, in this very place when both lie in one phys. */
    for (size_t next = at; next < at + bytes;) {
        size_t i = find(from->id, next);
        if (i == count || pieces[i].phys != from->id || pieces[i].at >= at + bytes) return;
        size_t first = pieces[i].at > next ? pieces[i].at : next;
        size_t end = pieces[i].end < at + bytes ? pieces[i].end : at + bytes;
        sim_known_set_locked(to, to_at + first - at, end - first, pieces[i].state);
        next = end;
    }
}

void sim_known_blank_locked(const struct sim_phys *phys, size_t at, size_t bytes, char *copy)
{
    const size_t end = at + bytes;
    for (size_t next = at, i = find(phys->id, at); next < end; i++) {
        const struct piece *p = i < count && pieces[i].phys == phys->id && pieces[i].at < end ? &pieces[i] : NULL;
        const size_t until = p ? p->at : end;
        if (until > next) memset(copy + next - at, 0, until - next);
        if (!p) return;
        const size_t first = p->at > next ? p->at : next, last = p->end < end ? p->end : end;
        if (p->state != SIM_KNOWN) memset(copy + first - at, 0, last - first);
        next = last;
    }
}

void sim_known_nothing_locked(void)
{
    count = 0;
}

/* ---- what was given ---- */

/* Small copies from the host and single elements, the last ones by place: they outlive kernels that are not
 * understood. A program that reads back just what it gave, the lengths of a batch behind the forward pass, gets that:
 * a result that was put there since needs the very same place and size. */
enum { GIVEN = 4096 };
static struct given {
    uint64_t phys;
    size_t at, bytes;
    enum sim_given how;
} given[GIVEN];

static struct given *given_at(const struct sim_phys *phys, size_t at)
{
    return &given[(phys->id * 0x9e3779b97f4a7c15u ^ (at >> 4) * 0xff51afd7ed558ccdu) >> 20 & (GIVEN - 1)];
}

void sim_known_give_locked(const struct sim_phys *phys, size_t at, size_t bytes, enum sim_given how)
{
    *given_at(phys, at) = (struct given){phys->id, at, bytes, how};
}

enum sim_given sim_known_given_locked(const struct sim_phys *phys, size_t at, size_t bytes)
{
    const struct given *g = given_at(phys, at);
    return g->phys == phys->id && g->at == at && g->bytes == bytes ? g->how : SIM_GIVEN_NOT;
}

/* ---- by address ---- */

void sim_known_mark_locked(uintptr_t va, size_t bytes, enum sim_known state)
{
    while (bytes) {
        struct sim_place place = sim_locate_locked(va, bytes);
        if (!place.bytes) return;
        if (place.phys) sim_known_set_locked(place.phys, place.at, place.bytes, state);
        va += place.bytes, bytes -= place.bytes;
    }
}

enum sim_known sim_known_of_locked(uintptr_t va, size_t bytes)
{
    struct sim_place place = sim_locate_locked(va, bytes);
    return place.phys && place.bytes == bytes ? sim_known_get_locked(place.phys, place.at, bytes) : SIM_UNKNOWN;
}

bool sim_known_some_locked(uintptr_t va, size_t bytes)
{
    while (bytes) {
        struct sim_place place = sim_locate_locked(va, bytes);
        if (!place.bytes) return false;
        if (place.phys && sim_known_any_locked(place.phys, place.at, place.bytes)) return true;
        va += place.bytes, bytes -= place.bytes;
    }
    return false;
}

int gml_sim_known(const void *pointer, size_t bytes)
{
    sim_lock();
    bool all = sim_known_of_locked((uintptr_t)pointer, bytes) == SIM_KNOWN;
    bool some = all || sim_known_some_locked((uintptr_t)pointer, bytes);
    sim_unlock();
    return all + some;
}

void gml_sim_forget(const void *pointer, size_t bytes)
{
    sim_lock();
    sim_known_mark_locked((uintptr_t)pointer, bytes, SIM_UNKNOWN);
    sim_unlock();
}
