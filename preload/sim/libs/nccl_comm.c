/* SPDX-License-Identifier: Apache-2.0 */
/* NCCL: making, splitting and ending communicators, and what they say about themselves. */
#define _GNU_SOURCE
#include "sim/libs/nccl.h"

#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

SIM_EXPORT cudaError_t cudaGetDevice(int *device);
SIM_EXPORT cudaError_t cudaMalloc(void **out, size_t bytes);
SIM_EXPORT cudaError_t cudaFree(void *pointer);

enum { NO_COLOR = -1 };

/* What a communicator is made from; kept for its splits. */
struct made {
    struct comm comm; /* first: handles point here */
    struct unique_id id;
};

LIBRARY(ncclGetVersion, (int *out))
{
    if (!out) return NCCL_INVALID_ARGUMENT;
    *out = 23007;
    return NCCL_SUCCESS;
}

LIBRARY(ncclGetUniqueId, (struct unique_id * out))
{
    if (!out) return NCCL_INVALID_ARGUMENT;
    memset(out, 0, sizeof *out);
    return getrandom(out->bytes, 16, 0) == 16 ? NCCL_SUCCESS : NCCL_SYSTEM_ERROR;
}

static int join(struct comm **out, int ranks, const struct unique_id *id, int rank, int device)
{
    if (!out || ranks < 1 || rank < 0 || rank >= ranks) return NCCL_INVALID_ARGUMENT;
    struct made *made;
    if (sim_library_new((void **)&made, sizeof *made)) return NCCL_SYSTEM_ERROR;
    made->comm.ranks = ranks;
    made->comm.rank = rank;
    made->comm.device = device;
    made->comm.refs = 1;
    if (id) made->id = *id;
    if (id && ranks > 1) made->comm.board = sim_board_join(id, ranks, rank);
    *out = &made->comm;
    return NCCL_SUCCESS;
}

static int join_here(struct comm **out, int ranks, const struct unique_id *id, int rank)
{
    int device;
    if (cudaGetDevice(&device)) return NCCL_UNHANDLED_CUDA_ERROR;
    return join(out, ranks, id, rank, device);
}

LIBRARY(ncclCommInitRank, (struct comm **out, int ranks, struct unique_id id, int rank))
{
    COUNT(ncclCommInitRank);
    return join_here(out, ranks, &id, rank);
}

LIBRARY(ncclCommInitRankConfig, (struct comm **out, int ranks, struct unique_id id, int rank, void *config))
{
    (void)config;
    COUNT(ncclCommInitRank);
    return join_here(out, ranks, &id, rank);
}

LIBRARY(ncclCommInitRankScalable,
        (struct comm **out, int ranks, int rank, int ids, struct unique_id *id, void *config))
{
    (void)config;
    COUNT(ncclCommInitRank);
    return ids > 0 && id ? join_here(out, ranks, id, rank) : NCCL_INVALID_ARGUMENT;
}

/* One process, a communicator for each of its devices; no device twice. */
LIBRARY(ncclCommInitAll, (struct comm **out, int count, const int *devices))
{
    COUNT(ncclCommInitAll);
    struct unique_id id;
    if (!out || count < 1) return NCCL_INVALID_ARGUMENT;
    for (int i = 0; devices && i < count; i++)
        for (int j = 0; j < i; j++)
            if (devices[i] == devices[j]) {
                sim_nccl_say("device %d stands twice in the list of ncclCommInitAll", devices[i]);
                return NCCL_INVALID_USAGE;
            }
    int result = ncclGetUniqueId(&id);
    for (int i = 0; i < count && result == NCCL_SUCCESS; i++)
        result = join(&out[i], count, &id, i, devices ? devices[i] : i);
    return result;
}

/* The id that all ranks of one colour derive from their parent's. */
static struct unique_id child_id(const struct unique_id *parent, uint64_t split, int color)
{
    struct unique_id id = *parent;
    uint64_t hash = 14695981039346656037u;
    const uint64_t words[] = {split, (uint64_t)(unsigned)color};
    for (size_t i = 0; i < 16; i++) {
        for (size_t j = 0; j < sizeof words; j++) hash = (hash ^ ((const unsigned char *)words)[j]) * 1099511628211u;
        hash = (hash ^ (unsigned char)parent->bytes[i]) * 1099511628211u;
        id.bytes[i] = (char)(hash >> 32);
    }
    return id;
}

