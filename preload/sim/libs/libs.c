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

int sim_library_product(void *stream, int64_t m, int64_t n, int64_t k, int64_t batch)
{
    int result = sim_library_launch(stream);
    cudaError_t error;
    const struct driver_table *drv = sim_driver(&error);
    if (!result && drv && drv->work) drv->work(2.0 * (double)m * (double)n * (double)k * (double)batch);
    return result;
}

int sim_library_operands(void *stream, const void *a, const void *b, const void *c)
{
    cudaError_t error;
    const struct driver_table *drv = sim_driver(&error);
    if (!drv) return (int)error;
    if (!drv->touch) return 0;
    int result = drv->touch(a, 1, stream);
    if (!result) result = drv->touch(b, 1, stream);
    return result ? result : drv->touch(c, 1, stream);
}

int sim_library_new(void **out, size_t bytes)
{
    *out = calloc(1, bytes);
    return *out ? 0 : 1;
}
