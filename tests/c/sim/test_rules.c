/* SPDX-License-Identifier: Apache-2.0 */
/* Rules of contexts, streams, events, host memory and access that an allocator could break, one a test, each from
 * the description of the call in the driver API reference. */
#include "support.h"

#include <stdlib.h>

CUresult cuCtxEnablePeerAccess(CUcontext peer, unsigned flags);
CUresult cuCtxDisablePeerAccess(CUcontext peer);
CUresult cuDevicePrimaryCtxRelease_v2(CUdevice device);
CUresult cuEventElapsedTime_v2(float *ms, CUevent first, CUevent second);
CUresult cuMemFreeHost(void *memory);
CUresult cuMemHostUnregister(void *memory);
CUresult cuMemGetAccess(unsigned long long *flags, const CUmemLocation *location, CUdeviceptr va);
CUresult cuMemAllocFromPoolAsync(CUdeviceptr *va, size_t bytes, CUmemoryPool pool, CUstream stream);
CUresult cuMemAllocPitch_v2(CUdeviceptr *va, size_t *pitch, size_t width, size_t height, unsigned element);
CUresult cuMemPoolCreate(CUmemoryPool *pool, const CUmemPoolProps *props);
CUresult cuMemPoolDestroy(CUmemoryPool pool);
CUresult cuMemcpyDtoD_v2(CUdeviceptr dst, CUdeviceptr src, size_t bytes);
CUresult cuMemcpyPeer(CUdeviceptr dst, CUcontext dst_ctx, CUdeviceptr src, CUcontext src_ctx, size_t bytes);
CUresult cuMemcpyPeerAsync(CUdeviceptr dst, CUcontext dst_ctx, CUdeviceptr src, CUcontext src_ctx, size_t bytes,
                           CUstream stream);
CUresult cuStreamAddCallback(CUstream stream, CUstreamCallback callback, void *user, unsigned flags);

/* ---- contexts ---- */

static void test_the_stack_of_contexts(void)
{
    CUcontext out;
    CHECK_EQUAL(cuInit(0), 0);
    CHECK_EQUAL(cuCtxPopCurrent_v2(&out), CUDA_ERROR_INVALID_CONTEXT);
    CUcontext primary = use_device();
    CHECK_EQUAL(cuCtxSetCurrent(NULL), 0); /* pops it */
    CHECK_EQUAL(cuCtxSynchronize(), CUDA_ERROR_INVALID_CONTEXT);
    CHECK_EQUAL(cuCtxPushCurrent_v2(primary), 0);
    CHECK_EQUAL(cuCtxSynchronize(), 0);
    CHECK_EQUAL(cuCtxPopCurrent_v2(&out), 0);
    CHECK(out == primary);
}

/* Destroyed while it is current elsewhere in the stack: it stays there, and every call says so. */
static void test_a_destroyed_context_is_told(void)
{
    CUcontext first, second;
    CHECK_EQUAL(cuInit(0), 0);
    CHECK_EQUAL(cuCtxCreate_v2(&first, 0, 0), 0);
    CHECK_EQUAL(cuCtxCreate_v2(&second, 0, 0), 0);
    CHECK_EQUAL(cuCtxDestroy_v2(first), 0);
    CHECK_EQUAL(cuCtxSynchronize(), 0);
    CHECK_EQUAL(cuCtxDestroy_v2(second), 0);
    CHECK_EQUAL(cuCtxSynchronize(), CUDA_ERROR_CONTEXT_IS_DESTROYED);
    CHECK_EQUAL(cuCtxDestroy_v2(first), CUDA_ERROR_INVALID_CONTEXT);
}

