/* SPDX-License-Identifier: Apache-2.0 */
/* Copies and fills of the runtime. */
#include "sim/runtime/runtime.h"

static CUdeviceptr address(const void *pointer)
{
    return (CUdeviceptr)(uintptr_t)pointer;
}

static void *writable(const void *pointer)
{
    return (void *)(uintptr_t)pointer;
}

RUNTIME(cudaMemcpy, (void *dst, const void *src, size_t bytes, int kind))
{
    BEGIN_CTX(cudaMemcpy);
    if (!bytes) return cudaSuccess;
    switch (kind) {
    case cudaMemcpyHostToDevice: return sim_return(drv->cuMemcpyHtoD(address(dst), src, bytes));
    case cudaMemcpyDeviceToHost: return sim_return(drv->cuMemcpyDtoH(dst, address(src), bytes));
    case cudaMemcpyDeviceToDevice: return sim_return(drv->cuMemcpyDtoD(address(dst), address(src), bytes));
    case cudaMemcpyHostToHost:
    case cudaMemcpyDefault: return sim_return(drv->cuMemcpy(address(dst), address(src), bytes));
    default: return sim_fail(cudaErrorInvalidMemcpyDirection);
    }
}

RUNTIME(cudaMemcpyAsync, (void *dst, const void *src, size_t bytes, int kind, cudaStream_t stream))
{
    BEGIN_CTX(cudaMemcpyAsync);
    if (!bytes) return cudaSuccess;
    switch (kind) {
    case cudaMemcpyHostToDevice: return sim_return(drv->cuMemcpyHtoDAsync(address(dst), src, bytes, stream));
    case cudaMemcpyDeviceToHost: return sim_return(drv->cuMemcpyDtoHAsync(dst, address(src), bytes, stream));
    case cudaMemcpyDeviceToDevice:
        return sim_return(drv->cuMemcpyDtoDAsync(address(dst), address(src), bytes, stream));
    case cudaMemcpyHostToHost:
    case cudaMemcpyDefault: return sim_return(drv->cuMemcpyAsync(address(dst), address(src), bytes, stream));
    default: return sim_fail(cudaErrorInvalidMemcpyDirection);
    }
}

RUNTIME(cudaMemcpyPeer, (void *dst, int dst_device, const void *src, int src_device, size_t bytes))
{
    BEGIN_CTX(cudaMemcpyPeer);
    (void)dst_device, (void)src_device;
    return sim_return(drv->cuMemcpyPeer(address(dst), NULL, address(src), NULL, bytes));
}

RUNTIME(cudaMemcpyPeerAsync,
        (void *dst, int dst_device, const void *src, int src_device, size_t bytes, cudaStream_t stream))
{
    BEGIN_CTX(cudaMemcpyPeerAsync);
    (void)dst_device, (void)src_device;
    return sim_return(drv->cuMemcpyPeerAsync(address(dst), NULL, address(src), NULL, bytes, stream));
}

static CUDA_MEMCPY2D describe(void *dst, size_t dst_pitch, const void *src, size_t src_pitch, size_t width,
                              size_t height)
{
    return (CUDA_MEMCPY2D){.srcMemoryType = CU_MEMORYTYPE_UNIFIED,
                           .srcDevice = address(src),
                           .srcPitch = src_pitch,
                           .dstMemoryType = CU_MEMORYTYPE_UNIFIED,
                           .dstDevice = address(dst),
                           .dstPitch = dst_pitch,
                           .WidthInBytes = width,
                           .Height = height};
}

RUNTIME(cudaMemcpy2D,
        (void *dst, size_t dst_pitch, const void *src, size_t src_pitch, size_t width, size_t height, int kind))
{
    BEGIN_CTX(cudaMemcpy2D);
    if (kind < cudaMemcpyHostToHost || kind > cudaMemcpyDefault) return sim_fail(cudaErrorInvalidMemcpyDirection);
    const CUDA_MEMCPY2D copy = describe(dst, dst_pitch, src, src_pitch, width, height);
    return sim_return(drv->cuMemcpy2D(&copy));
}

RUNTIME(cudaMemcpy2DAsync, (void *dst, size_t dst_pitch, const void *src, size_t src_pitch, size_t width,
                            size_t height, int kind, cudaStream_t stream))
{
    BEGIN_CTX(cudaMemcpy2DAsync);
    if (kind < cudaMemcpyHostToHost || kind > cudaMemcpyDefault) return sim_fail(cudaErrorInvalidMemcpyDirection);
    const CUDA_MEMCPY2D copy = describe(dst, dst_pitch, src, src_pitch, width, height);
    return sim_return(drv->cuMemcpy2DAsync(&copy, stream));
}

/* Device variables have no memory here: kernels, which alone read them, do nothing. */
RUNTIME(cudaMemcpyToSymbol, (const void *symbol, const void *src, size_t bytes, size_t offset, int kind))
{
    BEGIN_CTX(cudaMemcpyToSymbol);
    (void)drv, (void)bytes, (void)offset, (void)kind;
    return symbol && src ? cudaSuccess : sim_fail(cudaErrorInvalidSymbol);
}

RUNTIME(cudaGetSymbolAddress, (void **out, const void *symbol))
{
    BEGIN_CTX(cudaGetSymbolAddress);
    (void)drv;
    if (!out || !symbol) return sim_fail(cudaErrorInvalidSymbol);
    *out = writable(symbol);
    return cudaSuccess;
}

RUNTIME(cudaMemset, (void *dst, int value, size_t bytes))
{
    BEGIN_CTX(cudaMemset);
    return bytes ? sim_return(drv->cuMemsetD8(address(dst), (unsigned char)value, bytes)) : cudaSuccess;
}

RUNTIME(cudaMemsetAsync, (void *dst, int value, size_t bytes, cudaStream_t stream))
{
    BEGIN_CTX(cudaMemsetAsync);
    return bytes ? sim_return(drv->cuMemsetD8Async(address(dst), (unsigned char)value, bytes, stream)) : cudaSuccess;
}

RUNTIME(cudaMemset2D, (void *dst, size_t pitch, int value, size_t width, size_t height))
{
    BEGIN_CTX(cudaMemset2D);
    return sim_return(drv->cuMemsetD2D8(address(dst), pitch, (unsigned char)value, width, height));
}

RUNTIME(cudaMemset2DAsync, (void *dst, size_t pitch, int value, size_t width, size_t height, cudaStream_t stream))
{
    BEGIN_CTX(cudaMemset2DAsync);
    return sim_return(drv->cuMemsetD2D8Async(address(dst), pitch, (unsigned char)value, width, height, stream));
}

static cudaStream_t own(cudaStream_t stream)
{
    return stream ? stream : CU_STREAM_PER_THREAD;
}

RUNTIME(cudaMemcpyAsync_ptsz, (void *dst, const void *src, size_t bytes, int kind, cudaStream_t stream))
{
    return cudaMemcpyAsync(dst, src, bytes, kind, own(stream));
}

RUNTIME(cudaMemsetAsync_ptsz, (void *dst, int value, size_t bytes, cudaStream_t stream))
{
    return cudaMemsetAsync(dst, value, bytes, own(stream));
}
