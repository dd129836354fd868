/* SPDX-License-Identifier: Apache-2.0 */
/* The runtime's free functions: a block of ours goes back to its heap, anything else to the real one. */
#define _GNU_SOURCE
#include "interpose/shim.h"

#include "interpose/timing.h"

typedef enum release_kind { PLAIN, ASYNC, ASYNC_PTSZ } release_kind;

/* Gives a block of ours back. False: no heap of ours knows the address. */
static bool free_served(gml_shim *shim, uintptr_t address, gml_stream stream)
{
    int end = atomic_load_explicit(&shim->device_end, memory_order_acquire);
    for (int i = 0; i < end; i++) {
        gml_shim_device *device = &shim->devices[i];
        if (gml_shim_state(device) != GML_DEVICE_SERVING)
            continue;
        uint64_t began_ns = gml_timing_begin();
        gml_status status = gml_heap_free(device->heap, address, stream);
        if (status == GML_NOT_FOUND)
            continue;
        gml_timing_end(device, began_ns, device->block->free_latency);
        if (status == GML_INTERNAL)
            gml_shim_degrade(shim, gml_status_text(status));
        gml_shim_after_served(shim, device);
        return true;
    }
    return false;
}

/* A free that is recorded into a graph happens at each launch, which we cannot see: a block of ours
 * stays as it is, since giving it out again could let the graph write over it. */
static bool keep_captured(gml_shim *shim, uintptr_t address, cudaStream_t stream)
{
    if (!gml_capture_on(shim, stream))
        return false;
    int end = atomic_load_explicit(&shim->device_end, memory_order_acquire);
    for (int i = 0; i < end; i++) {
        gml_shim_device *device = &shim->devices[i];
        uintptr_t base = 0;
        if (gml_shim_state(device) != GML_DEVICE_SERVING || !gml_heap_find(device->heap, address, &base, NULL) ||
            base != address)
            continue;
        gml_shim_say(shim, GML_SAID_CAPTURED_FREE,
                     "a graph capture freed memory that was allocated outside it: that memory stays in use");
        return true;
    }
    return false;
}

typedef struct release {
    const gml_real *real;
    void *address;
    cudaStream_t stream;
    release_kind kind;
} release;

static cudaError_t free_real(const release *f)
{
    if (f->kind == PLAIN)
        return f->real->cudaFree(f->address);
    return f->kind == ASYNC ? f->real->cudaFreeAsync(f->address, f->stream)
                            : f->real->cudaFreeAsync_ptsz(f->address, f->stream);
}

static cudaError_t free_forwarded(gml_shim *shim, const release *f)
{
    gml_ledger_entry entry = {0, 0};
    /* Out of the ledger first: once the real free is done, another thread may get the same address. */
    bool counted = gml_ledger_remove(&shim->ledger, (uintptr_t)f->address, &entry);
    cudaError_t error = free_real(f);
    if (!counted)
        return error;
    if (error != cudaSuccess) {
        (void)gml_ledger_add(&shim->ledger, (uintptr_t)f->address, entry);
        return error;
    }
    gml_telemetry_add(&shim->telemetry->forwarded_calls, 1);
    gml_shim_uncount(shim, entry);
    gml_shim_tick(shim, &shim->devices[entry.device]);
    return error;
}

static cudaError_t free_inside(gml_shim *shim, const release *f)
{
    cudaStream_t stream = gml_stream_normal(f->stream, f->kind == ASYNC_PTSZ);
    if (f->kind != PLAIN && keep_captured(shim, (uintptr_t)f->address, stream))
        return cudaSuccess;
    /* Before the block is given back: after that, another thread may have the address. */
    gml_shim_dies(shim, (uintptr_t)f->address);
    if (free_served(shim, (uintptr_t)f->address, f->kind == PLAIN ? GML_STREAM_NONE : (uint64_t)(uintptr_t)stream))
        return cudaSuccess;
    return free_forwarded(shim, f);
}

static cudaError_t release_block(release *f, const void *return_address)
{
    gml_caller caller = gml_lookup_caller(return_address);
    f->real = caller.real;
    if (f->real == NULL || (f->kind == PLAIN        ? f->real->cudaFree == NULL
                            : f->kind == ASYNC_PTSZ ? f->real->cudaFreeAsync_ptsz == NULL
                                                    : f->real->cudaFreeAsync == NULL))
        return cudaErrorInsufficientDriver;
    /* Children drop tensors of their parent's (a DataLoader's worker that collects garbage). PyTorch's own cache just
     * keeps such a block; without the cache, and with the cudaMallocAsync backend, a free that fails ends the child.
     * Where we chose one of these, it must not. */
    if (f->kind != PLAIN ? gml_shim_inherited(GML_TORCH_ASYNC) : caller.is_torch && gml_shim_inherited(GML_TORCH_UNCACHED))
        return cudaSuccess;
    gml_shim *shim = NULL;
    if (f->address == NULL || gml_shim_inside() || (shim = gml_shim_peek()) == NULL)
        return free_real(f);
    gml_this_thread.depth++;
    cudaError_t error = free_inside(shim, f);
    gml_this_thread.depth--;
    return error;
}

/* ---- the hooks ---- */

#define RELEASE(...)                                               \
    do {                                                           \
        release f = {__VA_ARGS__};                                 \
        return release_block(&f, __builtin_return_address(0));     \
    } while (0)

cudaError_t cudaFree(void *address)
{
    RELEASE(.kind = PLAIN, .address = address);
}

cudaError_t cudaFreeAsync(void *address, cudaStream_t stream)
{
    RELEASE(.kind = ASYNC, .address = address, .stream = stream);
}

cudaError_t cudaFreeAsync_ptsz(void *address, cudaStream_t stream)
{
    RELEASE(.kind = ASYNC_PTSZ, .address = address, .stream = stream);
}
