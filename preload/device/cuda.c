/* SPDX-License-Identifier: Apache-2.0 */
/* The device contract over the CUDA driver. */
#include "device/cuda.h"

#include "os/os.h"

#include <string.h>

#define SET_ACCESS_TRIES 2000
#define SET_ACCESS_PAUSE_NS 50000

/* ---- the right context and capture mode around a call ---- */

typedef struct scope {
    const gml_cuda_driver *driver;
    gml_status status; /* OK: the calls may be made */
    bool pushed;
    bool relaxed;
    int old_mode;
} scope;

static gml_cuda_device *of(gml_device *dev)
{
    return (gml_cuda_device *)dev;
}

static scope enter(const gml_cuda_device *device)
{
    scope s = {.driver = device->driver, .status = GML_OK, .old_mode = CU_STREAM_CAPTURE_MODE_RELAXED};
    CUcontext current = NULL;
    CUresult result = s.driver->ctx_current(&current);
    if (result == CUDA_SUCCESS && current != device->context) {
        result = s.driver->ctx_push(device->context);
        s.pushed = result == CUDA_SUCCESS;
    }
    s.status = gml_cuda_status(result);
    if (s.status == GML_OK && atomic_load_explicit(&s.driver->captures, memory_order_relaxed) > 0)
        s.relaxed = s.driver->capture_mode(&s.old_mode) == CUDA_SUCCESS;
    return s;
}

static gml_status leave(scope *s, CUresult result)
{
    if (s->relaxed)
        (void)s->driver->capture_mode(&s->old_mode);
    if (s->pushed) {
        CUcontext ignored = NULL;
        (void)s->driver->ctx_pop(&ignored);
    }
    return gml_cuda_status(result);
}

/* One driver call in the device's scope; the value is its status. */
#define SCOPED(dev, call)                                                  \
    do {                                                                   \
        scope scoped_ = enter(dev);                                        \
        return scoped_.status != GML_OK ? scoped_.status : leave(&scoped_, call); \
    } while (0)

/* ---- physical memory and address space ---- */

static gml_status cuda_create(gml_device *dev, size_t bytes, gml_handle *out_handle)
{
    gml_cuda_device *d = of(dev);
    CUmemGenericAllocationHandle handle = 0;
    scope s = enter(d);
    if (s.status != GML_OK)
        return s.status;
    gml_status status = leave(&s, d->driver->create(&handle, bytes, &d->prop, 0));
    if (status == GML_OK)
        *out_handle = handle;
    return status;
}

static gml_status cuda_release(gml_device *dev, gml_handle handle)
{
    SCOPED(of(dev), of(dev)->driver->release(handle));
}

static gml_status cuda_reserve(gml_device *dev, size_t bytes, uintptr_t *out_va)
{
    gml_cuda_device *d = of(dev);
    CUdeviceptr va = 0;
    scope s = enter(d);
    if (s.status != GML_OK)
        return s.status;
    gml_status status = leave(&s, d->driver->reserve(&va, bytes, dev->chunk_bytes, 0, 0));
    if (status == GML_OUT_OF_MEMORY)
        return GML_OUT_OF_ADDRESSES;
    if (status != GML_OK)
        return status;
    *out_va = (uintptr_t)va;
    if (d->track_ranges) {
        gml_lock_acquire(&d->lock);
        gml_cuda_ranges_add(&d->ranges, (uintptr_t)va, bytes);
        gml_lock_release(&d->lock);
    }
    return GML_OK;
}

static gml_status cuda_free_va(gml_device *dev, uintptr_t va, size_t bytes)
{
    gml_cuda_device *d = of(dev);
    if (d->track_ranges) {
        gml_lock_acquire(&d->lock);
        gml_cuda_ranges_remove(&d->ranges, va);
        gml_lock_release(&d->lock);
    }
    SCOPED(d, d->driver->free_va(va, bytes));
}

static gml_status cuda_map(gml_device *dev, uintptr_t va, size_t bytes, gml_handle handle)
{
    SCOPED(of(dev), of(dev)->driver->map(va, bytes, 0, handle, 0));
}

