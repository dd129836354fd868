/* SPDX-License-Identifier: Apache-2.0 */
/* cuBLAS: handles with their settings, and matrix products as time on a stream. */
#include "sim/libs/blas.h"

#include <stdlib.h>

LIBRARY(cublasCreate_v2, (struct blas **out))
{
    COUNT(cublasCreate);
    return sim_library_new((void **)out, sizeof **out) ? CUBLAS_ALLOC_FAILED : CUBLAS_SUCCESS;
}

LIBRARY(cublasDestroy_v2, (struct blas *blas))
{
    free(blas);
    return CUBLAS_SUCCESS;
}

#define SETTING(name, type, member)                          \
    LIBRARY(cublasSet##name, (struct blas * blas, type value)) \
    {                                                        \
        if (!blas) return CUBLAS_NOT_INITIALIZED;            \
        blas->member = value;                                \
        return CUBLAS_SUCCESS;                               \
    }                                                        \
    LIBRARY(cublasGet##name, (struct blas * blas, type *out)) \
    {                                                        \
        if (!blas) return CUBLAS_NOT_INITIALIZED;            \
        *out = blas->member;                                 \
        return CUBLAS_SUCCESS;                               \
    }
SETTING(MathMode, int, math_mode)
SETTING(PointerMode_v2, int, pointer_mode)
SETTING(Stream_v2, void *, stream)

LIBRARY(cublasSetWorkspace_v2, (struct blas * blas, void *workspace, size_t bytes))
{
    (void)workspace, (void)bytes;
    return blas ? CUBLAS_SUCCESS : CUBLAS_NOT_INITIALIZED;
}

LIBRARY(cublasGetVersion_v2, (struct blas * blas, int *out))
{
    (void)blas;
    *out = 130100;
    return CUBLAS_SUCCESS;
}

SIM_ENTRY(const char *, cublasGetStatusString, (int status))
{
    return status ? "simulated cuBLAS: not done" : "the cuBLAS library was successfully simulated";
}

SIM_ENTRY(const char *, cublasGetStatusName, (int status))
{
    return status ? "CUBLAS_STATUS_NOT_SUPPORTED" : "CUBLAS_STATUS_SUCCESS";
}

static int product(struct blas *blas, int64_t m, int64_t n, int64_t k, int64_t batch)
{
    if (!blas) return CUBLAS_NOT_INITIALIZED;
    if (m < 0 || n < 0 || k < 0 || batch < 0) return CUBLAS_INVALID_VALUE;
    return sim_library_product(blas->stream, m, n, k, batch) ? CUBLAS_EXECUTION_FAILED : CUBLAS_SUCCESS;
}

/* The operands of a product of matrices: types by their bytes, and what lies between those of a batch. */
struct operands {
    const void *a, *b;
    void *c;
    size_t width_a, width_b, width_c;
    int64_t lda, ldb, ldc, stride_a, stride_b, stride_c;
    int transpose_a, transpose_b;
};

/* A product of nothing touches nothing. */
static int product_of(struct blas *blas, int64_t m, int64_t n, int64_t k, int64_t batch, const struct operands *o)
{
    const bool ta = o->transpose_a != 0, tb = o->transpose_b != 0;
    const struct library_matrix matrices[] = {
        {o->a, o->width_a, ta ? k : m, ta ? m : k, o->lda, batch, o->stride_a},
        {o->b, o->width_b, tb ? n : k, tb ? k : n, o->ldb, batch, o->stride_b},
        {o->c, o->width_c, m, n, o->ldc, batch, o->stride_c},
    };
    if (blas && m > 0 && n > 0 && k > 0 && sim_library_matrices(blas->stream, matrices, 3))
        return CUBLAS_EXECUTION_FAILED;
    return product(blas, m, n, k, batch);
}

/* Factors are passed over. */
#define GEMM(name, width)                                                                                 \
    LIBRARY(name, (struct blas * blas, int ta, int tb, int m, int n, int k, const void *alpha,            \
                   const void *a, int lda, const void *b, int ldb, const void *beta, void *c, int ldc))   \
    {                                                                                                     \
        (void)alpha, (void)beta;                                                                          \
        COUNT(name);                                                                                      \
        const struct operands o = {a, b, c, width, width, width, lda, ldb, ldc, 0, 0, 0, ta, tb};         \
        return product_of(blas, m, n, k, 1, &o);                                                          \
    }
GEMM(cublasSgemm_v2, 4)
GEMM(cublasDgemm_v2, 8)
GEMM(cublasCgemm_v2, 8)
GEMM(cublasZgemm_v2, 16)
GEMM(cublasHgemm, 2)

#define GEMM_TYPED(name)                                                                                  \
    LIBRARY(name, (struct blas * blas, int ta, int tb, int m, int n, int k, const void *alpha,            \
                   const void *a, int type_a, int lda, const void *b, int type_b, int ldb,                \
                   const void *beta, void *c, int type_c, int ldc))                                       \
    {                                                                                                     \
        (void)alpha, (void)beta;                                                                          \
        COUNT(name);                                                                                      \
        const struct operands o = {a, b, c, sim_library_width(type_a), sim_library_width(type_b),         \
                                   sim_library_width(type_c), lda, ldb, ldc, 0, 0, 0, ta, tb};            \
        return product_of(blas, m, n, k, 1, &o);                                                          \
    }
GEMM_TYPED(cublasSgemmEx)
GEMM_TYPED(cublasGemmEx)

#define GEMM_STRIDED(name, width)                                                                         \
    LIBRARY(name, (struct blas * blas, int ta, int tb, int m, int n, int k, const void *alpha,            \
                   const void *a, int lda, long long sa, const void *b, int ldb, long long sb,            \
                   const void *beta, void *c, int ldc, long long sc, int batch))                          \
    {                                                                                                     \
        (void)alpha, (void)beta;                                                                          \
        COUNT(name);                                                                                      \
        const struct operands o = {a, b, c, width, width, width, lda, ldb, ldc, sa, sb, sc, ta, tb};      \
        return product_of(blas, m, n, k, batch, &o);                                                      \
    }
GEMM_STRIDED(cublasSgemmStridedBatched, 4)
GEMM_STRIDED(cublasDgemmStridedBatched, 8)
GEMM_STRIDED(cublasCgemmStridedBatched, 8)
GEMM_STRIDED(cublasZgemmStridedBatched, 16)
GEMM_STRIDED(cublasHgemmStridedBatched, 2)

/* The matrices are named by arrays in device memory, which nobody reads here. */
#define GEMM_ARRAYS(name)                                                                                 \
    LIBRARY(name, (struct blas * blas, int ta, int tb, int m, int n, int k, const void *alpha,            \
                   const void *a, int lda, const void *b, int ldb, const void *beta, void *c, int ldc,    \
                   int batch))                                                                            \
    {                                                                                                     \
        (void)ta, (void)tb, (void)alpha, (void)a, (void)lda, (void)b, (void)ldb, (void)beta, (void)c;     \
        (void)ldc;                                                                                        \
        COUNT(name);                                                                                      \
        return product(blas, m, n, k, batch);                                                             \
    }
GEMM_ARRAYS(cublasSgemmBatched)
GEMM_ARRAYS(cublasDgemmBatched)
GEMM_ARRAYS(cublasCgemmBatched)
GEMM_ARRAYS(cublasZgemmBatched)

LIBRARY(cublasGemmStridedBatchedEx,
        (struct blas * blas, int ta, int tb, int m, int n, int k, const void *alpha, const void *a, int type_a, int lda,
         long long sa, const void *b, int type_b, int ldb, long long sb, const void *beta, void *c, int type_c, int ldc,
         long long sc, int batch))
{
    (void)alpha, (void)beta;
    COUNT(cublasGemmStridedBatchedEx);
    const struct operands o = {a, b, c, sim_library_width(type_a), sim_library_width(type_b), sim_library_width(type_c),
                               lda, ldb, ldc, sa, sb, sc, ta, tb};
    return product_of(blas, m, n, k, batch, &o);
}
