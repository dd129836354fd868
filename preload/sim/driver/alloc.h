/* SPDX-License-Identifier: Apache-2.0 */
/* Allocations with their own physical memory: shared by the plain and the stream-ordered allocator. */
#ifndef GML_SIM_ALLOC_H
#define GML_SIM_ALLOC_H

#include "sim/driver/driver.h"

/* Physical memory, addresses and a map with full access. With `pool`, the pool keeps the account. */
CUresult sim_allocation_new_locked(struct sim_ctx *ctx, size_t bytes, struct sim_pool *pool,
                                   struct sim_range **out);

#endif
