/* SPDX-License-Identifier: Apache-2.0 */
/* NCCL: communicators that know their size and rank; collectives that keep a rank's own data.
 *
 * Ranks do not talk to each other. Every rank is taken to hold the same small data, so that a gather
 * repeats one's own part: what frameworks exchange for set-up (shapes, flags, seeds) stays sensible. */
#include "sim/libs/libs.h"

#include <stdlib.h>
#include <string.h>

struct comm {
    int ranks, rank, device;
};

struct unique_id {
    char bytes[128];
};

enum { NCCL_SUCCESS = 0, NCCL_UNHANDLED_CUDA_ERROR = 1, NCCL_SYSTEM_ERROR = 2, NCCL_INVALID_ARGUMENT = 4 };

SIM_EXPORT cudaError_t cudaMemcpyAsync(void *dst, const void *src, size_t bytes, int kind, cudaStream_t stream);

LIBRARY(ncclGetVersion, (int *out))
{
    *out = 23007;
    return NCCL_SUCCESS;
}

LIBRARY(ncclGetUniqueId, (struct unique_id * out))
{
    memset(out, 7, sizeof *out);
    return NCCL_SUCCESS;
}

static int join(struct comm **out, int ranks, int rank)
{
    if (!out || ranks < 1 || rank < 0 || rank >= ranks) return NCCL_INVALID_ARGUMENT;
    if (sim_library_new((void **)out, sizeof **out)) return NCCL_SYSTEM_ERROR;
    **out = (struct comm){ranks, rank, 0};
    return NCCL_SUCCESS;
}

LIBRARY(ncclCommInitRank, (struct comm **out, int ranks, struct unique_id id, int rank))
{
    (void)id;
    return join(out, ranks, rank);
}

LIBRARY(ncclCommInitRankConfig, (struct comm **out, int ranks, struct unique_id id, int rank, void *config))
{
    (void)id, (void)config;
    return join(out, ranks, rank);
}

LIBRARY(ncclCommInitRankScalable,
        (struct comm **out, int ranks, int rank, int ids, struct unique_id *id, void *config))
{
    (void)ids, (void)id, (void)config;
    return join(out, ranks, rank);
}

LIBRARY(ncclCommSplit, (struct comm * comm, int color, int key, struct comm **out, void *config))
{
    (void)color, (void)key, (void)config;
    return comm ? join(out, comm->ranks, comm->rank) : NCCL_INVALID_ARGUMENT;
}

LIBRARY(ncclCommDestroy, (struct comm * comm))
{
    free(comm);
    return NCCL_SUCCESS;
}

LIBRARY(ncclCommAbort, (struct comm * comm))
{
    free(comm);
    return NCCL_SUCCESS;
}

LIBRARY(ncclCommFinalize, (struct comm * comm))
{
    return comm ? NCCL_SUCCESS : NCCL_INVALID_ARGUMENT;
}

LIBRARY(ncclCommCount, (const struct comm *comm, int *out))
{
    *out = comm->ranks;
    return NCCL_SUCCESS;
}

LIBRARY(ncclCommUserRank, (const struct comm *comm, int *out))
{
    *out = comm->rank;
    return NCCL_SUCCESS;
}

LIBRARY(ncclCommGetAsyncError, (struct comm * comm, int *out))
{
    (void)comm;
    *out = NCCL_SUCCESS;
    return NCCL_SUCCESS;
}

LIBRARY(ncclCommRegister, (struct comm * comm, void *buffer, size_t bytes, void **out))
{
    (void)buffer, (void)bytes;
    return comm && out ? sim_library_new(out, 8) : NCCL_INVALID_ARGUMENT;
}

LIBRARY(ncclCommDeregister, (struct comm * comm, void *handle))
{
    (void)comm;
    free(handle);
    return NCCL_SUCCESS;
}

SIM_ENTRY(const char *, ncclGetErrorString, (int error))
{
    return error ? "simulated NCCL error" : "no error";
}

SIM_ENTRY(const char *, ncclGetLastError, (struct comm * comm))
{
    (void)comm;
    return "";
}

/* Bytes of an element of ncclDataType_t. */
static size_t width(int type)
{
    static const size_t bytes[] = {1, 1, 4, 4, 8, 8, 2, 4, 8, 2, 1, 1};
    return type >= 0 && type < 12 ? bytes[type] : 1;
}

static int copy(void *dst, const void *src, size_t bytes, cudaStream_t stream)
{
    cudaError_t error;
    const struct driver_table *drv = sim_driver(&error);
    if (!drv || !drv->launch || !drv->touch) return NCCL_UNHANDLED_CUDA_ERROR;
    if ((src && drv->touch(src, bytes, stream)) || (dst && drv->touch(dst, bytes, stream)))
        return NCCL_UNHANDLED_CUDA_ERROR;
    if (dst == src || !dst || !src) return drv->launch(stream, 0) ? NCCL_UNHANDLED_CUDA_ERROR : NCCL_SUCCESS;
    return cudaMemcpyAsync(dst, src, bytes, cudaMemcpyDeviceToDevice, stream) ? NCCL_UNHANDLED_CUDA_ERROR
                                                                              : NCCL_SUCCESS;
}

LIBRARY(ncclAllReduce,
        (const void *src, void *dst, size_t count, int type, int op, struct comm *comm, cudaStream_t stream))
{
    (void)op, (void)comm;
    COUNT(ncclAllReduce);
    return copy(dst, src, count * width(type), stream);
}

LIBRARY(ncclReduce,
        (const void *src, void *dst, size_t count, int type, int op, int root, struct comm *comm, cudaStream_t stream))
{
    (void)op;
    COUNT(ncclReduce);
    return copy(comm->rank == root ? dst : NULL, src, count * width(type), stream);
}

LIBRARY(ncclBroadcast,
        (const void *src, void *dst, size_t count, int type, int root, struct comm *comm, cudaStream_t stream))
{
    COUNT(ncclBroadcast);
    return copy(dst, comm->rank == root ? src : dst, count * width(type), stream);
}

LIBRARY(ncclBcast, (void *buffer, size_t count, int type, int root, struct comm *comm, cudaStream_t stream))
{
    (void)root, (void)comm;
    COUNT(ncclBcast);
    return copy(buffer, buffer, count * width(type), stream);
}

LIBRARY(ncclAllGather, (const void *src, void *dst, size_t count, int type, struct comm *comm, cudaStream_t stream))
{
    COUNT(ncclAllGather);
    size_t bytes = count * width(type);
    int result = NCCL_SUCCESS;
    for (int i = 0; i < comm->ranks && result == NCCL_SUCCESS; i++)
        result = copy((char *)dst + (size_t)i * bytes, src, bytes, stream);
    return result;
}

LIBRARY(ncclReduceScatter,
        (const void *src, void *dst, size_t count, int type, int op, struct comm *comm, cudaStream_t stream))
{
    (void)op;
    COUNT(ncclReduceScatter);
    size_t bytes = count * width(type);
    return copy(dst, (const char *)src + (size_t)comm->rank * bytes, bytes, stream);
}
