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
MAKER(cusparseCreateCsr)
MAKER(cusparseCreateCoo)
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

SIM_ENTRY(const char *, cusparseGetErrorString, (int status))
{
    return status ? "operation not supported by the simulated cuSPARSE" : "success";
}
