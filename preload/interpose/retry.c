/* SPDX-License-Identifier: Apache-2.0 */
/* Calls beside the served ones that may want device memory of the driver: pitched memory and arrays,
 * streams, graphs, pools, code. When one fails for want of memory while we hold idle chunks, these go
 * back to the driver and the call is made once more. */
#define _GNU_SOURCE
#include "interpose/shim.h"

bool gml_shim_make_room(gml_shim *shim, gml_shim_device *device)
{
    uint64_t released = 0;
    if (device == NULL || gml_shim_state(device) != GML_DEVICE_SERVING || gml_heap_idle_bytes(device->heap) == 0)
        return false;
    gml_status status = gml_heap_trim(device->heap, 0, &released);
    if (status == GML_INTERNAL)
        gml_shim_degrade(shim, gml_status_text(status));
    if (released > 0)
        gml_telemetry_add(&device->block->stats.ladder_other, 1);
    return released > 0;
}

cudaError_t gml_shim_last_error(const gml_real *real)
{
    return real->cudaPeekAtLastError == NULL ? cudaErrorUnknown : real->cudaPeekAtLastError();
}

void gml_shim_forgive(const gml_real *real, cudaError_t before)
{
    if (before == cudaSuccess && real->cudaGetLastError != NULL)
        (void)real->cudaGetLastError();
}

/* `call` once, and once more if that failed for want of memory which we could give back. */
#define TRY_TWICE(shim, device, error, call)                                          \
    cudaError_t error;                                                                \
    do {                                                                              \
        cudaError_t before = gml_shim_last_error(real);                               \
        error = (call);                                                               \
        if (error == cudaErrorMemoryAllocation && gml_shim_make_room(shim, device)) { \
            error = (call);                                                           \
            if (error == cudaSuccess)                                                 \
                gml_shim_forgive(real, before);                                       \
        }                                                                             \
    } while (0)

/* ---- pitched memory: counted as the program's ---- */

cudaError_t cudaMallocPitch(void **out, size_t *pitch, size_t width, size_t height)
{
    GML_HOOK(cudaMallocPitch);
    gml_shim *shim = gml_shim_inside() ? NULL : gml_shim_get();
    if (shim == NULL || out == NULL || pitch == NULL)
        return real->cudaMallocPitch(out, pitch, width, height);
    gml_this_thread.depth++;
    gml_shim_device *device = gml_shim_current(shim, real);
    TRY_TWICE(shim, device, error, real->cudaMallocPitch(out, pitch, width, height));
    gml_telemetry_add(&shim->telemetry->forwarded_calls, 1);
    if (error == cudaSuccess && device != NULL)
        gml_shim_count(shim, device->ordinal, (uintptr_t)*out, *pitch * height);
    gml_this_thread.depth--;
    return error;
}

cudaError_t cudaMalloc3D(cudaPitchedPtr *out, cudaExtent extent)
{
    GML_HOOK(cudaMalloc3D);
    gml_shim *shim = gml_shim_inside() ? NULL : gml_shim_get();
    if (shim == NULL || out == NULL)
        return real->cudaMalloc3D(out, extent);
    gml_this_thread.depth++;
    gml_shim_device *device = gml_shim_current(shim, real);
    TRY_TWICE(shim, device, error, real->cudaMalloc3D(out, extent));
    gml_telemetry_add(&shim->telemetry->forwarded_calls, 1);
    if (error == cudaSuccess && device != NULL)
        gml_shim_count(shim, device->ordinal, (uintptr_t)out->ptr, out->pitch * extent.height * extent.depth);
    gml_this_thread.depth--;
    return error;
}

/* ---- everything else: not counted ---- */

/* A program that has not allocated yet has nothing of ours to give back. */
#define RETRY(name, parameters, arguments)                                      \
    cudaError_t name parameters                                                 \
    {                                                                           \
        GML_HOOK(name);                                                         \
        gml_shim *shim = gml_shim_inside() ? NULL : gml_shim_peek();            \
        if (shim == NULL)                                                       \
            return real->name arguments;                                        \
        gml_this_thread.depth++;                                                \
        TRY_TWICE(shim, gml_shim_current(shim, real), error, real->name arguments); \
        gml_this_thread.depth--;                                                \
        return error;                                                           \
    }

RETRY(cudaMallocManaged, (void **out, size_t bytes, unsigned int flags), (out, bytes, flags))
RETRY(cudaMallocArray, (void **out, const void *format, size_t width, size_t height, unsigned int flags),
      (out, format, width, height, flags))
RETRY(cudaMalloc3DArray, (void **out, const void *format, cudaExtent extent, unsigned int flags),
      (out, format, extent, flags))
RETRY(cudaMallocMipmappedArray,
      (void **out, const void *format, cudaExtent extent, unsigned int levels, unsigned int flags),
      (out, format, extent, levels, flags))
RETRY(cudaStreamCreate, (cudaStream_t * out), (out))
RETRY(cudaStreamCreateWithFlags, (cudaStream_t * out, unsigned int flags), (out, flags))
RETRY(cudaStreamCreateWithPriority, (cudaStream_t * out, unsigned int flags, int priority), (out, flags, priority))
RETRY(cudaMemPoolCreate, (cudaMemPool_t * out, const void *properties), (out, properties))
RETRY(cudaDeviceSetLimit, (int limit, size_t value), (limit, value))
/* CUDA 11 has five parameters here, CUDA 12 three: what is passed on for nothing does no harm. */
RETRY(cudaGraphInstantiate, (void *out, cudaGraph_t graph, uintptr_t third, uintptr_t fourth, uintptr_t fifth),
      (out, graph, third, fourth, fifth))
RETRY(cudaGraphInstantiateWithFlags, (void *out, cudaGraph_t graph, unsigned long long flags), (out, graph, flags))
RETRY(cudaGraphInstantiateWithParams, (void *out, cudaGraph_t graph, void *parameters), (out, graph, parameters))
RETRY(cudaGraphInstantiateWithParams_ptsz, (void *out, cudaGraph_t graph, void *parameters), (out, graph, parameters))
RETRY(cudaGraphUpload, (void *graph, cudaStream_t stream), (graph, stream))
RETRY(cudaGraphUpload_ptsz, (void *graph, cudaStream_t stream), (graph, stream))
RETRY(cudaGraphLaunch, (void *graph, cudaStream_t stream), (graph, stream))
RETRY(cudaGraphLaunch_ptsz, (void *graph, cudaStream_t stream), (graph, stream))
RETRY(cudaLibraryLoadData,
      (void *out, const void *code, void *jit, void **jit_values, unsigned int jit_count, void *options,
       void **values, unsigned int count),
      (out, code, jit, jit_values, jit_count, options, values, count))
RETRY(cudaLibraryLoadFromFile,
      (void *out, const char *file, void *jit, void **jit_values, unsigned int jit_count, void *options,
       void **values, unsigned int count),
      (out, file, jit, jit_values, jit_count, options, values, count))
