/* SPDX-License-Identifier: Apache-2.0 */
/* Streams and events: order, waiting, late execution, default-stream rules, destroyed handles. */
#define _GNU_SOURCE
#include "support.h"

#include <pthread.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static double seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static void test_a_host_function_keeps_its_stream_busy(void)
{
    use_device();
    CUstream s = stream_new(), other = stream_new();
    CUevent e = event_new();
    double start = seconds();
    keep_busy(s, 300);
    CHECK_EQUAL(cuEventRecord(e, s), 0);
    CHECK_EQUAL(cuStreamQuery(s), CUDA_ERROR_NOT_READY);
    CHECK_EQUAL(cuEventQuery(e), CUDA_ERROR_NOT_READY);
    CHECK_EQUAL(cuStreamQuery(other), 0);
    CHECK(seconds() - start < 0.25);
    CHECK_EQUAL(cuEventSynchronize(e), 0);
    CHECK(seconds() - start >= 0.28);
    CHECK_EQUAL(cuStreamQuery(s), 0);
    CHECK_EQUAL(cuEventQuery(e), 0);
}

static void test_a_wait_orders_streams(void)
{
    use_device();
    CUmemGenericAllocationHandle handle;
    CUdeviceptr va = mapped(CHUNK, &handle);
    CUstream producer = stream_new(), consumer = stream_new();
    CUevent e = event_new();
    unsigned char *pinned;
    CHECK_EQUAL(cuMemHostAlloc((void **)&pinned, 4096, 0), 0);
    for (int round = 1; round < 20; round++) {
        keep_busy(producer, 3);
        CHECK_EQUAL(cuMemsetD8Async(va, (unsigned char)round, 4096, producer), 0);
        CHECK_EQUAL(cuEventRecord(e, producer), 0);
        CHECK_EQUAL(cuStreamWaitEvent(consumer, e, 0), 0);
        CHECK_EQUAL(cuMemcpyDtoHAsync_v2(pinned, va, 4096, consumer), 0);
        CHECK_EQUAL(cuStreamSynchronize(consumer), 0);
        CHECK_EQUAL(pinned[0], round);
        CHECK_EQUAL(pinned[4095], round);
    }
}

/* A wait holds for the record that was latest when it was called, whatever happens to the event later. */
static void test_a_wait_keeps_its_record(void)
{
    use_device();
    CUstream a = stream_new(), b = stream_new(), c = stream_new();
    CUevent e = event_new();
    double start = seconds();
    CHECK_EQUAL(cuEventRecord(e, a), 0);
    CHECK_EQUAL(cuStreamWaitEvent(c, e, 0), 0);
    keep_busy(b, 300);
    CHECK_EQUAL(cuEventRecord(e, b), 0);
    CHECK_EQUAL(cuStreamSynchronize(c), 0);
    CHECK(seconds() - start < 0.25);
    CHECK_EQUAL(cuEventQuery(e), CUDA_ERROR_NOT_READY);
    CHECK_EQUAL(cuEventDestroy_v2(e), 0); /* while it is pending */
    CHECK_EQUAL(cuEventQuery(e), CUDA_ERROR_INVALID_HANDLE);
    CHECK_EQUAL(cuCtxSynchronize(), 0);
}

static void test_no_order_without_a_wait(void)
{
    use_device();
    CUmemGenericAllocationHandle handle;
    CUdeviceptr va = mapped(CHUNK, &handle);
    CUstream writer = stream_new(), reader = stream_new();
    unsigned char *pinned;
    CHECK_EQUAL(cuMemHostAlloc((void **)&pinned, 4096, 0), 0);
    keep_busy(writer, 300);
    CHECK_EQUAL(cuMemsetD8Async(va, 9, 64, writer), 0);
    CHECK_EQUAL(cuMemcpyDtoHAsync_v2(pinned, va, 64, reader), 0);
    CHECK_EQUAL(cuStreamSynchronize(reader), 0);
    CHECK_EQUAL(pinned[0], 0);
}

static void test_the_legacy_stream_waits_for_blocking_streams(void)
{
    use_device();
    CUstream blocking;
    CHECK_EQUAL(cuStreamCreate(&blocking, CU_STREAM_DEFAULT), 0);
    double start = seconds();
    keep_busy(blocking, 300);
    CHECK_EQUAL(cuStreamSynchronize(NULL), 0);
    CHECK(seconds() - start >= 0.28);
    start = seconds();
    keep_busy(NULL, 300);
    CUevent e = event_new();
    CHECK_EQUAL(cuEventRecord(e, blocking), 0);
    CHECK_EQUAL(cuEventSynchronize(e), 0);
    CHECK(seconds() - start >= 0.28);
    CUstream free_one = stream_new(); /* non-blocking: no order with the legacy stream */
    start = seconds();
    keep_busy(free_one, 300);
    CHECK_EQUAL(cuStreamSynchronize(NULL), 0);
    CHECK(seconds() - start < 0.25);
}

