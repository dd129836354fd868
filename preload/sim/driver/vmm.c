/* SPDX-License-Identifier: Apache-2.0 */
/* Virtual memory management entry points, with the driver's own refusals.
 *
 * Rules enforced, each from the driver API reference: sizes and addresses are multiples of the
 * granularity; a map covers a whole handle at offset 0 of free, reserved addresses; unmap takes whole
 * maps and nothing between them; access may be set on fully mapped ranges only; a reservation is freed
 * whole and unmapped; a released handle lives on while it is mapped. A refused call changes nothing. */
#include "sim/driver/driver.h"


static void cost(uint64_t per_chunk, size_t bytes)
{
    sim_time_add(per_chunk * (bytes / SIM_CHUNK));
}

static bool prop_ok(const CUmemAllocationProp *prop)
{
    if (!prop || prop->type != CU_MEM_ALLOCATION_TYPE_PINNED || prop->win32HandleMetaData) return false;
    if (prop->location.type == CU_MEM_LOCATION_TYPE_HOST || prop->location.type == CU_MEM_LOCATION_TYPE_HOST_NUMA ||
        prop->location.type == CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT)
        return true;
    return prop->location.type == CU_MEM_LOCATION_TYPE_DEVICE && prop->location.id >= 0 &&
           prop->location.id < sim_config_get()->devices;
}

DRIVER(cuMemGetAllocationGranularity, (size_t *out, const CUmemAllocationProp *prop, int option))
{
    ENTER(cuMemGetAllocationGranularity);
    if (!out || !prop_ok(prop) || option < 0 || option > CU_MEM_ALLOC_GRANULARITY_RECOMMENDED)
        return CUDA_ERROR_INVALID_VALUE;
    *out = SIM_CHUNK;
    return CUDA_SUCCESS;
}

DRIVER(cuMemAddressReserve, (CUdeviceptr * out, size_t bytes, size_t align, CUdeviceptr hint, unsigned long long flags))
{
    ENTER(cuMemAddressReserve);
    if (!out || !bytes || bytes % 4096 || flags || (align & (align - 1))) return CUDA_ERROR_INVALID_VALUE;
    struct sim_range *range;
    sim_lock();
    CUresult result = sim_range_new_locked(bytes, align, (uintptr_t)hint, SIM_RANGE_RESERVED, &range);
    if (result == CUDA_SUCCESS) {
        *out = range->va;
        sim_history_add_locked("cuMemAddressReserve", range->va, bytes, range->id);
    }
    sim_unlock();
    return result;
}

DRIVER(cuMemAddressFree, (CUdeviceptr ptr, size_t bytes))
{
    ENTER(cuMemAddressFree);
    CUresult result = CUDA_ERROR_INVALID_VALUE;
    sim_lock();
    struct sim_range *range = sim_range_find_locked((uintptr_t)ptr);
    if (range && range->kind == SIM_RANGE_RESERVED && range->va == ptr && range->bytes == bytes && !range->maps) {
        sim_history_add_locked("cuMemAddressFree", range->va, bytes, range->id);
        sim_range_free_locked(range);
        result = CUDA_SUCCESS;
    }
    sim_unlock();
    return result;
}

DRIVER(cuMemCreate, (CUmemGenericAllocationHandle * out, size_t bytes, const CUmemAllocationProp *prop,
                     unsigned long long flags))
{
    ENTER(cuMemCreate);
    if (!out || !bytes || bytes % SIM_CHUNK || flags || !prop_ok(prop)) return CUDA_ERROR_INVALID_VALUE;
    int device = prop->location.type == CU_MEM_LOCATION_TYPE_DEVICE ? prop->location.id : -1;
    struct sim_phys *phys;
    sim_lock();
    CUresult result = sim_phys_new_locked(device, bytes, false, &phys);
    if (result == CUDA_SUCCESS) {
        phys->prop = *prop;
        *out = (CUmemGenericAllocationHandle)(uintptr_t)phys;
    }
    sim_unlock();
    if (result == CUDA_SUCCESS) cost(sim_config_get()->costs.create, bytes);
    return result;
}

