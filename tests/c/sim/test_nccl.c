/* SPDX-License-Identifier: Apache-2.0 */
/* NCCL: one process with a communicator for each of its devices. What ranks exchange, and what is refused. */
#define _GNU_SOURCE
#include "support.h"

#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { INT64 = 4, HALF = 6, FLOAT = 7, BFLOAT = 9, SUM = 0, MAX = 2, AVG = 4, RANKS = 3 };
enum { CUDA_FAILED = 1, INVALID_ARGUMENT = 4, INVALID_USAGE = 5 };

typedef struct {
    char bytes[128];
} unique_id;
typedef void *comm;
int ncclGetUniqueId(unique_id *id);
int ncclCommInitAll(comm *out, int count, const int *devices);
int ncclCommInitRank(comm *out, int ranks, unique_id id, int rank);
int ncclCommSplit(comm c, int color, int key, comm *out, void *config);
int ncclCommDestroy(comm c);
int ncclCommCount(comm c, int *out);
int ncclCommUserRank(comm c, int *out);
int ncclCommCuDevice(comm c, int *out);
int ncclCommGetAsyncError(comm c, int *out);
const char *ncclGetLastError(comm c);
int ncclGroupStart(void);
int ncclGroupEnd(void);
int ncclAllReduce(const void *src, void *dst, size_t count, int type, int op, comm c, CUstream stream);
int ncclBroadcast(const void *src, void *dst, size_t count, int type, int root, comm c, CUstream stream);
int ncclAllGather(const void *src, void *dst, size_t count, int type, comm c, CUstream stream);
int ncclReduceScatter(const void *src, void *dst, size_t count, int type, int op, comm c, CUstream stream);
int ncclSend(const void *src, size_t count, int type, int peer, comm c, CUstream stream);
int ncclRecv(void *dst, size_t count, int type, int peer, comm c, CUstream stream);
int ncclAlltoAll(const void *src, void *dst, size_t count, int type, comm c, CUstream stream);

cudaError_t cudaStreamCreateWithFlags(cudaStream_t *out, unsigned flags);
cudaError_t cudaStreamSynchronize(cudaStream_t stream);
cudaError_t cudaDeviceSynchronize(void);

static comm comms[RANKS];
static CUstream streams[RANKS];
static char *memory[RANKS]; /* 2 MiB on each device */

static void setup(void)
{
    CHECK_EQUAL(ncclCommInitAll(comms, RANKS, NULL), 0);
    for (int r = 0; r < RANKS; r++) {
        int answer;
        CHECK_EQUAL(ncclCommCount(comms[r], &answer), 0);
        CHECK_EQUAL(answer, RANKS);
        CHECK_EQUAL(ncclCommUserRank(comms[r], &answer), 0);
        CHECK_EQUAL(answer, r);
        CHECK_EQUAL(ncclCommCuDevice(comms[r], &answer), 0);
        CHECK_EQUAL(answer, r);
        CHECK_EQUAL(cudaSetDevice(r), 0);
        CHECK_EQUAL(cudaStreamCreateWithFlags(&streams[r], 1), 0);
        CHECK_EQUAL(cudaMalloc((void **)&memory[r], 2 * MIB), 0);
    }
    CHECK_EQUAL(cudaSetDevice(0), 0);
}

static void put(int r, size_t at, const void *data, size_t bytes)
{
    CHECK_EQUAL(cudaMemcpy(memory[r] + at, data, bytes, cudaMemcpyHostToDevice), 0);
}

static void get(int r, size_t at, void *data, size_t bytes)
{
    CHECK_EQUAL(cudaStreamSynchronize(streams[r]), 0);
    CHECK_EQUAL(cudaMemcpy(data, memory[r] + at, bytes, cudaMemcpyDeviceToHost), 0);
}

