/* SPDX-License-Identifier: Apache-2.0 */
/* Stream captures: counted, so that nothing of ours disturbs one, and kept by stream, so that the end
 * of each is known. */
#define _GNU_SOURCE
#include "interpose/shim.h"

#define MAX_CAPTURES 256

/* The streams whose captures began and have not ended, each with the thread's own stream told apart. */
static struct {
    gml_lock lock;
    uint64_t streams[MAX_CAPTURES];
    unsigned count;
} captures = {.lock = GML_LOCK_INIT};

static _Thread_local char thread_mark __attribute__((tls_model("initial-exec")));

cudaStream_t gml_stream_normal(cudaStream_t stream, bool per_thread)
{
    if (stream == NULL)
        return per_thread ? CU_STREAM_PER_THREAD : NULL;
    return stream == CU_STREAM_LEGACY ? NULL : stream;
}

static uint64_t key_of(cudaStream_t stream)
{
    return stream == CU_STREAM_PER_THREAD ? (uint64_t)(uintptr_t)&thread_mark : (uint64_t)(uintptr_t)stream;
}

/* Tells everybody how many captures there are. The lock is held. */
static void publish_locked(gml_shim *shim)
{
    atomic_store(&shim->driver.captures, captures.count);
    int end = atomic_load(&shim->device_end);
    for (int i = 0; i < end; i++)
        if (gml_shim_state(&shim->devices[i]) == GML_DEVICE_SERVING)
            gml_heap_set_captures(shim->devices[i].heap, captures.count);
}

static void begun(gml_shim *shim, cudaStream_t stream)
{
    gml_lock_acquire(&captures.lock);
    if (captures.count < MAX_CAPTURES)
        captures.streams[captures.count++] = key_of(stream);
    gml_telemetry_add(&shim->telemetry->captures, 1);
    publish_locked(shim);
    gml_lock_release(&captures.lock);
}

static void ended(gml_shim *shim, cudaStream_t stream)
{
    gml_lock_acquire(&captures.lock);
    for (unsigned i = 0; i < captures.count; i++) {
        if (captures.streams[i] == key_of(stream)) {
            captures.streams[i] = captures.streams[--captures.count];
            break;
        }
    }
    publish_locked(shim);
    gml_lock_release(&captures.lock);
}

/* After these answers the capture still goes on; after any other it is over. */
static bool still_capturing(cudaError_t error)
{
    return error == cudaErrorInvalidValue || error == cudaErrorInvalidResourceHandle ||
           error == cudaErrorIllegalState || error == cudaErrorStreamCaptureUnmatched ||
           error == cudaErrorStreamCaptureWrongThread;
}

bool gml_capture_on(gml_shim *shim, cudaStream_t stream)
{
    int status = CU_STREAM_CAPTURE_STATUS_NONE;
    if (atomic_load_explicit(&shim->driver.captures, memory_order_relaxed) == 0 || !shim->has_driver)
        return false;
    /* Asked of the driver, which keeps no last error. An error means that the legacy stream is named
     * while a capture forbids it: the real function must say so. */
    return shim->driver.stream_capturing(stream, &status) != CUDA_SUCCESS ||
           status != CU_STREAM_CAPTURE_STATUS_NONE;
}

/* Counts before the real call: between the two, no call of ours may disturb the capture. */
#define BEGIN(function, per_thread, ...)                                             \
    gml_caller caller = gml_lookup_caller(__builtin_return_address(0));              \
    if (caller.real == NULL || caller.real->function == NULL)                        \
        return cudaErrorInsufficientDriver;                                          \
    gml_shim *shim = gml_shim_inside() ? NULL : gml_shim_get();                      \
    if (shim != NULL)                                                                \
        begun(shim, gml_stream_normal(stream, per_thread));                          \
    cudaError_t error = caller.real->function(__VA_ARGS__);                          \
    if (shim != NULL && error != cudaSuccess)                                        \
        ended(shim, gml_stream_normal(stream, per_thread));                          \
    return error

#define END(function, per_thread)                                                    \
    gml_caller caller = gml_lookup_caller(__builtin_return_address(0));              \
    if (caller.real == NULL || caller.real->function == NULL)                        \
        return cudaErrorInsufficientDriver;                                          \
    cudaError_t error = caller.real->function(stream, out_graph);                    \
    gml_shim *shim = gml_shim_inside() ? NULL : gml_shim_peek();                     \
    if (shim != NULL && !still_capturing(error))                                     \
        ended(shim, gml_stream_normal(stream, per_thread));                          \
    return error

cudaError_t cudaStreamBeginCapture(cudaStream_t stream, int mode)
{
    BEGIN(cudaStreamBeginCapture, false, stream, mode);
}

cudaError_t cudaStreamBeginCapture_ptsz(cudaStream_t stream, int mode)
{
    BEGIN(cudaStreamBeginCapture_ptsz, true, stream, mode);
}

cudaError_t cudaStreamBeginCaptureToGraph(cudaStream_t stream, cudaGraph_t graph, const cudaGraphNode_t *nodes,
                                          const void *edges, size_t count, int mode)
{
    BEGIN(cudaStreamBeginCaptureToGraph, false, stream, graph, nodes, edges, count, mode);
}

cudaError_t cudaStreamBeginCaptureToGraph_ptsz(cudaStream_t stream, cudaGraph_t graph,
                                               const cudaGraphNode_t *nodes, const void *edges, size_t count,
                                               int mode)
{
    BEGIN(cudaStreamBeginCaptureToGraph_ptsz, true, stream, graph, nodes, edges, count, mode);
}

cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t *out_graph)
{
    END(cudaStreamEndCapture, false);
}

cudaError_t cudaStreamEndCapture_ptsz(cudaStream_t stream, cudaGraph_t *out_graph)
{
    END(cudaStreamEndCapture_ptsz, true);
}

cudaError_t cudaStreamDestroy(cudaStream_t stream)
{
    gml_caller caller = gml_lookup_caller(__builtin_return_address(0));
    if (caller.real == NULL || caller.real->cudaStreamDestroy == NULL)
        return cudaErrorInsufficientDriver;
    gml_shim *shim = gml_shim_inside() ? NULL : gml_shim_peek();
    if (shim != NULL && stream != NULL) {
        gml_this_thread.depth++;
        bool capturing = gml_capture_on(shim, stream);
        int end = atomic_load(&shim->device_end);
        for (int i = 0; i < end; i++)
            if (gml_shim_state(&shim->devices[i]) == GML_DEVICE_SERVING)
                gml_heap_stream_destroyed(shim->devices[i].heap, (gml_stream)(uintptr_t)stream);
        gml_this_thread.depth--;
        cudaError_t error = caller.real->cudaStreamDestroy(stream);
        if (capturing && error == cudaSuccess)
            ended(shim, stream);
        return error;
    }
    return caller.real->cudaStreamDestroy(stream);
}
