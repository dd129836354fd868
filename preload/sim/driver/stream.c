/* SPDX-License-Identifier: Apache-2.0 */
/* Stream entry points: creation, queries, waits and host functions. */
#include "sim/driver/driver.h"

struct sim_stream *sim_stream_new_locked(struct sim_ctx *ctx, unsigned flags, int priority)
{
    struct sim_stream *stream = sim_object_new_locked(SIM_STREAM);
    if (!stream) return NULL;
    stream->ctx = ctx;
    stream->flags = flags;
    stream->priority = priority;
    stream->id = ++sim.next_id;
    stream->refs = 1;
    stream->slot = sim_slot_new_locked();
    stream->submitted = stream->completed = sim_clock_at(&sim.host, stream->slot);
    stream->random = sim_config_get()->seed * 0x9e3779b97f4a7c15u + stream->id;
    pthread_cond_init(&stream->wake, NULL);
    stream->next = ctx->streams;
    ctx->streams = stream;
    stream->listed = true;
    return stream;
}

void sim_stream_end_locked(struct sim_stream *stream)
{
    if (!stream->listed) return;
    struct sim_ctx *ctx = stream->ctx;
    struct sim_stream **link = &ctx->streams;
    while (*link != stream) link = &(*link)->next;
    *link = stream->next;
    stream->listed = false;
    sim_clock_join(&ctx->ended, &stream->clock);
    if (!(stream->flags & CU_STREAM_NON_BLOCKING)) sim_clock_join(&ctx->legacy->clock, &stream->clock);
}

void sim_stream_unref_locked(struct sim_stream *stream)
{
    if (--stream->refs) return;
    sim_slot_free_locked(stream->slot, stream->submitted);
    sim_clock_clear(&stream->clock);
    pthread_cond_destroy(&stream->wake);
    sim_object_free_locked(stream);
}

static __thread struct {
    struct sim_ctx *ctx;
    uint64_t ctx_id;
    struct sim_stream *stream;
} own; /* the calling thread's default stream, in the context that asked last */

static struct sim_stream *per_thread_locked(struct sim_ctx *ctx)
{
    if (own.ctx != ctx || own.ctx_id != ctx->id) {
        own.stream = sim_stream_new_locked(ctx, CU_STREAM_DEFAULT, 0);
        own.ctx = ctx;
        own.ctx_id = ctx->id;
    }
    return own.stream;
}

struct sim_stream *sim_ctx_helper_locked(struct sim_ctx *ctx)
{
    if (!ctx->helper) ctx->helper = sim_stream_new_locked(ctx, CU_STREAM_NON_BLOCKING, 0);
    return ctx->helper;
}

CUresult sim_stream_get_locked(struct sim_ctx *ctx, CUstream handle, struct sim_stream **out)
{
    if (!handle || handle == CU_STREAM_LEGACY) *out = ctx->legacy;
    else if (handle == CU_STREAM_PER_THREAD) *out = per_thread_locked(ctx);
    else *out = sim_object_get_locked(SIM_STREAM, handle);
    if (*out && !(*out)->destroyed) return CUDA_SUCCESS;
    return handle == CU_STREAM_PER_THREAD ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_ERROR_INVALID_HANDLE;
}

