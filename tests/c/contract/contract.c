/* SPDX-License-Identifier: Apache-2.0 */
/* The device contract as one suite, for every device that claims to keep it.
 *
 * usage: contract model|cuda
 * Every rule of device/device.h that the core relies on is a test here. All of them run, also after a
 * failure; a line a test says how it went, and the program ends with 1 if one failed, 2 without a device. */
#include "subject.h"

#include <stdio.h>
#include <string.h>

#define REQUIRE(condition)      \
    do {                        \
        if (!(condition))       \
            return #condition;  \
    } while (0)

#define OPS(s) ((s)->dev->ops)
#define CHUNK(s) ((s)->dev->chunk_bytes)

/* ---- helpers: a range with `count` chunks of its own ---- */

#define MOST_CHUNKS 8

typedef struct range {
    uintptr_t va;
    size_t count;
    gml_handle handles[MOST_CHUNKS];
} range;

static bool open_range(subject *s, size_t count, range *r)
{
    gml_device *d = s->dev;
    *r = (range){.count = count};
    bool ok = OPS(s)->reserve(d, count * CHUNK(s), &r->va) == GML_OK;
    for (size_t i = 0; ok && i < count; i++)
        ok = OPS(s)->create(d, CHUNK(s), &r->handles[i]) == GML_OK &&
             OPS(s)->map(d, r->va + i * CHUNK(s), CHUNK(s), r->handles[i]) == GML_OK;
    return ok && OPS(s)->set_access(d, r->va, count * CHUNK(s)) == GML_OK;
}

static bool close_range(subject *s, range *r)
{
    gml_device *d = s->dev;
    bool ok = OPS(s)->sync(d) == GML_OK && OPS(s)->unmap(d, r->va, r->count * CHUNK(s)) == GML_OK &&
              OPS(s)->free_va(d, r->va, r->count * CHUNK(s)) == GML_OK;
    for (size_t i = 0; i < r->count; i++)
        ok = OPS(s)->release(d, r->handles[i]) == GML_OK && ok;
    return ok;
}

static size_t free_bytes(subject *s)
{
    size_t free_now = 0, total = 0;
    return OPS(s)->mem_info(s->dev, &free_now, &total) == GML_OK && free_now <= total ? free_now : 0;
}

static bool reads(subject *s, uintptr_t va, size_t bytes, unsigned char value)
{
    return s->holds == NULL || s->holds(va, bytes, value);
}

static bool writes(subject *s, uintptr_t va, size_t bytes, unsigned char value)
{
    return s->fill == NULL || s->fill(va, bytes, value);
}

/* ---- what a device does ---- */

static const char *test_chunk_size(subject *s)
{
    REQUIRE(CHUNK(s) >= 4096 && (CHUNK(s) & (CHUNK(s) - 1)) == 0);
    return NULL;
}

static const char *test_memory_is_taken_and_returned(subject *s)
{
    gml_handle handles[MOST_CHUNKS] = {0};
    size_t before = free_bytes(s);
    REQUIRE(before > 0);
    for (size_t i = 0; i < MOST_CHUNKS; i++)
        REQUIRE(OPS(s)->create(s->dev, CHUNK(s), &handles[i]) == GML_OK && handles[i] != 0);
    size_t during = free_bytes(s);
    for (size_t i = 0; i < MOST_CHUNKS; i++)
        REQUIRE(OPS(s)->release(s->dev, handles[i]) == GML_OK);
    REQUIRE(before - during >= MOST_CHUNKS * CHUNK(s));
    REQUIRE(free_bytes(s) > during);
    return NULL;
}

static const char *test_addresses_are_aligned(subject *s)
{
    uintptr_t a = 0, b = 0;
    REQUIRE(OPS(s)->reserve(s->dev, 3 * CHUNK(s), &a) == GML_OK && a != 0 && a % CHUNK(s) == 0);
    REQUIRE(OPS(s)->reserve(s->dev, 5 * CHUNK(s), &b) == GML_OK && b != 0 && b % CHUNK(s) == 0);
    REQUIRE(a + 3 * CHUNK(s) <= b || b + 5 * CHUNK(s) <= a);
    REQUIRE(OPS(s)->free_va(s->dev, a, 3 * CHUNK(s)) == GML_OK);
    REQUIRE(OPS(s)->free_va(s->dev, b, 5 * CHUNK(s)) == GML_OK);
    return NULL;
}

