/* SPDX-License-Identifier: Apache-2.0 */
/* Stream capture: what is recorded instead of run, and what the capture modes forbid meanwhile.
 *
 * A capture starts on one stream; others join by waiting on an event recorded in it, and must be waited
 * for before it ends. A forbidden call spoils the capture: it ends with 901 and without a graph. */
#include "sim/driver/driver.h"

#include <stdlib.h>

static __thread CUstreamCaptureMode thread_mode = CU_STREAM_CAPTURE_MODE_GLOBAL;
static uint64_t next_id;

struct sim_capture *sim_capture_find_locked(uint64_t id)
{
    struct sim_capture *capture = sim.captures;
    while (capture && capture->id != id) capture = capture->next;
    return capture;
}

void sim_capture_spoil_locked(struct sim_capture *capture)
{
    capture->invalid = true;
}

/* Global captures forbid unsafe calls on every thread, thread-local ones on their own, relaxed ones none. */
CUresult sim_capture_unsafe_locked(void)
{
    if (thread_mode == CU_STREAM_CAPTURE_MODE_RELAXED) return CUDA_SUCCESS;
    CUresult result = CUDA_SUCCESS;
    for (struct sim_capture *c = sim.captures; c; c = c->next) {
        bool mine = pthread_equal(c->thread, pthread_self());
        bool forbids = c->mode == CU_STREAM_CAPTURE_MODE_GLOBAL
                           ? mine || thread_mode == CU_STREAM_CAPTURE_MODE_GLOBAL
                           : c->mode == CU_STREAM_CAPTURE_MODE_THREAD_LOCAL && mine;
        if (!forbids) continue;
        sim_capture_spoil_locked(c);
        result = CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    }
    return result;
}

CUresult sim_capture_refuse_locked(struct sim_stream *stream)
{
    if (stream->capture) {
        sim_capture_spoil_locked(stream->capture);
        return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    }
    if (stream == stream->ctx->legacy) return sim_capture_legacy_locked(stream->ctx);
    return sim_capture_unsafe_locked();
}

CUresult sim_capture_legacy_locked(struct sim_ctx *ctx)
{
    if (!sim.captures) return CUDA_SUCCESS;
    for (struct sim_stream *s = ctx->streams; s; s = s->next)
        if (s->capture && !(s->flags & CU_STREAM_NON_BLOCKING)) {
            sim_capture_spoil_locked(s->capture);
            return CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
        }
    return CUDA_SUCCESS;
}

CUresult sim_capture_add_locked(struct sim_stream *stream, const struct sim_op *op)
{
    struct sim_capture *capture = stream->capture;
    if (capture->invalid) return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
    if (!sim_graph_add_locked(capture->graph, op)) return CUDA_ERROR_OUT_OF_MEMORY;
    stream->captured++;
    stream->unjoined = stream != capture->origin;
    return CUDA_SUCCESS;
}

static CUresult join_locked(struct sim_stream *stream, struct sim_capture *capture)
{
    if (capture->members == SIM_CAPTURE_STREAMS) return CUDA_ERROR_OUT_OF_MEMORY;
    capture->member[capture->members++] = stream;
    stream->refs++;
    stream->capture = capture;
    stream->captured = 0;
    stream->unjoined = stream != capture->origin;
    return CUDA_SUCCESS;
}

CUresult sim_capture_wait_locked(struct sim_stream *stream, struct sim_event *event, bool *done)
{
    struct sim_capture *of_event = event->capture_id ? sim_capture_find_locked(event->capture_id) : NULL;
    *done = stream->capture || of_event || event->capture_id;
    if (!of_event) {
        if (!stream->capture) return event->capture_id ? CUDA_ERROR_CAPTURED_EVENT : CUDA_SUCCESS;
        if (!event->recorded) return CUDA_SUCCESS;
        sim_capture_spoil_locked(stream->capture);
        return CUDA_ERROR_STREAM_CAPTURE_ISOLATION;
    }
    if (of_event->invalid) return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
    if (!stream->capture) {
        if (stream == stream->ctx->legacy) return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
        CUresult result = join_locked(stream, of_event);
        if (result != CUDA_SUCCESS) return result;
    } else if (stream->capture != of_event) {
        sim_capture_spoil_locked(stream->capture);
        sim_capture_spoil_locked(of_event);
        return CUDA_ERROR_STREAM_CAPTURE_MERGE;
    }
    struct sim_stream *from = event->stream;
    if (from && from != stream && from->captured == event->captured) from->unjoined = false;
    if (stream != of_event->origin) stream->unjoined = true;
    sim_clock_join(&stream->clock, &event->clock);
    return CUDA_SUCCESS;
}

