/* SPDX-License-Identifier: Apache-2.0 */
/* Ordering oracle: is memory handed out again only behind the work that may still touch it?
 *
 * Kernels do nothing here, so data cannot show a dependency of theirs that is missing. Each stream has a
 * slot in a vector clock (Lamport / Fidge / Mattern): a stream's clock says how much of every other
 * stream's work comes before its next piece of work; record copies it, wait and synchronise join it; the
 * host's clock says what some thread knows to be finished. The allocator reports frees and reuses by
 * address; they are kept by physical bytes, so that aliases of one chunk are seen as one. A reuse whose
 * stream neither has the free in its clock nor the host, a block handed out while another live one shares
 * its bytes, and an unmap under unfinished work or under a live block end the program with both histories.
 * Limit: slots of destroyed streams are used again after 512 others, which can hide an error. */
#include "sim/driver/driver.h"
#include "sim/driver/exports.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NOTE_FREE = 0, NOTE_REUSE = 1, SLOTS = 4096, QUARANTINE = 512 };

/* ---- vector clocks ---- */

static bool reach(struct sim_clock *clock, unsigned count)
{
    if (count <= clock->count) return true;
    if (count > clock->room) {
        unsigned room = clock->room ? clock->room * 2 : 8;
        while (room < count) room *= 2;
        uint64_t *at = realloc(clock->at, room * sizeof *at);
        if (!at) return false;
        clock->at = at;
        clock->room = room;
    }
    memset(clock->at + clock->count, 0, (count - clock->count) * sizeof *clock->at);
    clock->count = count;
    return true;
}

void sim_clock_join(struct sim_clock *into, const struct sim_clock *from)
{
    if (!reach(into, from->count)) return;
    bool changed = false;
    for (unsigned i = 0; i < from->count; i++)
        if (from->at[i] > into->at[i]) {
            into->at[i] = from->at[i];
            changed = true;
        }
    into->changes += changed;
}

void sim_clock_join_once(struct sim_clock *into, const struct sim_clock *from, uint64_t *seen)
{
    if (*seen == from->changes) return;
    *seen = from->changes;
    sim_clock_join(into, from);
}

void sim_clock_set(struct sim_clock *clock, unsigned slot, uint64_t value)
{
    /* Streams that share a slot each count for themselves: none takes back what another one's event said. */
    if (!reach(clock, slot + 1) || clock->at[slot] >= value) return;
    clock->at[slot] = value;
    clock->changes++;
}

uint64_t sim_clock_at(const struct sim_clock *clock, unsigned slot)
{
    return slot < clock->count ? clock->at[slot] : 0;
}

void sim_clock_clear(struct sim_clock *clock)
{
    clock->count = 0;
    free(clock->at);
    *clock = (struct sim_clock){0};
}

void sim_host_knows_locked(const struct sim_clock *clock)
{
    sim_clock_join(&sim.host, clock);
}

/* ---- slots: taken up again in the order they were given back ---- */

static struct {
    unsigned used, first, waiting;
    unsigned queue[SLOTS];
    uint64_t last[SLOTS];
} slots;

unsigned sim_slot_new_locked(void)
{
    if (slots.used < SLOTS && slots.waiting < QUARANTINE) return slots.used++;
    if (!slots.waiting) return SLOTS - 1; /* thousands of live streams: they share one */
    unsigned slot = slots.queue[slots.first % SLOTS];
    slots.first++;
    slots.waiting--;
    sim_clock_set(&sim.host, slot, slots.last[slot]);
    return slot;
}

void sim_slot_free_locked(unsigned slot, uint64_t value)
{
    if (slot == SLOTS - 1) return;
    slots.last[slot] = value;
    slots.queue[(slots.first + slots.waiting) % SLOTS] = slot;
    slots.waiting++;
}

/* ---- marks: what is known of the bytes of a phys ---- */

struct sim_mark {
    struct sim_mark *next; /* by address, without overlap */
    size_t from, to;
    bool live;
    uintptr_t va, map_va; /* the block and the map by which it was noted */
    uint64_t stream;
    unsigned slot;        /* freed on one stream: its slot and how far it had come */
    uint64_t value;
    struct sim_clock all; /* freed without a stream: all work so far */
};

