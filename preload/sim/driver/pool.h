/* SPDX-License-Identifier: Apache-2.0 */
/* Memory pools, and allocations with their own physical memory: plain and stream-ordered (alloc.c, pool.c). */
#ifndef GML_SIM_POOL_H
#define GML_SIM_POOL_H

#include "sim/driver/context.h"
#include "sim/driver/memory.h"

struct sim_pool {
    struct sim_object object;
    int device;
    bool is_default;
    bool destroyed; /* by the program; it goes with the last of its allocations */
    struct sim_pool *next;
    size_t used, reserved, used_high, reserved_high, max_bytes;
    uint64_t threshold;
    int reuse[3];
    int handle_types;
    unsigned pending; /* frees whose stream has not come to them */
};

struct sim_pool *sim_pool_default_locked(int device);
/* Unmaps and forgets an allocation of any kind but a reservation (alloc.c). */
void sim_allocation_free_locked(struct sim_range *range);
void sim_pool_return_locked(struct sim_range *range);
void sim_pool_relax_locked(void); /* at a synchronisation: pools give back what is over their thresholds */

/* Physical memory, addresses and a map with full access. With `pool`, the pool keeps the account. */
CUresult sim_allocation_new_locked(struct sim_ctx *ctx, size_t bytes, struct sim_pool *pool,
                                   struct sim_range **out);

#endif
