/* SPDX-License-Identifier: Apache-2.0 */
/* Heap on the model device: placements, accounting, streams, trimming, refusals. */
#include "bench.h"

static void test_blocks_share_a_chunk(void)
{
    test_bench bench = small_bench(64);
    uintptr_t a = take(bench, 1000), b = take(bench, 300000), c = take(bench, 1);
    CHECK_EQUAL(b - a, 1024);
    CHECK_EQUAL(stats_of(bench).reserved_bytes, 2 * GML_MIB);
    CHECK_EQUAL(stats_of(bench).live_bytes, 1024 + 300032 + 512);
    CHECK_EQUAL(stats_of(bench).requested_bytes, 301001);
    give(bench, b);
    CHECK_EQUAL(take(bench, 300032), b);
    CHECK_EQUAL(stats_of(bench).place_exact, 1);
    CHECK_EQUAL(stats_of(bench).place_split, 2);
    give(bench, a);
    give(bench, b);
    give(bench, c);
    CHECK_EQUAL(stats_of(bench).peak_live_bytes, 1024 + 300032 + 512);
    CHECK_EQUAL(stats_of(bench).live_bytes, 0);
    CHECK_EQUAL(gml_heap_idle_bytes(bench.heap), 2 * GML_MIB);
    close_bench(bench);
}

static void test_growth_creates_only_what_is_missing(void)
{
    test_bench bench = small_bench(64);
    uintptr_t a = take(bench, 3 * GML_MIB);
    CHECK_EQUAL(stats_of(bench).reserved_bytes, 4 * GML_MIB);
    uintptr_t b = take(bench, 5 * GML_MIB); /* 1 MiB is there, 4 MiB are missing */
    CHECK_EQUAL(b, a + 3 * GML_MIB);
    CHECK_EQUAL(stats_of(bench).reserved_bytes, 8 * GML_MIB);
    CHECK_EQUAL(stats_of(bench).place_grow, 2);
    CHECK(stats_of(bench).driver_ns > 0);
    give(bench, a);
    give(bench, b);
    close_bench(bench);
}

static void test_holes_are_stitched(void)
{
    test_bench bench = small_bench(32);
    uintptr_t block[16];
    for (int i = 0; i < 16; i++)
        block[i] = take(bench, 2 * GML_MIB);
    for (int i = 0; i < 16; i += 2)
        give(bench, block[i]);
    uintptr_t big = take(bench, 16 * GML_MIB); /* the device is full: eight holes of 2 MiB serve it */
    CHECK_EQUAL(stats_of(bench).reserved_bytes, 32 * GML_MIB);
    CHECK_EQUAL(stats_of(bench).place_stitch, 1);
    CHECK_EQUAL(stats_of(bench).stitched_arenas, 1);
    CHECK_EQUAL(stats_of(bench).stitched_live_bytes, 16 * GML_MIB);
    CHECK_EQUAL(stats_of(bench).primitive_live_bytes, 16 * GML_MIB);
    give(bench, big);
    CHECK_EQUAL(stats_of(bench).stitched_idle_bytes, 16 * GML_MIB);
    for (int i = 0; i < 16; i += 2)
        block[i] = take(bench, 2 * GML_MIB);
    CHECK_EQUAL(stats_of(bench).place_stitch, 1);
    CHECK_EQUAL(stats_of(bench).driver_create, 16);
    for (int i = 0; i < 16; i++)
        give(bench, block[i]);
    close_bench(bench);
}

static void test_free_chunks_extend_an_arena(void)
{
    test_bench bench = small_bench(1024);
    uintptr_t coarse = take(bench, 200 * GML_MIB);
    uintptr_t fine = take(bench, GML_MIB);
    give(bench, coarse);
    uintptr_t other = take(bench, 41 * GML_MIB); /* 1 MiB behind `fine`, and 20 chunks of the coarse arena */
    CHECK_EQUAL(other, fine + GML_MIB);
    CHECK_EQUAL(stats_of(bench).place_extend, 1);
    CHECK_EQUAL(stats_of(bench).reserved_bytes, 202 * GML_MIB);
    give(bench, fine);
    give(bench, other);
    CHECK_EQUAL(take(bench, 200 * GML_MIB), coarse);
    CHECK_EQUAL(stats_of(bench).reserved_bytes, 202 * GML_MIB);
    give(bench, coarse);
    close_bench(bench);
}

