/* SPDX-License-Identifier: Apache-2.0 */
/* Shim: the one state of the preloaded library, and how a hooked call gets at it.
 *
 * Nothing exists before the first call that is served or observed. A process forked after that passes
 * everything through, as the driver's memory is not its own. Locks: `open_lock` over the first use
 * of a device and over a reset; `oom_lock` over the out-of-memory records; neither is held on the hot
 * path, nor while another is taken, but for the ledger's and that of stacks.c. */
#ifndef GML_INTERPOSE_SHIM_H
#define GML_INTERPOSE_SHIM_H

#include "core/heap.h"
#include "device/cuda.h"
#include "device/priced.h"
#include "interpose/ledger.h"
#include "interpose/lookup.h"
#include "interpose/stacks.h"
#include "interpose/torch_env.h"
#include "telemetry/steps.h"
#include "telemetry/writer.h"

#include <stdatomic.h>

#define GML_SHIM_DEVICES GML_TELEMETRY_DEVICES

/* What we do with the program's requests, decided once from GML_ALLOCATOR. */
typedef enum gml_shim_mode {
    GML_SHIM_SERVE,  /* vms: requests go to the heap */
    GML_SHIM_FORWARD /* everything else: requests go to the real functions and are counted */
} gml_shim_mode;

typedef enum gml_device_state {
    GML_DEVICE_NEW,
    GML_DEVICE_WATCHED,  /* attached: figures can be read */
    GML_DEVICE_SERVING,  /* it has a heap */
    GML_DEVICE_UNUSABLE  /* it could not be opened; requests are forwarded */
} gml_device_state;

/* Figures of the default pool that the program may reset, as cudaMemPoolAttr has them. */
typedef struct gml_pool_marks {
    _Atomic bool reset;              /* a high mark was reset; from then on every allocation raises them */
    _Atomic uint64_t used_high;      /* since the reset */
    _Atomic uint64_t reserved_high;
    _Atomic uint64_t used_peak;      /* the heap's own peaks at the reset */
    _Atomic uint64_t reserved_peak;
    _Atomic bool used_is_reset, reserved_is_reset;
    _Atomic bool releases;           /* the program set a release threshold below the maximum */
    _Atomic uint64_t release_threshold;
} gml_pool_marks;

typedef struct gml_shim_device {
    _Atomic int state; /* gml_device_state */
    int ordinal;
    gml_heap *heap; /* set before the state becomes SERVING */
    gml_device_block *block;
    gml_cuda_device cuda;
    gml_device *priced; /* over `cuda`, for the heap; NULL when no costs were given */
    _Atomic(cudaMemPool_t) default_pool;
    _Atomic bool own_pool; /* the program made a pool of its own the current one */
    _Atomic uint64_t released_ns; /* when idle memory was given back last */
    _Atomic unsigned reuse_off; /* bit per cudaMemPoolReuse* attribute that the program set to 0 */
    _Atomic uint32_t peers; /* devices that may use this one's memory */
    gml_pool_marks marks;
    _Atomic uint64_t refreshed_ns; /* coarse clock */
    _Atomic uint64_t looked_at;    /* sum of the peaks at the last look at the device */
    _Atomic uint64_t outside_bytes; /* used on the device beside what we count, at the last look */
    _Atomic uint64_t forwarded_count; /* live blocks that the real functions gave */
    gml_steps steps;
    _Atomic uint64_t timed_driver_ns; /* of the heap's sum, what is in the histograms */
    _Atomic uint64_t told[GML_EVENT_KIND_COUNT]; /* counters as they were when events last told of them */
    gml_lock torch_lock;    /* over torch_sizes; nothing is taken while it is held */
    gml_tally torch_sizes;  /* live blocks of PyTorch's own allocator */
} gml_shim_device;

typedef struct gml_shim {
    gml_shim_mode mode;
    gml_torch_backend backend; /* what we made PyTorch's allocator */
    bool tensors; /* PyTorch's tensors are expected to arrive as cudaMallocAsync */
    bool uncached; /* PyTorch's caching allocator is off: nothing else would report its failures */
    bool check;
    bool has_driver;
    bool simulated;
    const char *rival; /* another preloaded allocator behind us, by its library's name; NULL: none */
    uint64_t limit_bytes;
    uint64_t release_idle_ns; /* give idle memory back at this interval; 0: never */
    gml_goal goal;
    uint64_t max_driver_time_ppm;
    bool has_prices; /* costs of the driver's memory calls were given */
    gml_prices prices;
    gml_telemetry *telemetry;
    gml_stacks *stacks; /* NULL: lines are not asked for */
    gml_gradients gradients;
    size_t (*sim_peak_bytes)(int device); /* the simulator's own figures; NULL on a real device */
    size_t (*sim_used_bytes)(int device);
    gml_cuda_driver driver;
    gml_ledger ledger;
    gml_lock open_lock;
    gml_lock oom_lock;
    _Atomic unsigned generation; /* counts device resets: contexts must be made current anew */
    _Atomic unsigned said;       /* bits of messages that were given once */
    _Atomic int device_end;      /* devices at or above this one were never used */
    gml_shim_device devices[GML_SHIM_DEVICES];
} gml_shim;

/* Messages that are given once: bits of `said`. */
enum { GML_SAID_IPC = 1, GML_SAID_SEGMENTS = 2, GML_SAID_CAPTURED_FREE = 4, GML_SAID_DEGRADED = 8, GML_SAID_DEVICE = 16 };

