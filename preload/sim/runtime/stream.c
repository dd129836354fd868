/* SPDX-License-Identifier: Apache-2.0 */
/* Streams, events, captures and graphs of the runtime: each call is the driver's. */
#include "sim/runtime/runtime.h"

/* A runtime call that is one driver call on the thread's context. */
#define CALL(name, driver_name, params, arguments)         \
    RUNTIME(name, params)                                  \
    {                                                      \
        BEGIN_CTX(name);                                   \
        return sim_return(drv->driver_name arguments);     \
    }

CALL(cudaStreamCreate, cuStreamCreateWithPriority, (cudaStream_t * out), (out, 0, 0))
CALL(cudaStreamCreateWithFlags, cuStreamCreateWithPriority, (cudaStream_t * out, unsigned flags), (out, flags, 0))
CALL(cudaStreamCreateWithPriority, cuStreamCreateWithPriority, (cudaStream_t * out, unsigned flags, int priority),
     (out, flags, priority))
CALL(cudaStreamDestroy, cuStreamDestroy, (cudaStream_t stream), (stream))
CALL(cudaStreamQuery, cuStreamQuery, (cudaStream_t stream), (stream))
CALL(cudaStreamSynchronize, cuStreamSynchronize, (cudaStream_t stream), (stream))
CALL(cudaStreamWaitEvent, cuStreamWaitEvent, (cudaStream_t stream, cudaEvent_t event, unsigned flags),
     (stream, event, flags))
CALL(cudaStreamGetPriority, cuStreamGetPriority, (cudaStream_t stream, int *priority), (stream, priority))
CALL(cudaStreamGetFlags, cuStreamGetFlags, (cudaStream_t stream, unsigned *flags), (stream, flags))
CALL(cudaStreamGetId, cuStreamGetId, (cudaStream_t stream, unsigned long long *id), (stream, id))
CALL(cudaStreamGetDevice, cuStreamGetDevice, (cudaStream_t stream, int *device), (stream, device))
CALL(cudaStreamIsCapturing, cuStreamIsCapturing, (cudaStream_t stream, CUstreamCaptureStatus *status),
     (stream, status))
CALL(cudaStreamBeginCapture, cuStreamBeginCapture, (cudaStream_t stream, CUstreamCaptureMode mode), (stream, mode))
CALL(cudaStreamBeginCaptureToGraph, cuStreamBeginCaptureToGraph,
     (cudaStream_t stream, cudaGraph_t graph, const cudaGraphNode_t *dependencies, const void *edges, size_t count,
      CUstreamCaptureMode mode),
     (stream, graph, dependencies, edges, count, mode))
CALL(cudaStreamEndCapture, cuStreamEndCapture, (cudaStream_t stream, cudaGraph_t *graph), (stream, graph))
CALL(cudaThreadExchangeStreamCaptureMode, cuThreadExchangeStreamCaptureMode, (CUstreamCaptureMode * mode), (mode))
CALL(cudaStreamGetCaptureInfo, cuStreamGetCaptureInfo,
     (cudaStream_t stream, CUstreamCaptureStatus *status, unsigned long long *id, cudaGraph_t *graph,
      const cudaGraphNode_t **dependencies, const void **edges, size_t *count),
     (stream, status, id, graph, dependencies, edges, count))
CALL(cudaLaunchHostFunc, cuLaunchHostFunc, (cudaStream_t stream, cudaHostFn_t fn, void *user), (stream, fn, user))
CALL(cudaStreamAddCallback, cuStreamAddCallback,
     (cudaStream_t stream, CUstreamCallback callback, void *user, unsigned flags), (stream, callback, user, flags))

