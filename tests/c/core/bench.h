/* SPDX-License-Identifier: Apache-2.0 */
/* A heap on a model device, with every invariant and device rule checked after every step. */
#ifndef GML_TESTS_BENCH_H
#define GML_TESTS_BENCH_H

#include "base/align.h"
#include "check.h"
#include "core/heap.h"
#include "device/model.h"

#include <stdbool.h>
#include <string.h>

typedef struct test_bench {
    gml_device *device;
    gml_heap *heap;
} test_bench;

static inline test_bench open_bench(gml_model_options model, gml_heap_options options)
{
    test_bench bench;
    model.check_order = true;
    CHECK_EQUAL(gml_model_create(&model, &bench.device), GML_OK);
    CHECK_EQUAL(gml_heap_create(bench.device, &options, &bench.heap), GML_OK);
    return bench;
}

static inline test_bench small_bench(uint64_t mib)
{
    return open_bench((gml_model_options){.total_bytes = mib * GML_MIB}, (gml_heap_options){.goal = GML_GOAL_MEMORY});
}

static inline void verify(test_bench bench)
{
    const char *why = "";
    if (gml_heap_check(bench.heap, &why) != GML_OK) {
        fprintf(stderr, "invariant broken: %s\n", why);
        exit(1);
    }
    if (gml_model_violation(bench.device) != NULL) {
        fprintf(stderr, "device rule broken: %s\n", gml_model_violation(bench.device));
        exit(1);
    }
}

static inline void close_bench(test_bench bench)
{
    verify(bench);
    CHECK_EQUAL(bench.device->ops->sync(bench.device), GML_OK); /* destroying asks for an idle device */
    gml_heap_destroy(bench.heap);
    gml_model_usage usage = gml_model_usage_of(bench.device);
    CHECK_EQUAL(usage.used_bytes, 0);
    CHECK_EQUAL(usage.mappings, 0);
    CHECK_EQUAL(usage.reserved_va_bytes, 0);
    CHECK_EQUAL(usage.events, 0);
    CHECK(gml_model_violation(bench.device) == NULL);
    gml_model_destroy(bench.device);
}

static inline uintptr_t take_on(test_bench bench, uint64_t bytes, gml_stream stream, gml_api api)
{
    uintptr_t address = 0;
    CHECK_EQUAL(gml_heap_alloc(bench.heap, bytes, stream, api, &address), GML_OK);
    verify(bench);
    return address;
}

static inline uintptr_t take(test_bench bench, uint64_t bytes)
{
    return take_on(bench, bytes, 0, GML_API_ASYNC);
}

static inline void give_on(test_bench bench, uintptr_t address, gml_stream stream)
{
    CHECK_EQUAL(gml_heap_free(bench.heap, address, stream), GML_OK);
    verify(bench);
}

static inline void give(test_bench bench, uintptr_t address)
{
    give_on(bench, address, 0);
}

static inline gml_stats stats_of(test_bench bench)
{
    gml_stats stats;
    gml_heap_stats(bench.heap, &stats);
    return stats;
}

/* A device whose work stays unfinished until the test ends it. */
static inline test_bench busy_bench(uint64_t mib, gml_heap_options options)
{
    return open_bench((gml_model_options){.total_bytes = mib * GML_MIB, .asynchronous = true}, options);
}

#endif
