/* SPDX-License-Identifier: Apache-2.0 */
/* The driver's entry points that this library calls, found in the loaded libcuda.so.1.
 *
 * Nothing links libcuda: a process without a driver must start and run as if we were not there. */
#ifndef GML_DEVICE_CUDA_DRIVER_H
#define GML_DEVICE_CUDA_DRIVER_H

#include "base/status.h"
#include "cuda/driver_abi.h"

#include <stdatomic.h>

/* X(field, exported symbol, name and version for cuGetProcAddress, parameters). The two names differ
 * because dlsym needs the suffix of the ABI, while cuGetProcAddress chooses it by the version. */
#define GML_DRIVER_REQUIRED(X)                                                                      \
    X(device_get, "cuDeviceGet", "cuDeviceGet", 2000, (CUdevice *, int))                            \
    X(device_count, "cuDeviceGetCount", "cuDeviceGetCount", 2000, (int *))                          \
    X(device_name, "cuDeviceGetName", "cuDeviceGetName", 2000, (char *, int, CUdevice))             \
    X(device_attribute, "cuDeviceGetAttribute", "cuDeviceGetAttribute", 2000, (int *, int, CUdevice)) \
    X(primary_retain, "cuDevicePrimaryCtxRetain", "cuDevicePrimaryCtxRetain", 7000,                 \
      (CUcontext *, CUdevice))                                                                      \
    X(primary_release, "cuDevicePrimaryCtxRelease_v2", "cuDevicePrimaryCtxRelease", 11000, (CUdevice)) \
    X(ctx_current, "cuCtxGetCurrent", "cuCtxGetCurrent", 4000, (CUcontext *))                       \
    X(ctx_push, "cuCtxPushCurrent_v2", "cuCtxPushCurrent", 4000, (CUcontext))                       \
    X(ctx_pop, "cuCtxPopCurrent_v2", "cuCtxPopCurrent", 4000, (CUcontext *))                        \
    X(ctx_sync, "cuCtxSynchronize", "cuCtxSynchronize", 2000, (void))                               \
    X(mem_info, "cuMemGetInfo_v2", "cuMemGetInfo", 3020, (size_t *, size_t *))                      \
    X(granularity, "cuMemGetAllocationGranularity", "cuMemGetAllocationGranularity", 10020,         \
      (size_t *, const CUmemAllocationProp *, int))                                                 \
    X(create, "cuMemCreate", "cuMemCreate", 10020,                                                  \
      (CUmemGenericAllocationHandle *, size_t, const CUmemAllocationProp *, unsigned long long))    \
    X(release, "cuMemRelease", "cuMemRelease", 10020, (CUmemGenericAllocationHandle))               \
    X(reserve, "cuMemAddressReserve", "cuMemAddressReserve", 10020,                                 \
      (CUdeviceptr *, size_t, size_t, CUdeviceptr, unsigned long long))                             \
    X(free_va, "cuMemAddressFree", "cuMemAddressFree", 10020, (CUdeviceptr, size_t))                \
    X(map, "cuMemMap", "cuMemMap", 10020,                                                           \
      (CUdeviceptr, size_t, size_t, CUmemGenericAllocationHandle, unsigned long long))              \
    X(unmap, "cuMemUnmap", "cuMemUnmap", 10020, (CUdeviceptr, size_t))                              \
    X(set_access, "cuMemSetAccess", "cuMemSetAccess", 10020,                                        \
      (CUdeviceptr, size_t, const CUmemAccessDesc *, size_t))                                       \
    X(event_create, "cuEventCreate", "cuEventCreate", 2000, (CUevent *, unsigned int))              \
    X(event_record, "cuEventRecord", "cuEventRecord", 2000, (CUevent, CUstream))                    \
    X(event_query, "cuEventQuery", "cuEventQuery", 2000, (CUevent))                                 \
    X(event_sync, "cuEventSynchronize", "cuEventSynchronize", 2000, (CUevent))                      \
    X(event_destroy, "cuEventDestroy_v2", "cuEventDestroy", 4000, (CUevent))                        \
    X(stream_wait, "cuStreamWaitEvent", "cuStreamWaitEvent", 3020, (CUstream, CUevent, unsigned int)) \
    X(stream_capturing, "cuStreamIsCapturing", "cuStreamIsCapturing", 10000, (CUstream, int *))     \
    X(capture_mode, "cuThreadExchangeStreamCaptureMode", "cuThreadExchangeStreamCaptureMode", 10010, (int *))

#define GML_DRIVER_OPTIONAL(X)                                                                      \
    X(ctx_record_event, "cuCtxRecordEvent", "cuCtxRecordEvent", 12050, (CUcontext, CUevent))        \
    X(default_pool, "cuDeviceGetDefaultMemPool", "cuDeviceGetDefaultMemPool", 11020,                \
      (CUmemoryPool *, CUdevice))                                                                   \
    X(stream_context, "cuStreamGetCtx", "cuStreamGetCtx", 9020, (CUstream, CUcontext *))

typedef struct gml_cuda_driver {
#define X(field, symbol, name, version, parameters) CUresult(*field) parameters;
    GML_DRIVER_REQUIRED(X)
    GML_DRIVER_OPTIONAL(X)
#undef X
    /* Extras of the simulated driver; NULL on a real one. */
    uint64_t (*sim_now_ns)(void);
    void (*sim_note)(int what, uint64_t va, size_t bytes, uint64_t stream);
    /* Stream captures in progress in the process; while above zero, own calls relax the thread's
     * capture mode, since the program's mode would forbid them. */
    _Atomic unsigned captures;
} gml_cuda_driver;

/* Fills `driver` from the libcuda.so.1 that is loaded, or loads it. Errors: NOT_FOUND without a driver,
 * UNSUPPORTED when a required entry point is missing (a driver before CUDA 11). */
GML_CHECKED gml_status gml_cuda_driver_load(gml_cuda_driver *driver);

/* The status that stands for a driver result. */
gml_status gml_cuda_status(CUresult result);

#endif
