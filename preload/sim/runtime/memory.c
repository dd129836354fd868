/* SPDX-License-Identifier: Apache-2.0 */
/* Memory management of the runtime: allocation, pools and what it says about pointers. */
#include "sim/runtime/runtime.h"

#include <string.h>

static CUdeviceptr address(const void *pointer)
{
    return (CUdeviceptr)(uintptr_t)pointer;
}

/* Size 0 succeeds and yields a null pointer; outputs are written on success only. */
RUNTIME(cudaMalloc, (void **out, size_t bytes))
{
    BEGIN_CTX(cudaMalloc);
    CUdeviceptr va = 0;
    if (!out) return sim_fail(cudaErrorInvalidValue);
    CUresult result = bytes ? drv->cuMemAlloc(&va, bytes) : CUDA_SUCCESS;
    if (result == CUDA_SUCCESS) *out = (void *)(uintptr_t)va;
    return sim_return(result);
}

RUNTIME(cudaFree, (void *pointer))
{
    BEGIN_CTX(cudaFree);
    return pointer ? sim_return(drv->cuMemFree(address(pointer))) : cudaSuccess;
}

RUNTIME(cudaMallocPitch, (void **out, size_t *pitch, size_t width, size_t height))
{
    BEGIN_CTX(cudaMallocPitch);
    CUdeviceptr va = 0;
    size_t row = 0;
    if (!out || !pitch) return sim_fail(cudaErrorInvalidValue);
    CUresult result = width && height ? drv->cuMemAllocPitch(&va, &row, width, height, 4) : CUDA_SUCCESS;
    if (result != CUDA_SUCCESS) return sim_return(result);
    *out = (void *)(uintptr_t)va;
    *pitch = row;
    return cudaSuccess;
}

RUNTIME(cudaMalloc3D, (cudaPitchedPtr * out, cudaExtent extent))
{
    if (!out) return sim_fail(cudaErrorInvalidValue);
    void *pointer;
    size_t pitch;
    if (extent.depth && extent.height > SIZE_MAX / extent.depth) return sim_fail(cudaErrorMemoryAllocation);
    cudaError_t error = cudaMallocPitch(&pointer, &pitch, extent.width, extent.height * extent.depth);
    if (error == cudaSuccess) *out = (cudaPitchedPtr){pointer, pitch, extent.width, extent.height};
    return error;
}

RUNTIME(cudaMallocManaged, (void **out, size_t bytes, unsigned flags))
{
    BEGIN_CTX(cudaMallocManaged);
    CUdeviceptr va = 0;
    if (!out || !bytes) return sim_fail(cudaErrorInvalidValue);
    CUresult result = drv->cuMemAllocManaged(&va, bytes, flags);
    if (result == CUDA_SUCCESS) *out = (void *)(uintptr_t)va;
    return sim_return(result);
}

RUNTIME(cudaMemGetInfo, (size_t *free_bytes, size_t *total_bytes))
{
    BEGIN_CTX(cudaMemGetInfo);
    return sim_return(drv->cuMemGetInfo(free_bytes, total_bytes));
}

/* ---- stream-ordered ---- */

RUNTIME(cudaMallocAsync, (void **out, size_t bytes, cudaStream_t stream))
{
    BEGIN_CTX(cudaMallocAsync);
    CUdeviceptr va = 0;
    if (!out) return sim_fail(cudaErrorInvalidValue);
    CUresult result = bytes ? drv->cuMemAllocAsync(&va, bytes, stream) : CUDA_SUCCESS;
    if (result == CUDA_SUCCESS) *out = (void *)(uintptr_t)va;
    return sim_return(result);
}

RUNTIME(cudaFreeAsync, (void *pointer, cudaStream_t stream))
{
    BEGIN_CTX(cudaFreeAsync);
    return pointer ? sim_return(drv->cuMemFreeAsync(address(pointer), stream)) : cudaSuccess;
}

RUNTIME(cudaMallocFromPoolAsync, (void **out, size_t bytes, cudaMemPool_t pool, cudaStream_t stream))
{
    BEGIN_CTX(cudaMallocFromPoolAsync);
    CUdeviceptr va = 0;
    if (!out) return sim_fail(cudaErrorInvalidValue);
    CUresult result = bytes ? drv->cuMemAllocFromPoolAsync(&va, bytes, pool, stream) : CUDA_SUCCESS;
    if (result == CUDA_SUCCESS) *out = (void *)(uintptr_t)va;
    return sim_return(result);
}

static cudaStream_t own(cudaStream_t stream)
{
    return stream ? stream : CU_STREAM_PER_THREAD;
}

RUNTIME(cudaMallocAsync_ptsz, (void **out, size_t bytes, cudaStream_t stream))
{
    return cudaMallocAsync(out, bytes, own(stream));
}

RUNTIME(cudaFreeAsync_ptsz, (void *pointer, cudaStream_t stream))
{
    return cudaFreeAsync(pointer, own(stream));
}

RUNTIME(cudaMallocFromPoolAsync_ptsz, (void **out, size_t bytes, cudaMemPool_t pool, cudaStream_t stream))
{
    return cudaMallocFromPoolAsync(out, bytes, pool, own(stream));
}

#define FORWARD(name, driver_name, params, arguments)      \
    RUNTIME(name, params)                                  \
    {                                                      \
        BEGIN(name);                                       \
        return sim_return(drv->driver_name arguments);     \
    }
