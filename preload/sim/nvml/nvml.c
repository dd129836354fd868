/* SPDX-License-Identifier: Apache-2.0 */
/* Simulated NVML: the few queries that programs make beside CUDA, answered from the simulated driver. */
#define _GNU_SOURCE
#include "cuda/driver_abi.h"
#include "sim/stub.h"

#include <dlfcn.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NVML(name, params)                                 \
    __attribute__((visibility("default"))) int name params; \
    __attribute__((visibility("default"))) int name params

enum { NVML_SUCCESS = 0, NVML_INVALID_ARGUMENT = 2, NVML_NOT_SUPPORTED = 3, NVML_NOT_FOUND = 6,
       NVML_DRIVER_NOT_LOADED = 9, NVML_VERSION_MISMATCH = 25 };

static struct {
    CUresult (*init)(unsigned);
    CUresult (*count)(int *);
    CUresult (*name)(char *, int, CUdevice);
    CUresult (*uuid)(CUuuid *, CUdevice);
    CUresult (*total)(size_t *, CUdevice);
    CUresult (*attribute)(int *, int, CUdevice);
    CUresult (*by_bus)(CUdevice *, const char *);
    size_t (*used)(int);
    size_t (*context)(int);
    void (*stub)(const char *, int);
} driver;

static void find(void *library, const char *name, void *out)
{
    void *symbol = dlsym(library, name);
    memcpy(out, &symbol, sizeof symbol);
}

void sim_stub_called(const char *name, int has_outputs)
{
    if (driver.stub) driver.stub(name, has_outputs);
}

NVML(nvmlInit_v2, (void))
{
    void *library = dlopen("libcuda.so.1", RTLD_NOW);
    if (!library) return NVML_DRIVER_NOT_LOADED;
    find(library, "cuInit", &driver.init);
    find(library, "cuDeviceGetCount", &driver.count);
    find(library, "cuDeviceGetName", &driver.name);
    find(library, "cuDeviceGetUuid_v2", &driver.uuid);
    find(library, "cuDeviceTotalMem_v2", &driver.total);
    find(library, "cuDeviceGetAttribute", &driver.attribute);
    find(library, "cuDeviceGetByPCIBusId", &driver.by_bus);
    find(library, "gml_sim_used_bytes", &driver.used);
    find(library, "gml_sim_context_bytes", &driver.context);
    find(library, "gml_sim_stub", &driver.stub);
    if (!driver.init || !driver.used || !driver.context || driver.init(0) != CUDA_SUCCESS)
        return NVML_DRIVER_NOT_LOADED;
    return NVML_SUCCESS;
}

NVML(nvmlInit, (void))
{
    return nvmlInit_v2();
}

NVML(nvmlInitWithFlags, (unsigned flags))
{
    (void)flags;
    return nvmlInit_v2();
}

NVML(nvmlShutdown, (void))
{
    return NVML_SUCCESS;
}

__attribute__((visibility("default"))) const char *nvmlErrorString(int error);
__attribute__((visibility("default"))) const char *nvmlErrorString(int error)
{
    switch (error) {
    case NVML_SUCCESS: return "Success";
    case NVML_INVALID_ARGUMENT: return "Invalid Argument";
    case NVML_NOT_FOUND: return "Not Found";
    case NVML_DRIVER_NOT_LOADED: return "Driver Not Loaded";
    default: return "Not Supported";
    }
}

NVML(nvmlSystemGetCudaDriverVersion_v2, (int *out))
{
    *out = 13000;
    return NVML_SUCCESS;
}

NVML(nvmlSystemGetCudaDriverVersion, (int *out))
{
    return nvmlSystemGetCudaDriverVersion_v2(out);
}

NVML(nvmlSystemGetDriverVersion, (char *out, unsigned room))
{
    snprintf(out, room, "580.00.00");
    return NVML_SUCCESS;
}

/* A device handle is its ordinal plus one. */
static int ordinal(const void *handle)
{
    int count = 0;
    if (driver.count) driver.count(&count);
    intptr_t i = (intptr_t)handle - 1;
    return i >= 0 && i < count ? (int)i : -1;
}

NVML(nvmlDeviceGetCount_v2, (unsigned *out))
{
    int count = 0;
    if (!driver.count || driver.count(&count) != CUDA_SUCCESS) return NVML_DRIVER_NOT_LOADED;
    *out = (unsigned)count;
    return NVML_SUCCESS;
}

