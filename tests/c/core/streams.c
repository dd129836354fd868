/* SPDX-License-Identifier: Apache-2.0 */
/* The order of work: who waits for whom before memory is used again, mapped elsewhere, or unmapped.
 *
 * Work stays unfinished until a test ends it, so that the model's vector clocks miss no wait. */
#include "bench.h"

#define BLOCK (8 * GML_MIB)

static test_bench stream_bench(uint64_t mib)
{
    return busy_bench(mib, (gml_heap_options){.goal = GML_GOAL_MEMORY});
}

static uint64_t calls(test_bench bench, gml_device_call call)
{
    return gml_model_usage_of(bench.device).calls[call];
}

/* Three blocks of one stream that do not touch: small ones keep their ranges apart. */
static void take_apart(test_bench bench, gml_stream stream, uintptr_t block[3])
{
    for (int i = 0; i < 3; i++) {
        block[i] = take_on(bench, BLOCK, stream, GML_API_ASYNC);
        (void)take_on(bench, 2 * GML_MIB, stream, GML_API_ASYNC);
    }
}

static void work_and_give(test_bench bench, uintptr_t block, gml_stream stream)
{
    gml_model_submit(bench.device, stream);
    give_on(bench, block, stream);
}

static void test_an_older_event_is_not_enough(void)
{
    test_bench bench = stream_bench(64);
    uintptr_t block[3];
    take_apart(bench, 1, block);
    work_and_give(bench, block[0], 1);
    CHECK_EQUAL(take_on(bench, BLOCK, 5, GML_API_ASYNC), block[0]); /* an event stands at the first free */
    work_and_give(bench, block[1], 1);
    CHECK_EQUAL(take_on(bench, BLOCK, 5, GML_API_ASYNC), block[1]);
    CHECK_EQUAL(calls(bench, GML_CALL_stream_wait), 2);
    close_bench(bench);
}

static void test_a_wait_counts_for_what_it_covers(void)
{
    test_bench bench = stream_bench(64);
    uintptr_t block[3];
    take_apart(bench, 1, block);
    work_and_give(bench, block[0], 1);
    give_on(bench, block[1], 1);
    CHECK_EQUAL(take_on(bench, BLOCK, 5, GML_API_ASYNC), block[0]); /* the event covers both frees */
    work_and_give(bench, block[2], 1);
    CHECK_EQUAL(take_on(bench, BLOCK, 6, GML_API_ASYNC), block[1]); /* it will do for the second one too */
    CHECK_EQUAL(calls(bench, GML_CALL_stream_wait), 2);
    CHECK_EQUAL(take_on(bench, BLOCK, 6, GML_API_ASYNC), block[2]); /* but not for the third */
    CHECK_EQUAL(calls(bench, GML_CALL_stream_wait), 3);
    close_bench(bench);
}

/* PyTorch frees what several streams used on one that then waits for others: none of that is waited for. */
static void test_a_free_elsewhere_has_its_own_event(void)
{
    test_bench bench = stream_bench(64);
    uintptr_t block = take_on(bench, BLOCK, 1, GML_API_ASYNC);
    work_and_give(bench, block, 5);
    gml_model_submit(bench.device, 5);
    CHECK_EQUAL(take_on(bench, BLOCK, 6, GML_API_ASYNC), block);
    CHECK_EQUAL(gml_model_awaits(bench.device, 6, 5), 1);
    close_bench(bench);
}

