/* SPDX-License-Identifier: Apache-2.0 */
/* Launches and attributes of the program's kernels; driver entry points by name. */
#include "sim/runtime/runtime.h"

#include <string.h>

static __thread struct {
    dim3 grid, block;
    size_t shared;
    void *stream;
} configuration;

SIM_ENTRY(unsigned, __cudaPushCallConfiguration, (dim3 grid, dim3 block, size_t shared, void *stream))
{
    configuration.grid = grid;
    configuration.block = block;
    configuration.shared = shared;
    configuration.stream = stream;
    return 0;
}

SIM_ENTRY(cudaError_t, __cudaPopCallConfiguration, (dim3 * grid, dim3 *block, size_t *shared, void *stream))
{
    *grid = configuration.grid;
    *block = configuration.block;
    *shared = configuration.shared;
    memcpy(stream, &configuration.stream, sizeof(void *));
    return cudaSuccess;
}

/* ---- launches ---- */

static cudaError_t launch(const struct driver_table *drv, CUfunction function, dim3 grid, dim3 block, size_t shared,
                          cudaStream_t stream, void **arguments)
{
    CUresult result = drv->cuLaunchKernel(function, grid.x, grid.y, grid.z, block.x, block.y, block.z,
                                          (unsigned)shared, stream, arguments, NULL);
    if (result == CUDA_ERROR_INVALID_VALUE) return sim_fail(cudaErrorInvalidConfiguration);
    return sim_return(result);
}

RUNTIME(cudaLaunchKernel,
        (const void *function, dim3 grid, dim3 block, void **arguments, size_t shared, cudaStream_t stream))
{
    BEGIN_CTX(cudaLaunchKernel);
    if (!function) return sim_fail(cudaErrorInvalidDeviceFunction);
    return launch(drv, sim_kernel_function(drv, function), grid, block, shared, stream, arguments);
}

RUNTIME(cudaLaunchKernel_ptsz,
        (const void *function, dim3 grid, dim3 block, void **arguments, size_t shared, cudaStream_t stream))
{
    return cudaLaunchKernel(function, grid, block, arguments, shared, stream ? stream : CU_STREAM_PER_THREAD);
}

RUNTIME(cudaLaunchCooperativeKernel,
        (const void *function, dim3 grid, dim3 block, void **arguments, size_t shared, cudaStream_t stream))
{
    return cudaLaunchKernel(function, grid, block, arguments, shared, stream);
}

RUNTIME(cudaLaunchKernelExC, (const cudaLaunchConfig_t *config, const void *function, void **arguments))
{
    BEGIN_CTX(cudaLaunchKernelExC);
    if (!config) return sim_fail(cudaErrorInvalidValue);
    if (!function) return sim_fail(cudaErrorInvalidDeviceFunction);
    return launch(drv, sim_kernel_function(drv, function), config->gridDim, config->blockDim,
                  config->dynamicSmemBytes, config->stream, arguments);
}

RUNTIME(__cudaGetKernel, (cudaKernel_t * kernel, const void *function))
{
    BEGIN(__cudaGetKernel);
    if (!kernel || !function) return sim_fail(cudaErrorInvalidValue);
    *kernel = (cudaKernel_t)(void *)sim_kernel_function(drv, function);
    return cudaSuccess;
}

RUNTIME(__cudaLaunchKernel,
        (cudaKernel_t kernel, dim3 grid, dim3 block, void **arguments, size_t shared, cudaStream_t stream))
{
    BEGIN_CTX(__cudaLaunchKernel);
    return launch(drv, (CUfunction)(void *)kernel, grid, block, shared, stream, arguments);
}

RUNTIME(cudaGetKernel, (cudaKernel_t * kernel, const void *function))
{
    return __cudaGetKernel(kernel, function);
}

/* ---- libraries and attributes ---- */

