/* SPDX-License-Identifier: Apache-2.0 */
/* The stream-ordered allocator, plain allocations, and what the runtime adds to the driver. */
#define _GNU_SOURCE
#include "support.h"

#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static uint64_t pool_value(CUmemoryPool pool, int attribute)
{
    uint64_t value = 0;
    CHECK_EQUAL(cuMemPoolGetAttribute(pool, attribute, &value), 0);
    return value;
}

static void test_pool_figures(void)
{
    use_device();
    CUmemoryPool pool;
    CUdeviceptr a, b;
    uint64_t keep = UINT64_MAX, one = 1, zero = 0;
    CHECK_EQUAL(cuDeviceGetDefaultMemPool(&pool, 0), 0);
    CHECK_EQUAL(cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &keep), 0);
    CHECK_EQUAL(cuMemAllocAsync(&a, 100 * MIB, NULL), 0);
    CHECK_EQUAL(cuMemAllocAsync(&b, 1, NULL), 0);
    CHECK_EQUAL(pool_value(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT), 100 * MIB + 512);
    CHECK_EQUAL(pool_value(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT), 128 * MIB);
    CHECK_EQUAL(gml_sim_used_bytes(0), 128 * MIB);
    CHECK_EQUAL(cuMemFreeAsync(a, NULL), 0);
    CHECK_EQUAL(cuMemFreeAsync(a, NULL), CUDA_ERROR_INVALID_VALUE);
    CHECK_EQUAL(cuMemFreeAsync(b + 1, NULL), CUDA_ERROR_INVALID_VALUE);
    CHECK_EQUAL(cuCtxSynchronize(), 0);
    CHECK_EQUAL(gml_sim_used_bytes(0), 128 * MIB); /* the threshold keeps it */
    CHECK_EQUAL(cuMemPoolTrimTo(pool, 0), 0);
    CHECK_EQUAL(gml_sim_used_bytes(0), 32 * MIB);
    CHECK_EQUAL(cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_USED_MEM_HIGH, &one), CUDA_ERROR_INVALID_VALUE);
    CHECK_EQUAL(pool_value(pool, CU_MEMPOOL_ATTR_USED_MEM_HIGH), 100 * MIB + 512);
    CHECK_EQUAL(cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_USED_MEM_HIGH, &zero), 0);
    CHECK_EQUAL(pool_value(pool, CU_MEMPOOL_ATTR_USED_MEM_HIGH), 512);
    CHECK_EQUAL(cuMemFreeAsync(b, NULL), 0);
    CHECK_EQUAL(cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &zero), 0);
    CHECK_EQUAL(cuStreamSynchronize(NULL), 0);
    CHECK_EQUAL(gml_sim_used_bytes(0), 0); /* below the threshold of 0 nothing stays */
}

static void test_a_free_waits_for_its_stream(void)
{
    use_device();
    CUstream s = stream_new();
    CUdeviceptr a, b;
    CUmemoryPool pool;
    CHECK_EQUAL(cuDeviceGetDefaultMemPool(&pool, 0), 0);
    CHECK_EQUAL(cuMemAllocAsync(&a, 900 * MIB, s), 0);
    keep_busy(s, 60);
    CHECK_EQUAL(cuMemFreeAsync(a, s), 0);
    CHECK_EQUAL(pool_value(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT), 900 * MIB);
    CHECK_EQUAL(cuMemAllocAsync(&b, 2000 * MIB, s), CUDA_ERROR_OUT_OF_MEMORY);
    CHECK_EQUAL(cuMemAllocAsync(&b, 900 * MIB, s), 0); /* waits for the free rather than fail */
}

static void test_plain_memory(void)
{
    use_device();
    CUdeviceptr a, b;
    CHECK_EQUAL(cuMemAlloc_v2(&a, 0), CUDA_ERROR_INVALID_VALUE);
    CHECK_EQUAL(cuMemAlloc_v2(&a, 1), 0);
    CHECK_EQUAL(gml_sim_used_bytes(0), CHUNK);
    CHECK_EQUAL(cuMemAlloc_v2(&b, 1000 * MIB), CUDA_ERROR_OUT_OF_MEMORY);
    CHECK_EQUAL(cuMemFree_v2(a + 512), CUDA_ERROR_INVALID_VALUE);
    CHECK_EQUAL(cuMemFree_v2(a), 0);
    CHECK_EQUAL(cuMemFree_v2(a), CUDA_ERROR_INVALID_VALUE);
    CHECK_EQUAL(cuMemFree_v2(0), 0);
    CHECK_EQUAL(cuMemFree_v2(reserve(CHUNK)), CUDA_ERROR_INVALID_VALUE);
    CHECK_EQUAL(gml_sim_used_bytes(0), 0);
    CHECK_EQUAL(cuMemAlloc_v2(&a, CHUNK), 0); /* mixing the two interfaces is legal */
    CHECK_EQUAL(cuMemFreeAsync(a, NULL), 0);
    CHECK_EQUAL(cuMemAllocAsync(&a, CHUNK, NULL), 0);
    CHECK_EQUAL(cuMemFree_v2(a), 0);
}

