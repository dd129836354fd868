/* SPDX-License-Identifier: Apache-2.0 */
/* The runtime's allocation functions: served from the heap, or forwarded and counted.
 *
 * A request the heap cannot place goes to the real function as the last rung of its ladder: a success
 * there is a forwarded block, a failure leaves the runtime's own last error behind. */
#define _GNU_SOURCE
#include "interpose/shim.h"

#include "interpose/timing.h"

/* More than any device has, below the limits of arithmetic: the real function refuses it as out of
 * memory and sets its last error. */
#define IMPOSSIBLE_BYTES ((size_t)1 << 46)

typedef enum request_kind { PLAIN, ASYNC, ASYNC_PTSZ, POOL, POOL_PTSZ, KIND_COUNT } request_kind;

typedef struct request {
    request_kind kind;
    const gml_real *real;
    bool from_torch;
    void **out;
    size_t bytes;
    cudaStream_t stream; /* as the program named it */
    cudaMemPool_t pool;
} request;

static bool is_async(const request *r)
{
    return r->kind != PLAIN;
}

static cudaStream_t stream_of(const request *r)
{
    return gml_stream_normal(r->stream, r->kind == ASYNC_PTSZ || r->kind == POOL_PTSZ);
}

/* The real function for a request, with another target and size. */
static cudaError_t call_real(const request *r, void **out, size_t bytes)
{
    const gml_real *real = r->real;
    switch (r->kind) {
    case PLAIN:
        return real->cudaMalloc(out, bytes);
    case ASYNC:
        return real->cudaMallocAsync(out, bytes, r->stream);
    case ASYNC_PTSZ:
        return real->cudaMallocAsync_ptsz(out, bytes, r->stream);
    case POOL:
        return real->cudaMallocFromPoolAsync(out, bytes, r->pool, r->stream);
    case POOL_PTSZ:
        return real->cudaMallocFromPoolAsync_ptsz(out, bytes, r->pool, r->stream);
    case KIND_COUNT:
        break;
    }
    return cudaErrorUnknown;
}

static bool real_has(const request *r)
{
    const gml_real *real = r->real;
    const bool has[KIND_COUNT] = {
        [PLAIN] = real != NULL && real->cudaMalloc != NULL,
        [ASYNC] = real != NULL && real->cudaMallocAsync != NULL,
        [ASYNC_PTSZ] = real != NULL && real->cudaMallocAsync_ptsz != NULL,
        [POOL] = real != NULL && real->cudaMallocFromPoolAsync != NULL,
        [POOL_PTSZ] = real != NULL && real->cudaMallocFromPoolAsync_ptsz != NULL,
    };
    return has[r->kind];
}

/* Tells of a block that the program got. A segment of PyTorch's own cache is nobody's: its blocks are
 * told of as they are reported. */
static void charge(gml_shim *shim, gml_shim_device *device, const request *r)
{
    if (!r->from_torch || r->kind != PLAIN || shim->uncached)
        gml_shim_born(shim, device, (uintptr_t)*r->out, r->bytes);
}

/* Tells of a request that could not be met. PyTorch's native allocator asks cudaMalloc first and frees its cache when
 * that fails: what fails in the end it reports itself. With its cache off, it fails at once and reports nothing. */
static void note_failure(gml_shim *shim, gml_shim_device *device, const request *r, gml_oom_source source)
{
    if (r->from_torch && r->kind == PLAIN && !shim->uncached)
        gml_telemetry_event(shim->telemetry, GML_EVENT_FLUSH, (uint64_t)device->ordinal, 1, r->bytes, NULL);
    else
        gml_shim_record_oom(shim, device, r->bytes,
                            is_async(r) ? (uint64_t)(uintptr_t)stream_of(r) : GML_STREAM_NONE, source);
}

/* ---- forwarding ---- */

