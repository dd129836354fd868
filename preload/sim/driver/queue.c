/* SPDX-License-Identifier: Apache-2.0 */
/* Work on streams: submitted in host order, executed in stream order, by a worker where it must wait.
 *
 * Fast time: what has nothing before it runs at once on the calling thread. Adversarial time: all work
 * goes through the worker, late and at a seeded pace. Host functions always go through a worker, so that
 * one that sleeps keeps its stream busy. A stream's progress is two numbers, submitted and completed;
 * "event e has happened" means: its stream has completed the number that e was recorded at.
 * The lock is held while work executes, except in host functions, in delays and while it waits for other work. */
#define _GNU_SOURCE
#include "sim/driver/driver.h"

#include <stdlib.h>
#include <time.h>
#include <unistd.h>

enum { WORKER_IDLE_SECONDS = 5 };

bool sim_stream_idle_locked(const struct sim_stream *stream)
{
    return stream->completed == stream->submitted;
}

void sim_op_drop_locked(struct sim_op *op)
{
    if (op->kind == SIM_OP_COPY) free(op->u.copy.staging);
    if (op->kind == SIM_OP_WAIT) sim_stream_unref_locked(op->u.wait.stream);
    if (op->kind == SIM_OP_KERNEL) sim_computation_unref_locked(op->u.kernel.computation);
    if (op->kind == SIM_OP_RECORD) sim_event_unref_locked(op->u.record.event);
}

static uint64_t real_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static __thread bool in_host_function;

bool sim_in_host_function(void)
{
    return in_host_function;
}

static void run_host_locked(struct sim_stream *stream, const struct sim_op *op)
{
    sim_unlock();
    in_host_function = true;
    if (op->u.host.callback) op->u.host.callback((CUstream)(void *)stream, CUDA_SUCCESS, op->u.host.user);
    else op->u.host.fn(op->u.host.user);
    in_host_function = false;
    sim_lock();
}

void sim_op_execute_locked(struct sim_stream *stream, struct sim_op *op)
{
    struct sim_range *range;
    switch (op->kind) {
    case SIM_OP_COPY: sim_copy_locked(stream, op); break;
    case SIM_OP_FILL: sim_fill_locked(stream->ctx, op); break;
    case SIM_OP_HOST: run_host_locked(stream, op); break;
    case SIM_OP_RECORD: op->u.record.event->time_ns = real_ns(); break;
    case SIM_OP_WAIT: sim_wait_until_locked(op->u.wait.stream, op->u.wait.seq); break;
    case SIM_OP_FREE:
        range = sim_range_find_locked(op->u.free.va);
        if (!range || range->id != op->u.free.id) break;
        if (range->kind == SIM_RANGE_GRAPH) sim_graph_memory_free_locked(range, op->u.free.generation);
        else sim_allocation_free_locked(range);
        break;
    case SIM_OP_ALLOC: break;
    case SIM_OP_TOUCH: sim_touch_locked(stream->ctx, op); break;
    case SIM_OP_KERNEL:
        sim.launches++;
        if (op->u.kernel.computation) sim_compute_locked(op->u.kernel.computation);
        else sim_known_nothing_locked();
        sim_values_executed_locked(stream, op->u.kernel.function);
        break;
    case SIM_OP_EMPTY: break;
    }
    sim_op_drop_locked(op);
}

/* xorshift64*: one generator a stream, so that a seed replays per stream. */
static uint64_t draw(struct sim_stream *stream)
{
    uint64_t x = stream->random ? stream->random : 1;
    x ^= x >> 12, x ^= x << 25, x ^= x >> 27;
    stream->random = x;
    return x * 2685821657736338717u >> 32;
}

static void delay_locked(struct sim_stream *stream, enum sim_op_kind kind)
{
    uint64_t n = draw(stream);
    unsigned us = 0;
    if (kind == SIM_OP_KERNEL || kind == SIM_OP_EMPTY) us = n % 16 == 0 ? (unsigned)(n >> 8) % 50 : 0;
    else us = n % 32 == 0 ? (unsigned)(n >> 8) % 3000 : (unsigned)(n >> 8) % 120;
    if (!us) return;
    sim_unlock();
    usleep(us);
    sim_lock();
}

static void *work(void *argument)
{
    struct sim_stream *stream = argument;
    sim_lock();
    for (;;) {
        while (!stream->head && !stream->destroyed) {
            struct timespec until;
            clock_gettime(CLOCK_REALTIME, &until);
            until.tv_sec += WORKER_IDLE_SECONDS;
            if (pthread_cond_timedwait(&stream->wake, &sim.lock, &until) && !stream->head) break;
        }
        struct sim_op *op = stream->head;
        if (!op) break;
        stream->running = true;
        if (sim_config_get()->adversarial) delay_locked(stream, op->kind);
        sim_op_execute_locked(stream, op);
        stream->running = false;
        stream->head = op->next;
        if (!stream->head) stream->tail = NULL;
        stream->completed = op->seq;
        free(op);
        pthread_cond_broadcast(&sim.progress);
    }
    stream->worker = false;
    if (stream->destroyed) sim_stream_end_locked(stream);
    sim_stream_unref_locked(stream);
    sim_unlock();
    return NULL;
}

static CUresult start_worker_locked(struct sim_stream *stream)
{
    pthread_attr_t attr;
    pthread_t thread;
    pthread_attr_init(&attr);
    pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
    int error = pthread_create(&thread, &attr, work, stream);
    pthread_attr_destroy(&attr);
    if (error) return CUDA_ERROR_OUT_OF_MEMORY;
    stream->worker = true;
    stream->refs++;
    return CUDA_SUCCESS;
}