static void test_plain_blocks_share_no_chunk(void)
{
    test_bench bench = small_bench(256);
    uintptr_t small = take(bench, 1000);
    uintptr_t plain = take_on(bench, 3 * GML_MIB, GML_STREAM_NONE, GML_API_PLAIN);
    uintptr_t medium = take_on(bench, 100 * GML_KIB, GML_STREAM_NONE, GML_API_PLAIN);
    CHECK_EQUAL(plain % (2 * GML_MIB), 0);
    CHECK_EQUAL(medium % (64 * GML_KIB), 0);
    CHECK(medium + 100 * GML_KIB <= plain || medium >= plain + 4 * GML_MIB);
    CHECK(small < plain || small >= plain + 4 * GML_MIB);
    CHECK_EQUAL(stats_of(bench).live_bytes, 1024 + 3 * GML_MIB + 100 * GML_KIB);
    give(bench, small);
    give_on(bench, plain, GML_STREAM_NONE);
    give_on(bench, medium, 0);
    close_bench(bench);
}

/* The gap is as large as the block, but the block may not begin where the gap does. */
static void test_a_gap_fits_with_its_alignment(void)
{
    test_bench bench = small_bench(64);
    uintptr_t small = take(bench, 1000), gap = take(bench, 100 * GML_KIB), pin = take(bench, 1000);
    give(bench, gap);
    uintptr_t plain = take_on(bench, 100 * GML_KIB, 0, GML_API_PLAIN);
    CHECK(plain % (64 * GML_KIB) == 0 && plain > pin);
    give(bench, small);
    give(bench, pin);
    give(bench, plain);
    close_bench(bench);
}

static void test_refusals_change_nothing(void)
{
    test_bench bench = small_bench(64);
    uintptr_t a = take(bench, 40 * GML_MIB), untouched = 77;
    CHECK_EQUAL(gml_heap_alloc(bench.heap, 25 * GML_MIB, 0, GML_API_ASYNC, &untouched), GML_OUT_OF_MEMORY);
    CHECK_EQUAL(gml_heap_alloc(bench.heap, UINT64_MAX, 0, GML_API_ASYNC, &untouched), GML_OUT_OF_MEMORY);
    CHECK_EQUAL(gml_heap_alloc(bench.heap, UINT64_MAX / 2, 0, GML_API_PLAIN, &untouched), GML_OUT_OF_MEMORY);
    CHECK_EQUAL(gml_heap_alloc(bench.heap, 0, 0, GML_API_ASYNC, &untouched), GML_INVALID);
    CHECK_EQUAL(untouched, 77);
    verify(bench);
    CHECK_EQUAL(stats_of(bench).ooms, 3);
    CHECK_EQUAL(gml_heap_free(bench.heap, a + 512, 0), GML_NOT_FOUND);
    CHECK_EQUAL(gml_heap_free(bench.heap, 4096, 0), GML_NOT_FOUND);
    uintptr_t rest = take(bench, 24 * GML_MIB);
    give(bench, a);
    CHECK_EQUAL(gml_heap_free(bench.heap, a, 0), GML_NOT_FOUND);
    give(bench, rest);
    close_bench(bench);
}

static void test_limit_is_kept(void)
{
    test_bench bench = open_bench((gml_model_options){.total_bytes = 64 * GML_MIB}, (gml_heap_options){.limit_bytes = 16 * GML_MIB});
    uintptr_t a = take(bench, 10 * GML_MIB), b = 0;
    CHECK_EQUAL(gml_heap_alloc(bench.heap, 7 * GML_MIB, 0, GML_API_ASYNC, &b), GML_OUT_OF_MEMORY);
    b = take(bench, 6 * GML_MIB);
    CHECK_EQUAL(stats_of(bench).peak_reserved_bytes, 16 * GML_MIB);
    give(bench, a);
    give(bench, b);
    close_bench(bench);
}