static void test_primary_contexts_count_their_users(void)
{
    CUdeviceptr va;
    CUcontext again;
    use_device();
    CHECK_EQUAL(cuDevicePrimaryCtxRetain(&again, 0), 0);
    CHECK_EQUAL(cuMemAlloc_v2(&va, CHUNK), 0);
    CHECK_EQUAL(cuDevicePrimaryCtxRelease_v2(0), 0);
    CHECK_EQUAL(gml_sim_used_bytes(0), CHUNK);
    CHECK_EQUAL(cuDevicePrimaryCtxRelease_v2(0), 0);
    CHECK_EQUAL(gml_sim_used_bytes(0), 0); /* its memory went with the last user */
    CHECK_EQUAL(cuDevicePrimaryCtxRelease_v2(0), CUDA_ERROR_INVALID_CONTEXT);
}

static void test_peers(void)
{
    CUcontext other, own = use_device();
    CHECK_EQUAL(cuDevicePrimaryCtxRetain(&other, 1), 0);
    CHECK_EQUAL(cuCtxDisablePeerAccess(other), CUDA_ERROR_PEER_ACCESS_NOT_ENABLED);
    CHECK_EQUAL(cuCtxEnablePeerAccess(other, 1), CUDA_ERROR_INVALID_VALUE);
    CHECK_EQUAL(cuCtxEnablePeerAccess(other, 0), 0);
    CHECK_EQUAL(cuCtxEnablePeerAccess(other, 0), CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED);
    CHECK_EQUAL(cuCtxEnablePeerAccess(own, 0), CUDA_ERROR_INVALID_CONTEXT);
    CHECK_EQUAL(cuCtxDisablePeerAccess(other), 0);
}

/* A copy between peers goes through both devices; any other reaches memory of the other device with access alone. */
static void test_copies_between_peers(void)
{
    CUdeviceptr there;
    CUcontext other, own = use_device();
    CUmemGenericAllocationHandle handle;
    CUdeviceptr here = mapped(CHUNK, &handle);
    unsigned char back = 0;
    CHECK_EQUAL(cuDevicePrimaryCtxRetain(&other, 1), 0);
    CHECK_EQUAL(cuCtxSetCurrent(other), 0);
    CHECK_EQUAL(cuMemAlloc_v2(&there, CHUNK), 0);
    CHECK_EQUAL(cuMemsetD8_v2(there, 7, CHUNK), 0);
    CHECK_EQUAL(cuMemcpyPeer(here, own, there, other, 4096), 0);
    CHECK_EQUAL(cuMemcpyPeerAsync(there, other, here, own, 4096, NULL), 0);
    CHECK_EQUAL(cuCtxSynchronize(), 0);
    CHECK_EQUAL(cuMemcpyDtoD_v2(there, here, 4096), CUDA_ERROR_ILLEGAL_ADDRESS);
    CHECK_EQUAL(cuCtxSetCurrent(own), 0);
    CHECK_EQUAL(cuMemcpyDtoH_v2(&back, here + 4095, 1), 0);
    CHECK_EQUAL(back, 7);
}

/* ---- streams ---- */

static void test_default_streams_cannot_be_destroyed(void)
{
    use_device();
    CHECK_EQUAL(cuStreamDestroy_v2(NULL), CUDA_ERROR_INVALID_HANDLE);
    CHECK_EQUAL(cuStreamDestroy_v2(CU_STREAM_LEGACY), CUDA_ERROR_INVALID_HANDLE);
    CHECK_EQUAL(cuStreamDestroy_v2(CU_STREAM_PER_THREAD), CUDA_ERROR_INVALID_HANDLE);
    CHECK_EQUAL(cuStreamSynchronize(CU_STREAM_PER_THREAD), 0);
}

static void callback(CUstream stream, CUresult status, void *user)
{
    (void)stream, (void)status, (void)user;
}

static void test_flags_of_streams(void)
{
    CUstream stream;
    use_device();
    CHECK_EQUAL(cuStreamCreate(&stream, 2), CUDA_ERROR_INVALID_VALUE);
    CHECK_EQUAL(cuStreamAddCallback(NULL, callback, NULL, 1), CUDA_ERROR_INVALID_VALUE);
    CHECK_EQUAL(cuStreamWaitEvent(NULL, event_new(), 2), CUDA_ERROR_INVALID_VALUE);
}

