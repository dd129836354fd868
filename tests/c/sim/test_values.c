/* SPDX-License-Identifier: Apache-2.0 */
/* Computed values: loops on a flag end, other reads are zeros; kernels whose results depend on data are counted. */
#define _GNU_SOURCE
#include "support.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

int cublasCreate_v2(void **out);
int cublasDotEx(void *blas, int n, const void *x, int type_x, int step_x, const void *y, int type_y, int step_y,
                void *result, int type, int execution);

static void run(CUfunction function)
{
    CHECK_EQUAL(cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL), 0);
}

static CUdeviceptr flag;

static bool ask(CUfunction function)
{
    unsigned char answer = 7;
    run(function), run(function), run(function); /* what is looked at of a round's kernels */
    CHECK_EQUAL(cuMemcpyDtoH_v2(&answer, flag, 1), 0);
    CHECK(answer <= 1);
    return answer;
}

static unsigned reads_until_yes(CUfunction function, unsigned most)
{
    for (unsigned i = 1; i <= most; i++)
        if (ask(function)) return i;
    return 0;
}

static void prepare(void)
{
    use_device();
    CHECK_EQUAL(cuMemAlloc_v2(&flag, 4096), 0);
}

static void test_the_nth_read_is_yes_once(void)
{
    prepare();
    CUfunction done = kernel("done");
    CHECK_EQUAL(reads_until_yes(done, 100), 20);
    CHECK_EQUAL(reads_until_yes(done, 100), 20);
}

static void test_the_default_is_1024(void)
{
    prepare();
    CHECK_EQUAL(reads_until_yes(kernel("done"), 5000), 1024);
}

static void test_zero_is_never(void)
{
    prepare();
    CHECK_EQUAL(reads_until_yes(kernel("done"), 5000), 0);
}

/* Two flags in each round: each has its own row. */
static void test_flags_of_other_kernels_do_not_count(void)
{
    prepare();
    CUfunction done = kernel("done"), other = kernel("other"), both = kernel("both");
    for (int i = 1; i <= 20; i++) {
        run(other), run(other), run(both);
        unsigned char answer = 7;
        CHECK_EQUAL(cuMemcpyDtoH_v2(&answer, flag, 1), 0);
        CHECK_EQUAL(answer, i == 20);
        run(done), run(done), run(both);
        CHECK_EQUAL(cuMemcpyDtoH_v2(&answer, flag, 1), 0);
        CHECK_EQUAL(answer, i == 20);
    }
}

static void *launch_elsewhere(void *function)
{
    use_device();
    run(function);
    return NULL;
}

enum breaker { TO_DEVICE, LOSS, THREAD, TOKEN };

static unsigned rounds_with(enum breaker what)
{
    prepare();
    CUfunction done = kernel("done");
    uint64_t word = 0;
    CUdeviceptr elsewhere;
    CHECK_EQUAL(cuMemAlloc_v2(&elsewhere, 4096), 0);
    for (unsigned i = 1; i <= 100; i++) {
        pthread_t thread;
        if (ask(done)) return i;
        if (what == TO_DEVICE) CHECK_EQUAL(cuMemcpyHtoD_v2(elsewhere, &word, 8), 0);
        if (what == LOSS) CHECK_EQUAL(cuMemcpyDtoH_v2(&word, elsewhere, 4), 0);
        if (what == TOKEN) CHECK_EQUAL(cuMemcpyDtoH_v2(&word, elsewhere, 8), 0);
        if (what == THREAD) {
            CHECK(!pthread_create(&thread, NULL, launch_elsewhere, (void *)done));
            pthread_join(thread, NULL);
        }
    }
    return 0;
}

static void test_training_is_no_loop_on_a_flag(void)
{
    CHECK_EQUAL(rounds_with(TO_DEVICE), 0);
    CHECK_EQUAL(rounds_with(LOSS), 0);
    CHECK_EQUAL(rounds_with(THREAD), 0);
    CHECK_EQUAL(rounds_with(TOKEN), 20);
}

/* A byte that the host wrote is the program's own. */
static void test_written_bytes_are_read(void)
{
    prepare();
    unsigned char byte = 3;
    for (int i = 0; i < 100; i++) {
        CHECK_EQUAL(cuMemcpyHtoD_v2(flag, &byte, 1), 0);
        unsigned char back = 0;
        CHECK_EQUAL(cuMemcpyDtoH_v2(&back, flag, 1), 0);
        CHECK_EQUAL(back, 3);
    }
}

static char folder[] = "/tmp/gml-sim-values-XXXXXX";

static void test_kernels_of_data_dependent_shapes(void)
{
    prepare();
    setenv("GML_RUN_DIR", folder, 1);
    const char *names[] = {
        "_ZN3cub18DeviceReduceKernelI9NonZeroOp",        "_ZN3cub23DeviceSelectSweepKernelI9NonZeroOp",
        "_ZN3cub23DeviceSelectSweepKernelI8equal_toIv",  "_ZN3cub23DeviceReduceByKeyKernelI3rle6encode",
        "_ZN3cub23DeviceReduceByKeyKernelI4plus",        "_ZN3cub28DeviceUniqueByKeySweepKernelI",
        "_ZN3cub18DeviceReduceKernelI4plus",
    };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) run(kernel(names[i]));
    uint32_t count;
    CHECK_EQUAL(cuMemcpyDtoH_v2(&count, flag, sizeof count), 0);
    CHECK_EQUAL(count, 0);
}

