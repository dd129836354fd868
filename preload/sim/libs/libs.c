/* SPDX-License-Identifier: Apache-2.0 */
/* What the simulated libraries have in common. */
#include "sim/libs/libs.h"

#include <stdlib.h>

int sim_library_launch(void *stream)
{
    cudaError_t error;
    const struct driver_table *drv = sim_driver(&error);
    if (!drv) return (int)error;
    return drv->launch ? drv->launch(stream, 1) : 0;
}

int sim_library_work(void *stream, double operations)
{
    int result = sim_library_launch(stream);
    cudaError_t error;
    const struct driver_table *drv = sim_driver(&error);
    if (!result && drv && drv->work) drv->work(operations);
    return result;
}

int sim_library_product(void *stream, int64_t m, int64_t n, int64_t k, int64_t batch)
{
    return sim_library_work(stream, 2.0 * (double)m * (double)n * (double)k * (double)batch);
}

int sim_library_touch(void *stream, const void *pointer, size_t bytes)
{
    cudaError_t error;
    const struct driver_table *drv = sim_driver(&error);
    if (!drv) return (int)error;
    return drv->touch ? drv->touch(pointer, bytes, stream) : 0;
}

int sim_library_known(const void *pointer, size_t bytes)
{
    cudaError_t error;
    const struct driver_table *drv = sim_driver(&error);
    return drv && drv->known ? drv->known(pointer, bytes) : 0;
}

void sim_library_forget(const void *pointer, size_t bytes)
{
    cudaError_t error;
    const struct driver_table *drv = sim_driver(&error);
    if (drv && drv->forget) drv->forget(pointer, bytes);
}

int sim_library_matrices(void *stream, const struct library_matrix *matrix, size_t count)
{
    int result = 0;
    for (size_t i = 0; i < count && !result; i++) {
        const struct library_matrix *m = &matrix[i];
        if (!m->at || m->rows < 1 || m->columns < 1 || m->batch < 1) continue;
        int64_t elements = (m->columns - 1) * m->leading + m->rows + (m->batch - 1) * m->stride;
        size_t bytes = elements > 0 && m->leading >= 0 && m->stride >= 0 ? (size_t)elements * m->width : 0;
        result = sim_library_touch(stream, m->at, bytes ? bytes : 1);
    }
    return result;
}

size_t sim_library_width(int type)
{
    switch (type) {
    case 3: case 8: case 28: case 29: return 1; /* 8-bit integers and floats */
    case 2: case 14: return 2;                  /* half, bfloat16 */
    case 0: case 6: case 10: case 15: return 4; /* float, pairs of halves, 32-bit integers */
    case 1: case 4: return 8;                   /* double, complex */
    case 5: return 16;
    default: return 0;
    }
}

int sim_library_new(void **out, size_t bytes)
{
    *out = calloc(1, bytes);
    return *out ? 0 : 1;
}