RUNTIME(cudaLibraryLoadData, (cudaLibrary_t * out, const void *code, int *jit, void **jit_values, unsigned jit_count,
                              int *options, void **values, unsigned count))
{
    BEGIN_CTX(cudaLibraryLoadData);
    return sim_return(drv->cuLibraryLoadData(out, code, jit, jit_values, jit_count, options, values, count));
}

RUNTIME(cudaLibraryUnload, (cudaLibrary_t library))
{
    BEGIN_CTX(cudaLibraryUnload);
    return sim_return(drv->cuLibraryUnload(library));
}

RUNTIME(cudaLibraryGetKernel, (cudaKernel_t * out, cudaLibrary_t library, const char *name))
{
    BEGIN_CTX(cudaLibraryGetKernel);
    return sim_return(drv->cuLibraryGetKernel(out, library, name));
}

RUNTIME(cudaKernelSetAttributeForDevice, (cudaKernel_t kernel, int attribute, int value, int device))
{
    BEGIN_CTX(cudaKernelSetAttributeForDevice);
    return sim_return(drv->cuKernelSetAttribute(attribute, value, kernel, device));
}

RUNTIME(cudaFuncSetAttribute, (const void *function, int attribute, int value))
{
    BEGIN_CTX(cudaFuncSetAttribute);
    (void)drv, (void)attribute, (void)value;
    return function ? cudaSuccess : sim_fail(cudaErrorInvalidDeviceFunction);
}

RUNTIME(cudaFuncSetCacheConfig, (const void *function, int config))
{
    return cudaFuncSetAttribute(function, 0, config);
}

RUNTIME(cudaFuncGetAttributes, (cudaFuncAttributes * out, const void *function))
{
    BEGIN_CTX(cudaFuncGetAttributes);
    if (!out || !function) return sim_fail(out ? cudaErrorInvalidDeviceFunction : cudaErrorInvalidValue);
    memset(out, 0, sizeof *out);
    int major = 0, minor = 0, device = sim_thread_device();
    drv->cuDeviceGetAttribute(&major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, device);
    drv->cuDeviceGetAttribute(&minor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, device);
    drv->cuDeviceGetAttribute(&out->maxDynamicSharedSizeBytes, 97, device);
    out->maxThreadsPerBlock = 1024;
    out->numRegs = 32;
    out->ptxVersion = out->binaryVersion = major * 10 + minor;
    return cudaSuccess;
}

RUNTIME(cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags,
        (int *out, const void *function, int block_size, size_t shared, unsigned flags))
{
    (void)function, (void)shared, (void)flags;
    if (!out || block_size < 1) return sim_fail(cudaErrorInvalidValue);
    *out = block_size > 2048 ? 0 : 2048 / block_size;
    return cudaSuccess;
}

RUNTIME(cudaOccupancyMaxActiveBlocksPerMultiprocessor,
        (int *out, const void *function, int block_size, size_t shared))
{
    return cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(out, function, block_size, shared, 0);
}

RUNTIME(cudaOccupancyMaxActiveClusters, (int *out, const void *function, const cudaLaunchConfig_t *config))
{
    BEGIN_CTX(cudaOccupancyMaxActiveClusters);
    if (!out || !function || !config) return sim_fail(cudaErrorInvalidValue);
    return sim_return(drv->cuDeviceGetAttribute(out, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, sim_thread_device()));
}

/* ---- driver entry points ---- */

RUNTIME(cudaGetDriverEntryPointByVersion,
        (const char *name, void **out, unsigned version, unsigned long long flags, int *status))
{
    BEGIN(cudaGetDriverEntryPointByVersion);
    int found = CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
    if (!name || !out) return sim_fail(cudaErrorInvalidValue);
    CUresult result = drv->getProcAddress(name, out, (int)version, flags, &found);
    if (status) *status = found;
    return sim_return(result);
}

RUNTIME(cudaGetDriverEntryPoint, (const char *name, void **out, unsigned long long flags, int *status))
{
    return cudaGetDriverEntryPointByVersion(name, out, sim_runtime_abi() == 12 ? 12080 : 13000, flags, status);
}
