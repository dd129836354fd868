/* SPDX-License-Identifier: Apache-2.0 */
/* CUDA runtime API: the part of its public ABI (types, values, layouts) that this project uses.
 *
 * Runtime streams, events, graphs, pools and user objects are the driver's own handles. Where CUDA 12
 * and 13 differ, both layouts stand here under their own names. */
#ifndef GML_CUDA_RUNTIME_ABI_H
#define GML_CUDA_RUNTIME_ABI_H

#include "cuda/driver_abi.h"

typedef CUstream cudaStream_t;
typedef CUevent cudaEvent_t;
typedef CUgraph cudaGraph_t;
typedef CUgraphNode cudaGraphNode_t;
typedef CUgraphExec cudaGraphExec_t;
typedef CUmemoryPool cudaMemPool_t;
typedef CUuserObject cudaUserObject_t;
typedef CUlibrary cudaLibrary_t;
typedef CUkernel cudaKernel_t;
typedef CUhostFn cudaHostFn_t;

/* X(value, NAME, text): errors, with the texts of cudaGetErrorName and cudaGetErrorString. */
#define CUDA_ERRORS(X)                                                                           \
    X(0, cudaSuccess, "no error")                                                                \
    X(1, cudaErrorInvalidValue, "invalid argument")                                              \
    X(2, cudaErrorMemoryAllocation, "out of memory")                                             \
    X(3, cudaErrorInitializationError, "initialization error")                                   \
    X(4, cudaErrorCudartUnloading, "driver shutting down")                                       \
    X(9, cudaErrorInvalidConfiguration, "invalid configuration argument")                        \
    X(12, cudaErrorInvalidPitchValue, "invalid pitch argument")                                  \
    X(13, cudaErrorInvalidSymbol, "invalid device symbol")                                       \
    X(21, cudaErrorInvalidMemcpyDirection, "invalid copy direction for memcpy")                  \
    X(35, cudaErrorInsufficientDriver,                                                           \
      "CUDA driver version is insufficient for CUDA runtime version")                            \
    X(36, cudaErrorCallRequiresNewerDriver, "API call is not supported in the installed CUDA driver") \
    X(98, cudaErrorInvalidDeviceFunction, "invalid device function")                             \
    X(100, cudaErrorNoDevice, "no CUDA-capable device is detected")                              \
    X(101, cudaErrorInvalidDevice, "invalid device ordinal")                                     \
    X(200, cudaErrorInvalidKernelImage, "device kernel image is invalid")                        \
    X(201, cudaErrorDeviceUninitialized, "invalid device context")                               \
    X(205, cudaErrorMapBufferObjectFailed, "mapping of buffer object failed")                    \
    X(208, cudaErrorAlreadyMapped, "resource already mapped")                                    \
    X(217, cudaErrorPeerAccessUnsupported,                                                       \
      "peer access is not supported between these two devices")                                  \
    X(302, cudaErrorSharedObjectSymbolNotFound, "shared object symbol not found")                \
    X(304, cudaErrorOperatingSystem, "OS call failed or operation not supported on this OS")     \
    X(400, cudaErrorInvalidResourceHandle, "invalid resource handle")                            \
    X(401, cudaErrorIllegalState, "the operation cannot be performed in the present state")      \
    X(500, cudaErrorSymbolNotFound, "named symbol not found")                                    \
    X(600, cudaErrorNotReady, "device not ready")                                                \
    X(700, cudaErrorIllegalAddress, "an illegal memory access was encountered")                  \
    X(704, cudaErrorPeerAccessAlreadyEnabled, "peer access is already enabled")                  \
    X(705, cudaErrorPeerAccessNotEnabled, "peer access has not been enabled")                    \
    X(708, cudaErrorSetOnActiveProcess, "cannot set while device is active in this process")     \
    X(709, cudaErrorContextIsDestroyed, "context is destroyed")                                  \
    X(712, cudaErrorHostMemoryAlreadyRegistered,                                                 \
      "part or all of the requested memory range is already mapped")                             \
    X(713, cudaErrorHostMemoryNotRegistered,                                                     \
      "pointer does not correspond to a registered memory region")                               \
    X(719, cudaErrorLaunchFailure, "unspecified launch failure")                                 \
    X(800, cudaErrorNotPermitted, "operation not permitted")                                     \
    X(801, cudaErrorNotSupported, "operation not supported")                                     \
    X(900, cudaErrorStreamCaptureUnsupported,                                                    \
      "operation not permitted when stream is capturing")                                        \
    X(901, cudaErrorStreamCaptureInvalidated,                                                    \
      "operation failed due to a previous error during capture")                                 \
    X(902, cudaErrorStreamCaptureMerge,                                                          \
      "operation would result in a merge of separate capture sequences")                         \
    X(903, cudaErrorStreamCaptureUnmatched,                                                      \
      "capture was not ended in the same stream as it began")                                    \
    X(904, cudaErrorStreamCaptureUnjoined, "capturing stream has unjoined work")                 \
    X(905, cudaErrorStreamCaptureIsolation,                                                      \
      "dependency created on uncaptured work in another stream")                                 \
    X(906, cudaErrorStreamCaptureImplicit,                                                       \
      "operation would make the legacy stream depend on a capturing blocking stream")            \
    X(907, cudaErrorCapturedEvent,                                                               \
      "operation not permitted on an event last recorded in a capturing stream")                 \
    X(908, cudaErrorStreamCaptureWrongThread,                                                    \
      "attempt to terminate a thread-local capture sequence from another thread")                \
    X(999, cudaErrorUnknown, "unknown error")

