/* SPDX-License-Identifier: Apache-2.0 */
/* Turns: rounds of a program, found in its number of live blocks while it runs.
 *
 * For programs whose backward passes cannot be told (telemetry/steps.h): other frameworks' training, and serving.
 * A round, which training has one of in each step, takes memory for its forward pass and gives it back until the
 * gradients are dropped.
 * The number of live blocks shows that better than their bytes: it does not depend on the lengths in a
 * batch, and gradients that wait for the optimizer keep it up. Its turns are followed, small ones left out;
 * a step ends at a low that lies near the floor, which is the last one that counted.
 *
 * Where the floor is has to be found out. It falls to each lower low; if lows at the former floor go on between
 * those at the new one, then the former ones lay inside of steps (batches whose gradients are kept), and the steps
 * until then are what all lows until then make at so many a step. It rises when no low has come near it for much longer
 * than before: to the lowest of those that came meanwhile, which are counted then. A swing more than twice as
 * large as any before it means that what was counted so far was something smaller: counting starts over.
 *
 *      blocks      /\                    /\
 *                 /  \  _              /  \  _        the bump is the optimizer's, and its low, where
 *                /    \/ \            /    \/ \       all gradients live, does not count
 *      floor   _/         \__________/         \___
 *
 * Lock rule: `lock` guards a turn; the hot path only moves the extreme, and two threads that do so at once
 * lose nothing but a little precision. */
#ifndef GML_TELEMETRY_TURNS_H
#define GML_TELEMETRY_TURNS_H

#include "base/lock.h"
#include "telemetry/layout.h"

#include <stdatomic.h>
#include <stdbool.h>

typedef struct gml_turns {
    gml_lock lock;
    _Atomic bool falling;
    _Atomic uint64_t extreme;       /* most blocks since the last low, or fewest since the last high */
    _Atomic uint64_t extreme_bytes; /* live bytes then */
    _Atomic uint64_t reach;         /* blocks by which the number must turn */
    uint64_t high, low;             /* blocks at the last turns */
    uint64_t floor;                 /* blocks at the last low that counted */
    uint64_t since, most_since;     /* lows since then, and the most that there were between two that counted */
    uint64_t patience;              /* lows to wait beyond those that a step had, before the floor rises */
    uint64_t lowest_since;          /* the lowest of them */
    uint64_t at_lowest;             /* how many were there */
    uint64_t former;                /* the floor before a much lower one came; 0: none, or it is settled */
    uint64_t counted_before;        /* steps until then */
    uint64_t lows, lows_before;     /* all lows, and those until then */
    uint64_t at_former, at_floor;   /* lows at both since then */
    uint64_t swing;                 /* the largest one, up and down again */
    uint64_t last_ns;               /* when the last step ended; 0: none has */
} gml_turns;

void gml_turns_init(gml_turns *turns);

/* After every change: how many blocks are live now, and how many bytes they have. Steps are counted in
 * `block`. The clock is read only when the direction turns. */
void gml_turns_note(gml_turns *turns, gml_device_block *block, uint64_t live_count, uint64_t live_bytes);

/* The same with the time of a turn given: for tests. */
void gml_turns_note_at(gml_turns *turns, gml_device_block *block, uint64_t live_count, uint64_t live_bytes,
                       uint64_t now_ns);

#endif
