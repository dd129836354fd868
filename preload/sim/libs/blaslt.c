/* SPDX-License-Identifier: Apache-2.0 */
/* cuBLASLt: descriptors that remember sizes, one heuristic result, products as time on a stream. */
#include "sim/libs/libs.h"

#include <stdlib.h>
#include <string.h>

enum { LT_SUCCESS = 0, LT_ALLOC_FAILED = 3, LT_INVALID_VALUE = 7, LT_EXECUTION_FAILED = 13 };

struct layout {
    uint64_t rows, columns;
    int64_t leading;
    int type, order;
    int32_t batch;
    int64_t stride;
};

struct descriptor {
    int compute, scale;
    int32_t transpose_a, transpose_b;
};

struct heuristic {
    uint64_t algorithm[8];
    size_t workspace;
    int state;
    float waves;
    int reserved[4];
};

SIM_ENTRY(size_t, cublasLtGetVersion, (void))
{
    return 130100;
}

SIM_ENTRY(const char *, cublasLtGetStatusString, (int status))
{
    return status ? "simulated cuBLASLt: not done" : "success";
}

LIBRARY(cublasLtCreate, (void **out))
{
    return sim_library_new(out, 64) ? LT_ALLOC_FAILED : LT_SUCCESS;
}

LIBRARY(cublasLtDestroy, (void *handle))
{
    free(handle);
    return LT_SUCCESS;
}

LIBRARY(cublasLtMatmulDescCreate, (struct descriptor **out, int compute, int scale))
{
    if (sim_library_new((void **)out, sizeof **out)) return LT_ALLOC_FAILED;
    (*out)->compute = compute;
    (*out)->scale = scale;
    return LT_SUCCESS;
}

LIBRARY(cublasLtMatmulDescDestroy, (struct descriptor * d))
{
    free(d);
    return LT_SUCCESS;
}

/* Of the attributes only the transpositions (3 and 4) matter here. */
LIBRARY(cublasLtMatmulDescSetAttribute, (struct descriptor * d, int attribute, const void *value, size_t bytes))
{
    if (!d || !value) return LT_INVALID_VALUE;
    if (attribute == 3 && bytes == 4) memcpy(&d->transpose_a, value, 4);
    if (attribute == 4 && bytes == 4) memcpy(&d->transpose_b, value, 4);
    return LT_SUCCESS;
}

LIBRARY(cublasLtMatrixLayoutCreate, (struct layout **out, int type, uint64_t rows, uint64_t columns, int64_t leading))
{
    if (sim_library_new((void **)out, sizeof **out)) return LT_ALLOC_FAILED;
    **out = (struct layout){rows, columns, leading, type, 0, 1, 0};
    return LT_SUCCESS;
}

LIBRARY(cublasLtMatrixLayoutDestroy, (struct layout * layout))
{
    free(layout);
    return LT_SUCCESS;
}

LIBRARY(cublasLtMatrixLayoutSetAttribute, (struct layout * layout, int attribute, const void *value, size_t bytes))
{
    if (!layout || !value) return LT_INVALID_VALUE;
    if (attribute == 1 && bytes == 4) memcpy(&layout->order, value, 4);
    if (attribute == 5 && bytes == 4) memcpy(&layout->batch, value, 4);
    if (attribute == 6 && bytes == 8) memcpy(&layout->stride, value, 8);
    return LT_SUCCESS;
}

LIBRARY(cublasLtMatmulPreferenceCreate, (void **out))
{
    return sim_library_new(out, 64) ? LT_ALLOC_FAILED : LT_SUCCESS;
}

LIBRARY(cublasLtMatmulPreferenceDestroy, (void *preference))
{
    free(preference);
    return LT_SUCCESS;
}

LIBRARY(cublasLtMatmulPreferenceSetAttribute, (void *preference, int attribute, const void *value, size_t bytes))
{
    (void)attribute, (void)bytes;
    return preference && value ? LT_SUCCESS : LT_INVALID_VALUE;
}

LIBRARY(cublasLtMatmulAlgoGetHeuristic,
        (void *handle, struct descriptor *d, struct layout *a, struct layout *b, struct layout *c, struct layout *e,
         void *preference, int wanted, struct heuristic *results, int *found))
{
    (void)handle, (void)d, (void)a, (void)b, (void)c, (void)e, (void)preference;
    COUNT(cublasLtMatmulAlgoGetHeuristic);
    if (wanted < 1 || !results || !found) return LT_INVALID_VALUE;
    memset(results, 0, sizeof *results);
    results->waves = 1;
    *found = 1;
    return LT_SUCCESS;
}

LIBRARY(cublasLtMatmulAlgoCheck, (void *handle, struct descriptor *d, struct layout *a, struct layout *b,
                                  struct layout *c, struct layout *e, const void *algorithm, struct heuristic *result))
{
    (void)handle, (void)d, (void)a, (void)b, (void)c, (void)e, (void)algorithm;
    if (!result) return LT_INVALID_VALUE;
    memset(result, 0, sizeof *result);
    result->waves = 1;
    return LT_SUCCESS;
}

/* By columns or, in order 1, by rows; of the tiled orders the first byte counts. */
static struct library_matrix matrix(const void *at, const struct layout *l)
{
    enum { COLUMNS, ROWS };
    struct library_matrix m = {at, sim_library_width(l->type), (int64_t)l->rows, (int64_t)l->columns, l->leading,
                               l->batch, l->stride};
    if (l->order == ROWS) m.rows = (int64_t)l->columns, m.columns = (int64_t)l->rows;
    else if (l->order != COLUMNS) m.width = 0;
    return m;
}

LIBRARY(cublasLtMatmul,
        (void *handle, struct descriptor *d, const void *alpha, const void *a, struct layout *la, const void *b,
         struct layout *lb, const void *beta, const void *c, struct layout *lc, void *e, struct layout *le,
         const void *algorithm, void *workspace, size_t workspace_bytes, void *stream))
{
    (void)handle, (void)alpha, (void)beta, (void)c, (void)lc, (void)algorithm;
    COUNT(cublasLtMatmul);
    if (!d || !la || !lb || !le) return LT_INVALID_VALUE;
    const struct library_matrix matrices[] = {matrix(a, la), matrix(b, lb), matrix(e, le)};
    if (le->rows && le->columns && sim_library_matrices(stream, matrices, 3)) return LT_EXECUTION_FAILED;
    if (workspace_bytes && sim_library_touch(stream, workspace, workspace_bytes)) return LT_EXECUTION_FAILED;
    int64_t k = (int64_t)(d->transpose_a ? la->rows : la->columns);
    int result = sim_library_product(stream, (int64_t)le->rows, (int64_t)le->columns, k, le->batch);
    return result ? LT_EXECUTION_FAILED : LT_SUCCESS;
}
