/* SPDX-License-Identifier: Apache-2.0 */
/* Plain allocations: cuMemAlloc and its kin, device memory taken in whole chunks of 2 MiB. */
#include "sim/driver/driver.h"

#include <string.h>
#include <sys/mman.h>

CUresult sim_allocation_new_locked(struct sim_ctx *ctx, size_t bytes, struct sim_pool *pool, struct sim_range **out)
{
    struct sim_phys *phys;
    struct sim_range *range;
    struct sim_map *map;
    if (bytes > SIZE_MAX / 2) return CUDA_ERROR_OUT_OF_MEMORY; /* rounding up would overflow */
    size_t physical = sim_round_up(bytes, pool ? 512 : SIM_CHUNK);
    CUresult result = sim_phys_new_locked(ctx->device, physical, pool != NULL, &phys);
    if (result != CUDA_SUCCESS) return result;
    result = sim_range_new_locked(bytes, SIM_CHUNK, 0, pool ? SIM_RANGE_POOL : SIM_RANGE_MALLOC, &range);
    if (result != CUDA_SUCCESS) goto undo_phys;
    result = sim_map_new_locked(range->va, phys, &map);
    if (result != CUDA_SUCCESS) goto undo_range;
    phys->refs = 0; /* the map alone holds it */
    /* Copy engines reach plain allocations of every device, whether or not peers are enabled. */
    memset(map->access, CU_MEM_ACCESS_FLAGS_PROT_READWRITE, sizeof map->access);
    range->device = ctx->device;
    range->ctx = ctx;
    range->pool = pool;
    *out = range;
    return CUDA_SUCCESS;

undo_range:
    sim_range_free_locked(range);
undo_phys:
    phys->refs = 0;
    sim_phys_unref_locked(phys);
    return result;
}

void sim_allocation_free_locked(struct sim_range *range)
{
    if (range->kind == SIM_RANGE_POOL) sim_pool_return_locked(range);
    struct sim_map *map = sim_page_locked(range->va).map;
    if (map) sim_map_free_locked(map);
    sim_range_free_locked(range);
}

DRIVER(cuMemAlloc_v2, (CUdeviceptr * out, size_t bytes))
{
    ENTER_CTX(cuMemAlloc, ctx);
    if (!out || !bytes) return CUDA_ERROR_INVALID_VALUE;
    struct sim_range *range;
    sim_lock();
    CUresult result = sim_capture_unsafe_locked();
    if (result == CUDA_SUCCESS) result = sim_allocation_new_locked(ctx, bytes, NULL, &range);
    if (result == CUDA_SUCCESS) {
        *out = range->va;
        sim_history_add_locked("cuMemAlloc", range->va, bytes, range->id);
    }
    sim_unlock();
    /* Physical memory is what costs; the rest is put at 2 us a chunk. */
    const uint64_t cost = sim_config_get()->costs.create + 2000;
    if (result == CUDA_SUCCESS) sim_time_add(cost * (sim_round_up(bytes, SIM_CHUNK) / SIM_CHUNK));
    return result;
}

DRIVER(cuMemAllocPitch_v2, (CUdeviceptr * out, size_t *pitch, size_t width, size_t height, unsigned element))
{
    ENTER_CTX(cuMemAllocPitch, ctx);
    (void)ctx;
    if (!out || !pitch || !width || !height) return CUDA_ERROR_INVALID_VALUE;
    if (element != 4 && element != 8 && element != 16) return CUDA_ERROR_INVALID_VALUE;
    if (width > SIZE_MAX / 2 || sim_round_up(width, 512) > SIZE_MAX / height) return CUDA_ERROR_OUT_OF_MEMORY;
    size_t row = sim_round_up(width, 512);
    CUresult result = cuMemAlloc_v2(out, row * height);
    if (result == CUDA_SUCCESS) *pitch = row;
    return result;
}

