/* SPDX-License-Identifier: Apache-2.0 */
/* Types of the allocator core, shared by its files and by nobody else.
 *
 * Glossary
 *   chunk    one physical handle of the device's granularity (2 MiB): the unit that can be mapped
 *            at several places. It is *free* when it holds no live byte; then it is free in every
 *            arena that maps it. A chunk with a live byte belongs to one arena, its *owner*.
 *   arena    a reserved address range; slot i holds a chunk or nothing. A chunk never stands twice
 *            in one arena.
 *   fine     an arena for blocks below GML_COARSE_BYTES. Byte-granular: its blocks share chunks.
 *            Its whole range is covered by spans in address order.
 *   coarse   an arena for larger blocks. Chunk-granular and without spans: whether a slot is usable
 *            follows from its chunk alone, so that nothing has to be kept up to date here while
 *            chunks come and go in other arenas.
 *   span     a piece of a fine arena: LIVE (a block), FREE (usable), TAKEN (mapped, but its chunks
 *            are live in another arena), EMPTY (nothing is mapped). A block of a coarse arena is a
 *            LIVE span without neighbours.
 *   gap      a FREE span.
 *   tag      (stream, sequence number): work submitted to the stream before this free may still
 *            touch the memory.
 *
 * Lock rule: everything here is guarded by heap->lock, except that the device calls of a plan in
 * commit run under heap->grow_lock alone, on chunks and slots that the plan has set aside. */
#ifndef GML_CORE_TYPES_H
#define GML_CORE_TYPES_H

#include "base/align.h"
#include "base/lock.h"
#include "base/map.h"
#include "base/pool.h"
#include "core/heap.h"

#define GML_BLOCK_BYTES ((uint64_t)512)
#define GML_PLAIN_ALIGN ((uint64_t)64 << 10)
#ifndef GML_COARSE_BYTES
#define GML_COARSE_BYTES ((uint64_t)128 << 20)
#endif
/* From here on a block that would need a fine arena of its own gets a coarse one instead. */
#ifndef GML_MEDIUM_BYTES
#define GML_MEDIUM_BYTES ((uint64_t)16 << 20)
#endif
/* From here on a block of whole chunks begins at one. */
#ifndef GML_ALIGNED_BYTES
#define GML_ALIGNED_BYTES ((uint64_t)5 << 20)
#endif
#define GML_MAX_CHUNKS ((uint32_t)1 << 18)
#define GML_NO_CHUNK UINT32_MAX

/* Mappings per physical chunk over the whole heap: beyond, the coldest idle arenas are dropped. */
#define GML_ALIAS_CAP 8

/* ---- tags ---- */

typedef uint64_t gml_tag; /* stream index in the top 16 bits, sequence number below; 0 is none */

#define GML_TAG_COUNT 4
#define GML_TAG_SEQUENCE_BITS 48
#define GML_TAG_SEQUENCE_MASK (((uint64_t)1 << GML_TAG_SEQUENCE_BITS) - 1)

/* Indexes of streams with a meaning of their own. */
#define GML_INDEX_NONE 0u   /* a request that names no stream */
#define GML_INDEX_DEVICE 1u /* "any stream of the device": plain frees, and sets over GML_TAG_COUNT */
#define GML_INDEX_FIRST 2u

/* The work that must be ordered before a reuse. Used entries come first; no stream stands twice. */
typedef struct gml_tags {
    gml_tag tag[GML_TAG_COUNT];
} gml_tags;

/* ---- spans, chunks, arenas ---- */

typedef struct gml_arena gml_arena;

typedef enum gml_span_state { GML_SPAN_FREE, GML_SPAN_LIVE, GML_SPAN_TAKEN, GML_SPAN_EMPTY } gml_span_state;

typedef struct gml_span {
    uint64_t begin, end; /* addresses */
    struct gml_span *previous, *next; /* fine: address order; coarse: the arena's list of blocks */
    union {
        struct {
            struct gml_span *previous, *next; /* FREE: the bin; EMPTY: the arena's list of empty spans */
        } list;
        struct {
            uint64_t requested_bytes;
            uint32_t stream; /* index of the stream it was allocated on */
        } block;             /* LIVE */
    } u;
    gml_arena *arena;
    gml_tags tags; /* FREE only */
    uint8_t state; /* gml_span_state */
    uint16_t bin;  /* FREE only */
} gml_span;

/* One place where a chunk is mapped. */
typedef struct gml_mapping {
    struct gml_mapping *next; /* other places of the same chunk */
    gml_arena *arena;
    uint32_t slot;
} gml_mapping;