static CUresult begin(CUstream handle, CUstreamCaptureMode mode, CUgraph existing)
{
    struct sim_ctx *ctx;
    struct sim_stream *stream;
    CUresult result = sim_ctx_current(&ctx);
    if (result != CUDA_SUCCESS) return result;
    if (mode > CU_STREAM_CAPTURE_MODE_RELAXED) return CUDA_ERROR_INVALID_VALUE;
    sim_lock();
    result = sim_stream_get_locked(ctx, handle, &stream);
    if (result == CUDA_SUCCESS && stream == ctx->legacy) result = CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    if (result == CUDA_SUCCESS && stream->capture) result = CUDA_ERROR_ILLEGAL_STATE;
    if (result != CUDA_SUCCESS) goto done;
    struct sim_capture *capture = calloc(1, sizeof *capture);
    struct sim_graph *graph = existing ? sim_object_get_locked(SIM_GRAPH, existing) : sim_object_new_locked(SIM_GRAPH);
    if (!capture || !graph) {
        free(capture);
        result = existing ? CUDA_ERROR_INVALID_VALUE : CUDA_ERROR_OUT_OF_MEMORY;
        goto done;
    }
    capture->id = ++next_id;
    capture->mode = mode;
    capture->thread = pthread_self();
    capture->origin = stream;
    capture->graph = graph;
    capture->to_existing_graph = existing != NULL;
    capture->next = sim.captures;
    sim.captures = capture;
    result = join_locked(stream, capture);
done:
    sim_unlock();
    return result;
}

DRIVER(cuStreamBeginCapture_v2, (CUstream stream, CUstreamCaptureMode mode))
{
    ENTER(cuStreamBeginCapture);
    return begin(stream, mode, NULL);
}

DRIVER(cuStreamBeginCaptureToGraph, (CUstream stream, CUgraph graph, const CUgraphNode *dependencies, const void *data,
                                     size_t count, CUstreamCaptureMode mode))
{
    ENTER(cuStreamBeginCaptureToGraph);
    (void)dependencies, (void)data, (void)count;
    return graph ? begin(stream, mode, graph) : CUDA_ERROR_INVALID_VALUE;
}

/* Takes the capture apart; true when every stream had been joined. */
static bool finish_locked(struct sim_capture *capture)
{
    bool joined = true;
    for (unsigned i = 0; i < capture->members; i++) {
        struct sim_stream *s = capture->member[i];
        if (s->unjoined) joined = false;
        s->capture = NULL;
        s->unjoined = false;
        sim_stream_unref_locked(s);
    }
    struct sim_capture **link = &sim.captures;
    while (*link != capture) link = &(*link)->next;
    *link = capture->next;
    return joined;
}

DRIVER(cuStreamEndCapture, (CUstream handle, CUgraph *out))
{
    ENTER_CTX(cuStreamEndCapture, ctx);
    struct sim_stream *stream;
    if (out) *out = NULL;
    sim_lock();
    CUresult result = sim_stream_get_locked(ctx, handle, &stream);
    if (result == CUDA_SUCCESS && !stream->capture) result = CUDA_ERROR_ILLEGAL_STATE;
    if (result != CUDA_SUCCESS) goto done;
    struct sim_capture *capture = stream->capture;
    if (capture->origin != stream) {
        sim_capture_spoil_locked(capture);
        result = CUDA_ERROR_STREAM_CAPTURE_UNMATCHED;
        goto done;
    }
    if (capture->mode != CU_STREAM_CAPTURE_MODE_RELAXED && !pthread_equal(capture->thread, pthread_self())) {
        result = CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD;
        goto done;
    }
    bool joined = finish_locked(capture);
    if (capture->invalid) result = CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
    else if (!joined) result = CUDA_ERROR_STREAM_CAPTURE_UNJOINED;
    if (result == CUDA_SUCCESS && out) *out = (CUgraph)(void *)capture->graph;
    else if (!capture->to_existing_graph) sim_graph_free_locked(capture->graph);
    free(capture);
done:
    sim_unlock();
    return result;
}