static void *sync_own(void *out)
{
    CUcontext ctx;
    CHECK_EQUAL(cuDevicePrimaryCtxRetain(&ctx, 0), 0);
    CHECK_EQUAL(cuCtxSetCurrent(ctx), 0);
    double start = seconds();
    CHECK_EQUAL(cuStreamGetId(CU_STREAM_PER_THREAD, (unsigned long long *)out), 0);
    CHECK_EQUAL(cuStreamSynchronize(CU_STREAM_PER_THREAD), 0);
    CHECK(seconds() - start < 0.25);
    return NULL;
}

static void test_per_thread_streams_are_separate(void)
{
    use_device();
    unsigned long long mine, theirs;
    CHECK_EQUAL(cuStreamGetId(CU_STREAM_PER_THREAD, &mine), 0);
    keep_busy(CU_STREAM_PER_THREAD, 300);
    pthread_t thread;
    CHECK_EQUAL(pthread_create(&thread, NULL, sync_own, &theirs), 0);
    pthread_join(thread, NULL);
    CHECK(mine != theirs);
    CHECK_EQUAL(cuStreamQuery(CU_STREAM_PER_THREAD), CUDA_ERROR_NOT_READY);
    CHECK_EQUAL(cuCtxSynchronize(), 0);
    CHECK_EQUAL(cuStreamQuery(CU_STREAM_PER_THREAD), 0);
}

static void test_destroyed_streams(void)
{
    use_device();
    CUstream s = stream_new();
    CUevent e = event_new();
    unsigned long long id, again;
    CHECK_EQUAL(cuStreamGetId(s, &id), 0);
    keep_busy(s, 300);
    CHECK_EQUAL(cuEventRecord(e, s), 0);
    double start = seconds();
    CHECK_EQUAL(cuStreamDestroy_v2(s), 0);
    CHECK(seconds() - start < 0.25);
    CHECK_EQUAL(cuStreamQuery(s), CUDA_ERROR_INVALID_HANDLE);
    CHECK_EQUAL(cuStreamDestroy_v2(s), CUDA_ERROR_INVALID_HANDLE);
    CHECK_EQUAL(cuEventQuery(e), CUDA_ERROR_NOT_READY); /* its work goes on */
    CHECK_EQUAL(cuEventSynchronize(e), 0);
    CHECK_EQUAL(cuEventDestroy_v2(e), 0);
    usleep(100000);
    CUstream next = stream_new(); /* the handle returns, the id does not */
    CHECK_EQUAL(next, s);
    CHECK_EQUAL(cuStreamGetId(next, &again), 0);
    CHECK(id != again);
}

/* Waiting for the context, events over it, and the legacy stream stand behind work whose stream is gone. */
static void test_work_of_destroyed_streams_is_waited_for(void)
{
    use_device();
    for (int round = 0; round < 4; round++) {
        CUevent done = event_new(), all = event_new();
        CUstream s;
        CHECK_EQUAL(cuStreamCreate(&s, round == 3 ? CU_STREAM_DEFAULT : CU_STREAM_NON_BLOCKING), 0);
        keep_busy(s, 100);
        CHECK_EQUAL(cuEventRecord(done, s), 0);
        CHECK_EQUAL(cuStreamDestroy_v2(s), 0);
        if (round == 0) CHECK_EQUAL(cuCtxSynchronize(), 0);
        if (round == 1) CHECK_EQUAL(cuCtxRecordEvent(NULL, all), 0);
        if (round == 1) CHECK_EQUAL(cuEventSynchronize(all), 0);
        if (round == 2) CHECK_EQUAL(cuStreamSynchronize(NULL), 0);
        if (round == 3) CHECK_EQUAL(cuStreamSynchronize(NULL), 0);
        CHECK_EQUAL(cuEventQuery(done), round == 2 ? CUDA_ERROR_NOT_READY : 0); /* a non-blocking one is nobody's */
        CHECK_EQUAL(cuEventSynchronize(done), 0);
    }
}

static void test_pageable_memory_may_change_after_the_call(void)
{
    use_device();
    CUmemGenericAllocationHandle handle;
    CUdeviceptr va = mapped(CHUNK, &handle);
    CUstream s = stream_new();
    char pageable[256], back[256], *pinned;
    CHECK_EQUAL(cuMemHostAlloc((void **)&pinned, 256, 0), 0);
    memset(pageable, 1, sizeof pageable);
    memset(pinned, 1, 256);
    keep_busy(s, 30);
    CHECK_EQUAL(cuMemcpyHtoDAsync_v2(va, pageable, 256, s), 0);
    CHECK_EQUAL(cuMemcpyHtoDAsync_v2(va + 256, pinned, 256, s), 0);
    memset(pageable, 2, sizeof pageable);
    memset(pinned, 2, 256); /* too early: the copy reads it later */
    CHECK_EQUAL(cuStreamSynchronize(s), 0);
    CHECK_EQUAL(cuMemcpyDtoH_v2(back, va, 256), 0);
    CHECK_EQUAL(back[0], 1);
    CHECK_EQUAL(cuMemcpyDtoH_v2(back, va + 256, 256), 0);
    CHECK_EQUAL(back[0], 2);
}

