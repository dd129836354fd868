/* SPDX-License-Identifier: Apache-2.0 */
/* Streams: which earlier work is over, and how to wait for the rest. */
#include "core/streams.h"

#include <string.h>

/* Handle 0 is a valid stream, and keys of a map are not 0. */
static uint64_t key_of(gml_stream stream)
{
    return stream + 1;
}

static gml_stream_state *state_of(const gml_heap *heap, uint32_t index)
{
    return &heap->streams[index];
}

static uint32_t unused_index(gml_heap *heap)
{
    if (heap->stream_end < GML_MAX_STREAMS)
        return heap->stream_end++;
    /* Streams that ended and whose frees are all over leave their place. */
    for (uint32_t i = GML_INDEX_FIRST; i < GML_MAX_STREAMS; i++) {
        gml_stream_state *state = state_of(heap, i);
        if (state->dead && state->event_count == 0 && state->last_free <= state->done) {
            memset(state, 0, sizeof *state);
            /* Tags of the former holder may linger; they are all at or below `sequence`. */
            state->done = heap->sequence;
            return i;
        }
    }
    return GML_INDEX_DEVICE;
}

uint32_t gml_streams_index(gml_heap *heap, gml_stream stream, uint32_t none_index)
{
    if (stream == GML_STREAM_NONE || stream == GML_STREAM_PER_THREAD)
        return none_index;
    const gml_stream_state *known = gml_map_get(&heap->stream_index, key_of(stream));
    if (known != NULL)
        return (uint32_t)(known - heap->streams);
    if (gml_map_ensure(&heap->stream_index) != GML_OK)
        return GML_INDEX_DEVICE;
    uint32_t index = unused_index(heap);
    if (index == GML_INDEX_DEVICE)
        return index;
    gml_stream_state *state = state_of(heap, index);
    state->handle = stream;
    state->used = true;
    gml_map_put(&heap->stream_index, key_of(stream), state);
    return index;
}

static bool waits_for(const gml_stream_state *state, uint32_t stream, uint64_t sequence)
{
    for (unsigned i = 0; i < GML_WAIT_COUNT; i++)
        if (state->waits[i].stream == stream && state->waits[i].sequence >= sequence)
            return true;
    return false;
}

static void remember_wait(gml_stream_state *state, uint32_t stream, uint64_t sequence)
{
    for (unsigned i = 0; i < GML_WAIT_COUNT; i++) {
        if (state->waits[i].stream == stream) {
            if (state->waits[i].sequence < sequence)
                state->waits[i].sequence = sequence;
            return;
        }
    }
    /* Forgetting an older entry only means that one more event is recorded later. */
    state->waits[state->next_wait].stream = stream;
    state->waits[state->next_wait].sequence = sequence;
    state->next_wait = (state->next_wait + 1) % GML_WAIT_COUNT;
}

static bool over(const gml_heap *heap, gml_tag tag)
{
    return gml_tag_sequence(tag) <= state_of(heap, gml_tag_stream(tag))->done;
}

/* "Any stream", up to a free: pending on the device as a whole from now on. */
static gml_tag device_tag(const gml_heap *heap, uint64_t sequence)
{
    gml_stream_state *device = state_of(heap, GML_INDEX_DEVICE);
    if (device->last_free < sequence)
        device->last_free = sequence;
    return gml_tag_make(GML_INDEX_DEVICE, sequence);
}

void gml_tags_add(gml_heap *heap, gml_tags *into, gml_tag tag)
{
    if (tag == 0 || over(heap, tag))
        return;
    unsigned count = 0;
    uint64_t newest = gml_tag_sequence(tag);
    for (; count < GML_TAG_COUNT && into->tag[count] != 0; count++) {
        gml_tag own = into->tag[count];
        if (gml_tag_stream(own) == gml_tag_stream(tag)) {
            if (own < tag)
                into->tag[count] = tag;
            return;
        }
        if (gml_tag_sequence(own) > newest)
            newest = gml_tag_sequence(own);
    }
    if (count < GML_TAG_COUNT) {
        into->tag[count] = tag;
        return;
    }
    memset(into, 0, sizeof *into);
    into->tag[0] = device_tag(heap, newest);
}

