/* SPDX-License-Identifier: Apache-2.0 */
/* Virtual memory management: each rule of the driver API reference that an allocator could break. */
#include "support.h"

#include <signal.h>
#include <string.h>

static CUresult set_access(CUdeviceptr va, size_t bytes)
{
    CUmemAccessDesc desc = {{CU_MEM_LOCATION_TYPE_DEVICE, 0}, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    return cuMemSetAccess(va, bytes, &desc, 1);
}

static void test_no_init_no_calls(void)
{
    int count;
    CHECK_EQUAL(cuDeviceGetCount(&count), CUDA_ERROR_NOT_INITIALIZED);
    CHECK_EQUAL(cuInit(0), 0);
    CHECK_EQUAL(cuDeviceGetCount(&count), 0);
    CHECK_EQUAL(count, 1);
}

static void test_sizes_and_alignment(void)
{
    use_device();
    CUmemAllocationProp prop = device_memory();
    CUmemGenericAllocationHandle handle;
    CUdeviceptr va;
    size_t granularity;
    CHECK_EQUAL(cuMemGetAllocationGranularity(&granularity, &prop, CU_MEM_ALLOC_GRANULARITY_MINIMUM), 0);
    CHECK_EQUAL(granularity, CHUNK);
    CHECK_EQUAL(cuMemCreate(&handle, CHUNK / 2, &prop, 0), CUDA_ERROR_INVALID_VALUE);
    CHECK_EQUAL(cuMemCreate(&handle, 0, &prop, 0), CUDA_ERROR_INVALID_VALUE);
    CHECK_EQUAL(cuMemCreate(&handle, CHUNK, NULL, 0), CUDA_ERROR_INVALID_VALUE);
    CHECK_EQUAL(cuMemAddressReserve(&va, 0, 0, 0, 0), CUDA_ERROR_INVALID_VALUE);
    CHECK_EQUAL(cuMemAddressReserve(&va, CHUNK, 3, 0, 0), CUDA_ERROR_INVALID_VALUE);
    CHECK_EQUAL(cuMemAddressReserve(&va, CHUNK, 64 * MIB, 0, 0), 0);
    CHECK_EQUAL(va % (64 * MIB), 0);
    prop.location.id = 1;
    CHECK_EQUAL(cuMemCreate(&handle, CHUNK, &prop, 0), CUDA_ERROR_INVALID_VALUE);
}

static void test_a_map_is_a_whole_handle(void)
{
    use_device();
    CUdeviceptr va = reserve(8 * CHUNK);
    CUmemGenericAllocationHandle handle = create(2 * CHUNK);
    CHECK_EQUAL(cuMemMap(va, CHUNK, 0, handle, 0), CUDA_ERROR_INVALID_VALUE);
    CHECK_EQUAL(cuMemMap(va, CHUNK, CHUNK, handle, 0), CUDA_ERROR_INVALID_VALUE);
    CHECK_EQUAL(cuMemMap(va + 4096, 2 * CHUNK, 0, handle, 0), CUDA_ERROR_INVALID_VALUE);
    CHECK_EQUAL(cuMemMap(va + 7 * CHUNK, 2 * CHUNK, 0, handle, 0), CUDA_ERROR_INVALID_VALUE);
    CHECK_EQUAL(cuMemMap(0x7000000, 2 * CHUNK, 0, handle, 0), CUDA_ERROR_INVALID_VALUE);
    CHECK_EQUAL(cuMemMap(va, 2 * CHUNK, 0, handle + 64, 0), CUDA_ERROR_INVALID_VALUE);
    CHECK_EQUAL(cuMemMap(va, 2 * CHUNK, 0, handle, 0), 0);
    CHECK_EQUAL(cuMemMap(va + CHUNK, 2 * CHUNK, 0, create(2 * CHUNK), 0), CUDA_ERROR_INVALID_VALUE); /* overlaps */
    CHECK_EQUAL(cuMemMap(va + 4 * CHUNK, 2 * CHUNK, 0, handle, 0), 0);                               /* an alias */
}

static void test_unmap_takes_whole_maps(void)
{
    use_device();
    CUdeviceptr va = reserve(8 * CHUNK);
    CHECK_EQUAL(cuMemMap(va, 2 * CHUNK, 0, create(2 * CHUNK), 0), 0);
    CHECK_EQUAL(cuMemMap(va + 2 * CHUNK, CHUNK, 0, create(CHUNK), 0), 0);
    CHECK_EQUAL(cuMemUnmap(va, CHUNK), CUDA_ERROR_INVALID_VALUE);
    CHECK_EQUAL(cuMemUnmap(va + CHUNK, 2 * CHUNK), CUDA_ERROR_INVALID_VALUE);
    CHECK_EQUAL(cuMemUnmap(va, 4 * CHUNK), CUDA_ERROR_INVALID_VALUE); /* its end is not mapped */
    CHECK_EQUAL(set_access(va, 3 * CHUNK), 0);                        /* nothing was unmapped by the refusals */
    CHECK_EQUAL(cuMemUnmap(va, 3 * CHUNK), 0);
    CHECK_EQUAL(cuMemUnmap(va, 3 * CHUNK), CUDA_ERROR_INVALID_VALUE);
}

static void test_access_on_mapped_ranges_only(void)
{
    use_device();
    CUdeviceptr va = reserve(4 * CHUNK);
    CHECK_EQUAL(set_access(va, CHUNK), CUDA_ERROR_INVALID_VALUE);
    CHECK_EQUAL(cuMemMap(va, CHUNK, 0, create(CHUNK), 0), 0);
    CHECK_EQUAL(set_access(va, 2 * CHUNK), CUDA_ERROR_INVALID_VALUE);
    CHECK_EQUAL(set_access(va, CHUNK), 0);
    CUmemAccessDesc desc = {{CU_MEM_LOCATION_TYPE_DEVICE, 0}, 2};
    CHECK_EQUAL(cuMemSetAccess(va, CHUNK, &desc, 1), CUDA_ERROR_INVALID_VALUE);
}

static void test_reservations_go_whole_and_unmapped(void)
{
    use_device();
    CUdeviceptr va = reserve(4 * CHUNK);
    CHECK_EQUAL(cuMemAddressFree(va, CHUNK), CUDA_ERROR_INVALID_VALUE);
    CHECK_EQUAL(cuMemAddressFree(va + CHUNK, 3 * CHUNK), CUDA_ERROR_INVALID_VALUE);
    CHECK_EQUAL(cuMemMap(va + CHUNK, CHUNK, 0, create(CHUNK), 0), 0);
    CHECK_EQUAL(cuMemAddressFree(va, 4 * CHUNK), CUDA_ERROR_INVALID_VALUE);
    CHECK_EQUAL(cuMemUnmap(va + CHUNK, CHUNK), 0);
    CHECK_EQUAL(cuMemAddressFree(va, 4 * CHUNK), 0);
    CHECK_EQUAL(cuMemAddressFree(va, 4 * CHUNK), CUDA_ERROR_INVALID_VALUE);
}

static void test_budget_and_life_of_a_handle(void)
{
    use_device();
    size_t before, after, total;
    CHECK_EQUAL(cuMemGetInfo_v2(&before, &total), 0);
    CHECK_EQUAL(gml_sim_used_bytes(0), 0);
    CUmemAllocationProp prop = device_memory();
    CUmemGenericAllocationHandle handle, again, more;
    CHECK_EQUAL(cuMemCreate(&more, total, &prop, 0), CUDA_ERROR_INVALID_VALUE); /* no multiple of 2 MiB */
    CHECK_EQUAL(cuMemCreate(&more, 1024 * MIB, &prop, 0), CUDA_ERROR_OUT_OF_MEMORY);
    CUdeviceptr va = mapped(64 * MIB, &handle);
    CHECK_EQUAL(cuMemRelease(handle), 0);
    CHECK_EQUAL(cuMemRelease(handle), CUDA_ERROR_INVALID_VALUE);
    CHECK_EQUAL(cuMemMap(reserve(64 * MIB), 64 * MIB, 0, handle, 0), CUDA_ERROR_INVALID_VALUE);
    CHECK_EQUAL(gml_sim_used_bytes(0), 64 * MIB); /* mapped, hence alive */
    CHECK_EQUAL(cuMemRetainAllocationHandle(&again, (void *)(uintptr_t)(va + 4096)), 0);
    CHECK_EQUAL(again, handle);
    CHECK_EQUAL(cuMemUnmap(va, 64 * MIB), 0);
    CHECK_EQUAL(gml_sim_used_bytes(0), 64 * MIB); /* retained */
    CHECK_EQUAL(cuMemRelease(again), 0);
    CHECK_EQUAL(gml_sim_used_bytes(0), 0);
    CHECK_EQUAL(gml_sim_peak_bytes(0), 64 * MIB);
    CHECK_EQUAL(cuMemGetInfo_v2(&after, &total), 0);
    CHECK_EQUAL(after, before);
    CHECK_EQUAL(total - after, 520 * MIB);
}

static void test_aliases_share_bytes(void)
{
    use_device();
    CUmemGenericAllocationHandle a, b;
    CUdeviceptr one = mapped(CHUNK, &a), two = mapped(CHUNK, &b), joined = reserve(2 * CHUNK);
    CHECK_EQUAL(cuMemMap(joined, CHUNK, 0, b, 0), 0); /* stitched in the other order */
    CHECK_EQUAL(cuMemMap(joined + CHUNK, CHUNK, 0, a, 0), 0);
    give_access(joined, 2 * CHUNK);
    char out[64], in[64];
    memset(out, 'x', sizeof out);
    CHECK_EQUAL(cuMemcpyHtoD_v2(joined + CHUNK - 32, out, 64), 0); /* over the seam */
    CHECK_EQUAL(cuMemcpyDtoH_v2(in, two + CHUNK - 32, 32), 0);
    CHECK_EQUAL(cuMemcpyDtoH_v2(in + 32, one, 32), 0);
    CHECK(!memcmp(in, out, 64));
    CHECK_EQUAL(cuMemsetD8_v2(joined, 0, 2 * CHUNK), 0);
    CHECK_EQUAL(cuMemcpyDtoH_v2(in, one, 64), 0);
    CHECK(in[0] == 0 && !memcmp(in, in + 1, 63));
}

static void test_fresh_memory_is_not_old_memory(void)
{
    use_device();
    CUmemGenericAllocationHandle handle;
    char byte;
    CUdeviceptr va = mapped(CHUNK, &handle);
    CHECK_EQUAL(cuMemsetD8_v2(va, 0x5a, CHUNK), 0);
    CHECK_EQUAL(cuMemcpyDtoH_v2(&byte, va + CHUNK - 1, 1), 0);
    CHECK_EQUAL(byte, 0x5a);
    CHECK_EQUAL(cuMemRelease(handle), 0);
    CHECK_EQUAL(cuMemUnmap(va, CHUNK), 0);
    va = mapped(CHUNK, &handle);
    CHECK_EQUAL(cuMemcpyDtoH_v2(&byte, va + CHUNK - 1, 1), 0);
    CHECK_EQUAL(byte, 0);
}

static void test_access_before_set_access_poisons_the_context(void)
{
    use_device();
    CUdeviceptr va = reserve(CHUNK), ok;
    char byte = 1;
    CHECK_EQUAL(cuMemMap(va, CHUNK, 0, create(CHUNK), 0), 0);
    CHECK_EQUAL(cuMemcpyHtoD_v2(va, &byte, 1), CUDA_ERROR_ILLEGAL_ADDRESS);
    CHECK_EQUAL(cuMemAlloc_v2(&ok, 1), CUDA_ERROR_ILLEGAL_ADDRESS); /* for good */
    CHECK_EQUAL(cuCtxSynchronize(), CUDA_ERROR_ILLEGAL_ADDRESS);
}

static void test_access_after_unmap(void)
{
    use_device();
    CUmemGenericAllocationHandle handle;
    CUdeviceptr va = mapped(CHUNK, &handle);
    char byte = 1;
    CHECK_EQUAL(cuMemcpyHtoD_v2(va, &byte, 1), 0);
    CHECK_EQUAL(cuMemUnmap(va, CHUNK), 0);
    CHECK_EQUAL(cuMemcpyDtoH_v2(&byte, va, 1), CUDA_ERROR_ILLEGAL_ADDRESS);
}

static void test_access_past_the_end(void)
{
    use_device();
    CUmemGenericAllocationHandle handle;
    CUdeviceptr va = mapped(CHUNK, &handle);
    CHECK_EQUAL(cuMemsetD8_v2(va + CHUNK - 4, 1, 4), 0);
    CHECK_EQUAL(cuMemsetD8_v2(va + CHUNK - 4, 1, 5), CUDA_ERROR_ILLEGAL_ADDRESS);
}

static void on_fault(int number)
{
    (void)number;
    abort();
}

static void test_host_touch_faults(void)
{
    use_device();
    CUmemGenericAllocationHandle handle;
    CUdeviceptr va = mapped(CHUNK, &handle);
    fprintf(stderr, "touching\n");
    signal(SIGSEGV, on_fault);
    *(volatile char *)(uintptr_t)va = 1;
}

static void test_address_space_ends(void)
{
    use_device();
    CUdeviceptr va, other;
    CHECK_EQUAL(cuMemAddressReserve(&va, 768 * MIB, 0, 0, 0), 0);
    CHECK_EQUAL(cuMemAddressReserve(&other, 512 * MIB, 0, 0, 0), CUDA_ERROR_OUT_OF_MEMORY);
    CHECK_EQUAL(cuMemAddressFree(va, 768 * MIB), 0);
    CHECK_EQUAL(cuMemAddressReserve(&other, 512 * MIB, 0, 0, 0), 0);
}

static void test_pointer_answers(void)
{
    use_device();
    CUmemGenericAllocationHandle handle;
    CUdeviceptr va = reserve(4 * CHUNK), base;
    size_t bytes;
    int type;
    CHECK_EQUAL(cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, va), CUDA_ERROR_INVALID_VALUE);
    handle = create(CHUNK);
    CHECK_EQUAL(cuMemMap(va + CHUNK, CHUNK, 0, handle, 0), 0);
    CHECK_EQUAL(cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, va + CHUNK + 5), 0);
    CHECK_EQUAL(type, CU_MEMORYTYPE_DEVICE);
    CHECK_EQUAL(cuMemGetAddressRange_v2(&base, &bytes, va + CHUNK + 5), 0);
    CHECK_EQUAL(base, va + CHUNK);
    CHECK_EQUAL(bytes, CHUNK);
    CHECK_EQUAL(cuMemGetAddressRange_v2(&base, &bytes, va), CUDA_ERROR_NOT_FOUND);
}

int main(void)
{
    RUN_SIM(test_no_init_no_calls);
    RUN_SIM(test_sizes_and_alignment);
    RUN_SIM(test_a_map_is_a_whole_handle);
    RUN_SIM(test_unmap_takes_whole_maps);
    RUN_SIM(test_access_on_mapped_ranges_only);
    RUN_SIM(test_reservations_go_whole_and_unmapped);
    RUN_SIM(test_budget_and_life_of_a_handle);
    RUN_SIM(test_aliases_share_bytes);
    RUN_LATE(test_aliases_share_bytes);
    RUN_SIM(test_fresh_memory_is_not_old_memory);
    RUN_SIM(test_access_before_set_access_poisons_the_context);
    RUN_SIM(test_access_after_unmap);
    RUN_SIM(test_access_past_the_end);
    RUN_SIM(test_pointer_answers);
    RUN_STOP(test_host_touch_faults, "touching");
    run_on_device("test_address_space_ends", test_address_space_ends, "GML_SIM_VA=1G");
    return 0;
}
