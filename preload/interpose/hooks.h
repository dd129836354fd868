/* SPDX-License-Identifier: Apache-2.0 */
/* The one list of hooked CUDA runtime symbols: declarations, lookup and documentation come from it. */
#ifndef GML_INTERPOSE_HOOKS_H
#define GML_INTERPOSE_HOOKS_H

#include "cuda/runtime_abi.h"

#define GML_RETRIED "tried again with our idle memory given back, if it fails for want of memory"

/* Calls that may want device memory of the driver (retry.c). */
#define GML_RETRIED_HOOKS(X)                                                                        \
    X(cudaMallocManaged, (void **out, size_t bytes, unsigned int flags), GML_RETRIED)               \
    X(cudaMallocArray, (void **out, const void *format, size_t width, size_t height, unsigned int flags), \
      GML_RETRIED)                                                                                  \
    X(cudaMalloc3DArray, (void **out, const void *format, cudaExtent extent, unsigned int flags), GML_RETRIED) \
    X(cudaMallocMipmappedArray,                                                                     \
      (void **out, const void *format, cudaExtent extent, unsigned int levels, unsigned int flags), GML_RETRIED) \
    X(cudaStreamCreate, (cudaStream_t *out), GML_RETRIED)                                           \
    X(cudaStreamCreateWithFlags, (cudaStream_t *out, unsigned int flags), GML_RETRIED)              \
    X(cudaStreamCreateWithPriority, (cudaStream_t *out, unsigned int flags, int priority), GML_RETRIED) \
    X(cudaMemPoolCreate, (cudaMemPool_t *out, const void *properties), GML_RETRIED)                 \
    X(cudaDeviceSetLimit, (int limit, size_t value), GML_RETRIED)                                   \
    X(cudaGraphInstantiate,                                                                         \
      (void *out, cudaGraph_t graph, uintptr_t third, uintptr_t fourth, uintptr_t fifth), GML_RETRIED) \
    X(cudaGraphInstantiateWithFlags, (void *out, cudaGraph_t graph, unsigned long long flags), GML_RETRIED) \
    X(cudaGraphInstantiateWithParams, (void *out, cudaGraph_t graph, void *parameters), GML_RETRIED) \
    X(cudaGraphInstantiateWithParams_ptsz, (void *out, cudaGraph_t graph, void *parameters), GML_RETRIED) \
    X(cudaGraphUpload, (void *graph, cudaStream_t stream), GML_RETRIED)                             \
    X(cudaGraphUpload_ptsz, (void *graph, cudaStream_t stream), GML_RETRIED)                        \
    X(cudaGraphLaunch, (void *graph, cudaStream_t stream), GML_RETRIED)                             \
    X(cudaGraphLaunch_ptsz, (void *graph, cudaStream_t stream), GML_RETRIED)                        \
    X(cudaLibraryLoadData,                                                                          \
      (void *out, const void *code, void *jit, void **jit_values, unsigned int jit_count, void *options, \
       void **values, unsigned int count), GML_RETRIED)                                             \
    X(cudaLibraryLoadFromFile,                                                                      \
      (void *out, const char *file, void *jit, void **jit_values, unsigned int jit_count, void *options, \
       void **values, unsigned int count), GML_RETRIED)

/* X(name, parameters, what we do). Every function returns cudaError_t. `_ptsz` forms are what programs
 * built with a default stream per thread call. */