static void test_trim_releases_what_is_idle(void)
{
    test_bench bench = small_bench(512);
    uintptr_t coarse = take(bench, 200 * GML_MIB), kept = take(bench, 5 * GML_MIB), fine = take(bench, 30 * GML_MIB);
    give(bench, coarse);
    give(bench, fine);
    uint64_t released = 0;
    CHECK_EQUAL(gml_heap_trim(bench.heap, 100 * GML_MIB, &released), GML_OK);
    verify(bench);
    CHECK_EQUAL(stats_of(bench).reserved_bytes, 100 * GML_MIB);
    CHECK_EQUAL(gml_heap_trim(bench.heap, 0, &released), GML_OK);
    verify(bench);
    CHECK_EQUAL(stats_of(bench).reserved_bytes, 6 * GML_MIB);
    CHECK_EQUAL(gml_model_usage_of(bench.device).used_bytes, 6 * GML_MIB);
    coarse = take(bench, 200 * GML_MIB);
    fine = take(bench, 30 * GML_MIB);
    give(bench, kept);
    give(bench, coarse);
    give(bench, fine);
    CHECK_EQUAL(gml_heap_trim(bench.heap, 0, &released), GML_OK);
    CHECK_EQUAL(stats_of(bench).reserved_bytes, 0);
    CHECK_EQUAL(stats_of(bench).arenas, 0); /* an arena without a chunk goes, and its addresses with it */
    close_bench(bench);
}

static void test_memory_that_stayed_idle_is_released(void)
{
    test_bench bench = small_bench(512);
    uintptr_t kept = take(bench, 4 * GML_MIB), once = take(bench, 60 * GML_MIB);
    uint64_t released = 0;
    give(bench, once);
    CHECK_EQUAL(gml_heap_release_idle(bench.heap, &released), GML_OK); /* it was in use since the last call */
    CHECK_EQUAL(released, 0);
    uintptr_t again = take(bench, 20 * GML_MIB);
    give(bench, again);
    CHECK_EQUAL(gml_heap_release_idle(bench.heap, &released), GML_OK);
    CHECK_EQUAL(released, 40 * GML_MIB);
    verify(bench);
    CHECK_EQUAL(gml_heap_release_idle(bench.heap, &released), GML_OK);
    CHECK_EQUAL(stats_of(bench).reserved_bytes, 4 * GML_MIB);
    give(bench, kept);
    close_bench(bench);
}

/* ---- streams: work stays unfinished until the test ends it ---- */

static void test_same_stream_reuses_at_once(void)
{
    test_bench bench = busy_bench(64, (gml_heap_options){.goal = GML_GOAL_MEMORY});
    uintptr_t a = take_on(bench, 8 * GML_MIB, 1, GML_API_ASYNC);
    gml_model_submit(bench.device, 1);
    give_on(bench, a, 1);
    CHECK_EQUAL(take_on(bench, 8 * GML_MIB, 1, GML_API_ASYNC), a);
    CHECK_EQUAL(gml_model_usage_of(bench.device).calls[GML_CALL_stream_wait], 0);
    give_on(bench, a, 1);
    close_bench(bench);
}

static void test_other_stream_waits_on_the_device(void)
{
    test_bench bench = busy_bench(64, (gml_heap_options){.goal = GML_GOAL_MEMORY});
    uintptr_t a = take_on(bench, 8 * GML_MIB, 1, GML_API_ASYNC);
    gml_model_submit(bench.device, 1);
    give_on(bench, a, 1);
    CHECK_EQUAL(take_on(bench, 8 * GML_MIB, 5, GML_API_ASYNC), a);
    CHECK_EQUAL(gml_model_usage_of(bench.device).calls[GML_CALL_stream_wait], 1);
    CHECK_EQUAL(gml_model_usage_of(bench.device).calls[GML_CALL_sync], 0);
    give_on(bench, a, 5);
    CHECK_EQUAL(stats_of(bench).stream_held_bytes, 0); /* the last to ask was 5, which may have it */
    close_bench(bench);
}

static void test_finished_work_needs_no_wait(void)
{
    test_bench bench = busy_bench(64, (gml_heap_options){.goal = GML_GOAL_MEMORY});
    uintptr_t a = take_on(bench, 8 * GML_MIB, 1, GML_API_ASYNC);
    gml_model_submit(bench.device, 1);
    give_on(bench, a, 1);
    gml_model_finish(bench.device, 1);
    CHECK_EQUAL(take_on(bench, 8 * GML_MIB, 5, GML_API_ASYNC), a);
    CHECK_EQUAL(gml_model_usage_of(bench.device).calls[GML_CALL_stream_wait], 0);
    give_on(bench, a, 5);
    close_bench(bench);
}

