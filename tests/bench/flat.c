/* SPDX-License-Identifier: Apache-2.0 */
/* flat: the same mix of allocations and frees at any number of live blocks, for counting instructions.
 *
 * usage: flat BLOCKS OPERATIONS [ALIASES]
 * Fills a heap on the model device with twice BLOCKS blocks, frees half of them at random, lets the
 * heap settle, then replaces OPERATIONS blocks: each step frees a random block and allocates one. Only
 * that last part runs inside `measured`, which callgrind counts. With ALIASES above 0, large blocks
 * stitched from the same chunks come first, until each chunk is mapped about so often.
 * Prints one JSON object: what was measured and how many driver calls it needed. */
#include "core/heap.h"
#include "device/model.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#define MIB ((uint64_t)1 << 20)
#define MOST_BYTES ((uint64_t)400 << 30)
#define LARGE_BLOCKS 24

static uint64_t seed = 0x9E3779B97F4A7C15u;

static uint64_t random_below(uint64_t bound)
{
    seed ^= seed >> 12;
    seed ^= seed << 25;
    seed ^= seed >> 27;
    return ((seed * 0x2545F4914F6CDD1Du) >> 11) % bound;
}

/* 512 bytes to 4 MiB, each power of two as likely as the next, and any size within it. */
static size_t random_size(void)
{
    uint64_t base = (uint64_t)512 << random_below(13);
    return (size_t)(base + random_below(base));
}

static uintptr_t allocate(gml_heap *heap, size_t bytes)
{
    uintptr_t address = 0;
    gml_status status = gml_heap_alloc(heap, bytes, 0, GML_API_ASYNC, &address);
    if (status != GML_OK) {
        fprintf(stderr, "flat: %s\n", gml_status_text(status));
        exit(1);
    }
    return address;
}

static void release(gml_heap *heap, uintptr_t address)
{
    if (gml_heap_free(heap, address, 0) != GML_OK) {
        fprintf(stderr, "flat: a block could not be freed\n");
        exit(1);
    }
}

static void replace(gml_heap *heap, uintptr_t *blocks, size_t count, size_t operations)
{
    for (size_t i = 0; i < operations; i++) {
        size_t at = random_below(count);
        release(heap, blocks[at]);
        blocks[at] = allocate(heap, random_size());
    }
}

/* A function of its own, so that callgrind can be told to count inside it alone. */
__attribute__((noinline)) static void measured(gml_heap *heap, uintptr_t *blocks, size_t count, size_t operations)
{
    replace(heap, blocks, count, operations);
}

static uint64_t larger(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

/* Large blocks of random sizes come and go within a budget, so that each is stitched from chunks that
 * others mapped before. */
static void make_aliases(gml_heap *heap, uint64_t budget_bytes, uint64_t aliases)
{
    uintptr_t blocks[LARGE_BLOCKS] = {0};
    size_t bytes[LARGE_BLOCKS] = {0};
    uint64_t held = 0;
    gml_stats stats = {0};
    for (unsigned round = 0; round < 4000; round++) {
        size_t at = random_below(LARGE_BLOCKS);
        if (blocks[at] != 0) {
            release(heap, blocks[at]);
            held -= bytes[at];
            blocks[at] = 0;
        }
        bytes[at] = larger(128 * MIB, budget_bytes / 32) + random_below(budget_bytes / 8);
        if (held + bytes[at] <= budget_bytes) {
            blocks[at] = allocate(heap, bytes[at]);
            held += bytes[at];
        }
        gml_heap_stats(heap, &stats);
        if (stats.mappings >= aliases * stats.chunks && stats.chunks * 2 * MIB >= budget_bytes / 2)
            break;
    }
    for (size_t i = 0; i < LARGE_BLOCKS; i++)
        if (blocks[i] != 0)
            release(heap, blocks[i]);
}

static uint64_t driver_calls(const gml_stats *stats)
{
    return stats->driver_create + stats->driver_release + stats->driver_reserve + stats->driver_map + stats->driver_unmap +
           stats->driver_set_access;
}

int main(int argc, char **argv)
{
    size_t count = argc > 2 ? strtoull(argv[1], NULL, 10) : 0;
    size_t operations = argc > 2 ? strtoull(argv[2], NULL, 10) : 0;
    uint64_t aliases = argc > 3 ? strtoull(argv[3], NULL, 10) : 0;
    if (count == 0 || operations == 0) {
        fprintf(stderr, "usage: flat BLOCKS OPERATIONS [ALIASES]\n");
        return 2;
    }
    gml_model_options model = {.total_bytes = MOST_BYTES};
    gml_heap_options options = {.goal = GML_GOAL_MEMORY};
    gml_device *device = NULL;
    gml_heap *heap = NULL;
    uintptr_t *blocks = calloc(2 * count, sizeof *blocks);
    if (blocks == NULL || gml_model_create(&model, &device) != GML_OK ||
        gml_heap_create(device, &options, &heap) != GML_OK)
        return 1;
    if (aliases != 0)
        make_aliases(heap, 4096 * MIB + count * MIB, aliases);
    for (size_t i = 0; i < 2 * count; i++)
        blocks[i] = allocate(heap, random_size());
    for (size_t i = 2 * count; i > count; i--) {
        size_t at = random_below(i);
        release(heap, blocks[at]);
        blocks[at] = blocks[i - 1];
    }
    replace(heap, blocks, count, 60000 + 2 * count);
    gml_stats before = {0}, after = {0};
    gml_heap_stats(heap, &before);
    measured(heap, blocks, count, operations);
    gml_heap_stats(heap, &after);
    printf("{\"blocks\": %zu, \"operations\": %zu, \"driver_calls\": %" PRIu64 ", \"mappings_per_chunk\": %.2f, "
           "\"metadata_share\": %.5f}\n",
           count, operations, driver_calls(&after) - driver_calls(&before), (double)after.mappings / (double)after.chunks,
           (double)after.metadata_bytes / (double)after.reserved_bytes);
    return gml_model_violation(device) == NULL ? 0 : 1;
}
