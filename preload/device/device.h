/* SPDX-License-Identifier: Apache-2.0 */
/* Device contract: everything the allocator core may ask of a GPU, as one table of functions.
 *
 * Implementations: the CUDA driver (device/cuda.c), a pure model with a budget and strict rules
 * (device/model.c), and two decorators: one fails the n-th call of a kind (device/fault.c), one counts
 * with costs that were given for calls instead of what they took (device/priced.c). The heap itself
 * counts and times the calls that it makes. A conforming device keeps these rules, all taken from the
 * CUDA driver's virtual memory management:
 *
 *  - A handle is the unit of mapping: `map` always maps a whole handle, at offset 0.
 *  - One handle may be mapped at several addresses at once. Releasing a mapped handle is legal; its
 *    memory returns when the last mapping goes.
 *  - `unmap` takes whole mappings only; one call may cover a contiguous range of several mappings.
 *  - A new mapping may not be touched before `set_access`; one call covers a contiguous range.
 *  - map, unmap and set_access act at once on the host. They are not ordered by any stream, so a
 *    range may be unmapped only after the work that may touch it has finished.
 *  - A failed call changes nothing.
 *
 * Units: bytes and nanoseconds. Thread-safety: every function may be called from any thread. */
#ifndef GML_DEVICE_DEVICE_H
#define GML_DEVICE_DEVICE_H

#include "base/status.h"

#include <stddef.h>
#include <stdint.h>

typedef uint64_t gml_handle; /* one physical allocation; 0 is none */
typedef uint64_t gml_event;  /* one event; 0 is none */
typedef uint64_t gml_stream; /* the driver's stream handle as an integer; 0 is the legacy default stream */

/* "No stream": the caller did not name one (cudaMalloc, cudaFree). As the stream of
 * `event_record` it means all work of the context so far. */
#define GML_STREAM_NONE UINT64_MAX

/* What `note` tells a checking device (the simulated GPU's ordering oracle). */
typedef enum gml_note {
    GML_NOTE_FREE, /* the range was given back on `stream`: work before the free may still touch it */
    GML_NOTE_REUSE /* the range is handed out again for use on `stream` */
} gml_note;

/* X(name): the calls that the meter counts and the fault decorator can fail. */
#define GML_DEVICE_CALLS(X) \
    X(create)               \
    X(release)              \
    X(reserve)              \
    X(free_va)              \
    X(map)                  \
    X(unmap)                \
    X(set_access)           \
    X(event_record)         \
    X(event_query)          \
    X(event_sync)           \
    X(stream_wait)          \
    X(sync)                 \
    X(mem_info)

typedef enum gml_device_call {
#define X(name) GML_CALL_##name,
    GML_DEVICE_CALLS(X)
#undef X
    GML_CALL_COUNT
} gml_device_call;

typedef struct gml_device gml_device;

typedef struct gml_device_ops {
    /* Physical memory: `bytes` is a multiple of the chunk size. OUT_OF_MEMORY when the device is full. */
    gml_status (*create)(gml_device *dev, size_t bytes, gml_handle *out_handle);
    gml_status (*release)(gml_device *dev, gml_handle handle);
    /* Address space, aligned to the chunk size. OUT_OF_ADDRESSES when there is none. */
    gml_status (*reserve)(gml_device *dev, size_t bytes, uintptr_t *out_va);
    gml_status (*free_va)(gml_device *dev, uintptr_t va, size_t bytes);
    gml_status (*map)(gml_device *dev, uintptr_t va, size_t bytes, gml_handle handle);
    gml_status (*unmap)(gml_device *dev, uintptr_t va, size_t bytes);
    gml_status (*set_access)(gml_device *dev, uintptr_t va, size_t bytes);
    /* Events. `event_record` creates the event; `stream` may be GML_STREAM_NONE. UNSUPPORTED: the
     * device has no event over a whole context (use `sync`). `event_query` answers OK or NOT_READY. */
    gml_status (*event_record)(gml_device *dev, gml_stream stream, gml_event *out_event);
    gml_status (*event_query)(gml_device *dev, gml_event event);
    gml_status (*event_sync)(gml_device *dev, gml_event event);
    gml_status (*event_destroy)(gml_device *dev, gml_event event);
    /* Work submitted to `stream` after this call starts only when `event` has completed. */
    gml_status (*stream_wait)(gml_device *dev, gml_stream stream, gml_event event);
    /* Wait for all work of the context. */
    gml_status (*sync)(gml_device *dev);
    gml_status (*mem_info)(gml_device *dev, size_t *out_free, size_t *out_total);
    /* A clock that never runs backwards, in nanoseconds; virtual on a simulated device. */
    uint64_t (*now_ns)(gml_device *dev);
    /* For checking devices; NULL when the device does not check. */
    void (*note)(gml_device *dev, gml_note what, uintptr_t va, size_t bytes, gml_stream stream);
} gml_device_ops;

struct gml_device {
    const gml_device_ops *ops;
    size_t chunk_bytes; /* allocation granularity: 2 MiB on every current GPU */
};

#endif
