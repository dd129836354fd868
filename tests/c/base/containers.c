/* SPDX-License-Identifier: Apache-2.0 */
/* Pools, maps, bitmaps and alignment against naive counterparts. */
#include "base/align.h"
#include "base/bitmap.h"
#include "base/map.h"
#include "base/pool.h"
#include "base/status.h"
#include "check.h"

#include <string.h>

static void test_pool_gives_zeroed_distinct_objects(void)
{
    enum { COUNT = 9000 };
    static unsigned char *object[COUNT];
    gml_pool pool;
    gml_pool_init(&pool, 104);
    CHECK_EQUAL(gml_pool_ensure(&pool, COUNT), GML_OK);
    uint64_t bytes = pool.bytes;
    for (int round = 0; round < 2; round++) {
        for (int i = 0; i < COUNT; i++) {
            object[i] = gml_pool_take(&pool);
            CHECK(object[i] != NULL && object[i][0] == 0 && memcmp(object[i], object[i] + 1, 103) == 0);
            memset(object[i], i % 251 + 1, 104);
        }
        for (int i = 0; i < COUNT; i++)
            CHECK_EQUAL(object[i][103], i % 251 + 1);
        for (int i = 0; i < COUNT; i++)
            gml_pool_give(&pool, object[i]);
    }
    CHECK_EQUAL(pool.bytes, bytes);
    gml_pool_destroy(&pool);
}

/* The reference is an array indexed by key. */
static void test_map_agrees_with_an_array(void)
{
    enum { KEYS = 20000 };
    static char value[KEYS];
    static int present[KEYS];
    gml_map map = {0};
    uint64_t seed = 42;
    CHECK(gml_map_get(&map, 5) == NULL && gml_map_remove(&map, 5) == NULL);
    for (int i = 0; i < 400000; i++) {
        uint64_t k = random_below(&seed, KEYS), key = (k + 1) * 512;
        if (present[k] != 0) {
            CHECK(gml_map_get(&map, key) == &value[k]);
            if (random_below(&seed, 2) != 0)
                continue;
            CHECK(gml_map_remove(&map, key) == &value[k]);
            present[k] = 0;
        } else {
            CHECK(gml_map_get(&map, key) == NULL);
            CHECK_EQUAL(gml_map_ensure(&map), GML_OK);
            gml_map_put(&map, key, &value[k]);
            present[k] = 1;
        }
    }
    size_t count = 0;
    for (int k = 0; k < KEYS; k++) {
        count += (size_t)present[k];
        CHECK((gml_map_get(&map, ((uint64_t)k + 1) * 512) != NULL) == (present[k] != 0));
    }
    CHECK_EQUAL(map.count, count);
    gml_map_destroy(&map);
}

static void test_bitmap_agrees_with_a_scan(void)
{
    enum { BITS = 517 };
    uint64_t words[GML_BITMAP_WORDS(BITS)] = {0}, seed = 7;
    for (int round = 0; round < 200; round++) {
        for (int i = 0; i < 40; i++) {
            size_t bit = random_below(&seed, BITS);
            if (round % 3 == 0)
                gml_bitmap_clear(words, bit);
            else
                gml_bitmap_set(words, bit);
            CHECK_EQUAL(gml_bitmap_get(words, bit), round % 3 != 0);
        }
        size_t from = random_below(&seed, BITS), next = from, clear = from, previous = from;
        while (next < BITS && !gml_bitmap_get(words, next))
            next++;
        while (clear < BITS && gml_bitmap_get(words, clear))
            clear++;
        while (previous != GML_BITMAP_NONE && !gml_bitmap_get(words, previous))
            previous--;
        CHECK_EQUAL(gml_bitmap_next(words, BITS, from), next < BITS ? next : GML_BITMAP_NONE);
        CHECK_EQUAL(gml_bitmap_next_clear(words, BITS, from), clear);
        CHECK_EQUAL(gml_bitmap_previous(words, from), previous);
    }
    CHECK_EQUAL(gml_bitmap_next(words, BITS, BITS), GML_BITMAP_NONE);
}

static void test_alignment(void)
{
    CHECK_EQUAL(gml_align_up(1, 512), 512);
    CHECK_EQUAL(gml_align_up(512, 512), 512);
    CHECK_EQUAL(gml_align_up(0, 512), 0);
    CHECK_EQUAL(gml_align_down(1023, 512), 512);
    CHECK_EQUAL(gml_log2(1), 0);
    CHECK_EQUAL(gml_log2((uint64_t)1 << 45), 45);
}

static void test_status_texts(void)
{
    CHECK(strcmp(gml_status_name(GML_OUT_OF_MEMORY), "OUT_OF_MEMORY") == 0);
    for (int i = 0; i < GML_STATUS_COUNT; i++)
        CHECK(strlen(gml_status_text((gml_status)i)) > 3);
}

int main(void)
{
    RUN(test_pool_gives_zeroed_distinct_objects);
    RUN(test_map_agrees_with_an_array);
    RUN(test_bitmap_agrees_with_a_scan);
    RUN(test_alignment);
    RUN(test_status_texts);
    return 0;
}
