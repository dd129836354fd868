/* SPDX-License-Identifier: Apache-2.0 */
/* Latency: how long calls take, in buckets of a quarter of a power of two.
 *
 * A call that did driver work is counted by the time of that work, each of them. Of the others, one in
 * GML_TELEMETRY_SAMPLE is timed and counts for all: two reads of the clock would cost more than a tenth of such a
 * call. Driver work is what the device's sum has grown by since the last look, so with several threads it may be
 * charged to the call of another one; none is counted twice. */
#ifndef GML_TELEMETRY_LATENCY_H
#define GML_TELEMETRY_LATENCY_H

#include "telemetry/writer.h"

/* The bucket of a time: 0 to 3 ns have one each, then there are four to each power of two. The last one takes
 * all from about four seconds on. */
static inline unsigned gml_latency_bucket(uint64_t ns)
{
    if (ns < 4)
        return (unsigned)ns;
    unsigned power = 63u - (unsigned)__builtin_clzll(ns);
    unsigned bucket = (power - 1) * 4 + (unsigned)(ns >> (power - 2) & 3);
    return bucket < GML_TELEMETRY_LATENCIES ? bucket : GML_TELEMETRY_LATENCIES - 1;
}

static inline void gml_latency_add(uint64_t *buckets, uint64_t ns, uint64_t calls)
{
    gml_telemetry_add(&buckets[gml_latency_bucket(ns)], calls);
}

#endif
