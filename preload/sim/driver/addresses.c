/* SPDX-License-Identifier: Apache-2.0 */
/* Host address space for device memory: PROT_NONE, so that touching it from the host faults.
 *
 * Reservations are mapped and unmapped one by one, as the driver's are, and show in the size of the
 * process. Small plain allocations come and go thousands of times a second: theirs are cut from slabs and
 * kept in stacks by size, last freed first reused. */
#define _GNU_SOURCE
#include "sim/driver/driver.h"

#include <stdlib.h>
#include <sys/mman.h>

enum { CLASSES = 33 };  /* sizes of 1 .. CLASSES - 1 chunks are kept */
static const size_t SLAB = (size_t)1 << 30;

static struct {
    uintptr_t *at;
    size_t count, room;
} kept[CLASSES];
static uintptr_t slab, slab_end;

uintptr_t sim_addresses_map(size_t bytes, size_t align, uintptr_t hint)
{
    const int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
    if (hint && hint % align == 0) {
        void *at = mmap((void *)hint, bytes, PROT_NONE, flags | MAP_FIXED_NOREPLACE, -1, 0);
        if (at == (void *)hint) return hint;
        if (at != MAP_FAILED) munmap(at, bytes);
    }
    char *base = mmap(NULL, bytes + align, PROT_NONE, flags, -1, 0);
    if (base == MAP_FAILED) return 0;
    uintptr_t start = sim_round_up((uintptr_t)base, align), end = (uintptr_t)base + bytes + align;
    if (start > (uintptr_t)base) munmap(base, start - (uintptr_t)base);
    if (start + bytes < end) munmap((void *)(start + bytes), end - start - bytes);
    return start;
}

uintptr_t sim_addresses_take_locked(size_t bytes)
{
    size_t class = bytes / SIM_CHUNK;
    if (class >= CLASSES) return sim_addresses_map(bytes, SIM_CHUNK, 0);
    if (kept[class].count) return kept[class].at[--kept[class].count];
    if (slab_end - slab < bytes) {
        slab = sim_addresses_map(SLAB, SIM_CHUNK, 0); /* what was left of the last one is address space only */
        slab_end = slab ? slab + SLAB : 0;
        if (!slab) return 0;
    }
    uintptr_t va = slab;
    slab += bytes;
    return va;
}

void sim_addresses_give_locked(uintptr_t va, size_t bytes)
{
    size_t class = bytes / SIM_CHUNK;
    if (class < CLASSES && kept[class].count == kept[class].room) {
        size_t room = kept[class].room ? kept[class].room * 2 : 64;
        uintptr_t *at = realloc(kept[class].at, room * sizeof *at);
        if (!at) return; /* the addresses are lost, nothing else */
        kept[class].at = at;
        kept[class].room = room;
    }
    if (class < CLASSES) kept[class].at[kept[class].count++] = va;
    else munmap((void *)va, bytes);
}

bool sim_addresses_keeps(size_t bytes)
{
    return bytes / SIM_CHUNK < CLASSES;
}