CALL(cudaEventCreate, cuEventCreate, (cudaEvent_t * out), (out, 0))
CALL(cudaEventCreateWithFlags, cuEventCreate, (cudaEvent_t * out, unsigned flags), (out, flags))
CALL(cudaEventDestroy, cuEventDestroy, (cudaEvent_t event), (event))
CALL(cudaEventRecord, cuEventRecordWithFlags, (cudaEvent_t event, cudaStream_t stream), (event, stream, 0))
CALL(cudaEventRecordWithFlags, cuEventRecordWithFlags, (cudaEvent_t event, cudaStream_t stream, unsigned flags),
     (event, stream, flags))
CALL(cudaEventQuery, cuEventQuery, (cudaEvent_t event), (event))
CALL(cudaEventSynchronize, cuEventSynchronize, (cudaEvent_t event), (event))
CALL(cudaEventElapsedTime, cuEventElapsedTime, (float *ms, cudaEvent_t first, cudaEvent_t second),
     (ms, first, second))

CALL(cudaGraphCreate, cuGraphCreate, (cudaGraph_t * out, unsigned flags), (out, flags))
CALL(cudaGraphDestroy, cuGraphDestroy, (cudaGraph_t graph), (graph))
CALL(cudaGraphInstantiate, cuGraphInstantiate, (cudaGraphExec_t * out, cudaGraph_t graph, unsigned long long flags),
     (out, graph, flags))
CALL(cudaGraphInstantiateWithFlags, cuGraphInstantiate,
     (cudaGraphExec_t * out, cudaGraph_t graph, unsigned long long flags), (out, graph, flags))
CALL(cudaGraphExecDestroy, cuGraphExecDestroy, (cudaGraphExec_t exec), (exec))
CALL(cudaGraphLaunch, cuGraphLaunch, (cudaGraphExec_t exec, cudaStream_t stream), (exec, stream))
CALL(cudaGraphUpload, cuGraphUpload, (cudaGraphExec_t exec, cudaStream_t stream), (exec, stream))
CALL(cudaGraphGetNodes, cuGraphGetNodes, (cudaGraph_t graph, cudaGraphNode_t *nodes, size_t *count),
     (graph, nodes, count))
CALL(cudaGraphRetainUserObject, cuGraphRetainUserObject,
     (cudaGraph_t graph, cudaUserObject_t object, unsigned count, unsigned flags), (graph, object, count, flags))
CALL(cudaUserObjectCreate, cuUserObjectCreate,
     (cudaUserObject_t * out, void *pointer, cudaHostFn_t destroy, unsigned refs, unsigned flags),
     (out, pointer, destroy, refs, flags))
CALL(cudaUserObjectRetain, cuUserObjectRetain, (cudaUserObject_t object, unsigned count), (object, count))
CALL(cudaUserObjectRelease, cuUserObjectRelease, (cudaUserObject_t object, unsigned count), (object, count))

/* ---- forms for the per-thread default stream ---- */

static cudaStream_t own(cudaStream_t stream)
{
    return stream ? stream : CU_STREAM_PER_THREAD;
}

RUNTIME(cudaStreamSynchronize_ptsz, (cudaStream_t stream))
{
    return cudaStreamSynchronize(own(stream));
}

RUNTIME(cudaStreamQuery_ptsz, (cudaStream_t stream))
{
    return cudaStreamQuery(own(stream));
}

RUNTIME(cudaStreamWaitEvent_ptsz, (cudaStream_t stream, cudaEvent_t event, unsigned flags))
{
    return cudaStreamWaitEvent(own(stream), event, flags);
}

RUNTIME(cudaEventRecord_ptsz, (cudaEvent_t event, cudaStream_t stream))
{
    return cudaEventRecord(event, own(stream));
}

RUNTIME(cudaLaunchHostFunc_ptsz, (cudaStream_t stream, cudaHostFn_t fn, void *user))
{
    return cudaLaunchHostFunc(own(stream), fn, user);
}

RUNTIME(cudaStreamGetId_ptsz, (cudaStream_t stream, unsigned long long *id))
{
    return cudaStreamGetId(own(stream), id);
}
