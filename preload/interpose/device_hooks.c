/* SPDX-License-Identifier: Apache-2.0 */
/* Calls about devices: reset, peers, legacy IPC. */
#define _GNU_SOURCE
#include "interpose/shim.h"

/* The current device's entry; NULL where there is none. */
gml_shim_device *gml_shim_current(gml_shim *shim, const gml_real *real)
{
    int ordinal = 0;
    if (shim == NULL || real->cudaGetDevice == NULL || real->cudaGetDevice(&ordinal) != cudaSuccess ||
        ordinal < 0 || ordinal >= GML_SHIM_DEVICES)
        return NULL;
    return &shim->devices[ordinal];
}

cudaError_t cudaDeviceReset(void)
{
    GML_HOOK(cudaDeviceReset);
    gml_shim *shim = gml_shim_inside() ? NULL : gml_shim_peek();
    gml_shim_device *device = gml_shim_current(shim, real);
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
    GML_HOOK(cudaDeviceEnablePeerAccess);
    cudaError_t error = real->cudaDeviceEnablePeerAccess(peer, flags);
    gml_shim *shim = gml_shim_inside() ? NULL : gml_shim_get();
    if (shim == NULL || peer < 0 || peer >= GML_SHIM_DEVICES ||
        (error != cudaSuccess && error != cudaErrorPeerAccessAlreadyEnabled))
        return error;
    /* The current device may now use the peer's memory. */
    const gml_shim_device *current = gml_shim_current(shim, real);
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

/* PyTorch begins with it, before anything else of CUDA. */
cudaError_t cudaGetDeviceCount(int *out_count)
{
    GML_HOOK(cudaGetDeviceCount);
    gml_torch_env_in_use();
    return real->cudaGetDeviceCount(out_count);
}

cudaError_t cudaIpcGetMemHandle(cudaIpcMemHandle_t *out_handle, void *address)
{
    GML_HOOK(cudaIpcGetMemHandle);
    gml_shim *shim = gml_shim_inside() ? NULL : gml_shim_peek();
    if (shim != NULL && is_ours(shim, (uintptr_t)address))
        gml_shim_say(shim, GML_SAID_IPC,
                     "cudaIpcGetMemHandle cannot share memory of this allocator between processes: "
                     "use --allocator native or --intercept segments for this program");
    return real->cudaIpcGetMemHandle(out_handle, address);
}