static void test_reductions(void)
{
    setup();
    const uint16_t halves[RANKS] = {0x3c00, 0x4000, 0xc200}, bfloats[RANKS] = {0x3f80, 0x4000, 0xc040}; /* 1, 2, -3 */
    for (int r = 0; r < RANKS; r++) {
        const int64_t whole[2] = {r + 1, -10 * r};
        const float real[2] = {(float)r + 0.5f, 8};
        put(r, 0, whole, sizeof whole);
        put(r, 64, real, sizeof real);
        put(r, 128, &halves[r], 2);
        put(r, 192, &bfloats[r], 2);
    }
    CHECK_EQUAL(ncclGroupStart(), 0);
    for (int r = 0; r < RANKS; r++) {
        char *m = memory[r];
        CHECK_EQUAL(ncclAllReduce(m, m + 1024, 2, INT64, SUM, comms[r], streams[r]), 0);
        CHECK_EQUAL(ncclAllReduce(m, m + 1088, 2, INT64, MAX, comms[r], streams[r]), 0);
        CHECK_EQUAL(ncclAllReduce(m + 64, m + 64, 2, FLOAT, AVG, comms[r], streams[r]), 0);
        CHECK_EQUAL(ncclAllReduce(m + 128, m + 128, 1, HALF, SUM, comms[r], streams[r]), 0);
        CHECK_EQUAL(ncclAllReduce(m + 192, m + 192, 1, BFLOAT, SUM, comms[r], streams[r]), 0);
    }
    CHECK_EQUAL(ncclGroupEnd(), 0);
    for (int r = 0; r < RANKS; r++) {
        int64_t sum[2], most[2];
        float mean[2];
        uint16_t half, bfloat;
        get(r, 1024, sum, sizeof sum);
        get(r, 1088, most, sizeof most);
        get(r, 64, mean, sizeof mean);
        get(r, 128, &half, 2);
        get(r, 192, &bfloat, 2);
        CHECK(sum[0] == 6 && sum[1] == -30 && most[0] == 3 && most[1] == 0);
        CHECK(mean[0] > 1.49f && mean[0] < 1.51f && mean[1] > 7.99f && mean[1] < 8.01f);
        CHECK(half == 0 && bfloat == 0);
    }
}

static void test_moves(void)
{
    setup();
    for (int r = 0; r < RANKS; r++) {
        const int64_t part[RANKS] = {10 * r, 10 * r + 1, 10 * r + 2};
        put(r, 0, part, sizeof part);
    }
    for (int r = 0; r < RANKS; r++) {
        char *m = memory[r];
        CHECK_EQUAL(ncclBroadcast(m, m + 256, RANKS, INT64, 2, comms[r], streams[r]), 0);
        CHECK_EQUAL(ncclAllGather(m, m + 512, 1, INT64, comms[r], streams[r]), 0);
        CHECK_EQUAL(ncclAlltoAll(m, m + 768, 1, INT64, comms[r], streams[r]), 0);
        CHECK_EQUAL(ncclReduceScatter(m, m + 1024, 1, INT64, SUM, comms[r], streams[r]), 0);
    }
    for (int r = 0; r < RANKS; r++) {
        int64_t from_root[RANKS], gathered[RANKS], swapped[RANKS], scattered;
        get(r, 256, from_root, sizeof from_root);
        get(r, 512, gathered, sizeof gathered);
        get(r, 768, swapped, sizeof swapped);
        get(r, 1024, &scattered, sizeof scattered);
        for (int i = 0; i < RANKS; i++) {
            CHECK_EQUAL(from_root[i], 20 + i);
            CHECK_EQUAL(gathered[i], 10 * i);
            CHECK_EQUAL(swapped[i], 10 * i + r);
        }
        CHECK_EQUAL(scattered, 30 + 3 * r);
    }
}

