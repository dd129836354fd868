/* SPDX-License-Identifier: Apache-2.0 */
/* Steps are counted by the gradients that a program drops between backward passes. */
#include "check.h"
#include "telemetry/steps.h"

#define FIRST ((uintptr_t)1 << 40)
#define BLOCK ((uintptr_t)1 << 21)

static gml_steps steps;
static gml_gradients gradients;
static gml_device_block block;
static uint64_t live;

static void begin(void)
{
    gml_steps_init(&steps);
    gradients = (gml_gradients){0};
    block = (gml_device_block){0};
    live = 100;
}

static uintptr_t address_of(int number)
{
    return FIRST + (uintptr_t)number * BLOCK;
}

static void take(int number, bool autograd)
{
    gml_steps_alloc(&steps, &block, &gradients, 3, address_of(number), autograd);
    live++;
    gml_steps_note(&steps, &block, live, live << 20);
}

static void drop(int number, bool autograd)
{
    int device = gml_gradients_take(&gradients, address_of(number));
    if (device >= 0 && !autograd)
        gml_steps_drop(&steps, &block);
    live--;
    gml_steps_note(&steps, &block, live, live << 20);
}

/* Activations and temporary blocks lie behind the gradients, which are the first `count` addresses. */
static void forward(int activations)
{
    for (int i = 0; i < activations; i++) {
        take(20000 + i, false);
        take(40000, false);
        drop(40000, false);
    }
}

static void backward(int activations, int gradients_made)
{
    take(50000, true);
    for (int i = 0; i < activations; i++) {
        take(50001, true);
        drop(20000 + i, true);
        drop(50001, true);
    }
    drop(50000, true);
    for (int i = 0; i < gradients_made; i++)
        take(i, true);
}

static void zero_grad(int count)
{
    for (int i = 0; i < count; i++)
        drop(i, false);
}

static void train(int activations, int count)
{
    forward(activations);
    backward(activations, count);
    take(60000, false); /* the optimizer's */
    drop(60000, false);
    zero_grad(count);
}

static void test_each_step_counts_from_the_first_on(void)
{
    begin();
    for (int i = 0; i < 40; i++)
        train(10 + 37 * i % 90, 148);
    CHECK_EQUAL(block.step_count, 40);
    CHECK_EQUAL(block.step_begun, 0);
    CHECK_EQUAL(block.step_source, GML_STEPS_BY_GRADIENTS);
    CHECK_EQUAL(block.step_low_bytes, (uint64_t)100 << 20);
    CHECK_EQUAL(block.step_ns[0], 0); /* its beginning is not known, nor that of the next one */
    for (int i = 2; i < 40; i++)
        CHECK(block.step_ns[i] > 0);
}

static void test_evaluations_are_no_steps(void)
{
    begin();
    for (int i = 0; i < 20; i++) {
        train(50, 100);
        for (int j = 0; j < i % 3; j++) {
            forward(50);
            for (int k = 0; k < 50; k++)
                drop(20000 + k, false);
        }
    }
    CHECK_EQUAL(block.step_count, 20);
}

static void test_batches_whose_gradients_are_kept_are_one_step(void)
{
    begin();
    for (int i = 0; i < 10; i++) {
        for (int batch = 0; batch < 16; batch++) {
            forward(30);
            backward(30, batch == 0 ? 90 : 0);
        }
        CHECK_EQUAL(block.step_begun, i > 0);
        zero_grad(90);
    }
    CHECK_EQUAL(block.step_count, 10);
}

static void test_a_step_under_way_is_told(void)
{
    begin();
    for (int i = 0; i < 5; i++) { /* zero_grad comes first */
        if (i > 0)
            zero_grad(20);
        forward(30);
        backward(30, 20);
    }
    CHECK_EQUAL(block.step_count, 4);
    CHECK_EQUAL(block.step_begun, 1);
}

static void test_gradients_that_are_never_dropped(void)
{
    begin();
    for (int i = 0; i < 12; i++) {
        forward(30);
        backward(30, i == 0 ? 20 : 0);
    }
    CHECK_EQUAL(block.step_count, 12);
    CHECK_EQUAL(block.step_source, GML_STEPS_BY_PASSES);
    zero_grad(20);
    forward(30);
    backward(30, 20);
    CHECK_EQUAL(block.step_count, 1);
    CHECK_EQUAL(block.step_source, GML_STEPS_BY_GRADIENTS);
}

static void test_a_few_blocks_of_a_pass_are_no_gradients(void)
{
    begin();
    for (int i = 0; i < 10; i++) {
        for (int batch = 0; batch < 4; batch++) {
            forward(30);
            backward(30, batch == 0 ? 90 : 0);
            take(100, true); /* a hook kept it for the program to look at */
            take(60000, false);
            drop(60000, false);
            drop(100, false);
        }
        zero_grad(90);
    }
    CHECK_EQUAL(block.step_count, 10);
}

static void test_models_come_and_go(void)
{
    begin();
    for (int i = 0; i < 100; i++)
        train(40, 40);
    for (int i = 0; i < 100; i++)
        train(40, 400);
    for (int i = 0; i < 100; i++)
        train(40, 101);
    CHECK_EQUAL(block.step_count, 300);
    for (int i = 0; i < 600; i++)
        train(4, 10);
    CHECK(block.step_count > 700 && block.step_count < 900); /* ten are a step again after a while */
}

static void test_more_gradients_than_places(void)
{
    begin();
    for (int i = 0; i < 6; i++)
        train(10, 15000);
    CHECK_EQUAL(block.step_count, 6);
}

static void test_without_passes_rounds_are_counted(void)
{
    begin();
    for (int i = 0; i < 20; i++) {
        forward(60);
        for (int k = 0; k < 60; k++)
            drop(20000 + k, false);
    }
    CHECK(block.step_count >= 17);
    CHECK_EQUAL(block.step_source, GML_STEPS_BY_TURNS);
    train(40, 30);
    train(40, 30);
    CHECK(block.step_count <= 2);
}

static void test_a_gradient_belongs_to_its_device(void)
{
    begin();
    take(7, true);
    CHECK_EQUAL(gml_gradients_take(&gradients, address_of(8)), -1);
    CHECK_EQUAL(gml_gradients_take(&gradients, address_of(7)), 3);
    CHECK_EQUAL(gml_gradients_take(&gradients, address_of(7)), -1);
}

int main(void)
{
    RUN(test_each_step_counts_from_the_first_on);
    RUN(test_evaluations_are_no_steps);
    RUN(test_batches_whose_gradients_are_kept_are_one_step);
    RUN(test_a_step_under_way_is_told);
    RUN(test_gradients_that_are_never_dropped);
    RUN(test_a_few_blocks_of_a_pass_are_no_gradients);
    RUN(test_models_come_and_go);
    RUN(test_more_gradients_than_places);
    RUN(test_without_passes_rounds_are_counted);
    RUN(test_a_gradient_belongs_to_its_device);
    return 0;
}
