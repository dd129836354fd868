/* SPDX-License-Identifier: Apache-2.0 */
/* What copies and fills wrote since the last launch of a kernel: there the host reads what was written, and
 * anywhere else, in small reads, a result of a kernel. Kept as a short list of pieces that every launch
 * empties; when it is full, all memory counts as written, which was the rule before pieces were told apart. */
#include "sim/driver/driver.h"

enum { PIECES = 256 };

static struct piece {
    uint64_t phys;
    size_t at, bytes;
} pieces[PIECES];
static unsigned count;
static bool full;
static uint64_t since; /* launches so far when the list was begun */

static void begin_locked(void)
{
    if (since == sim.launches) return;
    since = sim.launches;
    count = 0;
    full = false;
}

void sim_fresh_add_locked(const struct sim_phys *phys, size_t at, size_t bytes)
{
    begin_locked();
    struct piece *last = count ? &pieces[count - 1] : NULL;
    if (last && last->phys == phys->id && last->at + last->bytes == at) last->bytes += bytes;
    else if (count < PIECES) pieces[count++] = (struct piece){phys->id, at, bytes};
    else full = true;
}

bool sim_fresh_locked(const struct sim_phys *phys, size_t at, size_t bytes)
{
    begin_locked();
    for (unsigned i = 0; i < count; i++)
        if (pieces[i].phys == phys->id && pieces[i].at <= at && at + bytes <= pieces[i].at + pieces[i].bytes)
            return true;
    return full;
}

void sim_fresh_copy_locked(const struct sim_phys *from, size_t at, size_t bytes, const struct sim_phys *to,
                           size_t to_at)
{
    begin_locked();
    for (unsigned i = 0, before = count; i < before; i++) {
        const struct piece *p = &pieces[i];
        size_t first = p->at > at ? p->at : at, end = p->at + p->bytes < at + bytes ? p->at + p->bytes : at + bytes;
        if (p->phys == from->id && first < end) sim_fresh_add_locked(to, to_at + first - at, end - first);
    }
}
