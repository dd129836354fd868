/* SPDX-License-Identifier: Apache-2.0 */
/* Device management of the runtime. */
#include "sim/runtime/runtime.h"

#include <string.h>

RUNTIME(cudaGetDeviceCount, (int *count))
{
    static struct sim_cell cell;
    cudaError_t error;
    const struct driver_table *drv = sim_driver(&error);
    if (!count) return sim_fail(cudaErrorInvalidValue);
    *count = 0;
    if (!drv) return sim_fail(error);
    sim_count(&cell, "cudaGetDeviceCount");
    return sim_return(drv->cuDeviceGetCount(count));
}

/* Without a driver the version is 0, which is no error. */
RUNTIME(cudaDriverGetVersion, (int *version))
{
    cudaError_t error;
    const struct driver_table *drv = sim_driver(&error);
    if (!version) return sim_fail(cudaErrorInvalidValue);
    *version = 0;
    return drv ? sim_return(drv->cuDriverGetVersion(version)) : cudaSuccess;
}

RUNTIME(cudaDeviceGetAttribute, (int *value, int attribute, int device))
{
    BEGIN(cudaDeviceGetAttribute);
    return sim_return(drv->cuDeviceGetAttribute(value, attribute, device));
}

static int get(const struct driver_table *drv, int attribute, int device)
{
    int value = 0;
    drv->cuDeviceGetAttribute(&value, attribute, device);
    return value;
}

static void fill_limits(cudaDeviceProp13 *p, const struct driver_table *drv, int device)
{
    p->sharedMemPerBlock = (size_t)get(drv, 8, device);
    p->regsPerBlock = get(drv, 12, device);
    p->warpSize = get(drv, 10, device);
    p->memPitch = (size_t)get(drv, 11, device);
    p->maxThreadsPerBlock = get(drv, 1, device);
    for (int i = 0; i < 3; i++) {
        p->maxThreadsDim[i] = get(drv, 2 + i, device);
        p->maxGridSize[i] = get(drv, 5 + i, device);
    }
    p->totalConstMem = (size_t)get(drv, 9, device);
    p->textureAlignment = (size_t)get(drv, 14, device);
    p->texturePitchAlignment = (size_t)get(drv, 51, device);
    p->surfaceAlignment = (size_t)get(drv, 30, device);
    p->sharedMemPerMultiprocessor = (size_t)get(drv, 81, device);
    p->regsPerMultiprocessor = get(drv, 82, device);
    p->sharedMemPerBlockOptin = (size_t)get(drv, 97, device);
    p->maxBlocksPerMultiProcessor = get(drv, 106, device);
    p->persistingL2CacheMaxSize = get(drv, 108, device);
    p->accessPolicyMaxWindowSize = get(drv, 109, device);
    p->reservedSharedMemPerBlock = (size_t)get(drv, 111, device);
    p->maxThreadsPerMultiProcessor = get(drv, 39, device);
}

static void fill_abilities(cudaDeviceProp13 *p, const struct driver_table *drv, int device)
{
    p->major = get(drv, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, device);
    p->minor = get(drv, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, device);
    p->multiProcessorCount = get(drv, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, device);
    p->canMapHostMemory = get(drv, 19, device);
    p->concurrentKernels = get(drv, 31, device);
    p->ECCEnabled = get(drv, 32, device);
    p->pciBusID = get(drv, CU_DEVICE_ATTRIBUTE_PCI_BUS_ID, device);
    p->asyncEngineCount = get(drv, 40, device);
    p->unifiedAddressing = get(drv, 41, device);
    p->memoryBusWidth = get(drv, 37, device);
    p->l2CacheSize = get(drv, 38, device);
    p->streamPrioritiesSupported = get(drv, 78, device);
    p->globalL1CacheSupported = get(drv, 79, device);
    p->localL1CacheSupported = get(drv, 80, device);
    p->managedMemory = get(drv, 83, device);
    p->concurrentManagedAccess = get(drv, 89, device);
    p->computePreemptionSupported = get(drv, 90, device);
    p->canUseHostPointerForRegisteredMem = get(drv, 91, device);
    p->cooperativeLaunch = get(drv, 95, device);
    p->hostRegisterSupported = get(drv, 99, device);
    p->hostRegisterReadOnlySupported = get(drv, 113, device);
    p->memoryPoolsSupported = get(drv, 115, device);
    p->gpuDirectRDMASupported = get(drv, 116, device);
    p->gpuDirectRDMAWritesOrdering = get(drv, 118, device);
    p->memoryPoolSupportedHandleTypes = (unsigned)get(drv, 119, device);
    p->clusterLaunch = get(drv, 120, device);
    p->ipcEventSupported = get(drv, 125, device);
    p->unifiedFunctionPointers = get(drv, 129, device);
    p->hostNumaId = get(drv, 134, device);
}