static void test_contexts(void)
{
    CUdeviceptr va;
    CUcontext primary, other, current;
    size_t free_bytes, total;
    CHECK_EQUAL(cuInit(0), 0);
    CHECK_EQUAL(cuMemAlloc_v2(&va, CHUNK), CUDA_ERROR_INVALID_CONTEXT);
    CHECK_EQUAL(cuMemGetInfo_v2(&free_bytes, &total), CUDA_ERROR_INVALID_CONTEXT);
    primary = use_device();
    CHECK_EQUAL(cuCtxCreate_v2(&other, 0, 0), 0);
    CHECK_EQUAL(cuCtxGetCurrent(&current), 0);
    CHECK(current == other);
    CHECK_EQUAL(cuMemGetInfo_v2(&free_bytes, &total), 0);
    CHECK_EQUAL(total - free_bytes, 1040 * MIB); /* two contexts */
    CHECK_EQUAL(cuMemAlloc_v2(&va, CHUNK), 0);
    CHECK_EQUAL(cuCtxDestroy_v2(other), 0);
    CHECK_EQUAL(gml_sim_used_bytes(0), 0); /* its memory went with it */
    CHECK_EQUAL(cuCtxGetCurrent(&current), 0);
    CHECK(current == primary);
    CHECK_EQUAL(cuCtxDestroy_v2(primary), CUDA_ERROR_INVALID_CONTEXT);
    CHECK_EQUAL(cuCtxPushCurrent_v2(other), CUDA_ERROR_INVALID_CONTEXT);
    CHECK_EQUAL(cuMemAlloc_v2(&va, CHUNK), 0);
    CHECK_EQUAL(cuDevicePrimaryCtxReset_v2(0), 0);
    CHECK_EQUAL(gml_sim_used_bytes(0), 0);
}

static void test_runtime_makes_the_context(void)
{
    void *pointer = (void *)1;
    int device;
    CUcontext ctx;
    CHECK_EQUAL(cudaGetDevice(&device), 0);
    CHECK_EQUAL(cuCtxGetCurrent(&ctx), 0);
    CHECK(ctx == NULL); /* a question makes none */
    CHECK_EQUAL(cudaMalloc(&pointer, 0), 0);
    CHECK(pointer == NULL);
    CHECK_EQUAL(cuCtxGetCurrent(&ctx), 0);
    CHECK(ctx != NULL);
    CHECK_EQUAL(cudaFree(NULL), 0);
    CHECK_EQUAL(cudaSetDevice(1), cudaErrorInvalidDevice);
    CHECK_EQUAL(cudaGetLastError(), cudaErrorInvalidDevice);
    CHECK_EQUAL(cudaGetLastError(), 0);
}

static void test_runtime_errors(void)
{
    void *pointer = (void *)1;
    CHECK_EQUAL(cudaMalloc(&pointer, 4096 * MIB), cudaErrorMemoryAllocation);
    CHECK(pointer == (void *)1); /* written on success only */
    CHECK_EQUAL(cudaPeekAtLastError(), cudaErrorMemoryAllocation);
    CHECK_EQUAL(cudaFree(NULL), 0); /* a success does not clear it */
    CHECK_EQUAL(cudaGetLastError(), cudaErrorMemoryAllocation);
    CHECK_EQUAL(cudaGetLastError(), 0);
    CHECK_EQUAL(cudaFree((void *)0x123456000), cudaErrorInvalidValue);
    CHECK_EQUAL(cudaGetLastError(), cudaErrorInvalidValue);
    CHECK(!strcmp(cudaGetErrorString(cudaErrorMemoryAllocation), "out of memory"));
    CHECK(!strcmp(cudaGetErrorName(cudaErrorIllegalAddress), "cudaErrorIllegalAddress"));
}

static void test_a_reset_ends_a_lost_context(void)
{
    void *pointer;
    CHECK_EQUAL(cudaMalloc(&pointer, CHUNK), 0);
    CHECK_EQUAL(cuMemsetD8_v2((CUdeviceptr)(uintptr_t)pointer, 0, 2 * CHUNK), CUDA_ERROR_ILLEGAL_ADDRESS);
    CHECK_EQUAL(cudaFree(pointer), cudaErrorIllegalAddress);
    CHECK_EQUAL(cudaGetLastError(), cudaErrorIllegalAddress);
    CHECK_EQUAL(cudaGetLastError(), cudaErrorIllegalAddress); /* it stays */
    CHECK_EQUAL(cudaDeviceReset(), 0);
    CHECK_EQUAL(cudaPeekAtLastError(), 0);
    CHECK_EQUAL(cudaMalloc(&pointer, CHUNK), 0);
    CHECK_EQUAL(cudaGetLastError(), 0);
}

