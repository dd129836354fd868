/* SPDX-License-Identifier: Apache-2.0 */
/* Counting: what is kept at every served call, and what the real functions hold for the program. */
#include "interpose/shim.h"

#include "interpose/timing.h"

#include <string.h>

static void check_heap(gml_shim *shim, gml_shim_device *device)
{
    const char *why = "";
    if (shim->check && gml_heap_check(device->heap, &why) != GML_OK)
        gml_shim_degrade(shim, why);
}

static void raise(_Atomic uint64_t *mark, const uint64_t *value)
{
    uint64_t now = gml_telemetry_get(value);
    uint64_t seen = atomic_load_explicit(mark, memory_order_relaxed);
    while (seen < now && !atomic_compare_exchange_weak(mark, &seen, now))
        ;
}

void gml_shim_after_served(gml_shim *shim, gml_shim_device *device)
{
    gml_timing_choose(__atomic_fetch_add(&shim->telemetry->served_calls, 1, __ATOMIC_RELAXED));
    if (atomic_load_explicit(&device->marks.reset, memory_order_relaxed)) {
        raise(&device->marks.used_high, &device->block->stats.live_bytes);
        raise(&device->marks.reserved_high, &device->block->stats.reserved_bytes);
    }
    check_heap(shim, device);
    gml_shim_tick(shim, device);
}

/* PyTorch names its threads before they work. */
static gml_thread_role role_of_thread(void)
{
    gml_thread *thread = &gml_this_thread;
    if (__builtin_expect(thread->role == GML_THREAD_NEW, 0)) {
        bool autograd = strncmp(gml_shim_thread_name(), "pt_autograd", strlen("pt_autograd")) == 0;
        thread->role = autograd ? GML_THREAD_AUTOGRAD : GML_THREAD_OTHER;
    }
    return (gml_thread_role)thread->role;
}

void gml_shim_born(gml_shim *shim, gml_shim_device *device, uintptr_t address, uint64_t bytes)
{
    gml_steps_alloc(&device->steps, device->block, &shim->gradients, device->ordinal, address,
                    role_of_thread() == GML_THREAD_AUTOGRAD);
    gml_stacks_alloc(shim->stacks, device->ordinal, address, bytes);
}

void gml_shim_dies(gml_shim *shim, uintptr_t address)
{
    int ordinal = gml_gradients_take(&shim->gradients, address);
    if (ordinal >= 0 && role_of_thread() != GML_THREAD_AUTOGRAD)
        gml_steps_drop(&shim->devices[ordinal].steps, shim->devices[ordinal].block);
    gml_stacks_free(shim->stacks, address);
}

void gml_shim_count(gml_shim *shim, int ordinal, uintptr_t address, size_t bytes)
{
    gml_shim_device *device = gml_shim_watch(shim, ordinal);
    if (device == NULL)
        return;
    gml_device_block *block = device->block;
    if (!gml_ledger_add(&shim->ledger, address, (gml_ledger_entry){bytes, ordinal}))
        return;
    uint64_t live = __atomic_add_fetch(&block->driver_live_bytes, bytes, __ATOMIC_RELAXED);
    (void)atomic_fetch_add_explicit(&device->forwarded_count, 1, memory_order_relaxed);
    (void)gml_telemetry_raise(&block->peak_driver_live_bytes, live);
    if (gml_shim_state(device) == GML_DEVICE_SERVING)
        gml_telemetry_set(&block->stats.forwarded_bytes, live);
}

void gml_shim_uncount(gml_shim *shim, gml_ledger_entry entry)
{
    gml_shim_device *device = &shim->devices[entry.device];
    uint64_t live = __atomic_sub_fetch(&device->block->driver_live_bytes, entry.bytes, __ATOMIC_RELAXED);
    (void)atomic_fetch_sub_explicit(&device->forwarded_count, 1, memory_order_relaxed);
    if (gml_shim_state(device) == GML_DEVICE_SERVING)
        gml_telemetry_set(&device->block->stats.forwarded_bytes, live);
}