void __cudaRegisterFunction(void **handle, const char *host, char *device, const char *name, int limit, void *tid,
                            void *bid, void *block, void *grid, int *warp);
cudaError_t cudaLaunchKernel(const void *function, dim3 grid, dim3 block, void **arguments, size_t shared,
                             cudaStream_t stream);
cudaError_t __cudaGetKernel(cudaKernel_t *kernel, const void *function);
cudaError_t __cudaLaunchKernel(cudaKernel_t kernel, dim3 grid, dim3 block, void **arguments, size_t shared,
                               cudaStream_t stream);

static char code[20000]; /* its addresses stand for kernels of the program */

static void declare(size_t at, const char *name)
{
    __cudaRegisterFunction(NULL, &code[at], NULL, name, -1, NULL, NULL, NULL, NULL, NULL);
}

/* As a CUDA 12 program does it, and as one of CUDA 13. */
static void launch_both_ways(size_t at)
{
    const dim3 one = {1, 1, 1};
    cudaKernel_t found;
    CHECK_EQUAL(cudaLaunchKernel(&code[at], one, one, NULL, 0, NULL), 0);
    CHECK_EQUAL(__cudaGetKernel(&found, &code[at]), 0);
    CHECK_EQUAL(__cudaLaunchKernel(found, one, one, NULL, 0, NULL), 0);
}

static void test_kernels_are_known_by_their_registration(void)
{
    prepare();
    setenv("GML_RUN_DIR", folder, 1);
    for (size_t at = 0; at < sizeof code; at++) declare(at, "_ZN2at6native27vectorized_elementwise_kernel");
    declare(7, "_ZN3cub18DeviceReduceKernelI9NonZeroOp");
    declare(19999, "_ZN3cub28DeviceUniqueByKeySweepKernelI");
    launch_both_ways(7);
    launch_both_ways(8);
    launch_both_ways(19999);
    declare(7, "_ZN3cub28DeviceUniqueByKeySweepKernelI"); /* another library was loaded to the place of the first */
    launch_both_ways(7);
}

static void check_report(const char *data_dependent, const char *reads)
{
    char command[256];
    snprintf(command, sizeof command, "cat %s/sim-*.json && rm %s/*", folder, folder);
    FILE *from = popen(command, "r");
    char text[8192];
    CHECK(from);
    text[fread(text, 1, sizeof text - 1, from)] = 0;
    pclose(from);
    CHECK(strstr(text, data_dependent));
    CHECK(strstr(text, reads));
}

#define AFTER_20 "GML_SIM_FLAG_AFTER=20"

/* By cudaDataType_t: a result of another width would leave bytes as they were, or write behind them. */
static void test_a_dot_product_is_zero_in_each_type(void)
{
    static const struct {
        int type;
        size_t bytes;
    } results[] = {{0, 4}, {1, 8}, {2, 2}, {4, 8}, {5, 16}, {6, 4}, {14, 2}, {15, 4}};
    void *blas;
    use_device();
    CHECK_EQUAL(cublasCreate_v2(&blas), 0);
    for (size_t i = 0; i < sizeof results / sizeof *results; i++) {
        const int type = results[i].type;
        unsigned char result[17];
        memset(result, 7, sizeof result);
        CHECK_EQUAL(cublasDotEx(blas, 0, NULL, type, 1, NULL, type, 1, result, type, 0), 0);
        for (size_t at = 0; at < sizeof result; at++) CHECK_EQUAL(result[at], at < results[i].bytes ? 0 : 7);
    }
}

int main(void)
{
    run_on_device("the_nth_read_is_yes_once", test_the_nth_read_is_yes_once, AFTER_20);
    RUN_SIM(test_the_default_is_1024);
    run_on_device("zero_is_never", test_zero_is_never, "GML_SIM_FLAG_AFTER=0");
    run_on_device("flags_of_other_kernels", test_flags_of_other_kernels_do_not_count, AFTER_20);
    run_on_device("training_is_no_loop_on_a_flag", test_training_is_no_loop_on_a_flag, AFTER_20);
    run_on_device("written_bytes_are_read", test_written_bytes_are_read, AFTER_20);
    RUN_SIM(test_a_dot_product_is_zero_in_each_type);
    CHECK(mkdtemp(folder));
    RUN_SIM(test_kernels_of_data_dependent_shapes);
    check_report("\"data_dependent\": {\"nonzero\": 1, \"unique\": 2, \"unique_by_key\": 1}", "\"reads\": {\"4\": 1}");
    RUN_SIM(test_kernels_are_known_by_their_registration);
    check_report("\"data_dependent\": {\"nonzero\": 2, \"unique_by_key\": 4}", "\"reads\": {}");
    CHECK(rmdir(folder) == 0);
    return 0;
}
