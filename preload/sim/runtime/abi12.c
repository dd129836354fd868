/* SPDX-License-Identifier: Apache-2.0 */
/* What differs for programs built against CUDA 12: structures, and calls of one name with other arguments. */
#define _GNU_SOURCE
#include "sim/runtime/runtime.h"

#include <link.h>
#include <stddef.h>
#include <string.h>

SIM_EXPORT cudaError_t cudaGetDeviceProperties(cudaDeviceProp13 *p, int device);
SIM_EXPORT cudaError_t cudaStreamGetCaptureInfo(cudaStream_t stream, CUstreamCaptureStatus *status,
                                                unsigned long long *id, cudaGraph_t *graph,
                                                const cudaGraphNode_t **dependencies, const void **edges,
                                                size_t *count);

static int see_library(struct dl_phdr_info *info, size_t bytes, void *out)
{
    (void)bytes;
    const char *name = info->dlpi_name ? strrchr(info->dlpi_name, '/') : NULL;
    name = name ? name + 1 : "";
    if (!strcmp(name, "libcudart.so.12")) *(int *)out = 12;
    return !strcmp(name, "libcudart.so.13") ? (*(int *)out = 13) : 0;
}

/* The real runtime that the program was linked with is loaded beside this one and gives its version away. */
int sim_runtime_abi(void)
{
    static _Atomic int abi;
    if (!abi) {
        int found = 0;
        dl_iterate_phdr(see_library, &found);
        abi = found ? found : 13;
    }
    return abi;
}

RUNTIME(cudaGetDeviceProperties_v2, (cudaDeviceProp12 * p, int device))
{
    cudaDeviceProp13 q;
    if (!p) return sim_fail(cudaErrorInvalidValue);
    cudaError_t error = cudaGetDeviceProperties(&q, device);
    if (error != cudaSuccess) return error;
    memset(p, 0, sizeof *p);
    memcpy(p->name, q.name, sizeof p->name);
    p->uuid = q.uuid;
    p->totalGlobalMem = q.totalGlobalMem;
    p->sharedMemPerBlock = q.sharedMemPerBlock;
    p->regsPerBlock = q.regsPerBlock;
    p->warpSize = q.warpSize;
    p->memPitch = q.memPitch;
    p->maxThreadsPerBlock = q.maxThreadsPerBlock;
    memcpy(p->maxThreadsDim, q.maxThreadsDim, sizeof p->maxThreadsDim);
    memcpy(p->maxGridSize, q.maxGridSize, sizeof p->maxGridSize);
    p->clockRate = 1980000;
    p->totalConstMem = q.totalConstMem;
    p->major = q.major;
    p->minor = q.minor;
    p->textureAlignment = q.textureAlignment;
    p->texturePitchAlignment = q.texturePitchAlignment;
    p->deviceOverlap = 1;
    p->multiProcessorCount = q.multiProcessorCount;
    p->canMapHostMemory = q.canMapHostMemory;
    p->surfaceAlignment = q.surfaceAlignment;
    /* From concurrentKernels on the two agree but for three more ints in CUDA 12. */
    memcpy(&p->concurrentKernels, &q.concurrentKernels,
           offsetof(cudaDeviceProp13, memoryBusWidth) - offsetof(cudaDeviceProp13, concurrentKernels));
    p->memoryClockRate = 2619000;
    p->memoryBusWidth = q.memoryBusWidth;
    p->l2CacheSize = q.l2CacheSize;
    p->persistingL2CacheMaxSize = q.persistingL2CacheMaxSize;
    p->maxThreadsPerMultiProcessor = q.maxThreadsPerMultiProcessor;
    p->streamPrioritiesSupported = q.streamPrioritiesSupported;
    p->globalL1CacheSupported = q.globalL1CacheSupported;
    p->localL1CacheSupported = q.localL1CacheSupported;
    p->sharedMemPerMultiprocessor = q.sharedMemPerMultiprocessor;
    p->regsPerMultiprocessor = q.regsPerMultiprocessor;
    p->managedMemory = q.managedMemory;
    p->singleToDoublePrecisionPerfRatio = 2;
    p->concurrentManagedAccess = q.concurrentManagedAccess;
    p->computePreemptionSupported = q.computePreemptionSupported;
    p->canUseHostPointerForRegisteredMem = q.canUseHostPointerForRegisteredMem;
    p->cooperativeLaunch = q.cooperativeLaunch;
    p->cooperativeMultiDeviceLaunch = q.cooperativeLaunch;
    p->sharedMemPerBlockOptin = q.sharedMemPerBlockOptin;
    p->maxBlocksPerMultiProcessor = q.maxBlocksPerMultiProcessor;
    p->accessPolicyMaxWindowSize = q.accessPolicyMaxWindowSize;
    p->reservedSharedMemPerBlock = q.reservedSharedMemPerBlock;
    memcpy(&p->hostRegisterSupported, &q.hostRegisterSupported,
           offsetof(cudaDeviceProp13, deviceNumaConfig) - offsetof(cudaDeviceProp13, hostRegisterSupported));
    return cudaSuccess;
}

RUNTIME(cudaStreamGetCaptureInfo_v2, (cudaStream_t stream, CUstreamCaptureStatus *status, unsigned long long *id,
                                      cudaGraph_t *graph, const cudaGraphNode_t **dependencies, size_t *count))
{
    return cudaStreamGetCaptureInfo(stream, status, id, graph, dependencies, NULL, count);
}

RUNTIME(cudaStreamGetCaptureInfo_v3,
        (cudaStream_t stream, CUstreamCaptureStatus *status, unsigned long long *id, cudaGraph_t *graph,
         const cudaGraphNode_t **dependencies, const void **edges, size_t *count))
{
    return cudaStreamGetCaptureInfo(stream, status, id, graph, dependencies, edges, count);
}

/* Captured work is a list here: no node names its dependencies. CUDA 12 passes the count third. */
RUNTIME(cudaGraphNodeGetDependencies, (cudaGraphNode_t node, cudaGraphNode_t *nodes, void *third, size_t *fourth))
{
    (void)nodes;
    size_t *count = sim_runtime_abi() == 12 ? third : fourth;
    if (!node || !count) return sim_fail(cudaErrorInvalidValue);
    *count = 0;
    return cudaSuccess;
}

RUNTIME(cudaRuntimeGetVersion, (int *version))
{
    if (!version) return sim_fail(cudaErrorInvalidValue);
    *version = sim_runtime_abi() == 12 ? 12080 : 13000;
    return cudaSuccess;
}
