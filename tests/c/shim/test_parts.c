/* SPDX-License-Identifier: Apache-2.0 */
/* Parts of the shim on their own: options, ranges, ledger, the telemetry file. */
#define _GNU_SOURCE
#include "base/config.h"
#include "device/cuda_ranges.h"
#include "interpose/ledger.h"
#include "telemetry/writer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define CHECK(condition)                                                                  \
    do {                                                                                  \
        if (!(condition)) {                                                               \
            fprintf(stderr, "%s:%d: %s does not hold\n", __FILE__, __LINE__, #condition); \
            exit(1);                                                                      \
        }                                                                                 \
    } while (0)

#define MIB ((size_t)1 << 20)
#define CHUNK (2 * MIB)

/* ---- options ---- */

static void check_size(const char *text, bool valid, uint64_t bytes)
{
    uint64_t got = 12345;
    bool ok = gml_config_parse_size(text, &got);
    if (ok != valid || (valid && got != bytes) || (!valid && got != 12345)) {
        fprintf(stderr, "size \"%s\": %s %llu\n", text, ok ? "gave" : "refused", (unsigned long long)got);
        exit(1);
    }
}

static void test_sizes(void)
{
    check_size("0", true, 0);
    check_size("4096", true, 4096);
    check_size("4096B", true, 4096);
    check_size("1k", true, 1024);
    check_size("80GB", true, (uint64_t)80 << 30);
    check_size("80GiB", true, (uint64_t)80 << 30);
    check_size("1.5g", true, (uint64_t)3 << 29);
    check_size("512 MiB", true, (uint64_t)512 << 20);
    check_size("2T", true, (uint64_t)2 << 40);
    check_size("", false, 0);
    check_size("GB", false, 0);
    check_size("-1", false, 0);
    check_size("12x", false, 0);
    check_size("12GBs", false, 0);
    check_size("99999999999999999999", false, 0);
    check_size("99999999P", false, 0);
}

static void test_options(void)
{
    unsetenv("GML_GOAL");
    CHECK(strcmp(gml_config_text(GML_OPTION_GOAL), "balanced") == 0 && !gml_config_is_set(GML_OPTION_GOAL));
    setenv("GML_GOAL", "", 1);
    CHECK(strcmp(gml_config_text(GML_OPTION_GOAL), "balanced") == 0 && !gml_config_is_set(GML_OPTION_GOAL));
    setenv("GML_GOAL", "memory", 1);
    CHECK(strcmp(gml_config_text(GML_OPTION_GOAL), "memory") == 0 && gml_config_is_set(GML_OPTION_GOAL));
    setenv("GML_SIM_DEVICES", "4", 1);
    CHECK(gml_config_number(GML_OPTION_SIM_DEVICES, 9) == 4);
    setenv("GML_SIM_DEVICES", "4x", 1);
    CHECK(gml_config_number(GML_OPTION_SIM_DEVICES, 9) == 9);
}

/* ---- ranges ---- */

typedef struct seen {
    size_t count;
    uintptr_t va[16];
    size_t bytes[16];
} seen;

static void see(void *user, uintptr_t va, size_t bytes)
{
    seen *s = user;
    CHECK(s->count < 16);
    s->va[s->count] = va;
    s->bytes[s->count++] = bytes;
}

static seen visit(const gml_cuda_ranges *ranges)
{
    seen s = {0, {0}, {0}};
    gml_cuda_ranges_visit(ranges, see, &s);
    return s;
}

static void test_ranges(void)
{
    gml_cuda_ranges ranges = {.chunk_bytes = CHUNK};
    uintptr_t high = 400 * CHUNK;
    uintptr_t low = 100 * CHUNK;
    gml_cuda_ranges_add(&ranges, high, 100 * CHUNK);
    gml_cuda_ranges_add(&ranges, low, 10 * CHUNK);
    CHECK(visit(&ranges).count == 0);
    gml_cuda_ranges_mark(&ranges, high + 3 * CHUNK, 2 * CHUNK, true);
    gml_cuda_ranges_mark(&ranges, high + 99 * CHUNK, CHUNK, true);
    gml_cuda_ranges_mark(&ranges, low, 10 * CHUNK, true);
    gml_cuda_ranges_mark(&ranges, low + 4 * CHUNK, CHUNK, false);
    seen s = visit(&ranges);
    CHECK(s.count == 4);
    CHECK(s.va[0] == low && s.bytes[0] == 4 * CHUNK);
    CHECK(s.va[1] == low + 5 * CHUNK && s.bytes[1] == 5 * CHUNK);
    CHECK(s.va[2] == high + 3 * CHUNK && s.bytes[2] == 2 * CHUNK);
    CHECK(s.va[3] == high + 99 * CHUNK && s.bytes[3] == CHUNK);
    /* Outside any range nothing happens; a range that goes takes its marks along. */
    gml_cuda_ranges_mark(&ranges, low - CHUNK, CHUNK, true);
    gml_cuda_ranges_mark(&ranges, low + 9 * CHUNK, 2 * CHUNK, false);
    CHECK(visit(&ranges).count == 4);
    gml_cuda_ranges_remove(&ranges, low + CHUNK);
    CHECK(visit(&ranges).count == 4);
    gml_cuda_ranges_remove(&ranges, low);
    CHECK(visit(&ranges).count == 2);
    gml_cuda_ranges_add(&ranges, low, 10 * CHUNK);
    CHECK(visit(&ranges).count == 2);
    for (size_t i = 0; i < 600; i++) /* beyond the first capacity, in descending order */
        gml_cuda_ranges_add(&ranges, (5000 - i) * CHUNK, CHUNK);
    gml_cuda_ranges_mark(&ranges, 4500 * CHUNK, CHUNK, true);
    s = visit(&ranges);
    CHECK(s.count == 3 && s.va[2] == 4500 * CHUNK);
    gml_cuda_ranges_clear(&ranges);
    CHECK(visit(&ranges).count == 0 && ranges.chunk_bytes == CHUNK);
}

/* ---- ledger ---- */

static void test_ledger(void)
{
    gml_ledger ledger;
    gml_ledger_entry entry = {0, 0};
    gml_ledger_init(&ledger);
    CHECK(!gml_ledger_remove(&ledger, 64, &entry));
    for (uintptr_t i = 1; i <= 10000; i++)
        CHECK(gml_ledger_add(&ledger, i * 512, (gml_ledger_entry){i * 3, (int)(i % 16)}));
    CHECK(gml_ledger_remove(&ledger, 512 * 7, &entry) && entry.bytes == 21 && entry.device == 7);
    CHECK(!gml_ledger_remove(&ledger, 512 * 7, &entry));
    /* The same address again: the driver gave it out anew. */
    CHECK(gml_ledger_add(&ledger, 512 * 8, (gml_ledger_entry){1, 2}));
    CHECK(gml_ledger_remove(&ledger, 512 * 8, &entry) && entry.bytes == 1 && entry.device == 2);
    CHECK(!gml_ledger_remove(&ledger, 512 * 8, &entry));
    gml_ledger_drop_device(&ledger, 3);
    CHECK(!gml_ledger_remove(&ledger, 512 * 19, &entry));
    CHECK(gml_ledger_remove(&ledger, 512 * 20, &entry) && entry.device == 4);
}

/* ---- telemetry ---- */

static gml_telemetry_setup setup(const char *directory)
{
    return (gml_telemetry_setup){directory, "vms", "tensors", "memory", true};
}

static off_t file_bytes(const char *directory, const char *suffix)
{
    char path[512];
    struct stat info;
    snprintf(path, sizeof path, "%s/telemetry/%d%s.gml", directory, (int)getpid(), suffix);
    return stat(path, &info) == 0 ? info.st_size : -1;
}

static void test_telemetry(void)
{
    char directory[] = "parts-run-XXXXXX";
    CHECK(mkdtemp(directory) != NULL);
    setenv("RANK", "3", 1);
    setenv("LOCAL_RANK", "x", 1);
    gml_telemetry_setup s = setup(directory);
    gml_telemetry *t = gml_telemetry_open(&s);
    CHECK(t != NULL && memcmp(t->magic, "GMLTLM01", 8) == 0);
    CHECK(t->pid == (uint64_t)getpid() && t->rank == 3 && t->local_rank == UINT64_MAX && t->simulated == 1);
    CHECK(strcmp(t->goal, "memory") == 0 && strcmp(t->allocator, "vms") == 0);
    CHECK(file_bytes(directory, "") == (off_t)sizeof *t);
    /* An earlier image of the same process has left its file: it is not written over. */
    gml_telemetry *second = gml_telemetry_open(&s);
    CHECK(second != NULL && second != t && file_bytes(directory, ".1") == (off_t)sizeof *t);
    char longest[1000];
    memset(longest, 'm', sizeof longest - 1);
    longest[sizeof longest - 1] = '\0';
    gml_telemetry_message(t, longest);
    CHECK(strlen(t->message) == GML_TELEMETRY_TEXT - 1);
    for (uint64_t i = 0; i < GML_TELEMETRY_OOMS + 2; i++)
        gml_telemetry_oom(t, &(gml_oom_record){.request_bytes = i});
    CHECK(t->oom_count == GML_TELEMETRY_OOMS + 2 && t->ooms[0].request_bytes == GML_TELEMETRY_OOMS);
    CHECK(t->ooms[0].time_ns != 0 && t->ooms[2].request_bytes == 2);
    uint64_t mark = 5;
    CHECK(!gml_telemetry_raise(&mark, 5) && gml_telemetry_raise(&mark, 6) && mark == 6);
}

/* Nowhere to write: the same memory, only private. */
static void test_telemetry_without_file(void)
{
    static const char *const places[] = {"", "/proc/nowhere", "/dev/null"};
    for (size_t i = 0; i < sizeof places / sizeof places[0]; i++) {
        gml_telemetry_setup s = setup(places[i]);
        gml_telemetry *t = gml_telemetry_open(&s);
        CHECK(t != NULL && t->pid == (uint64_t)getpid());
    }
}

int main(void)
{
    test_sizes();
    test_options();
    test_ranges();
    test_ledger();
    test_telemetry();
    test_telemetry_without_file();
    return 0;
}
