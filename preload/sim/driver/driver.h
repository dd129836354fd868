/* SPDX-License-Identifier: Apache-2.0 */
/* Simulated CUDA driver: the state and the functions that its files share.
 *
 * Glossary: a *phys* is one physical allocation (what cuMemCreate makes, or the memory behind
 * cuMemAlloc); a *range* is a reserved or allocated virtual range; a *map* binds a piece of a range to a
 * phys. Names end in _locked where the caller holds `sim.lock`; entry points take it themselves.
 * Prefix sim_ = inside this library, gml_sim_ = exported for the shim and the tests. */
#ifndef GML_SIM_DRIVER_H
#define GML_SIM_DRIVER_H

#include "cuda/driver_abi.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SIM_MAX_DEVICES 16
#define SIM_CHUNK ((size_t)2 << 20) /* granularity of physical memory and of the page table */
#define SIM_NO_STREAM UINT64_MAX
#define SIM_CAPTURE_STREAMS 64

/* Declares and defines an exported function: the public ABI has no header of ours. */
#define SIM_EXPORT __attribute__((visibility("default")))
#define SIM_ENTRY(type, name, params) \
    SIM_EXPORT type name params;      \
    SIM_EXPORT type name params
#define DRIVER(name, params) SIM_ENTRY(CUresult, name, params)

