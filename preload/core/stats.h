/* SPDX-License-Identifier: Apache-2.0 */
/* Statistics of one heap: one list of counters, kept by the heap itself and read by telemetry.
 *
 * Every field is a uint64_t. `_bytes` are bytes; `peak_` fields are kept at every change, never
 * sampled; `at_peak_` fields are a snapshot taken when reserved reached its peak. */
#ifndef GML_CORE_STATS_H
#define GML_CORE_STATS_H

#include <stdint.h>

/* X(name, meaning) */
#define GML_STATS(X)                                                                            \
    X(live_bytes, "live blocks, each rounded up to 512")                                        \
    X(peak_live_bytes, "highest live_bytes")                                                    \
    X(requested_bytes, "live blocks, as the program asked for them")                            \
    X(reserved_bytes, "physical memory held from the driver")                                   \
    X(peak_reserved_bytes, "highest reserved_bytes")                                            \
    X(primitive_live_bytes, "live bytes in primitive arenas")                \
    X(stitched_live_bytes, "live bytes in stitched arenas") \
    X(primitive_idle_bytes, "held and not live: all chunks that count as primitive, less primitive_live_bytes") \
    X(stitched_idle_bytes, "held and not live: all chunks that count as stitched, less stitched_live_bytes") \
    X(free_chunk_bytes, "wholly free chunks of both")                                           \
    X(stream_held_bytes, "freed bytes that wait for work on another stream or for the device")  \
    X(forwarded_bytes, "live bytes that the real driver serves for us")                         \
    X(largest_servable_bytes, "largest request servable now without new physical memory")       \
    X(largest_gap_bytes, "the same without stitching")                                          \
    X(at_peak_live_bytes, "live_bytes when reserved was at its peak")                           \
    X(at_peak_requested_bytes, "requested_bytes then")                                          \
    X(at_peak_internal_bytes, "given minus requested then")                                     \
    X(at_peak_external_bytes, "reserved, not live and not stream-held then")                    \
    X(at_peak_stream_held_bytes, "stream_held_bytes then")                                      \
    X(at_peak_largest_servable_bytes, "largest_servable_bytes then")                            \
    X(waste_mib_sum, "sum over calls of (reserved - live) in MiB: mean waste is this by the next") \
    X(reserved_mib_sum, "sum over calls of reserved in MiB")                                    \
    X(allocs, "requests that got memory")                                                       \
    X(frees, "blocks given back")                                                               \
    X(merges, "free ranges joined with a neighbour")                                            \
    X(ooms, "requests refused for want of memory")                                              \
    X(budget_refusals, "requests for which memory was created as reuse was over its budget")    \
    X(retries, "times the out-of-memory ladder was climbed")                                    \
    X(ladder_events, "rung 1: retried after finished events")                                   \
    X(ladder_drain, "rung 2: waited for pending frees")                                         \
    X(ladder_cross_stream, "rung 3: took memory of another stream")                             \
    X(ladder_release, "rung 4: released idle chunks and asked the driver again")                \
    X(ladder_forward, "last rung: forwarded to the real driver")                                \
    X(ladder_other, "times idle chunks went back because another call ran out of memory")       \
    X(place_exact, "requests placed in a free range of just their size")                        \
    X(place_split, "requests placed in a larger free range")                                    \
    X(place_extend, "requests placed by mapping free chunks behind a free range")               \
    X(place_stitch, "requests placed in an arena built from free chunks")                       \
    X(place_grow, "requests for which a chunk was created")                                     \
    X(place_fail, "requests that could not be placed")                                          \
    X(chunks, "chunks that exist")                                                              \
    X(mappings, "chunk mappings that exist, aliases included")                                  \
    X(arenas, "arenas that exist")                                                              \
    X(stitched_arenas, "arenas built over chunks that other arenas map too")                    \
    X(reserved_va_bytes, "address space reserved")                                              \
    X(metadata_bytes, "host memory of the bookkeeping")                                         \
    X(driver_create, "driver calls: create")                                                    \
    X(driver_release, "driver calls: release")                                                  \
    X(driver_reserve, "driver calls: reserve")                                                  \
    X(driver_map, "driver calls: map")                                                          \
    X(driver_unmap, "driver calls: unmap")                                                      \
    X(driver_set_access, "driver calls: set access")                                            \
    X(driver_ns, "time in driver memory calls")

typedef struct gml_stats {
#define X(name, meaning) uint64_t name;
    GML_STATS(X)
#undef X
} gml_stats;

#endif