NVML(nvmlDeviceGetHandleByIndex_v2, (unsigned index, void **out))
{
    void *handle = (void *)((uintptr_t)index + 1);
    if (ordinal(handle) < 0) return NVML_INVALID_ARGUMENT;
    *out = handle;
    return NVML_SUCCESS;
}

NVML(nvmlDeviceGetHandleByPciBusId_v2, (const char *id, void **out))
{
    CUdevice device;
    if (!driver.by_bus || driver.by_bus(&device, id) != CUDA_SUCCESS) return NVML_NOT_FOUND;
    return nvmlDeviceGetHandleByIndex_v2((unsigned)device, out);
}

NVML(nvmlDeviceGetUUID, (void *handle, char *out, unsigned room))
{
    int device = ordinal(handle);
    CUuuid id;
    if (device < 0 || driver.uuid(&id, device) != CUDA_SUCCESS) return NVML_INVALID_ARGUMENT;
    char hex[40];
    for (int i = 0, at = 0; i < 16; i++)
        at += snprintf(hex + at, sizeof hex - (size_t)at, i == 4 || i == 6 || i == 8 || i == 10 ? "-%02x" : "%02x",
                       (unsigned char)id.bytes[i]);
    snprintf(out, room, "GPU-%s", hex);
    return NVML_SUCCESS;
}

NVML(nvmlDeviceGetHandleByUUID, (const char *id, void **out))
{
    char mine[64];
    for (unsigned i = 0; nvmlDeviceGetHandleByIndex_v2(i, out) == NVML_SUCCESS; i++)
        if (nvmlDeviceGetUUID(*out, mine, sizeof mine) == NVML_SUCCESS && !strcmp(mine, id)) return NVML_SUCCESS;
    return NVML_NOT_FOUND;
}

NVML(nvmlDeviceGetName, (void *handle, char *out, unsigned room))
{
    int device = ordinal(handle);
    if (device < 0 || driver.name(out, (int)room, device) != CUDA_SUCCESS) return NVML_INVALID_ARGUMENT;
    return NVML_SUCCESS;
}

NVML(nvmlDeviceGetIndex, (void *handle, unsigned *out))
{
    int device = ordinal(handle);
    if (device < 0) return NVML_INVALID_ARGUMENT;
    *out = (unsigned)device;
    return NVML_SUCCESS;
}

struct memory {
    unsigned long long total, free, used;
};

/* As the management library sees it: contexts included. */
NVML(nvmlDeviceGetMemoryInfo, (void *handle, struct memory *out))
{
    int device = ordinal(handle);
    size_t total;
    if (device < 0 || driver.total(&total, device) != CUDA_SUCCESS) return NVML_INVALID_ARGUMENT;
    size_t used = driver.used(device) + driver.context(device);
    *out = (struct memory){total, total - used, used};
    return NVML_SUCCESS;
}

NVML(nvmlDeviceGetComputeRunningProcesses, (void *handle, unsigned *count, void *processes))
{
    (void)processes;
    if (ordinal(handle) < 0) return NVML_INVALID_ARGUMENT;
    *count = 0;
    return NVML_SUCCESS;
}

NVML(nvmlDeviceGetP2PStatus, (void *a, void *b, int index, int *out))
{
    (void)index;
    if (ordinal(a) < 0 || ordinal(b) < 0) return NVML_INVALID_ARGUMENT;
    *out = 0;
    return NVML_SUCCESS;
}

/* Versions 2 and 3 of the documented structure, told by its first word: its size, and the version in the top byte. */
struct fabric {
    unsigned version;
    unsigned char cluster[16];
    int status;
    unsigned clique;
    unsigned char state; /* 0: not supported */
    unsigned health;
    unsigned char summary; /* since 3 */
};

/* Devices of Hopper's kind and later can be part of a fabric of NVLink switches; this one is in none. */
NVML(nvmlDeviceGetGpuFabricInfoV, (void *handle, struct fabric *out))
{
    const unsigned second = offsetof(struct fabric, summary) | 2u << 24, third = sizeof(struct fabric) | 3u << 24;
    int device = ordinal(handle), major = 0;
    if (device < 0 || !out) return NVML_INVALID_ARGUMENT;
    if (out->version != second && out->version != third) return NVML_VERSION_MISMATCH;
    if (driver.attribute) driver.attribute(&major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, device);
    if (major < 9) return NVML_NOT_SUPPORTED;
    memset(out->cluster, 0, (out->version & 0xffffff) - offsetof(struct fabric, cluster));
    return NVML_SUCCESS;
}
