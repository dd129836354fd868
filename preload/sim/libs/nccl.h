/* SPDX-License-Identifier: Apache-2.0 */
/* Simulated NCCL: what its files share.
 *
 * The ranks of a communicator meet on a board in shared memory, found by the unique id. Every rank notes its
 * collectives there, so that ranks that disagree are told, and small contributions are exchanged over it. */
#ifndef GML_SIM_NCCL_H
#define GML_SIM_NCCL_H

#include "sim/libs/libs.h"

enum {
    NCCL_SUCCESS,
    NCCL_UNHANDLED_CUDA_ERROR,
    NCCL_SYSTEM_ERROR,
    NCCL_INTERNAL_ERROR,
    NCCL_INVALID_ARGUMENT,
    NCCL_INVALID_USAGE,
    NCCL_REMOTE_ERROR
};
enum { NCCL_SUM, NCCL_PROD, NCCL_MAX, NCCL_MIN, NCCL_AVG, NCCL_OPS };

/* Bytes that a rank may contribute to an exchange; above, a rank keeps its own data. Bytes as such are what
 * frameworks pack objects into. */
#define NCCL_SMALL ((size_t)4096)
#define NCCL_OBJECT ((size_t)1 << 20)
/* Bytes of a message between two ranks that are delivered, and messages on their way between two ranks. */
#define NCCL_MESSAGE ((size_t)65536)
enum { NCCL_MESSAGES = 16 };

struct unique_id {
    char bytes[128];
};

struct board;

struct comm {
    int ranks, rank, device;
    struct board *board; /* NULL: alone, nothing is noted or exchanged */
    _Atomic int refs, aborted, error;
    uint64_t issued, exchanges, splits;
    struct exchange *spare; /* finished ones, for use again; under a lock of nccl_exchange.c */
    uint64_t *messages; /* so far: to each rank, then from each */
};

/* A collective as every rank must issue it: the same function, count, type, root and operation. */
struct collective {
    const char *name;
    size_t count;
    int type, root, op; /* -1 where the function has none */
};

size_t sim_nccl_width(int type);
/* What went wrong last on this thread, for ncclGetLastError; it also goes to standard error. */
void sim_nccl_say(const char *format, ...) __attribute__((format(printf, 1, 2)));
const char *sim_nccl_said(void);
void sim_nccl_unref(struct comm *comm);

/* ---- board (nccl_board.c) ---- */

/* The board of `id`, made or joined by this rank; NULL where shared memory cannot be had. */
struct board *sim_board_join(const struct unique_id *id, int ranks, int rank);
void sim_board_leave(struct comm *comm);
/* Notes the rank's next collective and compares it with those of other ranks: NCCL_INVALID_USAGE, and said,
 * where another rank issued something else in its place. */
int sim_board_note(struct comm *comm, const struct collective *collective);
/* The rank issues no more: says so when it issued more or fewer collectives than one that ended before. */
void sim_board_finish(struct comm *comm);
/* Colours and keys of all ranks. Waits for them; 0 when they do not come. */
int sim_board_split(struct comm *comm, int color, int key, int *colors, int *keys);
/* Contributes `bytes` to exchange `number`; then `*all` leads to the contributions of every rank, `stride` apart,
 * until sim_board_read. `known`: what the bytes are is known, in and out: of those of every rank that contributes.
 * 0 when a rank does not come. */
int sim_board_write(struct comm *comm, uint64_t number, const void *data, size_t bytes, size_t stride, bool *known,
                    const char **all);
void sim_board_read(struct comm *comm, uint64_t number);
/* The n-th message to or from `peer`, of so many bytes. Data goes along when there is some (`data` not NULL, at most
 * NCCL_MESSAGE) and it is known; of one that comes, `*known` says whether it did. 0 when the peer does not come. */
int sim_board_send(struct comm *comm, int peer, uint64_t number, const void *data, size_t bytes);
int sim_board_receive(struct comm *comm, int peer, uint64_t number, void *data, size_t bytes, bool *known);
/* Another rank of the communicator lives in this process. */
bool sim_board_shared_here(const struct comm *comm);

/* ---- data (nccl_exchange.c, nccl_message.c, nccl_reduce.c) ---- */

enum { EXCHANGE_GATHER, EXCHANGE_REDUCE, EXCHANGE_ROOT, EXCHANGE_SCATTER, EXCHANGE_TRANSPOSE };

/* How contributions become a rank's result. `bytes` is the part of one rank. */
struct exchange_plan {
    int how, type, op, root;
    size_t bytes;
};

/* Queues the exchange on the stream: `send` bytes from `src`, then `receive` bytes into `dst` (NULL: nothing).
 * False when it is too large or cannot be done, and nothing was queued. */
bool sim_exchange(struct comm *comm, const struct exchange_plan *plan, const void *src, size_t send, void *dst,
                  size_t receive, cudaStream_t stream);
/* Most bytes of a contribution of this type. */
size_t sim_exchange_limit(int type);
/* Queues a message on the stream. False when it cannot be done, and nothing was queued. */
bool sim_message(struct comm *comm, bool sends, int peer, void *buffer, size_t bytes, cudaStream_t stream);
/* The stream is being captured: nothing can be exchanged then. */
bool sim_nccl_captured(cudaStream_t stream);
void sim_exchange_free_spare(struct comm *comm);
/* into[i] = op of parts[r][i] over ranks; parts lie `stride` bytes apart. */
void sim_nccl_reduce(void *into, const char *parts, size_t stride, int ranks, size_t count, int type, int op);

#endif
