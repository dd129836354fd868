/* SPDX-License-Identifier: Apache-2.0 */
/* CUDA driver API: the part of its public ABI (types, values, layouts) that this project uses.
 *
 * Only documented facts of the ABI stand here, so that nothing needs NVIDIA's headers to build.
 * Enumerations are plain ints of the same width; every list holds the values used, not all there are. */
#ifndef GML_CUDA_DRIVER_ABI_H
#define GML_CUDA_DRIVER_ABI_H

#include <stddef.h>
#include <stdint.h>

typedef int CUdevice;
typedef unsigned long long CUdeviceptr;
typedef unsigned long long CUmemGenericAllocationHandle;
typedef unsigned long long CUgraphConditionalHandle;
typedef struct CUctx_st *CUcontext;
typedef struct CUstream_st *CUstream;
typedef struct CUevent_st *CUevent;
typedef struct CUmod_st *CUmodule;
typedef struct CUfunc_st *CUfunction;
typedef struct CUlib_st *CUlibrary;
typedef struct CUkern_st *CUkernel;
typedef struct CUgraph_st *CUgraph;
typedef struct CUgraphNode_st *CUgraphNode;
typedef struct CUgraphExec_st *CUgraphExec;
typedef struct CUmemPoolHandle_st *CUmemoryPool;
typedef struct CUuserObject_st *CUuserObject;
typedef struct CUlinkState_st *CUlinkState;
typedef struct CUuuid_st {
    char bytes[16];
} CUuuid;

/* X(value, NAME, text): results, with the texts of cuGetErrorName and cuGetErrorString. */
#define CU_RESULTS(X)                                                                            \
    X(0, CUDA_SUCCESS, "no error")                                                               \
    X(1, CUDA_ERROR_INVALID_VALUE, "invalid argument")                                           \
    X(2, CUDA_ERROR_OUT_OF_MEMORY, "out of memory")                                              \
    X(3, CUDA_ERROR_NOT_INITIALIZED, "initialization error")                                     \
    X(4, CUDA_ERROR_DEINITIALIZED, "driver shutting down")                                       \
    X(34, CUDA_ERROR_STUB_LIBRARY, "CUDA driver is a stub library")                              \
    X(100, CUDA_ERROR_NO_DEVICE, "no CUDA-capable device is detected")                           \
    X(101, CUDA_ERROR_INVALID_DEVICE, "invalid device ordinal")                                  \
    X(200, CUDA_ERROR_INVALID_IMAGE, "device kernel image is invalid")                           \
    X(201, CUDA_ERROR_INVALID_CONTEXT, "invalid device context")                                 \
    X(205, CUDA_ERROR_MAP_FAILED, "mapping of buffer object failed")                             \
    X(208, CUDA_ERROR_ALREADY_MAPPED, "resource already mapped")                                 \
    X(217, CUDA_ERROR_PEER_ACCESS_UNSUPPORTED,                                                   \
      "peer access is not supported between these two devices")                                  \
    X(302, CUDA_ERROR_SHARED_OBJECT_SYMBOL_NOT_FOUND, "shared object symbol not found")          \
    X(304, CUDA_ERROR_OPERATING_SYSTEM, "OS call failed or operation not supported on this OS")  \
    X(400, CUDA_ERROR_INVALID_HANDLE, "invalid resource handle")                                 \
    X(401, CUDA_ERROR_ILLEGAL_STATE,                                                             \
      "the operation cannot be performed in the present state")                                  \
    X(500, CUDA_ERROR_NOT_FOUND, "named symbol not found")                                       \
    X(600, CUDA_ERROR_NOT_READY, "device not ready")                                             \
    X(700, CUDA_ERROR_ILLEGAL_ADDRESS, "an illegal memory access was encountered")               \
    X(704, CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED, "peer access is already enabled")             \
    X(705, CUDA_ERROR_PEER_ACCESS_NOT_ENABLED, "peer access has not been enabled")               \
    X(708, CUDA_ERROR_PRIMARY_CONTEXT_ACTIVE,                                                    \
      "cannot set while device is active in this process")                                       \
    X(709, CUDA_ERROR_CONTEXT_IS_DESTROYED, "context is destroyed")                              \
    X(712, CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED,                                            \
      "part or all of the requested memory range is already mapped")                             \
    X(713, CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED,                                                \
      "pointer does not correspond to a registered memory region")                               \
    X(800, CUDA_ERROR_NOT_PERMITTED, "operation not permitted")                                  \
    X(801, CUDA_ERROR_NOT_SUPPORTED, "operation not supported")                                  \
    X(900, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED,                                                \
      "operation not permitted when stream is capturing")                                        \
    X(901, CUDA_ERROR_STREAM_CAPTURE_INVALIDATED,                                                \
      "operation failed due to a previous error during capture")                                 \
    X(902, CUDA_ERROR_STREAM_CAPTURE_MERGE,                                                      \
      "operation would result in a merge of separate capture sequences")                         \
    X(903, CUDA_ERROR_STREAM_CAPTURE_UNMATCHED,                                                  \
      "capture was not ended in the same stream as it began")                                    \
    X(904, CUDA_ERROR_STREAM_CAPTURE_UNJOINED,                                                   \
      "capturing stream has unjoined work")                                                      \
    X(905, CUDA_ERROR_STREAM_CAPTURE_ISOLATION,                                                  \
      "dependency created on uncaptured work in another stream")                                 \
    X(906, CUDA_ERROR_STREAM_CAPTURE_IMPLICIT,                                                   \
      "operation would make the legacy stream depend on a capturing blocking stream")            \
    X(907, CUDA_ERROR_CAPTURED_EVENT,                                                            \
      "operation not permitted on an event last recorded in a capturing stream")                 \
    X(908, CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD,                                               \
      "attempt to terminate a thread-local capture sequence from another thread")                \
    X(999, CUDA_ERROR_UNKNOWN, "unknown error")

