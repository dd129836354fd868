/* SPDX-License-Identifier: Apache-2.0 */
/* Allocations that a graph makes: the address from the capture, the memory from a launch until the free. */
#define _GNU_SOURCE
#include "support.h"

enum { USED, USED_HIGH, RESERVED, RESERVED_HIGH, AUTO_FREE = 1 };

CUresult cuDeviceGetGraphMemAttribute(CUdevice device, int which, void *value);
CUresult cuDeviceSetGraphMemAttribute(CUdevice device, int which, void *value);
CUresult cuDeviceGraphMemTrim(CUdevice device);
CUresult cuGraphDestroy(CUgraph graph);
CUresult cuGraphExecDestroy(CUgraphExec exec);

static uint64_t figure(int which)
{
    uint64_t value = 0;
    CHECK_EQUAL(cuDeviceGetGraphMemAttribute(0, which, &value), 0);
    return value;
}

/* Captures an allocation of 100 MiB that is filled, and freed in the graph if asked for. */
static CUgraph capture(CUstream s, CUdeviceptr *va, bool free_it)
{
    CUgraph graph;
    CHECK_EQUAL(cuStreamBeginCapture_v2(s, CU_STREAM_CAPTURE_MODE_GLOBAL), 0);
    CHECK_EQUAL(cuMemAllocAsync(va, 100 * MIB, s), 0);
    CHECK_EQUAL(cuMemsetD8Async(*va, 7, 4096, s), 0);
    if (free_it) CHECK_EQUAL(cuMemFreeAsync(*va, s), 0);
    CHECK_EQUAL(cuStreamEndCapture(s, &graph), 0);
    return graph;
}

static void test_freed_by_the_graph(void)
{
    use_device();
    CUstream s = stream_new();
    CUdeviceptr va;
    CUgraphExec exec, second;
    uint64_t zero = 0, one = 1;
    CUgraph graph = capture(s, &va, true);
    CHECK_EQUAL(gml_sim_used_bytes(0), 0); /* an address, no memory */
    CHECK_EQUAL(cuGraphInstantiateWithFlags(&exec, graph, 0), 0);
    CHECK(cuGraphInstantiateWithFlags(&second, graph, 0) != 0);
    for (int i = 0; i < 3; i++) CHECK_EQUAL(cuGraphLaunch(exec, s), 0);
    CHECK_EQUAL(cuStreamSynchronize(s), 0);
    CHECK(figure(USED) == 0 && figure(USED_HIGH) == 100 * MIB);
    CHECK(figure(RESERVED) == 100 * MIB && gml_sim_used_bytes(0) == 100 * MIB);
    CHECK_EQUAL(cuDeviceGraphMemTrim(0), 0);
    CHECK(figure(RESERVED) == 0 && figure(RESERVED_HIGH) == 100 * MIB && gml_sim_used_bytes(0) == 0);
    CHECK_EQUAL(cuDeviceSetGraphMemAttribute(0, USED_HIGH, &one), CUDA_ERROR_INVALID_VALUE);
    CHECK_EQUAL(cuDeviceSetGraphMemAttribute(0, USED_HIGH, &zero), 0);
    CHECK_EQUAL(figure(USED_HIGH), 0);
    CHECK_EQUAL(cuMemFreeAsync(va, s), CUDA_ERROR_INVALID_VALUE); /* the graph freed it */
    CHECK_EQUAL(cuGraphExecDestroy(exec), 0);
    CHECK_EQUAL(cuGraphInstantiateWithFlags(&exec, graph, 0), 0);
    CHECK_EQUAL(cuGraphLaunch(exec, s), 0);
    CHECK_EQUAL(cuCtxSynchronize(), 0);
}