typedef enum cudaError {
#define X(value, name, text) name = value,
    CUDA_ERRORS(X)
#undef X
} cudaError_t;

enum { /* cudaMemoryType */
    cudaMemoryTypeUnregistered = 0,
    cudaMemoryTypeHost = 1,
    cudaMemoryTypeDevice = 2,
    cudaMemoryTypeManaged = 3
};

enum { /* cudaMemcpyKind */
    cudaMemcpyHostToHost = 0,
    cudaMemcpyHostToDevice = 1,
    cudaMemcpyDeviceToHost = 2,
    cudaMemcpyDeviceToDevice = 3,
    cudaMemcpyDefault = 4
};

/* cudaMemPoolAttr has the values of CU_MEMPOOL_ATTR_*, cudaMemLocationType those of
 * CU_MEM_LOCATION_TYPE_*, cudaStreamCaptureStatus and -Mode those of the driver. */
enum {
    cudaMemPoolReuseFollowEventDependencies = 1,
    cudaMemPoolReuseAllowOpportunistic = 2,
    cudaMemPoolReuseAllowInternalDependencies = 3,
    cudaMemPoolAttrReleaseThreshold = 4,
    cudaMemPoolAttrReservedMemCurrent = 5,
    cudaMemPoolAttrReservedMemHigh = 6,
    cudaMemPoolAttrUsedMemCurrent = 7,
    cudaMemPoolAttrUsedMemHigh = 8
};

typedef CUmemLocation cudaMemLocation;
typedef CUmemAccessDesc cudaMemAccessDesc;
typedef CUmemPoolProps cudaMemPoolProps;

typedef struct cudaPointerAttributes { /* CUDA 13; CUDA 12 ends before `reserved` */
    int type;                          /* cudaMemoryType */
    int device;
    void *devicePointer;
    void *hostPointer;
    long reserved[8];
} cudaPointerAttributes;

typedef struct cudaPitchedPtr {
    void *ptr;
    size_t pitch, xsize, ysize;
} cudaPitchedPtr;

typedef struct cudaExtent {
    size_t width, height, depth;
} cudaExtent;

typedef struct cudaPos {
    size_t x, y, z;
} cudaPos;

typedef struct dim3 {
    unsigned int x, y, z;
} dim3;

typedef struct cudaLaunchConfig_t {
    dim3 gridDim, blockDim;
    size_t dynamicSmemBytes;
    cudaStream_t stream;
    void *attrs;
    unsigned int numAttrs;
} cudaLaunchConfig_t;

typedef struct cudaFuncAttributes {
    size_t sharedSizeBytes, constSizeBytes, localSizeBytes;
    int maxThreadsPerBlock, numRegs, ptxVersion, binaryVersion, cacheModeCA;
    int maxDynamicSharedSizeBytes, preferredShmemCarveout, clusterDimMustBeSet;
    int requiredClusterWidth, requiredClusterHeight, requiredClusterDepth;
    int clusterSchedulingPolicyPreference, nonPortableClusterSizeAllowed;
    int reserved[16];
} cudaFuncAttributes;

typedef struct cudaIpcMemHandle_t {
    char reserved[64];
} cudaIpcMemHandle_t;
typedef struct cudaIpcEventHandle_t {
    char reserved[64];
} cudaIpcEventHandle_t;

