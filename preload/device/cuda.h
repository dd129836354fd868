/* SPDX-License-Identifier: Apache-2.0 */
/* The device contract over the CUDA driver's virtual memory management.
 *
 * One object a device. Calls run with the device's primary context current (pushed only when another
 * one is), so any thread may make them. Thread-safe but for attach, prepare and close. */
#ifndef GML_DEVICE_CUDA_H
#define GML_DEVICE_CUDA_H

#include "base/lock.h"
#include "device/cuda_driver.h"
#include "device/cuda_ranges.h"
#include "device/device.h"

#include <stdbool.h>

#define GML_CUDA_MAX_DEVICES 16
#define GML_CUDA_EVENT_POOL 256

typedef struct gml_cuda_device {
    gml_device base; /* first: the contract's functions get a pointer to this */
    gml_cuda_driver *driver;
    int ordinal;
    CUdevice device;
    CUcontext context; /* the primary context */
    CUmemoryPool default_pool; /* NULL when the driver knows none */
    CUmemAllocationProp prop;
    gml_lock lock; /* guards everything below */
    CUevent events[GML_CUDA_EVENT_POOL]; /* finished with, for reuse */
    unsigned event_count;
    CUmemAccessDesc access[GML_CUDA_MAX_DEVICES]; /* the device itself, then its peers */
    unsigned access_count;
    bool track_ranges; /* several devices: later peers need access to what is mapped already */
    gml_cuda_ranges ranges;
} gml_cuda_device;

/* Looks at the device `ordinal`, whose primary context must be active: name, memory, pool. After this
 * only mem_info, sync and the clock of the contract may be used. Errors: what the driver answered. */
GML_CHECKED gml_status gml_cuda_device_attach(gml_cuda_device *device, gml_cuda_driver *driver, int ordinal);

/* Makes an attached device ready for the whole contract, and proves on one chunk that memory can be
 * mapped. Errors: UNSUPPORTED, or what the driver answered. */
GML_CHECKED gml_status gml_cuda_device_prepare(gml_cuda_device *device);

/* Lets device `peer` use the memory of this one: what is mapped now and what comes later. */
void gml_cuda_device_add_peer(gml_cuda_device *device, int peer);

/* The name of the device, for people. */
void gml_cuda_device_name(const gml_cuda_device *device, char *out_name, int capacity);

/* Forgets everything (a device reset has destroyed it). */
void gml_cuda_device_close(gml_cuda_device *device);

#endif
