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
/* A matrix that work touches, column by column; `stride` elements from one of a batch to the next. */
struct library_matrix {
    const void *at;
    size_t width; /* bytes of an element; 0: not known, its first byte counts */
    int64_t rows, columns, leading, batch, stride;
};

/* The work touches these matrices: memory without access for the device, or freed, is an illegal access. */
int sim_library_matrices(void *stream, const struct library_matrix *matrix, size_t count);
/* Bytes of an element of cudaDataType_t; 0 for a type that is not known. */
size_t sim_library_width(int type);
/* The work touches these bytes; not 0: they are device memory without access. */
int sim_library_touch(void *stream, const void *pointer, size_t bytes);
/* What is known of these bytes: all (2), some (1) or nothing (0). */
int sim_library_known(const void *pointer, size_t bytes);
/* Nothing is known of these bytes any more. */
void sim_library_forget(const void *pointer, size_t bytes);
/* A zeroed object of a library; handles of the libraries are plain memory. */
int sim_library_new(void **out, size_t bytes);

#endif