static gml_status cuda_unmap(gml_device *dev, uintptr_t va, size_t bytes)
{
    gml_cuda_device *d = of(dev);
    if (d->track_ranges) {
        gml_lock_acquire(&d->lock);
        gml_cuda_ranges_mark(&d->ranges, va, bytes, false);
        gml_lock_release(&d->lock);
    }
    SCOPED(d, d->driver->unmap(va, bytes));
}

/* The driver may answer NOT_READY while it is busy with something else: try again for a while. */
static CUresult set_access_retrying(const gml_cuda_device *d, uintptr_t va, size_t bytes,
                                    const CUmemAccessDesc *access, size_t count)
{
    CUresult result = d->driver->set_access(va, bytes, access, count);
    for (int tries = 1; result == CUDA_ERROR_NOT_READY && tries < SET_ACCESS_TRIES; tries++) {
        gml_os_pause_ns(SET_ACCESS_PAUSE_NS);
        result = d->driver->set_access(va, bytes, access, count);
    }
    return result;
}

static gml_status cuda_set_access(gml_device *dev, uintptr_t va, size_t bytes)
{
    gml_cuda_device *d = of(dev);
    scope s = enter(d);
    if (s.status != GML_OK)
        return s.status;
    if (!d->track_ranges) {
        return leave(&s, set_access_retrying(d, va, bytes, d->access, 1));
    }
    /* The lock makes a peer that is being added see this range, or this call see the peer. */
    gml_lock_acquire(&d->lock);
    gml_status status = leave(&s, set_access_retrying(d, va, bytes, d->access, d->access_count));
    if (status == GML_OK)
        gml_cuda_ranges_mark(&d->ranges, va, bytes, true);
    gml_lock_release(&d->lock);
    return status;
}

/* ---- events ---- */

static CUevent take_event(gml_cuda_device *d)
{
    CUevent event = NULL;
    gml_lock_acquire(&d->lock);
    if (d->event_count > 0)
        event = d->events[--d->event_count];
    gml_lock_release(&d->lock);
    return event;
}

static gml_status cuda_event_destroy(gml_device *dev, gml_event event)
{
    gml_cuda_device *d = of(dev);
    gml_lock_acquire(&d->lock);
    bool kept = d->event_count < GML_CUDA_EVENT_POOL;
    if (kept)
        d->events[d->event_count++] = (CUevent)(uintptr_t)event;
    gml_lock_release(&d->lock);
    if (kept)
        return GML_OK;
    SCOPED(d, d->driver->event_destroy((CUevent)(uintptr_t)event));
}

static gml_status cuda_event_record(gml_device *dev, gml_stream stream, gml_event *out_event)
{
    gml_cuda_device *d = of(dev);
    if (stream == GML_STREAM_NONE && d->driver->ctx_record_event == NULL)
        return GML_UNSUPPORTED;
    scope s = enter(d);
    if (s.status != GML_OK)
        return s.status;
    CUevent event = take_event(d);
    CUresult result = CUDA_SUCCESS;
    if (event == NULL)
        result = d->driver->event_create(&event, CU_EVENT_DISABLE_TIMING);
    if (result == CUDA_SUCCESS)
        result = stream == GML_STREAM_NONE ? d->driver->ctx_record_event(d->context, event)
                                           : d->driver->event_record(event, (CUstream)(uintptr_t)stream);
    gml_status status = leave(&s, result);
    if (status == GML_OK)
        *out_event = (uintptr_t)event;
    else if (event != NULL)
        (void)cuda_event_destroy(dev, (uintptr_t)event);
    return status;
}

static gml_status cuda_event_query(gml_device *dev, gml_event event)
{
    SCOPED(of(dev), of(dev)->driver->event_query((CUevent)(uintptr_t)event));
}

static gml_status cuda_event_sync(gml_device *dev, gml_event event)
{
    SCOPED(of(dev), of(dev)->driver->event_sync((CUevent)(uintptr_t)event));
}

