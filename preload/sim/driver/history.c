/* SPDX-License-Identifier: Apache-2.0 */
/* History of device addresses: a ring of what was done to them, printed when one is misused. */
#define _GNU_SOURCE
#include "sim/driver/driver.h"

#include <stdio.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { ENTRIES = 8192, PRINTED = 12 };

static struct entry {
    const char *what;
    uintptr_t va;
    size_t bytes;
    uint64_t detail;
    long thread;
} ring[ENTRIES];
static uint64_t count;

static long thread_id(void)
{
    static __thread long id;
    if (!id) id = syscall(SYS_gettid);
    return id;
}

void sim_history_add_locked(const char *what, uintptr_t va, size_t bytes, uint64_t detail)
{
    ring[count++ % ENTRIES] = (struct entry){what, va, bytes, detail, thread_id()};
}

/* The latest entries that overlap the range, newest first. */
void sim_history_print_locked(uintptr_t va, size_t bytes)
{
    unsigned printed = 0;
    uint64_t oldest = count > ENTRIES ? count - ENTRIES : 0;
    for (uint64_t i = count; i-- > oldest && printed < PRINTED;) {
        const struct entry *e = &ring[i % ENTRIES];
        if (e->va >= va + bytes || va >= e->va + e->bytes) continue;
        fprintf(stderr, "gml-sim:   #%llu thread %ld: %s [0x%llx, +%zu) id %llu\n", (unsigned long long)i, e->thread,
                e->what, (unsigned long long)e->va, e->bytes, (unsigned long long)e->detail);
        printed++;
    }
    if (!printed) fprintf(stderr, "gml-sim:   nothing is known about these addresses\n");
}
