/* SPDX-License-Identifier: Apache-2.0 */
/* Faults on demand, what is held at the end, work of libraries on memory, and several devices. */
#define _GNU_SOURCE
#include "support.h"

#include <time.h>

int cublasCreate_v2(void **handle);
int cublasSetStream_v2(void *handle, void *stream);
int cublasGemmEx(void *handle, int ta, int tb, int m, int n, int k, const void *alpha, const void *a, int type_a,
                 int lda, const void *b, int type_b, int ldb, const void *beta, void *c, int type_c, int ldc);

static double seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static void test_the_nth_call_and_onward(void)
{
    use_device();
    CUdeviceptr va;
    CHECK_EQUAL(cuMemAlloc_v2(&va, CHUNK), 0);
    CHECK_EQUAL(cuMemAlloc_v2(&va, CHUNK), CUDA_ERROR_OUT_OF_MEMORY);
    CHECK_EQUAL(cuMemAlloc_v2(&va, CHUNK), 0);
    CHECK_EQUAL(cuMemFree_v2(va), 0);
    CHECK_EQUAL(cuMemFree_v2(va), CUDA_ERROR_UNKNOWN);
    CHECK_EQUAL(cuMemFree_v2(va), CUDA_ERROR_UNKNOWN);
    CHECK_EQUAL(gml_sim_calls("cuMemAlloc"), 3);
}

static void test_a_slow_call(void)
{
    use_device();
    double start = seconds();
    CHECK_EQUAL(cuCtxSynchronize(), 0);
    CHECK(seconds() - start < 0.25);
    start = seconds();
    CHECK_EQUAL(cuCtxSynchronize(), 0);
    CHECK(seconds() - start >= 0.28);
}

static void test_half_way(void)
{
    use_device();
    CUdeviceptr va = reserve(4 * CHUNK);
    char byte = 1;
    for (size_t i = 0; i < 4; i++) CHECK_EQUAL(cuMemMap(va + i * CHUNK, CHUNK, 0, create(CHUNK), 0), 0);
    give_access(va, 4 * CHUNK);
    CHECK_EQUAL(cuMemUnmap(va, 4 * CHUNK), CUDA_ERROR_UNKNOWN);
    CHECK_EQUAL(cuMemUnmap(va, CHUNK), CUDA_ERROR_INVALID_VALUE); /* gone */
    CHECK_EQUAL(cuMemcpyHtoD_v2(va + 2 * CHUNK, &byte, 1), 0);    /* still there */
    CHECK_EQUAL(cuMemUnmap(va + 2 * CHUNK, 2 * CHUNK), 0);
}

static void test_another_process_takes_memory(void)
{
    use_device();
    size_t first, later, total;
    CUmemAllocationProp prop = device_memory();
    CUmemGenericAllocationHandle handle;
    CHECK_EQUAL(cuMemGetInfo_v2(&first, &total), 0);
    create(CHUNK);
    create(CHUNK);
    CHECK_EQUAL(cuMemCreate(&handle, 800 * MIB, &prop, 0), CUDA_ERROR_OUT_OF_MEMORY);
    CHECK_EQUAL(cuMemGetInfo_v2(&later, &total), 0);
    CHECK_EQUAL(first - later, 2 * CHUNK + 512 * MIB);
    CHECK_EQUAL(gml_sim_used_bytes(0), 2 * CHUNK); /* not ours */
}

static void test_what_is_held(void)
{
    use_device();
    size_t handles, reservations, maps, allocations;
    CUmemGenericAllocationHandle handle;
    CUdeviceptr va = mapped(CHUNK, &handle), plain;
    CHECK_EQUAL(cuMemAlloc_v2(&plain, 5), 0);
    create(CHUNK);
    gml_sim_ledger(&handles, &reservations, &maps, &allocations);
    CHECK_EQUAL(handles, 2);
    CHECK_EQUAL(reservations, 1);
    CHECK_EQUAL(maps, 1);
    CHECK_EQUAL(allocations, 1);
    CHECK_EQUAL(cuMemRelease(handle), 0);
    CHECK_EQUAL(cuMemUnmap(va, CHUNK), 0);
    gml_sim_ledger(&handles, NULL, &maps, NULL);
    CHECK_EQUAL(handles, 1);
    CHECK_EQUAL(maps, 0);
}

