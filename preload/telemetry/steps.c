/* SPDX-License-Identifier: Apache-2.0 */
/* Follows the number of live blocks from turn to turn. */
#include "telemetry/steps.h"

#include "os/os.h"
#include "telemetry/writer.h"

#define SMALLEST_REACH 8u /* blocks: less is noise */
#define REACH_PART 4u     /* of the swing: smaller turns are not looked at */
#define NEAR_PART 16u     /* of the swing: a low so near to the floor counts */
#define SMALLEST_NEAR 4u  /* blocks by which floors differ anyway */
#define PATIENCE 4u       /* times the most lows that a step had: without one that counts, the floor was another */
#define FIRST_PATIENCE 6u /* lows; four times as many after each time that it was too little */
#define MOST_PATIENCE 4096u
#define PROOF 3u          /* lows at a deeper floor, with others at the former one between, until that was no floor */

void gml_steps_init(gml_steps *steps)
{
    *steps = (gml_steps){.lock = GML_LOCK_INIT, .reach = SMALLEST_REACH, .patience = FIRST_PATIENCE};
}

static void start_over(gml_steps *steps, gml_device_block *block, uint64_t swing)
{
    steps->swing = swing;
    steps->floor = steps->former = 0;
    steps->last_ns = 0;
    steps->lows = 0;
    steps->since = steps->most_since = 0;
    steps->patience = FIRST_PATIENCE;
    gml_telemetry_set(&block->step_count, 0);
}

static void end_step(gml_steps *steps, gml_device_block *block, uint64_t low, uint64_t now_ns)
{
    uint64_t number = gml_telemetry_get(&block->step_count);
    if (steps->last_ns != 0)
        gml_telemetry_set(&block->step_ns[number++ % GML_TELEMETRY_STEPS], now_ns - steps->last_ns);
    gml_telemetry_set(&block->step_count, number);
    gml_telemetry_set(&block->step_low_bytes, atomic_load(&steps->extreme_bytes));
    steps->last_ns = now_ns;
    steps->floor = low;
    if (steps->since > steps->most_since)
        steps->most_since = steps->since;
    steps->since = 0;
}

/* A low far below the floor: either the program changed, or what was counted so far lay inside of steps. */
static void deepen(gml_steps *steps, const gml_device_block *block)
{
    steps->former = steps->floor;
    steps->lows_before = steps->lows;
    steps->counted_before = gml_telemetry_get(&block->step_count);
    steps->at_former = steps->at_floor = 0;
    /* If the floor had risen before, that was too early. */
    if (steps->patience < MOST_PATIENCE)
        steps->patience *= 4;
}

/* Lows at the former floor keep coming between those at the new one: they are parts of steps. */
static void correct(gml_steps *steps, gml_device_block *block)
{
    if (steps->former == 0 || ++steps->at_floor < PROOF)
        return;
    if (steps->at_former >= steps->at_floor - 1) {
        uint64_t lows_a_step = (steps->lows - steps->lows_before) / (steps->at_floor - 1);
        uint64_t counted = gml_telemetry_get(&block->step_count) - steps->counted_before;
        gml_telemetry_set(&block->step_count, counted + steps->lows_before / lows_a_step);
    }
    steps->former = 0;
}

/* A low that does not count. The lowest of them is the next floor, should none at the present one come any more;
 * those that were near it have been steps. */
static void wait(gml_steps *steps, gml_device_block *block, uint64_t low, uint64_t near)
{
    if (steps->since++ == 0 || low + near < steps->lowest_since) {
        steps->lowest_since = low;
        steps->at_lowest = 0;
    }
    steps->at_lowest += low <= steps->lowest_since + near;
    if (steps->since <= PATIENCE * steps->most_since + steps->patience)
        return;
    gml_telemetry_add(&block->step_count, steps->at_lowest);
    steps->floor = steps->lowest_since;
    steps->last_ns = 0; /* the last of them may be long ago */
    steps->since = 0;
}

static void note_low(gml_steps *steps, gml_device_block *block, uint64_t low, uint64_t now_ns)
{
    uint64_t up = steps->high - steps->low;
    uint64_t down = steps->high - low;
    uint64_t swing = up < down ? up : down;
    if (swing > 2 * steps->swing)
        start_over(steps, block, swing);
    else if (swing > steps->swing)
        steps->swing = swing;
    uint64_t reach = steps->swing / REACH_PART;
    atomic_store(&steps->reach, reach > SMALLEST_REACH ? reach : SMALLEST_REACH);
    steps->low = low;
    steps->lows++;
    uint64_t near = steps->swing / NEAR_PART;
    near = near > SMALLEST_NEAR ? near : SMALLEST_NEAR;
    if (steps->floor == 0)
        steps->floor = low;
    if (low + near < steps->floor)
        deepen(steps, block);
    if (low <= steps->floor + near) {
        end_step(steps, block, low, now_ns);
        correct(steps, block);
        return;
    }
    steps->at_former += low <= steps->former + near;
    wait(steps, block, low, near);
}

static void turn(gml_steps *steps, gml_device_block *block, uint64_t live_count, uint64_t live_bytes, uint64_t now_ns)
{
    gml_lock_acquire(&steps->lock);
    uint64_t extreme = atomic_load(&steps->extreme);
    uint64_t reach = atomic_load(&steps->reach);
    bool falling = atomic_load(&steps->falling);
    /* Another thread may have been faster. */
    bool turned = falling ? live_count >= extreme + reach : live_count + reach <= extreme;
    if (turned) {
        if (!falling)
            steps->high = extreme;
        else if (steps->high > extreme && steps->high > steps->low)
            note_low(steps, block, extreme, now_ns != 0 ? now_ns : gml_os_monotonic_ns());
        atomic_store(&steps->extreme, live_count);
        atomic_store(&steps->extreme_bytes, live_bytes);
        atomic_store(&steps->falling, !falling);
    }
    gml_lock_release(&steps->lock);
}

void gml_steps_note_at(gml_steps *steps, gml_device_block *block, uint64_t live_count, uint64_t live_bytes,
                       uint64_t now_ns)
{
    uint64_t extreme = atomic_load_explicit(&steps->extreme, memory_order_relaxed);
    uint64_t reach = atomic_load_explicit(&steps->reach, memory_order_relaxed);
    bool falling = atomic_load_explicit(&steps->falling, memory_order_relaxed);
    if (falling ? live_count < extreme : live_count > extreme) {
        atomic_store_explicit(&steps->extreme, live_count, memory_order_relaxed);
        atomic_store_explicit(&steps->extreme_bytes, live_bytes, memory_order_relaxed);
    } else if (falling ? live_count - extreme >= reach : extreme - live_count >= reach) {
        turn(steps, block, live_count, live_bytes, now_ns);
    }
}

void gml_steps_note(gml_steps *steps, gml_device_block *block, uint64_t live_count, uint64_t live_bytes)
{
    gml_steps_note_at(steps, block, live_count, live_bytes, 0);
}