static void test_unnamed_stream_takes_only_finished_memory(void)
{
    test_bench bench = busy_bench(64, (gml_heap_options){.goal = GML_GOAL_MEMORY});
    uintptr_t a = take_on(bench, 8 * GML_MIB, 1, GML_API_ASYNC), rest = take_on(bench, 48 * GML_MIB, 1, GML_API_ASYNC);
    gml_model_submit(bench.device, 1);
    give_on(bench, a, 1);
    uintptr_t b = take_on(bench, 8 * GML_MIB, GML_STREAM_NONE, GML_API_PLAIN); /* grows */
    CHECK(a != b);
    uintptr_t c = take_on(bench, 8 * GML_MIB, GML_STREAM_NONE, GML_API_PLAIN); /* full: waits on the host */
    CHECK_EQUAL(c, a);
    CHECK(gml_model_usage_of(bench.device).calls[GML_CALL_sync] >= 1);
    CHECK_EQUAL(stats_of(bench).ladder_drain, 1);
    give_on(bench, b, GML_STREAM_NONE);
    give_on(bench, c, GML_STREAM_NONE);
    give_on(bench, rest, 1);
    close_bench(bench);
}

static void test_plain_free_is_held_back(void)
{
    test_bench bench = busy_bench(64, (gml_heap_options){.goal = GML_GOAL_MEMORY});
    uintptr_t a = take_on(bench, 8 * GML_MIB, GML_STREAM_NONE, GML_API_PLAIN);
    gml_model_submit(bench.device, 3); /* some stream uses it */
    give_on(bench, a, GML_STREAM_NONE);
    CHECK_EQUAL(stats_of(bench).stream_held_bytes, 8 * GML_MIB);
    uintptr_t b = take_on(bench, 8 * GML_MIB, GML_STREAM_NONE, GML_API_PLAIN);
    CHECK(a != b);
    gml_model_finish(bench.device, 3);
    CHECK_EQUAL(take_on(bench, 8 * GML_MIB, GML_STREAM_NONE, GML_API_PLAIN), a);
    give_on(bench, a, GML_STREAM_NONE);
    give_on(bench, b, GML_STREAM_NONE);
    close_bench(bench);
}

/* Memory that is free and over counts for a stitch, although nobody has asked the device yet. */
static void test_unnamed_stream_stitches_what_is_over(void)
{
    test_bench bench = busy_bench(64, (gml_heap_options){.goal = GML_GOAL_MEMORY});
    uintptr_t pin, hole[2];
    hole[0] = take_on(bench, 8 * GML_MIB, GML_STREAM_NONE, GML_API_PLAIN);
    pin = take_on(bench, 8 * GML_MIB, GML_STREAM_NONE, GML_API_PLAIN);
    hole[1] = take_on(bench, 8 * GML_MIB, GML_STREAM_NONE, GML_API_PLAIN);
    uintptr_t end = take_on(bench, 2 * GML_MIB, GML_STREAM_NONE, GML_API_PLAIN);
    gml_model_submit(bench.device, 3);
    give_on(bench, hole[0], GML_STREAM_NONE);
    give_on(bench, hole[1], GML_STREAM_NONE);
    gml_model_finish(bench.device, 3);
    uintptr_t big = take_on(bench, 16 * GML_MIB, GML_STREAM_NONE, GML_API_PLAIN);
    CHECK_EQUAL(stats_of(bench).reserved_bytes, 26 * GML_MIB);
    give_on(bench, big, GML_STREAM_NONE);
    give_on(bench, pin, GML_STREAM_NONE);
    give_on(bench, end, GML_STREAM_NONE);
    close_bench(bench);
}

static void test_destroyed_stream_keeps_its_work(void)
{
    test_bench bench = busy_bench(64, (gml_heap_options){.goal = GML_GOAL_MEMORY});
    uintptr_t a = take_on(bench, 8 * GML_MIB, 4, GML_API_ASYNC);
    gml_model_submit(bench.device, 4);
    give_on(bench, a, 4);
    gml_heap_stream_destroyed(bench.heap, 4);
    /* A stream with the same handle is another stream: it must wait for the old one's work. */
    CHECK_EQUAL(take_on(bench, 8 * GML_MIB, 4, GML_API_ASYNC), a);
    CHECK_EQUAL(gml_model_usage_of(bench.device).calls[GML_CALL_stream_wait], 1);
    give_on(bench, a, 4);
    close_bench(bench);
}

