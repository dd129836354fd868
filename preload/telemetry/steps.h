/* SPDX-License-Identifier: Apache-2.0 */
/* Steps: where an optimizer's step ends, seen from the allocations alone.
 *
 * PyTorch runs backward passes on threads of its own ("pt_autograd_0"). The blocks that such a thread asks for and
 * another thread drops are gradients: what else a pass asks for, it drops itself. A pass counts as a step when, before
 * the next one begins, about as many gradients were dropped as in the steps before. So
 * neither evaluations, nor batches whose gradients are kept, nor the lengths and kinds of batches are mistaken for
 * steps, wherever the program calls zero_grad.
 *
 *      forward   backward     optimizer, zero_grad      forward    backward    forward
 *      main      autograd     main                      main       autograd    main
 *      |         + gradients  | - gradients: a step     |          + and kept  | no step
 *
 * While no gradient was ever dropped (zero_grad(set_to_none=False), gradients inside of larger buffers), each pass
 * counts, and the source says so: batches of one step cannot be told apart then. While there is no pass at all,
 * rounds are counted (telemetry/turns.h).
 *
 * Which blocks are gradients is kept in a table that forgets rather than waits: a block whose place is taken is
 * not followed, and two threads at one place lose one gradient, no more.
 *
 * Lock rule: `lock` guards the beginning of a pass and a step; the hot path changes single words. */
#ifndef GML_TELEMETRY_STEPS_H
#define GML_TELEMETRY_STEPS_H

#include "base/lock.h"
#include "telemetry/layout.h"
#include "telemetry/turns.h"

#include <stdatomic.h>
#include <stdbool.h>

#define GML_GRADIENT_PLACES 8192u

/* Blocks of all devices that backward passes asked for and that live. Zeros are an empty one. */
typedef struct gml_gradients {
    _Atomic uint32_t places[GML_GRADIENT_PLACES]; /* bits of the address, and the device + 1 below; 0: free */
} gml_gradients;

/* The steps of one device. */
typedef struct gml_steps {
    gml_lock lock;
    gml_turns turns;
    _Atomic bool seen;          /* a backward pass ran */
    _Atomic bool running;       /* one does now */
    _Atomic bool counted;       /* what was dropped since the last pass began was a step */
    _Atomic uint32_t dropped;   /* gradients since then */
    _Atomic uint32_t most;      /* what steps drop; forgotten slowly when they drop far less */
    _Atomic uint64_t low_bytes; /* fewest live bytes since the last pass ended */
    uint64_t passes;            /* since the last step ended */
    uint64_t passes_a_step;     /* that the last step had */
    uint64_t last_ns;           /* when the last step ended; 0: not known */
} gml_steps;

void gml_steps_init(gml_steps *steps);

/* The parts of the functions below that are rarely needed. */
void gml_steps_pass(gml_steps *steps, gml_device_block *block, gml_gradients *gradients, int ordinal,
                    uintptr_t address, bool autograd);
int gml_gradients_take_from(_Atomic uint32_t *place, uint64_t mixed);

/* This thread got a block on device `ordinal`; `autograd`: it runs backward passes. */
static inline void gml_steps_alloc(gml_steps *steps, gml_device_block *block, gml_gradients *gradients, int ordinal,
                                   uintptr_t address, bool autograd)
{
    if (autograd || atomic_load_explicit(&steps->running, memory_order_relaxed))
        gml_steps_pass(steps, block, gradients, ordinal, address, autograd);
}

static inline uint64_t gml_gradients_mix(uintptr_t address)
{
    return (uint64_t)address * 0x9e3779b97f4a7c15u;
}

static inline _Atomic uint32_t *gml_gradients_place(gml_gradients *gradients, uint64_t mixed)
{
    return &gradients->places[(mixed >> 16) % GML_GRADIENT_PLACES];
}

/* The device of a gradient that ends, else -1. Called before the address can be given out again. */
static inline int gml_gradients_take(gml_gradients *gradients, uintptr_t address)
{
    uint64_t mixed = gml_gradients_mix(address);
    _Atomic uint32_t *place = gml_gradients_place(gradients, mixed);
    return atomic_load_explicit(place, memory_order_relaxed) == 0 ? -1 : gml_gradients_take_from(place, mixed);
}

/* A thread that runs no backward passes dropped a gradient. */
void gml_steps_drop(gml_steps *steps, gml_device_block *block);

/* After every change: how many blocks are live now, and how many bytes they have. */
static inline void gml_steps_note(gml_steps *steps, gml_device_block *block, uint64_t live_count, uint64_t live_bytes)
{
    if (!atomic_load_explicit(&steps->seen, memory_order_relaxed)) {
        gml_turns_note(&steps->turns, block, live_count, live_bytes);
    } else if (live_bytes < atomic_load_explicit(&steps->low_bytes, memory_order_relaxed) &&
               !atomic_load_explicit(&steps->running, memory_order_relaxed)) {
        atomic_store_explicit(&steps->low_bytes, live_bytes, memory_order_relaxed);
    }
}

#endif
