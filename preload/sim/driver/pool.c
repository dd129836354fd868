/* SPDX-License-Identifier: Apache-2.0 */
/* Stream-ordered allocator: an ideal pool, which never fragments and grows in steps of 32 MiB.
 *
 * Every allocation has addresses and contents of its own; the pool keeps two sums, used and reserved,
 * and only reserved counts against the device. A free takes effect when its stream comes to it. */
#include "sim/driver/driver.h"

#include <string.h>

static const size_t STEP = (size_t)32 << 20;
static struct sim_pool *pools; /* all of them */

static size_t weight(const struct sim_range *range)
{
    return sim_round_up(range->bytes, 512);
}

static struct sim_pool *new_locked(int device)
{
    struct sim_pool *pool = sim_object_new_locked(SIM_POOL);
    if (!pool) return NULL;
    *pool = (struct sim_pool){.object = pool->object, .device = device, .reuse = {1, 1, 1}, .next = pools};
    pools = pool;
    return pool;
}

static void end_locked(struct sim_pool *pool)
{
    struct sim_pool **link = &pools;
    while (*link != pool) link = &(*link)->next;
    *link = pool->next;
    sim_budget_give_locked(pool->device, pool->reserved);
    sim_object_free_locked(pool);
}

/* The pool, unless the program destroyed it. */
static struct sim_pool *pool_get_locked(CUmemoryPool handle)
{
    struct sim_pool *pool = sim_object_get_locked(SIM_POOL, handle);
    return pool && !pool->destroyed ? pool : NULL;
}

struct sim_pool *sim_pool_default_locked(int device)
{
    struct sim_device *d = &sim.device[device];
    if (!d->pool && (d->pool = new_locked(device))) d->pool->is_default = true;
    if (!d->current_pool) d->current_pool = d->pool;
    return d->pool;
}

static bool reserve_locked(struct sim_pool *pool, size_t used)
{
    if (used <= pool->reserved) return true;
    if (pool->max_bytes && used > pool->max_bytes) return false;
    size_t wanted = sim_round_up(used, STEP);
    if (!sim_budget_take_locked(pool->device, wanted - pool->reserved)) {
        wanted = sim_round_up(used, SIM_CHUNK);
        if (!sim_budget_take_locked(pool->device, wanted - pool->reserved)) return false;
    }
    pool->reserved = wanted;
    if (wanted > pool->reserved_high) pool->reserved_high = wanted;
    return true;
}

static void shrink_locked(struct sim_pool *pool, size_t keep)
{
    size_t floor = sim_round_up(pool->used > keep ? pool->used : keep, STEP);
    if (floor >= pool->reserved) return;
    sim_budget_give_locked(pool->device, pool->reserved - floor);
    pool->reserved = floor;
}

/* What a synchronisation does: unused memory over the release threshold goes back. */
void sim_pool_relax_locked(void)
{
    for (struct sim_pool *pool = pools; pool; pool = pool->next)
        if (pool->reserved > pool->threshold) shrink_locked(pool, pool->threshold);
}

void sim_pool_return_locked(struct sim_range *range)
{
    range->pool->used -= weight(range);
    if (range->freeing) range->pool->pending--;
    if (range->pool->destroyed && !range->pool->used) end_locked(range->pool);
}

static CUresult alloc_locked(struct sim_ctx *ctx, struct sim_pool *pool, size_t bytes, CUdeviceptr *out)
{
    struct sim_range *range;
    if (bytes > sim_config_get()->total_bytes) return CUDA_ERROR_OUT_OF_MEMORY;
    size_t used = pool->used + sim_round_up(bytes, 512);
    if (!reserve_locked(pool, used)) {
        if (!pool->pending) return CUDA_ERROR_OUT_OF_MEMORY;
        sim_ctx_wait_locked(ctx); /* frees that have been asked for come back first */
        used = pool->used + sim_round_up(bytes, 512);
        if (!reserve_locked(pool, used)) return CUDA_ERROR_OUT_OF_MEMORY;
    }
    struct sim_ctx owner = *ctx;
    owner.device = pool->device;
    CUresult result = sim_allocation_new_locked(&owner, bytes, pool, &range);
    if (result != CUDA_SUCCESS) return result;
    range->ctx = ctx;
    pool->used = used;
    if (used > pool->used_high) pool->used_high = used;
    *out = range->va;
    sim_history_add_locked("cuMemAllocAsync", range->va, bytes, range->id);
    return CUDA_SUCCESS;
}

/* While capturing an allocation is a node of the graph, with an address and, until a launch, no memory. */
static CUresult capture_locked(struct sim_ctx *ctx, struct sim_stream *stream, size_t bytes, CUdeviceptr *out)
{
    struct sim_range *range;
    CUresult result = sim_graph_memory_new_locked(ctx, bytes, &range);
    if (result != CUDA_SUCCESS) return result;
    const struct sim_op op = {.kind = SIM_OP_ALLOC, .u.free = {range->va, range->id, 0}};
    result = sim_capture_add_locked(stream, &op);
    if (result != CUDA_SUCCESS) sim_range_free_locked(range);
    else *out = range->va;
    return result;
}

