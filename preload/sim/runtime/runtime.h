/* SPDX-License-Identifier: Apache-2.0 */
/* Simulated CUDA runtime: what its files share. It knows the driver by its public functions alone. */
#ifndef GML_SIM_RUNTIME_H
#define GML_SIM_RUNTIME_H

#include "cuda/runtime_abi.h"

#include <stdatomic.h>
#include <stdbool.h>

#define SIM_EXPORT __attribute__((visibility("default")))
#define SIM_ENTRY(type, name, params) \
    SIM_EXPORT type name params;      \
    SIM_EXPORT type name params
#define RUNTIME(name, params) SIM_ENTRY(cudaError_t, name, params)

/* The driver functions used, as cuGetProcAddress hands them out: X(name, version, params). */
#define DRIVER_FUNCTIONS(X)                                                                         \
    X(cuInit, 2000, (unsigned))                                                                     \
    X(cuDriverGetVersion, 2020, (int *))                                                            \
    X(cuDeviceGetCount, 2000, (int *))                                                              \
    X(cuDeviceGetName, 2000, (char *, int, CUdevice))                                               \
    X(cuDeviceGetUuid, 11040, (CUuuid *, CUdevice))                                                 \
    X(cuDeviceTotalMem, 3020, (size_t *, CUdevice))                                                 \
    X(cuDeviceGetAttribute, 2000, (int *, int, CUdevice))                                           \
    X(cuDeviceGetPCIBusId, 4010, (char *, int, CUdevice))                                           \
    X(cuDeviceGetByPCIBusId, 4010, (CUdevice *, const char *))                                      \
    X(cuDeviceCanAccessPeer, 4000, (int *, CUdevice, CUdevice))                                     \
    X(cuDeviceGetP2PAttribute, 8000, (int *, int, CUdevice, CUdevice))                              \
    X(cuDeviceGetDefaultMemPool, 11020, (CUmemoryPool *, CUdevice))                                 \
    X(cuDeviceGetMemPool, 11020, (CUmemoryPool *, CUdevice))                                        \
    X(cuDeviceSetMemPool, 11020, (CUdevice, CUmemoryPool))                                          \
    X(cuDeviceGetGraphMemAttribute, 11040, (CUdevice, int, void *))                                 \
    X(cuDeviceSetGraphMemAttribute, 11040, (CUdevice, int, void *))                                 \
    X(cuDeviceGraphMemTrim, 11040, (CUdevice))                                                      \
    X(cuDevicePrimaryCtxRetain, 7000, (CUcontext *, CUdevice))                                      \
    X(cuDevicePrimaryCtxRelease, 11000, (CUdevice))                                                 \
    X(cuDevicePrimaryCtxReset, 11000, (CUdevice))                                                   \
    X(cuDevicePrimaryCtxGetState, 7000, (CUdevice, unsigned *, int *))                              \
    X(cuCtxGetCurrent, 4000, (CUcontext *))                                                         \
    X(cuCtxSetCurrent, 4000, (CUcontext))                                                           \
    X(cuCtxGetDevice, 2000, (CUdevice *))                                                           \
    X(cuCtxSynchronize, 2000, (void))                                                               \
    X(cuCtxGetLimit, 3010, (size_t *, int))                                                         \
    X(cuCtxSetLimit, 3010, (int, size_t))                                                           \
    X(cuCtxEnablePeerAccess, 4000, (CUcontext, unsigned))                                           \
    X(cuCtxDisablePeerAccess, 4000, (CUcontext))                                                    \
    X(cuMemAlloc, 3020, (CUdeviceptr *, size_t))                                                    \
    X(cuMemFree, 3020, (CUdeviceptr))                                                               \
    X(cuMemAllocPitch, 3020, (CUdeviceptr *, size_t *, size_t, size_t, unsigned))                   \
    X(cuMemAllocManaged, 6000, (CUdeviceptr *, size_t, unsigned))                                   \
    X(cuMemGetInfo, 3020, (size_t *, size_t *))                                                     \
    X(cuMemHostAlloc, 2020, (void **, size_t, unsigned))                                            \
    X(cuMemFreeHost, 2000, (void *))                                                                \
    X(cuMemHostRegister, 6050, (void *, size_t, unsigned))                                          \
    X(cuMemHostUnregister, 4000, (void *))                                                          \
    X(cuMemHostGetDevicePointer, 3020, (CUdeviceptr *, void *, unsigned))                           \
    X(cuMemHostGetFlags, 2030, (unsigned *, void *))                                                \
    X(cuMemAllocAsync, 11020, (CUdeviceptr *, size_t, CUstream))                                    \
    X(cuMemAllocFromPoolAsync, 11020, (CUdeviceptr *, size_t, CUmemoryPool, CUstream))              \
    X(cuMemFreeAsync, 11020, (CUdeviceptr, CUstream))                                               \
    X(cuMemPoolCreate, 11020, (CUmemoryPool *, const CUmemPoolProps *))                             \
    X(cuMemPoolDestroy, 11020, (CUmemoryPool))                                                      \
    X(cuMemPoolTrimTo, 11020, (CUmemoryPool, size_t))                                               \
    X(cuMemPoolGetAttribute, 11020, (CUmemoryPool, int, void *))                                    \
    X(cuMemPoolSetAttribute, 11020, (CUmemoryPool, int, void *))                                    \
    X(cuMemPoolSetAccess, 11020, (CUmemoryPool, const CUmemAccessDesc *, size_t))                   \
    X(cuMemPoolGetAccess, 11020, (int *, CUmemoryPool, CUmemLocation *))                            \
    X(cuMemcpy, 4000, (CUdeviceptr, CUdeviceptr, size_t))                                           \
    X(cuMemcpyAsync, 4000, (CUdeviceptr, CUdeviceptr, size_t, CUstream))                            \
    X(cuMemcpyHtoD, 3020, (CUdeviceptr, const void *, size_t))                                      \
    X(cuMemcpyDtoH, 3020, (void *, CUdeviceptr, size_t))                                            \
    X(cuMemcpyDtoD, 3020, (CUdeviceptr, CUdeviceptr, size_t))                                       \
    X(cuMemcpyHtoDAsync, 3020, (CUdeviceptr, const void *, size_t, CUstream))                       \
    X(cuMemcpyDtoHAsync, 3020, (void *, CUdeviceptr, size_t, CUstream))                             \
    X(cuMemcpyDtoDAsync, 3020, (CUdeviceptr, CUdeviceptr, size_t, CUstream))                        \
    X(cuMemcpyPeer, 4000, (CUdeviceptr, CUcontext, CUdeviceptr, CUcontext, size_t))                 \
    X(cuMemcpyPeerAsync, 4000, (CUdeviceptr, CUcontext, CUdeviceptr, CUcontext, size_t, CUstream))  \
    X(cuMemcpy2D, 3020, (const CUDA_MEMCPY2D *))                                                    \
    X(cuMemcpy2DAsync, 3020, (const CUDA_MEMCPY2D *, CUstream))                                     \
    X(cuMemsetD8, 3020, (CUdeviceptr, unsigned char, size_t))                                       \
    X(cuMemsetD8Async, 3020, (CUdeviceptr, unsigned char, size_t, CUstream))                        \
    X(cuMemsetD2D8, 3020, (CUdeviceptr, size_t, unsigned char, size_t, size_t))                     \
    X(cuMemsetD2D8Async, 3020, (CUdeviceptr, size_t, unsigned char, size_t, size_t, CUstream))      \
    X(cuPointerGetAttributes, 7000, (unsigned, int *, void **, CUdeviceptr))                        \
    X(cuStreamCreateWithPriority, 5050, (CUstream *, unsigned, int))                                \
    X(cuStreamDestroy, 4000, (CUstream))                                                            \
    X(cuStreamQuery, 2000, (CUstream))                                                              \
    X(cuStreamSynchronize, 2000, (CUstream))                                                        \
    X(cuStreamWaitEvent, 3020, (CUstream, CUevent, unsigned))                                       \
    X(cuStreamGetPriority, 5050, (CUstream, int *))                                                 \
    X(cuStreamGetFlags, 5050, (CUstream, unsigned *))                                               \
    X(cuStreamGetId, 12000, (CUstream, unsigned long long *))                                       \
    X(cuStreamGetDevice, 12080, (CUstream, CUdevice *))                                             \
    X(cuStreamAddCallback, 5000, (CUstream, CUstreamCallback, void *, unsigned))                    \
    X(cuStreamBeginCapture, 10010, (CUstream, CUstreamCaptureMode))                                 \
    X(cuStreamBeginCaptureToGraph, 12030,                                                           \
      (CUstream, CUgraph, const CUgraphNode *, const void *, size_t, CUstreamCaptureMode))          \
    X(cuStreamEndCapture, 10000, (CUstream, CUgraph *))                                             \
    X(cuStreamIsCapturing, 10000, (CUstream, CUstreamCaptureStatus *))                              \
    X(cuStreamGetCaptureInfo, 12030,                                                                \
      (CUstream, CUstreamCaptureStatus *, unsigned long long *, CUgraph *, const CUgraphNode **,    \
       const void **, size_t *))                                                                    \
    X(cuThreadExchangeStreamCaptureMode, 10010, (CUstreamCaptureMode *))                            \
    X(cuEventCreate, 2000, (CUevent *, unsigned))                                                   \
    X(cuEventDestroy, 4000, (CUevent))                                                              \
    X(cuEventRecordWithFlags, 11010, (CUevent, CUstream, unsigned))                                 \
    X(cuEventQuery, 2000, (CUevent))                                                                \
    X(cuEventSynchronize, 2000, (CUevent))                                                          \
    X(cuEventElapsedTime, 2000, (float *, CUevent, CUevent))                                        \
    X(cuGraphCreate, 10000, (CUgraph *, unsigned))                                                  \
    X(cuGraphDestroy, 10000, (CUgraph))                                                             \
    X(cuGraphInstantiate, 12000, (CUgraphExec *, CUgraph, unsigned long long))                      \
    X(cuGraphExecDestroy, 10000, (CUgraphExec))                                                     \
    X(cuGraphLaunch, 10000, (CUgraphExec, CUstream))                                                \
    X(cuGraphUpload, 11010, (CUgraphExec, CUstream))                                                \
    X(cuGraphGetNodes, 10000, (CUgraph, CUgraphNode *, size_t *))                                   \
    X(cuGraphRetainUserObject, 11030, (CUgraph, CUuserObject, unsigned, unsigned))                  \
    X(cuUserObjectCreate, 11030, (CUuserObject *, void *, CUhostFn, unsigned, unsigned))            \
    X(cuUserObjectRetain, 11030, (CUuserObject, unsigned))                                          \
    X(cuUserObjectRelease, 11030, (CUuserObject, unsigned))                                         \
    X(cuLaunchHostFunc, 10000, (CUstream, CUhostFn, void *))                                        \
    X(cuLibraryLoadData, 12000, (CUlibrary *, const void *, int *, void **, unsigned, int *, void **, unsigned)) \
    X(cuLibraryUnload, 12000, (CUlibrary))                                                          \
    X(cuLibraryGetKernel, 12000, (CUkernel *, CUlibrary, const char *))                             \
    X(cuKernelGetFunction, 12000, (CUfunction *, CUkernel))                                         \
    X(cuKernelSetAttribute, 12000, (int, int, CUkernel, CUdevice))                                  \
    X(cuFuncGetAttribute, 2020, (int *, int, CUfunction))                                           \
    X(cuLaunchKernel, 4000,                                                                         \
      (CUfunction, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, CUstream,  \
       void **, void **))