typedef enum CUresult_enum {
#define X(value, name, text) name = value,
    CU_RESULTS(X)
#undef X
} CUresult;

/* Stream handles that are no objects. */
#define CU_STREAM_LEGACY ((CUstream)0x1)
#define CU_STREAM_PER_THREAD ((CUstream)0x2)

enum { /* flags of streams and events */
    CU_STREAM_DEFAULT = 0,
    CU_STREAM_NON_BLOCKING = 1,
    CU_EVENT_BLOCKING_SYNC = 1,
    CU_EVENT_DISABLE_TIMING = 2,
    CU_EVENT_INTERPROCESS = 4,
    CU_EVENT_WAIT_EXTERNAL = 1,
    CU_EVENT_RECORD_EXTERNAL = 1
};

typedef enum CUstreamCaptureStatus_enum {
    CU_STREAM_CAPTURE_STATUS_NONE = 0,
    CU_STREAM_CAPTURE_STATUS_ACTIVE = 1,
    CU_STREAM_CAPTURE_STATUS_INVALIDATED = 2
} CUstreamCaptureStatus;

typedef enum CUstreamCaptureMode_enum {
    CU_STREAM_CAPTURE_MODE_GLOBAL = 0,
    CU_STREAM_CAPTURE_MODE_THREAD_LOCAL = 1,
    CU_STREAM_CAPTURE_MODE_RELAXED = 2
} CUstreamCaptureMode;

/* Virtual memory management. */
enum {
    CU_MEM_LOCATION_TYPE_INVALID = 0,
    CU_MEM_LOCATION_TYPE_DEVICE = 1,
    CU_MEM_LOCATION_TYPE_HOST = 2,
    CU_MEM_LOCATION_TYPE_HOST_NUMA = 3,
    CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT = 4,
    CU_MEM_ALLOCATION_TYPE_PINNED = 1,
    CU_MEM_HANDLE_TYPE_NONE = 0,
    CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR = 1,
    CU_MEM_HANDLE_TYPE_FABRIC = 8,
    CU_MEM_ALLOC_GRANULARITY_MINIMUM = 0,
    CU_MEM_ALLOC_GRANULARITY_RECOMMENDED = 1,
    CU_MEM_ACCESS_FLAGS_PROT_NONE = 0,
    CU_MEM_ACCESS_FLAGS_PROT_READ = 1,
    CU_MEM_ACCESS_FLAGS_PROT_READWRITE = 3
};

typedef struct CUmemLocation_st {
    int type; /* CU_MEM_LOCATION_TYPE_* */
    int id;
} CUmemLocation;

typedef struct CUmemAllocationProp_st {
    int type;                 /* CU_MEM_ALLOCATION_TYPE_* */
    int requestedHandleTypes; /* CU_MEM_HANDLE_TYPE_* */
    CUmemLocation location;
    void *win32HandleMetaData;
    struct {
        unsigned char compressionType;
        unsigned char gpuDirectRDMACapable;
        unsigned short usage;
        unsigned char reserved[4];
    } allocFlags;
} CUmemAllocationProp;

