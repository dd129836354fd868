/* SPDX-License-Identifier: Apache-2.0 */
/* Every time has its bucket; tests/unit/test_latency.py has the same pairs. */
#include "check.h"
#include "telemetry/latency.h"

static void test_pairs(void)
{
    static const uint64_t pairs[][2] = {{0, 0}, {3, 3}, {4, 4}, {7, 7}, {8, 8}, {9, 8}, {10, 9}, {160, 25},
                                        {1u << 20, 76}};
    for (size_t i = 0; i < sizeof pairs / sizeof pairs[0]; i++)
        CHECK_EQUAL(gml_latency_bucket(pairs[i][0]), pairs[i][1]);
}

static void test_order(void)
{
    uint64_t state = 7;
    unsigned last = 0;
    for (uint64_t ns = 0; ns < 100000; ns++) {
        CHECK(gml_latency_bucket(ns) == last || gml_latency_bucket(ns) == last + 1);
        last = gml_latency_bucket(ns);
    }
    for (int i = 0; i < 1000; i++)
        CHECK(gml_latency_bucket(random_next(&state)) < GML_TELEMETRY_LATENCIES);
    CHECK_EQUAL(gml_latency_bucket(UINT64_MAX), GML_TELEMETRY_LATENCIES - 1);
}

int main(void)
{
    RUN(test_pairs);
    RUN(test_order);
    return 0;
}
