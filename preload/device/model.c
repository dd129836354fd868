/* SPDX-License-Identifier: Apache-2.0 */
/* Model device: budget, address space, mappings and their rules, in plain bookkeeping. */
#include "device/model_state.h"

#include <string.h>

#define FIRST_VA ((uint64_t)1 << 40)
#define VA_BYTES ((uint64_t)1 << 47)

/* ---- physical memory ---- */

static gml_status create(gml_device *dev, size_t bytes, gml_handle *out_handle)
{
    model_state *model = model_of(dev);
    spend(model, GML_CALL_create, model->options.costs.create_ns);
    if (bytes == 0 || bytes % dev->chunk_bytes != 0)
        return broken(model, "create: not a multiple of the granularity");
    if (bytes > model->options.total_bytes - model->usage.used_bytes)
        return GML_OUT_OF_MEMORY;
    model_physical *handle = gml_pool_take(&model->physicals);
    if (handle == NULL || gml_map_ensure(&model->handles) != GML_OK)
        return GML_OUT_OF_METADATA;
    handle->id = ++model->next_id;
    handle->bytes = bytes;
    gml_map_put(&model->handles, handle->id, handle);
    model->usage.used_bytes += bytes;
    model->usage.peak_used_bytes = gml_max(model->usage.peak_used_bytes, model->usage.used_bytes);
    model->usage.handles++;
    *out_handle = handle->id;
    return GML_OK;
}

static void drop_unused(model_state *model, model_physical *handle)
{
    if (!handle->released || handle->mappings != 0)
        return;
    model->usage.used_bytes -= handle->bytes;
    gml_pages_unmap(handle->last_free, handle->bytes / UNIT_BYTES * sizeof(uint32_t));
    gml_pool_give(&model->physicals, handle);
}

static gml_status release(gml_device *dev, gml_handle id)
{
    model_state *model = model_of(dev);
    spend(model, GML_CALL_release, model->options.costs.release_ns);
    model_physical *handle = gml_map_remove(&model->handles, id);
    if (handle == NULL)
        return broken(model, "release: unknown handle");
    handle->released = true;
    model->usage.handles--;
    drop_unused(model, handle);
    return GML_OK;
}

/* ---- address space ---- */

static gml_status reserve(gml_device *dev, size_t bytes, uintptr_t *out_va)
{
    model_state *model = model_of(dev);
    spend(model, GML_CALL_reserve, model->options.costs.reserve_ns);
    if (bytes == 0 || bytes % dev->chunk_bytes != 0)
        return broken(model, "reserve: not a multiple of the granularity");
    if (bytes > VA_BYTES - model->usage.reserved_va_bytes)
        return GML_OUT_OF_ADDRESSES;
    model_reservation *range = gml_pool_take(&model->reservations);
    if (range == NULL)
        return GML_OUT_OF_METADATA;
    range->va = model->next_va;
    range->bytes = bytes;
    range->next = model->reserved;
    model->reserved = range;
    /* A hole behind each range: an access or mapping past its end never lands in another. */
    model->next_va += bytes + dev->chunk_bytes;
    model->usage.reserved_va_bytes += bytes;
    *out_va = range->va;
    return GML_OK;
}

static const model_reservation *reservation_of(const model_state *model, uint64_t va, uint64_t bytes)
{
    for (const model_reservation *range = model->reserved; range != NULL; range = range->next)
        if (va >= range->va && va - range->va < range->bytes && bytes <= range->bytes - (va - range->va))
            return range;
    return NULL;
}

/* The mapping that covers the chunk at `va`: a larger handle's stands at each of its chunks. */
/* True when [va, va + bytes) is whole mappings without a gap. */
static bool whole_mappings(const model_state *model, uint64_t va, uint64_t bytes)
{
    const model_mapping *entry = NULL;
    for (uint64_t at = va; at < va + bytes; at += entry->handle->bytes) {
        entry = mapping_at(model, at);
        if (entry == NULL || entry->va != at || entry->handle->bytes > va + bytes - at)
            return false;
    }
    return true;
}

static gml_status free_va(gml_device *dev, uintptr_t va, size_t bytes)
{
    model_state *model = model_of(dev);
    spend(model, GML_CALL_free_va, 0);
    for (uint64_t at = va; at < va + bytes; at += dev->chunk_bytes)
        if (mapping_at(model, at) != NULL)
            return broken(model, "free_va: still mapped");
    for (model_reservation **link = &model->reserved; *link != NULL; link = &(*link)->next) {
        model_reservation *range = *link;
        if (range->va != va || range->bytes != bytes)
            continue;
        *link = range->next;
        model->usage.reserved_va_bytes -= bytes;
        gml_pool_give(&model->reservations, range);
        return GML_OK;
    }
    return broken(model, "free_va: not a whole reservation");
}

