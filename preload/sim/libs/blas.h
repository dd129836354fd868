/* SPDX-License-Identifier: Apache-2.0 */
/* Simulated cuBLAS: what its files share. */
#ifndef GML_SIM_BLAS_H
#define GML_SIM_BLAS_H

#include "sim/libs/libs.h"

enum {
    CUBLAS_SUCCESS = 0,
    CUBLAS_NOT_INITIALIZED = 1,
    CUBLAS_ALLOC_FAILED = 3,
    CUBLAS_INVALID_VALUE = 7,
    CUBLAS_EXECUTION_FAILED = 13
};
enum { CUBLAS_POINTER_HOST, CUBLAS_POINTER_DEVICE };

struct blas {
    int math_mode, pointer_mode;
    void *stream;
};

#endif
