/* SPDX-License-Identifier: Apache-2.0 */
/* Follows the number of live blocks from turn to turn. */
#include "telemetry/steps.h"

#include "os/os.h"
#include "telemetry/writer.h"

#define SMALLEST_REACH 8u /* blocks: less is noise */
#define REACH_PART 4u     /* of the swing: smaller turns are not looked at */
#define NEAR_PART 4u      /* of the height above the floor: a low below it counts */
#define CREEP_PART 16u    /* of the way to the next low by which the floor rises */

void gml_steps_init(gml_steps *steps)
{
    *steps = (gml_steps){.lock = GML_LOCK_INIT, .reach = SMALLEST_REACH};
}

static void start_over(gml_steps *steps, gml_device_block *block, uint64_t swing)
{
    steps->swing = swing;
    steps->floor = 0;
    steps->last_ns = 0;
    gml_telemetry_set(&block->step_count, 0);
}

static void end_step(gml_steps *steps, gml_device_block *block, uint64_t now_ns)
{
    uint64_t number = gml_telemetry_get(&block->step_count);
    if (steps->last_ns != 0)
        gml_telemetry_set(&block->step_ns[number++ % GML_TELEMETRY_STEPS], now_ns - steps->last_ns);
    gml_telemetry_set(&block->step_count, number);
    gml_telemetry_set(&block->step_low_bytes, atomic_load(&steps->extreme_bytes));
    steps->last_ns = now_ns;
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
    if (low <= steps->floor || steps->floor == 0)
        steps->floor = low;
    if (low - steps->floor <= (steps->high - steps->floor) / NEAR_PART)
        end_step(steps, block, now_ns);
    steps->floor += (low - steps->floor) / CREEP_PART;
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