static void test_capture_makes_no_event_or_sync(void)
{
    test_bench bench = busy_bench(64, (gml_heap_options){.goal = GML_GOAL_MEMORY});
    uintptr_t a = take_on(bench, 40 * GML_MIB, 1, GML_API_ASYNC), b = 0;
    gml_model_submit(bench.device, 1);
    give_on(bench, a, 1);
    gml_heap_set_captures(bench.heap, 1);
    CHECK_EQUAL(gml_heap_alloc(bench.heap, 40 * GML_MIB, 5, GML_API_ASYNC, &b), GML_OUT_OF_MEMORY);
    uint64_t released = 1;
    CHECK_EQUAL(gml_heap_trim(bench.heap, 0, &released), GML_OK);
    CHECK_EQUAL(released, 0);
    gml_model_usage usage = gml_model_usage_of(bench.device);
    CHECK_EQUAL(usage.calls[GML_CALL_event_record] + usage.calls[GML_CALL_sync] + usage.calls[GML_CALL_unmap], 0);
    gml_heap_set_captures(bench.heap, 0);
    b = take_on(bench, 40 * GML_MIB, 5, GML_API_ASYNC);
    give_on(bench, b, 5);
    close_bench(bench);
}

static void test_cross_stream_reuse_can_be_forbidden(void)
{
    test_bench bench = busy_bench(64, (gml_heap_options){.goal = GML_GOAL_MEMORY, .no_cross_stream = true});
    uintptr_t a = take_on(bench, 8 * GML_MIB, 1, GML_API_ASYNC);
    gml_model_submit(bench.device, 1);
    give_on(bench, a, 1);
    uintptr_t b = take_on(bench, 8 * GML_MIB, 5, GML_API_ASYNC);
    CHECK(a != b);
    CHECK_EQUAL(gml_model_usage_of(bench.device).calls[GML_CALL_stream_wait], 0);
    give_on(bench, b, 5);
    close_bench(bench);
}

static void test_without_context_events_the_host_waits(void)
{
    test_bench bench = open_bench((gml_model_options){.total_bytes = 16 * GML_MIB, .asynchronous = true, .no_context_events = true},
                             (gml_heap_options){.goal = GML_GOAL_MEMORY});
    uintptr_t a = take_on(bench, 16 * GML_MIB, GML_STREAM_NONE, GML_API_PLAIN);
    gml_model_submit(bench.device, 5);
    give_on(bench, a, GML_STREAM_NONE);
    CHECK_EQUAL(take_on(bench, 16 * GML_MIB, 1, GML_API_ASYNC), a);
    CHECK_EQUAL(gml_model_usage_of(bench.device).calls[GML_CALL_sync], 1);
    give_on(bench, a, 1);
    close_bench(bench);
}

/* Every round frees another half of 16 blocks and asks for their memory in one piece, so that every
 * round wants a stitch of its own. Returns what is reserved in the end. */
static uint64_t reserved_mib_after(gml_goal goal, uint64_t ppm, int rounds)
{
    test_bench bench = open_bench((gml_model_options){.total_bytes = 1024 * GML_MIB},
                                  (gml_heap_options){.goal = goal, .max_driver_time_ppm = ppm, .reuse_allowance_ns = 1});
    uintptr_t block[16];
    uint64_t seed = 11;
    for (int k = 0; k < 16; k++)
        block[k] = take(bench, 2 * GML_MIB);
    for (int i = 0; i < rounds; i++) {
        for (int k = 15; k > 0; k--) {
            uint64_t other = random_below(&seed, (uint64_t)k + 1);
            uintptr_t moved = block[k];
            block[k] = block[other];
            block[other] = moved;
        }
        for (int k = 0; k < 8; k++)
            give(bench, block[k]);
        give(bench, take(bench, 16 * GML_MIB));
        for (int k = 0; k < 8; k++)
            block[k] = take(bench, 2 * GML_MIB);
    }
    uint64_t mib = stats_of(bench).reserved_bytes / GML_MIB;
    for (int k = 0; k < 16; k++)
        give(bench, block[k]);
    close_bench(bench);
    return mib;
}

