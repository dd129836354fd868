/* SPDX-License-Identifier: Apache-2.0 */
/* Virtual memory: PROT_NONE host ranges, and the page table that says what stands behind them.
 *
 * The table is a two-level array over chunks of the 47-bit address space: finding a page costs two
 * loads. Every range and every map covers whole chunks. */
#define _GNU_SOURCE
#include "sim/driver/driver.h"
#include "sim/driver/exports.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { CHUNK_SHIFT = 21, LEAF_BITS = 13, TOP_BITS = 47 - CHUNK_SHIFT - LEAF_BITS };

static struct sim_page *top[1 << TOP_BITS];
static struct sim_range *ranges; /* all, newest first */
static size_t reserved_bytes;

static struct sim_page *page_slot(uintptr_t va, bool create)
{
    size_t chunk = va >> CHUNK_SHIFT, index = chunk >> LEAF_BITS;
    if (index >= (size_t)1 << TOP_BITS) return NULL;
    if (!top[index] && create) {
        size_t bytes = sizeof(struct sim_page) << LEAF_BITS;
        void *leaf = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (leaf != MAP_FAILED) top[index] = leaf;
    }
    return top[index] ? &top[index][chunk & (((size_t)1 << LEAF_BITS) - 1)] : NULL;
}

struct sim_page sim_page_locked(uintptr_t va)
{
    struct sim_page *page = page_slot(va, false);
    return page ? *page : (struct sim_page){NULL, NULL, SIM_WAS_NOT};
}

struct sim_range *sim_range_find_locked(uintptr_t va)
{
    return sim_page_locked(va).range;
}

struct sim_range *sim_range_first_locked(void)
{
    return ranges;
}

static bool kept_apart(enum sim_range_kind kind)
{
    return kind == SIM_RANGE_MALLOC || kind == SIM_RANGE_POOL || kind == SIM_RANGE_GRAPH;
}

static void give_addresses(const struct sim_range *range)
{
    if (kept_apart(range->kind)) sim_addresses_give_locked(range->va, range->va_bytes);
    else munmap((void *)range->va, range->va_bytes);
}

CUresult sim_range_new_locked(size_t bytes, size_t align, uintptr_t hint, enum sim_range_kind kind,
                              struct sim_range **out)
{
    size_t va_bytes = sim_round_up(bytes, SIM_CHUNK);
    if (va_bytes > sim_config_get()->va_bytes - reserved_bytes) return CUDA_ERROR_OUT_OF_MEMORY;
    struct sim_range *range = calloc(1, sizeof *range);
    if (!range) return CUDA_ERROR_OUT_OF_MEMORY;
    range->kind = kind;
    range->va_bytes = va_bytes;
    range->va = kept_apart(kind) ? sim_addresses_take_locked(va_bytes)
                                 : sim_addresses_map(va_bytes, align > SIM_CHUNK ? align : SIM_CHUNK, hint);
    if (!range->va) goto undo_range;
    for (size_t at = 0; at < va_bytes; at += SIM_CHUNK) {
        struct sim_page *page = page_slot(range->va + at, true);
        if (!page) goto undo_pages;
        page->range = range;
    }
    range->bytes = bytes;
    range->id = ++sim.next_id;
    range->next = ranges;
    if (ranges) ranges->prev = range;
    ranges = range;
    reserved_bytes += va_bytes;
    *out = range;
    return CUDA_SUCCESS;

undo_pages:
    for (size_t at = 0; at < va_bytes; at += SIM_CHUNK) {
        struct sim_page *page = page_slot(range->va + at, false);
        if (page) page->range = NULL;
    }
    give_addresses(range);
undo_range:
    free(range);
    return CUDA_ERROR_OUT_OF_MEMORY;
}

void sim_range_free_locked(struct sim_range *range)
{
    const bool keeps = kept_apart(range->kind) && sim_addresses_keeps(range->va_bytes);
    for (size_t at = 0; at < range->va_bytes; at += SIM_CHUNK) {
        struct sim_page *page = page_slot(range->va + at, false);
        page->range = NULL;
        page->was = keeps ? SIM_WAS_KEPT : SIM_WAS_GIVEN_BACK;
    }
    give_addresses(range);
    reserved_bytes -= range->va_bytes;
    if (range->prev) range->prev->next = range->next;
    else ranges = range->next;
    if (range->next) range->next->prev = range->prev;
    free(range);
}

CUresult sim_map_new_locked(uintptr_t va, struct sim_phys *phys, struct sim_map **out)
{
    struct sim_map *map = calloc(1, sizeof *map);
    if (!map) return CUDA_ERROR_OUT_OF_MEMORY;
    map->va = va;
    map->bytes = phys->bytes;
    map->phys = phys;
    for (size_t at = 0; at < map->bytes; at += SIM_CHUNK) page_slot(va + at, false)->map = map;
    page_slot(va, false)->range->maps++;
    phys->maps++;
    *out = map;
    return CUDA_SUCCESS;
}

void sim_map_free_locked(struct sim_map *map)
{
    for (size_t at = 0; at < map->bytes; at += SIM_CHUNK) page_slot(map->va + at, false)->map = NULL;
    page_slot(map->va, false)->range->maps--;
    map->phys->maps--;
    sim_phys_unref_locked(map->phys);
    free(map);
}

bool sim_stale_locked(uintptr_t va)
{
    const struct sim_page page = sim_page_locked(va);
    if (page.range || page.was != SIM_WAS_GIVEN_BACK) return !page.range && page.was == SIM_WAS_KEPT;
    /* The host may have put something else there since. */
    return msync((void *)(va / 4096 * 4096), 4096, MS_ASYNC) != 0 && errno == ENOMEM;
}

bool sim_access_ok_locked(uintptr_t va, size_t bytes, int device, bool write)
{
    uintptr_t end = va + bytes;
    while (va < end) {
        struct sim_page page = sim_page_locked(va);
        unsigned access = page.map ? page.map->access[device] : CU_MEM_ACCESS_FLAGS_PROT_NONE;
        bool ok = access == CU_MEM_ACCESS_FLAGS_PROT_READWRITE || (!write && access == CU_MEM_ACCESS_FLAGS_PROT_READ);
        if (!ok) return false;
        if (page.range->kind != SIM_RANGE_RESERVED && end > page.range->va + page.range->bytes) return false;
        va = page.map->va + page.map->bytes;
    }
    return true;
}

void gml_sim_ledger(size_t *handles, size_t *reservations, size_t *maps, size_t *allocations)
{
    size_t reserved = 0, mapped = 0, plain = 0;
    sim_lock();
    for (const struct sim_range *range = ranges; range; range = range->next) {
        if (range->kind == SIM_RANGE_RESERVED) reserved++, mapped += range->maps;
        else plain++;
    }
    if (handles) *handles = sim_phys_held_locked();
    sim_unlock();
    if (reservations) *reservations = reserved;
    if (maps) *maps = mapped;
    if (allocations) *allocations = plain;
}
