/* SPDX-License-Identifier: Apache-2.0 */
/* Page-locked host memory: allocated or registered, kept in one sorted array. */
#define _GNU_SOURCE
#include "sim/driver/driver.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

static struct sim_host *table; /* by address, ranges never overlap */
static size_t count, room;

/* The first entry that ends behind `va`. */
static size_t position(uintptr_t va)
{
    size_t low = 0, high = count;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (table[middle].va + table[middle].bytes <= va) low = middle + 1;
        else high = middle;
    }
    return low;
}

struct sim_host *sim_host_find_locked(uintptr_t va)
{
    size_t at = position(va);
    return at < count && table[at].va <= va ? &table[at] : NULL;
}

static CUresult insert_locked(struct sim_host host)
{
    size_t at = position(host.va);
    if (at < count && table[at].va < host.va + host.bytes) return CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED;
    if (count == room) {
        size_t wanted = room ? room * 2 : 64;
        struct sim_host *grown = realloc(table, wanted * sizeof *grown);
        if (!grown) return CUDA_ERROR_OUT_OF_MEMORY;
        table = grown;
        room = wanted;
    }
    memmove(&table[at + 1], &table[at], (count - at) * sizeof *table);
    table[at] = host;
    count++;
    return CUDA_SUCCESS;
}

static void remove_locked(struct sim_host *host)
{
    size_t at = (size_t)(host - table);
    memmove(&table[at], &table[at + 1], (--count - at) * sizeof *table);
}

DRIVER(cuMemHostAlloc, (void **out, size_t bytes, unsigned flags))
{
    ENTER_CTX(cuMemHostAlloc, ctx);
    if (!out || !bytes || flags & ~7U) return CUDA_ERROR_INVALID_VALUE;
    size_t mapped = sim_round_up(bytes, 4096);
    sim_lock();
    CUresult result = sim_capture_unsafe_locked();
    void *memory = MAP_FAILED;
    if (result == CUDA_SUCCESS) {
        memory = mmap(NULL, mapped, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        result = memory == MAP_FAILED ? CUDA_ERROR_OUT_OF_MEMORY
                                      : insert_locked((struct sim_host){(uintptr_t)memory, mapped, false, flags, ctx});
    }
    if (result == CUDA_SUCCESS) *out = memory;
    else if (memory != MAP_FAILED) munmap(memory, mapped);
    sim_unlock();
    return result;
}

DRIVER(cuMemAllocHost_v2, (void **out, size_t bytes))
{
    return cuMemHostAlloc(out, bytes, 0);
}

DRIVER(cuMemFreeHost, (void *memory))
{
    ENTER_CTX(cuMemFreeHost, ctx);
    if (!memory) return CUDA_SUCCESS;
    sim_lock();
    struct sim_host *host = sim_host_find_locked((uintptr_t)memory);
    bool ok = host && host->va == (uintptr_t)memory && !host->registered;
    CUresult result = ok ? sim_capture_unsafe_locked() : CUDA_ERROR_INVALID_VALUE;
    if (result == CUDA_SUCCESS) {
        sim_ctx_wait_locked(ctx); /* copies may still read it */
        host = sim_host_find_locked((uintptr_t)memory);
        if (host) {
            munmap((void *)host->va, host->bytes);
            remove_locked(host);
        }
    }
    sim_unlock();
    return result;
}

DRIVER(cuMemHostRegister_v2, (void *memory, size_t bytes, unsigned flags))
{
    ENTER_CTX(cuMemHostRegister, ctx);
    if (!memory || !bytes) return CUDA_ERROR_INVALID_VALUE;
    sim_lock();
    CUresult result = insert_locked((struct sim_host){(uintptr_t)memory, bytes, true, flags, ctx});
    sim_unlock();
    return result;
}

DRIVER(cuMemHostUnregister, (void *memory))
{
    ENTER_CTX(cuMemHostUnregister, ctx);
    if (!memory) return CUDA_ERROR_INVALID_VALUE;
    sim_lock();
    struct sim_host *host = sim_host_find_locked((uintptr_t)memory);
    bool ok = host && host->va == (uintptr_t)memory && host->registered;
    if (ok) {
        sim_ctx_wait_locked(ctx);
        host = sim_host_find_locked((uintptr_t)memory);
        if (host) remove_locked(host);
    }
    sim_unlock();
    return ok ? CUDA_SUCCESS : CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED;
}

DRIVER(cuMemHostGetDevicePointer_v2, (CUdeviceptr * out, void *memory, unsigned flags))
{
    ENTER_CTX(cuMemHostGetDevicePointer, ctx);
    (void)ctx;
    sim_lock();
    bool known = sim_host_find_locked((uintptr_t)memory) != NULL;
    sim_unlock();
    if (!out || flags || !known) return CUDA_ERROR_INVALID_VALUE;
    *out = (uintptr_t)memory;
    return CUDA_SUCCESS;
}

DRIVER(cuMemHostGetFlags, (unsigned *out, void *memory))
{
    ENTER_CTX(cuMemHostGetFlags, ctx);
    (void)ctx;
    sim_lock();
    struct sim_host *host = sim_host_find_locked((uintptr_t)memory);
    if (host && out) *out = host->flags;
    sim_unlock();
    return host && out ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}
