/* SPDX-License-Identifier: Apache-2.0 */
/* cuBLAS: functions with a result besides matrices. Scalars of a vector are 0, as what kernels compute is
 * (a host result waits for the stream, a device result is written in order), and host status words say
 * that all arguments were right. */
#include "sim/libs/blas.h"

#include <string.h>

SIM_EXPORT cudaError_t cudaMemsetAsync(void *memory, int value, size_t count, cudaStream_t stream);
SIM_EXPORT cudaError_t cudaStreamSynchronize(cudaStream_t stream);

static int reduce(struct blas *blas, int n, const void *x, const void *y, void *result, size_t bytes)
{
    if (!blas) return CUBLAS_NOT_INITIALIZED;
    if (!result || !bytes) return CUBLAS_INVALID_VALUE;
    if (n > 0 && (sim_library_touch(blas->stream, x, 1) || sim_library_touch(blas->stream, y, 1)))
        return CUBLAS_EXECUTION_FAILED;
    if (sim_library_launch(blas->stream)) return CUBLAS_EXECUTION_FAILED;
    if (blas->pointer_mode == CUBLAS_POINTER_DEVICE)
        return cudaMemsetAsync(result, 0, bytes, blas->stream) ? CUBLAS_EXECUTION_FAILED : CUBLAS_SUCCESS;
    if (cudaStreamSynchronize(blas->stream)) return CUBLAS_EXECUTION_FAILED;
    memset(result, 0, bytes);
    return CUBLAS_SUCCESS;
}

#define DOT(name, bytes)                                                                                   \
    LIBRARY(name, (struct blas * blas, int n, const void *x, int step_x, const void *y, int step_y, void *result)) \
    {                                                                                                      \
        (void)step_x, (void)step_y;                                                                        \
        COUNT(name);                                                                                       \
        return reduce(blas, n, x, y, result, bytes);                                                       \
    }
DOT(cublasSdot_v2, 4)
DOT(cublasDdot_v2, 8)
DOT(cublasCdotu_v2, 8)
DOT(cublasCdotc_v2, 8)
DOT(cublasZdotu_v2, 16)
DOT(cublasZdotc_v2, 16)

LIBRARY(cublasDotEx, (struct blas * blas, int n, const void *x, int type_x, int step_x, const void *y, int type_y,
                      int step_y, void *result, int type, int execution))
{
    (void)type_x, (void)step_x, (void)type_y, (void)step_y, (void)execution;
    COUNT(cublasDotEx);
    return reduce(blas, n, x, y, result, sim_library_width(type));
}

/* Norms and sums are real, also of complex vectors; an index of 0 means an empty vector. */
#define OF_ONE(name, bytes)                                                                     \
    LIBRARY(name, (struct blas * blas, int n, const void *x, int step, void *result))           \
    {                                                                                           \
        (void)step;                                                                             \
        COUNT(name);                                                                            \
        return reduce(blas, n, x, x, result, bytes);                                            \
    }
OF_ONE(cublasSnrm2_v2, 4)
OF_ONE(cublasScnrm2_v2, 4)
OF_ONE(cublasDnrm2_v2, 8)
OF_ONE(cublasDznrm2_v2, 8)
OF_ONE(cublasSasum_v2, 4)
OF_ONE(cublasScasum_v2, 4)
OF_ONE(cublasDasum_v2, 8)
OF_ONE(cublasDzasum_v2, 8)
OF_ONE(cublasIsamax_v2, 4)
OF_ONE(cublasIdamax_v2, 4)
OF_ONE(cublasIcamax_v2, 4)
OF_ONE(cublasIzamax_v2, 4)
OF_ONE(cublasIsamin_v2, 4)
OF_ONE(cublasIdamin_v2, 4)
OF_ONE(cublasIcamin_v2, 4)
OF_ONE(cublasIzamin_v2, 4)

/* Batched factorisations and solutions: `info` is in host memory, one word for the whole call. */
static int batched(struct blas *blas, int *info)
{
    if (!blas) return CUBLAS_NOT_INITIALIZED;
    if (!info) return CUBLAS_INVALID_VALUE;
    *info = 0;
    return sim_library_launch(blas->stream) ? CUBLAS_EXECUTION_FAILED : CUBLAS_SUCCESS;
}

#define BATCHED(type)                                                                                         \
    LIBRARY(cublas##type##geqrfBatched, (struct blas * blas, int m, int n, void *const *a, int lda,           \
                                         void *const *tau, int *info, int batch))                             \
    {                                                                                                         \
        (void)m, (void)n, (void)a, (void)lda, (void)tau, (void)batch;                                         \
        COUNT(cublas##type##geqrfBatched);                                                                    \
        return batched(blas, info);                                                                           \
    }                                                                                                         \
    LIBRARY(cublas##type##getrsBatched,                                                                       \
            (struct blas * blas, int transpose, int n, int columns, const void *const *a, int lda,            \
             const int *pivots, void *const *b, int ldb, int *info, int batch))                               \
    {                                                                                                         \
        (void)transpose, (void)n, (void)columns, (void)a, (void)lda, (void)pivots, (void)b, (void)ldb, (void)batch; \
        COUNT(cublas##type##getrsBatched);                                                                    \
        return batched(blas, info);                                                                           \
    }                                                                                                         \
    LIBRARY(cublas##type##gelsBatched,                                                                        \
            (struct blas * blas, int transpose, int m, int n, int columns, void *const *a, int lda,           \
             void *const *c, int ldc, int *info, int *on_device, int batch))                                  \
    {                                                                                                         \
        (void)transpose, (void)m, (void)n, (void)columns, (void)a, (void)lda, (void)c, (void)ldc;             \
        (void)on_device, (void)batch;                                                                         \
        COUNT(cublas##type##gelsBatched);                                                                     \
        return batched(blas, info);                                                                           \
    }
BATCHED(S)
BATCHED(D)
BATCHED(C)
BATCHED(Z)