static CUresult answers[3];

static void call_the_driver(void *user)
{
    CUdeviceptr va;
    answers[0] = cuMemAlloc_v2(&va, CHUNK);
    answers[1] = cuStreamSynchronize(user);
    answers[2] = cuCtxSynchronize();
}

static void test_host_functions_must_not_call_the_driver(void)
{
    use_device();
    CUstream stream = stream_new();
    CHECK_EQUAL(cuLaunchHostFunc(stream, call_the_driver, stream), 0);
    CHECK_EQUAL(cuStreamSynchronize(stream), 0);
    for (int i = 0; i < 3; i++) CHECK_EQUAL(answers[i], CUDA_ERROR_NOT_PERMITTED);
}

/* ---- events ---- */

static void test_an_event_that_was_never_recorded_has_happened(void)
{
    use_device();
    CUevent event = event_new();
    CHECK_EQUAL(cuEventQuery(event), 0);
    CHECK_EQUAL(cuEventSynchronize(event), 0);
    CHECK_EQUAL(cuStreamWaitEvent(stream_new(), event, 0), 0);
}

static void test_times_between_events(void)
{
    float ms;
    CUevent first, second, plain;
    use_device();
    CUstream stream = stream_new();
    CHECK_EQUAL(cuEventCreate(&first, 0), 0);
    CHECK_EQUAL(cuEventCreate(&second, 0), 0);
    CHECK_EQUAL(cuEventCreate(&plain, CU_EVENT_DISABLE_TIMING), 0);
    CHECK_EQUAL(cuEventElapsedTime_v2(&ms, first, second), CUDA_ERROR_INVALID_HANDLE); /* never recorded */
    CHECK_EQUAL(cuEventRecord(first, stream), 0);
    keep_busy(stream, 30);
    CHECK_EQUAL(cuEventRecord(second, stream), 0);
    CHECK_EQUAL(cuEventRecord(plain, stream), 0);
    CHECK_EQUAL(cuEventElapsedTime_v2(&ms, first, second), CUDA_ERROR_NOT_READY);
    CHECK_EQUAL(cuEventElapsedTime_v2(&ms, first, plain), CUDA_ERROR_INVALID_HANDLE);
    CHECK_EQUAL(cuStreamSynchronize(stream), 0);
    CHECK_EQUAL(cuEventElapsedTime_v2(&ms, first, second), 0);
    CHECK(ms >= 29);
}

static void test_events_belong_to_their_context(void)
{
    CUcontext other;
    use_device();
    CUevent event = event_new();
    CHECK_EQUAL(cuCtxCreate_v2(&other, 0, 0), 0);
    CUstream stream = stream_new();
    CHECK_EQUAL(cuEventRecord(event, stream), CUDA_ERROR_INVALID_HANDLE);
    CHECK_EQUAL(cuStreamWaitEvent(stream, event, 0), 0); /* waiting across contexts is legal */
}

static void test_flags_and_end_of_events(void)
{
    CUevent event;
    use_device();
    CHECK_EQUAL(cuEventCreate(&event, 8), CUDA_ERROR_INVALID_VALUE);
    CHECK_EQUAL(cuEventCreate(&event, CU_EVENT_INTERPROCESS), CUDA_ERROR_INVALID_VALUE); /* with timing */
    CHECK_EQUAL(cuEventCreate(&event, 0), 0);
    CUstream stream = stream_new();
    keep_busy(stream, 20);
    CHECK_EQUAL(cuEventRecord(event, stream), 0);
    CHECK_EQUAL(cuEventDestroy_v2(event), 0); /* at once, though it has not happened */
    CHECK_EQUAL(cuEventQuery(event), CUDA_ERROR_INVALID_HANDLE);
    CHECK_EQUAL(cuEventDestroy_v2(event), CUDA_ERROR_INVALID_HANDLE);
    CHECK_EQUAL(cuStreamSynchronize(stream), 0);
}