static void test_freed_by_the_program(void)
{
    use_device();
    CUstream s = stream_new();
    CUdeviceptr va;
    CUgraphExec exec;
    unsigned char seen = 0;
    CUgraph graph = capture(s, &va, false);
    CHECK_EQUAL(cuGraphInstantiateWithFlags(&exec, graph, 0), 0);
    CHECK_EQUAL(cuGraphLaunch(exec, s), 0);
    CHECK_EQUAL(cuStreamSynchronize(s), 0);
    CHECK_EQUAL(cuMemcpyDtoH_v2(&seen, va, 1), 0);
    CHECK_EQUAL(seen, 7);
    CHECK_EQUAL(cuGraphLaunch(exec, s), CUDA_ERROR_INVALID_VALUE); /* its allocation was not freed */
    CHECK_EQUAL(cuMemFreeAsync(va, s), 0);
    CHECK_EQUAL(cuMemFreeAsync(va, s), CUDA_ERROR_INVALID_VALUE);
    CHECK_EQUAL(cuGraphLaunch(exec, s), 0); /* behind the free, in the stream's order */
    CHECK_EQUAL(figure(USED), 100 * MIB);
    CHECK_EQUAL(cuGraphExecDestroy(exec), 0);
    CHECK_EQUAL(cuGraphDestroy(graph), 0);
    CHECK_EQUAL(cuMemsetD8_v2(va, 1, 4096), 0); /* the allocation outlives its graph */
    CHECK_EQUAL(cuMemFree_v2(va), 0);
    CHECK_EQUAL(figure(USED), 0);
    CHECK_EQUAL(cuMemFree_v2(va), CUDA_ERROR_INVALID_VALUE);
}

static void test_freed_by_the_next_launch(void)
{
    use_device();
    CUstream s = stream_new();
    CUdeviceptr va;
    CUgraphExec exec;
    CHECK_EQUAL(cuGraphInstantiateWithFlags(&exec, capture(s, &va, false), AUTO_FREE), 0);
    for (int i = 0; i < 3; i++) CHECK_EQUAL(cuGraphLaunch(exec, s), 0);
    CHECK_EQUAL(figure(USED), 100 * MIB);
    CHECK_EQUAL(cuMemFreeAsync(va, s), 0);
    CHECK_EQUAL(cuStreamSynchronize(s), 0);
    CHECK_EQUAL(figure(USED), 0);
}

/* The free of one launch comes to its stream after the next launch: the memory stays. */
static void test_a_late_free(void)
{
    use_device();
    CUstream s = stream_new();
    CUdeviceptr va;
    CUgraphExec exec;
    CHECK_EQUAL(cuGraphInstantiateWithFlags(&exec, capture(s, &va, true), 0), 0);
    keep_busy(s, 50);
    for (int i = 0; i < 3; i++) CHECK_EQUAL(cuGraphLaunch(exec, s), 0);
    CHECK_EQUAL(cuCtxSynchronize(), 0);
    CHECK_EQUAL(figure(USED), 0);
}

static void test_no_memory_for_a_launch(void)
{
    use_device();
    CUstream s = stream_new();
    CUdeviceptr va, other;
    CUgraphExec exec;
    CHECK_EQUAL(cuGraphInstantiateWithFlags(&exec, capture(s, &va, true), 0), 0);
    CHECK_EQUAL(cuMemAlloc_v2(&other, 950 * MIB), 0);
    CHECK_EQUAL(cuGraphLaunch(exec, s), CUDA_ERROR_OUT_OF_MEMORY);
    CHECK_EQUAL(figure(USED), 0);
    CHECK_EQUAL(cuMemFree_v2(other), 0);
    CHECK_EQUAL(cuGraphLaunch(exec, s), 0);
    CHECK_EQUAL(cuCtxSynchronize(), 0);
}

/* Memory from before the capture cannot be freed in it, nor a graph's memory be touched before a launch. */
static void test_what_is_refused(void)
{
    use_device();
    CUstream s = stream_new();
    CUdeviceptr plain, va;
    CUgraph graph;
    CHECK_EQUAL(cuMemAllocAsync(&plain, MIB, s), 0);
    CHECK_EQUAL(cuStreamBeginCapture_v2(s, CU_STREAM_CAPTURE_MODE_GLOBAL), 0);
    CHECK_EQUAL(cuMemFreeAsync(plain, s), CUDA_ERROR_INVALID_VALUE);
    CHECK_EQUAL(cuMemAllocAsync(&va, MIB, s), 0);
    CHECK_EQUAL(cuStreamEndCapture(s, &graph), 0);
    CHECK_EQUAL(cuMemFreeAsync(plain, s), 0);
    CHECK_EQUAL(cuMemsetD8_v2(va, 1, 16), CUDA_ERROR_ILLEGAL_ADDRESS);
}

int main(void)
{
    RUN_SIM(test_freed_by_the_graph);
    RUN_LATE(test_freed_by_the_graph);
    RUN_SIM(test_freed_by_the_program);
    RUN_LATE(test_freed_by_the_program);
    RUN_SIM(test_freed_by_the_next_launch);
    RUN_SIM(test_a_late_free);
    RUN_SIM(test_no_memory_for_a_launch);
    RUN_SIM(test_what_is_refused);
    return 0;
}