/* First line of a driver entry point: counts the call, injects a fault, refuses without cuInit. */
#define ENTER(name)                                                 \
    do {                                                            \
        static struct sim_counter *counter_;                        \
        CUresult enter_ = sim_enter(&counter_, #name);              \
        if (enter_ != CUDA_SUCCESS) return enter_;                  \
    } while (0)
/* The same, for calls that need a current context, which becomes `ctx`. */
#define ENTER_CTX(name, ctx)                                        \
    ENTER(name);                                                    \
    struct sim_ctx *ctx;                                            \
    do {                                                            \
        CUresult ctx_ = sim_ctx_current(&ctx);                      \
        if (ctx_ != CUDA_SUCCESS) return ctx_;                      \
    } while (0)

/* ---- configuration (config.c) ---- */

struct sim_profile {
    const char *name, *full_name;
    size_t total_bytes, context_bytes;
    int cc_major, cc_minor, sms;
    double peak_tflops, bandwidth_gbps;
};

struct sim_config {
    const struct sim_profile *profile; /* NULL: the simulation is off */
    size_t total_bytes;
    int devices;
    bool strict, oracle, adversarial;
    uint64_t seed;
    size_t va_bytes; /* virtual space for device addresses */
};

/* Reads the environment once, at the first call. */
const struct sim_config *sim_config_get(void);
size_t sim_size_parse(const char *text); /* "80G", "512MiB", "84942979072"; ends at a comma */

/* ---- counters and report (count.c) ---- */

struct sim_counter {
    const char *name;
    _Atomic uint64_t calls;
    bool stub;
    struct sim_counter *next;
};

struct sim_counter *sim_counter_get(const char *name);
void sim_report_arm(void); /* writes sim-<pid>.json at exit if there is a run directory */
/* Faults on demand (fault.c): what the call answers instead; may sleep. Halfway faults let a call over
 * several maps act on the first half of them before it fails. */
CUresult sim_fault_check(const char *name, uint64_t call);
CUresult sim_fault_halfway(void);
size_t sim_fault_foreign_bytes(void); /* held by "another process" after so many physical allocations */
void sim_fault_read(void);
extern _Atomic bool sim_faults_on;

/* ---- objects behind handles (object.c) ---- */

enum sim_kind {
    SIM_CTX = 1,
    SIM_STREAM,
    SIM_EVENT,
    SIM_PHYS,
    SIM_POOL,
    SIM_GRAPH,
    SIM_EXEC,
    SIM_NODE,
    SIM_USER_OBJECT,
    SIM_MODULE,
    SIM_FUNCTION,
    SIM_KIND_COUNT
};

struct sim_object {
    uint32_t magic; /* 0 when freed */
    uint32_t kind;
    struct sim_object *next_free;
};

/* A zeroed object of `kind`; NULL without memory. Handles of dead objects never validate. */
void *sim_object_new_locked(enum sim_kind kind);
void sim_object_free_locked(void *object);
/* The object behind a handle from outside, or NULL. */
void *sim_object_get_locked(enum sim_kind kind, const void *handle);
void sim_object_each_locked(enum sim_kind kind, void (*see)(const void *object, void *context), void *context);

/* ---- physical memory (phys.c) ---- */

struct sim_mark; /* the oracle's notes on pieces of a phys */

struct sim_phys {
    struct sim_object object;
    size_t bytes;
    uint64_t offset; /* in the backing file; never used again after release */
    int device;      /* owner of the budget; -1: host memory */
    unsigned refs;   /* cuMemCreate, retain, import, fork of a map */
    unsigned maps;
    bool dirty; /* bytes were written: release must punch a hole */
    uint64_t written; /* launches of kernels so far when a copy or fill wrote it last */
    bool pooled; /* the pool accounts for it, not the device */
    uint64_t id;
    CUmemAllocationProp prop;
    struct sim_mark *marks;
};

CUresult sim_phys_new_locked(int device, size_t bytes, bool pooled, struct sim_phys **out);
size_t sim_phys_held_locked(void); /* handles that the program has not released */
void sim_phys_unref_locked(struct sim_phys *phys); /* frees it when nothing refers to it any more */
bool sim_phys_read(const struct sim_phys *phys, size_t at, void *dst, size_t bytes);
bool sim_phys_write(struct sim_phys *phys, size_t at, const void *src, size_t bytes);
void sim_phys_zero(struct sim_phys *phys, size_t at, size_t bytes);
bool sim_budget_take_locked(int device, size_t bytes);
void sim_budget_give_locked(int device, size_t bytes);

/* ---- virtual memory (pages.c) ---- */

enum sim_range_kind {
    SIM_RANGE_RESERVED, /* cuMemAddressReserve */
    SIM_RANGE_MALLOC,   /* cuMemAlloc: one map over the whole range */
    SIM_RANGE_POOL,     /* cuMemAllocAsync */
    SIM_RANGE_MANAGED   /* cuMemAllocManaged: host memory, always accessible */
};

struct sim_range {
    uintptr_t va;
    size_t bytes;    /* as asked for */
    size_t va_bytes; /* whole chunks */
    enum sim_range_kind kind;
    int device;
    struct sim_ctx *ctx;
    struct sim_pool *pool;
    uint64_t id;
    unsigned maps;
    bool freeing; /* cuMemFreeAsync was called, the stream has not come to it */
    struct sim_range *prev, *next;
};

struct sim_map {
    uintptr_t va;
    size_t bytes;
    struct sim_phys *phys;
    size_t live_bytes; /* blocks that the oracle knows to be in use here */
    unsigned char access[SIM_MAX_DEVICES];
};

struct sim_page {
    struct sim_range *range;
    struct sim_map *map;
};

/* Host address space (addresses.c): 0 when there is none. */
uintptr_t sim_addresses_map(size_t bytes, size_t align, uintptr_t hint);
uintptr_t sim_addresses_take_locked(size_t bytes);
void sim_addresses_give_locked(uintptr_t va, size_t bytes);
/* Reserves host address space (PROT_NONE) and a range over it. `hint` may be 0. */
CUresult sim_range_new_locked(size_t bytes, size_t align, uintptr_t hint, enum sim_range_kind kind,
                              struct sim_range **out);
void sim_range_free_locked(struct sim_range *range);
struct sim_range *sim_range_first_locked(void);
/* The page of an address; both members NULL where nothing is. */
struct sim_page sim_page_locked(uintptr_t va);
struct sim_range *sim_range_find_locked(uintptr_t va);
CUresult sim_map_new_locked(uintptr_t va, struct sim_phys *phys, struct sim_map **out);
void sim_map_free_locked(struct sim_map *map);
/* True when every byte of the range may be touched by `device`. */
bool sim_access_ok_locked(uintptr_t va, size_t bytes, int device);

/* ---- host memory that the device knows (host.c) ---- */

struct sim_host {
    uintptr_t va;
    size_t bytes;
    bool registered; /* cuMemHostRegister: not ours to unmap */
    unsigned flags;
    struct sim_ctx *ctx;
};

struct sim_host *sim_host_find_locked(uintptr_t va);

/* ---- history of addresses (history.c) ---- */

void sim_history_add_locked(const char *what, uintptr_t va, size_t bytes, uint64_t detail);
void sim_history_print_locked(uintptr_t va, size_t bytes);

/* ---- contexts (context.c) ---- */

struct sim_stream;

/* A vector clock, see oracle.c. */
struct sim_clock {
    unsigned count, room;
    uint64_t *at;
};

struct sim_ctx {
    struct sim_object object;
    int device;
    bool primary;
    unsigned refs;
    unsigned flags;
    CUresult sticky; /* an illegal access poisons the context for good */
    uint64_t id;
    struct sim_stream *legacy;
    struct sim_stream *streams; /* the legacy one included, and destroyed ones until their work is done */
    struct sim_clock ended;     /* the work of those that are gone */
    struct sim_stream *helper;  /* where events over the whole context are recorded */
};

CUresult sim_enter(struct sim_counter **counter, const char *name);
CUresult sim_ctx_current(struct sim_ctx **out);
/* The calling thread's context whether usable or not; NULL without one. */
struct sim_ctx *sim_ctx_peek(void);
CUresult sim_ctx_fault_locked(struct sim_ctx *ctx, const char *what, uintptr_t va, size_t bytes);

/* ---- streams and their work (stream.c, queue.c) ---- */

enum sim_op_kind {
    SIM_OP_KERNEL,
    SIM_OP_COPY,
    SIM_OP_FILL,
    SIM_OP_HOST,
    SIM_OP_RECORD,
    SIM_OP_WAIT,
    SIM_OP_FREE,
    SIM_OP_TOUCH,
    SIM_OP_EMPTY
};

struct sim_event;

struct sim_op {
    struct sim_op *next;
    enum sim_op_kind kind;
    uint64_t seq;
    union {
        struct {
            uintptr_t dst, src;
            size_t bytes, rows, dst_pitch, src_pitch; /* rows of `bytes` bytes each */
            void *staging;                            /* copy of a pageable source */
            bool plain;                               /* a call that waits: the larger cap */
        } copy;
        struct {
            uintptr_t va;
            uint32_t value;
            unsigned width; /* bytes of the value: 1, 2 or 4 */
            size_t count, rows, pitch;
            bool plain;
        } fill;
        struct {
            CUhostFn fn;
            CUstreamCallback callback;
            void *user;
        } host;
        struct {
            struct sim_event *event;
        } record;
        struct {
            struct sim_stream *stream;
            uint64_t seq;
        } wait;
        struct {
            uintptr_t va;
            uint64_t id; /* of the range, so that a stale free finds nothing */
        } free;
        struct {
            uintptr_t va;
            size_t bytes;
        } touch;
    } u;
};

struct sim_capture;

struct sim_stream {
    struct sim_object object;
    struct sim_ctx *ctx;
    struct sim_stream *next; /* in the context's list */
    unsigned flags;
    int priority;
    uint64_t id;
    unsigned refs; /* handle, worker, events and waits that point here */
    bool listed, destroyed, worker, running;
    uint64_t submitted, completed;
    struct sim_op *head, *tail;
    unsigned slot;
    struct sim_clock clock;
    struct sim_capture *capture;
    uint64_t random;
    pthread_cond_t wake; /* its worker has something to do */
    bool unjoined;       /* took part in a capture and was not waited for since */
    uint64_t captured;   /* nodes it added to the capture */
};

/* The stream behind a handle, the legacy and per-thread ones made on demand. 400 / 709 when it is dead. */
CUresult sim_stream_get_locked(struct sim_ctx *ctx, CUstream handle, struct sim_stream **out);
void sim_stream_unref_locked(struct sim_stream *stream);
/* Takes a destroyed stream whose work is done out of its context's list. */
void sim_stream_end_locked(struct sim_stream *stream);
struct sim_stream *sim_stream_new_locked(struct sim_ctx *ctx, unsigned flags, int priority);
/* Hands work to a stream: runs at once where nothing is before it, else queues. Takes over `op`'s
 * pointers; while the stream is captured the work becomes a node instead. */
CUresult sim_submit_locked(struct sim_stream *stream, const struct sim_op *op);
struct sim_stream *sim_ctx_helper_locked(struct sim_ctx *ctx); /* a stream of its own, non-blocking */
void sim_wait_until_locked(struct sim_stream *stream, uint64_t seq);
void sim_ctx_wait_locked(struct sim_ctx *ctx);
void sim_breathe_locked(unsigned us); /* called by every synchronisation of the API */
bool sim_stream_idle_locked(const struct sim_stream *stream);
void sim_op_execute_locked(struct sim_stream *stream, struct sim_op *op);
void sim_op_drop_locked(struct sim_op *op);
/* An address range with queued copies or fills that touch it: the stream, else NULL. */
struct sim_stream *sim_pending_touch_locked(uintptr_t va, size_t bytes);

/* ---- events (event.c) ---- */

struct sim_event {
    struct sim_object object;
    struct sim_ctx *ctx;
    unsigned flags;
    unsigned refs;
    bool destroyed, recorded;
    struct sim_stream *stream; /* where it was recorded last; NULL when that is done with */
    uint64_t seq;
    uint64_t time_ns;
    struct sim_clock clock;
    uint64_t capture_id; /* recorded in this capture; 0: not captured */
    uint64_t captured;   /* how many nodes its stream had added by then */
};

void sim_event_unref_locked(struct sim_event *event);

/* ---- captures and graphs (capture.c, graph.c) ---- */

struct sim_graph {
    struct sim_object object;
    struct sim_op *head, *tail;
    size_t nodes;
};

struct sim_capture {
    uint64_t id;
    CUstreamCaptureMode mode;
    pthread_t thread;
    bool invalid, to_existing_graph;
    struct sim_stream *origin;
    struct sim_graph *graph;
    unsigned members; /* streams that take part, the origin first */
    struct sim_stream *member[SIM_CAPTURE_STREAMS];
    struct sim_capture *next;
};

struct sim_capture *sim_capture_find_locked(uint64_t id);
void sim_capture_spoil_locked(struct sim_capture *capture);
/* A wait on an event that touches a capture on either side. `*done` says that it was dealt with here. */
CUresult sim_capture_wait_locked(struct sim_stream *stream, struct sim_event *event, bool *done);

/* Refuses a potentially unsafe call while a capture forbids it, and spoils that capture. */
CUresult sim_capture_unsafe_locked(void);
/* The same for a call that names a stream (synchronise, query). */
CUresult sim_capture_refuse_locked(struct sim_stream *stream);
CUresult sim_capture_add_locked(struct sim_stream *stream, const struct sim_op *op);
/* Refuses work on the legacy stream while a blocking stream of its context is captured. */
CUresult sim_capture_legacy_locked(struct sim_ctx *ctx);
struct sim_op *sim_op_clone(const struct sim_op *op);

/* ---- memory pools (pool.c) ---- */

struct sim_pool {
    struct sim_object object;
    int device;
    bool is_default;
    size_t used, reserved, used_high, reserved_high, max_bytes;
    uint64_t threshold;
    int reuse[3];
    int handle_types;
    unsigned pending; /* frees whose stream has not come to them */
};

struct sim_pool *sim_pool_default_locked(int device);
/* Unmaps and forgets an allocation of any kind but a reservation (alloc.c). */
void sim_allocation_free_locked(struct sim_range *range);
void sim_pool_return_locked(struct sim_range *range);
void sim_pool_relax_locked(void); /* at a synchronisation: give back what is over the threshold */

/* ---- copies (copy.c) ---- */

CUresult sim_copy_locked(struct sim_ctx *ctx, const struct sim_op *op);
CUresult sim_fill_locked(struct sim_ctx *ctx, const struct sim_op *op);
CUresult sim_touch_locked(struct sim_ctx *ctx, const struct sim_op *op);

/* ---- ordering oracle (oracle.c) ---- */

unsigned sim_slot_new_locked(void);
void sim_slot_free_locked(unsigned slot, uint64_t value);
void sim_clock_join(struct sim_clock *into, const struct sim_clock *from);
void sim_clock_set(struct sim_clock *clock, unsigned slot, uint64_t value);
uint64_t sim_clock_at(const struct sim_clock *clock, unsigned slot);
void sim_clock_clear(struct sim_clock *clock);
/* Everything `clock` covers has finished, as the host knows. */
void sim_host_knows_locked(const struct sim_clock *clock);
void sim_oracle_unmap_locked(const struct sim_map *map);
void sim_marks_free_locked(struct sim_phys *phys);

/* ---- virtual time (clock.c) ---- */

void sim_time_add(uint64_t ns);
void sim_time_copy(size_t bytes);

/* ---- the state ---- */

struct sim_device {
    size_t used, peak;
    unsigned contexts; /* each takes the profile's context bytes */
    size_t foreign;    /* memory held by "another process" (faults on demand) */
    struct sim_ctx *primary;
    struct sim_pool *pool, *current_pool;
    bool peers[SIM_MAX_DEVICES];
};

struct sim_state {
    pthread_mutex_t lock;
    pthread_cond_t progress; /* some stream completed something */
    _Atomic bool ready, forked;
    struct sim_device device[SIM_MAX_DEVICES];
    uint64_t next_id;
    struct sim_clock host;        /* work that some host thread knows to be done */
    struct sim_capture *captures; /* the active ones */
    uint64_t launches;            /* kernels and library work executed so far */
};

extern struct sim_state sim;

static inline size_t sim_round_up(size_t n, size_t to)
{
    return (n + to - 1) / to * to;
}

static inline void sim_lock(void)
{
    pthread_mutex_lock(&sim.lock);
}

static inline void sim_unlock(void)
{
    pthread_mutex_unlock(&sim.lock);
}

#endif
