/* SPDX-License-Identifier: Apache-2.0 */
/* NCCL: exchange of small data between ranks, in stream order.
 *
 * A collective becomes a copy to pinned memory, a host function that meets the other ranks on the board, and
 * a copy back: the stream waits for the other ranks as on real devices, the calling thread need not. It does
 * for a while all the same where every rank is a process: else it would depend on how fast they run what
 * memory is still in use at the next allocation, and a peak would differ from run to run. */
#define _GNU_SOURCE
#include "sim/libs/nccl.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { PATIENCE_US = 5000000 };

struct exchange {
    struct exchange *next;
    struct comm *comm;
    struct exchange_plan plan;
    uint64_t number;
    size_t send, receive, stride; /* stride: of a contribution, whoever makes it */
    size_t room;                  /* behind `out`, and as much behind `in` */
    bool known;                   /* the result is what devices would hold */
    const void *src;
    void *dst;
    char *out, *in;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

SIM_EXPORT cudaError_t cudaMemcpyAsync(void *dst, const void *src, size_t bytes, int kind, cudaStream_t stream);
SIM_EXPORT cudaError_t cudaLaunchHostFunc(cudaStream_t stream, cudaHostFn_t fn, void *user);
SIM_EXPORT cudaError_t cudaStreamIsCapturing(cudaStream_t stream, CUstreamCaptureStatus *status);
SIM_EXPORT cudaError_t cudaHostAlloc(void **out, size_t bytes, unsigned flags);
SIM_EXPORT cudaError_t cudaFreeHost(void *memory);

static void assemble(struct exchange *x, const char *all)
{
    const struct exchange_plan *p = &x->plan;
    int ranks = x->comm->ranks, me = x->comm->rank;
    size_t width = sim_nccl_width(p->type);
    switch (p->how) {
    case EXCHANGE_GATHER:
        for (int r = 0; r < ranks; r++)
            memcpy(x->in + (size_t)r * p->bytes, all + (size_t)r * x->stride, p->bytes);
        break;
    case EXCHANGE_REDUCE: sim_nccl_reduce(x->in, all, x->stride, ranks, p->bytes / width, p->type, p->op); break;
    case EXCHANGE_ROOT: memcpy(x->in, all + (size_t)p->root * x->stride, p->bytes); break;
    case EXCHANGE_SCATTER:
        if (p->root >= 0) memcpy(x->in, all + (size_t)p->root * x->stride + (size_t)me * p->bytes, p->bytes);
        else
            sim_nccl_reduce(x->in, all + (size_t)me * p->bytes, x->stride, ranks, p->bytes / width, p->type, p->op);
        break;
    default: /* EXCHANGE_TRANSPOSE */
        for (int r = 0; r < ranks; r++)
            memcpy(x->in + (size_t)r * p->bytes, all + (size_t)r * x->stride + (size_t)me * p->bytes, p->bytes);
    }
}

/* Without the other ranks a rank keeps what it has: a gather repeats its own part. */
static void keep_own(struct exchange *x)
{
    bool own_part = x->plan.how == EXCHANGE_SCATTER && x->send;
    const char *from = x->out + (own_part ? (size_t)x->comm->rank * x->plan.bytes : 0);
    size_t part = own_part ? x->plan.bytes : x->send ? x->send : x->stride;
    for (size_t at = 0; at < x->receive; at += part)
        memcpy(x->in + at, from, x->receive - at < part ? x->receive - at : part);
}

static void meet(void *argument)
{
    struct exchange *x = argument;
    const char *all;
    /* Packed objects end in bytes that nobody wrote, as all are as long as the longest. */
    const int enough = sim_nccl_width(x->plan.type) == 1 ? 1 : 2;
    x->known = x->send && sim_library_known(x->src, x->send) >= enough;
    if (sim_board_write(x->comm, x->number, x->out, x->send, x->stride, &x->known, &all)) {
        if (x->receive) assemble(x, all);
        sim_board_read(x->comm, x->number);
    } else {
        x->known = false;
        keep_own(x);
    }
}

static void done(void *argument)
{
    struct exchange *x = argument;
    struct comm *comm = x->comm;
    if (!x->known && x->receive) sim_library_forget(x->dst, x->receive);
    pthread_mutex_lock(&lock);
    x->next = comm->spare;
    comm->spare = x;
    pthread_mutex_unlock(&lock);
    sim_nccl_unref(comm);
}

static struct exchange *take(struct comm *comm, size_t bytes)
{
    pthread_mutex_lock(&lock);
    struct exchange **link = &comm->spare, *x;
    while (*link && (*link)->room < bytes) link = &(*link)->next;
    if ((x = *link)) *link = x->next;
    pthread_mutex_unlock(&lock);
    if (x) return x;
    void *memory;
    size_t room = bytes > NCCL_SMALL ? bytes : NCCL_SMALL;
    if (!(x = calloc(1, sizeof *x))) return NULL;
    if (cudaHostAlloc(&memory, 2 * room, 0)) {
        free(x);
        return NULL;
    }
    x->out = memory;
    x->in = x->out + room;
    x->room = room;
    return x;
}

void sim_exchange_free_spare(struct comm *comm)
{
    for (struct exchange *x = comm->spare, *next; x; x = next) {
        next = x->next;
        free(x); /* its pinned memory goes with the process: this may run in a host function */
    }
    comm->spare = NULL;
}

static void wait_a_while(cudaStream_t stream)
{
    cudaError_t error;
    const struct driver_table *drv = sim_driver(&error);
    for (unsigned waited = 0, nap = 10; drv && drv->idle && !drv->idle(stream) && waited < PATIENCE_US; waited += nap) {
        usleep(nap);
        if (nap < 500) nap *= 2;
    }
}

bool sim_nccl_captured(cudaStream_t stream)
{
    CUstreamCaptureStatus capture = CU_STREAM_CAPTURE_STATUS_NONE;
    return cudaStreamIsCapturing(stream, &capture) || capture != CU_STREAM_CAPTURE_STATUS_NONE;
}

size_t sim_exchange_limit(int type)
{
    return sim_nccl_width(type) == 1 ? NCCL_OBJECT : NCCL_SMALL;
}

/* In pieces: larger copies are left out in fast time. */
static bool copy_back(const struct exchange *x, cudaStream_t stream)
{
    for (size_t at = 0, n; at < x->receive; at += n) {
        n = x->receive - at < NCCL_OBJECT ? x->receive - at : NCCL_OBJECT;
        if (cudaMemcpyAsync((char *)x->dst + at, x->in + at, n, cudaMemcpyHostToDevice, stream)) return false;
    }
    return true;
}

bool sim_exchange(struct comm *comm, const struct exchange_plan *plan, const void *src, size_t send, void *dst,
                  size_t receive, cudaStream_t stream)
{
    if (!comm->board || comm->ranks < 2 || !plan->bytes || !sim_nccl_width(plan->type)) return false;
    if (sim_nccl_captured(stream)) return false;
    const bool parts = plan->how == EXCHANGE_SCATTER || plan->how == EXCHANGE_TRANSPOSE;
    const size_t stride = plan->bytes * (parts ? (size_t)comm->ranks : 1);
    struct exchange *x = take(comm, receive > stride ? receive : stride);
    if (!x) return false;
    x->comm = comm;
    x->plan = *plan;
    x->number = comm->exchanges++;
    x->send = send;
    x->stride = stride;
    x->src = src;
    x->dst = dst;
    x->receive = dst ? receive : 0;
    comm->refs++;
    if (!send) memset(x->out, 0, stride);
    bool ok = !send || !cudaMemcpyAsync(x->out, src, send, cudaMemcpyDeviceToHost, stream);
    ok = ok && !cudaLaunchHostFunc(stream, meet, x);
    ok = ok && copy_back(x, stream);
    ok = ok && !cudaLaunchHostFunc(stream, done, x);
    if (ok && !sim_board_shared_here(comm)) wait_a_while(stream);
    return ok;
}