/* cudaDeviceProp of CUDA 13, in ABI order; the texture and surface limits are one block here. */
typedef struct cudaDeviceProp13 {
    char name[256];
    CUuuid uuid;
    char luid[8];
    unsigned int luidDeviceNodeMask;
    size_t totalGlobalMem, sharedMemPerBlock;
    int regsPerBlock, warpSize;
    size_t memPitch;
    int maxThreadsPerBlock, maxThreadsDim[3], maxGridSize[3];
    size_t totalConstMem;
    int major, minor;
    size_t textureAlignment, texturePitchAlignment;
    int multiProcessorCount, integrated, canMapHostMemory;
    int maxTextureAndSurface[39]; /* maxTexture1D .. maxSurfaceCubemapLayered */
    size_t surfaceAlignment;
    int concurrentKernels, ECCEnabled, pciBusID, pciDeviceID, pciDomainID, tccDriver;
    int asyncEngineCount, unifiedAddressing, memoryBusWidth, l2CacheSize;
    int persistingL2CacheMaxSize, maxThreadsPerMultiProcessor, streamPrioritiesSupported;
    int globalL1CacheSupported, localL1CacheSupported;
    size_t sharedMemPerMultiprocessor;
    int regsPerMultiprocessor, managedMemory, isMultiGpuBoard, multiGpuBoardGroupID;
    int hostNativeAtomicSupported, pageableMemoryAccess, concurrentManagedAccess;
    int computePreemptionSupported, canUseHostPointerForRegisteredMem, cooperativeLaunch;
    size_t sharedMemPerBlockOptin;
    int pageableMemoryAccessUsesHostPageTables, directManagedMemAccessFromHost;
    int maxBlocksPerMultiProcessor, accessPolicyMaxWindowSize;
    size_t reservedSharedMemPerBlock;
    int hostRegisterSupported, sparseCudaArraySupported, hostRegisterReadOnlySupported;
    int timelineSemaphoreInteropSupported, memoryPoolsSupported, gpuDirectRDMASupported;
    unsigned int gpuDirectRDMAFlushWritesOptions;
    int gpuDirectRDMAWritesOrdering;
    unsigned int memoryPoolSupportedHandleTypes;
    int deferredMappingCudaArraySupported, ipcEventSupported, clusterLaunch;
    int unifiedFunctionPointers, deviceNumaConfig, deviceNumaId, mpsEnabled, hostNumaId;
    unsigned int gpuPciDeviceID, gpuPciSubsystemID;
    int hostNumaMultinodeIpcSupported;
    int reserved[56];
} cudaDeviceProp13;

/* cudaDeviceProp of CUDA 12 (its cudaGetDeviceProperties_v2): clock rates and modes stand between. */
typedef struct cudaDeviceProp12 {
    char name[256];
    CUuuid uuid;
    char luid[8];
    unsigned int luidDeviceNodeMask;
    size_t totalGlobalMem, sharedMemPerBlock;
    int regsPerBlock, warpSize;
    size_t memPitch;
    int maxThreadsPerBlock, maxThreadsDim[3], maxGridSize[3], clockRate;
    size_t totalConstMem;
    int major, minor;
    size_t textureAlignment, texturePitchAlignment;
    int deviceOverlap, multiProcessorCount, kernelExecTimeoutEnabled, integrated, canMapHostMemory;
    int computeMode, maxTextureAndSurface[40]; /* maxTexture1D .. maxSurfaceCubemapLayered */
    size_t surfaceAlignment;
    int concurrentKernels, ECCEnabled, pciBusID, pciDeviceID, pciDomainID, tccDriver;
    int asyncEngineCount, unifiedAddressing, memoryClockRate, memoryBusWidth, l2CacheSize;
    int persistingL2CacheMaxSize, maxThreadsPerMultiProcessor, streamPrioritiesSupported;
    int globalL1CacheSupported, localL1CacheSupported;
    size_t sharedMemPerMultiprocessor;
    int regsPerMultiprocessor, managedMemory, isMultiGpuBoard, multiGpuBoardGroupID;
    int hostNativeAtomicSupported, singleToDoublePrecisionPerfRatio, pageableMemoryAccess;
    int concurrentManagedAccess, computePreemptionSupported, canUseHostPointerForRegisteredMem;
    int cooperativeLaunch, cooperativeMultiDeviceLaunch;
    size_t sharedMemPerBlockOptin;
    int pageableMemoryAccessUsesHostPageTables, directManagedMemAccessFromHost;
    int maxBlocksPerMultiProcessor, accessPolicyMaxWindowSize;
    size_t reservedSharedMemPerBlock;
    int hostRegisterSupported, sparseCudaArraySupported, hostRegisterReadOnlySupported;
    int timelineSemaphoreInteropSupported, memoryPoolsSupported, gpuDirectRDMASupported;
    unsigned int gpuDirectRDMAFlushWritesOptions;
    int gpuDirectRDMAWritesOrdering;
    unsigned int memoryPoolSupportedHandleTypes;
    int deferredMappingCudaArraySupported, ipcEventSupported, clusterLaunch;
    int unifiedFunctionPointers;
    int reserved[63];
} cudaDeviceProp12;

#endif
