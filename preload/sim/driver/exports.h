/* SPDX-License-Identifier: Apache-2.0 */
/* What the simulated driver exports beside the CUDA API, for the shim, the runtime part and the tests. */
#ifndef GML_SIM_EXPORTS_H
#define GML_SIM_EXPORTS_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#define GML_SIM_EXPORT __attribute__((visibility("default")))

/* Physical bytes taken now, and at most so far; the context is left out. 0 for an unknown device. */
GML_SIM_EXPORT size_t gml_sim_used_bytes(int device);
GML_SIM_EXPORT size_t gml_sim_peak_bytes(int device);
/* What the contexts of this process take on the device. */
GML_SIM_EXPORT size_t gml_sim_context_bytes(int device);
/* The virtual clock: the profile's costs of driver calls, operations of libraries and copies, in nanoseconds. */
GML_SIM_EXPORT uint64_t gml_sim_now_ns(void);
/* How often a driver, runtime or library entry point was called so far. */
GML_SIM_EXPORT uint64_t gml_sim_calls(const char *name);
/* What the program holds now: handles with a reference of its own, reservations, maps in them, and plain
 * or stream-ordered allocations. Any pointer may be NULL. */
GML_SIM_EXPORT void gml_sim_ledger(size_t *handles, size_t *reservations, size_t *maps, size_t *allocations);
/* For the ordering oracle: a range was freed (0) or handed out again (1) on `stream`, a driver stream
 * handle; UINT64_MAX when the caller named none. See gml_note in device/device.h. */
GML_SIM_EXPORT void gml_sim_note(int what, uintptr_t va, size_t bytes, uint64_t stream);

/* For the simulated runtime and libraries. `gml_sim_touch` has a library's work on a stream touch memory:
 * device memory without access, and what was device memory once, is an illegal access; other memory is passed over. */
GML_SIM_EXPORT int gml_sim_touch(const void *pointer, size_t bytes, void *stream);
GML_SIM_EXPORT _Atomic uint64_t *gml_sim_counter(const char *name);
GML_SIM_EXPORT void gml_sim_stub(const char *name, int has_outputs);
GML_SIM_EXPORT void gml_sim_work(double flops); /* advances the virtual clock by so many operations */
/* Device work of a library on a stream; `writes` when it may leave results that memory does not show. */
GML_SIM_EXPORT int gml_sim_launch(void *stream, int writes);
/* Whether all work of a stream is done. Unlike a query it orders nothing: the oracle learns nothing from it. */
GML_SIM_EXPORT int gml_sim_idle(void *stream);

/* Whether the contents of device memory are known, asked in stream order: 0 no, 1 in part, 2 yes; and that they no
 * longer are. */
GML_SIM_EXPORT int gml_sim_known(const void *pointer, size_t bytes);
GML_SIM_EXPORT void gml_sim_forget(const void *pointer, size_t bytes);

#endif
