/* SPDX-License-Identifier: Apache-2.0 */
/* Memory that graphs allocate: the address is fixed while capturing, physical memory comes with a launch and
 * goes with the free, which a node, a later launch or the program makes.
 *
 * Launches allocate in host order, as the address must be mapped before the work behind it; frees take effect
 * in stream order. So each allocation has a number: a free that comes after the next launch has allocated
 * anew leaves the memory mapped. What is free again stays with the device until cuDeviceGraphMemTrim. */
#include "sim/driver/driver.h"

#include <string.h>

enum { AUTO_FREE_ON_LAUNCH = 1 };

static struct {
    size_t used, reserved, used_high, reserved_high;
} held[SIM_MAX_DEVICES];

static size_t weight(const struct sim_range *range)
{
    return sim_round_up(range->bytes, SIM_CHUNK);
}

static bool take_locked(int device, size_t bytes)
{
    size_t used = held[device].used + bytes;
    if (used > held[device].reserved) {
        if (!sim_budget_take_locked(device, used - held[device].reserved)) return false;
        held[device].reserved = used;
    }
    held[device].used = used;
    if (used > held[device].used_high) held[device].used_high = used;
    if (held[device].reserved > held[device].reserved_high) held[device].reserved_high = held[device].reserved;
    return true;
}

CUresult sim_graph_memory_new_locked(struct sim_ctx *ctx, size_t bytes, struct sim_range **out)
{
    if (bytes > sim_config_get()->total_bytes) return CUDA_ERROR_OUT_OF_MEMORY;
    CUresult result = sim_range_new_locked(bytes, SIM_CHUNK, 0, SIM_RANGE_GRAPH, out);
    if (result != CUDA_SUCCESS) return result;
    (*out)->device = ctx->device;
    (*out)->ctx = ctx;
    sim_history_add_locked("cuMemAllocAsync while capturing", (*out)->va, bytes, (*out)->id);
    return CUDA_SUCCESS;
}

static void unmap_locked(struct sim_range *range)
{
    struct sim_map *map = sim_page_locked(range->va).map;
    if (map) {
        sim_map_free_locked(map);
        held[range->device].used -= weight(range);
    }
    if (!range->owners) sim_range_free_locked(range);
}

/* An allocation outlives its graph until it is freed; so does an address that no launch allocated, as
 * programs free that too. */
void sim_graph_memory_drop_locked(uintptr_t va, uint64_t id)
{
    struct sim_range *range = sim_range_find_locked(va);
    if (!range || range->id != id || --range->owners) return;
    if (range->generation && !sim_page_locked(va).map) sim_range_free_locked(range);
}

void sim_graph_memory_free_locked(struct sim_range *range, uint64_t generation)
{
    if (range->generation == generation) unmap_locked(range);
}

static CUresult allocate_locked(struct sim_range *range)
{
    struct sim_phys *phys;
    struct sim_map *map = sim_page_locked(range->va).map;
    if (!map) { /* else a free of it is still to come, which the number below makes void */
        if (!take_locked(range->device, weight(range))) return CUDA_ERROR_OUT_OF_MEMORY;
        CUresult result = sim_phys_new_locked(range->device, sim_round_up(range->bytes, 512), true, &phys);
        if (result == CUDA_SUCCESS && (result = sim_map_new_locked(range->va, phys, &map)) != CUDA_SUCCESS) {
            phys->refs = 0;
            sim_phys_unref_locked(phys);
        }
        if (result != CUDA_SUCCESS) {
            held[range->device].used -= weight(range);
            return result;
        }
        phys->refs = 0; /* the map alone holds it */
        memset(map->access, CU_MEM_ACCESS_FLAGS_PROT_READWRITE, sizeof map->access);
    }
    range->live = true;
    range->generation++;
    return CUDA_SUCCESS;
}

CUresult sim_graph_memory_launch_locked(const struct sim_graph *exec)
{
    const struct sim_op *op;
    CUresult result = CUDA_SUCCESS;
    for (op = exec->head; op; op = op->next) {
        const struct sim_range *range = op->kind == SIM_OP_ALLOC ? sim_range_find_locked(op->u.free.va) : NULL;
        if (range && range->live && !(exec->flags & AUTO_FREE_ON_LAUNCH))
            return CUDA_ERROR_INVALID_VALUE;
    }
    for (op = exec->head; op && result == CUDA_SUCCESS; op = op->next) {
        struct sim_range *range = op->kind == SIM_OP_ALLOC ? sim_range_find_locked(op->u.free.va) : NULL;
        if (range) result = allocate_locked(range);
    }
    if (result == CUDA_SUCCESS) return result;
    for (const struct sim_op *undo = exec->head; undo != op; undo = undo->next) {
        struct sim_range *range = undo->kind == SIM_OP_ALLOC ? sim_range_find_locked(undo->u.free.va) : NULL;
        if (!range || !range->live) continue;
        range->live = false;
        unmap_locked(range);
    }
    return result;
}

/* ---- figures ---- */

enum { USED_CURRENT, USED_HIGH, RESERVED_CURRENT, RESERVED_HIGH };

static bool device_ok(CUdevice device)
{
    return device >= 0 && device < sim_config_get()->devices;
}

DRIVER(cuDeviceGetGraphMemAttribute, (CUdevice device, int which, void *value))
{
    ENTER(cuDeviceGetGraphMemAttribute);
    if (!value || which < USED_CURRENT || which > RESERVED_HIGH) return CUDA_ERROR_INVALID_VALUE;
    if (!device_ok(device)) return CUDA_ERROR_INVALID_DEVICE;
    sim_lock();
    const uint64_t values[] = {held[device].used, held[device].used_high, held[device].reserved,
                               held[device].reserved_high};
    memcpy(value, &values[which], sizeof values[which]);
    sim_unlock();
    return CUDA_SUCCESS;
}

/* A high mark takes 0 only: it starts again from what is held now. */
DRIVER(cuDeviceSetGraphMemAttribute, (CUdevice device, int which, void *value))
{
    ENTER(cuDeviceSetGraphMemAttribute);
    uint64_t wanted;
    if (!value || (which != USED_HIGH && which != RESERVED_HIGH)) return CUDA_ERROR_INVALID_VALUE;
    if (!device_ok(device)) return CUDA_ERROR_INVALID_DEVICE;
    memcpy(&wanted, value, sizeof wanted);
    if (wanted) return CUDA_ERROR_INVALID_VALUE;
    sim_lock();
    if (which == USED_HIGH) held[device].used_high = held[device].used;
    else held[device].reserved_high = held[device].reserved;
    sim_unlock();
    return CUDA_SUCCESS;
}

DRIVER(cuDeviceGraphMemTrim, (CUdevice device))
{
    ENTER(cuDeviceGraphMemTrim);
    if (!device_ok(device)) return CUDA_ERROR_INVALID_DEVICE;
    sim_lock();
    sim_budget_give_locked(device, held[device].reserved - held[device].used);
    held[device].reserved = held[device].used;
    sim_unlock();
    return CUDA_SUCCESS;
}