static struct sim_phys *handle_get_locked(CUmemGenericAllocationHandle handle)
{
    struct sim_phys *phys = sim_object_get_locked(SIM_PHYS, (const void *)(uintptr_t)handle);
    return phys && phys->refs ? phys : NULL;
}

DRIVER(cuMemRelease, (CUmemGenericAllocationHandle handle))
{
    ENTER(cuMemRelease);
    sim_lock();
    struct sim_phys *phys = handle_get_locked(handle);
    if (phys) {
        phys->refs--;
        sim_phys_unref_locked(phys);
    }
    sim_unlock();
    return phys ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

DRIVER(cuMemMap, (CUdeviceptr ptr, size_t bytes, size_t offset, CUmemGenericAllocationHandle handle,
                  unsigned long long flags))
{
    ENTER(cuMemMap);
    CUresult result = CUDA_ERROR_INVALID_VALUE;
    uintptr_t va = (uintptr_t)ptr;
    sim_lock();
    struct sim_phys *phys = handle_get_locked(handle);
    if (!phys || flags || offset || !bytes || bytes != phys->bytes || va % SIM_CHUNK) goto done;
    struct sim_range *range = sim_range_find_locked(va);
    if (!range || range->kind != SIM_RANGE_RESERVED || va + bytes > range->va + range->bytes) goto done;
    for (size_t at = 0; at < bytes; at += SIM_CHUNK)
        if (sim_page_locked(va + at).map) goto done;
    struct sim_map *map;
    result = sim_map_new_locked(va, phys, &map);
    if (result == CUDA_SUCCESS) sim_history_add_locked("cuMemMap", va, bytes, phys->id);
done:
    sim_unlock();
    if (result == CUDA_SUCCESS) cost(sim_config_get()->costs.map, bytes);
    return result;
}

/* True when [va, va + bytes) is whole maps of one reservation without a gap. */
static bool whole_maps_locked(uintptr_t va, size_t bytes)
{
    struct sim_range *range = sim_range_find_locked(va);
    if (!bytes || !range || range->kind != SIM_RANGE_RESERVED || va + bytes > range->va + range->bytes) return false;
    uintptr_t at = va;
    while (at < va + bytes) {
        struct sim_map *map = sim_page_locked(at).map;
        if (!map || map->va != at || at + map->bytes > va + bytes) return false;
        at += map->bytes;
    }
    return true;
}

DRIVER(cuMemUnmap, (CUdeviceptr ptr, size_t bytes))
{
    ENTER(cuMemUnmap);
    uintptr_t va = (uintptr_t)ptr;
    sim_lock();
    bool ok = whole_maps_locked(va, bytes);
    CUresult halfway = sim_fault_halfway();
    if (halfway) bytes /= 2;
    for (uintptr_t at = va; ok && at < va + bytes;) {
        struct sim_map *map = sim_page_locked(at).map;
        sim_oracle_unmap_locked(map);
        sim_history_add_locked("cuMemUnmap", at, map->bytes, map->phys->id);
        at += map->bytes;
        sim_map_free_locked(map);
    }
    sim_unlock();
    if (ok) cost(sim_config_get()->costs.unmap, bytes);
    if (halfway) return halfway;
    return ok ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

static bool access_desc_ok(const CUmemAccessDesc *desc)
{
    if (desc->flags != CU_MEM_ACCESS_FLAGS_PROT_NONE && desc->flags != CU_MEM_ACCESS_FLAGS_PROT_READ &&
        desc->flags != CU_MEM_ACCESS_FLAGS_PROT_READWRITE)
        return false;
    if (desc->location.type == CU_MEM_LOCATION_TYPE_HOST || desc->location.type == CU_MEM_LOCATION_TYPE_HOST_NUMA)
        return true;
    return desc->location.type == CU_MEM_LOCATION_TYPE_DEVICE && desc->location.id >= 0 &&
           desc->location.id < sim_config_get()->devices;
}

DRIVER(cuMemSetAccess, (CUdeviceptr ptr, size_t bytes, const CUmemAccessDesc *desc, size_t count))
{
    ENTER(cuMemSetAccess);
    if (!desc || !count) return CUDA_ERROR_INVALID_VALUE;
    for (size_t i = 0; i < count; i++)
        if (!access_desc_ok(&desc[i])) return CUDA_ERROR_INVALID_VALUE;
    uintptr_t va = (uintptr_t)ptr;
    sim_lock();
    bool ok = whole_maps_locked(va, bytes);
    CUresult halfway = sim_fault_halfway();
    if (halfway) bytes /= 2;
    for (uintptr_t at = va; ok && at < va + bytes;) {
        struct sim_map *map = sim_page_locked(at).map;
        for (size_t i = 0; i < count; i++)
            if (desc[i].location.type == CU_MEM_LOCATION_TYPE_DEVICE)
                map->access[desc[i].location.id] = (unsigned char)desc[i].flags;
        at += map->bytes;
    }
    if (ok) sim_history_add_locked("cuMemSetAccess", va, bytes, count);
    sim_unlock();
    if (ok) cost(sim_config_get()->costs.set_access, bytes);
    if (halfway) return halfway;
    return ok ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

DRIVER(cuMemGetAccess, (unsigned long long *flags, const CUmemLocation *location, CUdeviceptr ptr))
{
    ENTER(cuMemGetAccess);
    if (!flags || !location || location->type != CU_MEM_LOCATION_TYPE_DEVICE || location->id < 0 ||
        location->id >= sim_config_get()->devices)
        return CUDA_ERROR_INVALID_VALUE;
    sim_lock();
    struct sim_map *map = sim_page_locked((uintptr_t)ptr).map;
    if (map) *flags = map->access[location->id];
    sim_unlock();
    return map ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

DRIVER(cuMemRetainAllocationHandle, (CUmemGenericAllocationHandle * out, void *address))
{
    ENTER(cuMemRetainAllocationHandle);
    if (!out) return CUDA_ERROR_INVALID_VALUE;
    sim_lock();
    struct sim_page page = sim_page_locked((uintptr_t)address);
    bool ok = page.map && page.range->kind == SIM_RANGE_RESERVED;
    if (ok) {
        page.map->phys->refs++;
        *out = (CUmemGenericAllocationHandle)(uintptr_t)page.map->phys;
    }
    sim_unlock();
    return ok ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

DRIVER(cuMemGetAllocationPropertiesFromHandle, (CUmemAllocationProp * out, CUmemGenericAllocationHandle handle))
{
    ENTER(cuMemGetAllocationPropertiesFromHandle);
    if (!out) return CUDA_ERROR_INVALID_VALUE;
    sim_lock();
    struct sim_phys *phys = handle_get_locked(handle);
    if (phys) *out = phys->prop;
    sim_unlock();
    return phys ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

/* Sharing between processes needs the other process's memory: not simulated, and said so. */
DRIVER(cuMemExportToShareableHandle, (void *out, CUmemGenericAllocationHandle handle, int type,
                                      unsigned long long flags))
{
    ENTER(cuMemExportToShareableHandle);
    (void)out, (void)type, (void)flags;
    sim_lock();
    bool known = handle_get_locked(handle) != NULL;
    sim_unlock();
    return known ? CUDA_ERROR_NOT_SUPPORTED : CUDA_ERROR_INVALID_VALUE;
}

DRIVER(cuMemImportFromShareableHandle, (CUmemGenericAllocationHandle * out, void *handle, int type))
{
    ENTER(cuMemImportFromShareableHandle);
    (void)out, (void)handle, (void)type;
    return CUDA_ERROR_NOT_SUPPORTED;
}
