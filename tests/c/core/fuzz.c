/* SPDX-License-Identifier: Apache-2.0 */
/* The heap under any sequence of calls: an input of bytes is read as allocations, frees, work, captures,
 * trims and failing device calls; live blocks are apart at any time,
 * and after every few calls all invariants hold and the model has seen no broken rule.
 *
 * With -DGML_LIBFUZZER it is a target of libFuzzer, which looks for inputs by the code that they reach
 * (`make fuzz`, needs clang). Else a program: `fuzz FILE...` repeats inputs, `fuzz` alone runs seeded
 * random ones. */
#include "base/align.h"
#include "check.h"
#include "core/types.h"
#include "device/fault.h"
#include "device/model.h"

#include <stdbool.h>
#include <stddef.h>

#define BLOCKS 64
#define FIRST_STREAM 3
#define STREAMS 5

typedef struct test_input {
    const uint8_t *at, *end;
} test_input;

typedef struct test_world {
    test_input input;
    gml_device *model, *device;
    gml_heap *heap;
    struct {
        uintptr_t address;
        uint64_t bytes;
        gml_stream stream; /* GML_STREAM_NONE for a plain one */
    } block[BLOCKS];
    unsigned count;
    uint64_t live_bytes;
    bool capturing, faults;
    unsigned steps;
} test_world;

static unsigned draw(test_input *input)
{
    return input->at < input->end ? *input->at++ : 0;
}

static gml_stream draw_stream(test_input *input)
{
    return FIRST_STREAM + draw(input) % STREAMS;
}

static uint64_t draw_size(test_input *input)
{
    uint64_t kind = draw(input) % 6, fine = draw(input);
    switch (kind) {
    case 0:
        return 1 + fine * 16;
    case 1:
        return 1 + fine * 8192;
    case 2:
        return 1 + fine * 65536;
    case 3:
        return (1 + fine % 12) * 2 * GML_MIB;
    case 4:
        return 1 + fine * (GML_COARSE_BYTES / 256);
    default:
        return GML_COARSE_BYTES / 128 * (100 + fine % 64) + fine * 512;
    }
}

/* What the heap may not do during a capture; but for undoing a mapping that failed half way. */
static uint64_t forbidden_calls(const test_world *world)
{
    gml_model_usage usage = gml_model_usage_of(world->model);
    uint64_t unmaps = gml_fault_fired(world->device) ? 0 : usage.calls[GML_CALL_unmap];
    return usage.calls[GML_CALL_event_record] + usage.calls[GML_CALL_sync] + unmaps;
}

static void verify(const test_world *world)
{
    const char *why = "";
    gml_status status = gml_heap_check(world->heap, &why);
    if (status != GML_OK || gml_model_violation(world->model) != NULL)
        fprintf(stderr, "%s %s\n", why, gml_model_violation(world->model) != NULL ? gml_model_violation(world->model) : "");
    CHECK(status == GML_OK && gml_model_violation(world->model) == NULL);
    gml_stats stats;
    gml_heap_stats(world->heap, &stats);
    CHECK_EQUAL(stats.live_bytes, world->live_bytes);
    CHECK_EQUAL(stats.reserved_bytes, gml_model_usage_of(world->model).used_bytes);
}

static void allocate(test_world *world)
{
    uint64_t bytes = draw_size(&world->input);
    bool plain = draw(&world->input) % 5 == 0;
    gml_stream stream = plain ? GML_STREAM_NONE : draw_stream(&world->input);
    uintptr_t address = 0;
    if (world->count == BLOCKS)
        return;
    gml_status status = gml_heap_alloc(world->heap, bytes, stream, plain ? GML_API_PLAIN : GML_API_ASYNC, &address);
    CHECK(status == GML_OK || status == GML_OUT_OF_MEMORY || world->faults);
    if (status != GML_OK) {
        CHECK_EQUAL(address, 0);
        return;
    }
    for (unsigned i = 0; i < world->count; i++) {
        uintptr_t other = world->block[i].address;
        CHECK(address + bytes <= other || other + world->block[i].bytes <= address);
    }
    world->block[world->count].address = address;
    world->block[world->count].bytes = bytes;
    world->block[world->count++].stream = stream;
    world->live_bytes += gml_align_up(bytes, 512);
    gml_model_submit(world->model, plain ? draw_stream(&world->input) : stream);
}

/* CUDA obliges the program to order its own uses before the free: the model's clocks do that. */
static void order(test_world *world, gml_stream from, gml_stream to)
{
    gml_event event = 0;
    if (from == to || to == GML_STREAM_NONE)
        return;
    if (from == GML_STREAM_NONE) {
        CHECK_EQUAL(world->model->ops->sync(world->model), GML_OK);
        return;
    }
    CHECK_EQUAL(world->model->ops->event_record(world->model, from, &event), GML_OK);
    CHECK_EQUAL(world->model->ops->stream_wait(world->model, to, event), GML_OK);
    CHECK_EQUAL(world->model->ops->event_destroy(world->model, event), GML_OK);
}

