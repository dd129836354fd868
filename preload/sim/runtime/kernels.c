/* SPDX-License-Identifier: Apache-2.0 */
/* Kernels of the program: what the compiler's generated code registers, and the driver function of each.
 *
 * A CUDA build of PyTorch registers some 25,000 kernels while it is loaded and launches a few hundred, so
 * registration only notes the name, which lives as long as its library; the function is made at the first
 * launch. A library that is loaded where another one was registers its kernels anew. */
#include "sim/runtime/runtime.h"

#include <pthread.h>
#include <stdlib.h>

struct kernel {
    const void *host; /* the address that the program launches; NULL: an empty place */
    const char *name;
    CUfunction function;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct kernel *table; /* open addressing, at most half full */
static size_t count, room;

static struct kernel *place(struct kernel *in, size_t places, const void *host)
{
    size_t at = (((uintptr_t)host >> 4) * 0x9e3779b97f4a7c15u >> 20) & (places - 1);
    while (in[at].host && in[at].host != host) at = (at + 1) & (places - 1);
    return &in[at];
}

static bool make_room_locked(void)
{
    if (count * 2 < room) return true;
    size_t wanted = room ? room * 2 : 4096;
    struct kernel *grown = calloc(wanted, sizeof *grown);
    if (!grown) return false;
    for (size_t i = 0; i < room; i++)
        if (table[i].host) *place(grown, wanted, table[i].host) = table[i];
    free(table);
    table = grown;
    room = wanted;
    return true;
}

/* NULL without memory. */
static struct kernel *kernel_locked(const void *host)
{
    if (!make_room_locked()) return NULL;
    struct kernel *kernel = place(table, room, host);
    if (!kernel->host) {
        *kernel = (struct kernel){host, "kernel", NULL};
        count++;
    }
    return kernel;
}

/* ---- registration; nothing else may be done this early ---- */

static int module_token;

SIM_ENTRY(void **, __cudaRegisterFatBinary, (void *binary))
{
    static void *handle = &module_token;
    (void)binary;
    return &handle;
}

SIM_ENTRY(void, __cudaRegisterFatBinaryEnd, (void **handle))
{
    (void)handle;
}

SIM_ENTRY(void, __cudaUnregisterFatBinary, (void **handle))
{
    (void)handle;
}

SIM_ENTRY(char, __cudaInitModule, (void **handle))
{
    (void)handle;
    return 1;
}

SIM_ENTRY(void, __cudaRegisterVar, (void **handle, char *host, char *device, const char *name, int external,
                                    size_t bytes, int constant, int global))
{
    (void)handle, (void)host, (void)device, (void)name, (void)external, (void)bytes, (void)constant, (void)global;
}

SIM_ENTRY(void, __cudaRegisterFunction, (void **handle, const char *host, char *device, const char *name, int limit,
                                         void *tid, void *bid, void *block, void *grid, int *warp))
{
    (void)handle, (void)device, (void)limit;
    (void)tid, (void)bid, (void)block, (void)grid, (void)warp;
    if (!host || !name) return;
    pthread_mutex_lock(&lock);
    struct kernel *kernel = kernel_locked(host);
    if (kernel) {
        kernel->name = name;
        kernel->function = NULL;
    }
    pthread_mutex_unlock(&lock);
}

/* ---- functions ---- */

/* One library of the driver stands for all code of the program. */
static CUfunction load_locked(const struct driver_table *drv, const char *name)
{
    static CUlibrary library;
    static const char image[] = "simulated";
    CUkernel kernel;
    CUfunction function = NULL;
    if (!library && drv->cuLibraryLoadData(&library, image, NULL, NULL, 0, NULL, NULL, 0) != CUDA_SUCCESS) return NULL;
    if (drv->cuLibraryGetKernel(&kernel, library, name) == CUDA_SUCCESS) drv->cuKernelGetFunction(&function, kernel);
    return function;
}

CUfunction sim_kernel_function(const struct driver_table *drv, const void *host)
{
    pthread_mutex_lock(&lock);
    struct kernel *kernel = kernel_locked(host);
    if (kernel && !kernel->function) kernel->function = load_locked(drv, kernel->name);
    CUfunction function = kernel ? kernel->function : NULL;
    pthread_mutex_unlock(&lock);
    return function;
}
