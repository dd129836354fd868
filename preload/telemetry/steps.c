/* SPDX-License-Identifier: Apache-2.0 */
/* Follows gradients from the pass that makes them to the thread that drops them. */
#include "telemetry/steps.h"

#include "os/os.h"
#include "telemetry/writer.h"

#define DEVICE_BITS 5u /* ordinal + 1, in a place */
#define FEW_PART 4u    /* of what steps drop: a pass with fewer is no step */
#define FORGET_PART 64u
#define UNSURE 32u     /* so many steps are taken back when it turns out that steps drop far more */

_Static_assert(GML_TELEMETRY_DEVICES < 1u << DEVICE_BITS, "a device fits its bits");

void gml_steps_init(gml_steps *steps)
{
    *steps = (gml_steps){.lock = GML_LOCK_INIT, .low_bytes = UINT64_MAX};
    gml_turns_init(&steps->turns);
}

/* ---- gradients ---- */

static uint32_t tag_of(uint64_t mixed)
{
    return (uint32_t)(mixed >> 32) & ~((1u << DEVICE_BITS) - 1);
}

static void follow(gml_gradients *gradients, uintptr_t address, int ordinal)
{
    uint64_t mixed = gml_gradients_mix(address);
    _Atomic uint32_t *place = gml_gradients_place(gradients, mixed);
    if (atomic_load_explicit(place, memory_order_relaxed) == 0)
        atomic_store_explicit(place, tag_of(mixed) | (uint32_t)(ordinal + 1), memory_order_relaxed);
}

int gml_gradients_take_from(_Atomic uint32_t *place, uint64_t mixed)
{
    uint32_t found = atomic_load_explicit(place, memory_order_relaxed);
    uint32_t device = found & ((1u << DEVICE_BITS) - 1);
    if (device == 0 || found - device != tag_of(mixed))
        return -1;
    atomic_store_explicit(place, 0, memory_order_relaxed);
    return (int)device - 1;
}

/* ---- passes and steps ---- */

static void start_over(gml_steps *steps, gml_device_block *block, gml_step_source source)
{
    steps->last_ns = 0;
    gml_telemetry_set(&block->step_count, 0);
    gml_telemetry_set(&block->step_source, source);
}

/* `now_ns` is 0 when the step ended a while ago: neither its time is known then nor that of the next one. */
static void end_step(gml_steps *steps, gml_device_block *block, uint64_t now_ns)
{
    uint64_t number = gml_telemetry_get(&block->step_count);
    uint64_t took_ns = now_ns == 0 || steps->last_ns == 0 ? 0 : now_ns - steps->last_ns;
    gml_telemetry_set(&block->step_ns[number % GML_TELEMETRY_STEPS], took_ns);
    gml_telemetry_set(&block->step_count, number + 1);
    gml_telemetry_set(&block->step_begun, 0);
    steps->last_ns = now_ns;
    steps->passes_a_step = steps->passes;
    steps->passes = 0;
}

static uint32_t fewest(const gml_steps *steps)
{
    uint32_t most = atomic_load_explicit(&steps->most, memory_order_relaxed);
    return most > FEW_PART ? most / FEW_PART : 1;
}

/* True: what was counted so far were no steps. */
static bool learn(gml_steps *steps, gml_device_block *block, uint32_t dropped)
{
    uint32_t most = atomic_load(&steps->most);
    bool wrong = most == 0 || (dropped / FEW_PART > most && gml_telemetry_get(&block->step_count) <= UNSURE);
    if (wrong)
        start_over(steps, block, GML_STEPS_BY_GRADIENTS);
    else if (dropped < most / FEW_PART)
        most -= most / FORGET_PART + 1;
    atomic_store(&steps->most, dropped > most ? dropped : most);
    return wrong;
}

/* What the program dropped between the last pass and the one that begins now. */
static void judge(gml_steps *steps, gml_device_block *block)
{
    uint32_t dropped = atomic_exchange(&steps->dropped, 0);
    bool counted = atomic_load(&steps->counted);
    if (dropped > 0 && learn(steps, block, dropped))
        counted = false;
    if (!counted && dropped >= fewest(steps)) {
        end_step(steps, block, 0);
        counted = true;
    }
    if (counted)
        gml_telemetry_set(&block->step_low_bytes, atomic_load(&steps->low_bytes));
    atomic_store(&steps->counted, false);
}

static void begin_pass(gml_steps *steps, gml_device_block *block)
{
    gml_lock_acquire(&steps->lock);
    if (!atomic_exchange(&steps->running, true)) { /* another thread may have been faster */
        if (!atomic_exchange(&steps->seen, true)) {
            start_over(steps, block, GML_STEPS_BY_PASSES);
            gml_telemetry_set(&block->step_low_bytes, 0);
        }
        judge(steps, block);
        steps->passes++;
        if (atomic_load(&steps->most) == 0)
            end_step(steps, block, gml_os_monotonic_ns());
        else if (steps->passes >= steps->passes_a_step)
            gml_telemetry_set(&block->step_begun, 1);
    }
    gml_lock_release(&steps->lock);
}

void gml_steps_pass(gml_steps *steps, gml_device_block *block, gml_gradients *gradients, int ordinal,
                    uintptr_t address, bool autograd)
{
    bool running = atomic_load_explicit(&steps->running, memory_order_relaxed);
    if (autograd) {
        if (!running)
            begin_pass(steps, block);
        follow(gradients, address, ordinal);
    } else if (running) {
        atomic_store_explicit(&steps->low_bytes, UINT64_MAX, memory_order_relaxed);
        atomic_store_explicit(&steps->running, false, memory_order_relaxed);
    }
}

void gml_steps_drop(gml_steps *steps, gml_device_block *block)
{
    uint32_t dropped = atomic_fetch_add_explicit(&steps->dropped, 1, memory_order_relaxed) + 1;
    uint32_t most = atomic_load_explicit(&steps->most, memory_order_relaxed);
    if (most == 0 || dropped < fewest(steps) || atomic_load_explicit(&steps->counted, memory_order_relaxed))
        return;
    gml_lock_acquire(&steps->lock);
    if (!atomic_exchange(&steps->counted, true))
        end_step(steps, block, gml_os_monotonic_ns());
    gml_lock_release(&steps->lock);
}