struct driver_table {
#define X(name, version, params) CUresult(*name) params;
    DRIVER_FUNCTIONS(X)
#undef X
    CUresult (*getProcAddress)(const char *, void **, int, uint64_t, int *);
    _Atomic uint64_t *(*counter)(const char *); /* the simulator's own, absent with another driver */
    void (*stub)(const char *, int);
    void (*work)(double);
    int (*launch)(void *, int);
    int (*touch)(const void *, size_t, void *);
    int (*idle)(void *);
    int (*known)(const void *, size_t);
    void (*forget)(const void *, size_t);
};

/* Loads the driver at first use; NULL (with the error) when there is none. */
const struct driver_table *sim_driver(cudaError_t *error);

/* Remembers a failure for cudaGetLastError ("not ready" too, as the real one) and hands it on. */
cudaError_t sim_return(CUresult result);
cudaError_t sim_fail(cudaError_t error);
void sim_forget_lost(void); /* a device was reset: an illegal access before that is no last error any more */

/* Makes the thread's device current (its primary context) as the first runtime call of a thread does. */
cudaError_t sim_thread_ready(void);
int sim_thread_device(void);

/* The driver's function for a kernel by the address that the program launches (kernels.c); NULL when there is
 * no memory for it. */
CUfunction sim_kernel_function(const struct driver_table *drv, const void *host);

/* 12 or 13: the CUDA version that the program was built for (abi12.c). */
int sim_runtime_abi(void);

struct sim_cell {
    _Atomic uint64_t *calls;
};
void sim_count(struct sim_cell *cell, const char *name);

/* First line of a runtime entry point: counts, loads the driver, into `drv`. */
#define BEGIN(name)                                          \
    static struct sim_cell cell_;                            \
    cudaError_t begin_;                                      \
    const struct driver_table *drv = sim_driver(&begin_);    \
    if (!drv) return sim_fail(begin_);                       \
    sim_count(&cell_, #name)
/* The same, and the thread has a context. */
#define BEGIN_CTX(name)                                      \
    BEGIN(name);                                             \
    begin_ = sim_thread_ready();                             \
    if (begin_ != cudaSuccess) return sim_fail(begin_)

#endif