static void give(test_world *world)
{
    unsigned i = draw(&world->input), how = draw(&world->input) % 8;
    if (world->count == 0)
        return;
    i %= world->count;
    gml_stream from = world->block[i].stream, stream = from;
    if (how == 0)
        stream = GML_STREAM_NONE;
    else if (how == 1)
        stream = draw_stream(&world->input);
    order(world, from, stream);
    CHECK_EQUAL(gml_heap_free(world->heap, world->block[i].address, stream), GML_OK);
    CHECK_EQUAL(gml_heap_free(world->heap, world->block[i].address, stream), GML_NOT_FOUND);
    world->live_bytes -= gml_align_up(world->block[i].bytes, 512);
    world->block[i] = world->block[--world->count];
}

static void news(test_world *world)
{
    uint64_t released = 0;
    unsigned what = draw(&world->input) % 8;
    gml_stream stream = draw_stream(&world->input);
    switch (what) {
    case 0:
        (void)!gml_heap_trim(world->heap, draw(&world->input) * 4 * GML_MIB, &released);
        break;
    case 1:
        gml_heap_stream_destroyed(world->heap, stream);
        break;
    case 2:
        world->capturing = !world->capturing;
        gml_heap_set_captures(world->heap, world->capturing);
        break;
    case 3:
        gml_heap_set_cross_stream(world->heap, draw(&world->input) % 2 != 0);
        break;
    case 4:
        (void)!gml_heap_release_idle(world->heap, &released);
        break;
    case 5:
        CHECK_EQUAL(world->model->ops->sync(world->model), GML_OK);
        break;
    case 6:
        gml_model_finish(world->model, stream);
        break;
    default:
        gml_model_submit(world->model, stream);
    }
}

static void fail_later(test_world *world)
{
    static const gml_status answers[] = {GML_OUT_OF_MEMORY, GML_INVALID, GML_DEVICE_LOST, GML_NOT_READY};
    gml_device_call call = (gml_device_call)(draw(&world->input) % GML_CALL_COUNT);
    unsigned n = draw(&world->input) % 24;
    world->faults = true;
    gml_fault_arm(world->device, call, n, answers[draw(&world->input) % 4]);
}

static void step(test_world *world)
{
    unsigned kind = draw(&world->input) % 32;
    bool capturing = world->capturing;
    bool fired = gml_fault_fired(world->device);
    uint64_t before = forbidden_calls(world);
    if (kind < 15)
        allocate(world);
    else if (kind == 15)
        fail_later(world);
    else if (kind < 20)
        news(world);
    else
        give(world);
    /* Frees and news make such calls of the program's own in the model. */
    if (capturing && kind < 15 && fired == (bool)gml_fault_fired(world->device))
        CHECK_EQUAL(forbidden_calls(world), before);
    if (++world->steps % 8 == 0)
        verify(world);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    test_world world = {.input = {data, data + bytes}};
    unsigned first = draw(&world.input);
    gml_model_options model = {.total_bytes = 3 * GML_COARSE_BYTES + 16 * GML_MIB, .asynchronous = true, .check_order = true,
                               .no_context_events = first % 5 == 0};
    gml_heap_options options = {.goal = (gml_goal)(first % 3), .limit_bytes = first % 7 == 0 ? 2 * GML_COARSE_BYTES : 0};
    CHECK_EQUAL(gml_model_create(&model, &world.model), GML_OK);
    CHECK_EQUAL(gml_fault_create(world.model, &world.device), GML_OK);
    CHECK_EQUAL(gml_heap_create(world.device, &options, &world.heap), GML_OK);
    while (world.input.at < world.input.end)
        step(&world);
    verify(&world);
    gml_fault_arm(world.device, GML_CALL_create, 0, GML_OK);
    gml_heap_set_captures(world.heap, 0);
    CHECK_EQUAL(world.model->ops->sync(world.model), GML_OK);
    gml_heap_destroy(world.heap);
    gml_model_usage usage = gml_model_usage_of(world.model);
    CHECK_EQUAL(usage.used_bytes + usage.mappings + usage.reserved_va_bytes + usage.events, 0);
    CHECK(gml_model_violation(world.model) == NULL);
    gml_fault_destroy(world.device);
    gml_model_destroy(world.model);
    return 0;
}

#ifndef GML_LIBFUZZER
#define LONGEST 4096

static void repeat(const char *path)
{
    static uint8_t data[1 << 20];
    FILE *file = fopen(path, "rb");
    CHECK(file != NULL);
    size_t bytes = fread(data, 1, sizeof data, file);
    fclose(file);
    (void)LLVMFuzzerTestOneInput(data, bytes);
}

int main(int argc, char **argv)
{
    static uint8_t data[LONGEST];
    for (int i = 1; i < argc; i++)
        repeat(argv[i]);
    const char *only = getenv("SEED");
    const char *most = getenv("SEEDS");
    uint64_t first = only != NULL ? strtoull(only, NULL, 10) : 1;
    uint64_t last = only != NULL ? first : most != NULL ? strtoull(most, NULL, 10) : 24;
    for (uint64_t seed = first; argc == 1 && seed <= last; seed++) {
        uint64_t state = seed * 7919;
        for (size_t i = 0; i < LONGEST; i++)
            data[i] = (uint8_t)random_below(&state, 256);
        printf("seed %" PRIu64 "\n", seed);
        fflush(stdout);
        (void)LLVMFuzzerTestOneInput(data, 64 + random_below(&state, LONGEST - 64));
    }
    return 0;
}
#endif