static void test_stitching_has_a_budget(void)
{
    CHECK_EQUAL(reserved_mib_after(GML_GOAL_MEMORY, 0, 60), 32);
    CHECK_EQUAL(reserved_mib_after(GML_GOAL_BALANCED, 0, 3), 32);       /* the price of growing is not spent yet */
    CHECK(reserved_mib_after(GML_GOAL_BALANCED, 0, 60) > 32);           /* it is, and 1 % of the time buys nothing */
    CHECK_EQUAL(reserved_mib_after(GML_GOAL_BALANCED, 1000000, 60), 32); /* all the time may be spent */
    CHECK(reserved_mib_after(GML_GOAL_THROUGHPUT, 1000000, 1) > 32);
}

/* A small block grows rather than break up gaps; it takes idle chunks where a run is twice as long as it
 * needs, or where much is idle. */
static void test_gaps_are_left_whole(void)
{
    test_bench bench = open_bench((gml_model_options){.total_bytes = 4096 * GML_MIB}, (gml_heap_options){.goal = GML_GOAL_MEMORY});
    enum { COUNT = 160 };
    uintptr_t block[COUNT];
    for (int i = 0; i < COUNT; i++)
        block[i] = take(bench, 6 * GML_MIB);
    for (int i = 10; i <= 50; i += 20)
        give(bench, block[i]);
    uintptr_t small = take(bench, 7 * GML_MIB);
    CHECK_EQUAL(stats_of(bench).reserved_bytes, 968 * GML_MIB);
    CHECK_EQUAL(take(bench, 6 * GML_MIB), block[10]); /* the gap still has its size */
    for (int i = 30; i <= 50; i += 20)
        block[i] = take(bench, 6 * GML_MIB);
    for (int i = 60; i < 64; i++)
        give(bench, block[i]); /* a gap of 24 MiB, which the next block splits */
    uintptr_t split = take(bench, 18 * GML_MIB), other = take(bench, 8 * GML_MIB);
    CHECK_EQUAL(stats_of(bench).reserved_bytes, 976 * GML_MIB); /* 6 MiB in a row would not do for 8 */
    give(bench, split);
    uintptr_t end = take(bench, 22 * GML_MIB);
    for (int i = 70; i < 110; i++)
        if (i % 3 != 0)
            give(bench, block[i]); /* 156 MiB in gaps of 12 */
    uintptr_t most = take(bench, 15 * GML_MIB);
    CHECK_EQUAL(stats_of(bench).reserved_bytes, 976 * GML_MIB);
    const uintptr_t rest[] = {small, other, end, most};
    for (int i = 0; i < 4; i++)
        give(bench, rest[i]);
    for (int i = 0; i < COUNT; i++)
        if ((i < 60 || i > 63) && (i < 70 || i >= 110 || i % 3 == 0))
            give(bench, block[i]);
    close_bench(bench);
}

/* Between two others a block of three chunks would keep a fourth one from being free. */
static void test_whole_chunks_begin_at_one(void)
{
    test_bench bench = small_bench(64);
    uintptr_t small = take(bench, GML_MIB), block = take(bench, 6 * GML_MIB);
    CHECK_EQUAL(stats_of(bench).reserved_bytes, 8 * GML_MIB);
    CHECK_EQUAL(block % (2 * GML_MIB), 0);
    give(bench, small);
    CHECK_EQUAL(stats_of(bench).free_chunk_bytes, 2 * GML_MIB);
    give(bench, block);
    close_bench(bench);
}

/* Growing to keep the budget never makes a request fail. */
static void test_under_pressure_there_is_no_budget(void)
{
    test_bench bench = open_bench((gml_model_options){.total_bytes = 40 * GML_MIB}, (gml_heap_options){.goal = GML_GOAL_THROUGHPUT});
    uintptr_t block[16];
    for (int k = 0; k < 16; k++)
        block[k] = take(bench, 2 * GML_MIB);
    for (int k = 0; k < 16; k += 2)
        give(bench, block[k]);
    uintptr_t big = take(bench, 24 * GML_MIB);
    CHECK_EQUAL(stats_of(bench).ooms, 0);
    give(bench, big);
    for (int k = 1; k < 16; k += 2)
        give(bench, block[k]);
    close_bench(bench);
}

