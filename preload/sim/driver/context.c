/* SPDX-License-Identifier: Apache-2.0 */
/* Initialisation, contexts and what is current on a thread. */
#define _GNU_SOURCE
#include "sim/driver/driver.h"

#include <stdio.h>
#include <string.h>

struct sim_state sim = {.lock = PTHREAD_MUTEX_INITIALIZER, .progress = PTHREAD_COND_INITIALIZER};

enum { DEPTH = 32 };
static __thread struct {
    struct sim_ctx *stack[DEPTH];
    int depth;
} current;

/* ---- initialisation ---- */

static void before_fork(void)
{
    sim_lock();
}

static void after_fork_parent(void)
{
    sim_unlock();
}

/* As with the real driver, nothing works in a child that was forked after cuInit. */
static void after_fork_child(void)
{
    sim.forked = true;
    pthread_mutex_init(&sim.lock, NULL);
}

CUresult sim_enter(struct sim_counter **counter, const char *name)
{
    if (!*counter) *counter = sim_counter_get(name);
    uint64_t call = *counter ? atomic_fetch_add_explicit(&(*counter)->calls, 1, memory_order_relaxed) + 1 : 0;
    if (sim.forked || !sim.ready) return CUDA_ERROR_NOT_INITIALIZED;
    if (sim_in_host_function()) return CUDA_ERROR_NOT_PERMITTED;
    return sim_faults_on ? sim_fault_check(name, call) : CUDA_SUCCESS;
}

DRIVER(cuInit, (unsigned flags))
{
    sim_counter_get("cuInit")->calls++;
    if (flags) return CUDA_ERROR_INVALID_VALUE;
    if (sim.forked) return CUDA_ERROR_NOT_INITIALIZED;
    if (!sim_config_get()->profile) return CUDA_ERROR_NO_DEVICE;
    sim_lock();
    bool first = !sim.ready;
    sim.ready = true;
    sim_unlock();
    if (first) {
        pthread_atfork(before_fork, after_fork_parent, after_fork_child);
        sim_fault_read();
        sim_report_arm();
    }
    return CUDA_SUCCESS;
}

/* ---- life of a context ---- */