static gml_status cuda_stream_wait(gml_device *dev, gml_stream stream, gml_event event)
{
    SCOPED(of(dev), of(dev)->driver->stream_wait((CUstream)(uintptr_t)stream, (CUevent)(uintptr_t)event, 0));
}

static gml_status cuda_sync(gml_device *dev)
{
    SCOPED(of(dev), of(dev)->driver->ctx_sync());
}

/* ---- the rest ---- */

static gml_status cuda_mem_info(gml_device *dev, size_t *out_free, size_t *out_total)
{
    SCOPED(of(dev), of(dev)->driver->mem_info(out_free, out_total));
}

static uint64_t cuda_now_ns(gml_device *dev)
{
    const gml_cuda_device *d = of(dev);
    if (d->driver->sim_now_ns != NULL)
        return d->driver->sim_now_ns();
    return gml_os_monotonic_ns();
}

static void cuda_note(gml_device *dev, gml_note what, uintptr_t va, size_t bytes, gml_stream stream)
{
    /* The simulator takes the legacy stream to be that of the current context. */
    scope s = enter(of(dev));
    of(dev)->driver->sim_note((int)what, va, bytes, stream);
    (void)leave(&s, CUDA_SUCCESS);
}

#define FUNCTIONS                                                                                   \
    .create = cuda_create, .release = cuda_release, .reserve = cuda_reserve, .free_va = cuda_free_va, \
    .map = cuda_map, .unmap = cuda_unmap, .set_access = cuda_set_access,                            \
    .event_record = cuda_event_record, .event_query = cuda_event_query,                             \
    .event_sync = cuda_event_sync, .event_destroy = cuda_event_destroy,                             \
    .stream_wait = cuda_stream_wait, .sync = cuda_sync, .mem_info = cuda_mem_info,                  \
    .now_ns = cuda_now_ns
static const gml_device_ops cuda_ops = {FUNCTIONS};
static const gml_device_ops checking_ops = {FUNCTIONS, .note = cuda_note};

/* ---- set-up ---- */

static bool has(const gml_cuda_device *d, int attribute)
{
    int value = 0;
    return d->driver->device_attribute(&value, attribute, d->device) == CUDA_SUCCESS && value != 0;
}

/* Makes, maps and opens one chunk with the current properties, and takes everything back. */
static gml_status probe_chunk(gml_cuda_device *d)
{
    gml_device *dev = &d->base;
    gml_handle handle = 0;
    uintptr_t va = 0;
    gml_status status = cuda_create(dev, dev->chunk_bytes, &handle);
    if (status != GML_OK)
        return status;
    status = cuda_reserve(dev, dev->chunk_bytes, &va);
    if (status == GML_OK) {
        status = cuda_map(dev, va, dev->chunk_bytes, handle);
        if (status == GML_OK) {
            status = cuda_set_access(dev, va, dev->chunk_bytes);
            gml_status unmapped = cuda_unmap(dev, va, dev->chunk_bytes);
            status = status != GML_OK ? status : unmapped;
        }
        gml_status freed = cuda_free_va(dev, va, dev->chunk_bytes);
        status = status != GML_OK ? status : freed;
    }
    gml_status released = cuda_release(dev, handle);
    return status != GML_OK ? status : released;
}

