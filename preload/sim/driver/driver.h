/* SPDX-License-Identifier: Apache-2.0 */
/* Simulated CUDA driver: the state that its files share, and one include for all of their headers.
 *
 * Glossary: a *phys* is one physical allocation (what cuMemCreate makes, or the memory behind
 * cuMemAlloc); a *range* is a reserved or allocated virtual range; a *map* binds a piece of a range to a
 * phys. Names end in _locked where the caller holds `sim.lock`; entry points take it themselves.
 * Prefix sim_ = inside this library, gml_sim_ = exported for the shim and the tests. */
#ifndef GML_SIM_DRIVER_H
#define GML_SIM_DRIVER_H

#include "sim/driver/config.h"
#include "sim/driver/entry.h"
#include "sim/driver/object.h"
#include "sim/driver/memory.h"
#include "sim/driver/oracle.h"
#include "sim/driver/context.h"
#include "sim/driver/stream.h"
#include "sim/driver/graph.h"
#include "sim/driver/pool.h"
#include "sim/driver/known.h"
#include "sim/driver/kernel.h"
#include "sim/driver/values.h"

struct sim_device {
    size_t used, peak;
    unsigned contexts; /* each takes the profile's context bytes */
    size_t foreign;    /* memory held by "another process" (faults on demand) */
    struct sim_ctx *primary;
    struct sim_pool *pool, *current_pool;
    bool peers[SIM_MAX_DEVICES];
};

struct sim_state {
    pthread_mutex_t lock;
    pthread_cond_t progress; /* some stream completed something */
    _Atomic bool ready, forked;
    struct sim_device device[SIM_MAX_DEVICES];
    uint64_t next_id;
    struct sim_clock host;        /* work that some host thread knows to be done */
    struct sim_capture *captures; /* the active ones */
    uint64_t launches;            /* kernels and library work executed so far */
};

extern struct sim_state sim;

static inline size_t sim_round_up(size_t n, size_t to)
{
    return (n + to - 1) / to * to;
}

static inline void sim_lock(void)
{
    pthread_mutex_lock(&sim.lock);
}

static inline void sim_unlock(void)
{
    pthread_mutex_unlock(&sim.lock);
}

#endif
