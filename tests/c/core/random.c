/* SPDX-License-Identifier: Apache-2.0 */
/* Long random runs against an independent reference: several streams, late work, trims, captures,
 * streams that end, a device that is nearly full. The seed is printed; SEED=n repeats a run. */
#include "base/align.h"
#include "check.h"
#include "core/heap.h"
#include "device/model.h"

#include <stdbool.h>
#include <string.h>

#define BLOCKS 400
#define STREAMS 6
#define FIRST_STREAM 3
#define MEMORY (700 * GML_MIB)

/* The reference knows nothing of arenas: it only knows which bytes are live. */
typedef struct test_reference {
    struct {
        uintptr_t address;
        uint64_t bytes;
        gml_stream stream;
        bool plain;
    } block[BLOCKS];
    unsigned count;
    uint64_t live_bytes, requested_bytes;
} test_reference;

typedef struct test_world {
    uint64_t seed;
    gml_device *device;
    gml_heap *heap;
    test_reference reference;
    uint64_t allocs, refusals;
    bool capturing;
} test_world;

static uint64_t random_size(uint64_t *seed)
{
    switch (random_below(seed, 8)) {
    case 0:
        return 1 + random_below(seed, 4096);
    case 1:
    case 2:
        return 1 + random_below(seed, GML_MIB);
    case 3:
    case 4:
        return 1 + random_below(seed, 16 * GML_MIB);
    case 5:
        return 2 * GML_MIB * (1 + random_below(seed, 20));
    case 6:
        return 1 + random_below(seed, 120 * GML_MIB);
    default:
        return 128 * GML_MIB + random_below(seed, 100 * GML_MIB);
    }
}

static void expect_apart(const test_world *world, uintptr_t address, uint64_t bytes)
{
    for (unsigned i = 0; i < world->reference.count; i++) {
        uintptr_t other = world->reference.block[i].address;
        CHECK(address + bytes <= other || other + world->reference.block[i].bytes <= address);
    }
}

/* A failure that an identical request survives would be a bug: the ladder has waited for all work. */
static void expect_refused_again(test_world *world, uint64_t bytes, gml_stream stream, gml_api api)
{
    uintptr_t address = 0;
    CHECK_EQUAL(world->device->ops->sync(world->device), GML_OK);
    gml_status status = gml_heap_alloc(world->heap, bytes, stream, api, &address);
    if (status != GML_OUT_OF_MEMORY) {
        gml_stats stats;
        gml_heap_stats(world->heap, &stats);
        fprintf(stderr, "%" PRIu64 " bytes on stream %" PRIu64 " api %d were refused, then served: live %" PRIu64 " reserved %" PRIu64
                " largest gap %" PRIu64 " exact %" PRIu64 " split %" PRIu64 " extend %" PRIu64 " stitch %" PRIu64 "\n",
                bytes, stream, (int)api, stats.live_bytes, stats.reserved_bytes, stats.largest_gap_bytes, stats.place_exact,
                stats.place_split, stats.place_extend, stats.place_stitch);
        exit(1);
    }
}

static void allocate(test_world *world)
{
    test_reference *reference = &world->reference;
    uint64_t bytes = random_size(&world->seed);
    bool plain = random_below(&world->seed, 6) == 0;
    gml_stream stream = plain ? GML_STREAM_NONE : FIRST_STREAM + random_below(&world->seed, STREAMS);
    uintptr_t address = 0;
    gml_status status = gml_heap_alloc(world->heap, bytes, stream, plain ? GML_API_PLAIN : GML_API_ASYNC, &address);
    if (status != GML_OK) {
        CHECK_EQUAL(status, GML_OUT_OF_MEMORY);
        world->refusals++;
        if (!world->capturing)
            expect_refused_again(world, bytes, stream, plain ? GML_API_PLAIN : GML_API_ASYNC);
        return;
    }
    CHECK_EQUAL(address % (plain && bytes >= 2 * GML_MIB ? 2 * GML_MIB : 512), 0);
    expect_apart(world, address, bytes);
    reference->block[reference->count].address = address;
    reference->block[reference->count].bytes = bytes;
    reference->block[reference->count].stream = stream;
    reference->block[reference->count++].plain = plain;
    reference->live_bytes += gml_align_up(bytes, 512);
    reference->requested_bytes += bytes;
    world->allocs++;
    gml_model_submit(world->device, plain ? FIRST_STREAM + random_below(&world->seed, STREAMS) : stream);
}

