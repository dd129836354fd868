/* SPDX-License-Identifier: Apache-2.0 */
/* Figures that are not kept at every change: computed statistics, the map, the device's free memory.
 *
 * There is no thread of ours, so hooked calls do this in passing, at most every 100 ms. */
#include "interpose/shim.h"

#include "interpose/torch_env.h"
#include "os/os.h"

#include <dlfcn.h>
#include <string.h>

#define REFRESH_NS 100000000u

/* Everything that we count on the device; what is used beyond it belongs to contexts and others. */
static uint64_t counted_bytes(const gml_device_block *block)
{
    uint64_t held = gml_telemetry_get(&block->stats.reserved_bytes) + gml_telemetry_get(&block->driver_live_bytes);
    uint64_t torch = gml_telemetry_get(&block->torch_reserved_bytes);
    /* PyTorch's segments are driver memory that we may have counted already. */
    return torch > held ? torch : held;
}

static uint64_t counted_peak(const gml_device_block *block)
{
    uint64_t held = gml_telemetry_get(&block->stats.peak_reserved_bytes) +
                    gml_telemetry_get(&block->peak_driver_live_bytes);
    uint64_t torch = gml_telemetry_get(&block->torch_peak_reserved_bytes);
    return torch > held ? torch : held;
}

void gml_shim_note_free(gml_shim *shim, gml_shim_device *device, uint64_t free_bytes, uint64_t total_bytes)
{
    gml_device_block *block = device->block;
    uint64_t used = total_bytes > free_bytes ? total_bytes - free_bytes : 0;
    uint64_t counted = counted_bytes(block);
    gml_telemetry_set(&block->total_bytes, total_bytes);
    gml_telemetry_set(&block->free_bytes, free_bytes);
    (void)gml_telemetry_raise(&block->peak_used_bytes, used);
    atomic_store(&device->outside_bytes, used > counted ? used - counted : 0);
    if (shim->sim_peak_bytes != NULL && shim->sim_used_bytes != NULL) {
        uint64_t taken = shim->sim_used_bytes(device->ordinal);
        uint64_t context = used > taken ? used - taken : 0;
        (void)gml_telemetry_raise(&block->peak_used_bytes, shim->sim_peak_bytes(device->ordinal) + context);
    }
}

void gml_shim_look(gml_shim *shim, gml_shim_device *device)
{
    size_t free_bytes = 0;
    size_t total_bytes = 0;
    gml_device *dev = &device->cuda.base;
    if (dev->ops->mem_info(dev, &free_bytes, &total_bytes) == GML_OK)
        gml_shim_note_free(shim, device, free_bytes, total_bytes);
}

static void refresh_process(gml_shim *shim)
{
    gml_telemetry *t = shim->telemetry;
    gml_telemetry_set(&t->backend_dropped, gml_torch_env_dropped());
    if (gml_telemetry_get(&t->torch_seen) == 0 && gml_torch_env_asked()) {
        void *library = dlopen("libc10_cuda.so", RTLD_LAZY | RTLD_NOLOAD);
        if (library != NULL) {
            gml_telemetry_set(&t->torch_seen, 1);
            (void)dlclose(library);
        }
    }
}

/* Idle chunks above a release threshold that the program set go back. */
static void obey_threshold(gml_shim_device *device)
{
    uint64_t released = 0;
    if (atomic_load(&device->marks.releases) &&
        gml_heap_idle_bytes(device->heap) > 0 &&
        gml_telemetry_get(&device->block->stats.reserved_bytes) > atomic_load(&device->marks.release_threshold)) {
        gml_status ignored = gml_heap_trim(device->heap, atomic_load(&device->marks.release_threshold), &released);
        (void)ignored;
    }
}

static void refresh(gml_shim *shim, gml_shim_device *device)
{
    gml_device_block *block = device->block;
    refresh_process(shim);
    if (gml_shim_state(device) == GML_DEVICE_SERVING) {
        gml_stats stats;
        obey_threshold(device);
        gml_heap_stats(device->heap, &stats);
        gml_heap_map(device->heap, block->map, sizeof block->map);
    }
    /* The device itself is asked only when one of our peaks has risen since. */
    uint64_t peak = counted_peak(block);
    if (gml_shim_state(device) != GML_DEVICE_NEW && atomic_exchange(&device->looked_at, peak) != peak)
        gml_shim_look(shim, device);
}

void gml_shim_tick(gml_shim *shim, gml_shim_device *device)
{
    uint64_t now = gml_os_coarse_ns();
    uint64_t last = atomic_load_explicit(&device->refreshed_ns, memory_order_relaxed);
    gml_telemetry_set(&device->block->updated_ns, now);
    /* The peak cannot have been lower than what was outside then plus what we held at most. */
    (void)gml_telemetry_raise(&device->block->peak_used_bytes,
                              atomic_load_explicit(&device->outside_bytes, memory_order_relaxed) +
                                  counted_peak(device->block));
    if (now - last >= REFRESH_NS && atomic_compare_exchange_strong(&device->refreshed_ns, &last, now))
        refresh(shim, device);
}

void gml_shim_record_oom(gml_shim *shim, gml_shim_device *device, uint64_t bytes, uint64_t stream,
                         gml_oom_source source)
{
    const gml_device_block *block = device->block;
    gml_stats stats;
    memset(&stats, 0, sizeof stats);
    if (gml_shim_state(device) == GML_DEVICE_SERVING)
        gml_heap_stats(device->heap, &stats);
    if (gml_shim_state(device) != GML_DEVICE_NEW)
        gml_shim_look(shim, device);
    gml_oom_record record = {
        .device = (uint64_t)device->ordinal,
        .request_bytes = bytes,
        .stream = stream,
        .live_bytes = stats.live_bytes,
        .requested_bytes = stats.requested_bytes,
        .reserved_bytes = stats.reserved_bytes,
        .stream_held_bytes = stats.stream_held_bytes,
        .largest_servable_bytes = stats.largest_servable_bytes,
        .largest_gap_bytes = stats.largest_gap_bytes,
        .free_bytes = gml_telemetry_get(&block->free_bytes),
        .total_bytes = gml_telemetry_get(&block->total_bytes),
        .source = (uint64_t)source,
    };
    if (source == GML_OOM_TORCH) {
        record.live_bytes = gml_telemetry_get(&block->torch_allocated_bytes);
        record.reserved_bytes = gml_telemetry_get(&block->torch_reserved_bytes);
    } else if (source == GML_OOM_DRIVER) {
        record.live_bytes = gml_telemetry_get(&block->driver_live_bytes);
        record.reserved_bytes = record.live_bytes;
    }
    gml_lock_acquire(&shim->oom_lock);
    gml_telemetry_oom(shim->telemetry, &record);
    gml_lock_release(&shim->oom_lock);
}
