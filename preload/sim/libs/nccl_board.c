/* SPDX-License-Identifier: Apache-2.0 */
/* NCCL: the board where the ranks of a communicator meet, a file in shared memory named after its unique id.
 *
 * Each rank writes only its own row. Notes are a ring, compared with the rows of ranks that are at the same
 * place or further; the one that comes later tells. An exchange has two places in turn: a rank writes its
 * n-th contribution when every rank has read the (n-2)-nd. A rank waits for another one as long as that one
 * lives: on real devices it would wait too, and after a while it says for whom. Where ranks never come at all
 * (another machine), all of them go on alone. */
#define _GNU_SOURCE
#include "sim/libs/nccl.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

enum { NOTES = 64, SAY_AFTER_SECONDS = 20, JOIN_SECONDS = 30 };

struct note {
    _Atomic uint64_t number; /* from 1 on; written last */
    char name[24];
    uint64_t count;
    int type, root, op;
};

struct row {
    _Atomic int pid;              /* 0: has not joined */
    _Atomic uint64_t issued;      /* collectives noted so far */
    _Atomic uint64_t ended;       /* 1 + issued, when the rank issues no more */
    _Atomic uint64_t sent, read;  /* exchanges contributed to, and read */
    _Atomic bool known[2];        /* the last two contributions, or there was none */
    struct {
        _Atomic uint64_t number;
        int color, key;
    } split[2];
    struct note notes[NOTES];
};

/* Messages from one rank to another. */
struct channel {
    _Atomic uint64_t sent, received;
    struct {
        uint64_t bytes;
        bool known; /* data went along */
    } head[NCCL_MESSAGES];
};

struct board {
    _Atomic int alone; /* a rank gave the others up */
    int ranks;
    char name[64];
    size_t bytes;
    struct row row[]; /* one a rank; behind them channels, places of exchanges, and messages */
};

/* Pages of all this are made where something is written: most of it never is. */
static size_t board_bytes(int ranks)
{
    size_t n = (size_t)ranks, pairs = n * n;
    return sizeof(struct board) + n * (sizeof(struct row) + 2 * NCCL_OBJECT) +
           pairs * (sizeof(struct channel) + NCCL_MESSAGES * NCCL_MESSAGE);
}

static struct channel *channel(struct board *board, int from, int to)
{
    return (struct channel *)(void *)&board->row[board->ranks] + (size_t)from * (size_t)board->ranks + (size_t)to;
}

static char *places(struct board *board)
{
    return (char *)channel(board, board->ranks, 0);
}

static char *place(struct board *board, int rank, uint64_t number)
{
    return places(board) + (2 * (size_t)rank + number % 2) * NCCL_OBJECT;
}

static char *message(struct board *board, int from, int to, uint64_t number)
{
    size_t pair = (size_t)from * (size_t)board->ranks + (size_t)to;
    return places(board) + 2 * (size_t)board->ranks * NCCL_OBJECT +
           (pair * NCCL_MESSAGES + number % NCCL_MESSAGES) * NCCL_MESSAGE;
}

static void *map(const char *name, size_t bytes)
{
    int fd = shm_open(name, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (fd < 0) return NULL;
    void *memory = ftruncate(fd, (off_t)bytes) == 0 ? mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0)
                                                     : MAP_FAILED;
    close(fd);
    return memory == MAP_FAILED ? NULL : memory;
}

/* The last to join takes the name away: the memory lives as long as it is mapped. */
struct board *sim_board_join(const struct unique_id *id, int ranks, int rank)
{
    char name[64] = "/gml-sim-nccl-";
    size_t length = strlen(name);
    for (int i = 0; i < 16; i++) length += (size_t)snprintf(name + length, 3, "%02x", (unsigned char)id->bytes[i]);
    struct board *board = map(name, board_bytes(ranks));
    if (!board) return NULL;
    board->ranks = ranks; /* every rank writes the same */
    memcpy(board->name, name, sizeof name);
    board->row[rank].pid = getpid();
    int joined = 0;
    for (int r = 0; r < ranks; r++) joined += board->row[r].pid != 0;
    if (joined == ranks) shm_unlink(name);
    return board;
}

void sim_board_leave(struct comm *comm)
{
    struct board *board = comm->board;
    if (!board) return;
    int missing = 0;
    for (int r = 0; r < board->ranks; r++) missing += board->row[r].pid == 0;
    if (missing) shm_unlink(board->name);
    munmap(board, board_bytes(board->ranks));
    comm->board = NULL;
}

/* ---- notes ---- */

static bool same(const struct note *a, const struct note *b)
{
    return !strcmp(a->name, b->name) && a->count == b->count && a->type == b->type && a->root == b->root &&
           a->op == b->op;
}