static void test_many_frees_elsewhere_keep_the_first_events(void)
{
    enum { BLOCKS = 12 };
    test_bench bench = stream_bench(256);
    uintptr_t block[BLOCKS];
    for (unsigned i = 0; i < BLOCKS; i++) {
        block[i] = take_on(bench, BLOCK + i * (uint64_t)GML_MIB, 1, GML_API_ASYNC);
        (void)take_on(bench, 2 * GML_MIB, 1, GML_API_ASYNC);
    }
    for (unsigned i = 0; i < BLOCKS; i++)
        work_and_give(bench, block[i], 5);
    CHECK_EQUAL(take_on(bench, BLOCK, 6, GML_API_ASYNC), block[0]);
    CHECK_EQUAL(gml_model_awaits(bench.device, 6, 5), 1);
    CHECK_EQUAL(take_on(bench, BLOCK + GML_MIB, 7, GML_API_ASYNC), block[1]);
    CHECK_EQUAL(gml_model_awaits(bench.device, 7, 5), 2);
    close_bench(bench);
}

/* A free on the stream of the allocation costs no event. */
static void test_an_ordinary_free_makes_no_event(void)
{
    test_bench bench = stream_bench(64);
    work_and_give(bench, take_on(bench, BLOCK, 1, GML_API_ASYNC), 1);
    CHECK_EQUAL(calls(bench, GML_CALL_event_record), 0);
    close_bench(bench);
}

static void test_a_completed_event_counts_for_what_it_covers(void)
{
    test_bench bench = stream_bench(64);
    uintptr_t block[3];
    take_apart(bench, 1, block);
    work_and_give(bench, block[0], 1);
    CHECK_EQUAL(take_on(bench, BLOCK, 5, GML_API_ASYNC), block[0]);
    gml_model_finish(bench.device, 1);
    work_and_give(bench, block[1], 1);
    CHECK_EQUAL(take_on(bench, BLOCK, 5, GML_API_ASYNC), block[1]);
    CHECK_EQUAL(calls(bench, GML_CALL_stream_wait), 2);
    close_bench(bench);
}

/* A somewhat larger gap without a wait is better than one that fits exactly. */
static void test_what_is_free_at_once_comes_first(void)
{
    test_bench bench = stream_bench(64);
    const uint64_t bytes = BLOCK + GML_MIB; /* no whole chunks: one search has to find it */
    uintptr_t exact = take_on(bench, bytes, 1, GML_API_ASYNC);
    (void)take_on(bench, 2 * GML_MIB, 1, GML_API_ASYNC);
    uintptr_t larger = take_on(bench, bytes + 2 * GML_MIB, 5, GML_API_ASYNC);
    (void)take_on(bench, 2 * GML_MIB, 1, GML_API_ASYNC);
    work_and_give(bench, exact, 1);
    work_and_give(bench, larger, 5);
    CHECK_EQUAL(take_on(bench, bytes, 5, GML_API_ASYNC), larger);
    CHECK_EQUAL(calls(bench, GML_CALL_stream_wait), 0);
    close_bench(bench);
}

/* Two threads that say "my own stream" use the same handle, and mean different streams. */
static void test_own_streams_of_threads_are_not_one(void)
{
    test_bench bench = stream_bench(64);
    uintptr_t a = take_on(bench, BLOCK, 2, GML_API_ASYNC);
    work_and_give(bench, a, 2);
    uintptr_t b = take_on(bench, BLOCK, 2, GML_API_ASYNC);
    CHECK(a != b);
    gml_model_finish(bench.device, 2);
    CHECK_EQUAL(take_on(bench, BLOCK, 2, GML_API_ASYNC), a);
    close_bench(bench);
}

static void test_merged_ranges_wait_for_both(void)
{
    test_bench bench = stream_bench(64);
    uintptr_t a = take_on(bench, BLOCK, 1, GML_API_ASYNC), b = take_on(bench, BLOCK, 5, GML_API_ASYNC);
    CHECK_EQUAL(b, a + BLOCK);
    work_and_give(bench, a, 1);
    work_and_give(bench, b, 5);
    CHECK_EQUAL(take_on(bench, 2 * BLOCK, 6, GML_API_ASYNC), a);
    CHECK_EQUAL(calls(bench, GML_CALL_stream_wait), 2);
    close_bench(bench);
}