/* More than ranks exchange: each keeps its own, in its own place. */
static void test_large_data(void)
{
    setup();
    const int64_t mine = 7;
    put(1, 0, &mine, sizeof mine);
    for (int r = 0; r < RANKS; r++)
        CHECK_EQUAL(ncclAllGather(memory[r], memory[r] + MIB, 8192, INT64, comms[r], streams[r]), 0);
    for (size_t i = 0; i < RANKS; i++) {
        int64_t seen = 0;
        get(1, MIB + i * 8192 * 8, &seen, sizeof seen);
        CHECK_EQUAL(seen, 7);
    }
}

/* Bytes as such are what objects are packed into: more of them are exchanged. */
static void test_packed_objects(void)
{
    setup();
    enum { BYTES = 300000, UINT8 = 1 };
    static char text[BYTES], seen[RANKS * BYTES];
    for (int r = 0; r < RANKS; r++) {
        memset(text, 'a' + r, BYTES);
        put(r, 0, text, BYTES);
    }
    for (int r = 0; r < RANKS; r++)
        CHECK_EQUAL(ncclAllGather(memory[r], memory[r] + MIB, BYTES, UINT8, comms[r], streams[r]), 0);
    for (int r = 0; r < RANKS; r++) {
        get(r, MIB, seen, sizeof seen);
        for (size_t i = 0; i < sizeof seen; i += 9973) CHECK_EQUAL(seen[i], 'a' + (int)(i / BYTES));
    }
}

/* What one rank does not know, no rank knows behind a collective. */
static void test_unknown_contributions(void)
{
    setup();
    const int64_t one = 1;
    for (int r = 0; r < RANKS; r++) put(r, 0, &one, sizeof one);
    CHECK_EQUAL(cuLaunchKernel(kernel("anything"), 1, 1, 1, 1, 1, 1, 0, streams[0], NULL, NULL), 0); /* forgets all */
    put(0, 0, &one, sizeof one);
    put(1, 0, &one, sizeof one);
    for (int r = 0; r < RANKS; r++)
        CHECK_EQUAL(ncclAllReduce(memory[r], memory[r] + 64, 1, INT64, SUM, comms[r], streams[r]), 0);
    int64_t sum = 7;
    get(0, 64, &sum, sizeof sum);
    CHECK_EQUAL(sum, 0);
    put(2, 0, &one, sizeof one);
    for (int r = 0; r < RANKS; r++)
        CHECK_EQUAL(ncclAllReduce(memory[r], memory[r] + 64, 1, INT64, SUM, comms[r], streams[r]), 0);
    get(0, 64, &sum, sizeof sum);
    CHECK_EQUAL(sum, 3);
}

/* Each rank sends to the next one and receives from the one before, whichever it does first. */
static void test_messages(void)
{
    setup();
    for (int round = 0; round < 40; round++) {
        for (int r = 0; r < RANKS; r++) {
            const int64_t value = 100 * round + r;
            put(r, 0, &value, sizeof value);
        }
        CHECK_EQUAL(ncclGroupStart(), 0);
        for (int r = 0; r < RANKS; r++) {
            const int next = (r + 1) % RANKS, before = (r + RANKS - 1) % RANKS;
            if (round % 2) CHECK_EQUAL(ncclSend(memory[r], 1, INT64, next, comms[r], streams[r]), 0);
            CHECK_EQUAL(ncclRecv(memory[r] + 64, 1, INT64, before, comms[r], streams[r]), 0);
            if (round % 2 == 0) {
                CHECK_EQUAL(cudaSetDevice(r), 0);
                CUstream other;
                CHECK_EQUAL(cudaStreamCreateWithFlags(&other, 1), 0);
                CHECK_EQUAL(ncclSend(memory[r], 1, INT64, next, comms[r], other), 0);
            }
        }
        CHECK_EQUAL(ncclGroupEnd(), 0);
        for (int r = 0; r < RANKS; r++) {
            int64_t seen = -1;
            get(r, 64, &seen, sizeof seen);
            CHECK_EQUAL(seen, 100 * round + (r + RANKS - 1) % RANKS);
        }
    }
}

