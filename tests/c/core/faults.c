/* SPDX-License-Identifier: Apache-2.0 */
/* The n-th-failure sweep: for every kind of device call and every n, fail the n-th call during a
 * sequence that takes every way of placing a block. Whatever fails, the invariants hold, nothing is
 * leaked, and the next small request is served. */
#include "base/align.h"
#include "check.h"
#include "core/heap.h"
#include "device/fault.h"
#include "device/model.h"

#define SLOTS 24

typedef struct test_world {
    gml_device *model, *fault;
    gml_heap *heap;
    uintptr_t block[SLOTS];
} test_world;

static void verify(test_world *world, const char *call, uint64_t n)
{
    const char *why = "";
    if (gml_heap_check(world->heap, &why) == GML_OK && gml_model_violation(world->model) == NULL)
        return;
    fprintf(stderr, "%s call %" PRIu64 " failed: %s %s\n", call, n, why,
            gml_model_violation(world->model) != NULL ? gml_model_violation(world->model) : "");
    exit(1);
}

static void take(test_world *world, unsigned slot, uint64_t mib, gml_stream stream, gml_api api)
{
    world->block[slot] = 0;
    gml_status status = gml_heap_alloc(world->heap, mib * GML_MIB - 1000, stream, api, &world->block[slot]);
    CHECK(status != GML_INTERNAL);
}

static void give(test_world *world, unsigned slot, gml_stream stream)
{
    if (world->block[slot] == 0)
        return; /* the request had met the failure */
    CHECK_EQUAL(gml_heap_free(world->heap, world->block[slot], stream), GML_OK);
    world->block[slot] = 0;
}

/* Split, exact, extend, bridge, stitch and grow in fine and coarse arenas; two streams; plain calls;
 * trims; refusals. */
static void play(test_world *world)
{
    uint64_t released = 0;
    for (unsigned i = 0; i < 12; i++)
        take(world, i, 4 + i, 4, GML_API_ASYNC);
    take(world, 12, 130, 4, GML_API_ASYNC);
    take(world, 13, 140, 5, GML_API_ASYNC);
    for (unsigned i = 0; i < 12; i += 2)
        give(world, i, 4);
    take(world, 14, 100, 5, GML_API_ASYNC);
    give(world, 12, 5);
    give(world, 13, 5);
    take(world, 15, 260, 4, GML_API_ASYNC);
    take(world, 16, 64, GML_STREAM_NONE, GML_API_PLAIN);
    give(world, 16, GML_STREAM_NONE);
    take(world, 17, 90, GML_STREAM_NONE, GML_API_PLAIN);
    (void)!gml_heap_trim(world->heap, 64 * GML_MIB, &released);
    give(world, 15, 4);
    (void)!gml_heap_trim(world->heap, 300 * GML_MIB, &released);
    take(world, 18, 200, 5, GML_API_ASYNC);
    take(world, 19, 110, 4, GML_API_ASYNC);
    take(world, 20, 4000, 4, GML_API_ASYNC);
    gml_heap_stream_destroyed(world->heap, 5);
    take(world, 21, 33, 6, GML_API_ASYNC);
}

/* Returns whether the failure was reached. */
static int sweep_one(gml_device_call call, const char *name, uint64_t n, gml_status status)
{
    test_world world = {0};
    gml_model_options options = {.total_bytes = 300 * GML_MIB, .check_order = true};
    CHECK_EQUAL(gml_model_create(&options, &world.model), GML_OK);
    CHECK_EQUAL(gml_fault_create(world.model, &world.fault), GML_OK);
    CHECK_EQUAL(gml_heap_create(world.fault, &(gml_heap_options){.goal = GML_GOAL_MEMORY}, &world.heap), GML_OK);
    gml_fault_arm(world.fault, call, n, status);
    play(&world);
    int fired = gml_fault_fired(world.fault);
    gml_fault_arm(world.fault, call, 0, GML_OK);
    verify(&world, name, n);
    uintptr_t small = 0;
    CHECK_EQUAL(gml_heap_alloc(world.heap, 1000, 4, GML_API_ASYNC, &small), GML_OK);
    CHECK_EQUAL(gml_heap_free(world.heap, small, 4), GML_OK);
    for (unsigned i = 0; i < SLOTS; i++)
        give(&world, i, 4);
    verify(&world, name, n);
    CHECK_EQUAL(world.model->ops->sync(world.model), GML_OK);
    gml_heap_destroy(world.heap);
    gml_model_usage usage = gml_model_usage_of(world.model);
    if (usage.used_bytes + usage.mappings + usage.reserved_va_bytes + usage.events != 0)
        fprintf(stderr, "after %s call %" PRIu64 " failed:\n", name, n);
    CHECK_EQUAL(usage.used_bytes, 0);
    CHECK_EQUAL(usage.mappings, 0);
    CHECK_EQUAL(usage.reserved_va_bytes, 0);
    CHECK_EQUAL(usage.events, 0);
    gml_fault_destroy(world.fault);
    gml_model_destroy(world.model);
    return fired;
}

static void sweep(gml_device_call call, const char *name, gml_status status)
{
    uint64_t n = 1;
    const char *only = getenv("CALL"); /* CALL=name in the environment: that kind alone */
    if (only != NULL && strcmp(only, name) != 0)
        return;
    while (sweep_one(call, name, n, status))
        n++;
    printf("%s: %" PRIu64 " failures\n", name, n - 1);
}

int main(void)
{
    sweep(GML_CALL_create, "create", GML_OUT_OF_MEMORY);
    sweep(GML_CALL_reserve, "reserve", GML_OUT_OF_ADDRESSES);
    sweep(GML_CALL_map, "map", GML_INVALID);
    sweep(GML_CALL_set_access, "set_access", GML_INVALID);
    sweep(GML_CALL_event_record, "event_record", GML_OUT_OF_METADATA);
    sweep(GML_CALL_event_query, "event_query", GML_DEVICE_LOST);
    sweep(GML_CALL_stream_wait, "stream_wait", GML_INVALID);
    sweep(GML_CALL_sync, "sync", GML_DEVICE_LOST);
    sweep(GML_CALL_mem_info, "mem_info", GML_DEVICE_LOST);
    sweep(GML_CALL_unmap, "unmap", GML_DEVICE_LOST);
    sweep(GML_CALL_release, "release", GML_DEVICE_LOST);
    sweep(GML_CALL_free_va, "free_va", GML_DEVICE_LOST);
    return 0;
}
