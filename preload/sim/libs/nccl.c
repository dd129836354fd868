/* SPDX-License-Identifier: Apache-2.0 */
/* NCCL: communicators and collectives.
 *
 * A collective checks the rank's buffers, is compared with what the other ranks call (nccl_board.c), and
 * exchanges contributions of up to NCCL_SMALL bytes, NCCL_OBJECT where they are bytes (nccl_exchange.c): sizes,
 * flags, seeds and objects that frameworks agree on are right on every rank. With more data a rank keeps its own:
 * a gather repeats one's own part. Messages between two ranks are delivered likewise (nccl_message.c). */
#define _GNU_SOURCE
#include "sim/libs/nccl.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

SIM_EXPORT cudaError_t cudaMemcpyAsync(void *dst, const void *src, size_t bytes, int kind, cudaStream_t stream);
SIM_EXPORT cudaError_t cudaGetDevice(int *device);
SIM_EXPORT cudaError_t cudaSetDevice(int device);

static __thread char said[640];

void sim_nccl_say(const char *format, ...)
{
    va_list list;
    va_start(list, format);
    vsnprintf(said, sizeof said, format, list);
    va_end(list);
    fprintf(stderr, "gml-sim: NCCL: %s\n", said);
}

const char *sim_nccl_said(void)
{
    return said;
}

/* ---- a collective ---- */

struct call {
    struct collective is;
    struct comm *comm;
    cudaStream_t stream;
    const void *src;
    void *dst;
    size_t send, receive; /* bytes of this rank's buffers; 0: not used on it */
    struct exchange_plan plan;
    size_t own; /* where in `src` the part lies that the rank keeps without an exchange */
};

static int check_buffers(const struct call *call)
{
    if (call->send && sim_library_touch(call->stream, call->src, call->send)) return NCCL_UNHANDLED_CUDA_ERROR;
    if (call->receive && sim_library_touch(call->stream, call->dst, call->receive)) return NCCL_UNHANDLED_CUDA_ERROR;
    return NCCL_SUCCESS;
}

/* Copies the rank's own part wherever a part of its size belongs. */
static int keep_own(const struct call *call)
{
    size_t part = call->plan.bytes;
    const char *from = (const char *)call->src + call->own;
    char *to = call->dst;
    if (!call->receive || !call->send)
        return sim_library_launch(call->stream) ? NCCL_UNHANDLED_CUDA_ERROR : NCCL_SUCCESS;
    for (size_t at = 0; at < call->receive; at += part)
        if (to + at != from &&
            cudaMemcpyAsync(to + at, from, part, cudaMemcpyDeviceToDevice, call->stream))
            return NCCL_UNHANDLED_CUDA_ERROR;
    return NCCL_SUCCESS;
}

static int run(const struct call *call)
{
    int result = check_buffers(call);
    if (result == NCCL_SUCCESS) result = sim_board_note(call->comm, &call->is);
    if (result != NCCL_SUCCESS || !call->is.count) return result;
    const size_t limit = sim_exchange_limit(call->is.type);
    bool small = call->send <= limit && call->plan.bytes <= limit &&
                 call->receive <= limit * (size_t)call->comm->ranks;
    if (call->plan.how == EXCHANGE_SCATTER || call->plan.how == EXCHANGE_TRANSPOSE)
        small = call->plan.bytes * (size_t)call->comm->ranks <= limit;
    if (small && sim_exchange(call->comm, &call->plan, call->src, call->send, call->dst, call->receive, call->stream))
        return NCCL_SUCCESS;
    return keep_own(call);
}

