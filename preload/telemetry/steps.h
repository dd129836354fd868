/* SPDX-License-Identifier: Apache-2.0 */
/* Steps: the period in a program's allocations, found while it runs.
 *
 * A training step takes memory for its forward pass and gives it back until the gradients are dropped.
 * The number of live blocks shows that better than their bytes: it does not depend on the lengths in a
 * batch, and gradients that wait for the optimizer keep it up. Its turns are followed, small ones left out;
 * a step ends at a low that lies near the floor, which is the lowest one, drawn slowly towards those that
 * come. A much larger swing than any before it means that what was counted so far lay inside of
 * steps: counting starts over.
 *
 *      blocks      /\                    /\
 *                 /  \  _              /  \  _        the bump is the optimizer's, and its low, where
 *                /    \/ \            /    \/ \       all gradients live, does not count
 *      floor   _/         \__________/         \___
 *
 * Lock rule: `lock` guards a turn; the hot path only moves the extreme, and two threads that do so at once
 * lose nothing but a little precision. */
#ifndef GML_TELEMETRY_STEPS_H
#define GML_TELEMETRY_STEPS_H

#include "base/lock.h"
#include "telemetry/layout.h"

#include <stdatomic.h>
#include <stdbool.h>

typedef struct gml_steps {
    gml_lock lock;
    _Atomic bool falling;
    _Atomic uint64_t extreme;       /* most blocks since the last low, or fewest since the last high */
    _Atomic uint64_t extreme_bytes; /* live bytes then */
    _Atomic uint64_t reach;         /* blocks by which the number must turn */
    uint64_t high, low;             /* blocks at the last turns */
    uint64_t floor;                 /* blocks at a low that counts, about */
    uint64_t swing;                 /* the largest one, up and down again */
    uint64_t last_ns;               /* when the last step ended; 0: none has */
} gml_steps;

void gml_steps_init(gml_steps *steps);

/* After every change: how many blocks are live now, and how many bytes they have. Steps are counted in
 * `block`. The clock is read only when the direction turns. */
void gml_steps_note(gml_steps *steps, gml_device_block *block, uint64_t live_count, uint64_t live_bytes);

/* The same with the time of a turn given: for tests. */
void gml_steps_note_at(gml_steps *steps, gml_device_block *block, uint64_t live_count, uint64_t live_bytes,
                       uint64_t now_ns);

#endif
