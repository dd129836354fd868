/* SPDX-License-Identifier: Apache-2.0 */
/* cuSOLVER and cuFFT: handles, and workspace sizes of the order that the real ones ask for. */
#include "sim/libs/libs.h"

#include <stdlib.h>

#define MAKER(name)                         \
    LIBRARY(name, (void **out))             \
    {                                       \
        return sim_library_new(out, 64);    \
    }
#define DROPPER(name)                       \
    LIBRARY(name, (void *object))           \
    {                                       \
        free(object);                       \
        return 0;                           \
    }
MAKER(cusolverDnCreate)
DROPPER(cusolverDnDestroy)
MAKER(cusolverDnCreateParams)
DROPPER(cusolverDnDestroyParams)
MAKER(cusolverDnCreateGesvdjInfo)
DROPPER(cusolverDnDestroyGesvdjInfo)

MAKER(cusolverDnCreateSyevjInfo)
DROPPER(cusolverDnDestroySyevjInfo)

LIBRARY(cusolverDnSetStream, (void *handle, void *stream))
{
    (void)handle, (void)stream;
    return 0;
}

/* Factorisations of an m x n matrix: a workspace as large as the matrix, in elements. */
#define FACTOR(name)                                                                   \
    LIBRARY(name, (void *handle, int m, int n, void *a, int lda, int *elements))       \
    {                                                                                  \
        (void)handle, (void)a, (void)lda;                                              \
        *elements = m * n;                                                             \
        return 0;                                                                      \
    }
FACTOR(cusolverDnSgeqrf_bufferSize)
FACTOR(cusolverDnDgeqrf_bufferSize)
FACTOR(cusolverDnCgeqrf_bufferSize)
FACTOR(cusolverDnZgeqrf_bufferSize)
FACTOR(cusolverDnSgetrf_bufferSize)
FACTOR(cusolverDnDgetrf_bufferSize)
FACTOR(cusolverDnCgetrf_bufferSize)
FACTOR(cusolverDnZgetrf_bufferSize)

#define CHOLESKY(name)                                                                 \
    LIBRARY(name, (void *handle, int uplo, int n, void *a, int lda, int *elements))    \
    {                                                                                  \
        (void)handle, (void)uplo, (void)a, (void)lda;                                  \
        *elements = n * n;                                                             \
        return 0;                                                                      \
    }
CHOLESKY(cusolverDnSpotrf_bufferSize)
CHOLESKY(cusolverDnDpotrf_bufferSize)
CHOLESKY(cusolverDnCpotrf_bufferSize)
CHOLESKY(cusolverDnZpotrf_bufferSize)

/* Eigenvalues and solutions with the matrix and one vector besides. */
#define EIGEN(name)                                                                                        \
    LIBRARY(name, (void *handle, int job, int uplo, int n, const void *a, int lda, const void *w, int *elements)) \
    {                                                                                                      \
        (void)handle, (void)job, (void)uplo, (void)a, (void)lda, (void)w;                                  \
        *elements = 2 * n * n + 64;                                                                        \
        return 0;                                                                                          \
    }
EIGEN(cusolverDnSsyevd_bufferSize)
EIGEN(cusolverDnDsyevd_bufferSize)
EIGEN(cusolverDnCheevd_bufferSize)
EIGEN(cusolverDnZheevd_bufferSize)
EIGEN(cusolverDnSsyevj_bufferSize)
EIGEN(cusolverDnDsyevj_bufferSize)
EIGEN(cusolverDnCheevj_bufferSize)
EIGEN(cusolverDnZheevj_bufferSize)

/* Products with the orthogonal factor of a QR factorisation. */
#define ORTHOGONAL(name)                                                                                   \
    LIBRARY(name, (void *handle, int m, int n, int k, const void *a, int lda, const void *tau, int *elements)) \
    {                                                                                                      \
        (void)handle, (void)k, (void)a, (void)lda, (void)tau;                                              \
        *elements = m * n + 64;                                                                            \
        return 0;                                                                                          \
    }
ORTHOGONAL(cusolverDnSorgqr_bufferSize)
ORTHOGONAL(cusolverDnDorgqr_bufferSize)
ORTHOGONAL(cusolverDnCungqr_bufferSize)
ORTHOGONAL(cusolverDnZungqr_bufferSize)

#define SINGULAR(name)                                                                                     \
    LIBRARY(name, (void *handle, int m, int n, int *elements))                                             \
    {                                                                                                      \
        (void)handle;                                                                                      \
        *elements = 4 * (m + n) + m * n;                                                                   \
        return 0;                                                                                          \
    }