typedef struct CUmemAccessDesc_st {
    CUmemLocation location;
    int flags; /* CU_MEM_ACCESS_FLAGS_* */
} CUmemAccessDesc;

typedef struct CUmemPoolProps_st {
    int allocType;
    int handleTypes;
    CUmemLocation location;
    void *win32SecurityAttributes;
    size_t maxSize;
    unsigned short usage;
    unsigned char reserved[54];
} CUmemPoolProps;

/* Attributes of a memory pool: the first three are ints, the others 64-bit. */
enum {
    CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES = 1,
    CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC = 2,
    CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES = 3,
    CU_MEMPOOL_ATTR_RELEASE_THRESHOLD = 4,
    CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT = 5,
    CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH = 6,
    CU_MEMPOOL_ATTR_USED_MEM_CURRENT = 7,
    CU_MEMPOOL_ATTR_USED_MEM_HIGH = 8
};

enum { /* CUmemorytype */
    CU_MEMORYTYPE_HOST = 1,
    CU_MEMORYTYPE_DEVICE = 2,
    CU_MEMORYTYPE_ARRAY = 3,
    CU_MEMORYTYPE_UNIFIED = 4
};

enum { /* CUpointer_attribute */
    CU_POINTER_ATTRIBUTE_CONTEXT = 1,
    CU_POINTER_ATTRIBUTE_MEMORY_TYPE = 2,
    CU_POINTER_ATTRIBUTE_DEVICE_POINTER = 3,
    CU_POINTER_ATTRIBUTE_HOST_POINTER = 4,
    CU_POINTER_ATTRIBUTE_SYNC_MEMOPS = 6,
    CU_POINTER_ATTRIBUTE_BUFFER_ID = 7,
    CU_POINTER_ATTRIBUTE_IS_MANAGED = 8,
    CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL = 9,
    CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE = 10,
    CU_POINTER_ATTRIBUTE_RANGE_START_ADDR = 11,
    CU_POINTER_ATTRIBUTE_RANGE_SIZE = 12,
    CU_POINTER_ATTRIBUTE_MAPPED = 13,
    CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES = 14,
    CU_POINTER_ATTRIBUTE_IS_GPU_DIRECT_RDMA_CAPABLE = 15,
    CU_POINTER_ATTRIBUTE_ACCESS_FLAGS = 16,
    CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE = 17,
    CU_POINTER_ATTRIBUTE_MAPPING_SIZE = 18,
    CU_POINTER_ATTRIBUTE_MAPPING_BASE_ADDR = 19,
    CU_POINTER_ATTRIBUTE_MEMORY_BLOCK_ID = 20
};

enum { /* CUdevice_attribute: the values used by name */
    CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT = 16,
    CU_DEVICE_ATTRIBUTE_PCI_BUS_ID = 33,
    CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR = 75,
    CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR = 76,
    CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED = 102,
    CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED = 103,
    CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_WITH_CUDA_VMM_SUPPORTED = 110,
    CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED = 115,
    CU_DEVICE_ATTRIBUTE_MULTICAST_SUPPORTED = 132
};

enum { /* cuGetProcAddress: flags, and what it reports about the symbol */
    CU_GET_PROC_ADDRESS_DEFAULT = 0,
    CU_GET_PROC_ADDRESS_LEGACY_STREAM = 1,
    CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM = 2,
    CU_GET_PROC_ADDRESS_SUCCESS = 0,
    CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND = 1,
    CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT = 2
};

typedef struct CUlaunchConfig_st {
    unsigned int gridDimX, gridDimY, gridDimZ;
    unsigned int blockDimX, blockDimY, blockDimZ;
    unsigned int sharedMemBytes;
    CUstream hStream;
    void *attrs;
    unsigned int numAttrs;
} CUlaunchConfig;

typedef struct CUDA_MEMCPY2D_st {
    size_t srcXInBytes, srcY;
    int srcMemoryType;
    const void *srcHost;
    CUdeviceptr srcDevice;
    void *srcArray;
    size_t srcPitch;
    size_t dstXInBytes, dstY;
    int dstMemoryType;
    void *dstHost;
    CUdeviceptr dstDevice;
    void *dstArray;
    size_t dstPitch;
    size_t WidthInBytes, Height;
} CUDA_MEMCPY2D;

typedef struct CUipcMemHandle_st {
    char reserved[64];
} CUipcMemHandle;
typedef struct CUipcEventHandle_st {
    char reserved[64];
} CUipcEventHandle;

typedef void (*CUhostFn)(void *user);
typedef void (*CUstreamCallback)(CUstream stream, CUresult status, void *user);

#endif
