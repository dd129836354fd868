/* SPDX-License-Identifier: Apache-2.0 */
/* The ordering oracle: allocators that break the rules are stopped, those that keep them are not. */
#include "support.h"

#include <pthread.h>

enum { FREED = 0, REUSED = 1 };

static void give(CUdeviceptr va, size_t bytes, CUstream stream)
{
    gml_sim_note(FREED, (uintptr_t)va, bytes, (uint64_t)(uintptr_t)stream);
}

static void take(CUdeviceptr va, size_t bytes, CUstream stream)
{
    gml_sim_note(REUSED, (uintptr_t)va, bytes, (uint64_t)(uintptr_t)stream);
}

static void launch(CUdeviceptr va, CUstream stream)
{
    CHECK_EQUAL(cuMemsetD8Async(va, 1, 16, stream), 0);
}

static CUmemGenericAllocationHandle handle;

static void test_same_stream_needs_nothing(void)
{
    use_device();
    CUdeviceptr va = mapped(CHUNK, &handle);
    CUstream s = stream_new();
    for (int i = 0; i < 100; i++) {
        take(va + 512, 4096, s);
        launch(va + 512, s);
        give(va + 512, 4096, s);
    }
}

static void test_other_stream_without_order(void)
{
    use_device();
    CUdeviceptr va = mapped(CHUNK, &handle);
    CUstream s = stream_new(), t = stream_new();
    take(va, 4096, s);
    launch(va, s);
    give(va, 4096, s);
    take(va + 2048, 16, t);
}

static void test_other_stream_behind_an_event(void)
{
    use_device();
    CUdeviceptr va = mapped(CHUNK, &handle);
    CUstream s = stream_new(), t = stream_new(), u = stream_new();
    CUevent e = event_new(), f = event_new();
    take(va, 4096, s);
    launch(va, s);
    give(va, 4096, s);
    CHECK_EQUAL(cuEventRecord(e, s), 0);
    CHECK_EQUAL(cuStreamWaitEvent(t, e, 0), 0);
    CHECK_EQUAL(cuEventRecord(f, t), 0);
    CHECK_EQUAL(cuStreamWaitEvent(u, f, 0), 0); /* over two steps */
    take(va, 4096, u);
}

static void test_event_recorded_before_the_work(void)
{
    use_device();
    CUdeviceptr va = mapped(CHUNK, &handle);
    CUstream s = stream_new(), t = stream_new();
    CUevent e = event_new();
    take(va, 4096, s);
    CHECK_EQUAL(cuEventRecord(e, s), 0);
    launch(va, s);
    give(va, 4096, s);
    CHECK_EQUAL(cuStreamWaitEvent(t, e, 0), 0);
    take(va, 4096, t);
}

static void test_wait_on_the_wrong_stream(void)
{
    use_device();
    CUdeviceptr va = mapped(CHUNK, &handle);
    CUstream s = stream_new(), t = stream_new(), u = stream_new();
    CUevent e = event_new();
    take(va, 4096, s);
    launch(va, s);
    give(va, 4096, s);
    CHECK_EQUAL(cuEventRecord(e, s), 0);
    CHECK_EQUAL(cuStreamWaitEvent(u, e, 0), 0);
    take(va, 4096, t);
}

static void test_host_knowledge(void)
{
    use_device();
    CUdeviceptr va = mapped(CHUNK, &handle);
    CUstream s = stream_new(), t = stream_new();
    CUevent e = event_new();
    take(va, 4096, s);
    launch(va, s);
    give(va, 4096, s);
    CHECK_EQUAL(cuStreamSynchronize(s), 0);
    take(va, 4096, t);
    launch(va, t);
    give(va, 4096, t);
    CHECK_EQUAL(cuEventRecord(e, t), 0);
    while (cuEventQuery(e) == CUDA_ERROR_NOT_READY) {}
    gml_sim_note(REUSED, (uintptr_t)va, 4096, UINT64_MAX); /* for use on any stream */
    launch(va, s);
    launch(va, t);
    gml_sim_note(FREED, (uintptr_t)va, 4096, UINT64_MAX);
    CHECK_EQUAL(cuCtxSynchronize(), 0);
    take(va, 4096, stream_new());
}

