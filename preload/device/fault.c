/* SPDX-License-Identifier: Apache-2.0 */
/* Fault device: forwards every call but the one that was ordered to fail. */
#include "device/fault.h"

#include "base/pages.h"

typedef struct fault_device {
    gml_device device;
    gml_device *inner;
    gml_device_call call;
    uint64_t left; /* calls until the failure, 0 when none is ordered */
    gml_status status;
    int fired;
} fault_device;

static fault_device *fault_of(const gml_device *device)
{
    union {
        const gml_device *from;
        fault_device *to;
    } cast = {device};
    return cast.to;
}

/* OK, or the ordered failure. */
static gml_status pass(fault_device *fault, gml_device_call call)
{
    if (fault->left == 0 || fault->call != call || --fault->left != 0)
        return GML_OK;
    fault->fired = 1;
    return fault->status;
}

#define FORWARD(name, params, args)                        \
    static gml_status name params                          \
    {                                                      \
        fault_device *fault = fault_of(dev);               \
        gml_status status = pass(fault, GML_CALL_##name);  \
        return status != GML_OK ? status : fault->inner->ops->name args; \
    }

FORWARD(create, (gml_device *dev, size_t bytes, gml_handle *out), (fault->inner, bytes, out))
FORWARD(release, (gml_device *dev, gml_handle handle), (fault->inner, handle))
FORWARD(reserve, (gml_device *dev, size_t bytes, uintptr_t *out), (fault->inner, bytes, out))
FORWARD(free_va, (gml_device *dev, uintptr_t va, size_t bytes), (fault->inner, va, bytes))
FORWARD(map, (gml_device *dev, uintptr_t va, size_t bytes, gml_handle handle), (fault->inner, va, bytes, handle))
FORWARD(unmap, (gml_device *dev, uintptr_t va, size_t bytes), (fault->inner, va, bytes))
FORWARD(set_access, (gml_device *dev, uintptr_t va, size_t bytes), (fault->inner, va, bytes))
FORWARD(event_record, (gml_device *dev, gml_stream stream, gml_event *out), (fault->inner, stream, out))
FORWARD(event_query, (gml_device *dev, gml_event event), (fault->inner, event))
FORWARD(event_sync, (gml_device *dev, gml_event event), (fault->inner, event))
FORWARD(stream_wait, (gml_device *dev, gml_stream stream, gml_event event), (fault->inner, stream, event))
FORWARD(sync, (gml_device *dev), (fault->inner))
FORWARD(mem_info, (gml_device *dev, size_t *out_free, size_t *out_total), (fault->inner, out_free, out_total))

static gml_status event_destroy(gml_device *dev, gml_event event)
{
    return fault_of(dev)->inner->ops->event_destroy(fault_of(dev)->inner, event);
}

static uint64_t now_ns(gml_device *dev)
{
    return fault_of(dev)->inner->ops->now_ns(fault_of(dev)->inner);
}

static void note(gml_device *dev, gml_note what, uintptr_t va, size_t bytes, gml_stream stream)
{
    fault_device *fault = fault_of(dev);
    if (fault->inner->ops->note != NULL)
        fault->inner->ops->note(fault->inner, what, va, bytes, stream);
}

static const gml_device_ops ops = {
    .create = create,
    .release = release,
    .reserve = reserve,
    .free_va = free_va,
    .map = map,
    .unmap = unmap,
    .set_access = set_access,
    .event_record = event_record,
    .event_query = event_query,
    .event_sync = event_sync,
    .event_destroy = event_destroy,
    .stream_wait = stream_wait,
    .sync = sync,
    .mem_info = mem_info,
    .now_ns = now_ns,
    .note = note,
};

gml_status gml_fault_create(gml_device *inner, gml_device **out_device)
{
    fault_device *fault = gml_pages_map(sizeof *fault);
    if (fault == NULL)
        return GML_OUT_OF_METADATA;
    fault->device.ops = &ops;
    fault->device.chunk_bytes = inner->chunk_bytes;
    fault->inner = inner;
    *out_device = &fault->device;
    return GML_OK;
}

void gml_fault_destroy(gml_device *device)
{
    gml_pages_unmap(fault_of(device), sizeof(fault_device));
}

void gml_fault_arm(gml_device *device, gml_device_call call, uint64_t n, gml_status status)
{
    fault_device *fault = fault_of(device);
    fault->call = call;
    fault->left = n;
    fault->status = status;
    fault->fired = 0;
}

int gml_fault_fired(const gml_device *device)
{
    return fault_of(device)->fired;
}