static int multiply(CUdeviceptr a, CUdeviceptr b, CUdeviceptr c)
{
    void *blas;
    CHECK_EQUAL(cublasCreate_v2(&blas), 0);
    return cublasGemmEx(blas, 0, 0, 64, 64, 64, NULL, (void *)(uintptr_t)a, 0, 64, (void *)(uintptr_t)b, 0, 64, NULL,
                        (void *)(uintptr_t)c, 0, 64);
}

static void test_a_product_advances_virtual_time(void)
{
    CUmemGenericAllocationHandle handle;
    use_device();
    CUdeviceptr va = mapped(CHUNK, &handle);
    uint64_t before = gml_sim_now_ns();
    CHECK_EQUAL(multiply(va, va, va), 0);
    CHECK_EQUAL(gml_sim_now_ns() - before, (uint64_t)(2.0 * 64 * 64 * 64 / (0.4 * 989.4e3)));
    before = gml_sim_now_ns();
    create(4 * CHUNK);
    CHECK_EQUAL(gml_sim_now_ns() - before, 4 * 193000);
}

static void test_a_product_on_unmapped_memory(void)
{
    CUmemGenericAllocationHandle handle;
    use_device();
    CUdeviceptr good = mapped(CHUNK, &handle), bad = mapped(CHUNK, &handle);
    CHECK_EQUAL(cuMemUnmap(bad, CHUNK), 0);
    (void)multiply(good, good, bad); /* the error may come at once or later */
    CHECK_EQUAL(cuCtxSynchronize(), CUDA_ERROR_ILLEGAL_ADDRESS);
}

/* Access is granted device by device. */
static void test_memory_of_one_device_on_another(void)
{
    CUcontext other;
    CUmemGenericAllocationHandle handle;
    CUmemAccessDesc desc = {{CU_MEM_LOCATION_TYPE_DEVICE, 1}, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    char byte = 1;
    use_device();
    CUdeviceptr va = mapped(CHUNK, &handle), hidden = mapped(CHUNK, &handle);
    CHECK_EQUAL(cuMemSetAccess(va, CHUNK, &desc, 1), 0);
    CHECK_EQUAL(cuMemcpyHtoD_v2(va, &byte, 1), 0);
    CHECK_EQUAL(cuDevicePrimaryCtxRetain(&other, 1), 0);
    CHECK_EQUAL(cuCtxSetCurrent(other), 0);
    CHECK_EQUAL(cuMemcpyHtoD_v2(va, &byte, 1), 0);
    CHECK_EQUAL(gml_sim_used_bytes(0), 2 * CHUNK);
    CHECK_EQUAL(gml_sim_used_bytes(1), 0);
    CHECK_EQUAL(cuMemcpyHtoD_v2(hidden, &byte, 1), CUDA_ERROR_ILLEGAL_ADDRESS);
}

int main(void)
{
    run_on_device("test_the_nth_call_and_onward", test_the_nth_call_and_onward,
                  "GML_SIM_FAULTS=cuMemAlloc:2=2,cuMemFree:2+=999");
    run_on_device("test_a_slow_call", test_a_slow_call, "GML_SIM_FAULTS=cuCtxSynchronize:2~300");
    run_on_device("test_half_way", test_half_way, "GML_SIM_FAULTS=cuMemUnmap:1/=999");
    run_on_device("test_another_process_takes_memory", test_another_process_takes_memory,
                  "GML_SIM_FAULTS=foreign:3=512M");
    RUN_SIM(test_what_is_held);
    RUN_SIM(test_a_product_advances_virtual_time);
    RUN_SIM(test_a_product_on_unmapped_memory);
    RUN_LATE(test_a_product_on_unmapped_memory);
    run_on_device("test_memory_of_one_device_on_another", test_memory_of_one_device_on_another, "GML_SIM_DEVICES=2");
    return 0;
}