static cudaError_t forward(gml_shim *shim, int ordinal, const request *r)
{
    cudaError_t before = gml_shim_last_error(r->real);
    uint64_t began_ns = is_async(r) ? 0 : gml_timing_of_forwarded(shim);
    cudaError_t error = call_real(r, r->out, r->bytes);
    uint64_t took_ns = began_ns == 0 ? 0 : gml_os_monotonic_ns() - began_ns;
    gml_telemetry_add(&shim->telemetry->forwarded_calls, 1);
    gml_shim_device *device = gml_shim_watch(shim, ordinal);
    if (device == NULL)
        return error;
    if (took_ns != 0)
        gml_latency_add(device->block->driver_latency, took_ns, 1);
    if (error == cudaErrorMemoryAllocation && gml_shim_make_room(shim, device)) {
        error = call_real(r, r->out, r->bytes);
        if (error == cudaSuccess)
            gml_shim_forgive(r->real, before);
    }
    if (error == cudaSuccess) {
        gml_shim_count(shim, device->ordinal, (uintptr_t)*r->out, r->bytes);
        charge(shim, device, r);
    }
    if (error == cudaErrorMemoryAllocation)
        note_failure(shim, device, r, GML_OOM_DRIVER);
    gml_shim_tick(shim, device);
    return error;
}

/* ---- serving ---- */

/* Out of memory under --limit: the real function is not asked for the memory, only for its refusal. */
static cudaError_t refuse(const request *r)
{
    void *unexpected = NULL;
    if (call_real(r, &unexpected, IMPOSSIBLE_BYTES) == cudaSuccess)
        (void)r->real->cudaFree(unexpected);
    return cudaErrorMemoryAllocation;
}

static cudaError_t last_rung(gml_shim *shim, gml_shim_device *device, const request *r)
{
    cudaError_t error = cudaErrorMemoryAllocation;
    if (shim->limit_bytes != 0) {
        error = refuse(r);
    } else {
        error = call_real(r, r->out, r->bytes);
        gml_telemetry_add(&shim->telemetry->forwarded_calls, 1);
        if (error == cudaSuccess) {
            gml_telemetry_add(&device->block->stats.ladder_forward, 1);
            gml_shim_count(shim, device->ordinal, (uintptr_t)*r->out, r->bytes);
            charge(shim, device, r);
        }
    }
    if (error == cudaErrorMemoryAllocation)
        note_failure(shim, device, r, GML_OOM_HEAP);
    gml_shim_tick(shim, device);
    return error;
}

static cudaError_t serve(gml_shim *shim, gml_shim_device *device, const request *r)
{
    uintptr_t address = 0;
    gml_stream stream = is_async(r) ? (uint64_t)(uintptr_t)stream_of(r) : GML_STREAM_NONE;
    gml_api api = is_async(r) ? GML_API_ASYNC : GML_API_PLAIN;
    uint64_t began_ns = gml_timing_begin();
    gml_status status = gml_heap_alloc(device->heap, r->bytes, stream, api, &address);
    gml_timing_end(device, began_ns, device->block->alloc_latency);
    if (status == GML_OK) {
        *r->out = (void *)address;
        charge(shim, device, r);
        gml_shim_after_served(shim, device);
        return cudaSuccess;
    }
    if (status == GML_OUT_OF_MEMORY || status == GML_OUT_OF_ADDRESSES)
        return last_rung(shim, device, r);
    if (status == GML_INTERNAL)
        gml_shim_degrade(shim, gml_status_text(status));
    /* Whatever else is wrong with the device, the real function will say it in its own words. */
    return forward(shim, device->ordinal, r);
}

/* A stream-ordered request belongs to the device of its stream, whatever device is current. Asked only
 * once the process has used several. */
static gml_shim_device *stream_device(gml_shim *shim, gml_shim_device *current, cudaStream_t stream)
{
    CUcontext context = NULL;
    int end = atomic_load_explicit(&shim->device_end, memory_order_relaxed);
    if (end <= 1 || stream == NULL || stream == CU_STREAM_PER_THREAD || shim->driver.stream_context == NULL ||
        shim->driver.stream_context(stream, &context) != CUDA_SUCCESS)
        return current;
    for (int i = 0; i < end; i++)
        if (gml_shim_state(&shim->devices[i]) != GML_DEVICE_NEW && shim->devices[i].cuda.context == context)
            return &shim->devices[i];
    return current;
}

