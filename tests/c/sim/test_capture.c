/* SPDX-License-Identifier: Apache-2.0 */
/* Stream capture: what it records, what it forbids by thread mode, and how it is spoilt. */
#include "support.h"

#include <pthread.h>

static void test_captured_work_runs_at_launch(void)
{
    use_device();
    CUmemGenericAllocationHandle handle;
    CUdeviceptr va = mapped(CHUNK, &handle);
    CUstream s = stream_new();
    CUgraph graph;
    CUgraphExec exec;
    CUstreamCaptureStatus status;
    unsigned char byte;
    CHECK_EQUAL(cuStreamBeginCapture_v2(s, CU_STREAM_CAPTURE_MODE_GLOBAL), 0);
    CHECK_EQUAL(cuMemsetD8Async(va, 7, 16, s), 0);
    CHECK_EQUAL(cuStreamIsCapturing(s, &status), 0);
    CHECK_EQUAL(status, CU_STREAM_CAPTURE_STATUS_ACTIVE);
    CHECK_EQUAL(cuStreamEndCapture(s, &graph), 0);
    CHECK_EQUAL(cuMemcpyDtoH_v2(&byte, va, 1), 0);
    CHECK_EQUAL(byte, 0);
    CHECK_EQUAL(cuGraphInstantiateWithFlags(&exec, graph, 0), 0);
    CHECK_EQUAL(cuGraphLaunch(exec, s), 0);
    CHECK_EQUAL(cuStreamSynchronize(s), 0);
    CHECK_EQUAL(cuMemcpyDtoH_v2(&byte, va, 1), 0);
    CHECK_EQUAL(byte, 7);
    CHECK_EQUAL(cuStreamEndCapture(s, &graph), CUDA_ERROR_ILLEGAL_STATE);
    CHECK_EQUAL(cuStreamBeginCapture_v2(NULL, CU_STREAM_CAPTURE_MODE_GLOBAL), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
}

static CUresult allocate(void)
{
    CUdeviceptr va;
    return cuMemAlloc_v2(&va, CHUNK);
}

static void test_an_unsafe_call_spoils_a_global_capture(void)
{
    use_device();
    CUstream s = stream_new();
    CUgraph graph = (CUgraph)8;
    CUstreamCaptureStatus status;
    CHECK_EQUAL(cuStreamBeginCapture_v2(s, CU_STREAM_CAPTURE_MODE_GLOBAL), 0);
    CHECK_EQUAL(allocate(), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    CHECK_EQUAL(cuStreamIsCapturing(s, &status), 0);
    CHECK_EQUAL(status, CU_STREAM_CAPTURE_STATUS_INVALIDATED);
    CHECK_EQUAL(cuMemsetD8Async(0, 0, 0, s), 0); /* nothing to do is nothing to refuse */
    CHECK_EQUAL(cuStreamEndCapture(s, &graph), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
    CHECK(graph == NULL);
    CHECK_EQUAL(allocate(), 0);
}

static void test_a_relaxed_thread_may(void)
{
    use_device();
    CUstream s = stream_new();
    CUgraph graph;
    CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
    CHECK_EQUAL(cuStreamBeginCapture_v2(s, CU_STREAM_CAPTURE_MODE_GLOBAL), 0);
    CHECK_EQUAL(cuThreadExchangeStreamCaptureMode(&mode), 0);
    CHECK_EQUAL(mode, CU_STREAM_CAPTURE_MODE_GLOBAL);
    CHECK_EQUAL(allocate(), 0);
    CHECK_EQUAL(cuThreadExchangeStreamCaptureMode(&mode), 0);
    CHECK_EQUAL(mode, CU_STREAM_CAPTURE_MODE_RELAXED);
    CHECK_EQUAL(cuStreamEndCapture(s, &graph), 0);
}

static void *allocate_elsewhere(void *result)
{
    CUcontext ctx;
    CHECK_EQUAL(cuDevicePrimaryCtxRetain(&ctx, 0), 0);
    CHECK_EQUAL(cuCtxSetCurrent(ctx), 0);
    *(CUresult *)result = allocate();
    return NULL;
}

static CUresult on_another_thread(void)
{
    CUresult result;
    pthread_t thread;
    CHECK_EQUAL(pthread_create(&thread, NULL, allocate_elsewhere, &result), 0);
    pthread_join(thread, NULL);
    return result;
}

static void test_modes_reach_other_threads_or_not(void)
{
    use_device();
    CUstream s = stream_new();
    CUgraph graph;
    CHECK_EQUAL(cuStreamBeginCapture_v2(s, CU_STREAM_CAPTURE_MODE_GLOBAL), 0);
    CHECK_EQUAL(on_another_thread(), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    CHECK_EQUAL(cuStreamEndCapture(s, &graph), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
    CHECK_EQUAL(cuStreamBeginCapture_v2(s, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL), 0);
    CHECK_EQUAL(on_another_thread(), 0);
    CHECK_EQUAL(allocate(), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    CHECK_EQUAL(cuStreamEndCapture(s, &graph), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
    CHECK_EQUAL(cuStreamBeginCapture_v2(s, CU_STREAM_CAPTURE_MODE_RELAXED), 0);
    CHECK_EQUAL(allocate(), 0);
    CHECK_EQUAL(cuStreamEndCapture(s, &graph), 0);
}

static void test_synchronising_a_capture(void)
{
    use_device();
    CUstream s = stream_new();
    CUevent e = event_new();
    CUgraph graph;
    CHECK_EQUAL(cuStreamBeginCapture_v2(s, CU_STREAM_CAPTURE_MODE_RELAXED), 0);
    CHECK_EQUAL(cuStreamSynchronize(s), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    CHECK_EQUAL(cuStreamEndCapture(s, &graph), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
    CHECK_EQUAL(cuStreamBeginCapture_v2(s, CU_STREAM_CAPTURE_MODE_RELAXED), 0);
    CHECK_EQUAL(cuEventRecord(e, s), 0);
    CHECK_EQUAL(cuEventQuery(e), CUDA_ERROR_CAPTURED_EVENT);
    CHECK_EQUAL(cuStreamEndCapture(s, &graph), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
    CHECK_EQUAL(cuStreamBeginCapture_v2(s, CU_STREAM_CAPTURE_MODE_RELAXED), 0);
    CHECK_EQUAL(cuCtxRecordEvent(NULL, event_new()), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    CHECK_EQUAL(cuStreamEndCapture(s, &graph), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
}

static void test_fork_and_join(void)
{
    use_device();
    CUstream origin = stream_new(), side = stream_new();
    CUevent fork_event = event_new(), join_event = event_new(), outside = event_new();
    CUgraph graph;
    CUmemGenericAllocationHandle handle;
    CUdeviceptr va = mapped(CHUNK, &handle);
    CHECK_EQUAL(cuStreamBeginCapture_v2(origin, CU_STREAM_CAPTURE_MODE_GLOBAL), 0);
    CHECK_EQUAL(cuEventRecord(fork_event, origin), 0);
    CHECK_EQUAL(cuStreamWaitEvent(side, fork_event, 0), 0);
    CHECK_EQUAL(cuMemsetD8Async(va, 1, 1, side), 0);
    CHECK_EQUAL(cuStreamEndCapture(side, &graph), CUDA_ERROR_STREAM_CAPTURE_UNMATCHED);
    CHECK_EQUAL(cuStreamEndCapture(origin, &graph), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);

    CHECK_EQUAL(cuStreamBeginCapture_v2(origin, CU_STREAM_CAPTURE_MODE_GLOBAL), 0);
    CHECK_EQUAL(cuEventRecord(fork_event, origin), 0);
    CHECK_EQUAL(cuStreamWaitEvent(side, fork_event, 0), 0);
    CHECK_EQUAL(cuMemsetD8Async(va, 1, 1, side), 0);
    CHECK_EQUAL(cuStreamEndCapture(origin, &graph), CUDA_ERROR_STREAM_CAPTURE_UNJOINED);

    CHECK_EQUAL(cuStreamBeginCapture_v2(origin, CU_STREAM_CAPTURE_MODE_GLOBAL), 0);
    CHECK_EQUAL(cuEventRecord(fork_event, origin), 0);
    CHECK_EQUAL(cuStreamWaitEvent(side, fork_event, 0), 0);
    CHECK_EQUAL(cuMemsetD8Async(va, 1, 1, side), 0);
    CHECK_EQUAL(cuEventRecord(join_event, side), 0);
    CHECK_EQUAL(cuStreamWaitEvent(origin, join_event, 0), 0);
    CHECK_EQUAL(cuStreamEndCapture(origin, &graph), 0);

    CHECK_EQUAL(cuEventRecord(outside, side), 0);
    CHECK_EQUAL(cuStreamBeginCapture_v2(origin, CU_STREAM_CAPTURE_MODE_GLOBAL), 0);
    CHECK_EQUAL(cuStreamWaitEvent(origin, outside, 0), CUDA_ERROR_STREAM_CAPTURE_ISOLATION);
    CHECK_EQUAL(cuStreamEndCapture(origin, &graph), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
}

static void test_the_legacy_stream_beside_a_capture(void)
{
    use_device();
    CUstream blocking;
    CUgraph graph;
    CUmemGenericAllocationHandle handle;
    CUdeviceptr va = mapped(CHUNK, &handle);
    CHECK_EQUAL(cuStreamCreate(&blocking, CU_STREAM_DEFAULT), 0);
    CHECK_EQUAL(cuStreamBeginCapture_v2(blocking, CU_STREAM_CAPTURE_MODE_RELAXED), 0);
    CHECK_EQUAL(cuMemsetD8Async(va, 1, 1, NULL), CUDA_ERROR_STREAM_CAPTURE_IMPLICIT);
    CHECK_EQUAL(cuStreamEndCapture(blocking, &graph), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
    CUstream free_one = stream_new();
    CHECK_EQUAL(cuStreamBeginCapture_v2(free_one, CU_STREAM_CAPTURE_MODE_RELAXED), 0);
    CHECK_EQUAL(cuMemsetD8Async(va, 1, 1, NULL), 0);
    CHECK_EQUAL(cuStreamEndCapture(free_one, &graph), 0);
}

int main(void)
{
    RUN_SIM(test_captured_work_runs_at_launch);
    RUN_LATE(test_captured_work_runs_at_launch);
    RUN_SIM(test_an_unsafe_call_spoils_a_global_capture);
    RUN_SIM(test_a_relaxed_thread_may);
    RUN_SIM(test_modes_reach_other_threads_or_not);
    RUN_SIM(test_synchronising_a_capture);
    RUN_SIM(test_fork_and_join);
    RUN_SIM(test_the_legacy_stream_beside_a_capture);
    return 0;
}