typedef struct gml_chunk {
    gml_handle handle;     /* 0: this id is unused */
    gml_mapping *mappings; /* those in fine arenas first */
    gml_arena *owner;      /* where its live bytes are; NULL while free */
    uint32_t live;         /* live blocks that touch it */
    uint16_t fine_mappings;
    uint16_t stitched_mappings;
} gml_chunk;

/* Slots [slot, slot + count) of a coarse arena map chunks [chunk, chunk + count). */
typedef struct gml_run {
    uint32_t slot, chunk, count;
} gml_run;

struct gml_arena {
    struct gml_arena *previous, *next; /* the heap's list of its kind */
    uint64_t base, bytes;              /* reserved address range */
    uint32_t slot_count;
    uint32_t slot_end;    /* slots at or after this one were never filled: their table is not touched */
    uint32_t mapped;      /* slots that hold a chunk */
    uint32_t blocker;     /* coarse: a slot whose chunk was live when a search failed here */
    uint32_t tail;        /* coarse: slots at or after this one hold nothing */
    uint32_t live_blocks;
    uint64_t live_bytes;
    uint64_t last_use;    /* heap->clock at the last placement */
    gml_tags used;        /* everything freed here: must be done before an unmap */
    bool fine;
    bool stitched;        /* built over chunks that other arenas map too */
    uint32_t *slots;      /* slot < slot_end -> chunk id or GML_NO_CHUNK */
    uint64_t *members;    /* bitmap by chunk id: mapped here */
    gml_run *runs;        /* coarse: the slots, as runs in slot order */
    uint32_t run_count;
    gml_span *first;      /* fine: first span in address order; coarse: list of the live blocks */
    gml_span *empty;      /* fine: list of EMPTY spans */
    gml_span **last_start; /* fine: slot -> last span that begins in it */
    uint64_t *starts;      /* fine: bitmap of slots in which a span begins */
    void *pages;           /* slots, members, runs, last_start and starts live here */
    size_t pages_bytes;
};

/* ---- the gap index ---- */

#define GML_BIN_LINEAR_LOG2 6 /* 64 bins a power of two */
#define GML_BIN_ROWS 40
#define GML_BIN_COLUMNS (1u << GML_BIN_LINEAR_LOG2)

typedef struct gml_gaps {
    uint64_t rows; /* bit per non-empty row */
    uint64_t columns[GML_BIN_ROWS];
    gml_span *bins[GML_BIN_ROWS * GML_BIN_COLUMNS];
    uint64_t count;
} gml_gaps;

/* ---- streams ---- */

#define GML_WAIT_COUNT 8
#define GML_EVENT_COUNT 8

typedef struct gml_stream_state {
    gml_stream handle;
    bool dead;            /* the handle is no longer valid; the last event covers its work */
    bool used;
    uint64_t last_free;   /* sequence of the last free on it */
    uint64_t done;        /* all work before frees up to this sequence is known complete */
    unsigned event_count; /* pending events, oldest first */
    struct {
        gml_event event;
        uint64_t sequence; /* it covers every free on the stream up to this one */
    } events[GML_EVENT_COUNT];
    struct {
        uint32_t stream;
        uint64_t sequence;
    } waits[GML_WAIT_COUNT]; /* this stream waits for that one up to that sequence */
    uint32_t next_wait;
} gml_stream_state;

#define GML_MAX_STREAMS 4096

/* The handle of "the calling thread's own stream". It names another stream on every thread, so it
 * counts like a request or free that names none. */
#define GML_STREAM_PER_THREAD ((gml_stream)2)

/* ---- requests and plans ---- */

typedef struct gml_request {
    uint64_t bytes;           /* given: a multiple of GML_BLOCK_BYTES, of the chunk size in coarse arenas */
    uint64_t requested_bytes; /* asked for */
    uint64_t alignment;
    uint32_t requester; /* stream index */
    bool coarse;
} gml_request;

/* A piece of address space that a sequence of device calls works on. */
typedef struct gml_range {
    uint64_t begin, bytes;
} gml_range;

/* Spans that stay in the pool at any time, so that undoing a plan never lacks one. */
#define GML_SPARE_SPANS 16

/* ---- the heap ---- */

struct gml_heap {
    gml_device *dev;
    gml_heap_options options;
    gml_stats own_stats;
    gml_stats *stats;
    uint64_t *sequence_lock;
    uint64_t own_sequence_lock;

    gml_lock lock;
    gml_lock grow_lock; /* taken before `lock`; held over the device calls of one plan */

