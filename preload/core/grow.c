/* SPDX-License-Identifier: Apache-2.0 */
/* Growing: one attempt with the driver, and the ladder that is climbed when memory runs out. */
#include "core/grow.h"

#include "base/align.h"
#include "core/giveback.h"
#include "core/place.h"
#include "core/plan.h"
#include "core/streams.h"
#include "core/trim.h"

/* How large the device is, and how much of it nobody holds. grow_lock is held. */
static gml_status look_at_device(gml_heap *heap)
{
    size_t free_bytes = 0, total_bytes = 0;
    gml_status status = heap->dev->ops->mem_info(heap->dev, &free_bytes, &total_bytes);
    if (status != GML_OK)
        return heap->total_bytes != 0 ? GML_OK : status; /* an old figure will do */
    if (heap->total_bytes == 0)
        heap->start_ns = heap->dev->ops->now_ns(heap->dev);
    heap->total_bytes = gml_align_up(total_bytes, heap->dev->chunk_bytes);
    heap->device_free_bytes = free_bytes;
    return GML_OK;
}

/* Makes sure that the spare address range suits a new arena of `bytes`. grow_lock is held. */
static gml_status reserve_spare(gml_heap *heap, uint64_t bytes)
{
    if (heap->spare_va != 0 && heap->spare_va_bytes >= bytes && heap->spare_va_bytes <= 4 * bytes)
        return GML_OK;
    if (heap->spare_va != 0)
        gml_giveback_range(heap, heap->spare_va, heap->spare_va_bytes);
    heap->spare_va = 0;
    uintptr_t va = 0;
    uint64_t start = heap->dev->ops->now_ns(heap->dev);
    gml_status status = heap->dev->ops->reserve(heap->dev, bytes, &va);
    uint64_t ns = heap->dev->ops->now_ns(heap->dev) - start;
    gml_lock_acquire(&heap->lock);
    gml_stats_begin(heap);
    heap->stats->driver_reserve++;
    heap->stats->driver_ns += ns;
    gml_unlock_changed(heap);
    if (status != GML_OK)
        return status;
    heap->spare_va = va;
    heap->spare_va_bytes = bytes;
    return GML_OK;
}

/* A block that fits no fine arena without a new one: the same request, in whole chunks. Coarse arenas
 * cost nothing while they are idle, each further fine one slows every call down a little. */
static bool prefer_coarse(const gml_heap *heap, const gml_plan *plan)
{
    return !plan->request.coarse && plan->request.bytes >= GML_MEDIUM_BYTES && heap->fine != NULL &&
           (plan->arena == NULL || plan->create != 0);
}

static gml_status decide_coarse(gml_heap *heap, gml_plan *plan, gml_span **out_block)
{
    gml_plan coarse;
    gml_request request = plan->request;
    request.coarse = true;
    request.bytes = gml_align_up(request.bytes, heap->dev->chunk_bytes);
    if (gml_place(heap, &request, out_block) == GML_OK)
        return GML_OK;
    if (gml_plan_decide(heap, &request, &coarse) == GML_OK && (plan->arena == NULL || coarse.create < plan->create)) {
        *plan = coarse;
        return GML_OK;
    }
    return gml_plan_decide(heap, &plan->request, plan); /* the sources' bitmap is this plan's again */
}

/* Decide and set aside. Returns with heap->lock held; NOT_FOUND says that address space for a new
 * arena is missing. `*out_block` is set when a free range turned up meanwhile. */
static gml_status prepare(gml_heap *heap, const gml_request *request, gml_plan *plan, gml_span **out_block)
{
    gml_lock_acquire(&heap->lock);
    gml_stats_begin(heap);
    gml_status status = gml_place(heap, request, out_block);
    if (status != GML_NOT_FOUND && status != GML_NOT_READY)
        return status;
    /* Who cannot wait on the device gets only memory that is known to be finished with: ask. */
    if (request->requester == GML_INDEX_NONE)
        gml_streams_poll_all(heap);
    status = gml_plan_decide(heap, request, plan);
    if (status == GML_OK && prefer_coarse(heap, plan))
        status = decide_coarse(heap, plan, out_block);
    if (status == GML_OUT_OF_MEMORY || (status == GML_OK && plan->create != 0 && request->coarse)) {
        gml_status fine = gml_place_fine(heap, request, out_block);
        if (fine == GML_OK)
            return fine;
    }
    if (status != GML_OK || *out_block != NULL)
        return status;
    if (plan->arena == NULL &&
        (heap->spare_va == 0 || heap->spare_va_bytes < plan->va_bytes || heap->spare_va_bytes > 4 * plan->va_bytes))
        return GML_NOT_FOUND;
    return gml_plan_set_aside(heap, plan);
}

