/* SPDX-License-Identifier: Apache-2.0 */
/* Events: a place in a stream's order, with the vector clock it stands for. */
#include "sim/driver/driver.h"

/* The stream matters only until it has come to the event. */
static bool happened_locked(struct sim_event *event)
{
    if (!event->stream) return true;
    if (event->stream->completed < event->seq) return false;
    sim_stream_unref_locked(event->stream);
    event->stream = NULL;
    return true;
}

void sim_event_unref_locked(struct sim_event *event)
{
    if (--event->refs) return;
    if (event->stream) sim_stream_unref_locked(event->stream);
    sim_clock_clear(&event->clock);
    sim_object_free_locked(event);
}

static struct sim_event *event_get_locked(CUevent handle)
{
    struct sim_event *event = sim_object_get_locked(SIM_EVENT, handle);
    return event && !event->destroyed ? event : NULL;
}

DRIVER(cuEventCreate, (CUevent * out, unsigned flags))
{
    ENTER_CTX(cuEventCreate, ctx);
    if (!out || flags > 7) return CUDA_ERROR_INVALID_VALUE;
    if ((flags & CU_EVENT_INTERPROCESS) && !(flags & CU_EVENT_DISABLE_TIMING)) return CUDA_ERROR_INVALID_VALUE;
    sim_lock();
    struct sim_event *event = sim_object_new_locked(SIM_EVENT);
    if (event) {
        event->ctx = ctx;
        event->flags = flags;
        event->refs = 1;
        *out = (CUevent)(void *)event;
    }
    sim_unlock();
    return event ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

DRIVER(cuEventDestroy_v2, (CUevent handle))
{
    ENTER_CTX(cuEventDestroy, ctx);
    (void)ctx;
    sim_lock();
    struct sim_event *event = event_get_locked(handle);
    if (event) {
        event->destroyed = true;
        sim_event_unref_locked(event);
    }
    sim_unlock();
    return event ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

static CUresult record_locked(struct sim_event *event, struct sim_stream *stream)
{
    if (event->ctx != stream->ctx) return CUDA_ERROR_INVALID_HANDLE;
    const struct sim_op op = {.kind = SIM_OP_RECORD, .u.record = {event}};
    if (stream->capture) {
        const struct sim_op empty = {.kind = SIM_OP_EMPTY};
        CUresult result = sim_capture_add_locked(stream, &empty);
        if (result != CUDA_SUCCESS) return result;
        event->capture_id = stream->capture->id;
        event->captured = stream->captured;
    } else {
        event->refs++;
        CUresult result = sim_submit_locked(stream, &op);
        if (result != CUDA_SUCCESS && !stream->ctx->sticky) sim_event_unref_locked(event);
        if (result != CUDA_SUCCESS) return result;
        event->capture_id = 0;
    }
    if (event->stream) sim_stream_unref_locked(event->stream);
    stream->refs++;
    event->stream = stream;
    event->seq = stream->submitted;
    event->recorded = true;
    sim_clock_clear(&event->clock);
    sim_clock_join(&event->clock, &stream->clock);
    return CUDA_SUCCESS;
}

static CUresult record(struct sim_ctx *ctx, CUevent handle, CUstream stream_handle)
{
    sim_lock();
    struct sim_event *event = event_get_locked(handle);
    struct sim_stream *stream;
    CUresult result = event ? sim_stream_get_locked(ctx, stream_handle, &stream) : CUDA_ERROR_INVALID_HANDLE;
    if (result == CUDA_SUCCESS) result = record_locked(event, stream);
    sim_unlock();
    return result;
}

DRIVER(cuEventRecord, (CUevent handle, CUstream stream))
{
    ENTER_CTX(cuEventRecord, ctx);
    return record(ctx, handle, stream);
}

DRIVER(cuEventRecordWithFlags, (CUevent handle, CUstream stream, unsigned flags))
{
    ENTER_CTX(cuEventRecordWithFlags, ctx);
    if (flags > CU_EVENT_RECORD_EXTERNAL) return CUDA_ERROR_INVALID_VALUE;
    return record(ctx, handle, stream);
}

/* All work of the context so far: recorded on a stream of its own, behind a wait for every other one. */
DRIVER(cuCtxRecordEvent, (CUcontext context, CUevent handle))
{
    ENTER(cuCtxRecordEvent);
    sim_lock();
    struct sim_ctx *ctx = context ? sim_object_get_locked(SIM_CTX, context) : sim_ctx_peek();
    struct sim_event *event = event_get_locked(handle);
    CUresult result = !ctx ? CUDA_ERROR_INVALID_CONTEXT : event ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
    for (struct sim_capture *c = sim.captures; c && result == CUDA_SUCCESS; c = c->next)
        if (c->origin->ctx == ctx) {
            sim_capture_spoil_locked(c);
            result = CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
        }
    struct sim_stream *helper = result == CUDA_SUCCESS ? sim_ctx_helper_locked(ctx) : NULL;
    if (result == CUDA_SUCCESS && !helper) result = CUDA_ERROR_OUT_OF_MEMORY;
    for (struct sim_stream *s = ctx ? ctx->streams : NULL; s && result == CUDA_SUCCESS; s = s->next) {
        if (s == helper) continue;
        struct sim_op op = {.kind = SIM_OP_WAIT, .u.wait = {s, s->submitted}};
        s->refs++;
        sim_clock_join_once(&helper->clock, &s->clock, &s->joined.to_helper);
        result = sim_submit_locked(helper, &op);
    }
    if (helper) sim_clock_join(&helper->clock, &ctx->ended);
    if (result == CUDA_SUCCESS) result = record_locked(event, helper);
    sim_unlock();
    return result;
}

static CUresult captured_locked(const struct sim_event *event)
{
    struct sim_capture *capture = event->capture_id ? sim_capture_find_locked(event->capture_id) : NULL;
    if (!capture) return CUDA_SUCCESS;
    sim_capture_spoil_locked(capture);
    return CUDA_ERROR_CAPTURED_EVENT;
}

DRIVER(cuEventQuery, (CUevent handle))
{
    ENTER_CTX(cuEventQuery, ctx);
    sim_lock();
    struct sim_event *event = event_get_locked(handle);
    CUresult result = event ? captured_locked(event) : CUDA_ERROR_INVALID_HANDLE;
    if (result == CUDA_SUCCESS) result = sim_capture_unsafe_locked();
    if (result == CUDA_SUCCESS) {
        if (happened_locked(event)) sim_host_knows_locked(&event->clock);
        else result = CUDA_ERROR_NOT_READY;
        if (ctx->sticky) result = ctx->sticky;
    }
    sim_unlock();
    return result;
}

DRIVER(cuEventSynchronize, (CUevent handle))
{
    ENTER_CTX(cuEventSynchronize, ctx);
    sim_lock();
    struct sim_event *event = event_get_locked(handle);
    CUresult result = event ? captured_locked(event) : CUDA_ERROR_INVALID_HANDLE;
    if (result == CUDA_SUCCESS) result = sim_capture_unsafe_locked();
    if (result == CUDA_SUCCESS) {
        struct sim_clock seen = {0};
        sim_clock_join(&seen, &event->clock);
        if (event->stream) sim_wait_until_locked(event->stream, event->seq);
        sim_host_knows_locked(&seen);
        sim_clock_clear(&seen);
        sim_pool_relax_locked();
        sim_breathe_locked(80);
        result = ctx->sticky;
    }
    sim_unlock();
    return result;
}

DRIVER(cuEventElapsedTime_v2, (float *out, CUevent first, CUevent second))
{
    ENTER(cuEventElapsedTime);
    if (!out) return CUDA_ERROR_INVALID_VALUE;
    sim_lock();
    struct sim_event *a = event_get_locked(first), *b = event_get_locked(second);
    CUresult result = CUDA_SUCCESS;
    if (!a || !b || !a->recorded || !b->recorded || ((a->flags | b->flags) & CU_EVENT_DISABLE_TIMING))
        result = CUDA_ERROR_INVALID_HANDLE;
    else if (!happened_locked(a) || !happened_locked(b)) result = CUDA_ERROR_NOT_READY;
    else *out = (float)((double)(int64_t)(b->time_ns - a->time_ns) / 1e6);
    sim_unlock();
    return result;
}

DRIVER(cuStreamWaitEvent, (CUstream stream_handle, CUevent handle, unsigned flags))
{
    ENTER_CTX(cuStreamWaitEvent, ctx);
    if (flags > CU_EVENT_WAIT_EXTERNAL) return CUDA_ERROR_INVALID_VALUE;
    bool done = false;
    sim_lock();
    struct sim_event *event = event_get_locked(handle);
    struct sim_stream *stream;
    CUresult result = event ? sim_stream_get_locked(ctx, stream_handle, &stream) : CUDA_ERROR_INVALID_HANDLE;
    if (result == CUDA_SUCCESS) result = sim_capture_wait_locked(stream, event, &done);
    if (result == CUDA_SUCCESS && !done) {
        sim_clock_join(&stream->clock, &event->clock);
        if (!happened_locked(event)) {
            struct sim_op op = {.kind = SIM_OP_WAIT, .u.wait = {event->stream, event->seq}};
            event->stream->refs++;
            result = sim_submit_locked(stream, &op);
        }
    }
    sim_unlock();
    return result;
}
