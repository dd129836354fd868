/* SPDX-License-Identifier: Apache-2.0 */
/* A library of the program's that is linked with one CUDA runtime and calls it. */
#include "fake_cudart.h"

#define API __attribute__((visibility("default")))

extern cudaError_t cudaMalloc(void **out, size_t bytes);
extern cudaError_t cudaMallocAsync(void **out, size_t bytes, cudaStream_t stream);
extern cudaError_t cudaFree(void *address);
extern cudaError_t cudaFreeAsync(void *address, cudaStream_t stream);
extern cudaError_t cudaMemGetInfo(size_t *out_free, size_t *out_total);
extern fake_books *fake_books_get(void);

API fake_books *caller_books(void);
API cudaError_t caller_malloc(void **out, size_t bytes);
API cudaError_t caller_malloc_async(void **out, size_t bytes);
API cudaError_t caller_free(void *address);
API cudaError_t caller_free_async(void *address);
API cudaError_t caller_mem_info(size_t *out_free, size_t *out_total);

fake_books *caller_books(void)
{
    return fake_books_get();
}

/* Not tail calls: the return address must lie in this library, as it does in compiled programs. */
cudaError_t caller_malloc(void **out, size_t bytes)
{
    volatile cudaError_t error = cudaMalloc(out, bytes);
    return error;
}

cudaError_t caller_malloc_async(void **out, size_t bytes)
{
    volatile cudaError_t error = cudaMallocAsync(out, bytes, 0);
    return error;
}

cudaError_t caller_free(void *address)
{
    volatile cudaError_t error = cudaFree(address);
    return error;
}

cudaError_t caller_free_async(void *address)
{
    volatile cudaError_t error = cudaFreeAsync(address, 0);
    return error;
}

cudaError_t caller_mem_info(size_t *out_free, size_t *out_total)
{
    volatile cudaError_t error = cudaMemGetInfo(out_free, out_total);
    return error;
}
