/* SPDX-License-Identifier: Apache-2.0 */
/* Deciding: where a request goes when no free range fits it. No side effects.
 *
 * Extend in place     [ gap ][ EMPTY.......... ]  =>  [ block        ][ EMPTY.. ]
 * Bridge a hole       [ gap ][ EMPTY ][ gap    ]  =>  [ block       ][ gap     ]
 * Stitch a new arena                                  [ block     ][ EMPTY..... ]
 *
 * The missing slots are filled with chunks that are free anywhere but in this arena: an arena's own
 * holes cannot extend it. When that would force the creation of chunks although enough free ones
 * exist, a new arena over them is cheaper; that rule keeps fragmentation from forcing growth. */
#include "base/align.h"
#include "base/bitmap.h"
#include "core/arena.h"
#include "core/chunks.h"
#include "core/plan.h"
#include "core/streams.h"

#include <string.h>

static uint32_t chunks_for(const gml_heap *heap, uint64_t bytes)
{
    return (uint32_t)((bytes + heap->dev->chunk_bytes - 1) / heap->dev->chunk_bytes);
}

static bool may_wait(const gml_heap *heap, uint32_t requester)
{
    return requester >= GML_INDEX_FIRST && heap->captures == 0 && !heap->options.no_cross_stream;
}

static bool usable(gml_heap *heap, const gml_tags *tags, uint32_t requester)
{
    return may_wait(heap, requester) || gml_tags_settled(heap, tags, requester);
}

/* Free chunks that the requester can have and that `arena` (may be NULL) does not map. */
static uint32_t count_candidates(gml_heap *heap, const gml_arena *arena, uint32_t requester)
{
    uint32_t count = 0;
    size_t words = GML_BITMAP_WORDS(heap->chunk_end);
    bool all = may_wait(heap, requester);
    for (size_t i = 0; i < words; i++) {
        uint64_t bits = heap->free_bits[i] & ~(arena != NULL ? arena->members[i] : 0);
        for (uint64_t left = all ? 0 : bits; left != 0; left &= left - 1) {
            gml_tags tags = {{heap->chunk_tags[i * 64 + (size_t)__builtin_ctzll(left)]}};
            if (!gml_tags_settled(heap, &tags, requester))
                bits &= ~(left & -left);
        }
        heap->scratch_bits[i] = bits;
        count += (uint32_t)__builtin_popcountll(bits);
    }
    return count;
}

static bool cheaper(const gml_plan *a, const gml_plan *b)
{
    if (a->create != b->create)
        return a->create < b->create;
    return a->count < b->count;
}

static void set_sources(gml_plan *plan, uint32_t candidates)
{
    plan->reuse = (uint32_t)gml_min(plan->count, candidates);
    plan->create = plan->count - plan->reuse;
}

/* One EMPTY span of a fine arena, with the gaps on both sides of it. */
static bool plan_at(gml_heap *heap, const gml_span *empty, uint32_t candidates, gml_plan *plan)
{
    const gml_request *request = &plan->request;
    const gml_span *before = empty->previous, *after = empty->next;
    uint64_t begin = gml_align_up(empty->begin, request->alignment);
    if (before != NULL && before->state == GML_SPAN_FREE && usable(heap, &before->tags, request->requester)) {
        begin = gml_align_up(before->begin, request->alignment);
        plan->tags = before->tags;
    }
    uint64_t end = begin + request->bytes;
    uint64_t last = gml_align_up(end, heap->dev->chunk_bytes);
    if (last > empty->end) {
        bool bridge = after != NULL && after->state == GML_SPAN_FREE && end <= after->end &&
                      usable(heap, &after->tags, request->requester);
        if (!bridge)
            return false;
        last = empty->end;
        gml_tags_unite(heap, &plan->tags, &after->tags);
    }
    uint64_t first = gml_max(gml_align_down(begin, heap->dev->chunk_bytes), empty->begin);
    if (begin >= empty->end || first >= last)
        return false;
    plan->arena = empty->arena;
    plan->begin = begin;
    plan->end = end;
    plan->slot = gml_slot_of(heap, empty->arena, first);
    plan->count = (uint32_t)((last - first) / heap->dev->chunk_bytes);
    set_sources(plan, candidates);
    return true;
}

static void extend_fine(gml_heap *heap, gml_plan *best, bool reuse)
{
    for (gml_arena *arena = heap->fine; arena != NULL; arena = arena->next) {
        uint32_t candidates = reuse ? count_candidates(heap, arena, best->request.requester) : 0;
        for (const gml_span *empty = arena->empty; empty != NULL; empty = empty->u.list.next) {
            gml_plan plan = {.request = best->request};
            /* At equal price extending wins over a new arena: it maps no more and keeps one arena. */
            if (plan_at(heap, empty, candidates, &plan) && !cheaper(best, &plan))
                *best = plan;
        }
    }
}

static void extend_coarse(gml_heap *heap, gml_plan *best, bool reuse)
{
    uint32_t wanted = chunks_for(heap, best->request.bytes);
    for (gml_arena *arena = heap->coarse; arena != NULL; arena = arena->next) {
        gml_slots tail = gml_arena_tail(heap, arena);
        gml_plan plan = {.request = best->request, .arena = arena, .slot = arena->tail};
        if (tail.count == 0 || tail.count >= wanted || wanted - tail.count > arena->slot_count - arena->tail)
            continue;
        gml_chunks_tags(heap, arena, tail.slot, tail.count, &plan.tags);
        if (!usable(heap, &plan.tags, plan.request.requester))
            continue;
        plan.count = wanted - tail.count;
        plan.begin = gml_slot_address(heap, arena, tail.slot);
        plan.end = plan.begin + plan.request.bytes;
        set_sources(&plan, reuse ? count_candidates(heap, arena, plan.request.requester) : 0);
        if (cheaper(&plan, best))
            *best = plan;
    }
}