/* Plain memory: the free waits for the device, as cudaFree does. Pool memory: no wait (documented). */
DRIVER(cuMemFree_v2, (CUdeviceptr ptr))
{
    ENTER_CTX(cuMemFree, ctx);
    (void)ctx;
    if (!ptr) return CUDA_SUCCESS;
    sim_lock();
    CUresult result = CUDA_ERROR_INVALID_VALUE;
    struct sim_range *range = sim_range_find_locked((uintptr_t)ptr);
    if (!range || range->va != ptr || range->kind == SIM_RANGE_RESERVED || range->freeing) goto done;
    result = sim_capture_unsafe_locked();
    if (result != CUDA_SUCCESS) goto done;
    if (range->kind == SIM_RANGE_GRAPH && !range->live) {
        result = CUDA_ERROR_INVALID_VALUE;
        goto done;
    }
    if (range->kind != SIM_RANGE_POOL) {
        uint64_t id = range->id;
        sim_ctx_wait_locked(range->ctx);
        range = sim_range_find_locked((uintptr_t)ptr);
        if (!range || range->id != id) goto done; /* freed by another thread meanwhile */
    }
    sim_history_add_locked("cuMemFree", range->va, range->bytes, range->id);
    if (range->kind == SIM_RANGE_GRAPH) {
        range->live = false;
        sim_graph_memory_free_locked(range, range->generation);
    } else {
        sim_allocation_free_locked(range);
    }
done:
    sim_unlock();
    return result;
}

/* Managed memory is host memory that every device may touch; it takes nothing of the device's budget. */
DRIVER(cuMemAllocManaged, (CUdeviceptr * out, size_t bytes, unsigned flags))
{
    ENTER_CTX(cuMemAllocManaged, ctx);
    if (!out || !bytes || (flags != 1 && flags != 2)) return CUDA_ERROR_INVALID_VALUE;
    struct sim_range *range;
    sim_lock();
    CUresult result = sim_range_new_locked(bytes, SIM_CHUNK, 0, SIM_RANGE_MANAGED, &range);
    if (result == CUDA_SUCCESS) {
        range->ctx = ctx;
        range->device = ctx->device;
        if (mprotect((void *)range->va, range->va_bytes, PROT_READ | PROT_WRITE)) {
            sim_range_free_locked(range);
            result = CUDA_ERROR_OUT_OF_MEMORY;
        } else {
            *out = range->va;
            sim_history_add_locked("cuMemAllocManaged", range->va, bytes, range->id);
        }
    }
    sim_unlock();
    return result;
}

DRIVER(cuMemGetInfo_v2, (size_t *free_bytes, size_t *total_bytes))
{
    ENTER_CTX(cuMemGetInfo, ctx);
    const struct sim_config *config = sim_config_get();
    sim_lock();
    const struct sim_device *d = &sim.device[ctx->device];
    size_t held = d->used + d->foreign + d->contexts * config->profile->context_bytes;
    if (free_bytes) *free_bytes = held < config->total_bytes ? config->total_bytes - held : 0;
    if (total_bytes) *total_bytes = config->total_bytes;
    sim_unlock();
    return CUDA_SUCCESS;
}

DRIVER(cuMemGetAddressRange_v2, (CUdeviceptr * base, size_t *bytes, CUdeviceptr ptr))
{
    ENTER(cuMemGetAddressRange);
    sim_lock();
    struct sim_page page = sim_page_locked((uintptr_t)ptr);
    CUresult result = CUDA_ERROR_NOT_FOUND;
    if (page.range && page.range->kind != SIM_RANGE_RESERVED && ptr < page.range->va + page.range->bytes) {
        if (base) *base = page.range->va;
        if (bytes) *bytes = page.range->bytes;
        result = CUDA_SUCCESS;
    } else if (page.range && page.map) { /* of VMM memory it knows the mapping, not the reservation */
        if (base) *base = page.map->va;
        if (bytes) *bytes = page.map->bytes;
        result = CUDA_SUCCESS;
    }
    sim_unlock();
    return result;
}
