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

int sim_library_operands(void *stream, const void *a, const void *b, const void *c)
{
    int result = sim_library_touch(stream, a, 1);
    if (!result) result = sim_library_touch(stream, b, 1);
    return result ? result : sim_library_touch(stream, c, 1);
}

int sim_library_new(void **out, size_t bytes)
{
    *out = calloc(1, bytes);
    return *out ? 0 : 1;
}
