/* SPDX-License-Identifier: Apache-2.0 */
/* A fake CUDA runtime over malloc; built once a version, under the real library's name. */
#define _GNU_SOURCE
#include "fake_cudart.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

#define API __attribute__((visibility("default")))

static fake_books books = {.version = FAKE_VERSION};

API fake_books *fake_books_get(void);
API cudaError_t cudaMalloc(void **out, size_t bytes);
API cudaError_t cudaMallocAsync(void **out, size_t bytes, cudaStream_t stream);
API cudaError_t cudaFree(void *address);
API cudaError_t cudaFreeAsync(void *address, cudaStream_t stream);
API cudaError_t cudaMemGetInfo(size_t *out_free, size_t *out_total);
API cudaError_t cudaGetDevice(int *out_device);
API cudaError_t cudaGetLastError(void);
API cudaError_t cudaPeekAtLastError(void);

fake_books *fake_books_get(void)
{
    return &books;
}

static cudaError_t answer(cudaError_t error)
{
    if (error != cudaSuccess)
        books.last_error = error;
    return error;
}

static cudaError_t give(void **out, size_t bytes)
{
    cudaError_t failure = books.fail_next;
    books.fail_next = cudaSuccess;
    if (out == NULL)
        return answer(cudaErrorInvalidValue);
    if (failure != cudaSuccess)
        return answer(failure);
    *out = bytes == 0 ? NULL : malloc(16);
    books.live += bytes != 0;
    return cudaSuccess;
}

cudaError_t cudaMalloc(void **out, size_t bytes)
{
    books.mallocs++;
    if (books.reenter) {
        /* What a driver-level hook or a wrapper does: a second hooked call inside the first. */
        cudaError_t (*again)(void **, size_t, cudaStream_t) = NULL;
        void *symbol = dlsym(RTLD_DEFAULT, "cudaMallocAsync");
        memcpy(&again, &symbol, sizeof symbol);
        return again(out, bytes, NULL);
    }
    return give(out, bytes);
}

cudaError_t cudaMallocAsync(void **out, size_t bytes, cudaStream_t stream)
{
    (void)stream;
    books.async_mallocs++;
    return give(out, bytes);
}

cudaError_t cudaFree(void *address)
{
    books.frees++;
    books.live -= address != NULL;
    free(address);
    return cudaSuccess;
}

cudaError_t cudaFreeAsync(void *address, cudaStream_t stream)
{
    (void)stream;
    books.async_frees++;
    books.live -= address != NULL;
    free(address);
    return cudaSuccess;
}

cudaError_t cudaMemGetInfo(size_t *out_free, size_t *out_total)
{
    *out_free = 1000;
    *out_total = 2000;
    return cudaSuccess;
}

cudaError_t cudaGetDevice(int *out_device)
{
    *out_device = 0;
    return cudaSuccess;
}

cudaError_t cudaGetLastError(void)
{
    cudaError_t error = books.last_error;
    books.last_error = cudaSuccess;
    return error;
}

cudaError_t cudaPeekAtLastError(void)
{
    return books.last_error;
}
