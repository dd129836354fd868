/* SPDX-License-Identifier: Apache-2.0 */
/* Entry points of copies and fills: what they check at once, and what they hand to a stream. */
#include "sim/driver/driver.h"

#include <stdlib.h>
#include <string.h>

/* Host memory that the device does not know is copied away before an asynchronous call returns. */
static bool pageable_locked(uintptr_t va)
{
    return !sim_range_find_locked(va) && !sim_host_find_locked(va);
}

static void note_exchange_locked(const struct sim_op *op)
{
    bool to_device = sim_range_find_locked(op->u.copy.dst), from_device = sim_range_find_locked(op->u.copy.src);
    if (to_device != from_device) sim_values_exchanged_locked(from_device, op->u.copy.bytes * op->u.copy.rows);
}

/* `wait`: the call returns when the copy is done. */
static CUresult submit_copy(struct sim_ctx *ctx, CUstream handle, struct sim_op op, bool wait)
{
    struct sim_stream *stream;
    if (!op.u.copy.bytes || !op.u.copy.rows) return CUDA_SUCCESS;
    if (!op.u.copy.dst || !op.u.copy.src) return CUDA_ERROR_INVALID_VALUE;
    sim_lock();
    CUresult result = sim_stream_get_locked(ctx, handle, &stream);
    if (result == CUDA_SUCCESS && wait) result = sim_capture_unsafe_locked();
    if (result != CUDA_SUCCESS) goto done;
    bool queued = sim_config_get()->adversarial || !sim_stream_idle_locked(stream);
    bool back = pageable_locked(op.u.copy.dst);
    if (queued && !wait && !stream->capture && op.u.copy.rows == 1 && pageable_locked(op.u.copy.src)) {
        op.u.copy.staging = malloc(op.u.copy.bytes);
        if (op.u.copy.staging) memcpy(op.u.copy.staging, (const void *)op.u.copy.src, op.u.copy.bytes);
        else wait = true;
    }
    note_exchange_locked(&op);
    result = sim_submit_locked(stream, &op);
    if (result == CUDA_SUCCESS && (wait || back) && !stream->capture) {
        struct sim_clock seen = {0};
        sim_clock_join(&seen, &stream->clock);
        sim_wait_until_locked(stream, stream->submitted);
        if (wait) sim_host_knows_locked(&seen);
        sim_clock_clear(&seen);
        result = ctx->sticky;
    }
done:
    sim_unlock();
    return result;
}

static struct sim_op copy_op(uintptr_t dst, uintptr_t src, size_t bytes, bool plain)
{
    return (struct sim_op){.kind = SIM_OP_COPY, .u.copy = {dst, src, bytes, 1, 0, 0, NULL, plain, false}};
}

/* Between two devices, whether or not one may use the other's memory. */
static struct sim_op peer_op(uintptr_t dst, uintptr_t src, size_t bytes, bool plain)
{
    struct sim_op op = copy_op(dst, src, bytes, plain);
    op.u.copy.peers = true;
    return op;
}

/* A pointer that must be device memory but is none is refused at once, not at execution. */
static bool device_known(CUdeviceptr va)
{
    sim_lock();
    bool known = sim_range_find_locked((uintptr_t)va) != NULL || sim_host_find_locked((uintptr_t)va) != NULL;
    sim_unlock();
    return known;
}

DRIVER(cuMemcpy, (CUdeviceptr dst, CUdeviceptr src, size_t bytes))
{
    ENTER_CTX(cuMemcpy, ctx);
    return submit_copy(ctx, NULL, copy_op((uintptr_t)dst, (uintptr_t)src, bytes, true), true);
}

DRIVER(cuMemcpyAsync, (CUdeviceptr dst, CUdeviceptr src, size_t bytes, CUstream stream))
{
    ENTER_CTX(cuMemcpyAsync, ctx);
    return submit_copy(ctx, stream, copy_op((uintptr_t)dst, (uintptr_t)src, bytes, false), false);
}