/* ---- memory ---- */

static void test_handles_are_released_once(void)
{
    use_device();
    CUmemGenericAllocationHandle handle = create(CHUNK), none;
    CUdeviceptr plain;
    CHECK_EQUAL(cuMemRelease(handle), 0);
    CHECK_EQUAL(cuMemRelease(handle), CUDA_ERROR_INVALID_VALUE);
    CHECK_EQUAL(cuMemRelease(0), CUDA_ERROR_INVALID_VALUE);
    CHECK_EQUAL(cuMemAlloc_v2(&plain, CHUNK), 0);
    CHECK_EQUAL(cuMemRetainAllocationHandle(&none, (void *)(uintptr_t)plain), CUDA_ERROR_INVALID_VALUE);
}

static void test_mapped_memory_is_not_freed_as_an_allocation(void)
{
    CUmemGenericAllocationHandle handle;
    use_device();
    CUdeviceptr va = mapped(CHUNK, &handle);
    CHECK_EQUAL(cuMemFree_v2(va), CUDA_ERROR_INVALID_VALUE);
    CHECK_EQUAL(cuMemFreeAsync(va, NULL), CUDA_ERROR_INVALID_VALUE);
}

static void test_access_is_as_it_was_set(void)
{
    CUmemGenericAllocationHandle handle;
    use_device();
    CUdeviceptr va = mapped(CHUNK, &handle), free_va = reserve(CHUNK);
    CUmemAccessDesc desc = {.location = {CU_MEM_LOCATION_TYPE_DEVICE, 0}, .flags = CU_MEM_ACCESS_FLAGS_PROT_READ};
    unsigned long long flags = 7;
    char byte;
    CHECK_EQUAL(cuMemGetAccess(&flags, &desc.location, free_va), CUDA_ERROR_INVALID_VALUE);
    CHECK_EQUAL(cuMemSetAccess(va, CHUNK, &desc, 0), CUDA_ERROR_INVALID_VALUE);
    CHECK_EQUAL(cuMemSetAccess(va, CHUNK, &desc, 1), 0);
    CHECK_EQUAL(cuMemGetAccess(&flags, &desc.location, va), 0);
    CHECK_EQUAL(flags, CU_MEM_ACCESS_FLAGS_PROT_READ);
    CHECK_EQUAL(cuMemcpyDtoH_v2(&byte, va, 1), 0);
    CHECK_EQUAL(cuMemsetD8_v2(va, 1, 1), CUDA_ERROR_ILLEGAL_ADDRESS); /* it may be read only */
}

