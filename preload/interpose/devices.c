/* SPDX-License-Identifier: Apache-2.0 */
/* Devices of the shim: attached when first seen, opened when first served, dropped on reset. */
#include "interpose/shim.h"

#include "interpose/torch_env.h"

#include <stdio.h>

static void set_state(gml_shim *shim, gml_shim_device *device, gml_device_state state)
{
    int end = atomic_load(&shim->device_end);
    while (end <= device->ordinal &&
           !atomic_compare_exchange_weak(&shim->device_end, &end, device->ordinal + 1))
        ;
    atomic_store_explicit(&device->state, (int)state, memory_order_release);
}

static void watch_locked(gml_shim *shim, gml_shim_device *device)
{
    gml_device_block *block = device->block;
    if (gml_cuda_device_attach(&device->cuda, &shim->driver, device->ordinal) != GML_OK)
        return;
    gml_cuda_device_name(&device->cuda, block->name, (int)sizeof block->name);
    if (atomic_load(&device->default_pool) == NULL)
        atomic_store(&device->default_pool, device->cuda.default_pool);
    gml_telemetry_set(&block->present, 1);
    set_state(shim, device, GML_DEVICE_WATCHED);
    gml_shim_look(shim, device);
}

gml_shim_device *gml_shim_watch(gml_shim *shim, int ordinal)
{
    if (ordinal < 0 || ordinal >= GML_SHIM_DEVICES || !shim->has_driver)
        return NULL;
    gml_shim_device *device = &shim->devices[ordinal];
    if (gml_shim_state(device) == GML_DEVICE_NEW) {
        gml_lock_acquire(&shim->open_lock);
        if (gml_shim_state(device) == GML_DEVICE_NEW)
            watch_locked(shim, device);
        gml_lock_release(&shim->open_lock);
    }
    return gml_shim_state(device) == GML_DEVICE_NEW ? NULL : device;
}

static void say_unusable(gml_shim *shim, const gml_shim_device *device, gml_status status)
{
    char text[GML_TELEMETRY_TEXT];
    (void)snprintf(text, sizeof text, "device %d cannot be served (%s): its requests go to the driver",
                   device->ordinal, gml_status_text(status));
    gml_shim_say(shim, GML_SAID_DEVICE, text);
}

static void drop_prices(gml_shim_device *device)
{
    if (device->priced != NULL)
        gml_priced_destroy(device->priced);
    device->priced = NULL;
}

static void serve_locked(gml_shim *shim, gml_shim_device *device)
{
    gml_device_block *block = device->block;
    gml_heap_options options = {
        .goal = shim->goal,
        .limit_bytes = shim->limit_bytes,
        .max_driver_time_ppm = shim->max_driver_time_ppm,
        .no_cross_stream = atomic_load(&device->reuse_off) != 0,
        .stats = &block->stats,
        .sequence = &block->sequence,
        .size_counts = block->size_counts,
    };
    gml_status status = gml_cuda_device_prepare(&device->cuda);
    if (status == GML_OK && shim->has_prices)
        status = gml_priced_create(&device->cuda.base, &shim->prices, &device->priced);
    gml_device *dev = device->priced != NULL ? device->priced : &device->cuda.base;
    if (status == GML_OK)
        status = gml_heap_create(dev, &options, &device->heap);
    if (status != GML_OK) {
        drop_prices(device);
        say_unusable(shim, device, status);
        set_state(shim, device, GML_DEVICE_UNUSABLE);
        return;
    }
    uint32_t peers = atomic_load(&device->peers);
    for (int peer = 0; peer < GML_SHIM_DEVICES; peer++)
        if (peers >> peer & 1)
            gml_cuda_device_add_peer(&device->cuda, peer);
    gml_heap_set_captures(device->heap, atomic_load(&shim->driver.captures));
    set_state(shim, device, GML_DEVICE_SERVING);
}

