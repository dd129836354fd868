/* SPDX-License-Identifier: Apache-2.0 */
/* The per-thread default stream's forms of stream calls: handle 0 means the calling thread's own stream. */
#include "sim/driver/driver.h"

static CUstream own(CUstream stream)
{
    return stream ? stream : CU_STREAM_PER_THREAD;
}

/* The plain form is defined elsewhere in this library; its declaration stands before its twin here. */
#define TWIN(name, suffix, params, arguments) \
    SIM_EXPORT CUresult name params;          \
    DRIVER(name##suffix, params)              \
    {                                         \
        return name arguments;                \
    }

TWIN(cuEventRecord, _ptsz, (CUevent e, CUstream s), (e, own(s)))
TWIN(cuEventRecordWithFlags, _ptsz, (CUevent e, CUstream s, unsigned f), (e, own(s), f))
TWIN(cuGraphLaunch, _ptsz, (CUgraphExec g, CUstream s), (g, own(s)))
TWIN(cuGraphUpload, _ptsz, (CUgraphExec g, CUstream s), (g, own(s)))
TWIN(cuLaunchKernel, _ptsz,
     (CUfunction f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz, unsigned m,
      CUstream s, void **p, void **x),
     (f, gx, gy, gz, bx, by, bz, m, own(s), p, x))
TWIN(cuLaunchCooperativeKernel, _ptsz,
     (CUfunction f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz, unsigned m,
      CUstream s, void **p),
     (f, gx, gy, gz, bx, by, bz, m, own(s), p))
TWIN(cuLaunchHostFunc, _ptsz, (CUstream s, CUhostFn f, void *u), (own(s), f, u))
TWIN(cuMemAllocAsync, _ptsz, (CUdeviceptr * p, size_t n, CUstream s), (p, n, own(s)))
TWIN(cuMemAllocFromPoolAsync, _ptsz, (CUdeviceptr * p, size_t n, CUmemoryPool q, CUstream s), (p, n, q, own(s)))
TWIN(cuMemFreeAsync, _ptsz, (CUdeviceptr p, CUstream s), (p, own(s)))
TWIN(cuMemcpyAsync, _ptsz, (CUdeviceptr d, CUdeviceptr p, size_t n, CUstream s), (d, p, n, own(s)))
TWIN(cuMemcpyDtoDAsync_v2, _ptsz, (CUdeviceptr d, CUdeviceptr p, size_t n, CUstream s), (d, p, n, own(s)))
TWIN(cuMemcpyDtoHAsync_v2, _ptsz, (void *d, CUdeviceptr p, size_t n, CUstream s), (d, p, n, own(s)))
TWIN(cuMemcpyHtoDAsync_v2, _ptsz, (CUdeviceptr d, const void *p, size_t n, CUstream s), (d, p, n, own(s)))
TWIN(cuMemcpyPeerAsync, _ptsz, (CUdeviceptr d, CUcontext dc, CUdeviceptr p, CUcontext pc, size_t n, CUstream s),
     (d, dc, p, pc, n, own(s)))
TWIN(cuMemcpy2DAsync_v2, _ptsz, (const CUDA_MEMCPY2D *c, CUstream s), (c, own(s)))
TWIN(cuMemsetD8Async, _ptsz, (CUdeviceptr p, unsigned char v, size_t n, CUstream s), (p, v, n, own(s)))
TWIN(cuMemsetD16Async, _ptsz, (CUdeviceptr p, unsigned short v, size_t n, CUstream s), (p, v, n, own(s)))
TWIN(cuMemsetD32Async, _ptsz, (CUdeviceptr p, unsigned v, size_t n, CUstream s), (p, v, n, own(s)))
TWIN(cuStreamAddCallback, _ptsz, (CUstream s, CUstreamCallback c, void *u, unsigned f), (own(s), c, u, f))
TWIN(cuStreamBeginCapture_v2, _ptsz, (CUstream s, CUstreamCaptureMode m), (own(s), m))
TWIN(cuStreamBeginCaptureToGraph, _ptsz,
     (CUstream s, CUgraph g, const CUgraphNode *d, const void *e, size_t n, CUstreamCaptureMode m),
     (own(s), g, d, e, n, m))
TWIN(cuStreamEndCapture, _ptsz, (CUstream s, CUgraph *g), (own(s), g))
TWIN(cuStreamGetCaptureInfo_v2, _ptsz,
     (CUstream s, CUstreamCaptureStatus *t, unsigned long long *i, CUgraph *g, const CUgraphNode **d, size_t *n),
     (own(s), t, i, g, d, n))
TWIN(cuStreamGetCaptureInfo_v3, _ptsz,
     (CUstream s, CUstreamCaptureStatus *t, unsigned long long *i, CUgraph *g, const CUgraphNode **d,
      const void **e, size_t *n),
     (own(s), t, i, g, d, e, n))
TWIN(cuStreamGetCtx, _ptsz, (CUstream s, CUcontext *c), (own(s), c))
TWIN(cuStreamGetDevice, _ptsz, (CUstream s, CUdevice *d), (own(s), d))
TWIN(cuStreamGetFlags, _ptsz, (CUstream s, unsigned *f), (own(s), f))
TWIN(cuStreamGetId, _ptsz, (CUstream s, unsigned long long *i), (own(s), i))
TWIN(cuStreamGetPriority, _ptsz, (CUstream s, int *p), (own(s), p))
TWIN(cuStreamIsCapturing, _ptsz, (CUstream s, CUstreamCaptureStatus *t), (own(s), t))
TWIN(cuStreamQuery, _ptsz, (CUstream s), (own(s)))
TWIN(cuStreamSynchronize, _ptsz, (CUstream s), (own(s)))
TWIN(cuStreamWaitEvent, _ptsz, (CUstream s, CUevent e, unsigned f), (own(s), e, f))
TWIN(cuStreamWriteValue32_v2, _ptsz, (CUstream s, CUdeviceptr p, uint32_t v, unsigned f), (own(s), p, v, f))
TWIN(cuStreamWriteValue64_v2, _ptsz, (CUstream s, CUdeviceptr p, uint64_t v, unsigned f), (own(s), p, v, f))

SIM_EXPORT CUresult cuLaunchKernelEx(const CUlaunchConfig *config, CUfunction f, void **p, void **x);
DRIVER(cuLaunchKernelEx_ptsz, (const CUlaunchConfig *config, CUfunction f, void **p, void **x))
{
    if (!config) return CUDA_ERROR_INVALID_VALUE;
    CUlaunchConfig mine = *config;
    mine.hStream = own(config->hStream);
    return cuLaunchKernelEx(&mine, f, p, x);
}

/* Synchronous copies: on the thread's own stream, then waited for. */
static CUresult wait_own(CUresult result)
{
    return result == CUDA_SUCCESS ? cuStreamSynchronize(CU_STREAM_PER_THREAD) : result;
}

DRIVER(cuMemcpy_ptds, (CUdeviceptr dst, CUdeviceptr src, size_t bytes))
{
    return wait_own(cuMemcpyAsync(dst, src, bytes, CU_STREAM_PER_THREAD));
}

DRIVER(cuMemcpyHtoD_v2_ptds, (CUdeviceptr dst, const void *src, size_t bytes))
{
    return wait_own(cuMemcpyHtoDAsync_v2(dst, src, bytes, CU_STREAM_PER_THREAD));
}

DRIVER(cuMemcpyDtoH_v2_ptds, (void *dst, CUdeviceptr src, size_t bytes))
{
    return wait_own(cuMemcpyDtoHAsync_v2(dst, src, bytes, CU_STREAM_PER_THREAD));
}

DRIVER(cuMemcpyDtoD_v2_ptds, (CUdeviceptr dst, CUdeviceptr src, size_t bytes))
{
    return cuMemcpyDtoDAsync_v2(dst, src, bytes, CU_STREAM_PER_THREAD);
}