static const char *text(const struct note *note, char *out, size_t room)
{
    int n = snprintf(out, room, "%s of %llu elements of type %d", note->name, (unsigned long long)note->count,
                     note->type);
    if (note->root >= 0) n += snprintf(out + n, room - (size_t)n, ", root %d", note->root);
    if (note->op >= 0) snprintf(out + n, room - (size_t)n, ", operation %d", note->op);
    return out;
}

int sim_board_note(struct comm *comm, const struct collective *collective)
{
    struct board *board = comm->board;
    uint64_t number = ++comm->issued;
    if (!board) return NCCL_SUCCESS;
    struct note *mine = &board->row[comm->rank].notes[number % NOTES];
    mine->number = 0;
    snprintf(mine->name, sizeof mine->name, "%s", collective->name);
    mine->count = collective->count;
    mine->type = collective->type;
    mine->root = collective->root;
    mine->op = collective->op;
    mine->number = number;
    board->row[comm->rank].issued = number;
    for (int r = 0; r < board->ranks; r++) {
        const struct note *other = &board->row[r].notes[number % NOTES];
        if (r == comm->rank || other->number != number) continue;
        const struct note seen = *other;
        if (other->number != number || same(mine, &seen)) continue;
        char here[96], there[96];
        const char *end = mine->count && seen.count ? ""
                          : " (or a size was computed on the device, where it is 0 in a simulation)";
        sim_nccl_say("collective %llu of a communicator of %d ranks differs: rank %d calls %s, rank %d called %s; "
                     "on real devices they would wait for ever or mix their data up%s",
                     (unsigned long long)number, board->ranks, comm->rank, text(mine, here, sizeof here), r,
                     text(&seen, there, sizeof there), end);
        comm->error = NCCL_INVALID_USAGE;
        return NCCL_INVALID_USAGE;
    }
    return NCCL_SUCCESS;
}

void sim_board_finish(struct comm *comm)
{
    struct board *board = comm->board;
    if (!board || board->row[comm->rank].ended) return;
    board->row[comm->rank].ended = comm->issued + 1;
    for (int r = 0; r < board->ranks; r++) {
        uint64_t ended = board->row[r].ended;
        if (!ended || ended == comm->issued + 1) continue;
        sim_nccl_say("rank %d ends after %llu collectives, rank %d ended after %llu: on real devices the one with "
                     "more would wait for ever",
                     comm->rank, (unsigned long long)comm->issued, r, (unsigned long long)(ended - 1));
        return;
    }
}

/* ---- waiting ---- */

static double seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static bool dead(int pid)
{
    return pid && kill(pid, 0) != 0 && errno == ESRCH;
}

/* Whether `rank` has done its part of number `number`. */
typedef bool (*arrived)(const struct comm *comm, int rank, uint64_t number);

static bool has_sent(const struct comm *comm, int rank, uint64_t number)
{
    return comm->board->row[rank].sent > number;
}

static bool has_read(const struct comm *comm, int rank, uint64_t number)
{
    const struct row *row = &comm->board->row[rank];
    return number < 2 || row->read > number - 2 || dead(row->pid);
}

static bool has_split(const struct comm *comm, int rank, uint64_t number)
{
    return comm->board->row[rank].split[number % 2].number >= number;
}

static bool has_posted(const struct comm *comm, int rank, uint64_t number)
{
    return channel(comm->board, rank, comm->rank)->sent > number;
}

/* There is room for one more message to it. */
static bool has_taken(const struct comm *comm, int rank, uint64_t number)
{
    return channel(comm->board, comm->rank, rank)->received + NCCL_MESSAGES > number;
}

/* Gives the others up: they never joined, or one ended without its part. */
static int give_up(struct comm *comm, int rank, const char *why)
{
    if (!comm->board->alone)
        sim_nccl_say("rank %d waits for rank %d, which %s; from here on the ranks of this communicator keep their "
                     "own data",
                     comm->rank, rank, why);
    comm->board->alone = 1;
    return 0;
}

struct patience {
    double start;
    bool said;
};

static void say_waits(const struct comm *comm, int rank, arrived has)
{
    if (has == has_posted || has == has_taken)
        sim_nccl_say("rank %d has waited %d seconds for a message from rank %d, or for it to be taken", comm->rank,
                     SAY_AFTER_SECONDS, rank);
    else
        sim_nccl_say("rank %d has waited %d seconds for rank %d in collective %llu", comm->rank, SAY_AFTER_SECONDS,
                     rank, (unsigned long long)comm->issued);
}