static void test_runtime_pointers(void)
{
    void *pointer;
    cudaPointerAttributes about;
    int local;
    CHECK_EQUAL(cudaMalloc(&pointer, 100), 0);
    CHECK_EQUAL(cudaPointerGetAttributes(&about, (char *)pointer + 50), 0);
    CHECK_EQUAL(about.type, cudaMemoryTypeDevice);
    CHECK_EQUAL(about.device, 0);
    CHECK_EQUAL(cudaPointerGetAttributes(&about, &local), 0);
    CHECK_EQUAL(about.type, cudaMemoryTypeUnregistered);
    CHECK_EQUAL((unsigned)about.device, (unsigned)-2);
}

static void test_no_simulation_unless_asked_for(void)
{
    int count = 7;
    unsetenv("GML_SIM_PROFILE");
    CHECK_EQUAL(cuInit(0), CUDA_ERROR_NO_DEVICE);
    CHECK_EQUAL(cudaGetDeviceCount(&count), cudaErrorNoDevice);
    CHECK_EQUAL(count, 0);
}

static void test_a_forked_child_cannot_use_it(void)
{
    use_device();
    pid_t child = fork();
    if (child == 0) {
        size_t free_bytes, total;
        _exit(cuMemGetInfo_v2(&free_bytes, &total) == CUDA_ERROR_NOT_INITIALIZED ? 0 : 1);
    }
    int status;
    CHECK(waitpid(child, &status, 0) == child && status == 0);
}

static void test_entry_points_by_version(void)
{
    void *old = NULL, *plain = NULL, *own = NULL, *four = NULL, *five = NULL;
    int status;
    CHECK_EQUAL(cuGetProcAddress("cuMemAlloc", &plain, 3020, 0), 0);
    CHECK(plain == (void *)(uintptr_t)cuMemAlloc_v2);
    CHECK_EQUAL(cuGetProcAddress("cuMemAlloc", &old, 2000, 0), CUDA_ERROR_NOT_FOUND);
    CHECK_EQUAL(cuGetProcAddress_v2("cuMemAlloc", &old, 2000, 0, &status), 0);
    CHECK_EQUAL(status, CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT);
    CHECK(old == NULL);
    CHECK_EQUAL(cuGetProcAddress_v2("cuNoSuchThing", &old, 12000, 0, &status), 0);
    CHECK_EQUAL(status, CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND);
    CHECK_EQUAL(cuGetProcAddress("cuMemAllocAsync", &plain, 11020, 0), 0);
    CHECK_EQUAL(cuGetProcAddress("cuMemAllocAsync", &own, 11020, CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM), 0);
    CHECK(plain == (void *)(uintptr_t)cuMemAllocAsync && own != plain);
    CHECK_EQUAL(cuGetProcAddress("cuGetProcAddress", &four, 11030, 0), 0);
    CHECK_EQUAL(cuGetProcAddress("cuGetProcAddress", &five, 12000, 0), 0);
    CHECK(four == (void *)(uintptr_t)cuGetProcAddress && five == (void *)(uintptr_t)cuGetProcAddress_v2);
    CHECK_EQUAL(cuGetProcAddress_v2("cuInit", &plain, 99000, 0, &status), CUDA_ERROR_INVALID_VALUE);
}

/* Sizes that would wrap around when rounded up. */
static void test_absurd_sizes(void)
{
    use_device();
    CUdeviceptr a, b;
    CHECK_EQUAL(cuMemAlloc_v2(&a, CHUNK), 0); /* addresses are at hand */
    for (size_t less = 1; less < 4 * CHUNK; less = less * 3 + 1) {
        CHECK_EQUAL(cuMemAlloc_v2(&b, SIZE_MAX - less), CUDA_ERROR_OUT_OF_MEMORY);
        CHECK_EQUAL(cuMemAllocAsync(&b, SIZE_MAX - less, NULL), CUDA_ERROR_OUT_OF_MEMORY);
    }
    CHECK_EQUAL(cuMemAlloc_v2(&b, SIZE_MAX), CUDA_ERROR_OUT_OF_MEMORY);
    CHECK_EQUAL(cuMemAllocAsync(&b, SIZE_MAX, NULL), CUDA_ERROR_OUT_OF_MEMORY);
    CHECK_EQUAL(cuMemFree_v2(a), 0);
}

int main(void)
{
    RUN_SIM(test_absurd_sizes);
    RUN_SIM(test_pool_figures);
    RUN_SIM(test_a_free_waits_for_its_stream);
    RUN_LATE(test_a_free_waits_for_its_stream);
    RUN_SIM(test_plain_memory);
    RUN_SIM(test_contexts);
    RUN_SIM(test_runtime_makes_the_context);
    RUN_SIM(test_runtime_errors);
    RUN_SIM(test_a_reset_ends_a_lost_context);
    RUN_SIM(test_runtime_pointers);
    RUN_SIM(test_no_simulation_unless_asked_for);
    RUN_SIM(test_a_forked_child_cannot_use_it);
    RUN_SIM(test_entry_points_by_version);
    return 0;
}