static CUresult ctx_new_locked(int device, bool primary, struct sim_ctx **out)
{
    const struct sim_config *config = sim_config_get();
    struct sim_device *d = &sim.device[device];
    size_t held = d->used + d->foreign + (d->contexts + 1) * config->profile->context_bytes;
    if (held > config->total_bytes) return CUDA_ERROR_OUT_OF_MEMORY;
    struct sim_ctx *ctx = sim_object_new_locked(SIM_CTX);
    if (!ctx) return CUDA_ERROR_OUT_OF_MEMORY;
    ctx->device = device;
    ctx->primary = primary;
    ctx->refs = 1;
    ctx->id = ++sim.next_id;
    ctx->legacy = sim_stream_new_locked(ctx, CU_STREAM_DEFAULT, 0);
    if (!ctx->legacy) {
        sim_object_free_locked(ctx);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    d->contexts++;
    *out = ctx;
    return CUDA_SUCCESS;
}

/* Waits for its work, then takes its allocations, streams and host memory with it. */
static void ctx_destroy_locked(struct sim_ctx *ctx)
{
    sim_ctx_wait_locked(ctx);
    for (struct sim_range *range = sim_range_first_locked(), *next; range; range = next) {
        next = range->next;
        if (range->ctx != ctx || range->kind == SIM_RANGE_RESERVED) continue;
        sim_history_add_locked("destroyed with its context", range->va, range->bytes, range->id);
        sim_allocation_free_locked(range);
    }
    for (struct sim_stream *s = ctx->streams, *next; s; s = next) {
        next = s->next;
        s->listed = false;
        if (s->destroyed) continue; /* by the program; its worker is about to end */
        s->destroyed = true;
        sim_stream_unref_locked(s);
    }
    ctx->streams = NULL;
    sim_clock_clear(&ctx->ended);
    sim.device[ctx->device].contexts--;
    if (ctx->primary) sim.device[ctx->device].primary = NULL;
    sim_pool_relax_locked();
    sim_object_free_locked(ctx);
}

/* ---- what is current ---- */

struct sim_ctx *sim_ctx_peek(void)
{
    return current.depth ? current.stack[current.depth - 1] : NULL;
}

CUresult sim_ctx_current(struct sim_ctx **out)
{
    struct sim_ctx *ctx = sim_ctx_peek();
    if (!ctx) return CUDA_ERROR_INVALID_CONTEXT;
    if (ctx->object.magic == 0) return CUDA_ERROR_CONTEXT_IS_DESTROYED;
    *out = ctx;
    return ctx->sticky;
}

CUresult sim_ctx_fault_locked(struct sim_ctx *ctx, const char *what, uintptr_t va, size_t bytes)
{
    fprintf(stderr, "gml-sim: illegal memory access: %s of [0x%llx, +%zu) on device %d. History, newest first:\n", what,
            (unsigned long long)va, bytes, ctx->device);
    sim_history_print_locked(va, bytes);
    ctx->sticky = CUDA_ERROR_ILLEGAL_ADDRESS;
    return ctx->sticky;
}

static void set_current(struct sim_ctx *ctx)
{
    if (!ctx) {
        if (current.depth) current.depth--;
        return;
    }
    if (!current.depth) current.depth = 1;
    current.stack[current.depth - 1] = ctx;
}

static struct sim_ctx *ctx_get(CUcontext handle)
{
    sim_lock();
    struct sim_ctx *ctx = sim_object_get_locked(SIM_CTX, handle);
    sim_unlock();
    return ctx;
}

DRIVER(cuCtxGetCurrent, (CUcontext * out))
{
    ENTER(cuCtxGetCurrent);
    if (!out) return CUDA_ERROR_INVALID_VALUE;
    *out = (CUcontext)(void *)sim_ctx_peek();
    return CUDA_SUCCESS;
}

DRIVER(cuCtxSetCurrent, (CUcontext handle))
{
    ENTER(cuCtxSetCurrent);
    struct sim_ctx *ctx = handle ? ctx_get(handle) : NULL;
    if (handle && !ctx) return CUDA_ERROR_INVALID_CONTEXT;
    set_current(ctx);
    return CUDA_SUCCESS;
}

DRIVER(cuCtxPushCurrent_v2, (CUcontext handle))
{
    ENTER(cuCtxPushCurrent);
    struct sim_ctx *ctx = ctx_get(handle);
    if (!ctx) return CUDA_ERROR_INVALID_CONTEXT;
    if (current.depth == DEPTH) return CUDA_ERROR_INVALID_VALUE;
    current.stack[current.depth++] = ctx;
    return CUDA_SUCCESS;
}

DRIVER(cuCtxPopCurrent_v2, (CUcontext * out))
{
    ENTER(cuCtxPopCurrent);
    if (!current.depth) return CUDA_ERROR_INVALID_CONTEXT;
    struct sim_ctx *ctx = current.stack[--current.depth];
    if (out) *out = (CUcontext)(void *)ctx;
    return CUDA_SUCCESS;
}

DRIVER(cuCtxGetDevice, (CUdevice * out))
{
    ENTER_CTX(cuCtxGetDevice, ctx);
    if (!out) return CUDA_ERROR_INVALID_VALUE;
    *out = ctx->device;
    return CUDA_SUCCESS;
}

DRIVER(cuCtxGetDevice_v2, (CUdevice * out, CUcontext handle))
{
    ENTER(cuCtxGetDevice_v2);
    struct sim_ctx *ctx = handle ? ctx_get(handle) : sim_ctx_peek();
    if (!ctx) return CUDA_ERROR_INVALID_CONTEXT;
    if (!out) return CUDA_ERROR_INVALID_VALUE;
    *out = ctx->device;
    return CUDA_SUCCESS;
}

DRIVER(cuCtxGetId, (CUcontext handle, unsigned long long *out))
{
    ENTER(cuCtxGetId);
    struct sim_ctx *ctx = handle ? ctx_get(handle) : sim_ctx_peek();
    if (!ctx) return CUDA_ERROR_INVALID_CONTEXT;
    if (!out) return CUDA_ERROR_INVALID_VALUE;
    *out = ctx->id;
    return CUDA_SUCCESS;
}

DRIVER(cuCtxGetFlags, (unsigned *out))
{
    ENTER_CTX(cuCtxGetFlags, ctx);
    if (!out) return CUDA_ERROR_INVALID_VALUE;
    *out = ctx->flags;
    return CUDA_SUCCESS;
}

DRIVER(cuCtxGetApiVersion, (CUcontext handle, unsigned *out))
{
    ENTER(cuCtxGetApiVersion);
    if (handle && !ctx_get(handle)) return CUDA_ERROR_INVALID_CONTEXT;
    if (!out) return CUDA_ERROR_INVALID_VALUE;
    *out = 3020;
    return CUDA_SUCCESS;
}

static CUresult create(CUcontext *out, unsigned flags, CUdevice device)
{
    if (!out) return CUDA_ERROR_INVALID_VALUE;
    if (device < 0 || device >= sim_config_get()->devices) return CUDA_ERROR_INVALID_DEVICE;
    if (current.depth == DEPTH) return CUDA_ERROR_INVALID_VALUE;
    struct sim_ctx *ctx;
    sim_lock();
    CUresult result = ctx_new_locked(device, false, &ctx);
    sim_unlock();
    if (result != CUDA_SUCCESS) return result;
    ctx->flags = flags;
    current.stack[current.depth++] = ctx;
    *out = (CUcontext)(void *)ctx;
    return CUDA_SUCCESS;
}

DRIVER(cuCtxCreate_v2, (CUcontext * out, unsigned flags, CUdevice device))
{
    ENTER(cuCtxCreate);
    return create(out, flags, device);
}

DRIVER(cuCtxCreate_v3, (CUcontext * out, void *affinity, int count, unsigned flags, CUdevice device))
{
    ENTER(cuCtxCreate);
    (void)affinity;
    return count ? CUDA_ERROR_NOT_SUPPORTED : create(out, flags, device);
}

DRIVER(cuCtxCreate_v4, (CUcontext * out, void *params, unsigned flags, CUdevice device))
{
    ENTER(cuCtxCreate);
    return params ? CUDA_ERROR_NOT_SUPPORTED : create(out, flags, device);
}

DRIVER(cuCtxDestroy_v2, (CUcontext handle))
{
    ENTER(cuCtxDestroy);
    struct sim_ctx *ctx = ctx_get(handle);
    if (!ctx || ctx->primary) return CUDA_ERROR_INVALID_CONTEXT;
    sim_lock();
    ctx_destroy_locked(ctx);
    sim_unlock();
    if (sim_ctx_peek() == ctx) current.depth--;
    return CUDA_SUCCESS;
}

DRIVER(cuCtxSynchronize, (void))
{
    ENTER_CTX(cuCtxSynchronize, ctx);
    sim_lock();
    CUresult result = sim_capture_unsafe_locked();
    if (result == CUDA_SUCCESS) {
        sim_ctx_wait_locked(ctx);
        sim_pool_relax_locked();
        sim_breathe_locked(1000);
        result = ctx->sticky;
    }
    sim_unlock();
    return result;
}

DRIVER(cuCtxSynchronize_v2, (CUcontext handle))
{
    ENTER(cuCtxSynchronize_v2);
    sim_lock();
    struct sim_ctx *ctx = sim_object_get_locked(SIM_CTX, handle);
    CUresult result = ctx ? sim_capture_unsafe_locked() : CUDA_ERROR_INVALID_CONTEXT;
    if (result == CUDA_SUCCESS) {
        sim_ctx_wait_locked(ctx);
        result = ctx->sticky;
    }
    sim_unlock();
    return result;
}

/* ---- primary contexts ---- */

static bool device_ok(CUdevice device)
{
    return device >= 0 && device < sim_config_get()->devices;
}

DRIVER(cuDevicePrimaryCtxRetain, (CUcontext * out, CUdevice device))
{
    ENTER(cuDevicePrimaryCtxRetain);
    if (!out) return CUDA_ERROR_INVALID_VALUE;
    if (!device_ok(device)) return CUDA_ERROR_INVALID_DEVICE;
    CUresult result = CUDA_SUCCESS;
    sim_lock();
    struct sim_device *d = &sim.device[device];
    if (d->primary) d->primary->refs++;
    else result = ctx_new_locked(device, true, &d->primary);
    if (result == CUDA_SUCCESS) *out = (CUcontext)(void *)d->primary;
    sim_unlock();
    return result;
}

static CUresult primary_drop(CUdevice device, bool all)
{
    if (!device_ok(device)) return CUDA_ERROR_INVALID_DEVICE;
    sim_lock();
    struct sim_ctx *ctx = sim.device[device].primary;
    CUresult result = ctx || all ? CUDA_SUCCESS : CUDA_ERROR_INVALID_CONTEXT;
    if (ctx && (all || --ctx->refs == 0)) ctx_destroy_locked(ctx);
    sim_unlock();
    return result;
}

DRIVER(cuDevicePrimaryCtxRelease_v2, (CUdevice device))
{
    ENTER(cuDevicePrimaryCtxRelease);
    return primary_drop(device, false);
}

DRIVER(cuDevicePrimaryCtxReset_v2, (CUdevice device))
{
    ENTER(cuDevicePrimaryCtxReset);
    return primary_drop(device, true);
}

DRIVER(cuDevicePrimaryCtxGetState, (CUdevice device, unsigned *flags, int *active))
{
    ENTER(cuDevicePrimaryCtxGetState);
    if (!device_ok(device)) return CUDA_ERROR_INVALID_DEVICE;
    sim_lock();
    if (flags) *flags = 0;
    if (active) *active = sim.device[device].primary != NULL;
    sim_unlock();
    return CUDA_SUCCESS;
}

DRIVER(cuDevicePrimaryCtxSetFlags_v2, (CUdevice device, unsigned flags))
{
    ENTER(cuDevicePrimaryCtxSetFlags);
    (void)flags;
    return device_ok(device) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
}