static CUresult create(struct sim_ctx *ctx, CUstream *out, unsigned flags, int priority)
{
    if (!out || flags > CU_STREAM_NON_BLOCKING) return CUDA_ERROR_INVALID_VALUE;
    if (priority > 0) priority = 0;
    if (priority < -5) priority = -5;
    sim_lock();
    struct sim_stream *stream = sim_stream_new_locked(ctx, flags, priority);
    if (stream) *out = (CUstream)(void *)stream;
    sim_unlock();
    return stream ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

DRIVER(cuStreamCreate, (CUstream * out, unsigned flags))
{
    ENTER_CTX(cuStreamCreate, ctx);
    return create(ctx, out, flags, 0);
}

DRIVER(cuStreamCreateWithPriority, (CUstream * out, unsigned flags, int priority))
{
    ENTER_CTX(cuStreamCreateWithPriority, ctx);
    return create(ctx, out, flags, priority);
}

/* Returns at once; the stream's resources go when its work is done. */
DRIVER(cuStreamDestroy_v2, (CUstream handle))
{
    ENTER_CTX(cuStreamDestroy, ctx);
    sim_lock();
    struct sim_stream *stream;
    CUresult result = sim_stream_get_locked(ctx, handle, &stream);
    bool everyones = result == CUDA_SUCCESS && (stream == stream->ctx->legacy || handle == CU_STREAM_PER_THREAD);
    if (everyones) result = CUDA_ERROR_INVALID_HANDLE; /* default streams live as long as their context */
    if (result == CUDA_SUCCESS && stream->capture) {
        sim_capture_spoil_locked(stream->capture);
        result = CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    }
    if (result == CUDA_SUCCESS) {
        stream->destroyed = true;
        if (sim_stream_idle_locked(stream)) sim_stream_end_locked(stream); /* else its worker does */
        if (stream->worker) pthread_cond_signal(&stream->wake);
        sim_stream_unref_locked(stream);
    }
    sim_unlock();
    return result;
}

DRIVER(cuStreamQuery, (CUstream handle))
{
    ENTER_CTX(cuStreamQuery, ctx);
    sim_lock();
    struct sim_stream *stream;
    CUresult result = sim_stream_get_locked(ctx, handle, &stream);
    if (result == CUDA_SUCCESS) result = sim_capture_refuse_locked(stream);
    if (result == CUDA_SUCCESS) {
        if (sim_stream_idle_locked(stream)) sim_host_knows_locked(&stream->clock);
        else result = CUDA_ERROR_NOT_READY;
        if (stream->ctx->sticky) result = stream->ctx->sticky;
    }
    sim_unlock();
    return result;
}

DRIVER(cuStreamSynchronize, (CUstream handle))
{
    ENTER_CTX(cuStreamSynchronize, ctx);
    sim_lock();
    struct sim_stream *stream;
    CUresult result = sim_stream_get_locked(ctx, handle, &stream);
    if (result == CUDA_SUCCESS) result = sim_capture_refuse_locked(stream);
    if (result == CUDA_SUCCESS && stream == ctx->legacy) {
        /* The legacy stream stands behind every blocking stream. */
        const struct sim_op op = {.kind = SIM_OP_EMPTY};
        result = sim_submit_locked(stream, &op);
    }
    if (result == CUDA_SUCCESS) {
        struct sim_clock seen = {0};
        sim_clock_join(&seen, &stream->clock);
        struct sim_ctx *owner = stream->ctx;
        sim_wait_until_locked(stream, stream->submitted);
        sim_host_knows_locked(&seen);
        sim_clock_clear(&seen);
        sim_pool_relax_locked();
        sim_breathe_locked(80);
        result = owner->sticky;
    }
    sim_unlock();
    return result;
}

static CUresult get(CUstream handle, struct sim_stream **out)
{
    struct sim_ctx *ctx;
    CUresult result = sim_ctx_current(&ctx);
    if (result != CUDA_SUCCESS) return result;
    sim_lock();
    result = sim_stream_get_locked(ctx, handle, out);
    sim_unlock();
    return result;
}

DRIVER(cuStreamGetPriority, (CUstream handle, int *out))
{
    ENTER(cuStreamGetPriority);
    struct sim_stream *stream;
    CUresult result = get(handle, &stream);
    if (result == CUDA_SUCCESS && out) *out = stream->priority;
    return out ? result : CUDA_ERROR_INVALID_VALUE;
}

DRIVER(cuStreamGetFlags, (CUstream handle, unsigned *out))
{
    ENTER(cuStreamGetFlags);
    struct sim_stream *stream;
    CUresult result = get(handle, &stream);
    if (result == CUDA_SUCCESS && out) *out = stream->flags;
    return out ? result : CUDA_ERROR_INVALID_VALUE;
}

DRIVER(cuStreamGetId, (CUstream handle, unsigned long long *out))
{
    ENTER(cuStreamGetId);
    struct sim_stream *stream;
    CUresult result = get(handle, &stream);
    if (result == CUDA_SUCCESS && out) *out = stream->id;
    return out ? result : CUDA_ERROR_INVALID_VALUE;
}

DRIVER(cuStreamGetCtx, (CUstream handle, CUcontext *out))
{
    ENTER(cuStreamGetCtx);
    struct sim_stream *stream;
    CUresult result = get(handle, &stream);
    if (result == CUDA_SUCCESS && out) *out = (CUcontext)(void *)stream->ctx;
    return out ? result : CUDA_ERROR_INVALID_VALUE;
}

DRIVER(cuStreamGetDevice, (CUstream handle, CUdevice *out))
{
    ENTER(cuStreamGetDevice);
    struct sim_stream *stream;
    CUresult result = get(handle, &stream);
    if (result == CUDA_SUCCESS && out) *out = stream->ctx->device;
    return out ? result : CUDA_ERROR_INVALID_VALUE;
}

static CUresult submit(struct sim_ctx *ctx, CUstream handle, const struct sim_op *op)
{
    sim_lock();
    struct sim_stream *stream;
    CUresult result = sim_stream_get_locked(ctx, handle, &stream);
    if (result == CUDA_SUCCESS) result = sim_submit_locked(stream, op);
    sim_unlock();
    return result;
}

DRIVER(cuLaunchHostFunc, (CUstream handle, CUhostFn fn, void *user))
{
    ENTER_CTX(cuLaunchHostFunc, ctx);
    if (!fn) return CUDA_ERROR_INVALID_VALUE;
    const struct sim_op op = {.kind = SIM_OP_HOST, .u.host = {fn, NULL, user}};
    return submit(ctx, handle, &op);
}

DRIVER(cuStreamAddCallback, (CUstream handle, CUstreamCallback callback, void *user, unsigned flags))
{
    ENTER_CTX(cuStreamAddCallback, ctx);
    if (!callback || flags) return CUDA_ERROR_INVALID_VALUE;
    const struct sim_op op = {.kind = SIM_OP_HOST, .u.host = {NULL, callback, user}};
    return submit(ctx, handle, &op);
}

/* Memory operations on a stream write one word: a fill of one element. */
static CUresult write_value(struct sim_ctx *ctx, CUstream handle, CUdeviceptr va, uint64_t value, unsigned words)
{
    CUresult result = CUDA_SUCCESS;
    for (unsigned i = 0; i < words && result == CUDA_SUCCESS; i++) {
        const struct sim_op op = {.kind = SIM_OP_FILL,
                                  .u.fill = {(uintptr_t)va + 4 * i, (uint32_t)(value >> (32 * i)), 4, 1, 1, 0, true}};
        result = submit(ctx, handle, &op);
    }
    return result;
}

DRIVER(cuStreamWriteValue32_v2, (CUstream handle, CUdeviceptr va, uint32_t value, unsigned flags))
{
    ENTER_CTX(cuStreamWriteValue32, ctx);
    (void)flags;
    return write_value(ctx, handle, va, value, 1);
}

DRIVER(cuStreamWriteValue64_v2, (CUstream handle, CUdeviceptr va, uint64_t value, unsigned flags))
{
    ENTER_CTX(cuStreamWriteValue64, ctx);
    (void)flags;
    return write_value(ctx, handle, va, value, 2);
}