    uint64_t clock;     /* counts operations */
    uint64_t given_bytes; /* live blocks, in the size that was given */
    uint32_t requester; /* of the last allocation: whose view stream_held_bytes takes */
    uint64_t sequence;  /* counts frees */
    uint64_t total_bytes; /* memory of the device; 0 until first asked */
    uint64_t device_free_bytes; /* at the last look; guarded by grow_lock */
    uint64_t start_ns;    /* device time at the first growth */
    uint64_t reuse_ns, reuse_chunks; /* driver time spent on mapping free chunks elsewhere */
    uint64_t grow_ns;                /* driver time spent on new chunks */
    unsigned captures;
    bool no_context_events; /* the device cannot record an event over all its work */

    gml_chunk *chunks;
    gml_tag *chunk_tags; /* while a chunk is free: what must be ordered before a reuse, as one tag */
    uint64_t *scratch_bits; /* candidates of the plan in the making */
    uint32_t chunk_end; /* ids at or above this were never used */
    uint64_t *free_bits; /* chunk exists and is free */
    uint64_t *exist_bits;
    uint64_t free_chunks; /* read without the lock by gml_heap_idle_bytes */
    uint64_t free_low; /* fewest free chunks since the last gml_heap_release_idle */
    uint64_t stitched_chunks; /* those that count as stitched, see gml_chunk_is_stitched */
    uint64_t mapping_count;

    gml_arena *fine, *coarse;
    uint32_t fine_count;
    /* Guarded by grow_lock: a reserved range that is not an arena yet, and the work of one trim. */
    uint64_t spare_va, spare_va_bytes;
    gml_range *unmaps, *free_vas;
    uint32_t unmap_count, free_va_count;
    gml_gaps gaps;
    gml_map blocks; /* address -> LIVE span */
    gml_pool spans, mappings, arenas;

    gml_stream_state *streams;
    gml_map stream_index; /* handle + 1 -> gml_stream_state */
    uint32_t stream_end;
};

/* Brackets of every change of heap->stats, for readers in other processes. heap->lock is held. */
static inline void gml_stats_begin(gml_heap *heap)
{
    __atomic_store_n(heap->sequence_lock, *heap->sequence_lock + 1, __ATOMIC_RELAXED);
    __atomic_thread_fence(__ATOMIC_RELEASE);
}

static inline void gml_stats_end(gml_heap *heap)
{
    gml_stats *stats = heap->stats;
    uint64_t stitched = heap->stitched_chunks * heap->dev->chunk_bytes;
    /* While a plan is under way its chunks may be counted on one side only. */
    uint64_t primitive = stats->reserved_bytes - gml_min(stats->reserved_bytes, stitched);
    stats->stitched_idle_bytes = stitched - gml_min(stitched, stats->stitched_live_bytes);
    stats->primitive_idle_bytes = primitive - gml_min(primitive, stats->primitive_live_bytes);
    stats->free_chunk_bytes = heap->free_chunks * heap->dev->chunk_bytes;
    stats->largest_servable_bytes = gml_max(stats->largest_gap_bytes, stats->free_chunk_bytes);
    __atomic_store_n(heap->sequence_lock, *heap->sequence_lock + 1, __ATOMIC_RELEASE);
}

static inline void gml_unlock_changed(gml_heap *heap)
{
    gml_stats_end(heap);
    gml_lock_release(&heap->lock);
}

/* heap->free_chunks is read without the lock by gml_heap_idle_bytes. */
static inline void gml_count_free(gml_heap *heap, int64_t change)
{
    uint64_t count = heap->free_chunks + (uint64_t)change;
    __atomic_store_n(&heap->free_chunks, count, __ATOMIC_RELAXED);
    if (count < heap->free_low)
        heap->free_low = count;
}

/* A chunk counts where its live bytes are, else as stitched if any stitched arena maps it. */
static inline bool gml_chunk_is_stitched(const gml_chunk *chunk)
{
    return chunk->owner != NULL ? chunk->owner->stitched : chunk->stitched_mappings != 0;
}

static inline uint32_t gml_slot_of(const gml_heap *heap, const gml_arena *arena, uint64_t address)
{
    return (uint32_t)((address - arena->base) / heap->dev->chunk_bytes);
}

static inline uint32_t gml_slot_chunk(const gml_arena *arena, uint32_t slot)
{
    return slot < arena->slot_end ? arena->slots[slot] : GML_NO_CHUNK;
}

/* The first slot that [begin, end) touches, and how many it touches. */
static inline uint32_t gml_slots_of(const gml_heap *heap, const gml_arena *arena, uint64_t begin, uint64_t end,
                                    uint32_t *out_count)
{
    uint32_t first = gml_slot_of(heap, arena, begin);
    *out_count = gml_slot_of(heap, arena, end - 1) - first + 1;
    return first;
}

static inline uint64_t gml_slot_address(const gml_heap *heap, const gml_arena *arena, uint32_t slot)
{
    return arena->base + (uint64_t)slot * heap->dev->chunk_bytes;
}

#endif
