/* SPDX-License-Identifier: Apache-2.0 */
/* PyTorch's own reports of its caching allocator, listened to and passed on.
 *
 * libc10_cuda calls c10::reportMemoryUsageToProfiler after every block that its allocator gives or takes
 * back, with its totals; libc10 defines it. The symbols are C++ names of a public function that has kept
 * its form from torch 2.4 to 2.14. Without them (or without their originals) only segments are seen. */
#define _GNU_SOURCE
#include "interpose/shim.h"

#define CUDA_DEVICE_TYPE 1 /* c10::DeviceType::CUDA */

/* c10::Device: passed by value in one register. */
typedef struct c10_device {
    int8_t type;
    int8_t index;
} c10_device;

typedef void (*usage_fn)(void *, int64_t, size_t, size_t, c10_device);
typedef void (*oom_fn)(int64_t, size_t, size_t, c10_device);

#define REPORT_USAGE _ZN3c1027reportMemoryUsageToProfilerEPvlmmNS_6DeviceE
#define REPORT_OOM _ZN3c1027reportOutOfMemoryToProfilerElmmNS_6DeviceE
#define TEXT_OF(name) #name
#define NAME_OF(name) TEXT_OF(name)

GML_EXPORT void REPORT_USAGE(void *address, int64_t bytes, size_t allocated, size_t reserved, c10_device where);
GML_EXPORT void REPORT_OOM(int64_t bytes, size_t allocated, size_t reserved, c10_device where);

static const char *const c10_names[] = {"libc10.so", NULL};

/* Found once: there is one libc10 in a process. */
static _Atomic(usage_fn) real_usage;
static _Atomic(oom_fn) real_oom;

/* The device that PyTorch speaks of; NULL when it is no CUDA device or nothing can be recorded. */
static gml_shim_device *reported_device(gml_shim **out_shim, c10_device where)
{
    if (where.type != CUDA_DEVICE_TYPE || gml_shim_inside())
        return NULL;
    gml_shim *shim = gml_shim_get();
    if (shim == NULL)
        return NULL;
    *out_shim = shim;
    gml_this_thread.depth++;
    gml_shim_device *device = gml_shim_watch(shim, where.index);
    gml_this_thread.depth--;
    return device;
}

static void record_usage(gml_device_block *block, int64_t bytes, uint64_t allocated, uint64_t reserved)
{
    gml_telemetry_set(&block->torch_allocated_bytes, allocated);
    gml_telemetry_set(&block->torch_reserved_bytes, reserved);
    (void)gml_telemetry_raise(&block->torch_peak_allocated_bytes, allocated);
    if (gml_telemetry_raise(&block->torch_peak_reserved_bytes, reserved))
        gml_telemetry_set(&block->torch_at_peak_allocated_bytes, allocated);
    gml_telemetry_add(bytes >= 0 ? &block->torch_allocs : &block->torch_frees, 1);
}

void REPORT_USAGE(void *address, int64_t bytes, size_t allocated, size_t reserved, c10_device where)
{
    usage_fn real = atomic_load_explicit(&real_usage, memory_order_acquire);
    if (real == NULL) {
        usage_fn own = REPORT_USAGE;
        const void *own_address = NULL;
        __builtin_memcpy(&own_address, &own, sizeof own_address);
        void *symbol = gml_lookup_symbol(__builtin_return_address(0), NAME_OF(REPORT_USAGE), c10_names, own_address);
        __builtin_memcpy(&real, &symbol, sizeof real);
        atomic_store_explicit(&real_usage, real, memory_order_release);
    }
    gml_shim *shim = NULL;
    gml_shim_device *device = reported_device(&shim, where);
    if (device != NULL) {
        gml_this_thread.depth++;
        gml_telemetry_set(&shim->telemetry->torch_seen, 1);
        gml_telemetry_set(&shim->telemetry->reporter_seen, 1);
        gml_telemetry_add(&shim->telemetry->observed_calls, 1);
        record_usage(device->block, bytes, allocated, reserved);
        if (bytes >= 0)
            gml_shim_born(shim, device, (uintptr_t)address, (uint64_t)bytes);
        else
            gml_shim_dies(shim, (uintptr_t)address);
        gml_lock_acquire(&device->torch_lock);
        gml_tally_add(&device->torch_sizes, (uint64_t)(bytes < 0 ? -bytes : bytes), bytes < 0 ? -1 : 1);
        gml_lock_release(&device->torch_lock);
        gml_shim_tick(shim, device);
        gml_this_thread.depth--;
    }
    if (real != NULL)
        real(address, bytes, allocated, reserved, where);
}

void REPORT_OOM(int64_t bytes, size_t allocated, size_t reserved, c10_device where)
{
    oom_fn real = atomic_load_explicit(&real_oom, memory_order_acquire);
    if (real == NULL) {
        oom_fn own = REPORT_OOM;
        const void *own_address = NULL;
        __builtin_memcpy(&own_address, &own, sizeof own_address);
        void *symbol = gml_lookup_symbol(__builtin_return_address(0), NAME_OF(REPORT_OOM), c10_names, own_address);
        __builtin_memcpy(&real, &symbol, sizeof real);
        atomic_store_explicit(&real_oom, real, memory_order_release);
    }
    gml_shim *shim = NULL;
    gml_shim_device *device = reported_device(&shim, where);
    if (device != NULL) {
        gml_this_thread.depth++;
        gml_telemetry_set(&device->block->torch_allocated_bytes, allocated);
        gml_telemetry_set(&device->block->torch_reserved_bytes, reserved);
        gml_telemetry_add(&device->block->torch_ooms, 1);
        gml_shim_record_oom(shim, device, bytes < 0 ? 0 : (uint64_t)bytes, GML_STREAM_NONE, GML_OOM_TORCH);
        gml_this_thread.depth--;
    }
    if (real != NULL)
        real(bytes, allocated, reserved, where);
}