typedef enum gml_thread_role { GML_THREAD_NEW, GML_THREAD_AUTOGRAD, GML_THREAD_OTHER } gml_thread_role;

/* What each thread knows. `depth` > 0: inside a hook, so hooked calls pass through. */
typedef struct gml_thread {
    unsigned depth;
    unsigned generation;
    uint32_t ready; /* devices whose context was current on this thread */
    bool timed;     /* the next call of the heap is */
    uint8_t role;   /* gml_thread_role; read when it is first needed */
    char name[16];  /* of the thread; read when it is first needed */
} gml_thread;

extern _Thread_local gml_thread gml_this_thread
    __attribute__((tls_model("initial-exec"), visibility("hidden")));

/* The state; made on first use. NULL: pass everything through. */
gml_shim *gml_shim_get(void);

/* The state if it exists. NULL before the first use, in a forked child. */
gml_shim *gml_shim_peek(void);

/* The calling thread's name, as it was when it was first asked for: at most 15 characters, the rest of 16 zeros. */
const char *gml_shim_thread_name(void);

/* This is a forked child of a process whose PyTorch we gave this backend. */
bool gml_shim_inherited(gml_torch_backend backend);

/* The device, with its name and memory known, or NULL when it cannot be looked at. The device's
 * primary context must be active. */
gml_shim_device *gml_shim_watch(gml_shim *shim, int ordinal);

/* Makes the device's context current on this thread and opens its heap, at first use. Returns 0, or
 * the error with which the runtime refused the context. Check the state afterwards. */
cudaError_t gml_shim_ready(gml_shim *shim, const gml_real *real, gml_shim_device *device);

/* Drops the device's heap and records: the program resets the device. */
void gml_shim_reset(gml_shim *shim, gml_shim_device *device);

/* Gives a message to observers, once for each bit of `said`. */
void gml_shim_say(gml_shim *shim, unsigned said, const char *text);

/* After an internal fault: new requests go to the driver, blocks that exist stay served. */
void gml_shim_degrade(gml_shim *shim, const char *why);
bool gml_shim_degraded(const gml_shim *shim);

/* Device `peer` may use the device's memory, from now on and what is mapped already. */
void gml_shim_add_peer(gml_shim *shim, gml_shim_device *device, int peer);

/* The current device's entry; NULL where there is none, or no state. */
gml_shim_device *gml_shim_current(gml_shim *shim, const gml_real *real);

/* ---- retry.c ---- */

/* Gives the device's idle memory back to the driver, if that is any: then a call that failed for want of
 * memory may be made once more. `device` may be NULL. No device call during a capture. */
bool gml_shim_make_room(gml_shim *shim, gml_shim_device *device);

/* The runtime's last error before a first try; and, when the second one succeeded, the end of the error
 * that the first one left, unless there was one before. */
cudaError_t gml_shim_last_error(const gml_real *real);
void gml_shim_forgive(const gml_real *real, cudaError_t before);

/* ---- count.c ---- */

/* After every call that the heap served. */
void gml_shim_after_served(gml_shim *shim, gml_shim_device *device);

/* A block that the program got on this thread, and that is about to end: whose steps and lines are kept. */
void gml_shim_born(gml_shim *shim, gml_shim_device *device, uintptr_t address, uint64_t bytes);
void gml_shim_dies(gml_shim *shim, uintptr_t address);

/* Counts a block that the real functions gave the program, and one that they took back. */
void gml_shim_count(gml_shim *shim, int ordinal, uintptr_t address, size_t bytes);
void gml_shim_uncount(gml_shim *shim, gml_ledger_entry entry);

/* ---- refresh.c: figures that are not kept at every change ---- */

/* After a served or counted call: brings computed figures up to date, at most every 100 ms. */
void gml_shim_tick(gml_shim *shim, gml_shim_device *device);

/* Reads the device's free memory now. */
void gml_shim_look(gml_shim *shim, gml_shim_device *device);

/* Notes how much memory the device has free, as somebody just read it. */
void gml_shim_note_free(gml_shim *shim, gml_shim_device *device, uint64_t free_bytes, uint64_t total_bytes);

/* Records an out-of-memory failure. */
typedef enum gml_oom_source { GML_OOM_HEAP, GML_OOM_TORCH, GML_OOM_DRIVER } gml_oom_source;
void gml_shim_record_oom(gml_shim *shim, gml_shim_device *device, uint64_t bytes, uint64_t stream,
                         gml_oom_source source);

/* ---- capture.c ---- */

/* True when work on the stream is being recorded into a graph. */
bool gml_capture_on(gml_shim *shim, cudaStream_t stream);

/* The stream's handle in the driver's terms: 0 legacy, 2 the calling thread's own. */
cudaStream_t gml_stream_normal(cudaStream_t stream, bool per_thread);

/* The device whose default pool this is; NULL for any other pool. */
gml_shim_device *gml_pool_device(gml_shim *shim, cudaMemPool_t pool);

/* Begins a hook that forwards: `real` is the runtime that the call was meant for. */
#define GML_HOOK(function)                                                  \
    const gml_real *real = gml_lookup_caller(__builtin_return_address(0)).real; \
    if (real == NULL || real->function == NULL)                             \
        return cudaErrorInsufficientDriver

static inline bool gml_shim_inside(void)
{
    return gml_this_thread.depth > 0;
}

static inline gml_device_state gml_shim_state(const gml_shim_device *device)
{
    return (gml_device_state)atomic_load_explicit(&device->state, memory_order_acquire);
}

#endif
