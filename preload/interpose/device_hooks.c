/* SPDX-License-Identifier: Apache-2.0 */
/* Calls about devices and odd allocations: reset, peers, legacy IPC, pitched memory. */
#define _GNU_SOURCE
#include "interpose/shim.h"

#define HOOK(function)                                                      \
    const gml_real *real = gml_lookup_caller(__builtin_return_address(0)).real; \
    if (real == NULL || real->function == NULL)                             \
        return cudaErrorInsufficientDriver

/* The current device's entry; NULL where there is none. */
static gml_shim_device *current_device(gml_shim *shim, const gml_real *real)
{
    int ordinal = 0;
    if (shim == NULL || real->cudaGetDevice == NULL || real->cudaGetDevice(&ordinal) != cudaSuccess ||
        ordinal < 0 || ordinal >= GML_SHIM_DEVICES)
        return NULL;
    return &shim->devices[ordinal];
}

cudaError_t cudaDeviceReset(void)
{
    HOOK(cudaDeviceReset);
    gml_shim *shim = gml_shim_inside() ? NULL : gml_shim_peek();
    gml_shim_device *device = current_device(shim, real);
    gml_this_thread.depth++;
    if (device != NULL)
        gml_shim_reset(shim, device);
    cudaError_t error = real->cudaDeviceReset();
    gml_this_thread.depth--;
    return error;
}

/* ---- peers ---- */

void gml_shim_add_peer(gml_shim *shim, gml_shim_device *device, int peer)
{
    if (peer < 0 || peer >= GML_SHIM_DEVICES || peer == device->ordinal)
        return;
    (void)atomic_fetch_or(&device->peers, (uint32_t)1 << peer);
    gml_this_thread.depth++;
    gml_lock_acquire(&shim->open_lock); /* a device that is being opened takes its peers from the bits */
    if (gml_shim_state(device) == GML_DEVICE_SERVING)
        gml_cuda_device_add_peer(&device->cuda, peer);
    gml_lock_release(&shim->open_lock);
    gml_this_thread.depth--;
}

cudaError_t cudaDeviceEnablePeerAccess(int peer, unsigned int flags)
{
    HOOK(cudaDeviceEnablePeerAccess);
    cudaError_t error = real->cudaDeviceEnablePeerAccess(peer, flags);
    gml_shim *shim = gml_shim_inside() ? NULL : gml_shim_get();
    if (shim == NULL || peer < 0 || peer >= GML_SHIM_DEVICES ||
        (error != cudaSuccess && error != cudaErrorPeerAccessAlreadyEnabled))
        return error;
    /* The current device may now use the peer's memory. */
    const gml_shim_device *current = current_device(shim, real);
    if (current != NULL)
        gml_shim_add_peer(shim, &shim->devices[peer], current->ordinal);
    return error;
}

/* ---- legacy IPC ---- */

static bool is_ours(gml_shim *shim, uintptr_t address)
{
    int end = atomic_load(&shim->device_end);
    for (int i = 0; i < end; i++)
        if (gml_shim_state(&shim->devices[i]) == GML_DEVICE_SERVING &&
            gml_heap_covers(shim->devices[i].heap, address))
            return true;
    return false;
}

cudaError_t cudaIpcGetMemHandle(cudaIpcMemHandle_t *out_handle, void *address)
{
    HOOK(cudaIpcGetMemHandle);
    gml_shim *shim = gml_shim_inside() ? NULL : gml_shim_peek();
    if (shim != NULL && is_ours(shim, (uintptr_t)address))
        gml_shim_say(shim, GML_SAID_IPC,
                     "cudaIpcGetMemHandle cannot share memory of this allocator between processes: "
                     "use --allocator native or --intercept segments for this program");
    return real->cudaIpcGetMemHandle(out_handle, address);
}

/* ---- pitched memory ---- */

/* One more try with our idle memory given back. The first failure has set the runtime's last error;
 * it is cleared only where there was none before. */
static bool make_room(gml_shim *shim, gml_shim_device *device)
{
    uint64_t released = 0;
    if (device == NULL || gml_shim_state(device) != GML_DEVICE_SERVING || gml_heap_idle_bytes(device->heap) == 0)
        return false;
    gml_status status = gml_heap_trim(device->heap, 0, &released);
    if (status == GML_INTERNAL)
        gml_shim_degrade(shim, gml_status_text(status));
    return released > 0;
}

static void clear_error(const gml_real *real, cudaError_t before)
{
    if (before == cudaSuccess && real->cudaGetLastError != NULL)
        (void)real->cudaGetLastError();
}

cudaError_t cudaMallocPitch(void **out, size_t *pitch, size_t width, size_t height)
{
    HOOK(cudaMallocPitch);
    gml_shim *shim = gml_shim_inside() ? NULL : gml_shim_get();
    if (shim == NULL || out == NULL || pitch == NULL)
        return real->cudaMallocPitch(out, pitch, width, height);
    gml_this_thread.depth++;
    cudaError_t before = real->cudaPeekAtLastError == NULL ? cudaErrorUnknown : real->cudaPeekAtLastError();
    cudaError_t error = real->cudaMallocPitch(out, pitch, width, height);
    gml_telemetry_add(&shim->telemetry->forwarded_calls, 1);
    gml_shim_device *device = current_device(shim, real);
    if (error == cudaErrorMemoryAllocation && make_room(shim, device)) {
        error = real->cudaMallocPitch(out, pitch, width, height);
        if (error == cudaSuccess)
            clear_error(real, before);
    }
    if (error == cudaSuccess && device != NULL)
        gml_shim_count(shim, device->ordinal, (uintptr_t)*out, *pitch * height);
    gml_this_thread.depth--;
    return error;
}

cudaError_t cudaMalloc3D(cudaPitchedPtr *out, cudaExtent extent)
{
    HOOK(cudaMalloc3D);
    gml_shim *shim = gml_shim_inside() ? NULL : gml_shim_get();
    if (shim == NULL || out == NULL)
        return real->cudaMalloc3D(out, extent);
    gml_this_thread.depth++;
    cudaError_t before = real->cudaPeekAtLastError == NULL ? cudaErrorUnknown : real->cudaPeekAtLastError();
    cudaError_t error = real->cudaMalloc3D(out, extent);
    gml_telemetry_add(&shim->telemetry->forwarded_calls, 1);
    gml_shim_device *device = current_device(shim, real);
    if (error == cudaErrorMemoryAllocation && make_room(shim, device)) {
        error = real->cudaMalloc3D(out, extent);
        if (error == cudaSuccess)
            clear_error(real, before);
    }
    if (error == cudaSuccess && device != NULL)
        gml_shim_count(shim, device->ordinal, (uintptr_t)out->ptr, out->pitch * extent.height * extent.depth);
    gml_this_thread.depth--;
    return error;
}
