/* SPDX-License-Identifier: Apache-2.0 */
/* The priced device: its clock counts with the costs that were given, and all else is the inner device's. */
#include "base/align.h"
#include "check.h"
#include "device/fault.h"
#include "device/model.h"
#include "device/priced.h"

#define CHUNK ((size_t)2 << 20)
#define MEASURED GML_PRICE_MEASURED

typedef struct world {
    gml_device *model, *fault, *dev;
} world;

/* Over a model whose calls take 100, 10, 20 and 30 ns a chunk. */
static world open_world(gml_prices prices)
{
    world w;
    gml_model_options options = {.total_bytes = (uint64_t)1 << 30,
                                 .costs = {.create_ns = 100, .map_ns = 10, .unmap_ns = 30, .set_access_ns = 20}};
    CHECK_EQUAL(gml_model_create(&options, &w.model), GML_OK);
    CHECK_EQUAL(gml_fault_create(w.model, &w.fault), GML_OK);
    CHECK_EQUAL(gml_priced_create(w.fault, &prices, &w.dev), GML_OK);
    CHECK_EQUAL(w.dev->chunk_bytes, CHUNK);
    return w;
}

static void close_world(world *w)
{
    CHECK(gml_model_violation(w->model) == NULL);
    CHECK_EQUAL(gml_model_usage_of(w->model).handles, 0);
    gml_priced_destroy(w->dev);
    gml_fault_destroy(w->fault);
    gml_model_destroy(w->model);
}

static uint64_t now(const world *w)
{
    return w->dev->ops->now_ns(w->dev);
}

/* Two chunks come and go; what each kind of call added to the clock. */
static gml_prices costs_of(world *w)
{
    const gml_device_ops *ops = w->dev->ops;
    gml_prices seen = {0, 0, 0, 0};
    gml_handle handle[2];
    uintptr_t va;
    CHECK_EQUAL(ops->reserve(w->dev, 2 * CHUNK, &va), GML_OK);
    for (unsigned i = 0; i < 2; i++) {
        uint64_t start = now(w);
        CHECK_EQUAL(ops->create(w->dev, CHUNK, &handle[i]), GML_OK);
        seen.create_ns += now(w) - start;
        start = now(w);
        CHECK_EQUAL(ops->map(w->dev, va + i * CHUNK, CHUNK, handle[i]), GML_OK);
        seen.map_ns += now(w) - start;
    }
    uint64_t start = now(w);
    CHECK_EQUAL(ops->set_access(w->dev, va, 2 * CHUNK), GML_OK);
    seen.set_access_ns = now(w) - start;
    start = now(w);
    CHECK_EQUAL(ops->unmap(w->dev, va, 2 * CHUNK), GML_OK);
    seen.unmap_ns = now(w) - start;
    CHECK_EQUAL(ops->release(w->dev, handle[0]), GML_OK);
    CHECK_EQUAL(ops->release(w->dev, handle[1]), GML_OK);
    CHECK_EQUAL(ops->free_va(w->dev, va, 2 * CHUNK), GML_OK);
    return seen;
}

static void test_each_call_costs_its_price_a_chunk(void)
{
    world w = open_world((gml_prices){7000, 500, 1, 40});
    gml_prices seen = costs_of(&w);
    CHECK_EQUAL(seen.create_ns, 14000);
    CHECK_EQUAL(seen.map_ns, 1000);
    CHECK_EQUAL(seen.set_access_ns, 2);
    CHECK_EQUAL(seen.unmap_ns, 80);
    close_world(&w);
}

static void test_calls_without_a_price_are_measured(void)
{
    world w = open_world((gml_prices){MEASURED, 0, MEASURED, MEASURED});
    gml_prices seen = costs_of(&w);
    CHECK_EQUAL(seen.create_ns, 200);
    CHECK_EQUAL(seen.map_ns, 0);
    CHECK_EQUAL(seen.set_access_ns, 40);
    CHECK_EQUAL(seen.unmap_ns, 60);
    close_world(&w);
}

static void test_a_failed_call_costs_nothing(void)
{
    world w = open_world((gml_prices){7000, 500, 1, 40});
    gml_handle handle = 0;
    gml_fault_arm(w.fault, GML_CALL_create, 1, GML_OUT_OF_MEMORY);
    uint64_t start = now(&w);
    CHECK_EQUAL(w.dev->ops->create(w.dev, CHUNK, &handle), GML_OUT_OF_MEMORY);
    CHECK_EQUAL(now(&w), start);
    close_world(&w);
}

/* Free calls take back the time that they took, and no more. */
static void test_the_clock_never_runs_backwards(void)
{
    world w = open_world((gml_prices){0, 0, 0, 0});
    uint64_t start = now(&w);
    for (int i = 0; i < 10; i++) {
        uint64_t before = now(&w);
        (void)costs_of(&w);
        CHECK(now(&w) >= before);
    }
    CHECK_EQUAL(now(&w), start); /* the model's other calls are free */
    close_world(&w);
}

static void test_texts(void)
{
    gml_prices p;
    CHECK(gml_prices_parse("create=193us,map=1.5us,set_access=36us,unmap=26us", &p));
    CHECK(p.create_ns == 193000 && p.map_ns == 1500 && p.set_access_ns == 36000 && p.unmap_ns == 26000);
    CHECK(gml_prices_parse("unmap=0.25ms,map=7ns", &p));
    CHECK(p.create_ns == MEASURED && p.map_ns == 7 && p.set_access_ns == MEASURED && p.unmap_ns == 250000);
    const char *bad[] = {"", "create", "create=", "create=5", "create=5s", "create=-5us", "free=5us", "create=5us,",
                         "create=5us map=5us", "create=.5us", "create=5usx", "create=99999999999us", "create=2000ms"};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        CHECK(!gml_prices_parse(bad[i], &p));
        CHECK(p.create_ns == MEASURED && p.map_ns == MEASURED);
    }
}

int main(void)
{
    test_each_call_costs_its_price_a_chunk();
    test_calls_without_a_price_are_measured();
    test_a_failed_call_costs_nothing();
    test_the_clock_never_runs_backwards();
    test_texts();
    return 0;
}