static void test_many_streams_become_the_device(void)
{
    test_bench bench = stream_bench(64);
    uintptr_t block[5];
    for (gml_stream i = 0; i < 5; i++)
        block[i] = take_on(bench, BLOCK, 3 + i, GML_API_ASYNC);
    for (gml_stream i = 0; i < 5; i++)
        work_and_give(bench, block[i], 3 + i);
    CHECK_EQUAL(take_on(bench, 5 * BLOCK, 9, GML_API_ASYNC), block[0]);
    CHECK_EQUAL(calls(bench, GML_CALL_stream_wait), 1); /* one event over the whole context */
    close_bench(bench);
}

/* The two halves of every chunk are freed on different streams; then the chunks go elsewhere. */
static void test_chunks_wait_for_all_their_streams(void)
{
    enum { HALVES = 140 };
    test_bench bench = stream_bench(HALVES);
    uintptr_t half[HALVES];
    for (unsigned i = 0; i < HALVES; i++)
        half[i] = take_on(bench, GML_MIB, 1 + i % 2 * 4, GML_API_ASYNC);
    for (unsigned i = 0; i < HALVES; i++)
        work_and_give(bench, half[i], 1 + i % 2 * 4);
    uintptr_t all = take_on(bench, HALVES * GML_MIB, 6, GML_API_ASYNC);
    CHECK(all != half[0]);
    CHECK_EQUAL(stats_of(bench).place_stitch, 1);
    close_bench(bench);
}

static void test_stitched_chunks_are_waited_for(void)
{
    test_bench bench = stream_bench(32);
    uintptr_t block[16];
    for (int i = 0; i < 16; i++)
        block[i] = take_on(bench, 2 * GML_MIB, 1, GML_API_ASYNC);
    for (int i = 0; i < 16; i += 2)
        work_and_give(bench, block[i], 1);
    (void)take_on(bench, 16 * GML_MIB, 5, GML_API_ASYNC);
    CHECK_EQUAL(stats_of(bench).place_stitch, 1);
    CHECK_EQUAL(calls(bench, GML_CALL_stream_wait), 1);
    close_bench(bench);
}

static void test_an_extended_gap_is_waited_for(void)
{
    test_bench bench = stream_bench(64);
    uintptr_t a = take_on(bench, 3 * GML_MIB, 1, GML_API_ASYNC);
    work_and_give(bench, a, 1);
    CHECK_EQUAL(take_on(bench, BLOCK, 5, GML_API_ASYNC), a);
    CHECK_EQUAL(stats_of(bench).reserved_bytes, BLOCK);
    CHECK_EQUAL(calls(bench, GML_CALL_stream_wait), 1);
    close_bench(bench);
}

static void test_coarse_ranges_are_waited_for(void)
{
    test_bench bench = stream_bench(512);
    uintptr_t a = take_on(bench, 200 * GML_MIB, 1, GML_API_ASYNC);
    work_and_give(bench, a, 1);
    CHECK_EQUAL(take_on(bench, 200 * GML_MIB, 5, GML_API_ASYNC), a);
    CHECK_EQUAL(calls(bench, GML_CALL_stream_wait), 1);
    close_bench(bench);
}

static void test_an_extended_coarse_range_is_waited_for(void)
{
    test_bench bench = stream_bench(512);
    uintptr_t a = take_on(bench, 130 * GML_MIB, 1, GML_API_ASYNC);
    work_and_give(bench, a, 1);
    CHECK_EQUAL(take_on(bench, 200 * GML_MIB, 5, GML_API_ASYNC), a);
    CHECK_EQUAL(stats_of(bench).reserved_bytes, 200 * GML_MIB);
    CHECK_EQUAL(calls(bench, GML_CALL_stream_wait), 1);
    close_bench(bench);
}

