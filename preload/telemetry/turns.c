/* SPDX-License-Identifier: Apache-2.0 */
/* Follows the number of live blocks from turn to turn. */
#include "telemetry/turns.h"

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

void gml_turns_init(gml_turns *turns)
{
    *turns = (gml_turns){.lock = GML_LOCK_INIT, .reach = SMALLEST_REACH, .patience = FIRST_PATIENCE};
}

static void start_over(gml_turns *turns, gml_device_block *block, uint64_t swing)
{
    turns->swing = swing;
    turns->floor = turns->former = 0;
    turns->last_ns = 0;
    turns->lows = 0;
    turns->since = turns->most_since = 0;
    turns->patience = FIRST_PATIENCE;
    gml_telemetry_set(&block->step_count, 0);
    gml_telemetry_set(&block->step_low_bytes, 0);
}

static void end_step(gml_turns *turns, gml_device_block *block, uint64_t low, uint64_t now_ns)
{
    uint64_t number = gml_telemetry_get(&block->step_count);
    if (turns->last_ns != 0)
        gml_telemetry_set(&block->step_ns[number++ % GML_TELEMETRY_STEPS], now_ns - turns->last_ns);
    gml_telemetry_set(&block->step_count, number);
    gml_telemetry_set(&block->step_low_bytes, atomic_load(&turns->extreme_bytes));
    turns->last_ns = now_ns;
    turns->floor = low;
    if (turns->since > turns->most_since)
        turns->most_since = turns->since;
    turns->since = 0;
}

/* A low far below the floor: either the program changed, or what was counted so far lay inside of steps. */
static void deepen(gml_turns *turns, const gml_device_block *block)
{
    turns->former = turns->floor;
    turns->lows_before = turns->lows;
    turns->counted_before = gml_telemetry_get(&block->step_count);
    turns->at_former = turns->at_floor = 0;
    /* If the floor had risen before, that was too early. */
    if (turns->patience < MOST_PATIENCE)
        turns->patience *= 4;
}

/* Lows at the former floor keep coming between those at the new one: they are parts of steps. */
static void correct(gml_turns *turns, gml_device_block *block)
{
    if (turns->former == 0 || ++turns->at_floor < PROOF)
        return;
    if (turns->at_former >= turns->at_floor - 1) {
        uint64_t lows_a_step = (turns->lows - turns->lows_before) / (turns->at_floor - 1);
        uint64_t counted = gml_telemetry_get(&block->step_count) - turns->counted_before;
        gml_telemetry_set(&block->step_count, counted + turns->lows_before / lows_a_step);
    }
    turns->former = 0;
}

/* A low that does not count. The lowest of them is the next floor, should none at the present one come any more;
 * those that were near it have been steps. */
static void wait(gml_turns *turns, gml_device_block *block, uint64_t low, uint64_t near)
{
    if (turns->since++ == 0 || low + near < turns->lowest_since) {
        turns->lowest_since = low;
        turns->at_lowest = 0;
    }
    turns->at_lowest += low <= turns->lowest_since + near;
    if (turns->since <= PATIENCE * turns->most_since + turns->patience)
        return;
    gml_telemetry_add(&block->step_count, turns->at_lowest);
    turns->floor = turns->lowest_since;
    turns->last_ns = 0; /* the last of them may be long ago */
    turns->since = 0;
}

static void note_low(gml_turns *turns, gml_device_block *block, uint64_t low, uint64_t now_ns)
{
    uint64_t up = turns->high - turns->low;
    uint64_t down = turns->high - low;
    uint64_t swing = up < down ? up : down;
    if (swing > 2 * turns->swing)
        start_over(turns, block, swing);
    else if (swing > turns->swing)
        turns->swing = swing;
    uint64_t reach = turns->swing / REACH_PART;
    atomic_store(&turns->reach, reach > SMALLEST_REACH ? reach : SMALLEST_REACH);
    turns->low = low;
    turns->lows++;
    uint64_t near = turns->swing / NEAR_PART;
    near = near > SMALLEST_NEAR ? near : SMALLEST_NEAR;
    if (turns->floor == 0)
        turns->floor = low;
    if (low + near < turns->floor)
        deepen(turns, block);
    if (low <= turns->floor + near) {
        end_step(turns, block, low, now_ns);
        correct(turns, block);
        return;
    }
    turns->at_former += low <= turns->former + near;
    wait(turns, block, low, near);
}

static void turn(gml_turns *turns, gml_device_block *block, uint64_t live_count, uint64_t live_bytes, uint64_t now_ns)
{
    gml_lock_acquire(&turns->lock);
    uint64_t extreme = atomic_load(&turns->extreme);
    uint64_t reach = atomic_load(&turns->reach);
    bool falling = atomic_load(&turns->falling);
    /* Another thread may have been faster. */
    bool turned = falling ? live_count >= extreme + reach : live_count + reach <= extreme;
    if (turned) {
        if (!falling)
            turns->high = extreme;
        else if (turns->high > extreme && turns->high > turns->low)
            note_low(turns, block, extreme, now_ns != 0 ? now_ns : gml_os_monotonic_ns());
        atomic_store(&turns->extreme, live_count);
        atomic_store(&turns->extreme_bytes, live_bytes);
        atomic_store(&turns->falling, !falling);
    }
    gml_lock_release(&turns->lock);
}

void gml_turns_note_at(gml_turns *turns, gml_device_block *block, uint64_t live_count, uint64_t live_bytes,
                       uint64_t now_ns)
{
    uint64_t extreme = atomic_load_explicit(&turns->extreme, memory_order_relaxed);
    uint64_t reach = atomic_load_explicit(&turns->reach, memory_order_relaxed);
    bool falling = atomic_load_explicit(&turns->falling, memory_order_relaxed);
    if (falling ? live_count < extreme : live_count > extreme) {
        atomic_store_explicit(&turns->extreme, live_count, memory_order_relaxed);
        atomic_store_explicit(&turns->extreme_bytes, live_bytes, memory_order_relaxed);
    } else if (falling ? live_count - extreme >= reach : extreme - live_count >= reach) {
        turn(turns, block, live_count, live_bytes, now_ns);
    }
}

void gml_turns_note(gml_turns *turns, gml_device_block *block, uint64_t live_count, uint64_t live_bytes)
{
    gml_turns_note_at(turns, block, live_count, live_bytes, 0);
}