static void mark_drop(struct sim_mark *mark)
{
    sim_clock_clear(&mark->all);
    free(mark);
}

void sim_marks_free_locked(struct sim_phys *phys)
{
    while (phys->marks) {
        struct sim_mark *next = phys->marks->next;
        mark_drop(phys->marks);
        phys->marks = next;
    }
}

static bool known_done(const struct sim_mark *mark)
{
    for (unsigned i = 0; i < mark->all.count; i++)
        if (mark->all.at[i] > sim_clock_at(&sim.host, i)) return false;
    return mark->value <= sim_clock_at(&sim.host, mark->slot);
}

static bool before(const struct sim_mark *mark, const struct sim_clock *clock)
{
    for (unsigned i = 0; i < mark->all.count; i++)
        if (mark->all.at[i] > sim_clock_at(&sim.host, i) && mark->all.at[i] > sim_clock_at(clock, i)) return false;
    return mark->value <= sim_clock_at(&sim.host, mark->slot) || mark->value <= sim_clock_at(clock, mark->slot);
}

static void print_mark(const struct sim_mark *mark)
{
    fprintf(stderr, "gml-sim: bytes [%zu, %zu) of the chunk: %s as [0x%llx, ...) on stream 0x%llx at step %llu of slot %u\n",
            mark->from, mark->to, mark->live ? "in use" : "freed", (unsigned long long)mark->va,
            (unsigned long long)mark->stream, (unsigned long long)mark->value, mark->slot);
}

static void __attribute__((noreturn)) stop(const char *why, const struct sim_mark *mark, uintptr_t va, size_t bytes,
                                           uint64_t stream)
{
    fprintf(stderr, "gml-sim: ordering: %s\ngml-sim: now: [0x%llx, +%zu) on stream 0x%llx\n", why,
            (unsigned long long)va, bytes, (unsigned long long)stream);
    if (mark) print_mark(mark);
    fprintf(stderr, "gml-sim: history of these addresses, newest first:\n");
    sim_history_print_locked(va, bytes);
    if (mark && mark->va != va) {
        fprintf(stderr, "gml-sim: history of the other addresses:\n");
        sim_history_print_locked(mark->va, 1);
    }
    fprintf(stderr, "gml-sim: stopping (GML_SIM_ORACLE=0 turns this check off)\n");
    abort();
}

/* Cuts [from, to) out of the marks; calls `see` on each piece of mark that goes. */
static void cut(struct sim_phys *phys, size_t from, size_t to, void (*see)(const struct sim_mark *, const void *),
                const void *context)
{
    struct sim_mark **link = &phys->marks;
    while (*link && (*link)->from < to) {
        struct sim_mark *mark = *link;
        if (mark->to <= from) {
            link = &mark->next;
            continue;
        }
        see(mark, context);
        if (mark->from < from && mark->to > to) { /* [ keep | cut | keep ] */
            struct sim_mark *tail = malloc(sizeof *tail);
            if (!tail) return;
            *tail = *mark;
            tail->all = (struct sim_clock){0};
            sim_clock_join(&tail->all, &mark->all);
            tail->from = to;
            mark->to = from;
            mark->next = tail;
            return;
        }
        if (mark->from < from) {
            mark->to = from;
            link = &mark->next;
        } else if (mark->to > to) {
            mark->from = to;
            return;
        } else {
            *link = mark->next;
            mark_drop(mark);
        }
    }
}

static void put(struct sim_phys *phys, const struct sim_mark *model, size_t from, size_t to)
{
    struct sim_mark **link = &phys->marks;
    while (*link && (*link)->from < from) link = &(*link)->next;
    struct sim_mark *mark = malloc(sizeof *mark);
    if (!mark) return;
    *mark = *model;
    mark->all = (struct sim_clock){0};
    sim_clock_join(&mark->all, &model->all);
    mark->from = from;
    mark->to = to;
    mark->next = *link;
    *link = mark;
}

/* ---- notes ---- */

struct request {
    uintptr_t va;
    size_t bytes;
    uint64_t stream;
    const struct sim_clock *clock;
    bool lost;
};

