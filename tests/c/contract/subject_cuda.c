/* SPDX-License-Identifier: Apache-2.0 */
/* The CUDA device under the contract suite: on whatever libcuda.so.1 the loader finds, real or simulated. */
#include "subject.h"

#include "device/cuda.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

static gml_cuda_driver driver;
static gml_cuda_device device;
static char device_name[128];

static struct {
    CUresult (*init)(unsigned flags);
    CUresult (*set_current)(CUcontext context);
    CUresult (*fill)(CUdeviceptr va, unsigned char value, size_t bytes);
    CUresult (*read)(void *to, CUdeviceptr from, size_t bytes);
} calls;

static bool fill(uintptr_t va, size_t bytes, unsigned char value)
{
    return calls.fill(va, value, bytes) == CUDA_SUCCESS && driver.ctx_sync() == CUDA_SUCCESS;
}

static bool holds(uintptr_t va, size_t bytes, unsigned char value)
{
    unsigned char *copy = malloc(bytes);
    bool same = copy != NULL && calls.read(copy, va, bytes) == CUDA_SUCCESS;
    for (size_t i = 0; same && i < bytes; i++)
        same = copy[i] == value;
    free(copy);
    return same;
}

/* A function pointer cannot be assigned from void* in ISO C; copying the bytes is the portable way. */
static bool find(void *library, const char *name, void *field)
{
    void *symbol = dlsym(library, name);
    memcpy(field, &symbol, sizeof symbol);
    return symbol != NULL;
}

bool subject_open_cuda(subject *out_subject, const char **out_why)
{
    void *library = dlopen("libcuda.so.1", RTLD_NOW);
    *out_why = "libcuda.so.1 cannot be loaded";
    if (library == NULL)
        return false;
    *out_why = "the driver lacks a function";
    if (!find(library, "cuInit", &calls.init) || !find(library, "cuCtxSetCurrent", &calls.set_current) ||
        !find(library, "cuMemsetD8_v2", &calls.fill) || !find(library, "cuMemcpyDtoH_v2", &calls.read))
        return false;
    *out_why = "cuInit fails: no GPU";
    if (calls.init(0) != CUDA_SUCCESS)
        return false;
    CUdevice ordinal = 0;
    CUcontext context = NULL;
    *out_why = "the driver's functions or the device's context cannot be had";
    if (gml_cuda_driver_load(&driver) != GML_OK || driver.device_get(&ordinal, 0) != CUDA_SUCCESS ||
        driver.primary_retain(&context, ordinal) != CUDA_SUCCESS || calls.set_current(context) != CUDA_SUCCESS)
        return false;
    *out_why = "the device has no virtual memory management";
    if (gml_cuda_device_attach(&device, &driver, 0) != GML_OK || gml_cuda_device_prepare(&device) != GML_OK)
        return false;
    gml_cuda_device_name(&device, device_name, (int)sizeof device_name);
    *out_subject = (subject){.dev = &device.base, .fill = fill, .holds = holds, .name = device_name};
    return true;
}

void subject_close_cuda(subject *s)
{
    (void)s;
    gml_cuda_device_close(&device);
    (void)driver.primary_release(device.device);
}
