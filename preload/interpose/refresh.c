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
#define LOOK_RISE_BYTES ((uint64_t)64 << 20)

/* Rises whenever the device may be fuller than ever. */
static uint64_t peaks_sum(const gml_device_block *block)
{
    return gml_telemetry_get(&block->stats.peak_reserved_bytes) +
           gml_telemetry_get(&block->torch_peak_reserved_bytes) +
           gml_telemetry_get(&block->peak_driver_live_bytes);
}

void gml_shim_note_free(gml_shim *shim, gml_shim_device *device, uint64_t free_bytes, uint64_t total_bytes)
{
    gml_device_block *block = device->block;
    uint64_t used = total_bytes > free_bytes ? total_bytes - free_bytes : 0;
    uint64_t held = gml_telemetry_get(&block->stats.reserved_bytes);
    gml_telemetry_set(&block->total_bytes, total_bytes);
    gml_telemetry_set(&block->free_bytes, free_bytes);
    (void)gml_telemetry_raise(&block->peak_used_bytes, used);
    atomic_store(&device->outside_bytes, used > held ? used - held : 0);
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

/* The option's interval is also the time that memory must have been idle. */
static void release_idle(const gml_shim *shim, gml_shim_device *device)
{
    uint64_t now = gml_os_coarse_ns(), released = 0;
    if (shim->release_idle_ns == 0 || now - atomic_load(&device->released_ns) < shim->release_idle_ns)
        return;
    atomic_store(&device->released_ns, now);
    gml_status ignored = gml_heap_release_idle(device->heap, &released);
    (void)ignored;
}

/* The device itself is asked only when a peak of what we see has risen by so much since. */
static void look_if_risen(gml_shim *shim, gml_shim_device *device, uint64_t rise_bytes)
{
    uint64_t peaks = peaks_sum(device->block);
    uint64_t last = atomic_load_explicit(&device->looked_at, memory_order_relaxed);
    if (peaks - last >= rise_bytes && gml_shim_state(device) != GML_DEVICE_NEW &&
        atomic_compare_exchange_strong(&device->looked_at, &last, peaks))
        gml_shim_look(shim, device);
}

/* One event for what a counter rose by since it was last told. */
static void tell(gml_shim *shim, gml_shim_device *device, gml_event_kind kind, const uint64_t *counter)
{
    uint64_t now = gml_telemetry_get(counter);
    uint64_t before = atomic_load_explicit(&device->told[kind], memory_order_relaxed);
    if (now > before && atomic_compare_exchange_strong(&device->told[kind], &before, now))
        gml_telemetry_event(shim->telemetry, kind, (uint64_t)device->ordinal, now - before, 0, NULL);
}

static void tell_events(gml_shim *shim, gml_shim_device *device)
{
    const gml_stats *stats = &device->block->stats;
    tell(shim, device, GML_EVENT_BEGIN, &device->block->present);
    tell(shim, device, GML_EVENT_SETTING, &shim->telemetry->backend_dropped);
    tell(shim, device, GML_EVENT_CAPTURE, &shim->telemetry->captures);
    tell(shim, device, GML_EVENT_BUDGET, &stats->budget_refusals);
    tell(shim, device, GML_EVENT_RETRY, &stats->retries);
    tell(shim, device, GML_EVENT_DRAIN, &stats->ladder_drain);
    tell(shim, device, GML_EVENT_RELEASE, &stats->ladder_release);
    tell(shim, device, GML_EVENT_FORWARD, &stats->ladder_forward);
}

static void refresh(gml_shim *shim, gml_shim_device *device)
{
    gml_device_block *block = device->block;
    refresh_process(shim);
    if (gml_shim_state(device) == GML_DEVICE_SERVING) {
        gml_stats stats;
        obey_threshold(device);
        release_idle(shim, device);
        gml_heap_stats(device->heap, &stats);
        gml_heap_map(device->heap, block->map, sizeof block->map);
    }
    tell_events(shim, device);
    look_if_risen(shim, device, 1);
}

/* What is live counts for this window of time and for those without a change before it. */
static void note_window(gml_device_block *block, uint64_t bytes, uint64_t now)
{
    uint64_t number = now / GML_TELEMETRY_WINDOW_NS;
    size_t slot = (size_t)(number % GML_TELEMETRY_WINDOWS);
    if (gml_telemetry_get(&block->window_number[slot]) == number) {
        (void)gml_telemetry_raise(&block->window_live[slot], bytes);
    } else {
        gml_telemetry_set(&block->window_live[slot], bytes);
        gml_telemetry_set(&block->window_number[slot], number);
    }
}

/* What is live, by whoever counts the program's own blocks. */
static void note_live(gml_shim_device *device, uint64_t now)
{
    const gml_device_block *block = device->block;
    uint64_t allocs = gml_telemetry_get(&block->torch_allocs);
    uint64_t frees = gml_telemetry_get(&block->torch_frees);
    uint64_t bytes = gml_telemetry_get(&block->torch_allocated_bytes);
    if (allocs == 0 && gml_shim_state(device) == GML_DEVICE_SERVING) {
        allocs = gml_telemetry_get(&block->stats.allocs);
        frees = gml_telemetry_get(&block->stats.frees);
        bytes = gml_telemetry_get(&block->stats.live_bytes);
    } else if (allocs == 0) {
        allocs = atomic_load_explicit(&device->forwarded_count, memory_order_relaxed);
        bytes = gml_telemetry_get(&block->driver_live_bytes);
    }
    note_window(device->block, bytes, now);
    /* Another thread's free may be counted between the two loads. */
    gml_steps_note(&device->steps, device->block, allocs > frees ? allocs - frees : 0, bytes);
}

void gml_shim_tick(gml_shim *shim, gml_shim_device *device)
{
    uint64_t now = gml_os_coarse_ns();
    uint64_t last = atomic_load_explicit(&device->refreshed_ns, memory_order_relaxed);
    gml_telemetry_set(&device->block->updated_ns, now);
    note_live(device, now);
    if (shim->mode == GML_SHIM_SERVE)
        /* What was outside at the last look, and what our heap held at most. */
        (void)gml_telemetry_raise(&device->block->peak_used_bytes,
                                  atomic_load_explicit(&device->outside_bytes, memory_order_relaxed) +
                                      gml_telemetry_get(&device->block->stats.peak_reserved_bytes));
    else
        /* What the real functions hold is known only from the device. */
        look_if_risen(shim, device, LOOK_RISE_BYTES);
    if (now - last >= REFRESH_NS && atomic_compare_exchange_strong(&device->refreshed_ns, &last, now))
        refresh(shim, device);
}

/* The sizes that hold most now. */
static void note_top_sizes(gml_shim *shim, gml_shim_device *device, gml_oom_source source, gml_oom_record *record)
{
    gml_tally_entry top[GML_TELEMETRY_TOPS] = {{0, 0}};
    gml_tally sizes = {0};
    if (source == GML_OOM_TORCH) {
        gml_lock_acquire(&device->torch_lock);
        (void)gml_tally_top(&device->torch_sizes, top, GML_TELEMETRY_TOPS);
        gml_lock_release(&device->torch_lock);
    } else {
        if (source == GML_OOM_HEAP)
            gml_heap_live_sizes(device->heap, &sizes);
        else
            gml_ledger_live_sizes(&shim->ledger, device->ordinal, &sizes);
        (void)gml_tally_top(&sizes, top, GML_TELEMETRY_TOPS);
        gml_tally_destroy(&sizes);
    }
    _Static_assert(offsetof(gml_oom_record, top6_count) - offsetof(gml_oom_record, top1_bytes) ==
                       (2 * GML_TELEMETRY_TOPS - 1) * sizeof(uint64_t),
                   "the sizes lie side by side");
    uint64_t *fields = &record->top1_bytes;
    for (size_t i = 0; i < GML_TELEMETRY_TOPS; i++) {
        fields[2 * i] = top[i].bytes;
        fields[2 * i + 1] = (uint64_t)top[i].count;
    }
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
        .step_count = gml_telemetry_get(&block->step_count),
        .step_low_bytes = gml_telemetry_get(&block->step_low_bytes),
        .allocs = stats.allocs,
        .retries = stats.retries,
    };
    if (source == GML_OOM_TORCH) {
        record.allocs = gml_telemetry_get(&block->torch_allocs);
        record.live_bytes = gml_telemetry_get(&block->torch_allocated_bytes);
        record.reserved_bytes = gml_telemetry_get(&block->torch_reserved_bytes);
    } else if (source == GML_OOM_DRIVER) {
        record.live_bytes = gml_telemetry_get(&block->driver_live_bytes);
        record.reserved_bytes = record.live_bytes;
    }
    note_top_sizes(shim, device, source, &record);
    tell_events(shim, device); /* what led to it comes first */
    gml_telemetry_event(shim->telemetry, GML_EVENT_OOM, record.device, 1, bytes, NULL);
    gml_lock_acquire(&shim->oom_lock);
    gml_stacks_note_oom(shim->stacks, device->ordinal, shim->telemetry->oom_count);
    gml_telemetry_oom(shim->telemetry, &record);
    gml_lock_release(&shim->oom_lock);
}