/* Settles what the handles can carry: drops the RDMA flag, then the export type, until a chunk works. */
static gml_status choose_properties(gml_cuda_device *d)
{
    d->prop = (CUmemAllocationProp){.type = CU_MEM_ALLOCATION_TYPE_PINNED,
                                    .location = {CU_MEM_LOCATION_TYPE_DEVICE, d->ordinal}};
    if (has(d, CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED))
        d->prop.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
    if (has(d, CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_WITH_CUDA_VMM_SUPPORTED))
        d->prop.allocFlags.gpuDirectRDMACapable = 1;
    size_t chunk_bytes = 0;
    CUresult result = d->driver->granularity(&chunk_bytes, &d->prop, CU_MEM_ALLOC_GRANULARITY_MINIMUM);
    if (result != CUDA_SUCCESS)
        return gml_cuda_status(result);
    d->base.chunk_bytes = chunk_bytes;
    d->ranges.chunk_bytes = chunk_bytes;
    gml_status status = probe_chunk(d);
    if (status != GML_OK && status != GML_OUT_OF_MEMORY && d->prop.allocFlags.gpuDirectRDMACapable) {
        d->prop.allocFlags.gpuDirectRDMACapable = 0;
        status = probe_chunk(d);
    }
    if (status != GML_OK && status != GML_OUT_OF_MEMORY && d->prop.requestedHandleTypes != 0) {
        d->prop.requestedHandleTypes = CU_MEM_HANDLE_TYPE_NONE;
        status = probe_chunk(d);
    }
    /* A device that is full at this moment proves nothing against it. */
    return status == GML_OUT_OF_MEMORY ? GML_OK : status;
}

gml_status gml_cuda_device_attach(gml_cuda_device *d, gml_cuda_driver *driver, int ordinal)
{
    *d = (gml_cuda_device){.base = {.ops = driver->sim_note != NULL ? &checking_ops : &cuda_ops},
                           .driver = driver,
                           .ordinal = ordinal,
                           .lock = GML_LOCK_INIT,
                           .access_count = 1};
    d->access[0] = (CUmemAccessDesc){{CU_MEM_LOCATION_TYPE_DEVICE, ordinal}, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    CUresult result = driver->device_get(&d->device, ordinal);
    if (result != CUDA_SUCCESS)
        return gml_cuda_status(result);
    /* The runtime keeps the context alive; ours is only a look at which one it is. */
    result = driver->primary_retain(&d->context, d->device);
    if (result != CUDA_SUCCESS)
        return gml_cuda_status(result);
    (void)driver->primary_release(d->device);
    if (driver->default_pool != NULL && driver->default_pool(&d->default_pool, d->device) != CUDA_SUCCESS)
        d->default_pool = NULL;
    return GML_OK;
}

gml_status gml_cuda_device_prepare(gml_cuda_device *d)
{
    int devices = 1;
    CUresult result = d->driver->device_count(&devices);
    if (result != CUDA_SUCCESS)
        return gml_cuda_status(result);
    if (!has(d, CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED))
        return GML_UNSUPPORTED;
    d->track_ranges = devices > 1;
    return choose_properties(d);
}

typedef struct grant {
    gml_cuda_device *device;
    CUmemAccessDesc access;
} grant;

static void grant_range(void *user, uintptr_t va, size_t bytes)
{
    const grant *g = user;
    (void)set_access_retrying(g->device, va, bytes, &g->access, 1);
}

void gml_cuda_device_add_peer(gml_cuda_device *d, int peer)
{
    if (peer == d->ordinal)
        return;
    grant g = {d, {{CU_MEM_LOCATION_TYPE_DEVICE, peer}, CU_MEM_ACCESS_FLAGS_PROT_READWRITE}};
    scope s = enter(d);
    if (s.status != GML_OK)
        return;
    gml_lock_acquire(&d->lock);
    bool known = d->access_count >= GML_CUDA_MAX_DEVICES;
    for (unsigned i = 0; i < d->access_count; i++)
        known = known || d->access[i].location.id == peer;
    if (!known) {
        d->access[d->access_count++] = g.access;
        gml_cuda_ranges_visit(&d->ranges, grant_range, &g);
    }
    gml_lock_release(&d->lock);
    (void)leave(&s, CUDA_SUCCESS);
}

void gml_cuda_device_name(const gml_cuda_device *d, char *out_name, int capacity)
{
    if (d->driver->device_name(out_name, capacity, d->device) != CUDA_SUCCESS)
        out_name[0] = '\0';
}

void gml_cuda_device_close(gml_cuda_device *d)
{
    gml_cuda_ranges_clear(&d->ranges);
    d->event_count = 0;
    d->context = NULL;
}