static int wait_for_rank(struct comm *comm, int rank, arrived has, uint64_t number, struct patience *patience)
{
    const struct board *board = comm->board;
    for (unsigned nap = 20; !has(comm, rank, number); nap += nap < 2000 ? nap / 2 : 0) {
        if (comm->aborted || board->alone) return 0;
        usleep(nap);
        const double waited = seconds() - patience->start;
        const int pid = board->row[rank].pid;
        if (!pid && waited > JOIN_SECONDS) return give_up(comm, rank, "has not joined");
        if (dead(pid) && !has(comm, rank, number)) {
            comm->error = NCCL_REMOTE_ERROR;
            return give_up(comm, rank, "has ended");
        }
        if (patience->said || waited < SAY_AFTER_SECONDS) continue;
        say_waits(comm, rank, has);
        patience->said = true;
    }
    return 1;
}

static int wait_for_peer(struct comm *comm, int peer, arrived has, uint64_t number)
{
    struct patience patience = {seconds(), false};
    return wait_for_rank(comm, peer, has, number, &patience);
}

static int wait_for(struct comm *comm, arrived has, uint64_t number)
{
    struct patience patience = {seconds(), false};
    for (int r = 0; r < comm->board->ranks; r++)
        if (!wait_for_rank(comm, r, has, number, &patience)) return 0;
    return 1;
}

int sim_board_split(struct comm *comm, int color, int key, int *colors, int *keys)
{
    struct board *board = comm->board;
    uint64_t number = ++comm->splits;
    if (!board) return 0;
    struct row *mine = &board->row[comm->rank];
    mine->split[number % 2].color = color;
    mine->split[number % 2].key = key;
    mine->split[number % 2].number = number;
    if (!wait_for(comm, has_split, number)) return 0;
    for (int r = 0; r < board->ranks; r++) {
        colors[r] = board->row[r].split[number % 2].color;
        keys[r] = board->row[r].split[number % 2].key;
    }
    return 1;
}

int sim_board_write(struct comm *comm, uint64_t number, const void *data, size_t bytes, size_t stride, bool *known,
                    const char **all)
{
    struct board *board = comm->board;
    static __thread char *parts;
    static __thread size_t room;
    if (room < (size_t)board->ranks * stride) {
        free(parts);
        parts = malloc((size_t)board->ranks * stride);
        room = parts ? (size_t)board->ranks * stride : 0;
    }
    struct row *mine = &board->row[comm->rank];
    if (!parts || !wait_for(comm, has_read, number)) return 0;
    memcpy(place(board, comm->rank, number), data, bytes);
    mine->known[number % 2] = *known || !bytes;
    mine->sent = number + 1;
    if (!wait_for(comm, has_sent, number)) return 0;
    *known = true;
    for (int r = 0; r < board->ranks; r++) {
        memcpy(parts + (size_t)r * stride, place(board, r, number), stride);
        *known = *known && board->row[r].known[number % 2];
    }
    *all = parts;
    return 1;
}

void sim_board_read(struct comm *comm, uint64_t number)
{
    comm->board->row[comm->rank].read = number + 1;
}

bool sim_board_shared_here(const struct comm *comm)
{
    for (int r = 0; r < comm->ranks; r++)
        if (r != comm->rank && comm->board->row[r].pid == getpid()) return true;
    return false;
}

/* ---- messages ---- */

int sim_board_send(struct comm *comm, int peer, uint64_t number, const void *data, size_t bytes)
{
    struct channel *way = channel(comm->board, comm->rank, peer);
    if (!wait_for_peer(comm, peer, has_taken, number)) return 0;
    way->head[number % NCCL_MESSAGES].bytes = bytes;
    way->head[number % NCCL_MESSAGES].known = data != NULL;
    if (data) memcpy(message(comm->board, comm->rank, peer, number), data, bytes);
    way->sent = number + 1;
    return 1;
}

int sim_board_receive(struct comm *comm, int peer, uint64_t number, void *data, size_t bytes, bool *known)
{
    struct channel *way = channel(comm->board, peer, comm->rank);
    if (!wait_for_peer(comm, peer, has_posted, number)) return 0;
    const size_t sent = way->head[number % NCCL_MESSAGES].bytes;
    *known = data && sent == bytes && way->head[number % NCCL_MESSAGES].known;
    if (*known) memcpy(data, message(comm->board, peer, comm->rank, number), bytes);
    if (sent != bytes) {
        sim_nccl_say("message %llu from rank %d to rank %d differs: %zu bytes were sent, %zu are received; on real "
                     "devices this is undefined", (unsigned long long)number + 1, peer, comm->rank, sent, bytes);
        comm->error = NCCL_INVALID_USAGE;
    }
    way->received = number + 1;
    return 1;
}
