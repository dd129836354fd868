/* SPDX-License-Identifier: Apache-2.0 */
/* Libraries that are given memory which was freed or unmapped, or that ends too early, and copies and fills whose memory
 * is freed before they run: each is an illegal access. */
#define _GNU_SOURCE
#include "support.h"

#include <sys/mman.h>

typedef void *object;
int cublasCreate_v2(object *out);
int cublasSgemm_v2(object blas, int ta, int tb, int m, int n, int k, const void *alpha, const void *a, int lda,
                   const void *b, int ldb, const void *beta, void *c, int ldc);
int cublasGemmStridedBatchedEx(object blas, int ta, int tb, int m, int n, int k, const void *alpha, const void *a,
                               int type_a, int lda, long long sa, const void *b, int type_b, int ldb, long long sb,
                               const void *beta, void *c, int type_c, int ldc, long long sc, int batch, int compute,
                               int algorithm);
int cublasLtMatrixLayoutCreate(object *out, int type, uint64_t rows, uint64_t columns, int64_t leading);
int cublasLtMatmulDescCreate(object *out, int compute, int scale);
int cublasLtMatmul(object handle, object d, const void *alpha, const void *a, object la, const void *b, object lb,
                   const void *beta, const void *c, object lc, void *e, object le, const void *algorithm,
                   void *workspace, size_t workspace_bytes, object stream);
int cudnnCreate(object *out);
int cudnnBackendCreateDescriptor(int type, object *out);
int cudnnBackendSetAttribute(object descriptor, int name, int type, int64_t count, const void *values);
int cudnnBackendExecute(object dnn, object plan, object variants);

enum { N = 100, FLOAT = 0, HALF = 2 };

static char *plain(size_t bytes)
{
    CUdeviceptr va;
    CHECK_EQUAL(cuMemAlloc_v2(&va, bytes), 0);
    return (char *)(uintptr_t)va;
}

static void release(const char *p)
{
    CHECK_EQUAL(cuMemFree_v2((CUdeviceptr)(uintptr_t)p), 0);
}

static CUresult outcome(int library)
{
    CUresult result = cuCtxSynchronize();
    CHECK((library != 0) == (result != 0));
    return result;
}

static CUresult product(const char *a, const char *b, char *c)
{
    object blas;
    CHECK_EQUAL(cublasCreate_v2(&blas), 0);
    return outcome(cublasSgemm_v2(blas, 0, 1, N, N, N, NULL, a, N, b, N, NULL, c, N));
}

static void test_a_product_on_freed_memory(void)
{
    use_device();
    char *a = plain(CHUNK), *b = plain(CHUNK);
    CHECK_EQUAL(product(a, b, a), 0);
    release(b);
    CHECK_EQUAL(product(a, b, a), CUDA_ERROR_ILLEGAL_ADDRESS);
}

static void test_large_freed_memory(void)
{
    use_device();
    char *a = plain(CHUNK), *b = plain(100 * CHUNK);
    release(b);
    CHECK_EQUAL(product(b, a, a), CUDA_ERROR_ILLEGAL_ADDRESS);
}