/* [ free on 1 ][ nothing mapped ][ free on 5 ]  =>  one block on 1, which waits for 5. */
static void test_a_bridged_gap_is_waited_for(void)
{
    test_bench bench = stream_bench(64);
    uintptr_t a = take_on(bench, BLOCK, 1, GML_API_ASYNC), b = take_on(bench, BLOCK, 1, GML_API_ASYNC);
    uintptr_t c = take_on(bench, BLOCK, 5, GML_API_ASYNC);
    uint64_t released = 0;
    give_on(bench, b, 1);
    CHECK_EQUAL(gml_heap_trim(bench.heap, 0, &released), GML_OK);
    CHECK_EQUAL(released, BLOCK);
    give_on(bench, a, 1);
    work_and_give(bench, c, 5);
    CHECK_EQUAL(take_on(bench, 3 * BLOCK, 1, GML_API_ASYNC), a);
    CHECK_EQUAL(calls(bench, GML_CALL_stream_wait), 1);
    close_bench(bench);
}

/* What a stitch leaves over of its last chunk is still in use by the work on that chunk. */
static void test_the_rest_of_a_stitch_is_waited_for(void)
{
    test_bench bench = stream_bench(32);
    uintptr_t block[16];
    for (int i = 0; i < 16; i++)
        block[i] = take_on(bench, 2 * GML_MIB, 1, GML_API_ASYNC);
    work_and_give(bench, block[3], 1);
    work_and_give(bench, block[9], 1);
    uintptr_t stitched = take_on(bench, 3 * GML_MIB, 5, GML_API_ASYNC);
    CHECK_EQUAL(take_on(bench, GML_MIB, 6, GML_API_ASYNC), stitched + 3 * GML_MIB);
    CHECK_EQUAL(calls(bench, GML_CALL_stream_wait), 2);
    close_bench(bench);
}

/* Handles return for as long as a program runs; each time they name another stream. */
/* Drivers before CUDA 12.5: a program of plain calls must not grow until the device is full. */
static void test_plain_calls_without_context_events_do_not_grow(void)
{
    test_bench bench = open_bench((gml_model_options){.total_bytes = 512 * GML_MIB, .asynchronous = true, .no_context_events = true},
                                  (gml_heap_options){.goal = GML_GOAL_MEMORY});
    for (int i = 0; i < 12; i++) {
        uintptr_t block = take_on(bench, BLOCK, GML_STREAM_NONE, GML_API_PLAIN);
        gml_model_submit(bench.device, 5);
        give_on(bench, block, GML_STREAM_NONE);
    }
    CHECK(stats_of(bench).peak_reserved_bytes <= 2 * BLOCK);
    CHECK_EQUAL(stats_of(bench).ooms, 0);
    close_bench(bench);
}

static void test_streams_come_and_go(void)
{
    test_bench bench = stream_bench(64);
    for (unsigned round = 0; round < 6000; round++) {
        gml_stream stream = 3 + round % 6;
        uintptr_t block = 0;
        CHECK_EQUAL(gml_heap_alloc(bench.heap, GML_MIB, stream, GML_API_ASYNC, &block), GML_OK);
        gml_model_submit(bench.device, stream);
        CHECK_EQUAL(gml_heap_free(bench.heap, block, stream), GML_OK);
        gml_heap_stream_destroyed(bench.heap, stream);
        if (round % 500 == 0)
            CHECK_EQUAL(bench.device->ops->sync(bench.device), GML_OK);
        CHECK(gml_model_violation(bench.device) == NULL);
    }
    CHECK(stats_of(bench).reserved_bytes <= 8 * GML_MIB);
    /* A stream that got the place of an older one is as good as the first: others wait on the device. */
    uintptr_t a = take_on(bench, BLOCK, 3, GML_API_ASYNC);
    work_and_give(bench, a, 3);
    uint64_t syncs = calls(bench, GML_CALL_sync);
    CHECK_EQUAL(take_on(bench, BLOCK, 5, GML_API_ASYNC), a);
    CHECK_EQUAL(calls(bench, GML_CALL_sync), syncs);
    close_bench(bench);
}