SINGULAR(cusolverDnSgesvd_bufferSize)
SINGULAR(cusolverDnDgesvd_bufferSize)
SINGULAR(cusolverDnCgesvd_bufferSize)
SINGULAR(cusolverDnZgesvd_bufferSize)

#define JACOBI(name)                                                                                       \
    LIBRARY(name, (void *handle, int job, int econ, int m, int n, const void *a, int lda, const void *s,   \
                   const void *u, int ldu, const void *v, int ldv, int *elements, void *params))           \
    {                                                                                                      \
        (void)handle, (void)job, (void)econ, (void)a, (void)lda, (void)s, (void)u, (void)ldu, (void)v;     \
        (void)ldv, (void)params;                                                                           \
        *elements = 4 * (m + n) + m * n;                                                                   \
        return 0;                                                                                          \
    }
JACOBI(cusolverDnSgesvdj_bufferSize)
JACOBI(cusolverDnDgesvdj_bufferSize)
JACOBI(cusolverDnCgesvdj_bufferSize)
JACOBI(cusolverDnZgesvdj_bufferSize)

#define JACOBI_BATCHED(name)                                                                               \
    LIBRARY(name, (void *handle, int job, int m, int n, const void *a, int lda, const void *s, const void *u, \
                   int ldu, const void *v, int ldv, int *elements, void *params, int batch))               \
    {                                                                                                      \
        (void)handle, (void)job, (void)a, (void)lda, (void)s, (void)u, (void)ldu, (void)v, (void)ldv;      \
        (void)params;                                                                                      \
        *elements = (4 * (m + n) + m * n) * batch;                                                         \
        return 0;                                                                                          \
    }
JACOBI_BATCHED(cusolverDnSgesvdjBatched_bufferSize)
JACOBI_BATCHED(cusolverDnDgesvdjBatched_bufferSize)
JACOBI_BATCHED(cusolverDnCgesvdjBatched_bufferSize)
JACOBI_BATCHED(cusolverDnZgesvdjBatched_bufferSize)

LIBRARY(cusolverDnXsyevd_bufferSize,
        (void *handle, void *params, int job, int uplo, int64_t n, int type_a, const void *a, int64_t lda, int type_w,
         const void *w, int compute, size_t *on_device, size_t *on_host))
{
    (void)handle, (void)params, (void)job, (void)uplo, (void)type_a, (void)a, (void)lda, (void)type_w, (void)w;
    (void)compute;
    *on_device = (size_t)n * (size_t)n * 8;
    *on_host = 0;
    return 0;
}

LIBRARY(cusolverDnXsyevBatched_bufferSize,
        (void *handle, void *params, int job, int uplo, int64_t n, int type_a, const void *a, int64_t lda, int type_w,
         const void *w, int compute, size_t *on_device, size_t *on_host, int64_t batch))
{
    (void)handle, (void)params, (void)job, (void)uplo, (void)type_a, (void)a, (void)lda, (void)type_w, (void)w;
    (void)compute;
    *on_device = (size_t)n * (size_t)n * 8 * (size_t)batch;
    *on_host = 0;
    return 0;
}

LIBRARY(cusolverDnXpotrf_bufferSize, (void *handle, void *params, int uplo, int64_t n, int type_a, const void *a,
                                      int64_t lda, int compute, size_t *on_device, size_t *on_host))
{
    (void)handle, (void)params, (void)uplo, (void)type_a, (void)a, (void)lda, (void)compute;
    *on_device = (size_t)n * (size_t)n * 8;
    *on_host = 0;
    return 0;
}

LIBRARY(cusolverDnXgeqrf_bufferSize,
        (void *handle, void *params, int64_t m, int64_t n, int type_a, const void *a, int64_t lda, int type_tau,
         const void *tau, int compute, size_t *on_device, size_t *on_host))
{
    (void)handle, (void)params, (void)type_a, (void)a, (void)lda, (void)type_tau, (void)tau, (void)compute;
    *on_device = (size_t)m * (size_t)n * 8;
    *on_host = 0;
    return 0;
}

/* Products with the orthogonal factor. */
#define PRODUCT(name)                                                                                      \
    LIBRARY(name, (void *handle, int side, int transpose, int m, int n, int k, const void *a, int lda,     \
                   const void *tau, const void *c, int ldc, int *elements))                                \
    {                                                                                                      \
        (void)handle, (void)side, (void)transpose, (void)k, (void)a, (void)lda, (void)tau, (void)c;        \
        (void)ldc;                                                                                         \
        *elements = m * n + 64;                                                                            \
        return 0;                                                                                          \
    }
PRODUCT(cusolverDnSormqr_bufferSize)
PRODUCT(cusolverDnDormqr_bufferSize)
PRODUCT(cusolverDnCunmqr_bufferSize)
PRODUCT(cusolverDnZunmqr_bufferSize)

