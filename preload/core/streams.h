/* SPDX-License-Identifier: Apache-2.0 */
/* Streams: what is known about the order of work, so that memory is reused only when it is safe.
 *
 * A tag (stream, sequence) stands for "work submitted to the stream before free number `sequence`".
 * It is *settled* for a requester when the work is known complete, when the requester is the same
 * stream, or when the requester's stream already waits for it. All functions: heap->lock is held. */
#ifndef GML_CORE_STREAMS_H
#define GML_CORE_STREAMS_H

#include "core/types.h"

static inline uint32_t gml_tag_stream(gml_tag tag)
{
    return (uint32_t)(tag >> GML_TAG_SEQUENCE_BITS);
}

static inline uint64_t gml_tag_sequence(gml_tag tag)
{
    return tag & GML_TAG_SEQUENCE_MASK;
}

static inline gml_tag gml_tag_make(uint32_t stream, uint64_t sequence)
{
    return (uint64_t)stream << GML_TAG_SEQUENCE_BITS | sequence;
}

/* The index of a stream handle; GML_STREAM_NONE gives `none_index`. A table that is full answers
 * GML_INDEX_DEVICE, which is always safe. */
uint32_t gml_streams_index(gml_heap *heap, gml_stream stream, uint32_t none_index);

/* Adds every tag of `from` to `into`; sets that grow too large become one device tag. */
void gml_tags_unite(gml_heap *heap, gml_tags *into, const gml_tags *from);
void gml_tags_add(gml_heap *heap, gml_tags *into, gml_tag tag);

/* The set as one tag (0 if nothing is pending): several streams become the device tag. */
gml_tag gml_tags_collapse(const gml_heap *heap, const gml_tags *tags);

/* True when the requester may use the memory at once. Makes no device call. */
bool gml_tags_settled(const gml_heap *heap, const gml_tags *tags, uint32_t requester);

/* Learns what has finished meanwhile by asking the device; no call while capturing. */
void gml_streams_poll(gml_heap *heap, const gml_tags *tags);
void gml_streams_poll_all(gml_heap *heap);

/* Makes the requester's stream wait for all tags on the device, without blocking the host.
 * Errors: NOT_READY when that cannot be done (no stream named, capturing, cross-stream reuse is
 * switched off, or the device has no event for it): then only a host wait helps. */
GML_CHECKED gml_status gml_streams_order(gml_heap *heap, const gml_tags *tags, uint32_t requester);

/* The last free on the stream gets an event of its own: called where a block is freed on another stream
 * than it was allocated on. Such streams (PyTorch frees what several streams used on one) may go on to
 * wait for others; an event of the time of the reuse would cover that too. No call while capturing. */
void gml_streams_mark(gml_heap *heap, uint32_t index);

/* True when earlier work on any stream is not known to be over. */
bool gml_streams_pending(const gml_heap *heap);

/* All frees up to `sequence` are known to be over. */
void gml_streams_all_done(gml_heap *heap, uint64_t sequence);
void gml_streams_done(gml_heap *heap, uint32_t stream, uint64_t sequence);

/* The stream's handle ends; its frees hang on an event from now on. */
void gml_streams_retire(gml_heap *heap, gml_stream stream);

void gml_streams_destroy(gml_heap *heap);

#endif