/* On the communicator's device, whichever is current. */
static int collective(const struct call *call)
{
    const struct comm *comm = call->comm;
    int before = 0, result;
    if (!comm || !sim_nccl_width(call->is.type) || call->is.root >= comm->ranks) return NCCL_INVALID_ARGUMENT;
    if ((call->send && !call->src) || (call->receive && !call->dst)) return NCCL_INVALID_ARGUMENT;
    if (cudaGetDevice(&before)) return NCCL_UNHANDLED_CUDA_ERROR;
    if (before != comm->device && cudaSetDevice(comm->device)) return NCCL_UNHANDLED_CUDA_ERROR;
    result = run(call);
    if (before != comm->device) cudaSetDevice(before);
    return result;
}

static size_t ranks_of(const struct comm *comm)
{
    return comm ? (size_t)comm->ranks : 0;
}

LIBRARY(ncclAllReduce,
        (const void *src, void *dst, size_t count, int type, int op, struct comm *comm, cudaStream_t stream))
{
    COUNT(ncclAllReduce);
    size_t bytes = count * sim_nccl_width(type);
    return collective(&(struct call){.is = {"ncclAllReduce", count, type, -1, op}, .comm = comm, .stream = stream,
                                     .src = src, .dst = dst, .send = bytes, .receive = bytes,
                                     .plan = {EXCHANGE_REDUCE, type, op, -1, bytes}});
}

LIBRARY(ncclReduce, (const void *src, void *dst, size_t count, int type, int op, int root, struct comm *comm,
                     cudaStream_t stream))
{
    COUNT(ncclReduce);
    size_t bytes = count * sim_nccl_width(type);
    return collective(&(struct call){.is = {"ncclReduce", count, type, root, op}, .comm = comm, .stream = stream,
                                     .src = src, .dst = dst, .send = bytes,
                                     .receive = comm && comm->rank == root ? bytes : 0,
                                     .plan = {EXCHANGE_REDUCE, type, op, root, bytes}});
}

LIBRARY(ncclBroadcast,
        (const void *src, void *dst, size_t count, int type, int root, struct comm *comm, cudaStream_t stream))
{
    COUNT(ncclBroadcast);
    size_t bytes = count * sim_nccl_width(type);
    return collective(&(struct call){.is = {"ncclBroadcast", count, type, root, -1}, .comm = comm, .stream = stream,
                                     .src = src, .dst = dst, .send = comm && comm->rank == root ? bytes : 0,
                                     .receive = bytes, .plan = {EXCHANGE_ROOT, type, -1, root, bytes}});
}

LIBRARY(ncclBcast, (void *buffer, size_t count, int type, int root, struct comm *comm, cudaStream_t stream))
{
    return ncclBroadcast(buffer, buffer, count, type, root, comm, stream);
}

LIBRARY(ncclAllGather, (const void *src, void *dst, size_t count, int type, struct comm *comm, cudaStream_t stream))
{
    COUNT(ncclAllGather);
    size_t bytes = count * sim_nccl_width(type);
    return collective(&(struct call){.is = {"ncclAllGather", count, type, -1, -1}, .comm = comm, .stream = stream,
                                     .src = src, .dst = dst, .send = bytes, .receive = bytes * ranks_of(comm),
                                     .plan = {EXCHANGE_GATHER, type, -1, -1, bytes}});
}

LIBRARY(ncclReduceScatter,
        (const void *src, void *dst, size_t count, int type, int op, struct comm *comm, cudaStream_t stream))
{
    COUNT(ncclReduceScatter);
    size_t bytes = count * sim_nccl_width(type);
    return collective(&(struct call){.is = {"ncclReduceScatter", count, type, -1, op}, .comm = comm, .stream = stream,
                                     .src = src, .dst = dst, .send = bytes * ranks_of(comm), .receive = bytes,
                                     .plan = {EXCHANGE_SCATTER, type, op, -1, bytes},
                                     .own = comm ? (size_t)comm->rank * bytes : 0});
}