static CUresult enqueue_locked(struct sim_stream *stream, const struct sim_op *op)
{
    struct sim_op *copy = malloc(sizeof *copy);
    if (!copy) return CUDA_ERROR_OUT_OF_MEMORY;
    *copy = *op;
    copy->next = NULL;
    copy->seq = ++stream->submitted;
    sim_clock_set(&stream->clock, stream->slot, copy->seq);
    if (stream->tail) stream->tail->next = copy;
    else stream->head = copy;
    stream->tail = copy;
    if (stream->worker) pthread_cond_signal(&stream->wake);
    return stream->worker ? CUDA_SUCCESS : start_worker_locked(stream);
}

static CUresult wait_on_locked(struct sim_stream *stream, struct sim_stream *before, uint64_t *joined)
{
    sim_clock_join_once(&stream->clock, &before->clock, joined);
    if (sim_stream_idle_locked(before)) return CUDA_SUCCESS;
    struct sim_op op = {.kind = SIM_OP_WAIT, .u.wait = {before, before->submitted}};
    before->refs++;
    return enqueue_locked(stream, &op);
}

/* The legacy stream and the blocking streams of a context wait for each other. */
static CUresult legacy_order_locked(struct sim_stream *stream)
{
    struct sim_ctx *ctx = stream->ctx;
    CUresult result = CUDA_SUCCESS;
    if (stream == ctx->legacy) {
        for (struct sim_stream *s = ctx->streams; s && result == CUDA_SUCCESS; s = s->next)
            if (s != stream && !(s->flags & CU_STREAM_NON_BLOCKING))
                result = wait_on_locked(stream, s, &s->joined.to_legacy);
    } else if (!(stream->flags & CU_STREAM_NON_BLOCKING)) {
        result = wait_on_locked(stream, ctx->legacy, &stream->joined.from_legacy);
    }
    return result;
}

CUresult sim_submit_locked(struct sim_stream *stream, const struct sim_op *op)
{
    if (stream->capture) return sim_capture_add_locked(stream, op);
    CUresult result = stream == stream->ctx->legacy ? sim_capture_legacy_locked(stream->ctx) : CUDA_SUCCESS;
    if (result == CUDA_SUCCESS) result = legacy_order_locked(stream);
    if (result != CUDA_SUCCESS) return result;
    bool waits = op->kind == SIM_OP_WAIT && op->u.wait.stream->completed < op->u.wait.seq;
    if (waits || op->kind == SIM_OP_HOST || !sim_stream_idle_locked(stream) || sim_config_get()->adversarial)
        return enqueue_locked(stream, op);
    struct sim_op now = *op;
    sim_clock_set(&stream->clock, stream->slot, ++stream->submitted);
    sim_op_execute_locked(stream, &now);
    stream->completed = stream->submitted;
    return stream->ctx->sticky;
}

void sim_wait_until_locked(struct sim_stream *stream, uint64_t seq)
{
    stream->refs++;
    while (stream->completed < seq) pthread_cond_wait(&sim.progress, &sim.lock);
    sim_stream_unref_locked(stream);
}

/* A synchronisation behind kernels takes a moment, as it does on a device: callers give up locks of their
 * own for it (Python's interpreter lock), and threads that wait for those get their turn. */
void sim_breathe_locked(unsigned us)
{
    static uint64_t seen;
    if (seen == sim.launches) return;
    seen = sim.launches;
    sim_unlock();
    usleep(us);
    sim_lock();
}

/* Waiting gives the lock away, so the streams to wait for are noted first. */
void sim_ctx_wait_locked(struct sim_ctx *ctx)
{
    struct sim_clock seen = {0};
    size_t count = 0, room = 0;
    for (struct sim_stream *s = ctx->streams; s; s = s->next) {
        if (sim_stream_idle_locked(s)) sim_clock_join_once(&sim.host, &s->clock, &s->joined.to_host);
        else sim_clock_join(&seen, &s->clock);
        room += !sim_stream_idle_locked(s);
    }
    sim_clock_join(&seen, &ctx->ended);
    struct {
        struct sim_stream *stream;
        uint64_t seq;
    } *busy = room ? malloc(room * sizeof *busy) : NULL;
    for (struct sim_stream *s = busy ? ctx->streams : NULL; s; s = s->next) {
        if (sim_stream_idle_locked(s)) continue;
        s->refs++;
        busy[count].stream = s;
        busy[count++].seq = s->submitted;
    }
    for (size_t i = 0; i < count; i++) {
        sim_wait_until_locked(busy[i].stream, busy[i].seq);
        sim_stream_unref_locked(busy[i].stream);
    }
    free(busy);
    sim_host_knows_locked(&seen);
    sim_clock_clear(&seen);
}

static bool overlaps(uintptr_t a, size_t a_bytes, uintptr_t b, size_t b_bytes)
{
    return a < b + b_bytes && b < a + a_bytes;
}

struct sim_stream *sim_pending_touch_locked(uintptr_t va, size_t bytes)
{
    for (int d = 0; d < SIM_MAX_DEVICES; d++) {
        struct sim_ctx *ctx = sim.device[d].primary;
        for (struct sim_stream *s = ctx ? ctx->streams : NULL; s; s = s->next)
            for (struct sim_op *op = s->head; op; op = op->next) {
                if (op->kind == SIM_OP_COPY && (overlaps(op->u.copy.dst, op->u.copy.bytes, va, bytes) ||
                                                overlaps(op->u.copy.src, op->u.copy.bytes, va, bytes)))
                    return s;
                if (op->kind == SIM_OP_FILL && overlaps(op->u.fill.va, op->u.fill.count * op->u.fill.width, va, bytes))
                    return s;
            }
    }
    return NULL;
}