/* No event could be recorded when the stream went: one over the whole context tells later. */
static void test_a_stream_may_end_during_a_capture(void)
{
    test_bench bench = stream_bench(BLOCK / GML_MIB);
    uintptr_t a = take_on(bench, BLOCK, 4, GML_API_ASYNC);
    work_and_give(bench, a, 4);
    gml_heap_set_captures(bench.heap, 1);
    gml_heap_stream_destroyed(bench.heap, 4);
    CHECK_EQUAL(calls(bench, GML_CALL_event_record), 0);
    gml_heap_set_captures(bench.heap, 0);
    gml_model_finish(bench.device, 4);
    CHECK_EQUAL(take_on(bench, BLOCK, 5, GML_API_ASYNC), a);
    CHECK_EQUAL(calls(bench, GML_CALL_sync), 0);
    close_bench(bench);
}

/* An event stood at its first free when it went; the second free is behind that event. */
static void test_an_event_from_before_the_capture_is_not_enough(void)
{
    test_bench bench = stream_bench(2 * BLOCK / GML_MIB);
    uintptr_t a = take_on(bench, BLOCK, 4, GML_API_ASYNC), b = take_on(bench, BLOCK, 4, GML_API_ASYNC);
    work_and_give(bench, a, 4);
    CHECK_EQUAL(take_on(bench, BLOCK, 5, GML_API_ASYNC), a);
    work_and_give(bench, b, 4);
    gml_heap_set_captures(bench.heap, 1);
    gml_heap_stream_destroyed(bench.heap, 4);
    gml_heap_set_captures(bench.heap, 0);
    CHECK_EQUAL(calls(bench, GML_CALL_sync), 0);
    CHECK_EQUAL(take_on(bench, BLOCK, 5, GML_API_ASYNC), b);
    CHECK_EQUAL(calls(bench, GML_CALL_sync), 1); /* no event tells of the second free alone */
    close_bench(bench);
}

/* Memory that several arenas map is held by a stream once, however many ranges it stands in. */
static void test_held_memory_is_counted_once(void)
{
    test_bench bench = busy_bench(128, (gml_heap_options){.goal = GML_GOAL_MEMORY, .no_cross_stream = true});
    uintptr_t block[3];
    take_apart(bench, 1, block);
    for (int i = 0; i < 3; i++)
        give_on(bench, block[i], 1);
    uintptr_t stitched = take_on(bench, 12 * GML_MIB, 1, GML_API_ASYNC);
    work_and_give(bench, stitched, 1);
    (void)take_on(bench, BLOCK, 6, GML_API_ASYNC);
    gml_stats stats = stats_of(bench);
    CHECK_EQUAL(stats.place_stitch, 1);
    CHECK_EQUAL(stats.peak_reserved_bytes, stats.reserved_bytes);
    CHECK_EQUAL(stats.at_peak_stream_held_bytes, 3 * BLOCK);
    CHECK_EQUAL(stats.at_peak_external_bytes, 0);
    CHECK_EQUAL(stats.stream_held_bytes, 3 * BLOCK);
    close_bench(bench);
}

/* ---- failures ---- */

static gml_device_ops failing_ops;

static gml_status fail_map(gml_device *dev, uintptr_t va, size_t bytes, gml_handle handle)
{
    (void)dev, (void)va, (void)bytes, (void)handle;
    return GML_DEVICE_LOST;
}

/* One request that fails because nothing can be mapped. */
static void fail_to_take(test_bench bench, uint64_t bytes, gml_stream stream)
{
    const gml_device_ops *working = bench.device->ops;
    uintptr_t refused = 0;
    failing_ops = *working;
    failing_ops.map = fail_map;
    bench.device->ops = &failing_ops;
    CHECK_EQUAL(gml_heap_alloc(bench.heap, bytes, stream, GML_API_ASYNC, &refused), GML_DEVICE_LOST);
    bench.device->ops = working;
    verify(bench);
}

