/* SPDX-License-Identifier: Apache-2.0 */
/* Settings of a context: limits, stream priorities, access to peers. */
#include "sim/driver/driver.h"

static struct sim_ctx *ctx_get(CUcontext handle)
{
    sim_lock();
    struct sim_ctx *ctx = sim_object_get_locked(SIM_CTX, handle);
    sim_unlock();
    return ctx;
}

/* Limits are stored; nothing depends on them. */
enum { LIMITS = 16 };
static size_t limits[LIMITS] = {1024, 1 << 20, 8 << 20, 2, 2048, 128};

DRIVER(cuCtxGetLimit, (size_t *out, int limit))
{
    ENTER_CTX(cuCtxGetLimit, ctx);
    (void)ctx;
    if (!out || limit < 0 || limit >= LIMITS) return CUDA_ERROR_INVALID_VALUE;
    *out = limits[limit];
    return CUDA_SUCCESS;
}

DRIVER(cuCtxSetLimit, (int limit, size_t value))
{
    ENTER_CTX(cuCtxSetLimit, ctx);
    (void)ctx;
    if (limit < 0 || limit >= LIMITS) return CUDA_ERROR_INVALID_VALUE;
    limits[limit] = value;
    return CUDA_SUCCESS;
}

DRIVER(cuCtxGetStreamPriorityRange, (int *least, int *greatest))
{
    ENTER_CTX(cuCtxGetStreamPriorityRange, ctx);
    (void)ctx;
    if (least) *least = 0;
    if (greatest) *greatest = -5;
    return CUDA_SUCCESS;
}

DRIVER(cuCtxEnablePeerAccess, (CUcontext peer, unsigned flags))
{
    ENTER_CTX(cuCtxEnablePeerAccess, ctx);
    struct sim_ctx *other = ctx_get(peer);
    if (!other || other == ctx) return CUDA_ERROR_INVALID_CONTEXT;
    if (flags) return CUDA_ERROR_INVALID_VALUE;
    bool *on = &sim.device[ctx->device].peers[other->device];
    if (*on) return CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED;
    *on = true;
    return CUDA_SUCCESS;
}

DRIVER(cuCtxDisablePeerAccess, (CUcontext peer))
{
    ENTER_CTX(cuCtxDisablePeerAccess, ctx);
    struct sim_ctx *other = ctx_get(peer);
    if (!other) return CUDA_ERROR_INVALID_CONTEXT;
    bool *on = &sim.device[ctx->device].peers[other->device];
    if (!*on) return CUDA_ERROR_PEER_ACCESS_NOT_ENABLED;
    *on = false;
    return CUDA_SUCCESS;
}

/* The driver's log: a callback gets a handle and is never called, since nothing is logged here. */
DRIVER(cuLogsRegisterCallback, (void (*callback)(void *, int, char *, size_t), void *user, void **out))
{
    ENTER(cuLogsRegisterCallback);
    static char token;
    (void)user;
    if (!callback) return CUDA_ERROR_INVALID_VALUE;
    if (out) *out = &token;
    return CUDA_SUCCESS;
}

DRIVER(cuLogsUnregisterCallback, (void *handle))
{
    ENTER(cuLogsUnregisterCallback);
    return handle ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}