static void test_lookup_by_address(void)
{
    test_bench bench = small_bench(1024);
    uintptr_t fine = take(bench, 3000), coarse = take(bench, 300 * GML_MIB), base = 0;
    size_t bytes = 0;
    CHECK(gml_heap_find(bench.heap, fine + 2999, &base, &bytes));
    CHECK(base == fine && bytes == 3000);
    CHECK(gml_heap_find(bench.heap, coarse + 299 * GML_MIB, &base, &bytes));
    CHECK(base == coarse && bytes == 300 * GML_MIB);
    CHECK(!gml_heap_find(bench.heap, fine + 4096, NULL, NULL));
    CHECK(gml_heap_covers(bench.heap, fine + 4096));
    CHECK(!gml_heap_covers(bench.heap, 4096));
    give(bench, fine);
    give(bench, coarse);
    CHECK(!gml_heap_find(bench.heap, fine, NULL, NULL));
    close_bench(bench);
}

static void test_address_space_stays_bounded(void)
{
    test_bench bench = small_bench(1024);
    for (uint64_t i = 0; i < 400; i++) {
        uintptr_t pin = take(bench, (100 + i % 7) * GML_MIB);
        uintptr_t big = take(bench, (200 + 2 * (i % 97)) * GML_MIB);
        give(bench, pin);
        give(bench, big);
    }
    gml_model_usage usage = gml_model_usage_of(bench.device);
    CHECK(usage.reserved_va_bytes <= 32 * 1024 * GML_MIB);
    CHECK(usage.mappings <= 8 * usage.handles + 1024);
    close_bench(bench);
}

/* Random sizes on a device that is nearly full stitch one arena after another: the coldest go. */
static void test_cold_arenas_are_dropped(void)
{
    enum { BLOCKS = 40, STEPS = 6000 };
    test_bench bench = small_bench(256);
    uintptr_t block[BLOCKS] = {0};
    uint64_t seed = 5;
    for (unsigned step = 0; step < STEPS; step++) {
        uint64_t i = random_below(&seed, BLOCKS), mib = 1 + random_below(&seed, 24);
        if (random_below(&seed, 12) == 0)
            mib *= 6;
        if (block[i] == 0) {
            gml_status status = gml_heap_alloc(bench.heap, mib * GML_MIB, 0, GML_API_ASYNC, &block[i]);
            CHECK(status == GML_OK || status == GML_OUT_OF_MEMORY);
        } else {
            CHECK_EQUAL(gml_heap_free(bench.heap, block[i], 0), GML_OK);
            block[i] = 0;
        }
        gml_model_usage usage = gml_model_usage_of(bench.device);
        CHECK(usage.reserved_va_bytes <= 25 * 256 * GML_MIB);
        CHECK(usage.mappings <= 8 * 128 + 1024 + 128);
    }
    CHECK(gml_model_usage_of(bench.device).calls[GML_CALL_unmap] > 0);
    close_bench(bench);
}

int main(void)
{
    RUN(test_blocks_share_a_chunk);
    RUN(test_growth_creates_only_what_is_missing);
    RUN(test_holes_are_stitched);
    RUN(test_free_chunks_extend_an_arena);
    RUN(test_plain_blocks_share_no_chunk);
    RUN(test_a_gap_fits_with_its_alignment);
    RUN(test_refusals_change_nothing);
    RUN(test_limit_is_kept);
    RUN(test_trim_releases_what_is_idle);
    RUN(test_memory_that_stayed_idle_is_released);
    RUN(test_same_stream_reuses_at_once);
    RUN(test_other_stream_waits_on_the_device);
    RUN(test_finished_work_needs_no_wait);
    RUN(test_unnamed_stream_takes_only_finished_memory);
    RUN(test_plain_free_is_held_back);
    RUN(test_unnamed_stream_stitches_what_is_over);
    RUN(test_destroyed_stream_keeps_its_work);
    RUN(test_capture_makes_no_event_or_sync);
    RUN(test_cross_stream_reuse_can_be_forbidden);
    RUN(test_without_context_events_the_host_waits);
    RUN(test_stitching_has_a_budget);
    RUN(test_gaps_are_left_whole);
    RUN(test_whole_chunks_begin_at_one);
    RUN(test_under_pressure_there_is_no_budget);
    RUN(test_lookup_by_address);
    RUN(test_address_space_stays_bounded);
    RUN(test_cold_arenas_are_dropped);
    return 0;
}
