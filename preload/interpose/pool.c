/* SPDX-License-Identifier: Apache-2.0 */
/* The default pool's figures and settings, and cudaMemGetInfo, as a program with our heap sees them.
 *
 * The real pool stays behind ours: it holds what was forwarded, so its figures are added. */
#define _GNU_SOURCE
#include "interpose/shim.h"

/* Declares `real`, and `shim`, which is NULL when the call is none of our business. */
#define HOOK(function)  \
    GML_HOOK(function); \
    gml_shim *shim = gml_shim_inside() ? NULL : gml_shim_get()

gml_shim_device *gml_pool_device(gml_shim *shim, cudaMemPool_t pool)
{
    if (pool == NULL)
        return NULL;
    for (int i = 0; i < GML_SHIM_DEVICES; i++)
        if (atomic_load_explicit(&shim->devices[i].default_pool, memory_order_relaxed) == pool)
            return &shim->devices[i];
    return NULL;
}

/* The device of a default pool whose requests our heap serves; NULL: the real pool's answer stands. */
static gml_shim_device *served_pool(gml_shim *shim, cudaMemPool_t pool)
{
    if (shim == NULL || shim->mode != GML_SHIM_SERVE)
        return NULL;
    gml_shim_device *device = gml_pool_device(shim, pool);
    return device != NULL && gml_shim_state(device) == GML_DEVICE_SERVING ? device : NULL;
}

/* ---- which pool ---- */

cudaError_t cudaDeviceGetDefaultMemPool(cudaMemPool_t *out_pool, int device)
{
    HOOK(cudaDeviceGetDefaultMemPool);
    cudaError_t error = real->cudaDeviceGetDefaultMemPool(out_pool, device);
    if (error == cudaSuccess && shim != NULL && device >= 0 && device < GML_SHIM_DEVICES)
        atomic_store(&shim->devices[device].default_pool, *out_pool);
    return error;
}

cudaError_t cudaDeviceSetMemPool(int device, cudaMemPool_t pool)
{
    HOOK(cudaDeviceSetMemPool);
    cudaError_t error = real->cudaDeviceSetMemPool(device, pool);
    if (error == cudaSuccess && shim != NULL && device >= 0 && device < GML_SHIM_DEVICES)
        atomic_store(&shim->devices[device].own_pool, gml_pool_device(shim, pool) != &shim->devices[device]);
    return error;
}

/* ---- attributes ---- */

/* High marks: the heap's own peak, or what was seen since the program reset the mark. */
static uint64_t high_mark(bool is_reset, uint64_t seen, uint64_t peak_then, uint64_t peak, uint64_t now)
{
    if (!is_reset || peak > peak_then)
        return peak;
    return seen > now ? seen : now;
}

static uint64_t own_figure(const gml_shim_device *device, int attribute)
{
    const gml_stats *stats = &device->block->stats;
    const gml_pool_marks *marks = &device->marks;
    uint64_t live = gml_telemetry_get(&stats->live_bytes);
    uint64_t reserved = gml_telemetry_get(&stats->reserved_bytes);
    switch (attribute) {
    case cudaMemPoolAttrReservedMemCurrent:
        return reserved;
    case cudaMemPoolAttrReservedMemHigh:
        return high_mark(atomic_load(&marks->reserved_is_reset), atomic_load(&marks->reserved_high),
                         atomic_load(&marks->reserved_peak), gml_telemetry_get(&stats->peak_reserved_bytes), reserved);
    case cudaMemPoolAttrUsedMemCurrent:
        return live;
    case cudaMemPoolAttrUsedMemHigh:
        return high_mark(atomic_load(&marks->used_is_reset), atomic_load(&marks->used_high),
                         atomic_load(&marks->used_peak), gml_telemetry_get(&stats->peak_live_bytes), live);
    default:
        return 0;
    }
}

static bool is_figure(int attribute)
{
    return attribute >= cudaMemPoolAttrReservedMemCurrent && attribute <= cudaMemPoolAttrUsedMemHigh;
}

cudaError_t cudaMemPoolGetAttribute(cudaMemPool_t pool, int attribute, void *value)
{
    HOOK(cudaMemPoolGetAttribute);
    const gml_shim_device *device = served_pool(shim, pool);
    if (device == NULL || value == NULL || !is_figure(attribute))
        return real->cudaMemPoolGetAttribute(pool, attribute, value);
    uint64_t forwarded = 0;
    cudaError_t error = real->cudaMemPoolGetAttribute(pool, attribute, &forwarded);
    if (error == cudaSuccess)
        *(uint64_t *)value = own_figure(device, attribute) + forwarded;
    return error;
}

static void reset_mark(gml_shim_device *device, int attribute)
{
    gml_pool_marks *marks = &device->marks;
    const gml_stats *stats = &device->block->stats;
    if (attribute == cudaMemPoolAttrUsedMemHigh) {
        atomic_store(&marks->used_peak, gml_telemetry_get(&stats->peak_live_bytes));
        atomic_store(&marks->used_high, gml_telemetry_get(&stats->live_bytes));
        atomic_store(&marks->used_is_reset, true);
    } else {
        atomic_store(&marks->reserved_peak, gml_telemetry_get(&stats->peak_reserved_bytes));
        atomic_store(&marks->reserved_high, gml_telemetry_get(&stats->reserved_bytes));
        atomic_store(&marks->reserved_is_reset, true);
    }
    atomic_store(&marks->reset, true);
}

