/* SPDX-License-Identifier: Apache-2.0 */
/* Link to the driver: found at first use by dlopen, dlsym and cuGetProcAddress, as the real runtime does. */
#define _GNU_SOURCE
#include "sim/runtime/runtime.h"
#include "sim/stub.h"

#include <dlfcn.h>
#include <pthread.h>
#include <string.h>

/* By this symbol others tell that the runtime in this process is the simulated one. */
SIM_EXPORT extern const int gml_sim_runtime;
const int gml_sim_runtime = 1;

static struct driver_table table;
static cudaError_t link_error = cudaErrorInsufficientDriver;
static _Atomic bool linked;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static const struct {
    const char *name;
    int version;
    size_t at;
} wanted[] = {
#define X(name, version, params) {#name, version, offsetof(struct driver_table, name)},
    DRIVER_FUNCTIONS(X)
#undef X
};

/* A function pointer cannot be converted from void * in ISO C, but its bytes can be copied. */
static void store(size_t at, void *symbol)
{
    memcpy((char *)&table + at, &symbol, sizeof symbol);
}

static cudaError_t link_driver(void)
{
    void *library = dlopen("libcuda.so.1", RTLD_NOW);
    if (!library) return cudaErrorInsufficientDriver;
    store(offsetof(struct driver_table, getProcAddress), dlsym(library, "cuGetProcAddress_v2"));
    if (!table.getProcAddress) return cudaErrorInsufficientDriver;
    for (size_t i = 0; i < sizeof wanted / sizeof *wanted; i++) {
        void *symbol = NULL;
        int status = 0;
        CUresult result = table.getProcAddress(wanted[i].name, &symbol, wanted[i].version, 0, &status);
        if (result != CUDA_SUCCESS || !symbol) return cudaErrorInsufficientDriver;
        store(wanted[i].at, symbol);
    }
    store(offsetof(struct driver_table, counter), dlsym(library, "gml_sim_counter"));
    store(offsetof(struct driver_table, stub), dlsym(library, "gml_sim_stub"));
    store(offsetof(struct driver_table, work), dlsym(library, "gml_sim_work"));
    store(offsetof(struct driver_table, launch), dlsym(library, "gml_sim_launch"));
    store(offsetof(struct driver_table, touch), dlsym(library, "gml_sim_touch"));
    store(offsetof(struct driver_table, idle), dlsym(library, "gml_sim_idle"));
    store(offsetof(struct driver_table, known), dlsym(library, "gml_sim_known"));
    store(offsetof(struct driver_table, forget), dlsym(library, "gml_sim_forget"));
    return (cudaError_t)table.cuInit(0);
}

/* No device is an answer that stays; it is not asked for again. */
const struct driver_table *sim_driver(cudaError_t *error)
{
    if (!linked) {
        pthread_mutex_lock(&lock);
        if (!linked) {
            link_error = link_driver();
            linked = true;
        }
        pthread_mutex_unlock(&lock);
    }
    *error = link_error;
    return link_error == cudaSuccess ? &table : NULL;
}

void sim_count(struct sim_cell *cell, const char *name)
{
    if (!cell->calls && table.counter) cell->calls = table.counter(name);
    if (cell->calls) atomic_fetch_add_explicit(cell->calls, 1, memory_order_relaxed);
}

void sim_stub_called(const char *name, int has_outputs)
{
    cudaError_t error;
    sim_driver(&error);
    if (table.stub) table.stub(name, has_outputs);
}

/* ---- the thread's device and context ---- */

static __thread int chosen_device;

int sim_thread_device(void)
{
    CUcontext ctx;
    CUdevice device;
    if (table.cuCtxGetCurrent(&ctx) == CUDA_SUCCESS && ctx && table.cuCtxGetDevice(&device) == CUDA_SUCCESS)
        return device;
    return chosen_device;
}

static CUcontext primary[16];

static cudaError_t use_device(int device)
{
    CUresult result = CUDA_SUCCESS;
    pthread_mutex_lock(&lock);
    int active = 0;
    unsigned flags;
    if (primary[device] && table.cuDevicePrimaryCtxGetState(device, &flags, &active) == CUDA_SUCCESS && !active)
        primary[device] = NULL; /* it was reset behind our back */
    if (!primary[device]) result = table.cuDevicePrimaryCtxRetain(&primary[device], device);
    pthread_mutex_unlock(&lock);
    if (result == CUDA_SUCCESS) result = table.cuCtxSetCurrent(primary[device]);
    return (cudaError_t)result;
}

cudaError_t sim_thread_ready(void)
{
    CUcontext ctx;
    CUdevice device;
    CUresult result = table.cuCtxGetCurrent(&ctx);
    if (result != CUDA_SUCCESS) return (cudaError_t)result;
    if (ctx && table.cuCtxGetDevice(&device) != CUDA_ERROR_CONTEXT_IS_DESTROYED) return cudaSuccess;
    return use_device(chosen_device);
}

RUNTIME(cudaSetDevice, (int device))
{
    BEGIN(cudaSetDevice);
    int count = 0;
    drv->cuDeviceGetCount(&count);
    if (device < 0 || device >= count || device >= 16) return sim_fail(cudaErrorInvalidDevice);
    chosen_device = device;
    return sim_fail(use_device(device));
}

RUNTIME(cudaGetDevice, (int *device))
{
    BEGIN(cudaGetDevice);
    (void)drv;
    if (!device) return sim_fail(cudaErrorInvalidValue);
    *device = sim_thread_device();
    return cudaSuccess;
}

RUNTIME(cudaInitDevice, (int device, unsigned flags, unsigned more))
{
    (void)flags, (void)more;
    return cudaSetDevice(device);
}

RUNTIME(cudaDeviceReset, (void))
{
    BEGIN(cudaDeviceReset);
    int device = sim_thread_device();
    CUresult result = drv->cuDevicePrimaryCtxReset(device);
    pthread_mutex_lock(&lock);
    primary[device] = NULL;
    pthread_mutex_unlock(&lock);
    drv->cuCtxSetCurrent(NULL);
    sim_forget_lost();
    return sim_return(result);
}