static const char *test_range_of_several_chunks(subject *s)
{
    range r;
    REQUIRE(open_range(s, 4, &r));
    /* Across the borders of the chunks, in one piece. */
    REQUIRE(writes(s, r.va, 4 * CHUNK(s), 0x5a) && reads(s, r.va, 4 * CHUNK(s), 0x5a));
    REQUIRE(close_range(s, &r));
    return NULL;
}

/* A handle at several addresses is the same memory, in another order too: stitching itself. */
static const char *test_aliases(subject *s)
{
    range r;
    uintptr_t other = 0;
    size_t chunk = CHUNK(s);
    REQUIRE(open_range(s, 3, &r));
    REQUIRE(OPS(s)->reserve(s->dev, 2 * chunk, &other) == GML_OK);
    REQUIRE(OPS(s)->map(s->dev, other, chunk, r.handles[2]) == GML_OK);
    REQUIRE(OPS(s)->map(s->dev, other + chunk, chunk, r.handles[0]) == GML_OK);
    REQUIRE(OPS(s)->set_access(s->dev, other, 2 * chunk) == GML_OK);
    REQUIRE(writes(s, r.va, 3 * chunk, 1) && writes(s, other, 2 * chunk, 2));
    REQUIRE(reads(s, r.va, chunk, 2) && reads(s, r.va + chunk, chunk, 1) && reads(s, r.va + 2 * chunk, chunk, 2));
    REQUIRE(writes(s, r.va + 2 * chunk, chunk, 3) && reads(s, other, chunk, 3) && reads(s, other + chunk, chunk, 2));
    REQUIRE(OPS(s)->sync(s->dev) == GML_OK && OPS(s)->unmap(s->dev, other, 2 * chunk) == GML_OK);
    REQUIRE(reads(s, r.va, chunk, 2)); /* the first address is as it was */
    REQUIRE(OPS(s)->free_va(s->dev, other, 2 * chunk) == GML_OK && close_range(s, &r));
    return NULL;
}

static const char *test_released_handle_lives_while_mapped(subject *s)
{
    range r;
    size_t before = free_bytes(s);
    REQUIRE(open_range(s, 2, &r) && writes(s, r.va, 2 * CHUNK(s), 7));
    for (size_t i = 0; i < 2; i++)
        REQUIRE(OPS(s)->release(s->dev, r.handles[i]) == GML_OK);
    REQUIRE(reads(s, r.va, 2 * CHUNK(s), 7));
    REQUIRE(before - free_bytes(s) >= 2 * CHUNK(s));
    size_t during = free_bytes(s);
    REQUIRE(OPS(s)->sync(s->dev) == GML_OK && OPS(s)->unmap(s->dev, r.va, 2 * CHUNK(s)) == GML_OK);
    REQUIRE(free_bytes(s) > during);
    REQUIRE(OPS(s)->free_va(s->dev, r.va, 2 * CHUNK(s)) == GML_OK);
    return NULL;
}

/* The middle of a range goes and other chunks come in its place. */
static const char *test_remap_in_the_middle(subject *s)
{
    range r;
    size_t chunk = CHUNK(s);
    gml_handle fresh[2] = {0};
    REQUIRE(open_range(s, 4, &r) && writes(s, r.va, 4 * chunk, 1));
    REQUIRE(OPS(s)->sync(s->dev) == GML_OK && OPS(s)->unmap(s->dev, r.va + chunk, 2 * chunk) == GML_OK);
    for (size_t i = 0; i < 2; i++)
        REQUIRE(OPS(s)->create(s->dev, chunk, &fresh[i]) == GML_OK &&
                OPS(s)->map(s->dev, r.va + (1 + i) * chunk, chunk, fresh[i]) == GML_OK);
    REQUIRE(OPS(s)->set_access(s->dev, r.va + chunk, 2 * chunk) == GML_OK);
    REQUIRE(writes(s, r.va + chunk, 2 * chunk, 9));
    REQUIRE(reads(s, r.va, chunk, 1) && reads(s, r.va + chunk, 2 * chunk, 9) && reads(s, r.va + 3 * chunk, chunk, 1));
    REQUIRE(close_range(s, &r));
    REQUIRE(OPS(s)->release(s->dev, fresh[0]) == GML_OK && OPS(s)->release(s->dev, fresh[1]) == GML_OK);
    return NULL;
}