static void test_messages_that_differ_are_told(void)
{
    setup();
    const int64_t value = 5;
    int error = 0;
    put(0, 0, &value, sizeof value);
    CHECK_EQUAL(ncclSend(memory[0], 1, INT64, 1, comms[0], streams[0]), 0);
    CHECK_EQUAL(ncclRecv(memory[1], 2, INT64, 0, comms[1], streams[1]), 0);
    CHECK_EQUAL(cudaStreamSynchronize(streams[1]), 0);
    CHECK_EQUAL(ncclCommGetAsyncError(comms[1], &error), 0);
    CHECK_EQUAL(error, INVALID_USAGE);
    CHECK_EQUAL(ncclSend(NULL, 1, INT64, 1, comms[0], streams[0]), INVALID_ARGUMENT);
    CHECK_EQUAL(ncclRecv(memory[0], 1, INT64, RANKS, comms[0], streams[0]), INVALID_ARGUMENT);
    /* One that is too large to be delivered keeps its place in the row. */
    CHECK_EQUAL(ncclSend(memory[0], 100000, INT64, 2, comms[0], streams[0]), 0);
    CHECK_EQUAL(ncclSend(memory[0], 1, INT64, 2, comms[0], streams[0]), 0);
    CHECK_EQUAL(ncclRecv(memory[2] + 64, 100000, INT64, 0, comms[2], streams[2]), 0);
    CHECK_EQUAL(ncclRecv(memory[2], 1, INT64, 0, comms[2], streams[2]), 0);
    int64_t seen = 0;
    get(2, 0, &seen, sizeof seen);
    CHECK_EQUAL(seen, 5);
}

static void test_buffers_are_checked(void)
{
    setup();
    CHECK_EQUAL(ncclAllReduce(memory[0], memory[0], 1, 99, SUM, comms[0], streams[0]), INVALID_ARGUMENT);
    CHECK_EQUAL(ncclBroadcast(memory[0], memory[0], 1, FLOAT, RANKS, comms[0], streams[0]), INVALID_ARGUMENT);
    CHECK_EQUAL(ncclAllReduce(NULL, memory[0], 1, FLOAT, SUM, comms[0], streams[0]), INVALID_ARGUMENT);
    /* The gathered parts of three ranks end behind the buffer. */
    CHECK_EQUAL(ncclAllGather(memory[0], memory[0] + 2 * MIB - 20, 2, FLOAT, comms[0], streams[0]), CUDA_FAILED);
    CHECK_EQUAL(cudaDeviceSynchronize(), cudaErrorIllegalAddress);
    CHECK_EQUAL(ncclCommInitAll(comms, 2, (const int[]){1, 1}), INVALID_USAGE);
}

static void test_ranks_that_differ_are_told(void)
{
    setup();
    int error = 0;
    CHECK_EQUAL(ncclAllReduce(memory[0], memory[0], 4, FLOAT, SUM, comms[0], streams[0]), 0);
    CHECK_EQUAL(ncclAllReduce(memory[1], memory[1], 5, FLOAT, SUM, comms[1], streams[1]), INVALID_USAGE);
    CHECK(strstr(ncclGetLastError(comms[1]), "rank 1 calls ncclAllReduce of 5 elements"));
    CHECK_EQUAL(ncclCommGetAsyncError(comms[1], &error), 0);
    CHECK_EQUAL(error, INVALID_USAGE);
    CHECK_EQUAL(ncclBroadcast(memory[2], memory[2], 4, FLOAT, 0, comms[2], streams[2]), INVALID_USAGE);
}