FORWARD(cudaDeviceGetDefaultMemPool, cuDeviceGetDefaultMemPool, (cudaMemPool_t * pool, int device), (pool, device))
FORWARD(cudaDeviceGetMemPool, cuDeviceGetMemPool, (cudaMemPool_t * pool, int device), (pool, device))
FORWARD(cudaDeviceSetMemPool, cuDeviceSetMemPool, (int device, cudaMemPool_t pool), (device, pool))
FORWARD(cudaMemPoolCreate, cuMemPoolCreate, (cudaMemPool_t * pool, const cudaMemPoolProps *props), (pool, props))
FORWARD(cudaMemPoolDestroy, cuMemPoolDestroy, (cudaMemPool_t pool), (pool))
FORWARD(cudaMemPoolTrimTo, cuMemPoolTrimTo, (cudaMemPool_t pool, size_t keep), (pool, keep))
FORWARD(cudaMemPoolGetAttribute, cuMemPoolGetAttribute, (cudaMemPool_t pool, int attribute, void *value),
        (pool, attribute, value))
FORWARD(cudaMemPoolSetAttribute, cuMemPoolSetAttribute, (cudaMemPool_t pool, int attribute, void *value),
        (pool, attribute, value))
FORWARD(cudaMemPoolSetAccess, cuMemPoolSetAccess, (cudaMemPool_t pool, const cudaMemAccessDesc *desc, size_t count),
        (pool, desc, count))
FORWARD(cudaMemPoolGetAccess, cuMemPoolGetAccess, (int *flags, cudaMemPool_t pool, cudaMemLocation *location),
        (flags, pool, location))
FORWARD(cudaDeviceGetGraphMemAttribute, cuDeviceGetGraphMemAttribute, (int device, int attribute, void *value),
        (device, attribute, value))
FORWARD(cudaDeviceSetGraphMemAttribute, cuDeviceSetGraphMemAttribute, (int device, int attribute, void *value),
        (device, attribute, value))
FORWARD(cudaDeviceGraphMemTrim, cuDeviceGraphMemTrim, (int device), (device))

/* ---- host memory ---- */

RUNTIME(cudaHostAlloc, (void **out, size_t bytes, unsigned flags))
{
    BEGIN_CTX(cudaHostAlloc);
    void *memory = NULL;
    if (!out) return sim_fail(cudaErrorInvalidValue);
    CUresult result = bytes ? drv->cuMemHostAlloc(&memory, bytes, flags) : CUDA_SUCCESS;
    if (result == CUDA_SUCCESS) *out = memory;
    return sim_return(result);
}

RUNTIME(cudaMallocHost, (void **out, size_t bytes))
{
    return cudaHostAlloc(out, bytes, 0);
}

RUNTIME(cudaFreeHost, (void *memory))
{
    BEGIN_CTX(cudaFreeHost);
    return memory ? sim_return(drv->cuMemFreeHost(memory)) : cudaSuccess;
}

RUNTIME(cudaHostRegister, (void *memory, size_t bytes, unsigned flags))
{
    BEGIN_CTX(cudaHostRegister);
    return sim_return(drv->cuMemHostRegister(memory, bytes, flags));
}

RUNTIME(cudaHostUnregister, (void *memory))
{
    BEGIN_CTX(cudaHostUnregister);
    return sim_return(drv->cuMemHostUnregister(memory));
}

RUNTIME(cudaHostGetDevicePointer, (void **out, void *memory, unsigned flags))
{
    BEGIN_CTX(cudaHostGetDevicePointer);
    CUdeviceptr va = 0;
    if (!out) return sim_fail(cudaErrorInvalidValue);
    CUresult result = drv->cuMemHostGetDevicePointer(&va, memory, flags);
    if (result == CUDA_SUCCESS) *out = (void *)(uintptr_t)va;
    return sim_return(result);
}

RUNTIME(cudaHostGetFlags, (unsigned *flags, void *memory))
{
    BEGIN_CTX(cudaHostGetFlags);
    return sim_return(drv->cuMemHostGetFlags(flags, memory));
}

/* ---- pointers ---- */

/* CUDA 12 has no reserved words at the end, so none are written. */
RUNTIME(cudaPointerGetAttributes, (cudaPointerAttributes * out, const void *pointer))
{
    BEGIN_CTX(cudaPointerGetAttributes);
    if (!out) return sim_fail(cudaErrorInvalidValue);
    int type = 0, managed = 0, device = -2;
    void *on_device = NULL, *on_host = NULL;
    int attributes[] = {CU_POINTER_ATTRIBUTE_MEMORY_TYPE, CU_POINTER_ATTRIBUTE_IS_MANAGED,
                        CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, CU_POINTER_ATTRIBUTE_DEVICE_POINTER,
                        CU_POINTER_ATTRIBUTE_HOST_POINTER};
    void *data[] = {&type, &managed, &device, &on_device, &on_host};
    CUresult result = drv->cuPointerGetAttributes(5, attributes, data, address(pointer));
    if (result != CUDA_SUCCESS) return sim_return(result);
    union {
        const void *in;
        void *out;
    } same = {pointer}; /* an unknown pointer is its own host pointer, and loses its const here */
    out->type = managed                          ? cudaMemoryTypeManaged
                : type == CU_MEMORYTYPE_DEVICE   ? cudaMemoryTypeDevice
                : type == CU_MEMORYTYPE_HOST     ? cudaMemoryTypeHost
                                                 : cudaMemoryTypeUnregistered;
    out->device = device;
    out->devicePointer = on_device;
    out->hostPointer = type ? on_host : same.out;
    return cudaSuccess;
}

/* Memory shared with other processes is not simulated. */
RUNTIME(cudaIpcGetMemHandle, (cudaIpcMemHandle_t * handle, void *pointer))
{
    BEGIN_CTX(cudaIpcGetMemHandle);
    (void)drv;
    return sim_fail(handle && pointer ? cudaErrorNotSupported : cudaErrorInvalidValue);
}
