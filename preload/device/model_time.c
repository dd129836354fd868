/* SPDX-License-Identifier: Apache-2.0 */
/* Time on the model device: streams, events, and the check that every reuse is ordered. */
#include "device/model_state.h"

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

/* ---- streams and events ---- */

void gml_model_submit(gml_device *device, gml_stream stream)
{
    model_state *model = model_of(device);
    uint64_t count = ++model->issued.at[stream];
    merge(&model->known[stream], &model->known[HOST]);
    model->known[stream].at[stream] = count;
    if (!model->options.asynchronous)
        gml_model_finish(device, stream);
}

void gml_model_finish(gml_device *device, gml_stream stream)
{
    model_state *model = model_of(device);
    model->done[stream] = model->issued.at[stream];
}

uint64_t gml_model_awaits(const gml_device *device, gml_stream waiter, gml_stream stream)
{
    return model_of(device)->known[waiter].at[stream];
}

gml_status gml_model_event_record(gml_device *dev, gml_stream stream, gml_event *out_event)
{
    model_state *model = model_of(dev);
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

gml_status gml_model_event_query(gml_device *dev, gml_event id)
{
    model_state *model = model_of(dev);
    spend(model, GML_CALL_event_query, 0);
    const model_event *event = gml_map_get(&model->events, id);
    if (event == NULL)
        return broken(model, "event_query: unknown event");
    if (!all_over(model, &event->clock))
        return GML_NOT_READY;
    merge(&model->known[HOST], &event->clock);
    return GML_OK;
}

gml_status gml_model_event_sync(gml_device *dev, gml_event id)
{
    model_state *model = model_of(dev);
    spend(model, GML_CALL_event_sync, 0);
    const model_event *event = gml_map_get(&model->events, id);
    if (event == NULL)
        return broken(model, "event_sync: unknown event");
    for (unsigned i = 0; i < GML_MODEL_STREAMS; i++)
        model->done[i] = gml_max(model->done[i], event->clock.at[i]);
    merge(&model->known[HOST], &event->clock);
    return GML_OK;
}

gml_status gml_model_event_destroy(gml_device *dev, gml_event id)
{
    model_state *model = model_of(dev);
    model_event *event = gml_map_remove(&model->events, id);
    if (event == NULL)
        return broken(model, "event_destroy: unknown event");
    model->usage.events--;
    gml_pool_give(&model->event_pool, event);
    return GML_OK;
}

gml_status gml_model_stream_wait(gml_device *dev, gml_stream stream, gml_event id)
{
    model_state *model = model_of(dev);
    spend(model, GML_CALL_stream_wait, 0);
    const model_event *event = gml_map_get(&model->events, id);
    if (event == NULL)
        return broken(model, "stream_wait: unknown event");
    merge(&model->known[stream], &event->clock);
    return GML_OK;
}

gml_status gml_model_sync(gml_device *dev)
{
    model_state *model = model_of(dev);
    spend(model, GML_CALL_sync, 0);
    for (gml_stream stream = 0; stream < GML_MODEL_STREAMS; stream++)
        gml_model_finish(dev, stream);
    merge(&model->known[HOST], &model->issued);
    return GML_OK;
}

/* ---- the ordering check ---- */

static void note_free(model_state *model, gml_stream stream)
{
    model->free_count = model->free_count + 1 < FREES ? model->free_count + 1 : 1;
    model_vector *before = &model->frees[model->free_count];
    *before = stream == GML_STREAM_NONE ? model->issued : model->known[stream];
    if (stream != GML_STREAM_NONE)
        before->at[stream] = model->issued.at[stream];
}

static void note_reuse(model_state *model, uint32_t index, gml_stream stream)
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

static void note_units(model_state *model, gml_note what, uint32_t *last_free, uint64_t count, gml_stream stream)
{
    uint32_t seen = 0; /* neighbours were mostly freed together */
    for (uint64_t i = 0; i < count; i++) {
        if (what == GML_NOTE_FREE)
            last_free[i] = model->free_count;
        else if (last_free[i] != seen)
            note_reuse(model, seen = last_free[i], stream);
    }
}

void gml_model_note(gml_device *dev, gml_note what, uintptr_t va, size_t bytes, gml_stream stream)
{
    model_state *model = model_of(dev);
    if (what == GML_NOTE_FREE)
        note_free(model, stream);
    for (uint64_t at = va, next; at < va + bytes; at = next) {
        uint64_t chunk = gml_align_down(at, dev->chunk_bytes);
        model_mapping *entry = mapping_at(model, chunk);
        next = gml_min(chunk + dev->chunk_bytes, va + bytes);
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
            note_units(model, what, handle->last_free + (at - entry->va) / UNIT_BYTES,
                       (next - at + UNIT_BYTES - 1) / UNIT_BYTES, stream);
    }
}