static const char *test_larger_handles(subject *s)
{
    gml_handle handle = 0;
    uintptr_t va = 0;
    size_t bytes = 4 * CHUNK(s);
    REQUIRE(OPS(s)->create(s->dev, bytes, &handle) == GML_OK && OPS(s)->reserve(s->dev, bytes, &va) == GML_OK);
    REQUIRE(OPS(s)->map(s->dev, va, bytes, handle) == GML_OK && OPS(s)->set_access(s->dev, va, bytes) == GML_OK);
    REQUIRE(writes(s, va, bytes, 4) && reads(s, va, bytes, 4));
    REQUIRE(OPS(s)->sync(s->dev) == GML_OK && OPS(s)->unmap(s->dev, va, bytes) == GML_OK);
    REQUIRE(OPS(s)->free_va(s->dev, va, bytes) == GML_OK && OPS(s)->release(s->dev, handle) == GML_OK);
    return NULL;
}

static const char *test_events(subject *s)
{
    gml_event event = 0;
    REQUIRE(OPS(s)->event_record(s->dev, 0, &event) == GML_OK && event != 0);
    REQUIRE(OPS(s)->stream_wait(s->dev, 0, event) == GML_OK);
    REQUIRE(OPS(s)->event_sync(s->dev, event) == GML_OK && OPS(s)->event_query(s->dev, event) == GML_OK);
    REQUIRE(OPS(s)->event_destroy(s->dev, event) == GML_OK);
    gml_event all = 0;
    gml_status status = OPS(s)->event_record(s->dev, GML_STREAM_NONE, &all);
    REQUIRE(status == GML_OK || (status == GML_UNSUPPORTED && all == 0));
    if (status == GML_OK)
        REQUIRE(OPS(s)->event_sync(s->dev, all) == GML_OK && OPS(s)->event_query(s->dev, all) == GML_OK &&
                OPS(s)->event_destroy(s->dev, all) == GML_OK);
    return NULL;
}

static const char *test_clock(subject *s)
{
    uint64_t last = OPS(s)->now_ns(s->dev);
    for (int i = 0; i < 1000; i++) {
        uint64_t now = OPS(s)->now_ns(s->dev);
        REQUIRE(now >= last);
        last = now;
    }
    return NULL;
}

static const char *test_out_of_memory_changes_nothing(subject *s)
{
    size_t free_now = 0, total = 0;
    gml_handle handle = 77;
    REQUIRE(OPS(s)->mem_info(s->dev, &free_now, &total) == GML_OK);
    REQUIRE(OPS(s)->create(s->dev, (total / CHUNK(s) + 2) * CHUNK(s), &handle) == GML_OUT_OF_MEMORY && handle == 77);
    range r;
    REQUIRE(open_range(s, 2, &r) && writes(s, r.va, 2 * CHUNK(s), 6) && reads(s, r.va, 2 * CHUNK(s), 6));
    REQUIRE(close_range(s, &r));
    return NULL;
}

/* ---- what a device refuses; each refusal changes nothing ---- */

static const char *test_refuses_odd_sizes(subject *s)
{
    gml_handle handle = 77;
    REQUIRE(OPS(s)->create(s->dev, CHUNK(s) / 2, &handle) == GML_INVALID && handle == 77);
    return NULL;
}

static const char *test_refuses_a_second_mapping_at_an_address(subject *s)
{
    range r;
    REQUIRE(open_range(s, 2, &r) && writes(s, r.va, CHUNK(s), 3));
    REQUIRE(OPS(s)->map(s->dev, r.va, CHUNK(s), r.handles[1]) != GML_OK);
    REQUIRE(reads(s, r.va, CHUNK(s), 3) && close_range(s, &r));
    return NULL;
}

