/* SPDX-License-Identifier: Apache-2.0 */
/* Timing: takes the time of calls for the histograms of telemetry/latency.h. */
#ifndef GML_INTERPOSE_TIMING_H
#define GML_INTERPOSE_TIMING_H

#include "interpose/shim.h"
#include "os/os.h"
#include "telemetry/latency.h"

/* Called once for each call that was served, with its number: decides whether this thread's next one is timed. */
static inline void gml_timing_choose(uint64_t number)
{
    if (__builtin_expect(number % GML_TELEMETRY_SAMPLE == GML_TELEMETRY_SAMPLE / 2, 0))
        gml_this_thread.timed = true;
}

/* When this call begins; 0 when it is not timed. */
static inline uint64_t gml_timing_begin(void)
{
    if (__builtin_expect(!gml_this_thread.timed, 1))
        return 0;
    gml_this_thread.timed = false;
    return gml_os_monotonic_ns();
}

/* Driver work since the last call of any thread is this call's. */
static inline void gml_timing_end(gml_shim_device *device, uint64_t began_ns, uint64_t *buckets)
{
    uint64_t driver_ns = gml_telemetry_get(&device->block->stats.driver_ns);
    uint64_t seen = atomic_load_explicit(&device->timed_driver_ns, memory_order_relaxed);
    if (__builtin_expect(driver_ns != seen, 0)) {
        seen = atomic_exchange(&device->timed_driver_ns, driver_ns);
        if (driver_ns > seen) {
            gml_latency_add(device->block->driver_latency, driver_ns - seen, 1);
            gml_latency_add(buckets, driver_ns - seen, 1);
        }
    } else if (__builtin_expect(began_ns != 0, 0)) {
        gml_latency_add(buckets, gml_os_monotonic_ns() - began_ns, GML_TELEMETRY_SAMPLE);
    }
}

/* When a call of cudaMalloc's kind to the real function begins: those are all timed. 0 under the simulator, whose
 * time means nothing. */
static inline uint64_t gml_timing_of_forwarded(const gml_shim *shim)
{
    return shim->simulated ? 0 : gml_os_monotonic_ns();
}

#endif