/* The thread has the device's primary context, or another context of the program's own. */
static bool has_context(const gml_shim *shim)
{
    CUcontext current = NULL;
    return shim->driver.ctx_current(&current) == CUDA_SUCCESS && current != NULL;
}

static bool has_this_context(const gml_shim *shim, const gml_shim_device *device)
{
    CUcontext current = NULL;
    return gml_shim_state(device) != GML_DEVICE_NEW && shim->driver.ctx_current(&current) == CUDA_SUCCESS &&
           current == device->cuda.context;
}

cudaError_t gml_shim_ready(gml_shim *shim, const gml_real *real, gml_shim_device *device)
{
    gml_thread *thread = &gml_this_thread;
    unsigned generation = atomic_load_explicit(&shim->generation, memory_order_relaxed);
    uint32_t bit = (uint32_t)1 << device->ordinal;
    if ((thread->ready & bit) != 0 && thread->generation == generation)
        return cudaSuccess;
    /* cudaFree(NULL) is the runtime's way to make the context. It is forbidden during a capture, but
     * then the thread that captures has one. */
    bool capturing = atomic_load(&shim->driver.captures) > 0;
    if (!has_this_context(shim, device) && !(capturing && has_context(shim))) {
        cudaError_t error = real->cudaFree(NULL);
        if (error != cudaSuccess)
            return error;
    }
    if (gml_shim_watch(shim, device->ordinal) != NULL && gml_shim_state(device) == GML_DEVICE_WATCHED) {
        gml_lock_acquire(&shim->open_lock);
        if (gml_shim_state(device) == GML_DEVICE_WATCHED)
            serve_locked(shim, device);
        gml_lock_release(&shim->open_lock);
    }
    if (thread->generation != generation)
        thread->ready = 0;
    thread->generation = generation;
    thread->ready |= bit;
    return cudaSuccess;
}

/* What the dropped heap held is gone; totals and peaks stay. A new heap counts on from here. */
static void clear_levels(gml_stats *stats)
{
    uint64_t *const levels[] = {
        &stats->live_bytes,          &stats->requested_bytes,      &stats->reserved_bytes,
        &stats->primitive_live_bytes, &stats->stitched_live_bytes, &stats->primitive_idle_bytes,
        &stats->stitched_idle_bytes, &stats->stream_held_bytes,    &stats->forwarded_bytes,
        &stats->largest_servable_bytes, &stats->largest_gap_bytes, &stats->chunks,
        &stats->mappings,            &stats->arenas,               &stats->stitched_arenas,
        &stats->reserved_va_bytes,   &stats->metadata_bytes,
    };
    for (size_t i = 0; i < sizeof levels / sizeof levels[0]; i++)
        gml_telemetry_set(levels[i], 0);
    gml_telemetry_set(&stats->frees, stats->allocs); /* the reset gave every block back */
}

void gml_shim_reset(gml_shim *shim, gml_shim_device *device)
{
    gml_lock_acquire(&shim->open_lock);
    gml_device_state state = gml_shim_state(device);
    atomic_store(&device->state, GML_DEVICE_NEW);
    if (state == GML_DEVICE_SERVING) {
        /* The reset waits for the device anyway; nothing may be unmapped under running work. */
        (void)device->cuda.base.ops->sync(&device->cuda.base);
        gml_heap_destroy(device->heap);
        drop_prices(device);
        device->heap = NULL;
        clear_levels(&device->block->stats);
    }
    if (state != GML_DEVICE_NEW)
        gml_cuda_device_close(&device->cuda);
    gml_ledger_drop_device(&shim->ledger, device->ordinal);
    gml_stacks_drop_device(shim->stacks, device->ordinal);
    gml_telemetry_set(&device->block->driver_live_bytes, 0);
    atomic_store(&device->forwarded_count, 0);
    atomic_store(&device->peers, 0);
    atomic_store(&device->own_pool, false);
    (void)atomic_fetch_add(&shim->generation, 1);
    gml_lock_release(&shim->open_lock);
}