static void test_no_stream_named_but_only_ordered(void)
{
    use_device();
    CUdeviceptr va = mapped(CHUNK, &handle);
    CUstream s = stream_new(), t = stream_new();
    CUevent e = event_new();
    take(va, 4096, s);
    launch(va, s);
    give(va, 4096, s);
    CHECK_EQUAL(cuEventRecord(e, s), 0);
    CHECK_EQUAL(cuStreamWaitEvent(t, e, 0), 0);
    gml_sim_note(REUSED, (uintptr_t)va, 4096, UINT64_MAX);
}

static void test_legacy_stream_orders_blocking_ones_only(void)
{
    use_device();
    CUdeviceptr va = mapped(CHUNK, &handle);
    CUstream blocking, s = stream_new();
    CHECK_EQUAL(cuStreamCreate(&blocking, CU_STREAM_DEFAULT), 0);
    take(va, 512, blocking);
    launch(va, blocking);
    give(va, 512, blocking);
    launch(va + 8192, NULL); /* comes behind the blocking stream */
    take(va, 512, NULL);
    take(va + 1024, 512, s);
    launch(va + 1024, s);
    give(va + 1024, 512, s);
    launch(va + 8192, NULL);
    take(va + 1024, 512, NULL); /* but not behind the non-blocking one */
}

static void test_alias_is_seen_through(void)
{
    use_device();
    CUdeviceptr va = mapped(CHUNK, &handle), other = reserve(CHUNK);
    CHECK_EQUAL(cuMemMap(other, CHUNK, 0, handle, 0), 0);
    give_access(other, CHUNK);
    take(va + 4096, 4096, NULL);
    take(other + 8191, 1, NULL);
}

static void test_double_free(void)
{
    use_device();
    CUdeviceptr va = mapped(CHUNK, &handle);
    take(va, 4096, NULL);
    give(va, 4096, NULL);
    give(va, 4096, NULL);
}

static void test_unmap_under_unfinished_work(void)
{
    use_device();
    CUdeviceptr va = mapped(CHUNK, &handle);
    CUstream s = stream_new();
    take(va, 4096, s);
    launch(va, s);
    give(va, 4096, s);
    CHECK_EQUAL(cuMemUnmap(va, CHUNK), 0);
}

/* A program that lost its context resets the device: no work is left that the unmap could come too early for. */
static void test_unmap_in_a_lost_context(void)
{
    use_device();
    CUdeviceptr va = mapped(CHUNK, &handle);
    take(va, 4096, NULL);
    CHECK_EQUAL(cuMemsetD8_v2(va, 0, 2 * CHUNK), CUDA_ERROR_ILLEGAL_ADDRESS); /* past its end */
    give(va, 4096, NULL);
    CHECK_EQUAL(cuMemUnmap(va, CHUNK), 0);
    CHECK_EQUAL(cuDevicePrimaryCtxReset_v2(0), 0);
    use_device();
    CHECK_EQUAL(cuCtxSynchronize(), 0);
}

static void test_unmap_under_a_live_block(void)
{
    use_device();
    CUdeviceptr va = mapped(CHUNK, &handle);
    take(va, 4096, NULL);
    CHECK_EQUAL(cuMemUnmap(va, CHUNK), 0);
}

static void test_unmap_under_a_queued_copy(void)
{
    use_device();
    CUdeviceptr va = mapped(CHUNK, &handle);
    CUstream s = stream_new();
    keep_busy(s, 200);
    launch(va, s);
    CHECK_EQUAL(cuMemUnmap(va, CHUNK), 0);
}

static void test_unmap_of_finished_memory(void)
{
    use_device();
    CUdeviceptr va = mapped(CHUNK, &handle), other = reserve(CHUNK);
    CUstream s = stream_new();
    CHECK_EQUAL(cuMemMap(other, CHUNK, 0, handle, 0), 0);
    take(va, 4096, s);
    launch(va, s);
    CHECK_EQUAL(cuMemUnmap(other, CHUNK), 0); /* an idle alias may go while the block lives elsewhere */
    give(va, 4096, s);
    CHECK_EQUAL(cuStreamSynchronize(s), 0);
    CHECK_EQUAL(cuMemUnmap(va, CHUNK), 0);
}