static void test_bad_access(void)
{
    CUmemGenericAllocationHandle handle;
    use_device();
    CUdeviceptr va = mapped(CHUNK, &handle);
    CUmemAccessDesc desc = {.location = {CU_MEM_LOCATION_TYPE_DEVICE, 5}, .flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    CHECK_EQUAL(cuMemSetAccess(va, CHUNK, &desc, 1), CUDA_ERROR_INVALID_VALUE);
    desc.location.id = 0;
    desc.flags = 2;
    CHECK_EQUAL(cuMemSetAccess(va, CHUNK, &desc, 1), CUDA_ERROR_INVALID_VALUE);
}

static void test_host_memory(void)
{
    void *pinned;
    use_device();
    char *pages = aligned_alloc(4096, 8192);
    CHECK_EQUAL(cuMemHostRegister_v2(pages, 8192, 0), 0);
    CHECK_EQUAL(cuMemHostRegister_v2(pages + 4096, 4096, 0), CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED);
    CHECK_EQUAL(cuMemFreeHost(pages), CUDA_ERROR_INVALID_VALUE);
    CHECK_EQUAL(cuMemHostUnregister(pages), 0);
    CHECK_EQUAL(cuMemHostUnregister(pages), CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED);
    free(pages);
    CHECK_EQUAL(cuMemHostAlloc(&pinned, 8192, 0), 0);
    CHECK_EQUAL(cuMemHostUnregister(pinned), CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED);
    CHECK_EQUAL(cuMemFreeHost((char *)pinned + 4096), CUDA_ERROR_INVALID_VALUE);
    CHECK_EQUAL(cuMemFreeHost(pinned), 0);
}

static void test_stream_ordered_memory(void)
{
    CUdeviceptr va;
    CUmemoryPool pool;
    uint64_t high = 1;
    use_device();
    CHECK_EQUAL(cuMemAllocAsync(&va, 0, NULL), CUDA_ERROR_INVALID_VALUE);
    CHECK_EQUAL(cuMemAllocAsync(&va, 4096, NULL), 0);
    CHECK_EQUAL(cuMemFreeAsync(va + 512, NULL), CUDA_ERROR_INVALID_VALUE);
    CUstream stream = stream_new();
    keep_busy(stream, 20);
    CHECK_EQUAL(cuMemFreeAsync(va, stream), 0);
    CHECK_EQUAL(cuMemFreeAsync(va, stream), CUDA_ERROR_INVALID_VALUE); /* twice, though the stream has not come to it */
    CHECK_EQUAL(cuMemFree_v2(va), CUDA_ERROR_INVALID_VALUE);
    CHECK_EQUAL(cuDeviceGetDefaultMemPool(&pool, 0), 0);
    CHECK_EQUAL(cuMemPoolDestroy(pool), CUDA_ERROR_INVALID_VALUE);
    CHECK_EQUAL(cuMemPoolSetAttribute(pool, 6, &high), CUDA_ERROR_INVALID_VALUE); /* a high mark takes 0 only */
}

static CUmemoryPool pool_new(void)
{
    const CUmemPoolProps props = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
                                  .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = 0}};
    CUmemoryPool pool = NULL;
    CHECK_EQUAL(cuMemPoolCreate(&pool, &props), 0);
    return pool;
}

/* Destroyed with allocations and pending frees, a pool takes no more requests and ends with the last of them. */
static void test_a_destroyed_pool_ends_with_its_allocations(void)
{
    use_device();
    CUdeviceptr kept, freed, none;
    CUmemoryPool pool = pool_new();
    CUstream stream = stream_new();
    CHECK_EQUAL(cuMemAllocFromPoolAsync(&kept, CHUNK, pool, stream), 0);
    CHECK_EQUAL(cuMemAllocFromPoolAsync(&freed, CHUNK, pool, stream), 0);
    keep_busy(stream, 20);
    CHECK_EQUAL(cuMemFreeAsync(freed, stream), 0);
    CHECK_EQUAL(cuMemPoolDestroy(pool), 0);
    CHECK_EQUAL(cuMemPoolDestroy(pool), CUDA_ERROR_INVALID_VALUE);
    CHECK_EQUAL(cuMemAllocFromPoolAsync(&none, CHUNK, pool, stream), CUDA_ERROR_INVALID_VALUE);
    CHECK_EQUAL(cuStreamSynchronize(stream), 0);
    CHECK_EQUAL(cuMemsetD8_v2(kept, 1, CHUNK), 0);
    CHECK_EQUAL(cuCtxSynchronize(), 0);
    CHECK(gml_sim_used_bytes(0) >= CHUNK);
    CHECK_EQUAL(cuMemFreeAsync(kept, stream), 0);
    CHECK_EQUAL(cuStreamSynchronize(stream), 0);
    CHECK_EQUAL(gml_sim_used_bytes(0), 0);
}