/* A plan that fails gives the gap back that it wanted to extend, with the work on it. */
static void test_a_rollback_keeps_the_work_on_a_gap(void)
{
    test_bench bench = stream_bench(64);
    uintptr_t a = take_on(bench, 3 * GML_MIB, 1, GML_API_ASYNC);
    work_and_give(bench, a, 1);
    fail_to_take(bench, BLOCK, 5);
    CHECK_EQUAL(take_on(bench, 3 * GML_MIB, 6, GML_API_ASYNC), a);
    CHECK_EQUAL(calls(bench, GML_CALL_stream_wait), 2);
    close_bench(bench);
}

static void test_a_rollback_gives_both_gaps_of_a_bridge_back(void)
{
    test_bench bench = stream_bench(64);
    uintptr_t block[3];
    uint64_t released = 0;
    for (int i = 0; i < 3; i++)
        block[i] = take_on(bench, BLOCK, 1, GML_API_ASYNC);
    give_on(bench, block[1], 1);
    CHECK_EQUAL(gml_heap_trim(bench.heap, 0, &released), GML_OK);
    work_and_give(bench, block[0], 1);
    work_and_give(bench, block[2], 1);
    fail_to_take(bench, 3 * BLOCK, 5);
    CHECK_EQUAL(take_on(bench, BLOCK, 6, GML_API_ASYNC), block[0]);
    CHECK_EQUAL(take_on(bench, BLOCK, 7, GML_API_ASYNC), block[2]);
    CHECK_EQUAL(calls(bench, GML_CALL_stream_wait), 3);
    close_bench(bench);
}

/* ---- unmapping ---- */

/* What happens while the heap waits for the device, as if another thread did it. */
static struct {
    gml_device_ops ops;
    gml_status (*sync)(gml_device *dev);
    gml_heap *heap;
    uintptr_t block; /* freed on stream 1 behind new work, once */
} meanwhile;

static gml_status sync_and_more(gml_device *dev)
{
    gml_status status = meanwhile.sync(dev);
    uintptr_t block = meanwhile.block;
    meanwhile.block = 0;
    if (block != 0) {
        gml_model_submit(dev, 1);
        CHECK_EQUAL(gml_heap_free(meanwhile.heap, block, 1), GML_OK);
    }
    return status;
}

static void free_during_sync(test_bench bench, uintptr_t block)
{
    meanwhile.ops = *bench.device->ops;
    meanwhile.sync = bench.device->ops->sync;
    meanwhile.ops.sync = sync_and_more;
    meanwhile.heap = bench.heap;
    meanwhile.block = block;
    bench.device->ops = &meanwhile.ops;
}

static void test_trim_leaves_unfinished_work_alone(void)
{
    test_bench bench = stream_bench(64);
    uintptr_t block[3];
    uint64_t released = 0;
    take_apart(bench, 1, block);
    work_and_give(bench, block[0], 1);
    free_during_sync(bench, block[1]);
    CHECK_EQUAL(gml_heap_trim(bench.heap, 0, &released), GML_OK);
    verify(bench);
    CHECK_EQUAL(released, BLOCK); /* the second block came free meanwhile, and its work goes on */
    CHECK_EQUAL(gml_heap_trim(bench.heap, 0, &released), GML_OK);
    verify(bench);
    CHECK_EQUAL(released, BLOCK);
    close_bench(bench);
}

