/* SPDX-License-Identifier: Apache-2.0 */
/* A CUDA runtime that keeps books instead of memory: what the tests ask it afterwards. */
#ifndef GML_TESTS_FAKE_CUDART_H
#define GML_TESTS_FAKE_CUDART_H

#include "cuda/runtime_abi.h"

typedef struct fake_books {
    int version;       /* 12 or 13 */
    int mallocs;       /* calls of cudaMalloc */
    int async_mallocs; /* calls of cudaMallocAsync */
    int frees;
    int async_frees;
    int live;
    cudaError_t last_error;
    cudaError_t fail_next; /* the next allocation answers this */
    int reenter;           /* cudaMalloc calls cudaMallocAsync through the global scope */
} fake_books;

/* Exported by each fake under the name fake_books_get. */
typedef fake_books *(*fake_books_fn)(void);

#endif
