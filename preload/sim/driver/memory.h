/* SPDX-License-Identifier: Apache-2.0 */
/* Memory: physical allocations, ranges of addresses, maps between them, and host memory. */
#ifndef GML_SIM_MEMORY_H
#define GML_SIM_MEMORY_H

#include "sim/driver/config.h"
#include "sim/driver/object.h"

#include "cuda/driver_abi.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* ---- physical memory (phys.c) ---- */

struct sim_mark; /* the oracle's notes on pieces of a phys */

struct sim_phys {
    struct sim_object object;
    size_t bytes;
    uint64_t offset; /* in the backing file; never used again after release */
    int device;      /* owner of the budget; -1: host memory */
    unsigned refs;   /* cuMemCreate, retain, import, fork of a map */
    unsigned maps;
    bool dirty; /* bytes were written: release must punch a hole */
    bool pooled; /* the pool accounts for it, not the device */
    uint64_t id;
    CUmemAllocationProp prop;
    struct sim_mark *marks;
};

CUresult sim_phys_new_locked(int device, size_t bytes, bool pooled, struct sim_phys **out);
size_t sim_phys_held_locked(void); /* handles that the program has not released */
void sim_phys_unref_locked(struct sim_phys *phys); /* frees it when nothing refers to it any more */
/* Memory that nobody ever wrote reads as zeros. */
bool sim_phys_read(const struct sim_phys *phys, size_t at, void *dst, size_t bytes);
bool sim_phys_write(struct sim_phys *phys, size_t at, const void *src, size_t bytes);
void sim_phys_zero(struct sim_phys *phys, size_t at, size_t bytes);
bool sim_budget_take_locked(int device, size_t bytes);
void sim_budget_give_locked(int device, size_t bytes);

/* ---- virtual memory (pages.c) ---- */

enum sim_range_kind {
    SIM_RANGE_RESERVED, /* cuMemAddressReserve */
    SIM_RANGE_MALLOC,   /* cuMemAlloc: one map over the whole range */
    SIM_RANGE_POOL,     /* cuMemAllocAsync */
    SIM_RANGE_GRAPH,    /* cuMemAllocAsync while capturing: mapped by launches of the graph (graph_memory.c) */
    SIM_RANGE_MANAGED   /* cuMemAllocManaged: host memory, always accessible */
};

struct sim_range {
    uintptr_t va;
    size_t bytes;    /* as asked for */
    size_t va_bytes; /* whole chunks */
    enum sim_range_kind kind;
    int device;
    struct sim_ctx *ctx;
    struct sim_pool *pool;
    uint64_t id;
    unsigned maps;
    bool freeing; /* cuMemFreeAsync was called, the stream has not come to it */
    /* Of a graph: graphs that name it, launches that allocated it, and whether it is allocated, in host order. */
    unsigned owners;
    uint64_t generation;
    bool live;
    struct sim_range *prev, *next;
};

struct sim_map {
    uintptr_t va;
    size_t bytes;
    struct sim_phys *phys;
    size_t live_bytes; /* blocks that the oracle knows to be in use here */
    unsigned char access[SIM_MAX_DEVICES];
};

struct sim_page {
    struct sim_range *range;
    struct sim_map *map;
    unsigned char was; /* device memory before: SIM_WAS_*; looked at where no range is */
};

enum { SIM_WAS_NOT, SIM_WAS_GIVEN_BACK, SIM_WAS_KEPT }; /* to the host, or kept for later allocations */

/* Host address space (addresses.c): 0 when there is none. */
uintptr_t sim_addresses_map(size_t bytes, size_t align, uintptr_t hint);
uintptr_t sim_addresses_take_locked(size_t bytes);
void sim_addresses_give_locked(uintptr_t va, size_t bytes);
bool sim_addresses_keeps(size_t bytes); /* given ones of this size stay reserved */
/* Reserves host address space (PROT_NONE) and a range over it. `hint` may be 0. */
CUresult sim_range_new_locked(size_t bytes, size_t align, uintptr_t hint, enum sim_range_kind kind,
                              struct sim_range **out);
void sim_range_free_locked(struct sim_range *range);
struct sim_range *sim_range_first_locked(void);
/* The page of an address; range and map are NULL where nothing is. */
struct sim_page sim_page_locked(uintptr_t va);
struct sim_range *sim_range_find_locked(uintptr_t va);
CUresult sim_map_new_locked(uintptr_t va, struct sim_phys *phys, struct sim_map **out);
void sim_map_free_locked(struct sim_map *map);
/* The address was device memory once, and is nothing now. */
bool sim_stale_locked(uintptr_t va);
/* True when every byte of the range may be read, or written as well, by `device`. */
bool sim_access_ok_locked(uintptr_t va, size_t bytes, int device, bool write);

/* Where an address leads: a phys and the place in it, or host memory; nowhere: no bytes. */
struct sim_place {
    struct sim_phys *phys;
    size_t at, bytes; /* bytes: how far this place reaches, at most as asked */
    char *host;
};

struct sim_place sim_locate_locked(uintptr_t va, size_t bytes);

/* ---- host memory that the device knows (host.c) ---- */

struct sim_host {
    uintptr_t va;
    size_t bytes;
    bool registered; /* cuMemHostRegister: not ours to unmap */
    unsigned flags;
    struct sim_ctx *ctx;
};

struct sim_host *sim_host_find_locked(uintptr_t va);

/* ---- history of addresses (history.c) ---- */

void sim_history_add_locked(const char *what, uintptr_t va, size_t bytes, uint64_t detail);
void sim_history_print_locked(uintptr_t va, size_t bytes);

#endif