RUNTIME(cudaGetDeviceProperties, (cudaDeviceProp13 * p, int device))
{
    BEGIN(cudaGetDeviceProperties);
    if (!p) return sim_fail(cudaErrorInvalidValue);
    memset(p, 0, sizeof *p);
    CUresult result = drv->cuDeviceGetName(p->name, (int)sizeof p->name, device);
    if (result != CUDA_SUCCESS) return sim_return(result);
    drv->cuDeviceGetUuid(&p->uuid, device);
    drv->cuDeviceTotalMem(&p->totalGlobalMem, device);
    fill_limits(p, drv, device);
    fill_abilities(p, drv, device);
    return cudaSuccess;
}

RUNTIME(cudaDeviceGetPCIBusId, (char *id, int length, int device))
{
    BEGIN(cudaDeviceGetPCIBusId);
    return sim_return(drv->cuDeviceGetPCIBusId(id, length, device));
}

RUNTIME(cudaDeviceGetByPCIBusId, (int *device, const char *id))
{
    BEGIN(cudaDeviceGetByPCIBusId);
    return sim_return(drv->cuDeviceGetByPCIBusId(device, id));
}

RUNTIME(cudaDeviceCanAccessPeer, (int *can, int device, int peer))
{
    BEGIN(cudaDeviceCanAccessPeer);
    return sim_return(drv->cuDeviceCanAccessPeer(can, device, peer));
}

RUNTIME(cudaDeviceGetP2PAttribute, (int *value, int attribute, int source, int target))
{
    BEGIN(cudaDeviceGetP2PAttribute);
    return sim_return(drv->cuDeviceGetP2PAttribute(value, attribute, source, target));
}

RUNTIME(cudaDeviceEnablePeerAccess, (int peer, unsigned flags))
{
    BEGIN_CTX(cudaDeviceEnablePeerAccess);
    CUcontext ctx;
    if (peer == sim_thread_device()) return sim_fail(cudaErrorInvalidDevice);
    CUresult result = drv->cuDevicePrimaryCtxRetain(&ctx, peer);
    if (result == CUDA_SUCCESS) result = drv->cuCtxEnablePeerAccess(ctx, flags);
    return sim_return(result);
}

RUNTIME(cudaDeviceDisablePeerAccess, (int peer))
{
    BEGIN_CTX(cudaDeviceDisablePeerAccess);
    CUcontext ctx;
    CUresult result = drv->cuDevicePrimaryCtxRetain(&ctx, peer);
    if (result == CUDA_SUCCESS) result = drv->cuCtxDisablePeerAccess(ctx);
    return sim_return(result);
}

RUNTIME(cudaDeviceGetStreamPriorityRange, (int *least, int *greatest))
{
    BEGIN_CTX(cudaDeviceGetStreamPriorityRange);
    (void)drv;
    if (least) *least = 0;
    if (greatest) *greatest = -5;
    return cudaSuccess;
}

RUNTIME(cudaDeviceSynchronize, (void))
{
    BEGIN_CTX(cudaDeviceSynchronize);
    return sim_return(drv->cuCtxSynchronize());
}

RUNTIME(cudaDeviceGetLimit, (size_t *value, int limit))
{
    BEGIN_CTX(cudaDeviceGetLimit);
    return sim_return(drv->cuCtxGetLimit(value, limit));
}

RUNTIME(cudaDeviceSetLimit, (int limit, size_t value))
{
    BEGIN_CTX(cudaDeviceSetLimit);
    return sim_return(drv->cuCtxSetLimit(limit, value));
}

RUNTIME(cudaSetDeviceFlags, (unsigned flags))
{
    (void)flags; /* how the host waits: nothing to choose here */
    return cudaSuccess;
}

RUNTIME(cudaGetDeviceFlags, (unsigned *flags))
{
    if (!flags) return sim_fail(cudaErrorInvalidValue);
    *flags = 0;
    return cudaSuccess;
}

RUNTIME(cudaProfilerStart, (void))
{
    return cudaSuccess;
}

RUNTIME(cudaProfilerStop, (void))
{
    return cudaSuccess;
}
