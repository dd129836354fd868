/* SPDX-License-Identifier: Apache-2.0 */
/* Model device: budget, mappings, rules and an ordering check, in plain bookkeeping. */
#include "device/model.h"

#include "base/align.h"
#include "base/map.h"
#include "base/pages.h"
#include "base/pool.h"

#include <string.h>

#define FIRST_VA ((uint64_t)1 << 40)
#define VA_BYTES ((uint64_t)1 << 47)
#define CLOCKS (GML_MODEL_STREAMS + 1) /* the last one is the host */
#define HOST GML_MODEL_STREAMS
#define UNIT_BYTES ((uint64_t)512)
#define FREES ((uint32_t)1 << 20) /* frees that are remembered; older ones count as over */

typedef struct model_vector {
    uint64_t at[GML_MODEL_STREAMS];
} model_vector;

typedef struct model_physical {
    uint64_t id, bytes;
    uint32_t mappings;
    bool released;
    uint32_t *last_free; /* by unit of UNIT_BYTES: index of the free it was last part of; 0 is none */
} model_physical;

typedef struct model_mapping {
    model_physical *handle;
    uint64_t va;
    bool access;
    model_vector last; /* work that may still touch the memory through this address */
} model_mapping;

typedef struct model_reservation {
    struct model_reservation *next;
    uint64_t va, bytes;
} model_reservation;

typedef struct model_event {
    model_vector clock;
    uint64_t id;
} model_event;

typedef struct state {
    gml_device device;
    gml_model_options options;
    gml_model_usage usage;
    gml_map handles, mapped, events;
    gml_pool physicals, mapping_pool, reservations, event_pool;
    model_reservation *reserved;
    uint64_t next_va, next_id, now_ns;
    model_vector issued;         /* work submitted, by stream */
    model_vector known[CLOCKS];  /* what comes before the next work of a stream, or of the host */
    uint64_t done[GML_MODEL_STREAMS];
    model_vector *frees; /* what must come before a reuse, by index of the free */
    uint32_t free_count;
    const char *violation;
} state;

static state *model_of(const gml_device *device)
{
    union {
        const gml_device *from;
        state *to;
    } cast = {device};
    return cast.to;
}

static gml_status broken(state *model, const char *rule)
{
    if (model->violation == NULL)
        model->violation = rule;
    return GML_INVALID;
}

static void merge(model_vector *into, const model_vector *from)
{
    for (unsigned i = 0; i < GML_MODEL_STREAMS; i++)
        into->at[i] = gml_max(into->at[i], from->at[i]);
}

static bool precedes(const model_vector *a, const model_vector *b)
{
    for (unsigned i = 0; i < GML_MODEL_STREAMS; i++)
        if (a->at[i] > b->at[i])
            return false;
    return true;
}

static void spend(state *model, gml_device_call call, uint64_t ns)
{
    model->usage.calls[call]++;
    model->now_ns += ns;
}

/* ---- physical memory ---- */

