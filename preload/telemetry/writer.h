/* SPDX-License-Identifier: Apache-2.0 */
/* Telemetry writer: makes the process's shared file and keeps its fields.
 *
 * Every field is one aligned word and is changed by relaxed atomics, so any thread may write. The
 * heap keeps its own statistics inside a device block, under the block's sequence lock; the
 * functions here never touch that lock. No trouble here may disturb the program: without a file
 * the same memory is simply private. */
#ifndef GML_TELEMETRY_WRITER_H
#define GML_TELEMETRY_WRITER_H

#include "telemetry/layout.h"

#include <stdbool.h>
#include <stddef.h>

typedef struct gml_telemetry_setup {
    const char *run_directory; /* empty: no file */
    const char *allocator;
    const char *intercept;
    const char *goal;
    bool simulated;
} gml_telemetry_setup;

/* Creates `<run directory>/telemetry/<pid>.gml` (`<pid>.<n>.gml` when the process exec'ed and an
 * earlier image has left one), or private memory where that fails. NULL only without memory. */
gml_telemetry *gml_telemetry_open(const gml_telemetry_setup *setup);

/* Sets the message that an observer should tell the user; the last one wins, all of them are events. */
void gml_telemetry_message(gml_telemetry *telemetry, const char *text);

/* Appends an event, or adds to the last one of its kind on the device where that is less than ten seconds old and
 * neither has a text. `text` may be NULL. Any thread. */
void gml_telemetry_event(gml_telemetry *telemetry, gml_event_kind kind, uint64_t device, uint64_t count,
                         uint64_t bytes, const char *text);
#define GML_EVENT_NO_DEVICE UINT64_MAX

/* Appends an out-of-memory record; the time is filled in. One caller at a time. */
void gml_telemetry_oom(gml_telemetry *telemetry, const gml_oom_record *record);

static inline void gml_telemetry_set(uint64_t *field, uint64_t value)
{
    __atomic_store_n(field, value, __ATOMIC_RELAXED);
}

static inline uint64_t gml_telemetry_get(const uint64_t *field)
{
    return __atomic_load_n(field, __ATOMIC_RELAXED);
}

static inline void gml_telemetry_add(uint64_t *field, uint64_t value)
{
    (void)__atomic_fetch_add(field, value, __ATOMIC_RELAXED);
}

/* Raises the field to `value`; true when that changed it. */
static inline bool gml_telemetry_raise(uint64_t *field, uint64_t value)
{
    uint64_t seen = __atomic_load_n(field, __ATOMIC_RELAXED);
    while (seen < value)
        if (__atomic_compare_exchange_n(field, &seen, value, true, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
            return true;
    return false;
}

#endif