#define EIGEN_BATCHED(name)                                                                                \
    LIBRARY(name, (void *handle, int job, int uplo, int n, const void *a, int lda, const void *w,          \
                   int *elements, void *params, int batch))                                                \
    {                                                                                                      \
        (void)handle, (void)job, (void)uplo, (void)a, (void)lda, (void)w, (void)params;                    \
        *elements = (2 * n * n + 64) * batch;                                                              \
        return 0;                                                                                          \
    }
EIGEN_BATCHED(cusolverDnSsyevjBatched_bufferSize)
EIGEN_BATCHED(cusolverDnDsyevjBatched_bufferSize)
EIGEN_BATCHED(cusolverDnCheevjBatched_bufferSize)
EIGEN_BATCHED(cusolverDnZheevjBatched_bufferSize)

#define SYMMETRIC(name)                                                                                    \
    LIBRARY(name, (void *handle, int n, void *a, int lda, int *elements))                                  \
    {                                                                                                      \
        (void)handle, (void)a, (void)lda;                                                                  \
        *elements = n * n;                                                                                 \
        return 0;                                                                                          \
    }
SYMMETRIC(cusolverDnSsytrf_bufferSize)
SYMMETRIC(cusolverDnDsytrf_bufferSize)
SYMMETRIC(cusolverDnCsytrf_bufferSize)
SYMMETRIC(cusolverDnZsytrf_bufferSize)

#define SINGULAR_STRIDED(name)                                                                             \
    LIBRARY(name, (void *handle, int job, int rank, int m, int n, const void *a, int lda, long long sa,    \
                   const void *s, long long ss, const void *u, int ldu, long long su, const void *v,       \
                   int ldv, long long sv, int *elements, int batch))                                       \
    {                                                                                                      \
        (void)handle, (void)job, (void)rank, (void)a, (void)lda, (void)sa, (void)s, (void)ss, (void)u;     \
        (void)ldu, (void)su, (void)v, (void)ldv, (void)sv;                                                 \
        *elements = (4 * (m + n) + m * n) * batch;                                                         \
        return 0;                                                                                          \
    }
SINGULAR_STRIDED(cusolverDnSgesvdaStridedBatched_bufferSize)
SINGULAR_STRIDED(cusolverDnDgesvdaStridedBatched_bufferSize)
SINGULAR_STRIDED(cusolverDnCgesvdaStridedBatched_bufferSize)
SINGULAR_STRIDED(cusolverDnZgesvdaStridedBatched_bufferSize)

LIBRARY(cusolverDnXgeev_bufferSize,
        (void *handle, void *params, int left, int right, int64_t n, int type_a, const void *a, int64_t lda,
         int type_w, const void *w, int type_l, const void *vl, int64_t ldl, int type_r, const void *vr, int64_t ldr,
         int compute, size_t *on_device, size_t *on_host))
{
    (void)handle, (void)params, (void)left, (void)right, (void)type_a, (void)a, (void)lda, (void)type_w, (void)w;
    (void)type_l, (void)vl, (void)ldl, (void)type_r, (void)vr, (void)ldr, (void)compute;
    *on_device = *on_host = (size_t)n * (size_t)n * 16;
    return 0;
}

LIBRARY(cusolverDnXsytrs_bufferSize,
        (void *handle, int uplo, int64_t n, int64_t columns, int type_a, const void *a, int64_t lda,
         const int64_t *pivots, int type_b, void *b, int64_t ldb, size_t *on_device, size_t *on_host))
{
    (void)handle, (void)uplo, (void)type_a, (void)a, (void)lda, (void)pivots, (void)type_b, (void)b, (void)ldb;
    *on_device = (size_t)n * (size_t)columns * 16;
    *on_host = 0;
    return 0;
}

/* ---- cuFFT: a plan is a number; its workspace is taken to be as large as one transform ---- */

LIBRARY(cufftCreate, (int *plan))
{
    static _Atomic int next;
    *plan = ++next;
    return 0;
}

LIBRARY(cufftSetAutoAllocation, (int plan, int on))
{
    (void)plan, (void)on;
    return 0;
}

LIBRARY(cufftXtMakePlanMany, (int plan, int rank, long long *n, long long *inembed, long long istride, long long idist,
                              int itype, long long *onembed, long long ostride, long long odist, int otype,
                              long long batch, size_t *workspace, int etype))
{
    (void)plan, (void)inembed, (void)istride, (void)idist, (void)itype, (void)onembed, (void)ostride, (void)odist;
    (void)otype, (void)etype;
    size_t elements = (size_t)batch;
    for (int i = 0; i < rank; i++) elements *= (size_t)n[i];
    *workspace = elements * 8;
    return 0;
}
