/* SPDX-License-Identifier: Apache-2.0 */
/* Modules, functions and launches: a kernel is a name that takes its place in a stream and does nothing. */
#include "sim/driver/driver.h"
#include "sim/driver/exports.h"

#include <string.h>

struct module {
    struct sim_object object;
    unsigned functions;
};

static CUresult load(void **out)
{
    if (!out) return CUDA_ERROR_INVALID_VALUE;
    sim_lock();
    void *module = sim_object_new_locked(SIM_MODULE);
    sim_unlock();
    if (module) *out = module;
    return module ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

static CUresult unload(const void *handle)
{
    sim_lock();
    void *module = sim_object_get_locked(SIM_MODULE, handle);
    if (module) sim_object_free_locked(module);
    sim_unlock();
    return module ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

static CUresult find(void **out, const void *handle, const char *name)
{
    if (!out || !name) return CUDA_ERROR_INVALID_VALUE;
    sim_lock();
    bool known = sim_object_get_locked(SIM_MODULE, handle) != NULL;
    struct sim_function *function = known ? sim_object_new_locked(SIM_FUNCTION) : NULL;
    if (function) {
        function->result = sim_values_result(name);
        function->plan = sim_plan_of(name);
        *out = function;
    }
    sim_unlock();
    return function ? CUDA_SUCCESS : known ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_ERROR_INVALID_HANDLE;
}

DRIVER(cuModuleLoad, (CUmodule * out, const char *path))
{
    ENTER_CTX(cuModuleLoad, ctx);
    (void)ctx, (void)path;
    return load((void **)out);
}

DRIVER(cuModuleLoadData, (CUmodule * out, const void *image))
{
    ENTER_CTX(cuModuleLoadData, ctx);
    (void)ctx, (void)image;
    return load((void **)out);
}

DRIVER(cuModuleLoadDataEx, (CUmodule * out, const void *image, unsigned count, int *options, void **values))
{
    ENTER_CTX(cuModuleLoadDataEx, ctx);
    (void)ctx, (void)image, (void)count, (void)options, (void)values;
    return load((void **)out);
}

DRIVER(cuModuleLoadFatBinary, (CUmodule * out, const void *image))
{
    ENTER_CTX(cuModuleLoadFatBinary, ctx);
    (void)ctx, (void)image;
    return load((void **)out);
}

DRIVER(cuModuleUnload, (CUmodule module))
{
    ENTER(cuModuleUnload);
    return unload(module);
}

DRIVER(cuModuleGetFunction, (CUfunction * out, CUmodule module, const char *name))
{
    ENTER_CTX(cuModuleGetFunction, ctx);
    (void)ctx;
    return find((void **)out, module, name);
}

DRIVER(cuModuleGetGlobal_v2, (CUdeviceptr * out, size_t *bytes, CUmodule module, const char *name))
{
    ENTER_CTX(cuModuleGetGlobal, ctx);
    (void)ctx, (void)out, (void)bytes, (void)module, (void)name;
    return CUDA_ERROR_NOT_FOUND;
}

DRIVER(cuModuleGetLoadingMode, (int *out))
{
    ENTER(cuModuleGetLoadingMode);
    if (!out) return CUDA_ERROR_INVALID_VALUE;
    *out = 2; /* lazy */
    return CUDA_SUCCESS;
}

DRIVER(cuLibraryLoadData, (CUlibrary * out, const void *code, int *jit, void **jit_values, unsigned jit_count,
                           int *options, void **values, unsigned count))
{
    ENTER(cuLibraryLoadData);
    (void)code, (void)jit, (void)jit_values, (void)jit_count, (void)options, (void)values, (void)count;
    return load((void **)out);
}

DRIVER(cuLibraryUnload, (CUlibrary library))
{
    ENTER(cuLibraryUnload);
    return unload(library);
}

DRIVER(cuLibraryGetKernel, (CUkernel * out, CUlibrary library, const char *name))
{
    ENTER(cuLibraryGetKernel);
    return find((void **)out, library, name);
}

DRIVER(cuLibraryGetModule, (CUmodule * out, CUlibrary library))
{
    ENTER(cuLibraryGetModule);
    if (!out) return CUDA_ERROR_INVALID_VALUE;
    *out = (CUmodule)(void *)library;
    return CUDA_SUCCESS;
}

DRIVER(cuKernelGetFunction, (CUfunction * out, CUkernel kernel))
{
    ENTER(cuKernelGetFunction);
    if (!out) return CUDA_ERROR_INVALID_VALUE;
    *out = (CUfunction)(void *)kernel;
    return CUDA_SUCCESS;
}

/* ---- attributes ---- */

static CUresult get_attribute(int *out, int which, const void *handle)
{
    const struct sim_profile *p = sim_config_get()->profile;
    sim_lock();
    struct sim_function *function = sim_object_get_locked(SIM_FUNCTION, handle);
    int dynamic = function ? function->max_dynamic_shared : 0;
    sim_unlock();
    if (!out || !function) return out ? CUDA_ERROR_INVALID_HANDLE : CUDA_ERROR_INVALID_VALUE;
    switch (which) {
    case 0: *out = 1024; break;
    case 4: *out = 32; break;
    case 5:
    case 6: *out = p->cc_major * 10 + p->cc_minor; break;
    case 8: *out = dynamic ? dynamic : 49152; break;
    default: *out = 0;
    }
    return CUDA_SUCCESS;
}

static CUresult set_attribute(const void *handle, int which, int value)
{
    sim_lock();
    struct sim_function *function = sim_object_get_locked(SIM_FUNCTION, handle);
    if (function && which == 8) function->max_dynamic_shared = value;
    sim_unlock();
    return function ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

DRIVER(cuFuncGetAttribute, (int *out, int which, CUfunction function))
{
    ENTER_CTX(cuFuncGetAttribute, ctx);
    (void)ctx;
    return get_attribute(out, which, function);
}

DRIVER(cuFuncSetAttribute, (CUfunction function, int which, int value))
{
    ENTER_CTX(cuFuncSetAttribute, ctx);
    (void)ctx;
    return set_attribute(function, which, value);
}

DRIVER(cuFuncSetCacheConfig, (CUfunction function, int config))
{
    ENTER_CTX(cuFuncSetCacheConfig, ctx);
    (void)ctx;
    return set_attribute(function, -1, config);
}

DRIVER(cuFuncLoad, (CUfunction function))
{
    ENTER_CTX(cuFuncLoad, ctx);
    (void)ctx;
    return set_attribute(function, -1, 0);
}

DRIVER(cuKernelGetAttribute, (int *out, int which, CUkernel kernel, CUdevice device))
{
    ENTER(cuKernelGetAttribute);
    (void)device;
    return get_attribute(out, which, kernel);
}

DRIVER(cuKernelSetAttribute, (int which, int value, CUkernel kernel, CUdevice device))
{
    ENTER(cuKernelSetAttribute);
    (void)device;
    return set_attribute(kernel, which, value);
}

static CUresult occupancy(int *out, int block_size)
{
    if (!out || block_size < 1) return CUDA_ERROR_INVALID_VALUE;
    *out = block_size > 2048 ? 0 : 2048 / block_size;
    return CUDA_SUCCESS;
}

DRIVER(cuOccupancyMaxActiveBlocksPerMultiprocessor, (int *out, CUfunction function, int block_size, size_t shared))
{
    ENTER(cuOccupancyMaxActiveBlocksPerMultiprocessor);
    (void)function, (void)shared;
    return occupancy(out, block_size);
}

DRIVER(cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags,
       (int *out, CUfunction function, int block_size, size_t shared, unsigned flags))
{
    ENTER(cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags);
    (void)function, (void)shared, (void)flags;
    return occupancy(out, block_size);
}

DRIVER(cuOccupancyMaxActiveClusters, (int *out, CUfunction function, const CUlaunchConfig *config))
{
    ENTER(cuOccupancyMaxActiveClusters);
    (void)function;
    if (!out || !config) return CUDA_ERROR_INVALID_VALUE;
    *out = sim_config_get()->profile->sms;
    return CUDA_SUCCESS;
}

/* A tensor map is opaque and read by kernels alone. */
DRIVER(cuTensorMapEncodeTiled,
       (void *map, int type, uint32_t rank, void *address, const uint64_t *dims, const uint64_t *strides,
        const uint32_t *box, const uint32_t *steps, int interleave, int swizzle, int promotion, int fill))
{
    ENTER(cuTensorMapEncodeTiled);
    (void)type, (void)rank, (void)address, (void)dims, (void)strides, (void)box, (void)steps;
    (void)interleave, (void)swizzle, (void)promotion, (void)fill;
    if (!map) return CUDA_ERROR_INVALID_VALUE;
    memset(map, 0, 128);
    return CUDA_SUCCESS;
}

/* ---- launches ---- */

/* How a kernel is launched. */
struct launch {
    unsigned grid[3], block[3];
    void *const *params;
};

static CUresult launch(struct sim_ctx *ctx, CUfunction handle, CUstream stream_handle, const struct launch *how)
{
    struct sim_stream *stream;
    for (int i = 0; i < 3; i++)
        if (!how->grid[i] || !how->block[i]) return CUDA_ERROR_INVALID_VALUE;
    sim_lock();
    const struct sim_function *function = sim_object_get_locked(SIM_FUNCTION, handle);
    CUresult result = function ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
    if (result == CUDA_SUCCESS) result = sim_stream_get_locked(ctx, stream_handle, &stream);
    if (result == CUDA_SUCCESS) {
        struct sim_op op = {.kind = SIM_OP_KERNEL, .u.kernel = {function, NULL}};
        op.u.kernel.computation = sim_arguments_read_locked(&function->plan, how->params, how->grid, how->block);
        result = sim_submit_locked(stream, &op);
        if (stream->capture) sim_computation_unref_locked(op.u.kernel.computation); /* the graph has its own */
    }
    if (result == CUDA_SUCCESS) sim_values_launched_locked(function);
    sim_unlock();
    return result;
}

DRIVER(cuLaunchKernel,
       (CUfunction function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x, unsigned block_y,
        unsigned block_z, unsigned shared, CUstream stream, void **params, void **extra))
{
    ENTER_CTX(cuLaunchKernel, ctx);
    (void)shared, (void)extra;
    const struct launch how = {{grid_x, grid_y, grid_z}, {block_x, block_y, block_z}, params};
    return launch(ctx, function, stream, &how);
}

DRIVER(cuLaunchCooperativeKernel,
       (CUfunction function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x, unsigned block_y,
        unsigned block_z, unsigned shared, CUstream stream, void **params))
{
    ENTER_CTX(cuLaunchCooperativeKernel, ctx);
    (void)shared;
    const struct launch how = {{grid_x, grid_y, grid_z}, {block_x, block_y, block_z}, params};
    return launch(ctx, function, stream, &how);
}

DRIVER(cuLaunchKernelEx, (const CUlaunchConfig *config, CUfunction function, void **params, void **extra))
{
    ENTER_CTX(cuLaunchKernelEx, ctx);
    (void)extra;
    if (!config) return CUDA_ERROR_INVALID_VALUE;
    const struct launch how = {{config->gridDimX, config->gridDimY, config->gridDimZ},
                               {config->blockDimX, config->blockDimY, config->blockDimZ}, params};
    return launch(ctx, function, config->hStream, &how);
}

/* ---- what a simulated library (cuBLAS, cuDNN, …) does on a stream ---- */

static int library_work(void *stream_handle, const struct sim_op *op)
{
    struct sim_ctx *ctx;
    struct sim_stream *stream;
    CUresult result = sim_ctx_current(&ctx);
    if (result != CUDA_SUCCESS) return (int)result;
    sim_lock();
    result = sim_stream_get_locked(ctx, stream_handle, &stream);
    if (result == CUDA_SUCCESS) result = sim_submit_locked(stream, op);
    if (result == CUDA_SUCCESS && op->kind == SIM_OP_KERNEL) sim_values_launched_locked(NULL);
    sim_unlock();
    return (int)result;
}

int gml_sim_launch(void *stream, int writes)
{
    const struct sim_op op = {.kind = writes ? SIM_OP_KERNEL : SIM_OP_EMPTY};
    return library_work(stream, &op);
}

int gml_sim_touch(const void *pointer, size_t bytes, void *stream)
{
    const struct sim_op op = {.kind = SIM_OP_TOUCH, .u.touch = {(uintptr_t)pointer, bytes}};
    return bytes ? library_work(stream, &op) : 0;
}

int gml_sim_idle(void *stream_handle)
{
    struct sim_ctx *ctx;
    struct sim_stream *stream;
    if (sim_ctx_current(&ctx) != CUDA_SUCCESS) return 1;
    sim_lock();
    bool idle = sim_stream_get_locked(ctx, stream_handle, &stream) != CUDA_SUCCESS || sim_stream_idle_locked(stream);
    sim_unlock();
    return idle;
}