/* The device that serves the request; NULL: it is the real function's. */
static gml_shim_device *server_of(gml_shim *shim, int ordinal, const request *r)
{
    gml_shim_device *device = &shim->devices[ordinal];
    if (shim->mode != GML_SHIM_SERVE || !shim->has_driver || gml_shim_degraded(shim))
        return NULL;
    if (r->kind == POOL || r->kind == POOL_PTSZ)
        device = gml_pool_device(shim, r->pool);
    else if (is_async(r))
        device = stream_device(shim, device, stream_of(r));
    if (device == NULL || (is_async(r) && gml_capture_on(shim, stream_of(r))))
        return NULL;
    if ((r->kind == ASYNC || r->kind == ASYNC_PTSZ) && atomic_load_explicit(&device->own_pool, memory_order_relaxed))
        return NULL;
    /* Another device than the current one is not opened here: its context may not exist. */
    return device->ordinal == ordinal || gml_shim_state(device) == GML_DEVICE_SERVING ? device : NULL;
}

static cudaError_t allocate_inside(gml_shim *shim, const request *r)
{
    int ordinal = 0;
    if (r->real->cudaGetDevice == NULL || r->real->cudaGetDevice(&ordinal) != cudaSuccess || ordinal < 0 ||
        ordinal >= GML_SHIM_DEVICES)
        return call_real(r, r->out, r->bytes);
    if (is_async(r))
        gml_telemetry_set(&shim->telemetry->async_seen, 1);
    else if (shim->tensors && r->from_torch && gml_telemetry_get(&shim->telemetry->async_seen) == 0)
        gml_shim_say(shim, GML_SAID_SEGMENTS,
                     "PyTorch's own caching allocator is on: only its segments reach gml-run, which gains little");
    gml_shim_device *device = server_of(shim, ordinal, r);
    if (device == NULL)
        return forward(shim, ordinal, r);
    cudaError_t error = gml_shim_ready(shim, r->real, device);
    if (error != cudaSuccess)
        return error;
    if (gml_shim_state(device) != GML_DEVICE_SERVING)
        return forward(shim, ordinal, r);
    return serve(shim, device, r);
}

static cudaError_t allocate(request *r, const void *return_address)
{
    gml_caller caller = gml_lookup_caller(return_address);
    r->real = caller.real;
    r->from_torch = caller.is_torch;
    if (!real_has(r))
        return cudaErrorInsufficientDriver;
    gml_shim *shim = NULL;
    if (r->out == NULL || r->bytes == 0 || gml_shim_inside() || (shim = gml_shim_get()) == NULL)
        return call_real(r, r->out, r->bytes);
    gml_this_thread.depth++;
    cudaError_t error = allocate_inside(shim, r);
    gml_this_thread.depth--;
    return error;
}

/* ---- the hooks ---- */

#define ALLOCATE(...)                                              \
    do {                                                           \
        request r = {__VA_ARGS__};                                 \
        return allocate(&r, __builtin_return_address(0));          \
    } while (0)

cudaError_t cudaMalloc(void **out, size_t bytes)
{
    ALLOCATE(.kind = PLAIN, .out = out, .bytes = bytes);
}

cudaError_t cudaMallocAsync(void **out, size_t bytes, cudaStream_t stream)
{
    ALLOCATE(.kind = ASYNC, .out = out, .bytes = bytes, .stream = stream);
}

cudaError_t cudaMallocAsync_ptsz(void **out, size_t bytes, cudaStream_t stream)
{
    ALLOCATE(.kind = ASYNC_PTSZ, .out = out, .bytes = bytes, .stream = stream);
}

cudaError_t cudaMallocFromPoolAsync(void **out, size_t bytes, cudaMemPool_t pool, cudaStream_t stream)
{
    ALLOCATE(.kind = POOL, .out = out, .bytes = bytes, .pool = pool, .stream = stream);
}

cudaError_t cudaMallocFromPoolAsync_ptsz(void **out, size_t bytes, cudaMemPool_t pool, cudaStream_t stream)
{
    ALLOCATE(.kind = POOL_PTSZ, .out = out, .bytes = bytes, .pool = pool, .stream = stream);
}