static void test_an_event_over_the_context(void)
{
    use_device();
    CUstream s = stream_new();
    CUevent e = event_new();
    double start = seconds();
    keep_busy(s, 300);
    CHECK_EQUAL(cuCtxRecordEvent(NULL, e), 0);
    CHECK_EQUAL(cuEventQuery(e), CUDA_ERROR_NOT_READY);
    CHECK_EQUAL(cuEventSynchronize(e), 0);
    CHECK(seconds() - start >= 0.28);
}

/* In adversarial time even a lone fill is late, and large copies are real. */
static void test_everything_is_late(void)
{
    use_device();
    CUmemGenericAllocationHandle handle;
    CUdeviceptr va = mapped(64 * MIB, &handle);
    CUstream s = stream_new();
    int late = 0;
    for (int i = 0; i < 50; i++) {
        CHECK_EQUAL(cuMemsetD8Async(va, 3, 32 * MIB, s), 0);
        late += cuStreamQuery(s) == CUDA_ERROR_NOT_READY;
        if (i == 3) break;
    }
    CHECK(late > 0);
    CHECK_EQUAL(cuMemcpyDtoDAsync_v2(va + 32 * MIB, va, 32 * MIB, s), 0);
    CHECK_EQUAL(cuStreamSynchronize(s), 0);
    unsigned char byte;
    CHECK_EQUAL(cuMemcpyDtoH_v2(&byte, va + 64 * MIB - 1, 1), 0);
    CHECK_EQUAL(byte, 3);
}

static void test_plain_calls_are_exact_up_to_64_mib(void)
{
    use_device();
    CUmemGenericAllocationHandle handle;
    CUdeviceptr va = mapped(64 * MIB, &handle);
    unsigned char *back = malloc(64 * MIB);
    CHECK(back);
    CHECK_EQUAL(cuMemsetD8_v2(va, 0xa5, 64 * MIB), 0);
    CHECK_EQUAL(cuMemcpyDtoH_v2(back, va, 64 * MIB), 0);
    CHECK(back[0] == 0xa5 && !memcmp(back, back + 1, 64 * MIB - 1));
    free(back);
}

/* Two places in one piece of memory: what a copy wrote is read back, what a kernel may have written is not. */
static void test_results_beside_copied_data(void)
{
    use_device();
    CUdeviceptr m;
    uint64_t old = 0x1234, word = 7, seen = 1;
    CHECK_EQUAL(cuMemAlloc_v2(&m, CHUNK), 0);
    CHECK_EQUAL(cuMemcpyHtoD_v2(m, &old, sizeof old), 0);
    CHECK_EQUAL(cuMemcpyHtoD_v2(m + 512, &word, sizeof word), 0);
    CHECK_EQUAL(cuMemcpyDtoH_v2(&seen, m, sizeof seen), 0);
    CHECK_EQUAL(seen, old); /* nothing was launched since */
    CHECK_EQUAL(gml_sim_launch(NULL, 1), 0);
    CHECK_EQUAL(cuMemcpyHtoD_v2(m + 512, &word, sizeof word), 0);
    CHECK_EQUAL(cuMemcpyDtoH_v2(&seen, m, sizeof seen), 0);
    CHECK_EQUAL(seen, 0);
    CHECK_EQUAL(cuMemcpyDtoDAsync_v2(m + 1024, m, sizeof seen, NULL), 0); /* a copy of a result is one */
    CHECK_EQUAL(cuMemcpyDtoDAsync_v2(m + 2048, m + 512, sizeof seen, NULL), 0);
    CHECK_EQUAL(cuMemcpyDtoH_v2(&seen, m + 1024, sizeof seen), 0);
    CHECK_EQUAL(seen, 0);
    CHECK_EQUAL(cuMemcpyDtoH_v2(&seen, m + 2048, sizeof seen), 0);
    CHECK_EQUAL(seen, word);
}

int main(void)
{
    RUN_SIM(test_a_host_function_keeps_its_stream_busy);
    RUN_SIM(test_a_wait_orders_streams);
    RUN_LATE(test_a_wait_orders_streams);
    RUN_SIM(test_a_wait_keeps_its_record);
    RUN_SIM(test_no_order_without_a_wait);
    RUN_SIM(test_the_legacy_stream_waits_for_blocking_streams);
    RUN_LATE(test_the_legacy_stream_waits_for_blocking_streams);
    RUN_SIM(test_per_thread_streams_are_separate);
    RUN_SIM(test_destroyed_streams);
    RUN_SIM(test_work_of_destroyed_streams_is_waited_for);
    RUN_LATE(test_work_of_destroyed_streams_is_waited_for);
    RUN_SIM(test_pageable_memory_may_change_after_the_call);
    RUN_SIM(test_an_event_over_the_context);
    RUN_LATE(test_everything_is_late);
    RUN_SIM(test_plain_calls_are_exact_up_to_64_mib);
    RUN_SIM(test_results_beside_copied_data);
    return 0;
}
