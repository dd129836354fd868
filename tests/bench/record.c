/* SPDX-License-Identifier: Apache-2.0 */
/* Preloaded before libgml.so: writes each cudaMallocAsync and cudaFreeAsync of a program to RECORD_TO.PID as a line of
 * a trace ("A id bytes stream", "F id stream"). Thread-safe. A program that allocates nothing leaves no file.
 *
 * The lock is held over the call itself, so that the trace has the order in which the allocator saw the calls. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { SLOTS = 1 << 20, STREAMS = 256 };

typedef struct live_block {
    uintptr_t address; /* 0: an empty slot */
    uint32_t id;
} live_block;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static FILE *out;
static live_block blocks[SLOTS]; /* open addressing, linear probing */
static uint32_t next_id, live_count;
static void *streams[STREAMS]; /* [0] is the default stream, whatever its handle */
static unsigned stream_count = 1;

static void stop(const char *why)
{
    fprintf(stderr, "record: %s\n", why);
    _exit(70);
}

static unsigned stream_number(void *stream)
{
    if ((uintptr_t)stream <= 2) /* NULL, legacy, per-thread */
        return 0;
    for (unsigned i = 1; i < stream_count; i++)
        if (streams[i] == stream)
            return i;
    if (stream_count == STREAMS)
        stop("more than 255 streams");
    streams[stream_count] = stream;
    return stream_count++;
}

static unsigned home_of(uintptr_t address)
{
    return (unsigned)((address >> 9) * UINT64_C(0x9E3779B97F4A7C15) >> 44) % SLOTS;
}

/* The block's slot, or the empty one where it belongs. */
static unsigned slot_of(uintptr_t address)
{
    unsigned slot = home_of(address);
    while (blocks[slot].address != 0 && blocks[slot].address != address)
        slot = (slot + 1) % SLOTS;
    return slot;
}

/* Empties a slot and moves later entries of the same run forward, so that no search ends too early. */
static void empty_slot(unsigned slot)
{
    for (unsigned next = slot;;) {
        blocks[slot].address = 0;
        do {
            next = (next + 1) % SLOTS;
            if (blocks[next].address == 0)
                return;
        } while ((next - home_of(blocks[next].address)) % SLOTS < (next - slot) % SLOTS);
        blocks[slot] = blocks[next];
        slot = next;
    }
}

static void open_once(void)
{
    if (out != NULL)
        return;
    const char *name = getenv("RECORD_TO");
    char path[4096];
    snprintf(path, sizeof path, "%s.%d", name != NULL ? name : "trace", (int)getpid());
    out = fopen(path, "w");
    if (out == NULL)
        stop("cannot write where RECORD_TO says");
}

int cudaMallocAsync(void **address, size_t bytes, void *stream)
{
    int (*real)(void **, size_t, void *) = (int (*)(void **, size_t, void *))dlsym(RTLD_NEXT, "cudaMallocAsync");
    pthread_mutex_lock(&lock);
    int status = real(address, bytes, stream);
    if (status == 0 && bytes != 0) {
        open_once();
        if (++live_count > SLOTS / 2)
            stop("too many live blocks");
        blocks[slot_of((uintptr_t)*address)] = (live_block){(uintptr_t)*address, next_id};
        fprintf(out, "A %u %zu %u\n", next_id++, bytes, stream_number(stream));
    }
    pthread_mutex_unlock(&lock);
    return status;
}

int cudaFreeAsync(void *address, void *stream)
{
    int (*real)(void *, void *) = (int (*)(void *, void *))dlsym(RTLD_NEXT, "cudaFreeAsync");
    pthread_mutex_lock(&lock);
    unsigned slot = slot_of((uintptr_t)address);
    if (address != NULL && blocks[slot].address != 0) {
        fprintf(out, "F %u %u\n", blocks[slot].id, stream_number(stream));
        empty_slot(slot);
        live_count--;
    }
    int status = real(address, stream);
    pthread_mutex_unlock(&lock);
    return status;
}

__attribute__((destructor)) static void finish(void)
{
    if (out != NULL)
        fclose(out);
}