/* The context is lost, and all its work with it: nothing runs any more that order could matter to. */
static bool lost(int device)
{
    return sim.device[device].primary && sim.device[device].primary->sticky != CUDA_SUCCESS;
}

static void see_reuse(const struct sim_mark *mark, const void *context)
{
    const struct request *r = context;
    static const struct sim_clock none;
    if (mark->live) stop("memory is handed out that is in use", mark, r->va, r->bytes, r->stream);
    if (!r->lost && !before(mark, r->clock ? r->clock : &none))
        stop("memory is handed out again before work on it is ordered", mark, r->va, r->bytes, r->stream);
}

static void see_free(const struct sim_mark *mark, const void *context)
{
    const struct request *r = context;
    if (!mark->live) stop("memory is freed that is free already", mark, r->va, r->bytes, r->stream);
}

static struct sim_stream *stream_of(uint64_t handle)
{
    struct sim_ctx *ctx = sim_ctx_peek();
    struct sim_stream *stream;
    if (handle == SIM_NO_STREAM || !ctx) return NULL;
    return sim_stream_get_locked(ctx, (CUstream)(uintptr_t)handle, &stream) == CUDA_SUCCESS ? stream : NULL;
}

static void all_work(struct sim_clock *out, int device)
{
    struct sim_ctx *ctx = sim.device[device].primary;
    for (struct sim_stream *s = ctx ? ctx->streams : NULL; s; s = s->next) sim_clock_join(out, &s->clock);
    if (ctx) sim_clock_join(out, &ctx->ended);
}

void gml_sim_note(int what, uintptr_t va, size_t bytes, uint64_t handle)
{
    if (!sim_config_get()->oracle || !sim.ready || sim.forked) return;
    sim_lock();
    struct sim_stream *stream = stream_of(handle);
    struct request request = {va, bytes, handle, stream ? &stream->clock : NULL, false};
    struct sim_mark model = {.live = what == NOTE_REUSE, .va = va, .stream = handle};
    if (stream) {
        model.slot = stream->slot;
        model.value = sim_clock_at(&stream->clock, stream->slot);
    }
    sim_history_add_locked(what == NOTE_REUSE ? "handed out" : "given back", va, bytes, handle);
    for (uintptr_t at = va; at < va + bytes;) {
        struct sim_page page = sim_page_locked(at);
        if (!page.map) stop("the range is not mapped", NULL, at, va + bytes - at, handle);
        size_t from = at - page.map->va, to = va + bytes - page.map->va;
        if (to > page.map->bytes) to = page.map->bytes;
        if (what == NOTE_FREE && handle == SIM_NO_STREAM && !model.all.count) all_work(&model.all, page.map->phys->device);
        request.lost = lost(page.map->phys->device);
        cut(page.map->phys, from, to, what == NOTE_REUSE ? see_reuse : see_free, &request);
        model.map_va = page.map->va;
        put(page.map->phys, &model, from, to);
        if (what == NOTE_REUSE) page.map->live_bytes += to - from;
        else page.map->live_bytes -= to - from < page.map->live_bytes ? to - from : page.map->live_bytes;
        at = page.map->va + to;
    }
    sim_clock_clear(&model.all);
    sim_unlock();
}

/* Unmapping is not ordered by any stream: all work on the memory must be known to be done. */
void sim_oracle_unmap_locked(const struct sim_map *map)
{
    if (!sim_config_get()->oracle || lost(map->phys->device)) return;
    if (map->live_bytes) stop("a block in use is unmapped", map->phys->marks, map->va, map->bytes, SIM_NO_STREAM);
    struct sim_stream *busy = sim_pending_touch_locked(map->va, map->bytes);
    if (busy)
        stop("memory is unmapped while a copy or fill on it is waiting in a stream", NULL, map->va, map->bytes,
             (uint64_t)(uintptr_t)busy);
    for (const struct sim_mark *mark = map->phys->marks; mark; mark = mark->next)
        if (!mark->live && mark->map_va == map->va && !known_done(mark))
            stop("memory is unmapped before the host knows the work on it to be done", mark, map->va, map->bytes,
                 SIM_NO_STREAM);
}
