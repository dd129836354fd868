/* SPDX-License-Identifier: Apache-2.0 */
/* Contexts, and what is current on a thread (context.c). */
#ifndef GML_SIM_CONTEXT_H
#define GML_SIM_CONTEXT_H

#include "sim/driver/object.h"
#include "sim/driver/oracle.h"

#include "cuda/driver_abi.h"

#include <stdbool.h>
#include <stddef.h>

struct sim_stream;

struct sim_ctx {
    struct sim_object object;
    int device;
    bool primary;
    unsigned refs;
    unsigned flags;
    CUresult sticky; /* an illegal access poisons the context for good */
    uint64_t id;
    struct sim_stream *legacy;
    struct sim_stream *streams; /* the legacy one included, and destroyed ones until their work is done */
    struct sim_clock ended;     /* the work of those that are gone */
    struct sim_stream *helper;  /* where events over the whole context are recorded */
};

CUresult sim_ctx_current(struct sim_ctx **out);
/* The calling thread's context whether usable or not; NULL without one. */
struct sim_ctx *sim_ctx_peek(void);
CUresult sim_ctx_fault_locked(struct sim_ctx *ctx, const char *what, uintptr_t va, size_t bytes);

#endif