/* A free while capturing is of memory of a graph, once; any other is of what is allocated now. */
static bool may_free_locked(const struct sim_range *range, const struct sim_stream *stream)
{
    if (range->kind == SIM_RANGE_RESERVED || range->freeing) return false;
    if (stream->capture) return range->kind == SIM_RANGE_GRAPH;
    return range->kind != SIM_RANGE_GRAPH || range->live || !range->generation;
}

static CUresult alloc(struct sim_ctx *ctx, CUdeviceptr *out, size_t bytes, CUmemoryPool handle, CUstream stream)
{
    if (!out) return CUDA_ERROR_INVALID_VALUE;
    sim_lock();
    struct sim_stream *s;
    CUresult result = sim_stream_get_locked(ctx, stream, &s);
    sim_pool_default_locked(ctx->device);
    struct sim_pool *pool = handle ? pool_get_locked(handle) : sim.device[ctx->device].current_pool;
    if (result == CUDA_SUCCESS && (!pool || !bytes)) result = CUDA_ERROR_INVALID_VALUE;
    if (result == CUDA_SUCCESS)
        result = s->capture ? capture_locked(ctx, s, bytes, out) : alloc_locked(ctx, pool, bytes, out);
    sim_unlock();
    return result;
}

DRIVER(cuMemAllocAsync, (CUdeviceptr * out, size_t bytes, CUstream stream))
{
    ENTER_CTX(cuMemAllocAsync, ctx);
    return alloc(ctx, out, bytes, NULL, stream);
}

DRIVER(cuMemAllocFromPoolAsync, (CUdeviceptr * out, size_t bytes, CUmemoryPool pool, CUstream stream))
{
    ENTER_CTX(cuMemAllocFromPoolAsync, ctx);
    if (!pool) return CUDA_ERROR_INVALID_VALUE;
    return alloc(ctx, out, bytes, pool, stream);
}

DRIVER(cuMemFreeAsync, (CUdeviceptr ptr, CUstream stream))
{
    ENTER_CTX(cuMemFreeAsync, ctx);
    if (!ptr) return CUDA_SUCCESS;
    sim_lock();
    struct sim_stream *s;
    CUresult result = sim_stream_get_locked(ctx, stream, &s);
    struct sim_range *range = sim_range_find_locked((uintptr_t)ptr);
    bool ok = range && range->va == ptr;
    if (result == CUDA_SUCCESS && !(ok && may_free_locked(range, s))) result = CUDA_ERROR_INVALID_VALUE;
    if (result == CUDA_SUCCESS) {
        range->freeing = range->kind != SIM_RANGE_GRAPH;
        if (!s->capture) range->live = false;
        if (range->pool) range->pool->pending++;
        struct sim_op op = {.kind = SIM_OP_FREE, .u.free = {range->va, range->id, range->generation}};
        sim_history_add_locked("cuMemFreeAsync", range->va, range->bytes, range->id);
        result = sim_submit_locked(s, &op);
    }
    sim_unlock();
    return result;
}

/* ---- pools ---- */

static bool device_ok(CUdevice device)
{
    return device >= 0 && device < sim_config_get()->devices;
}

DRIVER(cuDeviceGetDefaultMemPool, (CUmemoryPool * out, CUdevice device))
{
    ENTER(cuDeviceGetDefaultMemPool);
    if (!out) return CUDA_ERROR_INVALID_VALUE;
    if (!device_ok(device)) return CUDA_ERROR_INVALID_DEVICE;
    sim_lock();
    *out = (CUmemoryPool)(void *)sim_pool_default_locked(device);
    sim_unlock();
    return CUDA_SUCCESS;
}

DRIVER(cuDeviceGetMemPool, (CUmemoryPool * out, CUdevice device))
{
    ENTER(cuDeviceGetMemPool);
    if (!out) return CUDA_ERROR_INVALID_VALUE;
    if (!device_ok(device)) return CUDA_ERROR_INVALID_DEVICE;
    sim_lock();
    sim_pool_default_locked(device);
    *out = (CUmemoryPool)(void *)sim.device[device].current_pool;
    sim_unlock();
    return CUDA_SUCCESS;
}

