/* SPDX-License-Identifier: Apache-2.0 */
/* NCCL: messages between two ranks, in stream order.
 *
 * A send is buffered, so the order of sends and receives in a group does not matter as long as no more than
 * NCCL_MESSAGES to one rank wait there. Of a message that is too large, or whose contents nobody knows, only its size
 * goes along: what the receiver's buffer holds is unknown then. */
#include "sim/libs/nccl.h"

#include <pthread.h>
#include <stdlib.h>

struct message {
    struct message *next;
    struct comm *comm;
    bool sends, known, carries; /* carries: small enough for its data to go along */
    int peer;
    uint64_t number;
    void *buffer;
    size_t bytes;
    char *data; /* pinned, NCCL_MESSAGE bytes */
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct message *spare; /* finished ones: a host function may free no pinned memory */

SIM_EXPORT cudaError_t cudaMemcpyAsync(void *dst, const void *src, size_t bytes, int kind, cudaStream_t stream);
SIM_EXPORT cudaError_t cudaLaunchHostFunc(cudaStream_t stream, cudaHostFn_t fn, void *user);
SIM_EXPORT cudaError_t cudaHostAlloc(void **out, size_t bytes, unsigned flags);

static struct message *take(void)
{
    pthread_mutex_lock(&lock);
    struct message *m = spare;
    if (m) spare = m->next;
    pthread_mutex_unlock(&lock);
    if (m) return m;
    void *memory;
    if (!(m = calloc(1, sizeof *m))) return NULL;
    if (!cudaHostAlloc(&memory, NCCL_MESSAGE, 0)) {
        m->data = memory;
        return m;
    }
    free(m);
    return NULL;
}

static void end(struct message *m)
{
    struct comm *comm = m->comm;
    pthread_mutex_lock(&lock);
    m->next = spare;
    spare = m;
    pthread_mutex_unlock(&lock);
    sim_nccl_unref(comm);
}

static void post(void *argument)
{
    struct message *m = argument;
    bool known = m->carries && sim_library_known(m->buffer, m->bytes) == 2;
    (void)sim_board_send(m->comm, m->peer, m->number, known ? m->data : NULL, m->bytes);
    end(m);
}

static void fetch(void *argument)
{
    struct message *m = argument;
    char *data = m->carries ? m->data : NULL;
    if (!sim_board_receive(m->comm, m->peer, m->number, data, m->bytes, &m->known)) m->known = false;
}

/* What nobody knows was copied all the same: those bytes mean nothing. */
static void received(void *argument)
{
    struct message *m = argument;
    if (!m->known) sim_library_forget(m->buffer, m->bytes);
    end(m);
}

bool sim_message(struct comm *comm, bool sends, int peer, void *buffer, size_t bytes, cudaStream_t stream)
{
    if (!comm->board || comm->ranks < 2 || !bytes || sim_nccl_captured(stream)) return false;
    if (!comm->messages && !(comm->messages = calloc(2 * (size_t)comm->ranks, sizeof *comm->messages))) return false;
    struct message *m = take();
    if (!m) return false;
    *m = (struct message){.comm = comm, .sends = sends, .carries = bytes <= NCCL_MESSAGE, .peer = peer,
                          .buffer = buffer, .bytes = bytes, .data = m->data};
    m->number = comm->messages[sends ? peer : comm->ranks + peer]++;
    comm->refs++;
    if (sends) {
        bool ok = !m->carries || !cudaMemcpyAsync(m->data, buffer, bytes, cudaMemcpyDeviceToHost, stream);
        return ok && !cudaLaunchHostFunc(stream, post, m);
    }
    bool ok = !cudaLaunchHostFunc(stream, fetch, m);
    if (ok && m->carries) ok = !cudaMemcpyAsync(buffer, m->data, bytes, cudaMemcpyHostToDevice, stream);
    return ok && !cudaLaunchHostFunc(stream, received, m);
}
