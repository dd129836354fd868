/* SPDX-License-Identifier: Apache-2.0 */
/* cuSPARSE: matrix descriptors as plain objects, workspaces of a fixed size, texts. */
#include "sim/libs/libs.h"

#include <stdlib.h>

/* Makers take more arguments than these; only where the object goes matters. */
#define MAKER(name)                      \
    LIBRARY(name, (void **out))          \
    {                                    \
        COUNT(name);                     \
        return sim_library_new(out, 64); \
    }
#define DROPPER(name)                    \
    LIBRARY(name, (void *object))        \
    {                                    \
        free(object);                    \
        return 0;                        \
    }
MAKER(cusparseCreate)
DROPPER(cusparseDestroy)
MAKER(cusparseCreateMatDescr)
DROPPER(cusparseDestroyMatDescr)
MAKER(cusparseCreateDnMat)
MAKER(cusparseCreateDnVec)
DROPPER(cusparseDestroySpMat)
DROPPER(cusparseDestroyDnMat)
DROPPER(cusparseDestroyDnVec)
MAKER(cusparseSpGEMM_createDescr)
DROPPER(cusparseSpGEMM_destroyDescr)
MAKER(cusparseSpSM_createDescr)
DROPPER(cusparseSpSM_destroyDescr)
MAKER(cusparseSpSV_createDescr)
DROPPER(cusparseSpSV_destroyDescr)
MAKER(cusparseCreateBsrsm2Info)
DROPPER(cusparseDestroyBsrsm2Info)
MAKER(cusparseCreateBsrsv2Info)
DROPPER(cusparseDestroyBsrsv2Info)

struct matrix {
    int64_t rows, columns, values;
};

/* The arrays that follow the sizes are passed over. */
#define SPARSE(name)                                                                              \
    LIBRARY(name, (struct matrix * *out, int64_t rows, int64_t columns, int64_t values))          \
    {                                                                                             \
        COUNT(name);                                                                              \
        if (sim_library_new((void **)out, sizeof **out)) return 2; /* CUSPARSE_STATUS_ALLOC_FAILED */ \
        **out = (struct matrix){rows, columns, values};                                           \
        return 0;                                                                                 \
    }
SPARSE(cusparseCreateCsr)
SPARSE(cusparseCreateCoo)

/* A product keeps the count of values that its matrix was made with: none, as of all-zero data. */
LIBRARY(cusparseSpMatGetSize, (const struct matrix *matrix, int64_t *rows, int64_t *columns, int64_t *values))
{
    *rows = matrix->rows;
    *columns = matrix->columns;
    *values = matrix->values;
    return 0;
}

static const size_t WORKSPACE = 64 << 10;

LIBRARY(cusparseSpMM_bufferSize,
        (void *handle, int op_a, int op_b, const void *alpha, void *a, void *b, const void *beta, void *c, int type,
         int algorithm, size_t *bytes))
{
    (void)handle, (void)op_a, (void)op_b, (void)alpha, (void)a, (void)b, (void)beta, (void)c, (void)type;
    (void)algorithm;
    *bytes = WORKSPACE;
    return 0;
}

LIBRARY(cusparseSDDMM_bufferSize,
        (void *handle, int op_a, int op_b, const void *alpha, void *a, void *b, const void *beta, void *c, int type,
         int algorithm, size_t *bytes))
{
    (void)handle, (void)op_a, (void)op_b, (void)alpha, (void)a, (void)b, (void)beta, (void)c, (void)type;
    (void)algorithm;
    *bytes = WORKSPACE;
    return 0;
}

LIBRARY(cusparseSpMV_bufferSize, (void *handle, int op, const void *alpha, void *a, void *x, const void *beta, void *y,
                                  int type, int algorithm, size_t *bytes))
{
    (void)handle, (void)op, (void)alpha, (void)a, (void)x, (void)beta, (void)y, (void)type, (void)algorithm;
    *bytes = WORKSPACE;
    return 0;
}

LIBRARY(cusparseSpSM_bufferSize,
        (void *handle, int op_a, int op_b, const void *alpha, void *a, void *b, void *c, int type, int algorithm,
         void *descriptor, size_t *bytes))
{
    (void)handle, (void)op_a, (void)op_b, (void)alpha, (void)a, (void)b, (void)c, (void)type, (void)algorithm;
    (void)descriptor;
    *bytes = WORKSPACE;
    return 0;
}

LIBRARY(cusparseSpSV_bufferSize, (void *handle, int op, const void *alpha, void *a, void *x, void *y, int type,
                                  int algorithm, void *descriptor, size_t *bytes))
{
    (void)handle, (void)op, (void)alpha, (void)a, (void)x, (void)y, (void)type, (void)algorithm, (void)descriptor;
    *bytes = WORKSPACE;
    return 0;
}

/* Both steps of a sparse product: asked without a buffer they say its size, with one they work. */
#define PRODUCT(name)                                                                                     \
    LIBRARY(name, (void *handle, int op_a, int op_b, const void *alpha, void *a, void *b, const void *beta, void *c, \
                   int type, int algorithm, void *descriptor, size_t *bytes, void *buffer))               \
    {                                                                                                     \
        (void)handle, (void)op_a, (void)op_b, (void)alpha, (void)a, (void)b, (void)beta, (void)c, (void)type; \
        (void)algorithm, (void)descriptor;                                                                \
        if (!buffer) *bytes = WORKSPACE;                                                                  \
        return 0;                                                                                         \
    }
PRODUCT(cusparseSpGEMM_workEstimation)
PRODUCT(cusparseSpGEMM_compute)

#define SORT(name)                                                                                        \
    LIBRARY(name, (void *handle, int m, int n, int values, const int *rows, const int *columns, size_t *bytes)) \
    {                                                                                                     \
        (void)handle, (void)m, (void)n, (void)rows, (void)columns;                                        \
        *bytes = WORKSPACE + (size_t)values * 2 * sizeof(int);                                            \
        return 0;                                                                                         \
    }
SORT(cusparseXcoosort_bufferSizeExt)
SORT(cusparseXcsrsort_bufferSizeExt)

SIM_ENTRY(const char *, cusparseGetErrorString, (int status))
{
    return status ? "operation not supported by the simulated cuSPARSE" : "success";
}
