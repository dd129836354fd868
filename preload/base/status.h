/* SPDX-License-Identifier: Apache-2.0 */
/* Status codes: the one error type of every fallible function in this library. */
#ifndef GML_BASE_STATUS_H
#define GML_BASE_STATUS_H

/* X(NAME, text). The enum, the names and the documentation table come from this list. */
#define GML_STATUSES(X)                                                                    \
    X(OK, "success")                                                                       \
    X(OUT_OF_MEMORY, "no physical memory left")                                            \
    X(OUT_OF_ADDRESSES, "no address space left")                                           \
    X(OUT_OF_METADATA, "no memory left for the allocator's own bookkeeping")               \
    X(INVALID, "an argument is not valid")                                                 \
    X(NOT_FOUND, "the pointer, symbol or entry is unknown")                                \
    X(NOT_READY, "work on the device has not finished yet")                                \
    X(NO_CONTEXT, "no context is current on this thread")                                  \
    X(UNSUPPORTED, "the device or library cannot do this")                                 \
    X(CAPTURING, "not allowed while a stream is being captured")                           \
    X(DEVICE_LOST, "the device or its driver has gone away")                               \
    X(OS, "the operating system refused a call")                                           \
    X(INTERNAL, "a bug in this library: an invariant does not hold")

typedef enum gml_status {
#define X(name, text) GML_##name,
    GML_STATUSES(X)
#undef X
    GML_STATUS_COUNT
} gml_status;

#define GML_CHECKED __attribute__((warn_unused_result))

/* The name ("OUT_OF_MEMORY") and the one-line text of a status; "UNKNOWN" for any other value. */
const char *gml_status_name(gml_status status);
const char *gml_status_text(gml_status status);

#endif