DRIVER(cuMemcpyHtoD_v2, (CUdeviceptr dst, const void *src, size_t bytes))
{
    ENTER_CTX(cuMemcpyHtoD, ctx);
    if (bytes && !device_known(dst)) return CUDA_ERROR_INVALID_VALUE;
    return submit_copy(ctx, NULL, copy_op((uintptr_t)dst, (uintptr_t)src, bytes, true), true);
}

DRIVER(cuMemcpyDtoH_v2, (void *dst, CUdeviceptr src, size_t bytes))
{
    ENTER_CTX(cuMemcpyDtoH, ctx);
    if (bytes && !device_known(src)) return CUDA_ERROR_INVALID_VALUE;
    return submit_copy(ctx, NULL, copy_op((uintptr_t)dst, (uintptr_t)src, bytes, true), true);
}

DRIVER(cuMemcpyDtoD_v2, (CUdeviceptr dst, CUdeviceptr src, size_t bytes))
{
    ENTER_CTX(cuMemcpyDtoD, ctx);
    if (bytes && (!device_known(src) || !device_known(dst))) return CUDA_ERROR_INVALID_VALUE;
    return submit_copy(ctx, NULL, copy_op((uintptr_t)dst, (uintptr_t)src, bytes, true), false);
}

DRIVER(cuMemcpyHtoDAsync_v2, (CUdeviceptr dst, const void *src, size_t bytes, CUstream stream))
{
    ENTER_CTX(cuMemcpyHtoDAsync, ctx);
    if (bytes && !device_known(dst)) return CUDA_ERROR_INVALID_VALUE;
    return submit_copy(ctx, stream, copy_op((uintptr_t)dst, (uintptr_t)src, bytes, false), false);
}

DRIVER(cuMemcpyDtoHAsync_v2, (void *dst, CUdeviceptr src, size_t bytes, CUstream stream))
{
    ENTER_CTX(cuMemcpyDtoHAsync, ctx);
    if (bytes && !device_known(src)) return CUDA_ERROR_INVALID_VALUE;
    return submit_copy(ctx, stream, copy_op((uintptr_t)dst, (uintptr_t)src, bytes, false), false);
}

DRIVER(cuMemcpyDtoDAsync_v2, (CUdeviceptr dst, CUdeviceptr src, size_t bytes, CUstream stream))
{
    ENTER_CTX(cuMemcpyDtoDAsync, ctx);
    if (bytes && (!device_known(src) || !device_known(dst))) return CUDA_ERROR_INVALID_VALUE;
    return submit_copy(ctx, stream, copy_op((uintptr_t)dst, (uintptr_t)src, bytes, false), false);
}

DRIVER(cuMemcpyPeer, (CUdeviceptr dst, CUcontext dst_ctx, CUdeviceptr src, CUcontext src_ctx, size_t bytes))
{
    ENTER_CTX(cuMemcpyPeer, ctx);
    (void)dst_ctx, (void)src_ctx;
    return submit_copy(ctx, NULL, peer_op((uintptr_t)dst, (uintptr_t)src, bytes, true), true);
}

DRIVER(cuMemcpyPeerAsync,
       (CUdeviceptr dst, CUcontext dst_ctx, CUdeviceptr src, CUcontext src_ctx, size_t bytes, CUstream stream))
{
    ENTER_CTX(cuMemcpyPeerAsync, ctx);
    (void)dst_ctx, (void)src_ctx;
    return submit_copy(ctx, stream, peer_op((uintptr_t)dst, (uintptr_t)src, bytes, false), false);
}

static CUresult copy_2d(struct sim_ctx *ctx, const CUDA_MEMCPY2D *c, CUstream stream, bool plain)
{
    if (!c || c->srcMemoryType == CU_MEMORYTYPE_ARRAY || c->dstMemoryType == CU_MEMORYTYPE_ARRAY)
        return c ? CUDA_ERROR_NOT_SUPPORTED : CUDA_ERROR_INVALID_VALUE;
    if (c->Height > 1 && (c->srcPitch < c->WidthInBytes || c->dstPitch < c->WidthInBytes))
        return CUDA_ERROR_INVALID_VALUE;
    uintptr_t src = c->srcMemoryType == CU_MEMORYTYPE_HOST ? (uintptr_t)c->srcHost : (uintptr_t)c->srcDevice;
    uintptr_t dst = c->dstMemoryType == CU_MEMORYTYPE_HOST ? (uintptr_t)c->dstHost : (uintptr_t)c->dstDevice;
    struct sim_op op = copy_op(dst + c->dstY * c->dstPitch + c->dstXInBytes,
                               src + c->srcY * c->srcPitch + c->srcXInBytes, c->WidthInBytes, plain);
    op.u.copy.rows = c->Height;
    op.u.copy.dst_pitch = c->dstPitch;
    op.u.copy.src_pitch = c->srcPitch;
    return submit_copy(ctx, stream, op, plain);
}

