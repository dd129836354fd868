/* SPDX-License-Identifier: Apache-2.0 */
/* State of the model device, shared by its two files: model.c (memory) and model_time.c (order). */
#ifndef GML_DEVICE_MODEL_STATE_H
#define GML_DEVICE_MODEL_STATE_H

#include "base/align.h"
#include "base/map.h"
#include "base/pages.h"
#include "base/pool.h"
#include "device/model.h"

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

typedef struct model_state {
    gml_device device;
    gml_device_ops ops; /* without `note` unless the order is checked */
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
} model_state;

static inline model_state *model_of(const gml_device *device)
{
    union {
        const gml_device *from;
        model_state *to;
    } cast = {device};
    return cast.to;
}

static inline gml_status broken(model_state *model, const char *rule)
{
    if (model->violation == NULL)
        model->violation = rule;
    return GML_INVALID;
}

static inline void spend(model_state *model, gml_device_call call, uint64_t ns)
{
    model->usage.calls[call]++;
    model->now_ns += ns;
}

static inline model_mapping *mapping_at(const model_state *model, uint64_t va)
{
    return gml_map_get(&model->mapped, va);
}

/* Work that is known to be over needs no order any more. */
static inline bool all_over(const model_state *model, const model_vector *work)
{
    for (unsigned i = 0; i < GML_MODEL_STREAMS; i++)
        if (work->at[i] > model->done[i])
            return false;
    return true;
}

/* Events, waits and the ordering check, as the contract has them. */
gml_status gml_model_event_record(gml_device *dev, gml_stream stream, gml_event *out_event);
gml_status gml_model_event_query(gml_device *dev, gml_event id);
gml_status gml_model_event_sync(gml_device *dev, gml_event id);
gml_status gml_model_event_destroy(gml_device *dev, gml_event id);
gml_status gml_model_stream_wait(gml_device *dev, gml_stream stream, gml_event id);
gml_status gml_model_sync(gml_device *dev);
void gml_model_note(gml_device *dev, gml_note what, uintptr_t va, size_t bytes, gml_stream stream);

#endif
