/* SPDX-License-Identifier: Apache-2.0 */
/* The CUDA device over a driver of fakes: contexts, capture mode, retries, flags, peers, events. */
#include "device/cuda.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CHECK(condition)                                                                  \
    do {                                                                                  \
        if (!(condition)) {                                                               \
            fprintf(stderr, "%s:%d: %s does not hold\n", __FILE__, __LINE__, #condition); \
            exit(1);                                                                      \
        }                                                                                 \
    } while (0)

#define CHUNK ((size_t)2 << 20)
#define PRIMARY ((CUcontext)(uintptr_t)0x1000)
#define OTHER ((CUcontext)(uintptr_t)0x2000)

static struct {
    CUcontext current;
    int pushes, pops;
    int mode, mode_changes;
    int devices;
    bool vmm, rdma, posix;
    int not_ready;           /* set_access answers NOT_READY so often */
    bool refuse_rdma;        /* set_access fails on RDMA-capable memory */
    bool refuse_export;      /* create fails with an export type */
    CUresult create_answer;
    CUmemAllocationProp last_prop;
    unsigned long long handles, released, reserved, mapped;
    int accesses;
    size_t access_count;
    CUmemAccessDesc access[16];
    CUdeviceptr access_va;
    size_t access_bytes;
    int events_created, events_destroyed, records, context_records;
} fake;

static CUresult wrong_context(void)
{
    return fake.current == PRIMARY ? CUDA_SUCCESS : CUDA_ERROR_INVALID_CONTEXT;
}

static CUresult fake_get(CUdevice *device, int ordinal) { *device = ordinal + 70; return CUDA_SUCCESS; }
static CUresult fake_count(int *count) { *count = fake.devices; return CUDA_SUCCESS; }
static CUresult fake_name(char *name, int capacity, CUdevice device)
{
    snprintf(name, (size_t)capacity, "device %d", device);
    return CUDA_SUCCESS;
}
static CUresult fake_attribute(int *value, int attribute, CUdevice device)
{
    CHECK(device == 70);
    *value = (attribute == 102 && fake.vmm) || (attribute == 103 && fake.posix) || (attribute == 110 && fake.rdma);
    return CUDA_SUCCESS;
}
static CUresult fake_retain(CUcontext *context, CUdevice device) { (void)device; *context = PRIMARY; return CUDA_SUCCESS; }
static CUresult fake_primary_release(CUdevice device) { (void)device; return CUDA_SUCCESS; }
static CUresult fake_current(CUcontext *context) { *context = fake.current; return CUDA_SUCCESS; }
static CUcontext below;
static CUresult fake_push(CUcontext context) { below = fake.current; fake.current = context; fake.pushes++; return CUDA_SUCCESS; }
static CUresult fake_pop(CUcontext *context) { *context = fake.current; fake.current = below; fake.pops++; return CUDA_SUCCESS; }
static CUresult fake_sync(void) { return wrong_context(); }
static CUresult fake_mem_info(size_t *free_bytes, size_t *total) { *free_bytes = 1; *total = 2; return wrong_context(); }
static CUresult fake_granularity(size_t *bytes, const CUmemAllocationProp *prop, int option)
{
    (void)prop;
    (void)option;
    *bytes = CHUNK;
    return CUDA_SUCCESS;
}
static CUresult fake_create(CUmemGenericAllocationHandle *handle, size_t bytes, const CUmemAllocationProp *prop,
                            unsigned long long flags)
{
    CHECK(bytes == CHUNK && flags == 0);
    fake.last_prop = *prop;
    if (fake.create_answer != CUDA_SUCCESS)
        return fake.create_answer;
    if (fake.refuse_export && prop->requestedHandleTypes != 0)
        return CUDA_ERROR_NOT_SUPPORTED;
    *handle = ++fake.handles;
    return wrong_context();
}
static CUresult fake_release(CUmemGenericAllocationHandle handle) { (void)handle; fake.released++; return CUDA_SUCCESS; }
static CUresult fake_reserve(CUdeviceptr *va, size_t bytes, size_t alignment, CUdeviceptr hint, unsigned long long flags)
{
    (void)bytes;
    (void)hint;
    (void)flags;
    CHECK(alignment == CHUNK);
    *va = 0x10000000 + 0x10000000 * fake.reserved++;
    return CUDA_SUCCESS;
}
static CUresult fake_free_va(CUdeviceptr va, size_t bytes) { (void)va; (void)bytes; return CUDA_SUCCESS; }
static CUresult fake_map(CUdeviceptr va, size_t bytes, size_t offset, CUmemGenericAllocationHandle handle,
                         unsigned long long flags)
{
    (void)va;
    (void)bytes;
    CHECK(offset == 0 && handle != 0 && flags == 0);
    fake.mapped++;
    return CUDA_SUCCESS;
}
static CUresult fake_unmap(CUdeviceptr va, size_t bytes) { (void)va; (void)bytes; fake.mapped--; return CUDA_SUCCESS; }
static CUresult fake_set_access(CUdeviceptr va, size_t bytes, const CUmemAccessDesc *list, size_t count)
{
    fake.accesses++;
    fake.access_va = va;
    fake.access_bytes = bytes;
    fake.access_count = count;
    memcpy(fake.access, list, count * sizeof *list);
    if (fake.not_ready > 0) {
        fake.not_ready--;
        return CUDA_ERROR_NOT_READY;
    }
    return fake.refuse_rdma && fake.last_prop.allocFlags.gpuDirectRDMACapable ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}
static CUresult fake_event_create(CUevent *event, unsigned flags)
{
    CHECK(flags == CU_EVENT_DISABLE_TIMING);
    *event = (CUevent)(uintptr_t)(0x500 + ++fake.events_created);
    return CUDA_SUCCESS;
}
static CUresult fake_event_record(CUevent event, CUstream stream)
{
    fake.records++;
    CHECK(event != NULL);
    return stream == (CUstream)(uintptr_t)0xbad ? CUDA_ERROR_INVALID_HANDLE : wrong_context();
}
static CUresult fake_event_query(CUevent event) { (void)event; return CUDA_ERROR_NOT_READY; }
static CUresult fake_event_sync(CUevent event) { (void)event; return CUDA_SUCCESS; }
static CUresult fake_event_destroy(CUevent event) { (void)event; fake.events_destroyed++; return CUDA_SUCCESS; }
static CUresult fake_wait(CUstream stream, CUevent event, unsigned flags) { (void)stream; (void)event; (void)flags; return CUDA_SUCCESS; }
static CUresult fake_capturing(CUstream stream, int *status) { (void)stream; *status = 0; return CUDA_SUCCESS; }
static CUresult fake_mode(int *mode)
{
    int old = fake.mode;
    fake.mode = *mode;
    *mode = old;
    fake.mode_changes++;
    return CUDA_SUCCESS;
}
static CUresult fake_context_record(CUcontext context, CUevent event)
{
    CHECK(context == PRIMARY && event != NULL);
    fake.context_records++;
    return CUDA_SUCCESS;
}

static gml_cuda_driver driver(void)
{
    memset(&fake, 0, sizeof fake);
    fake.current = PRIMARY;
    fake.vmm = fake.rdma = fake.posix = true;
    fake.devices = 1;
    return (gml_cuda_driver){
        .device_get = fake_get, .device_count = fake_count, .device_name = fake_name,
        .device_attribute = fake_attribute, .primary_retain = fake_retain, .primary_release = fake_primary_release,
        .ctx_current = fake_current, .ctx_push = fake_push, .ctx_pop = fake_pop, .ctx_sync = fake_sync,
        .mem_info = fake_mem_info, .granularity = fake_granularity, .create = fake_create, .release = fake_release,
        .reserve = fake_reserve, .free_va = fake_free_va, .map = fake_map, .unmap = fake_unmap,
        .set_access = fake_set_access, .event_create = fake_event_create, .event_record = fake_event_record,
        .event_query = fake_event_query, .event_sync = fake_event_sync, .event_destroy = fake_event_destroy,
        .stream_wait = fake_wait, .stream_capturing = fake_capturing, .capture_mode = fake_mode,
    };
}

static gml_cuda_device open_device(gml_cuda_driver *d)
{
    gml_cuda_device device;
    CHECK(gml_cuda_device_attach(&device, d, 0) == GML_OK);
    CHECK(gml_cuda_device_prepare(&device) == GML_OK);
    CHECK(device.base.chunk_bytes == CHUNK);
    CHECK(fake.handles == fake.released && fake.mapped == 0); /* the probe leaves nothing */
    return device;
}

static void test_flags(void)
{
    gml_cuda_driver d = driver();
    gml_cuda_device device = open_device(&d);
    CHECK(device.prop.allocFlags.gpuDirectRDMACapable == 1 && device.prop.requestedHandleTypes == 1);
    d = driver();
    fake.refuse_rdma = true;
    device = open_device(&d);
    CHECK(device.prop.allocFlags.gpuDirectRDMACapable == 0 && device.prop.requestedHandleTypes == 1);
    d = driver();
    fake.refuse_export = true;
    device = open_device(&d);
    CHECK(device.prop.allocFlags.gpuDirectRDMACapable == 0 && device.prop.requestedHandleTypes == 0);
    /* A full device proves nothing against the flags. */
    d = driver();
    fake.create_answer = CUDA_ERROR_OUT_OF_MEMORY;
    device = open_device(&d);
    CHECK(device.prop.allocFlags.gpuDirectRDMACapable == 1);
    d = driver();
    fake.create_answer = CUDA_ERROR_NOT_SUPPORTED;
    CHECK(gml_cuda_device_attach(&device, &d, 0) == GML_OK);
    CHECK(gml_cuda_device_prepare(&device) == GML_UNSUPPORTED);
    d = driver();
    fake.vmm = false;
    CHECK(gml_cuda_device_attach(&device, &d, 0) == GML_OK);
    CHECK(gml_cuda_device_prepare(&device) == GML_UNSUPPORTED && fake.handles == 0);
}

static void test_context(void)
{
    gml_cuda_driver d = driver();
    gml_cuda_device device = open_device(&d);
    gml_device *dev = &device.base;
    gml_handle handle = 0;
    size_t free_bytes = 0;
    size_t total = 0;
    CHECK(dev->ops->create(dev, CHUNK, &handle) == GML_OK && fake.pushes == 0);
    fake.current = OTHER;
    CHECK(dev->ops->create(dev, CHUNK, &handle) == GML_OK);
    CHECK(dev->ops->mem_info(dev, &free_bytes, &total) == GML_OK && total == 2);
    CHECK(fake.pushes == 2 && fake.pops == 2 && fake.current == OTHER);
    fake.current = NULL;
    CHECK(dev->ops->sync(dev) == GML_OK && fake.current == NULL);
    fake.create_answer = CUDA_ERROR_OUT_OF_MEMORY;
    gml_handle untouched = 77;
    CHECK(dev->ops->create(dev, CHUNK, &untouched) == GML_OUT_OF_MEMORY && untouched == 77);
}

static void test_capture_mode(void)
{
    gml_cuda_driver d = driver();
    gml_cuda_device device = open_device(&d);
    fake.mode = CU_STREAM_CAPTURE_MODE_GLOBAL;
    CHECK(device.base.ops->sync(&device.base) == GML_OK && fake.mode_changes == 0);
    atomic_store(&d.captures, 1);
    CHECK(device.base.ops->sync(&device.base) == GML_OK);
    CHECK(fake.mode_changes == 2 && fake.mode == CU_STREAM_CAPTURE_MODE_GLOBAL);
}

static void test_not_ready(void)
{
    gml_cuda_driver d = driver();
    gml_cuda_device device = open_device(&d);
    int before = fake.accesses;
    fake.not_ready = 5;
    CHECK(device.base.ops->set_access(&device.base, 0x10000000, CHUNK) == GML_OK);
    CHECK(fake.accesses == before + 6);
}

static void test_peers(void)
{
    gml_cuda_driver d = driver();
    fake.devices = 4;
    gml_cuda_device device = open_device(&d);
    gml_device *dev = &device.base;
    uintptr_t va = 0;
    CHECK(dev->ops->reserve(dev, 8 * CHUNK, &va) == GML_OK);
    CHECK(dev->ops->map(dev, va, CHUNK, 1) == GML_OK && dev->ops->map(dev, va + CHUNK, CHUNK, 2) == GML_OK);
    CHECK(dev->ops->set_access(dev, va, 2 * CHUNK) == GML_OK && fake.access_count == 1);
    int before = fake.accesses;
    gml_cuda_device_add_peer(&device, 2);
    /* What is mapped already is opened in one call, for the peer alone. */
    CHECK(fake.accesses == before + 1 && fake.access_count == 1 && fake.access[0].location.id == 2);
    CHECK(fake.access_va == va && fake.access_bytes == 2 * CHUNK && fake.access[0].flags == 3);
    gml_cuda_device_add_peer(&device, 2);
    gml_cuda_device_add_peer(&device, 0);
    CHECK(fake.accesses == before + 1);
    CHECK(dev->ops->set_access(dev, va + 2 * CHUNK, CHUNK) == GML_OK);
    CHECK(fake.access_count == 2 && fake.access[0].location.id == 0 && fake.access[1].location.id == 2);
    CHECK(dev->ops->unmap(dev, va, 3 * CHUNK) == GML_OK);
    before = fake.accesses;
    gml_cuda_device_add_peer(&device, 3);
    CHECK(fake.accesses == before);
    gml_cuda_device_close(&device);
}

static void test_events(void)
{
    gml_cuda_driver d = driver();
    gml_cuda_device device = open_device(&d);
    gml_device *dev = &device.base;
    gml_event event = 0;
    CHECK(dev->ops->event_record(dev, GML_STREAM_NONE, &event) == GML_UNSUPPORTED && event == 0);
    d.ctx_record_event = fake_context_record;
    CHECK(dev->ops->event_record(dev, GML_STREAM_NONE, &event) == GML_OK && fake.context_records == 1);
    CHECK(dev->ops->event_query(dev, event) == GML_NOT_READY);
    CHECK(dev->ops->event_destroy(dev, event) == GML_OK && fake.events_destroyed == 0);
    gml_event again = 0;
    CHECK(dev->ops->event_record(dev, 0, &again) == GML_OK && again == event && fake.events_created == 1);
    /* A failed record hands out nothing and loses nothing. */
    CHECK(dev->ops->event_destroy(dev, again) == GML_OK);
    again = 0;
    CHECK(dev->ops->event_record(dev, 0xbad, &again) == GML_INVALID && again == 0);
    CHECK(dev->ops->event_record(dev, 0, &again) == GML_OK && fake.events_created == 1);
    /* Only so many are kept. */
    gml_event many[GML_CUDA_EVENT_POOL + 10];
    for (size_t i = 0; i < GML_CUDA_EVENT_POOL + 10; i++)
        CHECK(dev->ops->event_record(dev, 0, &many[i]) == GML_OK);
    for (size_t i = 0; i < GML_CUDA_EVENT_POOL + 10; i++)
        CHECK(dev->ops->event_destroy(dev, many[i]) == GML_OK);
    CHECK(fake.events_destroyed == 10);
}

static void test_status(void)
{
    CHECK(gml_cuda_status(CUDA_SUCCESS) == GML_OK);
    CHECK(gml_cuda_status(CUDA_ERROR_OUT_OF_MEMORY) == GML_OUT_OF_MEMORY);
    CHECK(gml_cuda_status(CUDA_ERROR_DEINITIALIZED) == GML_DEVICE_LOST);
    CHECK(gml_cuda_status(CUDA_ERROR_ILLEGAL_ADDRESS) == GML_DEVICE_LOST);
    CHECK(gml_cuda_status(CUDA_ERROR_STREAM_CAPTURE_IMPLICIT) == GML_CAPTURING);
}

int main(void)
{
    test_flags();
    test_context();
    test_capture_mode();
    test_not_ready();
    test_peers();
    test_events();
    test_status();
    return 0;
}
