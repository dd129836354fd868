/* SPDX-License-Identifier: Apache-2.0 */
/* Virtual time: driver-call costs, operations of libraries at 40 % of the peak rate, copies at full bandwidth. */
#include "sim/driver/driver.h"
#include "sim/driver/exports.h"

static _Atomic uint64_t now_ns;

void sim_time_add(uint64_t ns)
{
    atomic_fetch_add_explicit(&now_ns, ns, memory_order_relaxed);
}

void sim_time_copy(size_t bytes)
{
    sim_time_add((uint64_t)((double)bytes / sim_config_get()->profile->bandwidth_gbps));
}

void gml_sim_work(double flops)
{
    const struct sim_profile *profile = sim_config_get()->profile;
    if (profile) sim_time_add((uint64_t)(flops / (0.4 * profile->peak_tflops * 1e3)));
}

uint64_t gml_sim_now_ns(void)
{
    return atomic_load_explicit(&now_ns, memory_order_relaxed);
}