/* Far more streams than slots: those that share one are still told apart from order that is missing. */
static void test_thousands_of_streams(void)
{
    use_device();
    CUdeviceptr va = mapped(CHUNK, &handle);
    CUevent e = event_new();
    CUstream before = stream_new();
    take(va, 4096, before);
    for (int i = 0; i < 5000; i++) {
        CUstream s = stream_new();
        launch(va, before);
        launch(va, before);
        give(va, 4096, before);
        CHECK_EQUAL(cuEventRecord(e, before), 0);
        CHECK_EQUAL(cuStreamWaitEvent(s, e, 0), 0);
        launch(va + CHUNK / 2, s);
        take(va, 4096, s);
        before = s;
    }
}

/* Waiting for the context makes known what streams that are gone have done. */
static void test_waiting_covers_destroyed_streams(void)
{
    use_device();
    CUdeviceptr va = mapped(CHUNK, &handle);
    for (int i = 0; i < 20; i++) {
        CUstream s = stream_new();
        gml_sim_note(REUSED, (uintptr_t)va, 4096, UINT64_MAX);
        launch(va, s);
        CHECK_EQUAL(cuStreamDestroy_v2(s), 0);
        gml_sim_note(FREED, (uintptr_t)va, 4096, UINT64_MAX);
        CHECK_EQUAL(cuCtxSynchronize(), 0);
    }
}

static void test_work_after_a_destroyed_stream(void)
{
    use_device();
    CUdeviceptr va = mapped(CHUNK, &handle);
    CUstream s = stream_new();
    take(va, 4096, s);
    keep_busy(s, 30);
    give(va, 4096, s);
    CHECK_EQUAL(cuStreamDestroy_v2(s), 0);
    take(va, 4096, stream_new());
}

/* Without the oracle the same mistake shows in the data, late enough. */
static void test_unordered_reuse_corrupts_data(void)
{
    use_device();
    CUdeviceptr va = mapped(CHUNK, &handle);
    CUstream s = stream_new(), t = stream_new();
    unsigned char byte;
    int corrupted = 0;
    for (int i = 0; i < 300 && !corrupted; i++) {
        CHECK_EQUAL(cuMemsetD8Async(va, 1, 64 * 1024, s), 0); /* the old owner's last write */
        CHECK_EQUAL(cuMemsetD8Async(va, 2, 64 * 1024, t), 0); /* the new owner's data */
        CHECK_EQUAL(cuStreamSynchronize(t), 0);
        CHECK_EQUAL(cuStreamSynchronize(s), 0);
        CHECK_EQUAL(cuMemcpyDtoH_v2(&byte, va, 1), 0);
        corrupted += byte != 2;
    }
    CHECK(corrupted > 0);
}

int main(void)
{
    RUN_SIM(test_same_stream_needs_nothing);
    RUN_STOP(test_other_stream_without_order, "before work on it is ordered");
    RUN_SIM(test_other_stream_behind_an_event);
    RUN_LATE(test_other_stream_behind_an_event);
    RUN_STOP(test_event_recorded_before_the_work, "before work on it is ordered");
    RUN_STOP(test_wait_on_the_wrong_stream, "before work on it is ordered");
    RUN_SIM(test_host_knowledge);
    RUN_LATE(test_host_knowledge);
    RUN_STOP(test_no_stream_named_but_only_ordered, "before work on it is ordered");
    RUN_STOP(test_legacy_stream_orders_blocking_ones_only, "before work on it is ordered");
    RUN_STOP(test_alias_is_seen_through, "handed out that is in use");
    RUN_STOP(test_double_free, "free already");
    RUN_STOP(test_unmap_under_unfinished_work, "unmapped before the host knows");
    RUN_STOP(test_unmap_under_a_live_block, "in use is unmapped");
    RUN_STOP(test_unmap_under_a_queued_copy, "waiting in a stream");
    RUN_SIM(test_unmap_of_finished_memory);
    RUN_SIM(test_unmap_in_a_lost_context);
    RUN_STOP(test_work_after_a_destroyed_stream, "before work on it is ordered");
    RUN_SIM(test_waiting_covers_destroyed_streams);
    RUN_LATE(test_waiting_covers_destroyed_streams);
    RUN_SIM(test_thousands_of_streams);
    run_on_device("test_other_stream_without_order", test_other_stream_without_order, "GML_SIM_ORACLE=0");
    RUN_LATE(test_unordered_reuse_corrupts_data);
    return 0;
}
