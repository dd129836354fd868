/* SPDX-License-Identifier: Apache-2.0 */
/* Steps are found in series of live blocks as training produces them, and in nothing else. */
#include "check.h"
#include "telemetry/turns.h"

#define MIB ((uint64_t)1 << 20)

static gml_turns turns;
static gml_device_block block;
static uint64_t live, now_ns;

static void begin(void)
{
    gml_turns_init(&turns);
    block = (gml_device_block){0};
    live = 0;
    now_ns = 1;
}

/* One block at a time, each change a microsecond. */
static void move(int change)
{
    for (; change != 0; change += change > 0 ? -1 : 1) {
        live += change > 0 ? 1 : (uint64_t)-1;
        now_ns += 1000;
        gml_turns_note_at(&turns, &block, live, live * MIB, now_ns);
    }
}

/* Forward takes `saved` blocks, with temporary ones in between; backward turns them into `gradients`,
 * which the optimizer's temporary blocks and their end follow. */
static void train(int saved, int gradients)
{
    for (int i = 0; i < saved; i++) {
        move(3);
        move(-2);
    }
    for (int i = 0; i < saved; i++)
        move(i < gradients ? 0 : -1);
    move(gradients > saved ? gradients - saved : 0);
    move(gradients);
    move(-gradients);
    move(-gradients);
}

static void test_training_steps(void)
{
    begin();
    move(148);
    for (int i = 0; i < 100; i++) {
        train(400, 148);
        if (i == 0)
            move(2 * 148); /* the optimizer's state */
    }
    move(40);
    /* The last one has no end yet, the first one has no beginning. */
    CHECK(block.step_count >= 90 && block.step_count <= 99);
    CHECK_EQUAL(block.step_low_bytes, 3 * 148 * MIB);
    for (int i = 0; i < GML_TELEMETRY_STEPS; i++)
        CHECK_EQUAL(block.step_ns[i], block.step_ns[0]);
}

static void test_more_gradients_than_activations(void)
{
    begin();
    move(600);
    for (int i = 0; i < 50; i++)
        train(200, 600);
    CHECK(block.step_count >= 45 && block.step_count <= 50);
}

static void test_gradients_over_several_batches_are_one_step(void)
{
    begin();
    move(150);
    for (int i = 0; i < 40; i++) {
        for (int batch = 0; batch < 4; batch++) {
            move(300);
            move(batch == 0 ? -150 : -300);
        }
        move(150);
        move(-300);
    }
    /* In the first step the gradients look like the floor. */
    CHECK(block.step_count >= 36 && block.step_count <= 44);
}

/* Activations are computed again in the backward pass; gradients are kept over `batches` of them. */
static void accumulate(int batches, int gradients)
{
    for (int batch = 0; batch < batches; batch++) {
        move(145);
        move(-120);
        move(120);
        move(batch == 0 ? gradients - 145 : -145);
    }
    move(gradients);
    move(-2 * gradients);
}

static void test_recomputed_activations_and_kept_gradients(void)
{
    begin();
    move(150);
    for (int i = 0; i < 60; i++) {
        accumulate(4, 148);
        if (i == 0)
            move(2 * 148); /* the optimizer's state */
    }
    CHECK(block.step_count >= 57 && block.step_count <= 60);
}

static void test_sixteen_batches_to_a_step(void)
{
    begin();
    move(150);
    for (int i = 0; i < 40; i++)
        accumulate(16, 148);
    CHECK(block.step_count >= 36 && block.step_count <= 42);
}

static void test_a_loss_kept_each_step_and_evaluations(void)
{
    begin();
    move(300);
    for (int i = 0; i < 90; i++) {
        train(600, 290);
        move(1); /* the loss, kept in a list */
        if (i == 0)
            move(600);
        if (i % 30 == 29) {
            move(220);
            move(-220);
        }
    }
    CHECK(block.step_count >= 86 && block.step_count <= 94);
}

static void test_steps_that_had_no_time_are_counted(void)
{
    begin();
    move(100);
    for (int i = 0; i < 12; i++)
        train(300, 100);
    move(200); /* more stays from here on */
    uint64_t before = block.step_count;
    for (int i = 0; i < 30; i++)
        train(300, 100);
    CHECK(block.step_count >= before + 27 && block.step_count <= before + 31);
}

static void test_a_growing_program_has_no_steps(void)
{
    begin();
    for (int i = 0; i < 1000; i++) {
        move(5);
        move(-4);
    }
    CHECK_EQUAL(block.step_count, 0);
}

static void test_a_pause_between_steps_is_one_long_step(void)
{
    begin();
    move(100);
    for (int i = 0; i < 10; i++)
        train(300, 100);
    uint64_t before = block.step_count;
    for (int i = 0; i < 500; i++) { /* an evaluation: nothing is kept */
        move(12);
        move(-12);
    }
    for (int i = 0; i < 10; i++)
        train(300, 100);
    CHECK_EQUAL(block.step_count, before + 10);
}

int main(void)
{
    RUN(test_training_steps);
    RUN(test_more_gradients_than_activations);
    RUN(test_gradients_over_several_batches_are_one_step);
    RUN(test_recomputed_activations_and_kept_gradients);
    RUN(test_sixteen_batches_to_a_step);
    RUN(test_a_loss_kept_each_step_and_evaluations);
    RUN(test_steps_that_had_no_time_are_counted);
    RUN(test_a_growing_program_has_no_steps);
    RUN(test_a_pause_between_steps_is_one_long_step);
    return 0;
}
