/* SPDX-License-Identifier: Apache-2.0 */
/* Device queries: names, sizes and attributes, from the profile. */
#include "sim/driver/driver.h"

#include <stdio.h>
#include <string.h>

static bool device_ok(CUdevice device)
{
    return device >= 0 && device < sim_config_get()->devices;
}

DRIVER(cuDeviceGetCount, (int *out))
{
    ENTER(cuDeviceGetCount);
    if (!out) return CUDA_ERROR_INVALID_VALUE;
    *out = sim_config_get()->devices;
    return CUDA_SUCCESS;
}

DRIVER(cuDeviceGet, (CUdevice * out, int ordinal))
{
    ENTER(cuDeviceGet);
    if (!out) return CUDA_ERROR_INVALID_VALUE;
    if (!device_ok(ordinal)) return CUDA_ERROR_INVALID_DEVICE;
    *out = ordinal;
    return CUDA_SUCCESS;
}

DRIVER(cuDeviceGetName, (char *name, int length, CUdevice device))
{
    ENTER(cuDeviceGetName);
    if (!name || length < 1) return CUDA_ERROR_INVALID_VALUE;
    if (!device_ok(device)) return CUDA_ERROR_INVALID_DEVICE;
    snprintf(name, (size_t)length, "%s", sim_config_get()->profile->full_name);
    return CUDA_SUCCESS;
}

DRIVER(cuDeviceGetUuid_v2, (CUuuid * out, CUdevice device))
{
    ENTER(cuDeviceGetUuid);
    if (!out) return CUDA_ERROR_INVALID_VALUE;
    if (!device_ok(device)) return CUDA_ERROR_INVALID_DEVICE;
    memcpy(out->bytes, "gml-simulated-00", sizeof out->bytes);
    out->bytes[14] = (char)('0' + device / 10);
    out->bytes[15] = (char)('0' + device % 10);
    return CUDA_SUCCESS;
}

DRIVER(cuDeviceTotalMem_v2, (size_t *out, CUdevice device))
{
    ENTER(cuDeviceTotalMem);
    if (!out) return CUDA_ERROR_INVALID_VALUE;
    if (!device_ok(device)) return CUDA_ERROR_INVALID_DEVICE;
    *out = sim_config_get()->total_bytes;
    return CUDA_SUCCESS;
}

DRIVER(cuDeviceGetPCIBusId, (char *id, int length, CUdevice device))
{
    ENTER(cuDeviceGetPCIBusId);
    if (!id || length < 1) return CUDA_ERROR_INVALID_VALUE;
    if (!device_ok(device)) return CUDA_ERROR_INVALID_DEVICE;
    snprintf(id, (size_t)length, "0000:%02X:00.0", 0x1b + device);
    return CUDA_SUCCESS;
}

DRIVER(cuDeviceGetByPCIBusId, (CUdevice * out, const char *id))
{
    ENTER(cuDeviceGetByPCIBusId);
    unsigned domain, bus;
    if (!out || !id || sscanf(id, "%x:%x", &domain, &bus) != 2) return CUDA_ERROR_INVALID_VALUE;
    if (!device_ok((int)bus - 0x1b)) return CUDA_ERROR_INVALID_DEVICE;
    *out = (int)bus - 0x1b;
    return CUDA_SUCCESS;
}

/* Attributes that are the same on every profile, as value pairs; all others are 0. */
static const int fixed[][2] = {
    {1, 1024},      {2, 1024},   {3, 1024},       {4, 64},         {5, 2147483647}, {6, 65535},    {7, 65535},
    {8, 49152},     {9, 65536},  {10, 32},        {11, 2147483647}, {12, 65536},    {13, 1980000}, {14, 512},
    {15, 1},        {19, 1},     {21, 131072},    {22, 131072},    {23, 65536},     {24, 16384},   {25, 16384},
    {26, 16384},    {30, 512},   {31, 1},         {32, 1},         {36, 2619000},   {37, 5120},    {38, 52428800},
    {39, 2048},     {40, 3},     {41, 1},         {51, 32},        {78, 1},         {79, 1},       {80, 1},
    {82, 65536},    {83, 1},     {87, 2},         {89, 1},         {90, 1},         {91, 1},       {92, 1},
    {93, 1},        {94, 1},     {95, 1},         {98, 1},         {99, 1},         {102, 1},      {103, 1},
    {106, 32},      {108, 32768000}, {109, 134217728}, {110, 1},   {111, 1024},     {113, 1},      {115, 1},
    {116, 1},       {118, 100},  {119, 1},        {122, 1},        {123, 1},        {125, 1},      {126, 4},
    {129, 1},       {134, -1},
};

static int attribute(int which, int device)
{
    const struct sim_profile *p = sim_config_get()->profile;
    bool hopper = p->cc_major >= 9;
    switch (which) {
    case CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT: return p->sms;
    case CU_DEVICE_ATTRIBUTE_PCI_BUS_ID: return 0x1b + device;
    case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR: return p->cc_major;
    case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR: return p->cc_minor;
    case 81: return hopper ? 233472 : p->cc_major == 8 && p->cc_minor == 0 ? 167936 : p->cc_major == 8 ? 102400 : 65536;
    case 97: return hopper ? 232448 : p->cc_major == 8 && p->cc_minor == 0 ? 166912 : p->cc_major == 8 ? 101376 : 65536;
    case 120: /* cluster launch */
    case 127: /* tensor maps */
        return hopper;
    default: break;
    }
    for (size_t i = 0; i < sizeof fixed / sizeof *fixed; i++)
        if (fixed[i][0] == which) return fixed[i][1];
    return 0;
}

DRIVER(cuDeviceGetAttribute, (int *out, int which, CUdevice device))
{
    ENTER(cuDeviceGetAttribute);
    if (!out || which < 1) return CUDA_ERROR_INVALID_VALUE;
    if (!device_ok(device)) return CUDA_ERROR_INVALID_DEVICE;
    *out = attribute(which, device);
    return CUDA_SUCCESS;
}

DRIVER(cuDeviceCanAccessPeer, (int *out, CUdevice device, CUdevice peer))
{
    ENTER(cuDeviceCanAccessPeer);
    if (!out) return CUDA_ERROR_INVALID_VALUE;
    if (!device_ok(device) || !device_ok(peer)) return CUDA_ERROR_INVALID_DEVICE;
    *out = device != peer;
    return CUDA_SUCCESS;
}

DRIVER(cuDeviceGetP2PAttribute, (int *out, int which, CUdevice source, CUdevice target))
{
    ENTER(cuDeviceGetP2PAttribute);
    if (!out) return CUDA_ERROR_INVALID_VALUE;
    if (!device_ok(source) || !device_ok(target) || source == target) return CUDA_ERROR_INVALID_DEVICE;
    *out = which != 1 ? 1 : 0; /* 1 is the performance rank */
    return CUDA_SUCCESS;
}