/* What another thread frees while a request waits for the device is waited for in turn: there is room for it. */
static void test_a_request_waits_for_what_is_freed_meanwhile(void)
{
    test_bench bench = stream_bench(2 * BLOCK / GML_MIB);
    uintptr_t a = take_on(bench, BLOCK, 1, GML_API_ASYNC), b = take_on(bench, BLOCK, 1, GML_API_ASYNC);
    work_and_give(bench, a, 1);
    free_during_sync(bench, b);
    uintptr_t both = take_on(bench, 2 * BLOCK, GML_STREAM_NONE, GML_API_PLAIN);
    CHECK_EQUAL(calls(bench, GML_CALL_sync), 2);
    uintptr_t refused = 0;
    CHECK_EQUAL(gml_heap_alloc(bench.heap, BLOCK, GML_STREAM_NONE, GML_API_PLAIN, &refused), GML_OUT_OF_MEMORY);
    CHECK_EQUAL(calls(bench, GML_CALL_sync), 2); /* nothing is pending: nothing to wait for */
    give_on(bench, both, GML_STREAM_NONE);
    close_bench(bench);
}

/* Random sizes on a device that is nearly full stitch one arena after another, each used by work that
 * is never over, until the oldest must go. */
static void test_dropped_arenas_are_finished_with(void)
{
    enum { BLOCKS = 40, STEPS = 6000 };
    test_bench bench = stream_bench(224);
    uintptr_t block[BLOCKS] = {0};
    uint64_t seed = 5, sizes[BLOCKS] = {0}, live_mib = 0;
    for (unsigned step = 0; step < STEPS && calls(bench, GML_CALL_unmap) == 0; step++) {
        uint64_t i = random_below(&seed, BLOCKS), mib = 1 + random_below(&seed, 24);
        gml_stream stream = 3 + i % 4;
        if (random_below(&seed, 12) == 0)
            mib *= 6;
        if (block[i] != 0) {
            gml_model_submit(bench.device, stream);
            CHECK_EQUAL(gml_heap_free(bench.heap, block[i], stream), GML_OK);
            live_mib -= sizes[i];
            block[i] = 0;
        } else if (live_mib + mib <= 200) { /* running out of memory would wait for the work */
            CHECK_EQUAL(gml_heap_alloc(bench.heap, mib * GML_MIB, stream, GML_API_ASYNC, &block[i]), GML_OK);
            live_mib += sizes[i] = mib;
        }
    }
    CHECK(calls(bench, GML_CALL_unmap) > 0);
    close_bench(bench);
}

int main(void)
{
    RUN(test_an_older_event_is_not_enough);
    RUN(test_a_wait_counts_for_what_it_covers);
    RUN(test_a_free_elsewhere_has_its_own_event);
    RUN(test_many_frees_elsewhere_keep_the_first_events);
    RUN(test_an_ordinary_free_makes_no_event);
    RUN(test_a_completed_event_counts_for_what_it_covers);
    RUN(test_what_is_free_at_once_comes_first);
    RUN(test_own_streams_of_threads_are_not_one);
    RUN(test_merged_ranges_wait_for_both);
    RUN(test_many_streams_become_the_device);
    RUN(test_chunks_wait_for_all_their_streams);
    RUN(test_stitched_chunks_are_waited_for);
    RUN(test_an_extended_gap_is_waited_for);
    RUN(test_coarse_ranges_are_waited_for);
    RUN(test_an_extended_coarse_range_is_waited_for);
    RUN(test_a_bridged_gap_is_waited_for);
    RUN(test_the_rest_of_a_stitch_is_waited_for);
    RUN(test_plain_calls_without_context_events_do_not_grow);
    RUN(test_streams_come_and_go);
    RUN(test_a_stream_may_end_during_a_capture);
    RUN(test_an_event_from_before_the_capture_is_not_enough);
    RUN(test_held_memory_is_counted_once);
    RUN(test_a_rollback_keeps_the_work_on_a_gap);
    RUN(test_a_rollback_gives_both_gaps_of_a_bridge_back);
    RUN(test_trim_leaves_unfinished_work_alone);
    RUN(test_a_request_waits_for_what_is_freed_meanwhile);
    RUN(test_dropped_arenas_are_finished_with);
    return 0;
}