DRIVER(cuMemcpy2D_v2, (const CUDA_MEMCPY2D *copy))
{
    ENTER_CTX(cuMemcpy2D, ctx);
    return copy_2d(ctx, copy, NULL, true);
}

DRIVER(cuMemcpy2DAsync_v2, (const CUDA_MEMCPY2D *copy, CUstream stream))
{
    ENTER_CTX(cuMemcpy2DAsync, ctx);
    return copy_2d(ctx, copy, stream, false);
}

/* ---- fills ---- */

static CUresult fill(struct sim_ctx *ctx, CUstream handle, struct sim_op op)
{
    if (!op.u.fill.count || !op.u.fill.rows) return CUDA_SUCCESS;
    if (op.u.fill.va % op.u.fill.width || !device_known(op.u.fill.va)) return CUDA_ERROR_INVALID_VALUE;
    struct sim_stream *stream;
    sim_lock();
    CUresult result = sim_stream_get_locked(ctx, handle, &stream);
    if (result == CUDA_SUCCESS && op.u.fill.plain) result = sim_capture_unsafe_locked();
    if (result == CUDA_SUCCESS) result = sim_submit_locked(stream, &op);
    sim_unlock();
    return result;
}

static struct sim_op fill_op(CUdeviceptr va, uint32_t value, unsigned width, size_t count, bool plain)
{
    return (struct sim_op){.kind = SIM_OP_FILL, .u.fill = {(uintptr_t)va, value, width, count, 1, 0, plain}};
}

#define FILLS(X) X(8, 1, unsigned char) X(16, 2, unsigned short) X(32, 4, unsigned int)
#define X(bits, width, type)                                                                                   \
    DRIVER(cuMemsetD##bits##_v2, (CUdeviceptr va, type value, size_t count))                                   \
    {                                                                                                          \
        ENTER_CTX(cuMemsetD##bits, ctx);                                                                       \
        return fill(ctx, NULL, fill_op(va, value, width, count, true));                                        \
    }                                                                                                          \
    DRIVER(cuMemsetD##bits##Async, (CUdeviceptr va, type value, size_t count, CUstream stream))                \
    {                                                                                                          \
        ENTER_CTX(cuMemsetD##bits##Async, ctx);                                                                \
        return fill(ctx, stream, fill_op(va, value, width, count, false));                                     \
    }                                                                                                          \
    DRIVER(cuMemsetD2D##bits##_v2, (CUdeviceptr va, size_t pitch, type value, size_t count, size_t rows))      \
    {                                                                                                          \
        ENTER_CTX(cuMemsetD2D##bits, ctx);                                                                     \
        struct sim_op op = fill_op(va, value, width, count, true);                                             \
        op.u.fill.rows = rows;                                                                                 \
        op.u.fill.pitch = pitch;                                                                               \
        return fill(ctx, NULL, op);                                                                            \
    }                                                                                                          \
    DRIVER(cuMemsetD2D##bits##Async,                                                                           \
           (CUdeviceptr va, size_t pitch, type value, size_t count, size_t rows, CUstream stream))             \
    {                                                                                                          \
        ENTER_CTX(cuMemsetD2D##bits##Async, ctx);                                                              \
        struct sim_op op = fill_op(va, value, width, count, false);                                            \
        op.u.fill.rows = rows;                                                                                 \
        op.u.fill.pitch = pitch;                                                                               \
        return fill(ctx, stream, op);                                                                          \
    }
FILLS(X)
#undef X
