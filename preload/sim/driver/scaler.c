/* SPDX-License-Identifier: Apache-2.0 */
/* The loss scale of mixed precision (torch.amp.GradScaler), which programs print, store and compare.
 *
 * A scaler fills its two numbers once, and from then on only its own kernel changes them. Between two of its steps run
 * kernels that may have written anything; for its next step the scale is what it was all the same. Only for that: a
 * plain read of four bytes may be of another tensor, which lies where a scaler lay before. Gradients that nobody
 * computed count as finite: the scale grows as it does in training that goes well. */
#include "sim/driver/driver.h"

#include <math.h>
#include <string.h>

/* Four bytes, where they are known or were the last thing given to this place. */
static bool recall(uintptr_t va, void *value)
{
    const struct sim_place place = sim_locate_locked(va, 4);
    if (!place.phys || place.bytes != 4) return false;
    const bool known = sim_known_get_locked(place.phys, place.at, 4) == SIM_KNOWN;
    if (!known && sim_known_given_locked(place.phys, place.at, 4) == SIM_GIVEN_NOT) return false;
    return sim_phys_read(place.phys, place.at, value, 4);
}

static void keep(uintptr_t va, const void *value)
{
    const struct sim_place place = sim_locate_locked(va, 4);
    if (!place.phys || place.bytes != 4 || !sim_phys_write(place.phys, place.at, value, 4)) return;
    sim_known_set_locked(place.phys, place.at, 4, SIM_KNOWN);
    sim_known_give_locked(place.phys, place.at, 4, SIM_GIVEN_ELEMENT);
}

void sim_scaler_step_locked(const struct sim_computation *c)
{
    const uintptr_t scale_va = c->operand[0].va, tracker_va = c->operand[1].va, found_va = c->operand[2].va;
    float scale, found = 0;
    int32_t tracker = 0;
    if (!recall(scale_va, &scale)) {
        sim_known_mark_locked(scale_va, 4, SIM_UNKNOWN);
        sim_known_mark_locked(tracker_va, 4, SIM_UNKNOWN);
        return;
    }
    recall(tracker_va, &tracker);
    if (sim_known_of_locked(found_va, 4) == SIM_KNOWN) recall(found_va, &found);
    if (found != 0) {
        scale = (float)(scale * c->scale.f);
        tracker = 0;
    } else if (tracker + 1 == (int32_t)c->order) {
        const float grown = (float)(scale * c->scalar.f);
        if (isfinite(grown)) scale = grown;
        tracker = 0;
    } else {
        tracker++;
    }
    keep(scale_va, &scale);
    keep(tracker_va, &tracker);
}