/* Ranks of one colour, in the order of their keys, then of their old ranks. */
LIBRARY(ncclCommSplit, (struct comm * comm, int color, int key, struct comm **out, void *config))
{
    (void)config;
    COUNT(ncclCommSplit);
    if (!comm || !out) return NCCL_INVALID_ARGUMENT;
    int *colors = calloc(2 * (size_t)comm->ranks, sizeof *colors), *keys = colors + comm->ranks;
    if (!colors) return NCCL_SYSTEM_ERROR;
    int ranks = 0, rank = 0, result = NCCL_SUCCESS;
    *out = NULL;
    if (!sim_board_split(comm, color, key, colors, keys)) {
        if (color != NO_COLOR) result = join(out, comm->ranks, NULL, comm->rank, comm->device);
    } else if (color != NO_COLOR) {
        for (int r = 0; r < comm->ranks; r++) {
            if (colors[r] != color) continue;
            ranks++;
            rank += keys[r] < key || (keys[r] == key && r < comm->rank);
        }
        const struct unique_id id = child_id(&((struct made *)comm)->id, comm->splits, color);
        result = join(out, ranks, &id, rank, comm->device);
    }
    free(colors);
    return result;
}

/* ---- the end ---- */

void sim_nccl_unref(struct comm *comm)
{
    if (--comm->refs) return;
    sim_board_leave(comm);
    sim_exchange_free_spare(comm);
    free(comm->messages);
    free(comm);
}

LIBRARY(ncclCommFinalize, (struct comm * comm))
{
    if (!comm) return NCCL_INVALID_ARGUMENT;
    sim_board_finish(comm);
    return NCCL_SUCCESS;
}

LIBRARY(ncclCommDestroy, (struct comm * comm))
{
    if (!comm) return NCCL_SUCCESS;
    if (!comm->aborted) sim_board_finish(comm);
    sim_nccl_unref(comm);
    return NCCL_SUCCESS;
}

LIBRARY(ncclCommAbort, (struct comm * comm))
{
    if (!comm) return NCCL_SUCCESS;
    comm->aborted = 1;
    sim_nccl_unref(comm);
    return NCCL_SUCCESS;
}

LIBRARY(ncclCommRevoke, (struct comm * comm, int flags))
{
    (void)flags;
    if (!comm) return NCCL_INVALID_ARGUMENT;
    comm->aborted = 1;
    return NCCL_SUCCESS;
}

/* ---- questions ---- */

#define ANSWER(name, member)                                \
    LIBRARY(name, (const struct comm *comm, int *out))      \
    {                                                       \
        if (!comm || !out) return NCCL_INVALID_ARGUMENT;    \
        *out = comm->member;                                \
        return NCCL_SUCCESS;                                \
    }
ANSWER(ncclCommCount, ranks)
ANSWER(ncclCommUserRank, rank)
ANSWER(ncclCommCuDevice, device)
ANSWER(ncclCommGetAsyncError, error)

SIM_ENTRY(const char *, ncclGetErrorString, (int error))
{
    static const char *const texts[] = {"no error",         "unhandled cuda error", "unhandled system error",
                                        "internal error",   "invalid argument",     "invalid usage",
                                        "remote process exited or there was a network error"};
    return error >= 0 && (size_t)error < sizeof texts / sizeof *texts ? texts[error] : "unknown result code";
}

SIM_ENTRY(const char *, ncclGetLastError, (struct comm * comm))
{
    (void)comm;
    return sim_nccl_said();
}

/* ---- buffers ---- */

LIBRARY(ncclMemAlloc, (void **out, size_t bytes))
{
    return out ? (cudaMalloc(out, bytes) ? NCCL_UNHANDLED_CUDA_ERROR : NCCL_SUCCESS) : NCCL_INVALID_ARGUMENT;
}

LIBRARY(ncclMemFree, (void *pointer))
{
    return cudaFree(pointer) ? NCCL_UNHANDLED_CUDA_ERROR : NCCL_SUCCESS;
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