/* Every pool gives back at a synchronisation what is over its threshold, and a reset ends what is left. */
static void test_pools_of_the_program_give_back(void)
{
    use_device();
    CUdeviceptr va;
    CUmemoryPool pool = pool_new();
    uint64_t all = UINT64_MAX;
    CHECK_EQUAL(cuMemAllocFromPoolAsync(&va, 64 * MIB, pool, NULL), 0);
    CHECK_EQUAL(cuMemFreeAsync(va, NULL), 0);
    CHECK_EQUAL(cuCtxSynchronize(), 0);
    CHECK_EQUAL(gml_sim_used_bytes(0), 0);
    CHECK_EQUAL(cuMemPoolSetAttribute(pool, 4, &all), 0);
    CHECK_EQUAL(cuMemAllocFromPoolAsync(&va, 64 * MIB, pool, NULL), 0);
    CHECK_EQUAL(cuMemFreeAsync(va, NULL), 0);
    CHECK_EQUAL(cuCtxSynchronize(), 0);
    CHECK_EQUAL(gml_sim_used_bytes(0), 64 * MIB);
    CHECK_EQUAL(cuMemPoolDestroy(pool), 0);
    CHECK_EQUAL(gml_sim_used_bytes(0), 0);
    CHECK_EQUAL(cuMemAllocAsync(&va, 64 * MIB, NULL), 0);
    CHECK_EQUAL(cuDevicePrimaryCtxReset_v2(0), 0);
    CHECK_EQUAL(gml_sim_used_bytes(0), 0);
}

/* Rows times their number may exceed what a number holds, and a copy may be given no memory at all. */
static void test_rows_and_addresses_that_cannot_be(void)
{
    use_device();
    CUmemGenericAllocationHandle handle;
    CUdeviceptr va = mapped(CHUNK, &handle), none;
    size_t pitch;
    CHECK_EQUAL(cuMemAllocPitch_v2(&none, &pitch, (size_t)1 << 40, (size_t)1 << 24, 4), CUDA_ERROR_OUT_OF_MEMORY);
    CHECK_EQUAL(cuMemAllocPitch_v2(&none, &pitch, SIZE_MAX, 1, 4), CUDA_ERROR_OUT_OF_MEMORY);
    CHECK_EQUAL(cuMemcpyHtoD_v2(va, NULL, 16), CUDA_ERROR_INVALID_VALUE);
    CHECK_EQUAL(cuMemcpyDtoH_v2(NULL, va, 16), CUDA_ERROR_INVALID_VALUE);
    CHECK_EQUAL(cuCtxSynchronize(), 0);
}

int main(void)
{
    RUN_SIM(test_the_stack_of_contexts);
    RUN_SIM(test_a_destroyed_context_is_told);
    RUN_SIM(test_primary_contexts_count_their_users);
    run_on_device("test_peers", test_peers, "GML_SIM_DEVICES=2");
    run_on_device("test_copies_between_peers", test_copies_between_peers, "GML_SIM_DEVICES=2");
    RUN_SIM(test_a_destroyed_pool_ends_with_its_allocations);
    RUN_LATE(test_a_destroyed_pool_ends_with_its_allocations);
    RUN_SIM(test_pools_of_the_program_give_back);
    RUN_SIM(test_rows_and_addresses_that_cannot_be);
    RUN_SIM(test_default_streams_cannot_be_destroyed);
    RUN_SIM(test_flags_of_streams);
    RUN_SIM(test_host_functions_must_not_call_the_driver);
    RUN_SIM(test_an_event_that_was_never_recorded_has_happened);
    RUN_SIM(test_times_between_events);
    RUN_SIM(test_events_belong_to_their_context);
    RUN_SIM(test_flags_and_end_of_events);
    RUN_SIM(test_handles_are_released_once);
    RUN_SIM(test_mapped_memory_is_not_freed_as_an_allocation);
    RUN_SIM(test_access_is_as_it_was_set);
    RUN_SIM(test_bad_access);
    RUN_SIM(test_host_memory);
    RUN_SIM(test_stream_ordered_memory);
    return 0;
}
