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

/* A product of nothing touches nothing. */
static int product_of(struct blas *blas, int64_t m, int64_t n, int64_t k, int64_t batch, const void *a, const void *b,
                      const void *c)
{
    if (blas && m > 0 && n > 0 && k > 0 && batch > 0 && sim_library_operands(blas->stream, a, b, c))
        return CUBLAS_EXECUTION_FAILED;
    return product(blas, m, n, k, batch);
}

/* Only the sizes, the matrices and the batch count matter; factors and strides are passed over. */
#define GEMM(name)                                                                                        \
    LIBRARY(name, (struct blas * blas, int ta, int tb, int m, int n, int k, const void *alpha,            \
                   const void *a, int lda, const void *b, int ldb, const void *beta, void *c, int ldc))   \
    {                                                                                                     \
        (void)ta, (void)tb, (void)alpha, (void)lda, (void)ldb, (void)beta, (void)ldc;                     \
        COUNT(name);                                                                                      \
        return product_of(blas, m, n, k, 1, a, b, c);                                                     \
    }
GEMM(cublasSgemm_v2)
GEMM(cublasDgemm_v2)
GEMM(cublasCgemm_v2)
GEMM(cublasZgemm_v2)
GEMM(cublasHgemm)

#define GEMM_TYPED(name)                                                                                  \
    LIBRARY(name, (struct blas * blas, int ta, int tb, int m, int n, int k, const void *alpha,            \
                   const void *a, int type_a, int lda, const void *b, int type_b, int ldb,                \
                   const void *beta, void *c, int type_c, int ldc))                                       \
    {                                                                                                     \
        (void)ta, (void)tb, (void)alpha, (void)type_a, (void)lda, (void)type_b, (void)ldb, (void)beta;    \
        (void)type_c, (void)ldc;                                                                          \
        COUNT(name);                                                                                      \
        return product_of(blas, m, n, k, 1, a, b, c);                                                     \
    }
GEMM_TYPED(cublasSgemmEx)
GEMM_TYPED(cublasGemmEx)

#define GEMM_STRIDED(name)                                                                                \
    LIBRARY(name, (struct blas * blas, int ta, int tb, int m, int n, int k, const void *alpha,            \
                   const void *a, int lda, long long sa, const void *b, int ldb, long long sb,            \
                   const void *beta, void *c, int ldc, long long sc, int batch))                          \
    {                                                                                                     \
        (void)ta, (void)tb, (void)alpha, (void)lda, (void)sa, (void)ldb, (void)sb, (void)beta, (void)ldc; \
        (void)sc;                                                                                         \
        COUNT(name);                                                                                      \
        return product_of(blas, m, n, k, batch, a, b, c);                                                          \
    }
GEMM_STRIDED(cublasSgemmStridedBatched)
GEMM_STRIDED(cublasDgemmStridedBatched)
GEMM_STRIDED(cublasCgemmStridedBatched)
GEMM_STRIDED(cublasZgemmStridedBatched)
GEMM_STRIDED(cublasHgemmStridedBatched)

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
    (void)ta, (void)tb, (void)alpha, (void)type_a, (void)lda, (void)sa, (void)type_b, (void)ldb, (void)sb;
    (void)beta, (void)type_c, (void)ldc, (void)sc;
    COUNT(cublasGemmStridedBatchedEx);
    return product_of(blas, m, n, k, batch, a, b, c);
}
