/* SPDX-License-Identifier: Apache-2.0 */
/* What each line holds, and what each held at the peak, against a model that copies everything at each peak. */
#include "check.h"
#include "telemetry/sites.h"

#define LINES 40
#define BLOCKS 300

static gml_sites sites;

static uint64_t then_bytes(size_t place)
{
    const gml_site *site = &sites.sites[place];
    return site->peak_number == sites.devices[site->device].peak_number ? site->peak_bytes : site->live_bytes;
}

static void test_against_a_model(void)
{
    uint64_t state = 20261201, live[LINES] = {0}, at_peak[LINES] = {0}, all[2] = {0}, peak[2] = {0};
    struct { size_t line; uint64_t bytes; } blocks[BLOCKS] = {{0, 0}};
    size_t places[LINES];
    memset(&sites, 0, sizeof sites);
    for (size_t i = 0; i < LINES; i++)
        places[i] = gml_sites_find(&sites, i % 2, "train.py", i + 1, "step");
    for (int round = 0; round < 20000; round++) {
        size_t slot = (size_t)random_below(&state, BLOCKS);
        size_t line = blocks[slot].line, device = line % 2;
        if (blocks[slot].bytes != 0) {
            gml_sites_remove(&sites, places[line], blocks[slot].bytes);
            live[line] -= blocks[slot].bytes;
            all[device] -= blocks[slot].bytes;
            blocks[slot].bytes = 0;
            continue;
        }
        line = blocks[slot].line = (size_t)random_below(&state, LINES);
        device = line % 2;
        blocks[slot].bytes = 512 * (1 + random_below(&state, 1000));
        gml_sites_add(&sites, places[line], blocks[slot].bytes);
        live[line] += blocks[slot].bytes;
        all[device] += blocks[slot].bytes;
        if (all[device] > peak[device]) {
            peak[device] = all[device];
            for (size_t i = device; i < LINES; i += 2)
                at_peak[i] = live[i];
        }
        for (size_t i = 0; i < LINES; i++) {
            CHECK_EQUAL(sites.sites[places[i]].live_bytes, live[i]);
            CHECK_EQUAL(then_bytes(places[i]), at_peak[i]);
        }
        CHECK_EQUAL(sites.devices[device].peak_bytes, peak[device]);
        CHECK_EQUAL(sites.sequence % 2, 0);
    }
}

static void test_same_line_same_place(void)
{
    memset(&sites, 0, sizeof sites);
    size_t one = gml_sites_find(&sites, 0, "a.py", 3, "f");
    CHECK_EQUAL(gml_sites_find(&sites, 0, "a.py", 3, "f"), one);
    CHECK(gml_sites_find(&sites, 1, "a.py", 3, "f") != one);
    CHECK(gml_sites_find(&sites, 0, "b.py", 3, "f") != one);
    CHECK(gml_sites_find(&sites, 0, "", 0, "pt_autograd_0") != gml_sites_find(&sites, 0, "", 0, "worker"));
    CHECK_EQUAL(sites.count, 5);
}

static void test_long_names_keep_their_end(void)
{
    char file[600];
    memset(&sites, 0, sizeof sites);
    memset(file, 'x', sizeof file);
    memcpy(file + sizeof file - sizeof "/train.py", "/train.py", sizeof "/train.py");
    size_t place = gml_sites_find(&sites, 0, file, 1, "f");
    CHECK_EQUAL(gml_sites_find(&sites, 0, file, 1, "f"), place);
    const char *kept = sites.sites[place].file;
    CHECK_EQUAL(strlen(kept), GML_SITES_FILE - 1);
    CHECK(strcmp(kept + strlen(kept) - 9, "/train.py") == 0);
}

static void test_a_full_table_shares_one_place(void)
{
    memset(&sites, 0, sizeof sites);
    for (uint64_t line = 1; line <= GML_SITES_NAMED; line++)
        (void)gml_sites_find(&sites, 0, "a.py", line, "f");
    size_t other = gml_sites_find(&sites, 3, "b.py", 1, "g");
    CHECK_EQUAL(other, GML_SITES_NAMED + 3);
    CHECK_EQUAL(gml_sites_find(&sites, 3, "b.py", 2, "g"), other);
    gml_sites_add(&sites, other, 1024);
    CHECK_EQUAL(sites.devices[3].live_bytes, 1024);
    CHECK_EQUAL(sites.count, GML_SITES_NAMED);
}

static void test_the_largest_at_a_failure(void)
{
    memset(&sites, 0, sizeof sites);
    for (uint64_t line = 1; line <= 20; line++)
        gml_sites_add(&sites, gml_sites_find(&sites, line > 18, "a.py", line, "f"), 512 * ((line * 7) % 23));
    gml_sites_note_oom(&sites, 33, 0, 4);
    const gml_site_oom *oom = &sites.ooms[33 % GML_TELEMETRY_OOMS];
    CHECK_EQUAL(oom->number, 34);
    CHECK_EQUAL(oom->asked, 5);
    for (size_t i = 0; i < GML_SITES_TOPS; i++) {
        CHECK_EQUAL(sites.sites[oom->tops[i].site - 1].live_bytes, oom->tops[i].bytes);
        CHECK(i == 0 || oom->tops[i].bytes <= oom->tops[i - 1].bytes);
        CHECK_EQUAL(oom->tops[i].count, 1);
    }
    CHECK_EQUAL(oom->tops[0].bytes, 512 * 22);
    gml_sites_note_oom(&sites, 34, 5, GML_SITES_MOST);
    CHECK_EQUAL(sites.ooms[34 % GML_TELEMETRY_OOMS].asked, 0);
    CHECK_EQUAL(sites.ooms[34 % GML_TELEMETRY_OOMS].tops[0].site, 0);
}

int main(void)
{
    RUN(test_against_a_model);
    RUN(test_same_line_same_place);
    RUN(test_long_names_keep_their_end);
    RUN(test_a_full_table_shares_one_place);
    RUN(test_the_largest_at_a_failure);
    return 0;
}
