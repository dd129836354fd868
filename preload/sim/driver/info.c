/* SPDX-License-Identifier: Apache-2.0 */
/* What the driver says about itself, its errors and its pointers. */
#include "sim/driver/driver.h"

#include <string.h>

DRIVER(cuDriverGetVersion, (int *out))
{
    static struct sim_counter *counter;
    if (!counter) counter = sim_counter_get("cuDriverGetVersion");
    if (counter) counter->calls++;
    if (!out) return CUDA_ERROR_INVALID_VALUE;
    *out = 13000;
    return CUDA_SUCCESS;
}

static const struct {
    int value;
    const char *name, *text;
} errors[] = {
#define X(value, name, text) {value, #name, text},
    CU_RESULTS(X)
#undef X
};

static CUresult describe(CUresult error, const char **out, bool name)
{
    if (!out) return CUDA_ERROR_INVALID_VALUE;
    *out = NULL;
    for (size_t i = 0; i < sizeof errors / sizeof *errors; i++)
        if (errors[i].value == (int)error) *out = name ? errors[i].name : errors[i].text;
    return *out ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

DRIVER(cuGetErrorString, (CUresult error, const char **out))
{
    return describe(error, out, false);
}

DRIVER(cuGetErrorName, (CUresult error, const char **out))
{
    return describe(error, out, true);
}

/* Private tables are not public API: programs with a static CUDA runtime, which need them, cannot run. */
DRIVER(cuGetExportTable, (const void **table, const CUuuid *id))
{
    (void)id;
    if (table) *table = NULL;
    return CUDA_ERROR_NOT_FOUND;
}

/* ---- pointers ---- */

struct answer {
    size_t bytes;
    uint64_t value;
};

static bool mapped_locked(const struct sim_page *page, uintptr_t va)
{
    if (!page->range) return false;
    if (page->range->kind == SIM_RANGE_RESERVED) return page->map != NULL;
    return va < page->range->va + page->range->bytes;
}

/* Attributes of device memory, of VMM memory by its mapping. */
static CUresult device_attribute_locked(const struct sim_page *page, uintptr_t va, int attribute, struct answer *out)
{
    const struct sim_range *range = page->range;
    bool vmm = range->kind == SIM_RANGE_RESERVED, managed = range->kind == SIM_RANGE_MANAGED;
    int device = vmm ? page->map->phys->device : range->device;
    *out = (struct answer){4, 0};
    switch (attribute) {
    case CU_POINTER_ATTRIBUTE_CONTEXT: *out = (struct answer){8, vmm ? 0 : (uint64_t)(uintptr_t)range->ctx}; break;
    case CU_POINTER_ATTRIBUTE_MEMORY_TYPE: out->value = CU_MEMORYTYPE_DEVICE; break;
    case CU_POINTER_ATTRIBUTE_DEVICE_POINTER: *out = (struct answer){8, va}; break;
    case CU_POINTER_ATTRIBUTE_HOST_POINTER:
        *out = (struct answer){8, va};
        return managed ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
    case CU_POINTER_ATTRIBUTE_SYNC_MEMOPS: break;
    case CU_POINTER_ATTRIBUTE_BUFFER_ID: *out = (struct answer){8, vmm ? page->map->phys->id : range->id}; break;
    case CU_POINTER_ATTRIBUTE_IS_MANAGED: out->value = managed; break;
    case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL: out->value = (uint64_t)(int64_t)device; break;
    case CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE: out->value = range->kind == SIM_RANGE_MALLOC; break;
    case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR: *out = (struct answer){8, vmm ? page->map->va : range->va}; break;
    case CU_POINTER_ATTRIBUTE_RANGE_SIZE: *out = (struct answer){8, vmm ? page->map->bytes : range->bytes}; break;
    case CU_POINTER_ATTRIBUTE_MAPPED: out->value = 1; break;
    case CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES:
        *out = (struct answer){8, vmm ? (uint64_t)page->map->phys->prop.requestedHandleTypes : 0};
        break;
    case CU_POINTER_ATTRIBUTE_IS_GPU_DIRECT_RDMA_CAPABLE:
        out->value = vmm ? page->map->phys->prop.allocFlags.gpuDirectRDMACapable : 1;
        break;
    case CU_POINTER_ATTRIBUTE_ACCESS_FLAGS:
        out->value = page->map ? page->map->access[device < 0 ? 0 : device] : CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
        break;
    case CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE: *out = (struct answer){8, (uint64_t)(uintptr_t)range->pool}; break;
    case CU_POINTER_ATTRIBUTE_MAPPING_SIZE: *out = (struct answer){8, page->map ? page->map->bytes : range->bytes}; break;
    case CU_POINTER_ATTRIBUTE_MAPPING_BASE_ADDR: *out = (struct answer){8, page->map ? page->map->va : range->va}; break;
    case CU_POINTER_ATTRIBUTE_MEMORY_BLOCK_ID: *out = (struct answer){8, page->map ? page->map->phys->id : range->id}; break;
    default: return CUDA_ERROR_INVALID_VALUE;
    }
    return CUDA_SUCCESS;
}

static CUresult host_attribute(const struct sim_host *host, uintptr_t va, int attribute, struct answer *out)
{
    *out = (struct answer){4, 0};
    switch (attribute) {
    case CU_POINTER_ATTRIBUTE_CONTEXT: *out = (struct answer){8, (uint64_t)(uintptr_t)host->ctx}; break;
    case CU_POINTER_ATTRIBUTE_MEMORY_TYPE: out->value = CU_MEMORYTYPE_HOST; break;
    case CU_POINTER_ATTRIBUTE_DEVICE_POINTER:
    case CU_POINTER_ATTRIBUTE_HOST_POINTER: *out = (struct answer){8, va}; break;
    case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL: out->value = (uint64_t)(int64_t)host->ctx->device; break;
    case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR: *out = (struct answer){8, host->va}; break;
    case CU_POINTER_ATTRIBUTE_RANGE_SIZE: *out = (struct answer){8, host->bytes}; break;
    case CU_POINTER_ATTRIBUTE_MAPPED: out->value = 1; break;
    case CU_POINTER_ATTRIBUTE_BUFFER_ID: *out = (struct answer){8, host->va >> 12}; break;
    case CU_POINTER_ATTRIBUTE_IS_MANAGED:
    case CU_POINTER_ATTRIBUTE_SYNC_MEMOPS:
    case CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE:
    case CU_POINTER_ATTRIBUTE_IS_GPU_DIRECT_RDMA_CAPABLE: break;
    case CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE:
    case CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES: out->bytes = 8; break;
    default: return CUDA_ERROR_INVALID_VALUE;
    }
    return CUDA_SUCCESS;
}

static CUresult attribute_get_locked(uintptr_t va, int attribute, void *data)
{
    struct answer answer;
    struct sim_page page = sim_page_locked(va);
    struct sim_host *host = sim_host_find_locked(va);
    CUresult result = CUDA_ERROR_INVALID_VALUE;
    if (mapped_locked(&page, va)) result = device_attribute_locked(&page, va, attribute, &answer);
    else if (host) result = host_attribute(host, va, attribute, &answer);
    else if (page.range && attribute == CU_POINTER_ATTRIBUTE_MAPPED) {
        answer = (struct answer){4, 0};
        result = CUDA_SUCCESS;
    }
    if (result == CUDA_SUCCESS) memcpy(data, &answer.value, answer.bytes);
    return result;
}

DRIVER(cuPointerGetAttribute, (void *data, int attribute, CUdeviceptr ptr))
{
    ENTER_CTX(cuPointerGetAttribute, ctx);
    (void)ctx;
    if (!data) return CUDA_ERROR_INVALID_VALUE;
    sim_lock();
    CUresult result = attribute_get_locked((uintptr_t)ptr, attribute, data);
    sim_unlock();
    return result;
}

/* Unlike the single query, this one answers zeros for an address that it does not know. */
DRIVER(cuPointerGetAttributes, (unsigned count, int *attributes, void **data, CUdeviceptr ptr))
{
    ENTER_CTX(cuPointerGetAttributes, ctx);
    (void)ctx;
    if (!count || !attributes || !data) return CUDA_ERROR_INVALID_VALUE;
    sim_lock();
    for (unsigned i = 0; i < count; i++) {
        if (attribute_get_locked((uintptr_t)ptr, attributes[i], data[i]) == CUDA_SUCCESS) continue;
        bool word = attributes[i] == CU_POINTER_ATTRIBUTE_MEMORY_TYPE ||
                    attributes[i] == CU_POINTER_ATTRIBUTE_SYNC_MEMOPS ||
                    (attributes[i] >= CU_POINTER_ATTRIBUTE_IS_MANAGED &&
                     attributes[i] <= CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE) ||
                    attributes[i] == CU_POINTER_ATTRIBUTE_MAPPED ||
                    attributes[i] == CU_POINTER_ATTRIBUTE_IS_GPU_DIRECT_RDMA_CAPABLE ||
                    attributes[i] == CU_POINTER_ATTRIBUTE_ACCESS_FLAGS;
        int ordinal = attributes[i] == CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL ? -2 : 0;
        if (word) memcpy(data[i], &ordinal, sizeof ordinal);
        else memset(data[i], 0, 8);
    }
    sim_unlock();
    return CUDA_SUCCESS;
}

DRIVER(cuPointerSetAttribute, (const void *value, int attribute, CUdeviceptr ptr))
{
    ENTER_CTX(cuPointerSetAttribute, ctx);
    (void)ctx;
    sim_lock();
    struct sim_page page = sim_page_locked((uintptr_t)ptr);
    bool known = mapped_locked(&page, (uintptr_t)ptr);
    sim_unlock();
    return value && attribute == CU_POINTER_ATTRIBUTE_SYNC_MEMOPS && known ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}