LIBRARY(ncclGather,
        (const void *src, void *dst, size_t count, int type, int root, struct comm *comm, cudaStream_t stream))
{
    COUNT(ncclGather);
    size_t bytes = count * sim_nccl_width(type);
    return collective(&(struct call){.is = {"ncclGather", count, type, root, -1}, .comm = comm, .stream = stream,
                                     .src = src, .dst = dst, .send = bytes,
                                     .receive = comm && comm->rank == root ? bytes * ranks_of(comm) : 0,
                                     .plan = {EXCHANGE_GATHER, type, -1, root, bytes}});
}

LIBRARY(ncclScatter,
        (const void *src, void *dst, size_t count, int type, int root, struct comm *comm, cudaStream_t stream))
{
    COUNT(ncclScatter);
    size_t bytes = count * sim_nccl_width(type);
    return collective(&(struct call){.is = {"ncclScatter", count, type, root, -1}, .comm = comm, .stream = stream,
                                     .src = src, .dst = dst,
                                     .send = comm && comm->rank == root ? bytes * ranks_of(comm) : 0,
                                     .receive = bytes, .plan = {EXCHANGE_SCATTER, type, -1, root, bytes},
                                     .own = comm ? (size_t)comm->rank * bytes : 0});
}

LIBRARY(ncclAlltoAll, (const void *src, void *dst, size_t count, int type, struct comm *comm, cudaStream_t stream))
{
    COUNT(ncclAlltoAll);
    size_t bytes = count * sim_nccl_width(type), all = bytes * ranks_of(comm);
    return collective(&(struct call){.is = {"ncclAlltoAll", count, type, -1, -1}, .comm = comm, .stream = stream,
                                     .src = src, .dst = dst, .send = all, .receive = all,
                                     .plan = {EXCHANGE_TRANSPOSE, type, -1, -1, bytes},
                                     .own = comm ? (size_t)comm->rank * bytes : 0});
}

/* A message between two ranks, on the communicator's device. */
static int message(bool sends, void *buffer, size_t count, int type, int peer, struct comm *comm, cudaStream_t stream)
{
    if (!comm || !sim_nccl_width(type) || peer < 0 || peer >= comm->ranks || (count && !buffer))
        return NCCL_INVALID_ARGUMENT;
    const size_t bytes = count * sim_nccl_width(type);
    int before = 0, result = NCCL_SUCCESS;
    if (cudaGetDevice(&before)) return NCCL_UNHANDLED_CUDA_ERROR;
    if (before != comm->device && cudaSetDevice(comm->device)) return NCCL_UNHANDLED_CUDA_ERROR;
    if (bytes && sim_library_touch(stream, buffer, bytes)) result = NCCL_UNHANDLED_CUDA_ERROR;
    else if (!sim_message(comm, sends, peer, buffer, bytes, stream) && sim_library_launch(stream))
        result = NCCL_UNHANDLED_CUDA_ERROR;
    if (before != comm->device) cudaSetDevice(before);
    return result;
}

LIBRARY(ncclSend, (const void *src, size_t count, int type, int peer, struct comm *comm, cudaStream_t stream))
{
    COUNT(ncclSend);
    return message(true, (void *)(uintptr_t)src, count, type, peer, comm, stream);
}

LIBRARY(ncclRecv, (void *dst, size_t count, int type, int peer, struct comm *comm, cudaStream_t stream))
{
    COUNT(ncclRecv);
    return message(false, dst, count, type, peer, comm, stream);
}

/* A sum of values that were scaled before: the scale is passed over. */
LIBRARY(ncclRedOpCreatePreMulSum, (int *op, void *scalar, int type, int residence, struct comm *comm))
{
    (void)type, (void)residence;
    if (!op || !scalar || !comm) return NCCL_INVALID_ARGUMENT;
    *op = NCCL_OPS;
    return NCCL_SUCCESS;
}

/* Calls of a group take effect one after another: each waits for other ranks in its stream, none in the call. */
LIBRARY(ncclGroupStart, (void))
{
    COUNT(ncclGroupStart);
    return NCCL_SUCCESS;
}

LIBRARY(ncclGroupEnd, (void))
{
    return NCCL_SUCCESS;
}