void gml_tags_unite(gml_heap *heap, gml_tags *into, const gml_tags *from)
{
    if (from->tag[0] != 0 && from->tag[1] == 0 && into->tag[1] == 0 &&
        gml_tag_stream(into->tag[0]) == gml_tag_stream(from->tag[0])) {
        if (into->tag[0] < from->tag[0])
            into->tag[0] = from->tag[0];
        return;
    }
    for (unsigned i = 0; i < GML_TAG_COUNT && from->tag[i] != 0; i++)
        gml_tags_add(heap, into, from->tag[i]);
}

gml_tag gml_tags_collapse(const gml_heap *heap, const gml_tags *tags)
{
    gml_tag only = 0;
    uint64_t newest = 0;
    bool several = false;
    for (unsigned i = 0; i < GML_TAG_COUNT && tags->tag[i] != 0; i++) {
        if (over(heap, tags->tag[i]))
            continue;
        several = several || only != 0;
        only = tags->tag[i];
        if (gml_tag_sequence(only) > newest)
            newest = gml_tag_sequence(only);
    }
    return several ? device_tag(heap, newest) : only;
}

static bool settled(const gml_heap *heap, gml_tag tag, uint32_t requester)
{
    uint32_t stream = gml_tag_stream(tag);
    if (stream == requester || over(heap, tag))
        return true;
    return requester >= GML_INDEX_FIRST && waits_for(state_of(heap, requester), stream, gml_tag_sequence(tag));
}

bool gml_tags_settled(const gml_heap *heap, const gml_tags *tags, uint32_t requester)
{
    for (unsigned i = 0; i < GML_TAG_COUNT && tags->tag[i] != 0; i++)
        if (!settled(heap, tags->tag[i], requester))
            return false;
    return true;
}

static void drop_event(gml_heap *heap, gml_stream_state *state, unsigned at)
{
    (void)heap->dev->ops->event_destroy(heap->dev, state->events[at].event);
    state->event_count--;
    memmove(&state->events[at], &state->events[at + 1], (state->event_count - at) * sizeof state->events[0]);
}

static gml_stream handle_of(const gml_heap *heap, uint32_t index)
{
    return index == GML_INDEX_DEVICE ? GML_STREAM_NONE : state_of(heap, index)->handle;
}

/* The number of the oldest pending event that covers the free `sequence`; event_count if none does. */
static unsigned covering(const gml_stream_state *state, uint64_t sequence)
{
    unsigned at = 0;
    while (at < state->event_count && state->events[at].sequence < sequence)
        at++;
    return at;
}

static bool is_covered(const gml_stream_state *state)
{
    return covering(state, state->last_free) < state->event_count;
}

/* Makes an event that covers every free on the stream so far; a dead stream keeps the one of its end.
 * When the places are full the newest gives way: the older ones are met first. */
static gml_status record(gml_heap *heap, uint32_t index)
{
    gml_stream_state *state = state_of(heap, index);
    if (covering(state, heap->sequence) < state->event_count)
        return GML_OK;
    if (state->dead)
        return is_covered(state) ? GML_OK : GML_NOT_READY;
    gml_event event = 0;
    gml_status status = heap->dev->ops->event_record(heap->dev, handle_of(heap, index), &event);
    if (index == GML_INDEX_DEVICE && status == GML_UNSUPPORTED)
        heap->no_context_events = true;
    if (status != GML_OK)
        return status;
    if (state->event_count == GML_EVENT_COUNT)
        drop_event(heap, state, GML_EVENT_COUNT - 1);
    state->events[state->event_count].event = event;
    state->events[state->event_count++].sequence = heap->sequence;
    return GML_OK;
}

/* False when the oldest pending event has not completed. */
static bool pop_completed(gml_heap *heap, uint32_t index)
{
    gml_stream_state *state = state_of(heap, index);
    if (heap->dev->ops->event_query(heap->dev, state->events[0].event) != GML_OK)
        return false;
    uint64_t sequence = state->events[0].sequence;
    drop_event(heap, state, 0);
    if (index == GML_INDEX_DEVICE)
        gml_streams_all_done(heap, sequence);
    else
        gml_streams_done(heap, index, sequence);
    return true;
}