static gml_status map(gml_device *dev, uintptr_t va, size_t bytes, gml_handle id)
{
    model_state *model = model_of(dev);
    spend(model, GML_CALL_map, model->options.costs.map_ns);
    model_physical *handle = gml_map_get(&model->handles, id);
    if (handle == NULL || handle->bytes != bytes)
        return broken(model, "map: unknown handle or not its whole size");
    if (va % dev->chunk_bytes != 0 || reservation_of(model, va, bytes) == NULL)
        return broken(model, "map: not in a reserved range");
    for (uint64_t at = va; at < va + bytes; at += dev->chunk_bytes)
        if (mapping_at(model, at) != NULL)
            return broken(model, "map: already mapped");
    model_mapping *entry = gml_pool_take(&model->mapping_pool);
    if (entry == NULL)
        return GML_OUT_OF_METADATA;
    entry->handle = handle;
    entry->va = va;
    for (uint64_t at = va; at < va + bytes; at += dev->chunk_bytes) {
        if (gml_map_ensure(&model->mapped) != GML_OK)
            return GML_OUT_OF_METADATA; /* of a model, in a test: not undone */
        gml_map_put(&model->mapped, at, entry);
    }
    handle->mappings++;
    model->usage.mappings++;
    return GML_OK;
}

static gml_status unmap(gml_device *dev, uintptr_t va, size_t bytes)
{
    model_state *model = model_of(dev);
    spend(model, GML_CALL_unmap, model->options.costs.unmap_ns * (bytes / dev->chunk_bytes));
    if (!whole_mappings(model, va, bytes))
        return broken(model, "unmap: not whole mappings");
    for (uint64_t at = va, next = 0; at < va + bytes; at = next) {
        model_mapping *entry = mapping_at(model, at);
        model_physical *handle = entry->handle;
        for (next = at; next < at + handle->bytes; next += dev->chunk_bytes)
            (void)gml_map_remove(&model->mapped, next);
        if (!all_over(model, &entry->last))
            (void)broken(model, "unmap: work that may touch the range has not finished");
        handle->mappings--;
        model->usage.mappings--;
        gml_pool_give(&model->mapping_pool, entry);
        drop_unused(model, handle);
    }
    return GML_OK;
}

static gml_status set_access(gml_device *dev, uintptr_t va, size_t bytes)
{
    model_state *model = model_of(dev);
    spend(model, GML_CALL_set_access, model->options.costs.set_access_ns * (bytes / dev->chunk_bytes));
    if (!whole_mappings(model, va, bytes))
        return broken(model, "set_access: not whole mappings");
    for (uint64_t at = va; at < va + bytes; at += dev->chunk_bytes)
        mapping_at(model, at)->access = true;
    return GML_OK;
}

static gml_status mem_info(gml_device *dev, size_t *out_free, size_t *out_total)
{
    model_state *model = model_of(dev);
    spend(model, GML_CALL_mem_info, 0);
    *out_free = model->options.total_bytes - model->usage.used_bytes;
    *out_total = model->options.total_bytes;
    return GML_OK;
}

static uint64_t now_ns(gml_device *dev)
{
    return model_of(dev)->now_ns;
}

/* ---- life ---- */

static const gml_device_ops contract = {
    .create = create,
    .release = release,
    .reserve = reserve,
    .free_va = free_va,
    .map = map,
    .unmap = unmap,
    .set_access = set_access,
    .event_record = gml_model_event_record,
    .event_query = gml_model_event_query,
    .event_sync = gml_model_event_sync,
    .event_destroy = gml_model_event_destroy,
    .stream_wait = gml_model_stream_wait,
    .sync = gml_model_sync,
    .mem_info = mem_info,
    .now_ns = now_ns,
    .note = gml_model_note,
};

gml_status gml_model_create(const gml_model_options *options, gml_device **out_device)
{
    static const gml_model_costs published = {193000, 5000, 1000, 1500, 26000, 36000};
    static const gml_model_costs none;
    model_state *model = gml_pages_map(sizeof *model);
    if (model == NULL)
        return GML_OUT_OF_METADATA;
    model->options = *options;
    if (memcmp(&options->costs, &none, sizeof none) == 0)
        model->options.costs = published;
    model->ops = contract;
    if (!options->check_order)
        model->ops.note = NULL;
    model->device.ops = &model->ops;
    model->frees = options->check_order ? gml_pages_map(FREES * sizeof(model_vector)) : NULL;
    if (options->check_order && model->frees == NULL) {
        gml_pages_unmap(model, sizeof *model);
        return GML_OUT_OF_METADATA;
    }
    model->device.chunk_bytes = options->chunk_bytes != 0 ? options->chunk_bytes : 2 * GML_MIB;
    model->next_va = FIRST_VA;
    gml_pool_init(&model->physicals, sizeof(model_physical));
    gml_pool_init(&model->mapping_pool, sizeof(model_mapping));
    gml_pool_init(&model->reservations, sizeof(model_reservation));
    gml_pool_init(&model->event_pool, sizeof(model_event));
    *out_device = &model->device;
    return GML_OK;
}

void gml_model_destroy(gml_device *device)
{
    model_state *model = model_of(device);
    gml_pages_unmap(model->frees, FREES * sizeof(model_vector));
    gml_map_destroy(&model->handles);
    gml_map_destroy(&model->mapped);
    gml_map_destroy(&model->events);
    gml_pool_destroy(&model->physicals);
    gml_pool_destroy(&model->mapping_pool);
    gml_pool_destroy(&model->reservations);
    gml_pool_destroy(&model->event_pool);
    gml_pages_unmap(model, sizeof *model);
}

const char *gml_model_violation(const gml_device *device)
{
    return model_of(device)->violation;
}

gml_model_usage gml_model_usage_of(const gml_device *device)
{
    return model_of(device)->usage;
}