static void give(test_world *world)
{
    test_reference *reference = &world->reference;
    unsigned i = (unsigned)random_below(&world->seed, reference->count);
    gml_stream stream = reference->block[i].stream;
    if (random_below(&world->seed, 8) == 0)
        stream = random_below(&world->seed, 2) != 0 ? GML_STREAM_NONE : FIRST_STREAM + random_below(&world->seed, STREAMS);
    /* CUDA obliges the program to order its own uses before the free: the model's clocks do that. */
    if (reference->block[i].plain && stream != GML_STREAM_NONE) {
        CHECK_EQUAL(world->device->ops->sync(world->device), GML_OK);
    } else if (stream != reference->block[i].stream && stream != GML_STREAM_NONE) {
        gml_event event = 0;
        gml_stream from = reference->block[i].stream;
        CHECK_EQUAL(world->device->ops->event_record(world->device, from, &event), GML_OK);
        CHECK_EQUAL(world->device->ops->stream_wait(world->device, stream, event), GML_OK);
        CHECK_EQUAL(world->device->ops->event_destroy(world->device, event), GML_OK);
    }
    CHECK_EQUAL(gml_heap_free(world->heap, reference->block[i].address, stream), GML_OK);
    reference->live_bytes -= gml_align_up(reference->block[i].bytes, 512);
    reference->requested_bytes -= reference->block[i].bytes;
    reference->block[i] = reference->block[--reference->count];
}

static void other(test_world *world)
{
    gml_stream stream = FIRST_STREAM + random_below(&world->seed, STREAMS);
    uint64_t released = 0;
    switch (random_below(&world->seed, 6)) {
    case 0:
        gml_model_finish(world->device, stream);
        break;
    case 1:
        CHECK_EQUAL(gml_heap_trim(world->heap, random_below(&world->seed, MEMORY), &released), GML_OK);
        break;
    case 2:
        gml_heap_stream_destroyed(world->heap, stream);
        break;
    case 3:
        gml_heap_set_captures(world->heap, 1);
        world->capturing = true;
        for (int i = 0; i < 5 && world->reference.count < BLOCKS; i++)
            allocate(world);
        gml_heap_set_captures(world->heap, 0);
        world->capturing = false;
        break;
    case 4:
        CHECK_EQUAL(world->device->ops->sync(world->device), GML_OK);
            break;
    default:
        gml_model_submit(world->device, stream);
    }
}

static void verify(test_world *world, unsigned step)
{
    const char *why = "";
    gml_stats stats;
    if (gml_heap_check(world->heap, &why) != GML_OK) {
        fprintf(stderr, "step %u: invariant broken: %s\n", step, why);
        exit(1);
    }
    if (gml_model_violation(world->device) != NULL) {
        fprintf(stderr, "step %u: device rule broken: %s\n", step, gml_model_violation(world->device));
        exit(1);
    }
    gml_heap_stats(world->heap, &stats);
    CHECK_EQUAL(stats.live_bytes, world->reference.live_bytes);
    CHECK_EQUAL(stats.requested_bytes, world->reference.requested_bytes);
    CHECK_EQUAL(stats.reserved_bytes, gml_model_usage_of(world->device).used_bytes);
    CHECK_EQUAL(stats.primitive_live_bytes + stats.primitive_idle_bytes + stats.stitched_live_bytes + stats.stitched_idle_bytes,
                stats.reserved_bytes);
}

static void run(uint64_t seed, unsigned steps)
{
    test_world world = {.seed = seed};
    gml_model_options model = {.total_bytes = MEMORY, .asynchronous = true, .check_order = true, .no_context_events = seed % 3 == 0};
    gml_heap_options options = {.goal = (gml_goal)(seed % 3)};
    printf("seed %" PRIu64 "\n", seed);
    fflush(stdout);
    CHECK_EQUAL(gml_model_create(&model, &world.device), GML_OK);
    CHECK_EQUAL(gml_heap_create(world.device, &options, &world.heap), GML_OK);
    for (unsigned step = 0; step < steps; step++) {
        uint64_t dice = random_below(&world.seed, 100);
        if (dice < 6)
            other(&world);
        else if (world.reference.count == BLOCKS || (world.reference.count != 0 && dice < 52))
            give(&world);
        else
            allocate(&world);
        if (step % 16 == 0)
            verify(&world, step);
    }
    CHECK(world.allocs > steps / 5);
    while (world.reference.count != 0)
        give(&world);
    verify(&world, steps);
    uint64_t released = 0;
    CHECK_EQUAL(gml_heap_trim(world.heap, 0, &released), GML_OK);
    verify(&world, steps);
    CHECK_EQUAL(gml_model_usage_of(world.device).used_bytes, 0);
    gml_heap_destroy(world.heap);
    CHECK_EQUAL(gml_model_usage_of(world.device).reserved_va_bytes, 0);
    gml_model_destroy(world.device);
}

int main(void)
{
    const char *seed = getenv("SEED"), *steps = getenv("STEPS");
    unsigned count = steps != NULL ? (unsigned)strtoul(steps, NULL, 10) : 3000;
    if (seed != NULL) {
        run(strtoull(seed, NULL, 10), count);
        return 0;
    }
    for (uint64_t i = 1; i <= 12; i++)
        run(i * 7919, count);
    return 0;
}