/* When every pending event has completed and the last free came after them, one more event tells. */
static void poll(gml_heap *heap, uint32_t index)
{
    gml_stream_state *state = state_of(heap, index);
    while (state->event_count != 0)
        if (!pop_completed(heap, index))
            return;
    if (state->last_free > state->done && record(heap, index) == GML_OK)
        (void)pop_completed(heap, index);
}

void gml_streams_mark(gml_heap *heap, uint32_t index)
{
    if (index >= GML_INDEX_FIRST && heap->captures == 0)
        (void)record(heap, index);
}

void gml_streams_poll(gml_heap *heap, const gml_tags *tags)
{
    if (heap->captures != 0)
        return;
    for (unsigned i = 0; i < GML_TAG_COUNT && tags->tag[i] != 0; i++)
        if (!over(heap, tags->tag[i]))
            poll(heap, gml_tag_stream(tags->tag[i]));
}

void gml_streams_poll_all(gml_heap *heap)
{
    if (heap->captures != 0)
        return;
    for (uint32_t i = GML_INDEX_DEVICE; i < heap->stream_end; i++)
        poll(heap, i);
}

gml_status gml_streams_order(gml_heap *heap, const gml_tags *tags, uint32_t requester)
{
    if (requester < GML_INDEX_FIRST || heap->captures != 0 || heap->options.no_cross_stream)
        return gml_tags_settled(heap, tags, requester) ? GML_OK : GML_NOT_READY;
    gml_stream_state *waiter = state_of(heap, requester);
    for (unsigned i = 0; i < GML_TAG_COUNT && tags->tag[i] != 0; i++) {
        if (settled(heap, tags->tag[i], requester))
            continue;
        uint32_t stream = gml_tag_stream(tags->tag[i]);
        const gml_stream_state *state = state_of(heap, stream);
        unsigned at = covering(state, gml_tag_sequence(tags->tag[i]));
        if (at == state->event_count && record(heap, stream) != GML_OK)
            return GML_NOT_READY;
        at = (unsigned)gml_min(at, state->event_count - 1); /* the new one is the last */
        if (heap->dev->ops->stream_wait(heap->dev, waiter->handle, state->events[at].event) != GML_OK)
            return GML_NOT_READY;
        remember_wait(waiter, stream, state->events[at].sequence);
    }
    return GML_OK;
}

void gml_streams_done(gml_heap *heap, uint32_t stream, uint64_t sequence)
{
    gml_stream_state *state = state_of(heap, stream);
    if (state->done < sequence)
        state->done = sequence;
    while (state->event_count != 0 && state->events[0].sequence <= sequence)
        drop_event(heap, state, 0);
}

void gml_streams_all_done(gml_heap *heap, uint64_t sequence)
{
    for (uint32_t i = GML_INDEX_DEVICE; i < heap->stream_end; i++)
        gml_streams_done(heap, i, sequence);
}

bool gml_streams_pending(const gml_heap *heap)
{
    for (uint32_t i = GML_INDEX_DEVICE; i < heap->stream_end; i++)
        if (heap->streams[i].last_free > heap->streams[i].done)
            return true;
    return false;
}

void gml_streams_retire(gml_heap *heap, gml_stream stream)
{
    gml_stream_state *state = gml_map_remove(&heap->stream_index, key_of(stream));
    if (state == NULL)
        return;
    if (state->last_free > state->done && heap->captures == 0)
        (void)record(heap, (uint32_t)(state - heap->streams));
    state->dead = true;
    /* Without an event of its end the last frees could never be seen to end: a device tag takes them over. */
    if (state->last_free > state->done && !is_covered(state))
        (void)device_tag(heap, state->last_free);
}

void gml_streams_destroy(gml_heap *heap)
{
    for (uint32_t i = GML_INDEX_DEVICE; i < heap->stream_end; i++)
        while (state_of(heap, i)->event_count != 0)
            drop_event(heap, state_of(heap, i), 0);
    gml_map_destroy(&heap->stream_index);
}