static const char *test_refuses_part_of_a_handle(subject *s)
{
    gml_handle handle = 0;
    uintptr_t va = 0;
    size_t bytes = 2 * CHUNK(s);
    REQUIRE(OPS(s)->create(s->dev, bytes, &handle) == GML_OK && OPS(s)->reserve(s->dev, bytes, &va) == GML_OK);
    REQUIRE(OPS(s)->map(s->dev, va, CHUNK(s), handle) != GML_OK);
    REQUIRE(OPS(s)->map(s->dev, va, bytes, handle) == GML_OK && OPS(s)->set_access(s->dev, va, bytes) == GML_OK);
    REQUIRE(writes(s, va, bytes, 8));
    REQUIRE(OPS(s)->unmap(s->dev, va, CHUNK(s)) != GML_OK && reads(s, va, bytes, 8));
    REQUIRE(OPS(s)->unmap(s->dev, va, bytes) == GML_OK && OPS(s)->free_va(s->dev, va, bytes) == GML_OK);
    REQUIRE(OPS(s)->release(s->dev, handle) == GML_OK);
    return NULL;
}

static const char *test_refuses_access_to_nothing(subject *s)
{
    uintptr_t va = 0;
    REQUIRE(OPS(s)->reserve(s->dev, 2 * CHUNK(s), &va) == GML_OK);
    REQUIRE(OPS(s)->set_access(s->dev, va, 2 * CHUNK(s)) != GML_OK);
    REQUIRE(OPS(s)->free_va(s->dev, va, 2 * CHUNK(s)) == GML_OK);
    return NULL;
}

static const char *test_refuses_to_free_mapped_addresses(subject *s)
{
    range r;
    REQUIRE(open_range(s, 1, &r) && writes(s, r.va, CHUNK(s), 2));
    REQUIRE(OPS(s)->free_va(s->dev, r.va, CHUNK(s)) != GML_OK);
    REQUIRE(reads(s, r.va, CHUNK(s), 2) && close_range(s, &r));
    return NULL;
}

/* ---- the list ---- */

#define TESTS(X)                                      \
    X(chunk_size, true)                               \
    X(memory_is_taken_and_returned, true)             \
    X(addresses_are_aligned, true)                    \
    X(range_of_several_chunks, true)                  \
    X(aliases, true)                                  \
    X(released_handle_lives_while_mapped, true)       \
    X(remap_in_the_middle, true)                      \
    X(larger_handles, true)                           \
    X(events, true)                                   \
    X(clock, true)                                    \
    X(out_of_memory_changes_nothing, true)            \
    X(refuses_odd_sizes, false)                       \
    X(refuses_a_second_mapping_at_an_address, false)  \
    X(refuses_part_of_a_handle, false)                \
    X(refuses_access_to_nothing, false)               \
    X(refuses_to_free_mapped_addresses, false)

typedef struct test {
    const char *name;
    const char *(*run)(subject *s); /* NULL, or what does not hold */
    bool keeps_rules;               /* the test itself breaks no rule of the contract */
} test;

static const test tests[] = {
#define X(name, keeps_rules) {#name, test_##name, keeps_rules},
    TESTS(X)
#undef X
};

static bool run_test(const test *t, bool model, const char **out_why)
{
    subject s;
    if (!(model ? subject_open_model : subject_open_cuda)(&s, out_why)) {
        fprintf(stderr, "contract: no device: %s\n", *out_why);
        return false;
    }
    *out_why = t->run(&s);
    if (*out_why == NULL && t->keeps_rules && s.violation != NULL)
        *out_why = s.violation(s.dev);
    (model ? subject_close_model : subject_close_cuda)(&s);
    printf("%s %s%s%s\n", *out_why == NULL ? "ok" : "FAILED", t->name, *out_why == NULL ? "" : ": ",
           *out_why == NULL ? "" : *out_why);
    fflush(stdout);
    return true;
}

int main(int argc, char **argv)
{
    bool model = argc == 2 && strcmp(argv[1], "model") == 0;
    if (!model && (argc != 2 || strcmp(argv[1], "cuda") != 0)) {
        fprintf(stderr, "usage: contract model|cuda\n");
        return 2;
    }
    int failed = 0;
    for (size_t i = 0; i < sizeof tests / sizeof tests[0]; i++) {
        const char *why = NULL;
        if (!run_test(&tests[i], model, &why))
            return 2;
        failed += why != NULL;
    }
    return failed == 0 ? 0 : 1;
}