static gml_status create(gml_device *dev, size_t bytes, gml_handle *out_handle)
{
    state *model = model_of(dev);
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

static void drop_unused(state *model, model_physical *handle)
{
    if (!handle->released || handle->mappings != 0)
        return;
    model->usage.used_bytes -= handle->bytes;
    gml_pages_unmap(handle->last_free, handle->bytes / UNIT_BYTES * sizeof(uint32_t));
    gml_pool_give(&model->physicals, handle);
}

static gml_status release(gml_device *dev, gml_handle id)
{
    state *model = model_of(dev);
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
    state *model = model_of(dev);
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

static const model_reservation *reservation_of(const state *model, uint64_t va, uint64_t bytes)
{
    for (const model_reservation *range = model->reserved; range != NULL; range = range->next)
        if (va >= range->va && va - range->va < range->bytes && bytes <= range->bytes - (va - range->va))
            return range;
    return NULL;
}

/* The mapping that covers the chunk at `va`: a larger handle's stands at each of its chunks. */
static model_mapping *mapping_at(const state *model, uint64_t va)
{
    return gml_map_get(&model->mapped, va);
}

/* True when [va, va + bytes) is whole mappings without a gap. */
static bool whole_mappings(const state *model, uint64_t va, uint64_t bytes)
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
    state *model = model_of(dev);
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
    state *model = model_of(dev);
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

/* Work that is known to be over needs no order any more. */
static bool all_over(const state *model, const model_vector *work)
{
    for (unsigned i = 0; i < GML_MODEL_STREAMS; i++)
        if (work->at[i] > model->done[i])
            return false;
    return true;
}

static gml_status unmap(gml_device *dev, uintptr_t va, size_t bytes)
{
    state *model = model_of(dev);
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
    state *model = model_of(dev);
    spend(model, GML_CALL_set_access, model->options.costs.set_access_ns * (bytes / dev->chunk_bytes));
    if (!whole_mappings(model, va, bytes))
        return broken(model, "set_access: not whole mappings");
    for (uint64_t at = va; at < va + bytes; at += dev->chunk_bytes)
        mapping_at(model, at)->access = true;
    return GML_OK;
}

/* ---- streams and events ---- */

void gml_model_submit(gml_device *device, gml_stream stream)
{
    state *model = model_of(device);
    uint64_t count = ++model->issued.at[stream];
    merge(&model->known[stream], &model->known[HOST]);
    model->known[stream].at[stream] = count;
    if (!model->options.asynchronous)
        gml_model_finish(device, stream);
}

void gml_model_finish(gml_device *device, gml_stream stream)
{
    state *model = model_of(device);
    model->done[stream] = model->issued.at[stream];
}

static gml_status event_record(gml_device *dev, gml_stream stream, gml_event *out_event)
{
    state *model = model_of(dev);
    spend(model, GML_CALL_event_record, 0);
    if (stream == GML_STREAM_NONE && model->options.no_context_events)
        return GML_UNSUPPORTED;
    model_event *event = gml_pool_take(&model->event_pool);
    if (event == NULL || gml_map_ensure(&model->events) != GML_OK)
        return GML_OUT_OF_METADATA;
    if (stream == GML_STREAM_NONE)
        event->clock = model->issued;
    else
        event->clock = model->known[stream];
    event->id = ++model->next_id;
    gml_map_put(&model->events, event->id, event);
    model->usage.events++;
    *out_event = event->id;
    return GML_OK;
}

static gml_status event_query(gml_device *dev, gml_event id)
{
    state *model = model_of(dev);
    spend(model, GML_CALL_event_query, 0);
    const model_event *event = gml_map_get(&model->events, id);
    if (event == NULL)
        return broken(model, "event_query: unknown event");
    if (!all_over(model, &event->clock))
        return GML_NOT_READY;
    merge(&model->known[HOST], &event->clock);
    return GML_OK;
}

static gml_status event_sync(gml_device *dev, gml_event id)
{
    state *model = model_of(dev);
    spend(model, GML_CALL_event_sync, 0);
    const model_event *event = gml_map_get(&model->events, id);
    if (event == NULL)
        return broken(model, "event_sync: unknown event");
    for (unsigned i = 0; i < GML_MODEL_STREAMS; i++)
        model->done[i] = gml_max(model->done[i], event->clock.at[i]);
    merge(&model->known[HOST], &event->clock);
    return GML_OK;
}

static gml_status event_destroy(gml_device *dev, gml_event id)
{
    state *model = model_of(dev);
    model_event *event = gml_map_remove(&model->events, id);
    if (event == NULL)
        return broken(model, "event_destroy: unknown event");
    model->usage.events--;
    gml_pool_give(&model->event_pool, event);
    return GML_OK;
}

static gml_status stream_wait(gml_device *dev, gml_stream stream, gml_event id)
{
    state *model = model_of(dev);
    spend(model, GML_CALL_stream_wait, 0);
    const model_event *event = gml_map_get(&model->events, id);
    if (event == NULL)
        return broken(model, "stream_wait: unknown event");
    merge(&model->known[stream], &event->clock);
    return GML_OK;
}

static gml_status sync_device(gml_device *dev)
{
    state *model = model_of(dev);
    spend(model, GML_CALL_sync, 0);
    for (gml_stream stream = 0; stream < GML_MODEL_STREAMS; stream++)
        gml_model_finish(dev, stream);
    merge(&model->known[HOST], &model->issued);
    return GML_OK;
}

static gml_status mem_info(gml_device *dev, size_t *out_free, size_t *out_total)
{
    state *model = model_of(dev);
    spend(model, GML_CALL_mem_info, 0);
    *out_free = model->options.total_bytes - model->usage.used_bytes;
    *out_total = model->options.total_bytes;
    return GML_OK;
}

static uint64_t now_ns(gml_device *dev)
{
    return model_of(dev)->now_ns;
}

/* ---- the ordering check ---- */

static void note_free(state *model, gml_stream stream)
{
    model->free_count = model->free_count + 1 < FREES ? model->free_count + 1 : 1;
    model_vector *before = &model->frees[model->free_count];
    *before = stream == GML_STREAM_NONE ? model->issued : model->known[stream];
    if (stream != GML_STREAM_NONE)
        before->at[stream] = model->issued.at[stream];
}

static void note_reuse(state *model, uint32_t index, gml_stream stream)
{
    const model_vector *before = &model->frees[index];
    if (index == 0 || all_over(model, before))
        return;
    model_vector known = model->known[HOST];
    if (stream != GML_STREAM_NONE)
        merge(&known, &model->known[stream]);
    if (stream != GML_STREAM_NONE)
        known.at[stream] = model->issued.at[stream];
    if (!precedes(before, &known))
        (void)broken(model, "reuse: not ordered after the free");
}

static void note_unit(state *model, gml_note what, uint32_t *last_free, gml_stream stream)
{
    if (what == GML_NOTE_FREE)
        *last_free = model->free_count;
    else
        note_reuse(model, *last_free, stream);
}

static void note(gml_device *dev, gml_note what, uintptr_t va, size_t bytes, gml_stream stream)
{
    state *model = model_of(dev);
    if (what == GML_NOTE_FREE)
        note_free(model, stream);
    for (uint64_t at = va; at < va + bytes; at += UNIT_BYTES) {
        uint64_t chunk = gml_align_down(at, dev->chunk_bytes);
        model_mapping *entry = mapping_at(model, chunk);
        if (entry == NULL || !entry->access) {
            (void)broken(model, "a block lies where nothing is mapped, or without access");
            return;
        }
        if (what == GML_NOTE_FREE)
            merge(&entry->last, &model->frees[model->free_count]);
        model_physical *handle = entry->handle;
        if (handle->last_free == NULL)
            handle->last_free = gml_pages_map(handle->bytes / UNIT_BYTES * sizeof(uint32_t));
        if (handle->last_free != NULL)
            note_unit(model, what, &handle->last_free[(at - entry->va) / UNIT_BYTES], stream);
    }
}

/* ---- life ---- */

static const gml_device_ops checked_ops = {create,      release,    reserve,       free_va,     map,         unmap,    set_access, event_record,
                                   event_query, event_sync, event_destroy, stream_wait, sync_device, mem_info, now_ns,     note};
static const gml_device_ops unchecked_ops = {create,      release,    reserve,       free_va,     map,         unmap,    set_access, event_record,
                                   event_query, event_sync, event_destroy, stream_wait, sync_device, mem_info, now_ns,     NULL};

gml_status gml_model_create(const gml_model_options *options, gml_device **out_device)
{
    static const gml_model_costs published = {193000, 5000, 1000, 1500, 26000, 36000};
    static const gml_model_costs none;
    state *model = gml_pages_map(sizeof *model);
    if (model == NULL)
        return GML_OUT_OF_METADATA;
    model->options = *options;
    if (memcmp(&options->costs, &none, sizeof none) == 0)
        model->options.costs = published;
    model->device.ops = options->check_order ? &checked_ops : &unchecked_ops;
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
    state *model = model_of(device);
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