DRIVER(cuDeviceSetMemPool, (CUdevice device, CUmemoryPool handle))
{
    ENTER(cuDeviceSetMemPool);
    if (!device_ok(device)) return CUDA_ERROR_INVALID_DEVICE;
    sim_lock();
    struct sim_pool *pool = pool_get_locked(handle);
    bool ok = pool && pool->device == device;
    if (ok) sim.device[device].current_pool = pool;
    sim_unlock();
    return ok ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

DRIVER(cuMemPoolCreate, (CUmemoryPool * out, const CUmemPoolProps *props))
{
    ENTER(cuMemPoolCreate);
    if (!out || !props || props->allocType != CU_MEM_ALLOCATION_TYPE_PINNED ||
        props->location.type != CU_MEM_LOCATION_TYPE_DEVICE || !device_ok(props->location.id))
        return CUDA_ERROR_INVALID_VALUE;
    sim_lock();
    struct sim_pool *pool = new_locked(props->location.id);
    if (pool) {
        pool->max_bytes = props->maxSize;
        pool->handle_types = props->handleTypes;
        *out = (CUmemoryPool)(void *)pool;
    }
    sim_unlock();
    return pool ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

/* The default pool cannot be destroyed; one with allocations goes when the last of them is freed. */
DRIVER(cuMemPoolDestroy, (CUmemoryPool handle))
{
    ENTER(cuMemPoolDestroy);
    sim_lock();
    struct sim_pool *pool = pool_get_locked(handle);
    bool ok = pool && !pool->is_default;
    if (ok) {
        struct sim_device *d = &sim.device[pool->device];
        if (d->current_pool == pool) d->current_pool = sim_pool_default_locked(pool->device);
        pool->destroyed = true;
        if (!pool->used) end_locked(pool);
    }
    sim_unlock();
    return ok ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

DRIVER(cuMemPoolTrimTo, (CUmemoryPool handle, size_t keep))
{
    ENTER(cuMemPoolTrimTo);
    sim_lock();
    struct sim_pool *pool = pool_get_locked(handle);
    if (pool) shrink_locked(pool, keep);
    sim_unlock();
    return pool ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

static CUresult attribute_get_locked(const struct sim_pool *pool, int attribute, void *value)
{
    uint64_t answer;
    switch (attribute) {
    case CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES:
    case CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC:
    case CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES:
        memcpy(value, &pool->reuse[attribute - 1], sizeof(int));
        return CUDA_SUCCESS;
    case CU_MEMPOOL_ATTR_RELEASE_THRESHOLD: answer = pool->threshold; break;
    case CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT: answer = pool->reserved; break;
    case CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH: answer = pool->reserved_high; break;
    case CU_MEMPOOL_ATTR_USED_MEM_CURRENT: answer = pool->used; break;
    case CU_MEMPOOL_ATTR_USED_MEM_HIGH: answer = pool->used_high; break;
    default: return CUDA_ERROR_INVALID_VALUE;
    }
    memcpy(value, &answer, sizeof answer);
    return CUDA_SUCCESS;
}

/* A high mark takes 0 only: it starts again from what is held now. */
static CUresult attribute_set_locked(struct sim_pool *pool, int attribute, const void *value)
{
    uint64_t wanted = 0;
    if (attribute >= CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES &&
        attribute <= CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES) {
        memcpy(&pool->reuse[attribute - 1], value, sizeof(int));
        return CUDA_SUCCESS;
    }
    memcpy(&wanted, value, sizeof wanted);
    switch (attribute) {
    case CU_MEMPOOL_ATTR_RELEASE_THRESHOLD: pool->threshold = wanted; return CUDA_SUCCESS;
    case CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH:
        if (wanted) return CUDA_ERROR_INVALID_VALUE;
        pool->reserved_high = pool->reserved;
        return CUDA_SUCCESS;
    case CU_MEMPOOL_ATTR_USED_MEM_HIGH:
        if (wanted) return CUDA_ERROR_INVALID_VALUE;
        pool->used_high = pool->used;
        return CUDA_SUCCESS;
    default: return CUDA_ERROR_INVALID_VALUE;
    }
}

DRIVER(cuMemPoolGetAttribute, (CUmemoryPool handle, int attribute, void *value))
{
    ENTER(cuMemPoolGetAttribute);
    if (!value) return CUDA_ERROR_INVALID_VALUE;
    sim_lock();
    struct sim_pool *pool = pool_get_locked(handle);
    CUresult result = pool ? attribute_get_locked(pool, attribute, value) : CUDA_ERROR_INVALID_VALUE;
    sim_unlock();
    return result;
}

DRIVER(cuMemPoolSetAttribute, (CUmemoryPool handle, int attribute, void *value))
{
    ENTER(cuMemPoolSetAttribute);
    if (!value) return CUDA_ERROR_INVALID_VALUE;
    sim_lock();
    struct sim_pool *pool = pool_get_locked(handle);
    CUresult result = pool ? attribute_set_locked(pool, attribute, value) : CUDA_ERROR_INVALID_VALUE;
    sim_unlock();
    return result;
}

DRIVER(cuMemPoolSetAccess, (CUmemoryPool handle, const CUmemAccessDesc *desc, size_t count))
{
    ENTER(cuMemPoolSetAccess);
    sim_lock();
    struct sim_pool *pool = pool_get_locked(handle);
    sim_unlock();
    bool ok = pool && desc && count;
    for (size_t i = 0; ok && i < count; i++) ok = device_ok(desc[i].location.id);
    return ok ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

DRIVER(cuMemPoolGetAccess, (int *flags, CUmemoryPool handle, CUmemLocation *location))
{
    ENTER(cuMemPoolGetAccess);
    sim_lock();
    struct sim_pool *pool = pool_get_locked(handle);
    sim_unlock();
    if (!flags || !location || !pool || !device_ok(location->id)) return CUDA_ERROR_INVALID_VALUE;
    *flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
    return CUDA_SUCCESS;
}