/* Each rank is a process. Odd and even ranks split; keys turn the order round. */
static void rank_of_four(unique_id id, int rank)
{
    comm all, half;
    CHECK_EQUAL(cudaSetDevice(rank % RANKS), 0);
    CHECK_EQUAL(ncclCommInitRank(&all, 4, id, rank), 0);
    CHECK_EQUAL(ncclCommSplit(all, rank % 2, -rank, &half, NULL), 0);
    int size, place;
    CHECK_EQUAL(ncclCommCount(half, &size), 0);
    CHECK_EQUAL(size, 2);
    CHECK_EQUAL(ncclCommUserRank(half, &place), 0);
    CHECK_EQUAL(place, rank < 2);
    char *m;
    CHECK_EQUAL(cudaMalloc((void **)&m, 2 * MIB), 0);
    int64_t value = rank + 1, sum = 0, parts[2];
    CHECK_EQUAL(cudaMemcpy(m, &value, sizeof value, cudaMemcpyHostToDevice), 0);
    CHECK_EQUAL(ncclAllReduce(m, m + 64, 1, INT64, SUM, all, NULL), 0);
    CHECK_EQUAL(ncclAllGather(m, m + 128, 1, INT64, half, NULL), 0);
    CHECK_EQUAL(cudaMemcpy(parts, m + 128, sizeof parts, cudaMemcpyDeviceToHost), 0);
    CHECK_EQUAL(cudaMemcpy(&sum, m + 64, sizeof sum, cudaMemcpyDeviceToHost), 0);
    CHECK_EQUAL(sum, 10);
    CHECK(parts[0] == 3 + rank % 2 && parts[1] == 1 + rank % 2);
    CHECK_EQUAL(ncclCommSplit(all, -1, 0, &half, NULL), 0);
    CHECK(!half);
    CHECK_EQUAL(ncclCommDestroy(all), 0);
}

static void test_processes(void)
{
    unique_id id;
    CHECK_EQUAL(ncclGetUniqueId(&id), 0);
    for (int rank = 0; rank < 4; rank++)
        if (fork() == 0) {
            rank_of_four(id, rank);
            exit(0);
        }
    for (int rank = 0; rank < 4; rank++) {
        int status;
        CHECK(wait(&status) > 0);
        CHECK_EQUAL(status, 0);
    }
}

/* A rank that has ended is not waited for. */
static void test_a_rank_that_died(void)
{
    unique_id id;
    comm c;
    char *m;
    int error = 0;
    CHECK_EQUAL(ncclGetUniqueId(&id), 0);
    pid_t child = fork();
    if (child == 0) {
        CHECK_EQUAL(ncclCommInitRank(&c, 2, id, 1), 0);
        exit(0);
    }
    CHECK(waitpid(child, &error, 0) == child);
    CHECK_EQUAL(error, 0);
    CHECK_EQUAL(ncclCommInitRank(&c, 2, id, 0), 0);
    CHECK_EQUAL(cudaMalloc((void **)&m, 2 * MIB), 0);
    CHECK_EQUAL(ncclAllReduce(m, m, 1, FLOAT, SUM, c, NULL), 0);
    CHECK_EQUAL(cudaDeviceSynchronize(), 0);
    CHECK_EQUAL(ncclCommGetAsyncError(c, &error), 0);
    CHECK(error != 0);
    char board[64] = "/dev/shm/gml-sim-nccl-";
    for (size_t i = 0; i < 16; i++) snprintf(board + 22 + 2 * i, 3, "%02x", (unsigned char)id.bytes[i]);
    CHECK(access(board, F_OK) != 0);
}

int main(void)
{
    setenv("GML_SIM_DEVICES", "3", 1);
    RUN_SIM(test_reductions);
    RUN_LATE(test_reductions);
    RUN_SIM(test_moves);
    RUN_LATE(test_moves);
    RUN_SIM(test_large_data);
    RUN_SIM(test_packed_objects);
    RUN_SIM(test_unknown_contributions);
    RUN_SIM(test_messages);
    RUN_LATE(test_messages);
    RUN_SIM(test_messages_that_differ_are_told);
    RUN_SIM(test_buffers_are_checked);
    RUN_SIM(test_ranks_that_differ_are_told);
    RUN_SIM(test_processes);
    RUN_SIM(test_a_rank_that_died);
    return 0;
}