#define GML_RUNTIME_HOOKS(X)                                                                        \
    X(cudaMalloc, (void **out, size_t bytes), "served")                                             \
    X(cudaFree, (void *address), "served; unknown pointers forwarded")                              \
    X(cudaMallocAsync, (void **out, size_t bytes, cudaStream_t stream), "served")                   \
    X(cudaMallocAsync_ptsz, (void **out, size_t bytes, cudaStream_t stream), "served")              \
    X(cudaFreeAsync, (void *address, cudaStream_t stream), "served; unknown pointers forwarded")    \
    X(cudaFreeAsync_ptsz, (void *address, cudaStream_t stream), "served; unknown pointers forwarded") \
    X(cudaMallocFromPoolAsync, (void **out, size_t bytes, cudaMemPool_t pool, cudaStream_t stream), \
      "served from a device's default pool; other pools forwarded")                                 \
    X(cudaMallocFromPoolAsync_ptsz, (void **out, size_t bytes, cudaMemPool_t pool, cudaStream_t stream), \
      "served from a device's default pool; other pools forwarded")                                 \
    X(cudaMallocPitch, (void **out, size_t *pitch, size_t width, size_t height),                    \
      "forwarded and counted: the pitch is the driver's to choose")                                 \
    X(cudaMalloc3D, (cudaPitchedPtr * out, cudaExtent extent),                                      \
      "forwarded and counted: the pitch is the driver's to choose")                                 \
    X(cudaMemGetInfo, (size_t *out_free, size_t *out_total), "adjusted: idle chunks count as free") \
    X(cudaDeviceGetDefaultMemPool, (cudaMemPool_t *out_pool, int device), "forwarded, remembered")  \
    X(cudaDeviceSetMemPool, (int device, cudaMemPool_t pool),                                       \
      "forwarded, remembered: requests on a pool of the program's own are forwarded")               \
    X(cudaMemPoolGetAttribute, (cudaMemPool_t pool, int attribute, void *value),                    \
      "default pool: our reserved and used figures")                                                \
    X(cudaMemPoolSetAttribute, (cudaMemPool_t pool, int attribute, void *value),                    \
      "default pool: high marks, release threshold, reuse policy")                                  \
    X(cudaMemPoolTrimTo, (cudaMemPool_t pool, size_t keep_bytes), "default pool: idle chunks released") \
    X(cudaMemPoolSetAccess, (cudaMemPool_t pool, const cudaMemAccessDesc *list, size_t count),      \
      "default pool: access granted to our mappings too")                                           \
    X(cudaStreamDestroy, (cudaStream_t stream), "frees that wait on it are settled first")          \
    X(cudaStreamBeginCapture, (cudaStream_t stream, int mode), "counted")                           \
    X(cudaStreamBeginCapture_ptsz, (cudaStream_t stream, int mode), "counted")                      \
    X(cudaStreamBeginCaptureToGraph,                                                                \
      (cudaStream_t stream, cudaGraph_t graph, const cudaGraphNode_t *nodes, const void *edges,     \
       size_t count, int mode), "counted")                                                          \
    X(cudaStreamBeginCaptureToGraph_ptsz,                                                           \
      (cudaStream_t stream, cudaGraph_t graph, const cudaGraphNode_t *nodes, const void *edges,     \
       size_t count, int mode), "counted")                                                          \
    X(cudaStreamEndCapture, (cudaStream_t stream, cudaGraph_t *out_graph), "counted")               \
    X(cudaStreamEndCapture_ptsz, (cudaStream_t stream, cudaGraph_t *out_graph), "counted")          \
    X(cudaGetDeviceCount, (int *out_count), "forwarded: PyTorch has its allocator by then")         \
    X(cudaDeviceReset, (void), "our memory on the device is dropped first")                         \
    X(cudaIpcGetMemHandle, (cudaIpcMemHandle_t *out_handle, void *address),                         \
      "forwarded; says once that our memory cannot be shared so")                                   \
    X(cudaDeviceEnablePeerAccess, (int peer, unsigned int flags),                                   \
      "forwarded; access granted to our mappings too")                                              \
    GML_RETRIED_HOOKS(X)

/* X(name, parameters): functions of the runtime that we call and do not hook. */
#define GML_RUNTIME_USED(X)              \
    X(cudaGetDevice, (int *out_device))  \
    X(cudaPeekAtLastError, (void))       \
    X(cudaGetLastError, (void))

#define GML_EXPORT __attribute__((visibility("default")))

#define X(name, parameters, what) GML_EXPORT cudaError_t name parameters;
GML_RUNTIME_HOOKS(X)
#undef X

/* One CUDA runtime in the process: its own functions, NULL where it lacks one. */
typedef struct gml_real {
#define X(name, parameters, what) cudaError_t(*name) parameters;
    GML_RUNTIME_HOOKS(X)
#undef X
#define X(name, parameters) cudaError_t(*name) parameters;
    GML_RUNTIME_USED(X)
#undef X
} gml_real;

#endif
