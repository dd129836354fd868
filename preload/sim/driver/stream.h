/* SPDX-License-Identifier: Apache-2.0 */
/* Streams, the work on them, and events. */
#ifndef GML_SIM_STREAM_H
#define GML_SIM_STREAM_H

#include "sim/driver/context.h"

#include <pthread.h>

/* ---- streams and their work (stream.c, queue.c) ---- */

enum sim_op_kind {
    SIM_OP_KERNEL,
    SIM_OP_COPY,
    SIM_OP_FILL,
    SIM_OP_HOST,
    SIM_OP_RECORD,
    SIM_OP_WAIT,
    SIM_OP_FREE,
    SIM_OP_ALLOC, /* of a graph; takes effect at the launch, not in the stream */
    SIM_OP_TOUCH,
    SIM_OP_EMPTY
};

#define SIM_TRAIL 3

struct sim_event;
struct sim_function;
struct sim_computation;

struct sim_op {
    struct sim_op *next;
    enum sim_op_kind kind;
    uint64_t seq;
    union {
        struct {
            const struct sim_function *function; /* NULL: a library's */
            struct sim_computation *computation; /* NULL: it may write anything; a reference of its own */
        } kernel;
        struct {
            uintptr_t dst, src;
            size_t bytes, rows, dst_pitch, src_pitch; /* rows of `bytes` bytes each */
            void *staging;                            /* copy of a pageable source */
            bool plain;                               /* a call that waits: the larger cap */
            bool peers;                               /* each end is reached from the device that it lies on */
        } copy;
        struct {
            uintptr_t va;
            uint32_t value;
            unsigned width; /* bytes of the value: 1, 2 or 4 */
            size_t count, rows, pitch;
            bool plain;
        } fill;
        struct {
            CUhostFn fn;
            CUstreamCallback callback;
            void *user;
        } host;
        struct {
            struct sim_event *event;
        } record;
        struct {
            struct sim_stream *stream;
            uint64_t seq;
        } wait;
        struct {
            uintptr_t va;
            uint64_t id; /* of the range, so that a stale free finds nothing */
            uint64_t generation; /* of a graph's memory: the launch that allocated it */
        } free;
        struct {
            uintptr_t va;
            size_t bytes;
        } touch;
    } u;
};

struct sim_capture;

struct sim_stream {
    struct sim_object object;
    struct sim_ctx *ctx;
    struct sim_stream *next; /* in the context's list */
    unsigned flags;
    int priority;
    uint64_t id;
    unsigned refs; /* handle, worker, events and waits that point here */
    bool listed, destroyed, worker, running;
    uint64_t submitted, completed;
    const struct sim_function *trail[SIM_TRAIL]; /* kernels executed last, the newest first; NULL: a library's */
    struct sim_op *head, *tail;
    unsigned slot;
    struct sim_clock clock;
    struct {
        uint64_t to_legacy, from_legacy, to_helper, to_host;
    } joined; /* how far its clock, or the legacy stream's, has gone there */
    struct sim_capture *capture;
    uint64_t random;
    pthread_cond_t wake; /* its worker has something to do */
    bool unjoined;       /* took part in a capture and was not waited for since */
    uint64_t captured;   /* nodes it added to the capture */
};

/* The stream behind a handle, the legacy and per-thread ones made on demand. 400 / 709 when it is dead. */
CUresult sim_stream_get_locked(struct sim_ctx *ctx, CUstream handle, struct sim_stream **out);
void sim_stream_unref_locked(struct sim_stream *stream);
/* Takes a destroyed stream whose work is done out of its context's list. */
void sim_stream_end_locked(struct sim_stream *stream);
struct sim_stream *sim_stream_new_locked(struct sim_ctx *ctx, unsigned flags, int priority);
/* Hands work to a stream: runs at once where nothing is before it, else queues. Takes over `op`'s
 * pointers; while the stream is captured the work becomes a node instead. */
CUresult sim_submit_locked(struct sim_stream *stream, const struct sim_op *op);
struct sim_stream *sim_ctx_helper_locked(struct sim_ctx *ctx); /* a stream of its own, non-blocking */
void sim_wait_until_locked(struct sim_stream *stream, uint64_t seq);
void sim_ctx_wait_locked(struct sim_ctx *ctx);
void sim_breathe_locked(unsigned us); /* called by every synchronisation of the API */
bool sim_stream_idle_locked(const struct sim_stream *stream);
bool sim_in_host_function(void); /* on this thread: it must not call the driver */
void sim_op_execute_locked(struct sim_stream *stream, struct sim_op *op);
void sim_op_drop_locked(struct sim_op *op);
/* An address range with queued copies or fills that touch it: the stream, else NULL. */
struct sim_stream *sim_pending_touch_locked(uintptr_t va, size_t bytes);

/* ---- copies (copy.c) ---- */

CUresult sim_copy_locked(struct sim_stream *stream, const struct sim_op *op);
CUresult sim_fill_locked(struct sim_ctx *ctx, const struct sim_op *op);
CUresult sim_touch_locked(struct sim_ctx *ctx, const struct sim_op *op);

/* ---- events (event.c) ---- */

struct sim_event {
    struct sim_object object;
    struct sim_ctx *ctx;
    unsigned flags;
    unsigned refs;
    bool destroyed, recorded;
    struct sim_stream *stream; /* where it was recorded last; NULL when that is done with */
    uint64_t seq;
    uint64_t time_ns;
    struct sim_clock clock;
    uint64_t capture_id; /* recorded in this capture; 0: not captured */
    uint64_t captured;   /* how many nodes its stream had added by then */
};

void sim_event_unref_locked(struct sim_event *event);

#endif
