/* SPDX-License-Identifier: Apache-2.0 */
/* The tally of live sizes against a plain array, and what it says holds most. */
#include "base/tally.h"
#include "check.h"

static void test_counts_agree_with_an_array(void)
{
    enum { SIZES = 3000, TOP = 6 };
    static int64_t count[SIZES];
    gml_tally tally = {0};
    uint64_t seed = 7;
    for (int i = 0; i < 300000; i++) {
        uint64_t k = random_below(&seed, SIZES);
        int64_t change = count[k] > 0 && random_below(&seed, 2) != 0 ? -1 : 1;
        count[k] += change;
        gml_tally_add(&tally, (k + 1) * 512, change);
    }
    gml_tally_entry top[TOP];
    CHECK_EQUAL(gml_tally_top(&tally, top, TOP), TOP);
    for (int place = 0; place < TOP; place++) {
        uint64_t best = 0;
        for (uint64_t k = 0; k < SIZES; k++) {
            uint64_t sum = (k + 1) * 512 * (uint64_t)count[k];
            best = sum > best ? sum : best;
        }
        CHECK_EQUAL(top[place].bytes * (uint64_t)top[place].count, best);
        count[top[place].bytes / 512 - 1] = 0;
    }
    gml_tally_destroy(&tally);
}

static void test_sizes_that_come_and_go_take_no_memory(void)
{
    gml_tally tally = {0};
    gml_tally_add(&tally, 512, 1);
    for (uint64_t size = 1; size < 1000000; size++) {
        gml_tally_add(&tally, size * 1024, 1);
        gml_tally_add(&tally, size * 1024, -1);
    }
    CHECK(tally.capacity <= 4096);
    gml_tally_entry top[2];
    CHECK_EQUAL(gml_tally_top(&tally, top, 2), 1);
    CHECK(top[0].bytes == 512 && top[0].count == 1);
    gml_tally_destroy(&tally);
}

static void test_an_empty_tally_names_nothing(void)
{
    gml_tally tally = {0};
    gml_tally_entry top[1];
    gml_tally_add(&tally, 0, 1);
    CHECK_EQUAL(gml_tally_top(&tally, top, 1), 0);
    gml_tally_destroy(&tally);
}

int main(void)
{
    RUN(test_counts_agree_with_an_array);
    RUN(test_sizes_that_come_and_go_take_no_memory);
    RUN(test_an_empty_tally_names_nothing);
    return 0;
}