/* One attempt with the driver. grow_lock is held, heap->lock is not. */
static gml_status attempt(gml_heap *heap, const gml_request *request, gml_span **out_block)
{
    gml_plan plan;
    gml_status status = prepare(heap, request, &plan, out_block);
    for (unsigned tries = 0; status == GML_NOT_FOUND && tries < 4; tries++) {
        uint64_t mappings = plan.count, bytes = plan.va_bytes;
        gml_unlock_changed(heap);
        gml_trim_arenas(heap, mappings, bytes);
        status = reserve_spare(heap, bytes);
        if (status != GML_OK)
            return status;
        status = prepare(heap, request, &plan, out_block);
    }
    gml_unlock_changed(heap);
    if (status == GML_NOT_FOUND)
        return GML_OUT_OF_ADDRESSES; /* other threads took what was reserved, time after time */
    if (status != GML_OK || *out_block != NULL)
        return status;
    status = gml_plan_commit(heap, &plan);
    gml_lock_acquire(&heap->lock);
    gml_stats_begin(heap);
    gml_plan_finish(heap, &plan, status);
    gml_unlock_changed(heap);
    *out_block = status == GML_OK ? plan.block : NULL;
    return status;
}

typedef enum gml_rung { RUNG_EVENTS, RUNG_DRAIN, RUNG_COUNT } gml_rung;

/* One rung up the ladder: false when it cannot have helped. */
static bool climb(gml_heap *heap, gml_rung rung)
{
    gml_lock_acquire(&heap->lock);
    bool pending = gml_streams_pending(heap) && heap->captures == 0;
    gml_stats_begin(heap);
    heap->stats->retries += rung == RUNG_EVENTS;
    heap->stats->ladder_events += rung == RUNG_EVENTS;
    heap->stats->ladder_drain += rung == RUNG_DRAIN && pending;
    if (rung == RUNG_EVENTS && pending)
        gml_streams_poll_all(heap);
    gml_unlock_changed(heap);
    if (rung == RUNG_DRAIN && pending)
        return gml_trim_drain(heap) == GML_OK;
    return pending;
}

/* Most waits for the device that one request makes because other threads went on meanwhile. */
#define MORE_DRAINS 16

/* There would be room in sum: what was waited for may be another thread's by now, and what that one freed
 * since is waited for in turn. Where nothing is pending, waiting again changes nothing (see climb). */
static bool may_fit(gml_heap *heap, const gml_request *request)
{
    gml_lock_acquire(&heap->lock);
    uint64_t unused = heap->stats->reserved_bytes - heap->stats->live_bytes;
    gml_lock_release(&heap->lock);
    return request->bytes <= heap->device_free_bytes + unused;
}

/* Failures that waiting for earlier work may turn into success. */
static bool may_pass(gml_status status)
{
    return status == GML_OUT_OF_MEMORY || status == GML_NOT_READY || status == GML_OUT_OF_ADDRESSES;
}

gml_status gml_grow(gml_heap *heap, const gml_request *request, gml_span **out_block)
{
    gml_status status = look_at_device(heap);
    if (status != GML_OK)
        return status;
    /* Without context events nothing but a wait tells that plainly freed memory is no longer in use.
     * The program's own cudaMalloc may wait for the device too; growing without end would be worse. */
    if (request->requester == GML_INDEX_NONE && heap->no_context_events)
        (void)climb(heap, RUNG_DRAIN);
    status = attempt(heap, request, out_block);
    for (unsigned rung = 0; may_pass(status) && rung < RUNG_COUNT; rung++) {
        if (climb(heap, (gml_rung)rung))
            status = attempt(heap, request, out_block);
    }
    for (unsigned more = 0; may_pass(status) && more < MORE_DRAINS && may_fit(heap, request); more++) {
        if (!climb(heap, RUNG_DRAIN))
            break;
        status = attempt(heap, request, out_block);
    }
    if (status == GML_NOT_READY)
        status = GML_OUT_OF_MEMORY;
    return status;
}
