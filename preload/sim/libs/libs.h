/* SPDX-License-Identifier: Apache-2.0 */
/* Simulated CUDA libraries: what their files share. A library does its work by taking its place in a
 * stream (a launch that does nothing) and, for products and convolutions, by advancing the virtual clock. */
#ifndef GML_SIM_LIBS_H
#define GML_SIM_LIBS_H

#include "sim/runtime/runtime.h"

#define LIBRARY(name, params) SIM_ENTRY(int, name, params)

/* Counts a call of a library function. */
#define COUNT(name)                \
    do {                           \
        static struct sim_cell c_; \
        sim_count(&c_, #name);     \
    } while (0)

/* Work on a stream; the result is a CUDA error, 0 for success. */
int sim_library_launch(void *stream);
/* Work of a product of m x k and k x n matrices, `batch` times. */
int sim_library_product(void *stream, int64_t m, int64_t n, int64_t k, int64_t batch);
/* Work of so many operations (a multiplication and an addition are two). */
int sim_library_work(void *stream, double operations);
/* The work touches these matrices: one whose memory is not mapped for the device is an illegal access. */
int sim_library_operands(void *stream, const void *a, const void *b, const void *c);
/* The work touches these bytes; not 0: they are device memory without access. */
int sim_library_touch(void *stream, const void *pointer, size_t bytes);
/* A zeroed object of a library; handles of the libraries are plain memory. */
int sim_library_new(void **out, size_t bytes);

#endif