/* What the host put there since is the host's own. */
static void test_an_address_that_the_host_took(void)
{
    use_device();
    char *a = plain(CHUNK), *b = plain(100 * CHUNK);
    release(b);
    void *mine = mmap(b, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
    CHECK(mine == b);
    CHECK_EQUAL(product(b, a, a), 0);
}

static void test_memory_that_is_in_use_again(void)
{
    use_device();
    char *a = plain(CHUNK), *b = plain(CHUNK);
    release(b);
    CHECK(plain(CHUNK) == b);
    CHECK_EQUAL(product(a, b, b), 0);
}

/* The free comes first in the stream, the product is submitted before it took effect. */
static void test_the_order_of_the_stream_counts(void)
{
    use_device();
    CUdeviceptr late;
    char *a = plain(CHUNK);
    CHECK_EQUAL(cuMemAllocAsync(&late, CHUNK, NULL), 0);
    CHECK_EQUAL(product(a, (char *)(uintptr_t)late, a), 0);
    CHECK_EQUAL(cuMemFreeAsync(late, NULL), 0);
    CHECK_EQUAL(product(a, (char *)(uintptr_t)late, a), CUDA_ERROR_ILLEGAL_ADDRESS);
}

static void test_a_matrix_over_the_end(void)
{
    use_device();
    char *a = plain(CHUNK);
    const size_t bytes = N * N * 4;
    CHECK_EQUAL(product(a, a, a + CHUNK - bytes), 0);
    CHECK_EQUAL(product(a, a, a + CHUNK - bytes + 4), CUDA_ERROR_ILLEGAL_ADDRESS);
}

static CUresult batch(char *a, long long stride, int leading)
{
    object blas;
    CHECK_EQUAL(cublasCreate_v2(&blas), 0);
    return outcome(cublasGemmStridedBatchedEx(blas, 1, 0, N, N, N, NULL, a, HALF, leading, stride, a, HALF, N, 0, NULL,
                                              a, HALF, N, N * N, 3, 0, 0));
}

static void test_the_last_of_a_batch(void)
{
    use_device();
    char *a = plain(CHUNK);
    CHECK_EQUAL(batch(a, 500000, N), 0);
    CHECK_EQUAL(batch(a + 2 * 48576 - 2 * N * N, 500000, N), 0);
    CHECK_EQUAL(batch(a, 500000, 500), CUDA_ERROR_ILLEGAL_ADDRESS);
}

static CUresult light(char *a, char *out, char *work, size_t work_bytes)
{
    object d, la, lo;
    CHECK_EQUAL(cublasLtMatmulDescCreate(&d, 68, 0), 0);
    CHECK_EQUAL(cublasLtMatrixLayoutCreate(&la, HALF, N, N, N), 0);
    CHECK_EQUAL(cublasLtMatrixLayoutCreate(&lo, FLOAT, N, N, N), 0);
    return outcome(cublasLtMatmul(NULL, d, NULL, a, la, a, la, NULL, out, lo, out, lo, NULL, work, work_bytes, NULL));
}

static void test_the_light_library(void)
{
    use_device();
    char *a = plain(CHUNK);
    CHECK_EQUAL(light(a + CHUNK - 2 * N * N, a + CHUNK - 4 * N * N, a, CHUNK), 0);
    CHECK_EQUAL(light(a, a, a, CHUNK + 1), CUDA_ERROR_ILLEGAL_ADDRESS);
}

static void test_the_output_of_the_light_library(void)
{
    use_device();
    char *a = plain(CHUNK);
    CHECK_EQUAL(light(a, a + CHUNK - 2 * N * N, a, 0), CUDA_ERROR_ILLEGAL_ADDRESS);
}

static void test_a_graph_of_tensors(void)
{
    enum { PLAN = 15, VARIANTS = 19, POINTERS = 1001, WORKSPACE = 1003, VOID_PTR = 6, BAD = 5000 };
    use_device();
    object dnn, plan, good, bad;
    float scale = 0.5f; /* numbers that are passed by value stand in host memory */
    const char *freed = plain(CHUNK);
    const void *pointers[] = {plain(CHUNK), &scale, plain(CHUNK)}, *stale[] = {pointers[0], freed};
    release(freed);
    CHECK_EQUAL(cudnnCreate(&dnn), 0);
    CHECK_EQUAL(cudnnBackendCreateDescriptor(PLAN, &plan), 0);
    CHECK_EQUAL(cudnnBackendCreateDescriptor(VARIANTS, &good), 0);
    CHECK_EQUAL(cudnnBackendCreateDescriptor(VARIANTS, &bad), 0);
    CHECK_EQUAL(cudnnBackendSetAttribute(good, POINTERS, VOID_PTR, 3, pointers), 0);
    CHECK_EQUAL(cudnnBackendSetAttribute(good, WORKSPACE, VOID_PTR, 1, &stale[1]), 0); /* of no bytes */
    CHECK_EQUAL(cudnnBackendSetAttribute(bad, POINTERS, VOID_PTR, 2, stale), 0);
    CHECK_EQUAL(outcome(cudnnBackendExecute(dnn, plan, good)), 0);
    CHECK_EQUAL(outcome(cudnnBackendExecute(dnn, plan, bad)), CUDA_ERROR_ILLEGAL_ADDRESS);
}

/* Freed on another stream, without order, before the work of the first one came to it. */
static void freed_under(CUstream stream, CUresult work(CUdeviceptr va, CUstream stream))
{
    CUdeviceptr va;
    CHECK_EQUAL(cuMemAllocAsync(&va, CHUNK, stream), 0);
    CHECK_EQUAL(cuStreamSynchronize(stream), 0);
    keep_busy(stream, 100);
    CHECK_EQUAL(work(va, stream), 0);
    CUstream other = stream_new();
    CHECK_EQUAL(cuMemFreeAsync(va, other), 0);
    CHECK_EQUAL(cuStreamSynchronize(other), 0);
}

static char room[CHUNK];

static CUresult fill(CUdeviceptr va, CUstream stream)
{
    return cuMemsetD8Async(va, 1, CHUNK, stream);
}

static CUresult read_back(CUdeviceptr va, CUstream stream)
{
    return cuMemcpyDtoHAsync_v2(room, va, CHUNK, stream);
}

static CUresult write_to(CUdeviceptr va, CUstream stream)
{
    return cuMemcpyHtoDAsync_v2(va, room, CHUNK, stream);
}

static void test_work_that_comes_after_the_free(void)
{
    use_device();
    CHECK_EQUAL(cuMemHostRegister_v2(room, CHUNK, 0), 0); /* else a copy back would be waited for */
    CUresult (*const works[])(CUdeviceptr, CUstream) = {fill, read_back, write_to};
    for (int i = 0; i < 3; i++) {
        CUstream stream = stream_new();
        freed_under(stream, works[i]);
        CHECK_EQUAL(cuStreamSynchronize(stream), CUDA_ERROR_ILLEGAL_ADDRESS);
        CHECK_EQUAL(cuDevicePrimaryCtxReset_v2(0), 0);
        use_device();
    }
}

int main(void)
{
    RUN_SIM(test_a_product_on_freed_memory);
    RUN_SIM(test_large_freed_memory);
    RUN_SIM(test_an_address_that_the_host_took);
    RUN_SIM(test_memory_that_is_in_use_again);
    RUN_SIM(test_the_order_of_the_stream_counts);
    RUN_SIM(test_a_matrix_over_the_end);
    RUN_SIM(test_the_last_of_a_batch);
    RUN_SIM(test_the_light_library);
    RUN_SIM(test_the_output_of_the_light_library);
    RUN_SIM(test_a_graph_of_tensors);
    RUN_LATE(test_work_that_comes_after_the_free);
    return 0;
}