static void remember_setting(gml_shim_device *device, int attribute, const void *value)
{
    gml_pool_marks *marks = &device->marks;
    if (attribute == cudaMemPoolAttrReleaseThreshold) {
        uint64_t threshold = *(const uint64_t *)value;
        atomic_store(&marks->release_threshold, threshold);
        atomic_store(&marks->releases, threshold != UINT64_MAX);
        atomic_store(&device->refreshed_ns, 0); /* obeyed at the next served call */
    } else if (attribute == cudaMemPoolAttrUsedMemHigh || attribute == cudaMemPoolAttrReservedMemHigh) {
        reset_mark(device, attribute);
    } else if (attribute >= cudaMemPoolReuseFollowEventDependencies &&
               attribute <= cudaMemPoolReuseAllowInternalDependencies) {
        /* The three are not told apart: any that is off forbids reuse across streams altogether. */
        unsigned bit = 1u << (attribute - cudaMemPoolReuseFollowEventDependencies);
        bool allowed = *(const int *)value != 0;
        unsigned before = allowed ? atomic_fetch_and(&device->reuse_off, ~bit) : atomic_fetch_or(&device->reuse_off, bit);
        unsigned off = allowed ? before & ~bit : before | bit;
        if (gml_shim_state(device) == GML_DEVICE_SERVING)
            gml_heap_set_cross_stream(device->heap, off == 0);
    }
}

cudaError_t cudaMemPoolSetAttribute(cudaMemPool_t pool, int attribute, void *value)
{
    HOOK(cudaMemPoolSetAttribute);
    /* The real pool judges the value: a high mark, for one, takes nothing but 0. */
    cudaError_t error = real->cudaMemPoolSetAttribute(pool, attribute, value);
    gml_shim_device *device = shim == NULL ? NULL : gml_pool_device(shim, pool);
    if (error == cudaSuccess && device != NULL && value != NULL)
        remember_setting(device, attribute, value);
    return error;
}

/* ---- trim and access ---- */

cudaError_t cudaMemPoolTrimTo(cudaMemPool_t pool, size_t keep_bytes)
{
    HOOK(cudaMemPoolTrimTo);
    gml_shim_device *device = served_pool(shim, pool);
    size_t keep_forwarded = keep_bytes;
    if (device != NULL) {
        uint64_t released = 0;
        gml_this_thread.depth++;
        gml_status status = gml_heap_trim(device->heap, keep_bytes, &released);
        gml_this_thread.depth--;
        if (status == GML_INTERNAL)
            gml_shim_degrade(shim, gml_status_text(status));
        uint64_t left = gml_telemetry_get(&device->block->stats.reserved_bytes);
        keep_forwarded = left < keep_bytes ? keep_bytes - (size_t)left : 0;
    }
    return real->cudaMemPoolTrimTo(pool, keep_forwarded);
}

cudaError_t cudaMemPoolSetAccess(cudaMemPool_t pool, const cudaMemAccessDesc *list, size_t count)
{
    HOOK(cudaMemPoolSetAccess);
    cudaError_t error = real->cudaMemPoolSetAccess(pool, list, count);
    gml_shim_device *device = shim == NULL ? NULL : gml_pool_device(shim, pool);
    if (error != cudaSuccess || device == NULL)
        return error;
    for (size_t i = 0; i < count; i++)
        if (list[i].location.type == CU_MEM_LOCATION_TYPE_DEVICE &&
            list[i].flags == CU_MEM_ACCESS_FLAGS_PROT_READWRITE)
            gml_shim_add_peer(shim, device, list[i].location.id);
    return error;
}

/* ---- free memory ---- */

/* What the program may still get: the device's free memory, no more than --limit leaves, and our idle
 * chunks; never more than is there beside the live blocks. */
static size_t servable_bytes(const gml_shim *shim, const gml_shim_device *device, size_t free_bytes,
                             size_t total_bytes)
{
    uint64_t live = gml_telemetry_get(&device->block->stats.live_bytes);
    uint64_t reserved = gml_telemetry_get(&device->block->stats.reserved_bytes);
    uint64_t most = total_bytes > live ? total_bytes - live : 0;
    uint64_t fresh = free_bytes;
    if (shim->limit_bytes != 0) {
        uint64_t left = shim->limit_bytes > reserved ? shim->limit_bytes - reserved : 0;
        fresh = fresh < left ? fresh : left;
    }
    fresh += gml_heap_idle_bytes(device->heap);
    return (size_t)(fresh < most ? fresh : most);
}

cudaError_t cudaMemGetInfo(size_t *out_free, size_t *out_total)
{
    HOOK(cudaMemGetInfo);
    int ordinal = 0;
    size_t free_bytes = 0;
    size_t total_bytes = 0;
    if (shim == NULL || out_free == NULL)
        return real->cudaMemGetInfo(out_free, out_total);
    cudaError_t error = real->cudaMemGetInfo(&free_bytes, &total_bytes);
    if (error != cudaSuccess)
        return error;
    if (real->cudaGetDevice != NULL && real->cudaGetDevice(&ordinal) == cudaSuccess && ordinal >= 0 &&
        ordinal < GML_SHIM_DEVICES) {
        gml_shim_device *device = &shim->devices[ordinal];
        if (gml_shim_state(device) != GML_DEVICE_NEW)
            gml_shim_note_free(shim, device, free_bytes, total_bytes);
        if (gml_shim_state(device) == GML_DEVICE_SERVING)
            free_bytes = servable_bytes(shim, device, free_bytes, total_bytes);
    }
    *out_free = free_bytes;
    if (out_total != NULL) /* programs that only want to know what is free pass NULL */
        *out_total = total_bytes;
    return cudaSuccess;
}
