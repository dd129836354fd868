/* SPDX-License-Identifier: Apache-2.0 */
/* Fault device: a decorator that fails the n-th call of one kind, for tests of every error path. */
#ifndef GML_DEVICE_FAULT_H
#define GML_DEVICE_FAULT_H

#include "device/device.h"

/* A device that forwards to `inner`. Errors: OUT_OF_METADATA. */
GML_CHECKED gml_status gml_fault_create(gml_device *inner, gml_device **out_device);
void gml_fault_destroy(gml_device *device);

/* The n-th call of `call` from now on (1 is the next one) answers `status` without reaching the
 * inner device; 0 takes an earlier order back. */
void gml_fault_arm(gml_device *device, gml_device_call call, uint64_t n, gml_status status);

/* True when the ordered failure has happened. */
int gml_fault_fired(const gml_device *device);

#endif