/* Fine arenas reserve room for the whole device, so that they can always be extended in place;
 * coarse ones twice their first block, so that a larger one can follow it in place. */
static uint64_t reservation(const gml_heap *heap, const gml_request *request)
{
    uint64_t bytes = request->coarse ? request->bytes * 2 : heap->total_bytes;
    return gml_align_up(gml_max(bytes, request->bytes), heap->dev->chunk_bytes);
}

#define DEFAULT_MAX_DRIVER_TIME_PPM 10000u
#define DEFAULT_REUSE_ALLOWANCE_NS 5000000000u
#define DEFAULT_REUSE_NS 37500u /* map and access of one 2 MiB chunk, published for an A100 */

static bool within_limit(const gml_heap *heap, uint32_t create)
{
    uint64_t grown = heap->stats->reserved_bytes + (uint64_t)create * heap->dev->chunk_bytes;
    return heap->options.limit_bytes == 0 || grown <= heap->options.limit_bytes;
}

/* Growing instead leaves the device one part in `spare_part` of its memory, for contexts, libraries and
 * other programs. */
static bool room_to_grow(const gml_heap *heap, uint32_t create, uint64_t spare_part)
{
    uint64_t spare = heap->total_bytes / spare_part;
    return within_limit(heap, create) && heap->device_free_bytes >= (uint64_t)create * heap->dev->chunk_bytes + spare;
}

/* Mapping free chunks elsewhere recurs, creating chunks does not: only the former has a budget. It
 * may cost a few seconds while the program's sizes are new, as much as growing has cost so far
 * (renting until the rent equals the price is at most twice as dear as the best choice: the
 * ski-rental bound, Karlin et al. 1988), and a share of the elapsed device time. Under pressure
 * there is no budget. Figures: docs/design/driver-time.md. */
static bool may_reuse(gml_heap *heap, const gml_plan *plan)
{
    if (heap->options.goal == GML_GOAL_MEMORY || plan->reuse == 0 || !room_to_grow(heap, plan->count, 64))
        return true;
    if (heap->options.goal == GML_GOAL_THROUGHPUT)
        return false;
    uint64_t ppm = heap->options.max_driver_time_ppm;
    uint64_t mean_ns = heap->reuse_chunks != 0 ? heap->reuse_ns / heap->reuse_chunks : DEFAULT_REUSE_NS;
    uint64_t elapsed_ns = heap->dev->ops->now_ns(heap->dev) - heap->start_ns;
    uint64_t budget_ns = elapsed_ns / 1000000 * (ppm != 0 ? ppm : DEFAULT_MAX_DRIVER_TIME_PPM);
    uint64_t allowance_ns = heap->options.reuse_allowance_ns;
    budget_ns += heap->grow_ns + (allowance_ns != 0 ? allowance_ns : DEFAULT_REUSE_ALLOWANCE_NS);
    return heap->reuse_ns + plan->reuse * mean_ns <= budget_ns;
}

/* True when some run of idle chunks is at least `wanted` long. Pre: the candidates are counted. */
static bool has_run(const gml_heap *heap, size_t wanted)
{
    size_t end = heap->chunk_end, count = 0;
    for (size_t at = 0; (at = gml_bitmap_next_run(heap->scratch_bits, end, at, &count)) != GML_BITMAP_NONE; at += count)
        if (count >= wanted)
            return true;
    return false;
}

/* Taking single idle chunks out of gaps for a small block leaves the gaps' ends behind, too short for
 * anything: unless there is a run with room to spare, or much is idle, a new chunk costs less memory in
 * the long run. With a cache of 1-9 MB tensors in random order this is 7 % of waste against 12 %. */
static bool rather_grow(gml_heap *heap, const gml_plan *plan)
{
    uint64_t idle_bytes = heap->free_chunks * heap->dev->chunk_bytes;
    if (plan->request.coarse || plan->request.bytes >= GML_MEDIUM_BYTES || plan->reuse == 0 ||
        idle_bytes >= heap->stats->reserved_bytes / 8 || !room_to_grow(heap, plan->count, 256))
        return false;
    (void)count_candidates(heap, plan->arena, plan->request.requester);
    return !has_run(heap, (size_t)plan->reuse + 2);
}

static gml_plan cheapest(gml_heap *heap, const gml_request *request, bool reuse)
{
    gml_plan best = {.request = *request, .va_bytes = reservation(heap, request), .end = request->bytes};
    best.count = chunks_for(heap, request->bytes);
    set_sources(&best, reuse ? count_candidates(heap, NULL, request->requester) : 0);
    if (request->coarse)
        extend_coarse(heap, &best, reuse);
    else
        extend_fine(heap, &best, reuse);
    return best;
}

gml_status gml_plan_decide(gml_heap *heap, const gml_request *request, gml_plan *out_plan)
{
    if (request->bytes > heap->total_bytes)
        return GML_OUT_OF_MEMORY;
    gml_plan best = cheapest(heap, request, true);
    bool over_budget = !may_reuse(heap, &best);
    if (over_budget || rather_grow(heap, &best))
        best = cheapest(heap, request, false);
    best.over_budget = over_budget;
    if (best.create != 0 && !within_limit(heap, best.create))
        return GML_OUT_OF_MEMORY;
    /* Set the sources' bitmap to those of the plan that won. */
    (void)count_candidates(heap, best.arena, request->requester);
    *out_plan = best;
    return GML_OK;
}