DRIVER(cuStreamIsCapturing, (CUstream handle, CUstreamCaptureStatus *out))
{
    ENTER_CTX(cuStreamIsCapturing, ctx);
    if (!out) return CUDA_ERROR_INVALID_VALUE;
    struct sim_stream *stream;
    sim_lock();
    CUresult result = sim_stream_get_locked(ctx, handle, &stream);
    if (result == CUDA_SUCCESS && stream == ctx->legacy) result = sim_capture_legacy_locked(ctx);
    if (result == CUDA_SUCCESS)
        *out = !stream->capture           ? CU_STREAM_CAPTURE_STATUS_NONE
               : stream->capture->invalid ? CU_STREAM_CAPTURE_STATUS_INVALIDATED
                                          : CU_STREAM_CAPTURE_STATUS_ACTIVE;
    sim_unlock();
    return result;
}

static CUresult info(CUstream handle, CUstreamCaptureStatus *status, unsigned long long *id, CUgraph *graph)
{
    struct sim_ctx *ctx;
    struct sim_stream *stream;
    CUresult result = sim_ctx_current(&ctx);
    if (result != CUDA_SUCCESS) return result;
    if (!status) return CUDA_ERROR_INVALID_VALUE;
    sim_lock();
    result = sim_stream_get_locked(ctx, handle, &stream);
    if (result == CUDA_SUCCESS && stream == ctx->legacy) result = sim_capture_legacy_locked(ctx);
    if (result == CUDA_SUCCESS) {
        const struct sim_capture *c = stream->capture;
        *status = !c ? CU_STREAM_CAPTURE_STATUS_NONE
                     : c->invalid ? CU_STREAM_CAPTURE_STATUS_INVALIDATED : CU_STREAM_CAPTURE_STATUS_ACTIVE;
        if (c && id) *id = c->id;
        if (c && graph) *graph = (CUgraph)(void *)c->graph;
    }
    sim_unlock();
    return result;
}

/* The dependencies of the next node are not modelled: the set is reported as empty. */
DRIVER(cuStreamGetCaptureInfo_v2, (CUstream stream, CUstreamCaptureStatus *status, unsigned long long *id,
                                   CUgraph *graph, const CUgraphNode **dependencies, size_t *count))
{
    ENTER(cuStreamGetCaptureInfo);
    if (dependencies) *dependencies = NULL;
    if (count) *count = 0;
    return info(stream, status, id, graph);
}

DRIVER(cuStreamGetCaptureInfo_v3, (CUstream stream, CUstreamCaptureStatus *status, unsigned long long *id,
                                   CUgraph *graph, const CUgraphNode **dependencies, const void **edges, size_t *count))
{
    ENTER(cuStreamGetCaptureInfo);
    if (dependencies) *dependencies = NULL;
    if (edges) *edges = NULL;
    if (count) *count = 0;
    return info(stream, status, id, graph);
}

DRIVER(cuThreadExchangeStreamCaptureMode, (CUstreamCaptureMode * mode))
{
    ENTER(cuThreadExchangeStreamCaptureMode);
    if (!mode || *mode > CU_STREAM_CAPTURE_MODE_RELAXED) return CUDA_ERROR_INVALID_VALUE;
    CUstreamCaptureMode old = thread_mode;
    thread_mode = *mode;
    *mode = old;
    return CUDA_SUCCESS;
}
