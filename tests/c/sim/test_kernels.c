/* SPDX-License-Identifier: Apache-2.0 */
/* Kernels that are understood: computed where inputs are known, and nothing is believed where parameters are not
 * what the name promises. Parameters are laid out as in PyTorch's public headers. */
#define _GNU_SOURCE
#include "support.h"

#include <dlfcn.h>
#include <string.h>

CUresult cuGraphInstantiateWithFlags(CUgraphExec *out, CUgraph graph, unsigned long long flags);
CUresult cuGraphLaunch(CUgraphExec exec, CUstream stream);

#define FLAT(inner) "_ZN2at6native29vectorized_elementwise_kernelILi4E" inner "Lb0EEEviT0_T1_"
static const char FILL_LONG[] = FLAT("NS0_11FillFunctorIlEESt5arrayIPcLm1EE");
static const char FILL_BOOL[] = FLAT("NS0_11FillFunctorIbEESt5arrayIPcLm1EE");
static const char OR_LONG[] = FLAT("NS0_13BinaryFunctorIlllNS0_16BitwiseOrFunctorIlEEEESt5arrayIPcLm3EE");
static const char ORDER_LONG[] = FLAT("NS0_12_GLOBAL__N_114CompareFunctorIlEESt5arrayIPcLm3EE");
static const char ORDER_FLOAT[] = FLAT("NS0_12_GLOBAL__N_114CompareFunctorIfEESt5arrayIPcLm3EE");
static const char REMAINDER_LONG[] = FLAT("NS0_13BUnaryFunctorIlllZZZNS0_21remainder_kernel_cudaERNS_18TensorIteratorBas"
                                          "eEENKUlvE_clEvENKUlvE2_clEvEUlllE_EESt5arrayIPcLm2EE");
static const char EQUAL_LONG[] = FLAT("NS0_13AUnaryFunctorIllbNS0_12_GLOBAL__N_116CompareEqFunctorIlEEEESt5arrayIPcLm2EE");
static const char ABSOLUTE[] = FLAT("NS0_10AbsFunctorIfEESt5arrayIPcLm2EE");
static const char ALL[] = "_ZN2at6native13reduce_kernelILi512ELi1ENS0_8ReduceOpIbNS0_14func_wrapper_tIbZZZNS0_15and_kernel_"
                          "cudaERNS_14TensorIteratorEENKUlvE_clEvENKUlvE10_clEvEUlbbE_EEjbLi4ELi4EEEEEvT1_";
static const char ANY[] = "_ZN2at6native13reduce_kernelILi512ELi1ENS0_8ReduceOpIbNS0_14func_wrapper_tIbZZZNS0_14or_kernel_"
                          "cudaERNS_14TensorIteratorEENKUlvE_clEvENKUlvE10_clEvEUlbbE_EEjbLi4ELi4EEEEEvT1_";
static const char SUM_LONG[] = "_ZN2at6native13reduce_kernelILi512ELi1ENS0_8ReduceOpIlNS0_14func_wrapper_tIlZNS0_11sum_"
                               "functorIlllEclERNS_14TensorIteratorEEUlllE_EEjlLi4ELi4EEEEEvT1_";

static CUdeviceptr a, b, out;
static CUstream stream;

static void launch(const char *name, unsigned threads, void **params)
{
    CHECK_EQUAL(cuLaunchKernel(kernel(name), 1, 1, 1, threads, 1, 1, 0, stream, params, NULL), 0);
}

/* An element-wise loop: the result, then its inputs. */
static void loop(const char *name, int count, void *functor, CUdeviceptr result, CUdeviceptr first, CUdeviceptr second)
{
    CUdeviceptr pointers[3] = {result, first, second};
    launch(name, 128, (void *[]){&count, functor, pointers});
}

static void prepare(void)
{
    CHECK(dlopen("libstdc++.so.6", RTLD_NOW)); /* as a program with PyTorch has it */
    use_device();
    CHECK_EQUAL(cuMemAlloc_v2(&a, CHUNK), 0);
    b = a + 65536;
    out = b + 65536;
}

static void write_longs(CUdeviceptr va, int64_t first, int64_t second)
{
    const int64_t values[2] = {first, second};
    CHECK_EQUAL(cuMemcpyHtoD_v2(va, values, sizeof values), 0);
}

static int64_t read_long(CUdeviceptr va)
{
    int64_t value = -1;
    CHECK_EQUAL(cuStreamSynchronize(stream), 0);
    CHECK_EQUAL(cuMemcpyDtoH_v2(&value, va, sizeof value), 0);
    return value;
}

static int read_flag(CUdeviceptr va)
{
    unsigned char value = 9;
    CHECK_EQUAL(cuStreamSynchronize(stream), 0);
    CHECK_EQUAL(cuMemcpyDtoH_v2(&value, va, 1), 0);
    return value;
}

static void test_known_values_are_computed(void)
{
    prepare();
    int64_t seven = 7, nothing = 0;
    unsigned more = 1;
    write_longs(a, 3, 9);
    loop(FILL_LONG, 2, &seven, b, 0, 0);
    loop(OR_LONG, 2, &nothing, out, a, b);
    loop(ORDER_LONG, 2, &more, out + 64, a, b); /* 3 > 7, 9 > 7 */
    CHECK_EQUAL(read_long(out), 7);
    CHECK_EQUAL(read_long(out + 8), 15);
    CHECK_EQUAL(read_long(b + 8), 7);
    CHECK_EQUAL(read_flag(out + 64), 0);
    CHECK_EQUAL(read_flag(out + 65), 1);
}

static void test_a_kernel_that_is_not_understood_forgets_all(void)
{
    prepare();
    int64_t nothing = 0;
    write_longs(a, 3, 9);
    CHECK_EQUAL(read_long(a), 3);
    loop(FLAT("NS0_9SomethingIlEESt5arrayIPcLm2EE"), 2, &nothing, out, a, 0);
    CHECK_EQUAL(read_long(a), 3); /* only its result is unknown */
    CHECK_EQUAL(read_long(out), 0);
    launch("_Z9somethingPl", 128, (void *[]){&a});
    CHECK_EQUAL(read_long(a), 0);
}

static void test_results_of_unknown_values_are_unknown(void)
{
    prepare();
    int64_t nothing = 0, one = 1;
    write_longs(out, 5, 5); /* what an earlier owner left */
    write_longs(a, 3, 9);
    loop(OR_LONG, 2, &nothing, out, a, b);
    CHECK_EQUAL(read_long(out), 0);
    loop(FILL_LONG, 1, &one, b, 0, 0); /* one of two is known */
    loop(OR_LONG, 2, &nothing, out, a, b);
    CHECK_EQUAL(read_long(out), 3);
    CHECK_EQUAL(read_long(out + 8), 0);
}

/* ReduceOp of `inputs` elements to one, as in Reduce.cuh: its configuration stands at word `at`. */
struct reduction {
    uint32_t words[400];
};

static void offsets(uint32_t *to, uint32_t size, uint32_t stride)
{
    uint32_t shift = 0;
    const uint64_t one = 1;
    while (shift < 32 && (uint32_t)1 << shift < size) shift++;
    to[0] = size > 0;
    to[1] = size;
    to[2] = (uint32_t)((one << 32) * ((one << shift) - size) / size + 1);
    to[3] = shift;
    to[1 + 75] = stride;
}

static struct reduction reduction(unsigned at, unsigned inputs, unsigned width, unsigned threads)
{
    struct reduction r;
    memset(&r, 0, sizeof r);
    uint32_t *config = r.words + at;
    const uint32_t values[16] = {width, inputs, 1, 1, 1, 1, 1, 0, 0, 0, 0, threads, 1, threads, 0, 1};
    memcpy(config, values, sizeof values);
    offsets(config + 16, inputs, width);
    char *tail = (char *)(config + 16 + 101 + 126); /* of an OffsetCalculator of one, and of two */
    tail += (size_t)(tail - (char *)r.words) % 8;
    const CUdeviceptr pointers[2] = {a, out};
    memcpy(tail, pointers, sizeof pointers);
    tail[57] = 1;
    tail[60] = 1;
    return r;
}

static void test_reductions(void)
{
    prepare();
    unsigned order = 1;
    write_longs(a, 30, 12);
    struct reduction r = reduction(4, 2, 8, 2);
    launch(SUM_LONG, 2, (void *[]){&r});
    CHECK_EQUAL(read_long(out), 42);
    /* Booleans of unknown numbers: all of them hold, none is looked for. */
    CHECK_EQUAL(cuMemsetD8_v2(out, 0, 4096), 0);
    loop(ORDER_FLOAT, 5000, &order, a, b, b + 32768);
    CHECK_EQUAL(read_flag(a), 0);
    r = reduction(2, 5000, 1, 512);
    launch(ANY, 512, (void *[]){&r});
    CHECK_EQUAL(read_flag(out), 0);
    launch(ALL, 512, (void *[]){&r});
    CHECK_EQUAL(read_flag(out), 1);
    /* A known exception. */
    CHECK_EQUAL(cuMemsetD8_v2(a, 0, 1), 0);
    r = reduction(2, 100, 1, 64);
    launch(ALL, 64, (void *[]){&r});
    CHECK_EQUAL(read_flag(out), 0);
}

static void test_parameters_that_prove_nothing_are_not_believed(void)
{
    prepare();
    write_longs(a, 30, 12);
    write_longs(b, 1, 1);
    struct reduction r = reduction(4, 2, 8, 2);
    r.words[4 + 18] ^= 1; /* a magic number that divides by something else */
    launch(SUM_LONG, 2, (void *[]){&r});
    CHECK_EQUAL(read_long(b), 0); /* it may have written anything */
    write_longs(b, 1, 1);
    r = reduction(4, 2, 8, 2);
    launch(SUM_LONG, 4, (void *[]){&r}); /* another launch than it was configured for */
    CHECK_EQUAL(read_long(b), 0);
    write_longs(b, 1, 1);
    int64_t seven = 7;
    int count = 1;
    CUdeviceptr nowhere = 4096;
    launch(FILL_LONG, 128, (void *[]){&count, &seven, &nowhere});
    CHECK_EQUAL(read_long(b), 0);
}

static void test_what_stays_of_a_piece(void)
{
    prepare();
    int64_t nothing = 0;
    write_longs(a, 3, 9);
    write_longs(a + 16, 4, 8);
    loop(FLAT("NS0_9SomethingIlEESt5arrayIPcLm2EE"), 2, &nothing, a + 8, b, 0); /* the middle of it */
    CHECK_EQUAL(read_long(a), 3);
    CHECK_EQUAL(read_long(a + 8), 0);
    CHECK_EQUAL(read_long(a + 16), 0);
    CHECK_EQUAL(read_long(a + 24), 8);
    CHECK_EQUAL(cuMemcpyDtoDAsync_v2(out, a, 32, NULL), 0);
    CHECK_EQUAL(read_long(out), 3);
    CHECK_EQUAL(read_long(out + 16), 0);
    CHECK_EQUAL(read_long(out + 24), 8);
}

/* More than a value: indices, lengths, answers of a batch. */
static void test_a_read_of_many(void)
{
    prepare();
    static unsigned char seen[70000];
    int64_t ones = 0x0101010101010101;
    CHECK_EQUAL(cuMemsetD8_v2(a, 7, sizeof seen), 0);
    launch("_Z9somethingPl", 128, (void *[]){&a});
    loop(FILL_LONG, 2, &ones, a + 64, 0, 0);
    CHECK_EQUAL(cuMemcpyDtoH_v2(seen, a, 65536), 0);
    for (size_t i = 0; i < 65536; i++) CHECK_EQUAL(seen[i], i >= 64 && i < 80);
    CHECK_EQUAL(cuMemcpyDtoH_v2(seen, a, sizeof seen), 0); /* weights, say */
    CHECK(seen[0] == 7 && seen[64] == 1 && seen[sizeof seen - 1] == 7);
}

static void test_numbers_are_whole(void)
{
    prepare();
    struct {
        char empty[8];
        int64_t by;
    } remainder = {{0}, 1};
    struct {
        int order;
        int64_t with;
    } equal = {0, 0};
    for (int count = 100; count <= 5000; count += 4900) { /* element by element, and all alike */
        loop(REMAINDER_LONG, count, &remainder, b, out + 32768, 0);
        loop(EQUAL_LONG, count, &equal, a, b, 0);
        struct reduction r = reduction(2, (unsigned)count, 1, 64);
        launch(ALL, 64, (void *[]){&r});
        CHECK_EQUAL(read_flag(out), 1);
        remainder.by = 2;
        loop(REMAINDER_LONG, count, &remainder, b, out + 32768, 0);
        loop(EQUAL_LONG, count, &equal, a, b, 0);
        launch(ALL, 64, (void *[]){&r});
        CHECK_EQUAL(read_flag(out), 0);
        remainder.by = 1;
    }
    CHECK_EQUAL(read_long(b), 0);
}

static void test_in_the_order_of_the_stream(void)
{
    prepare();
    stream = stream_new();
    int64_t nothing = 0;
    for (int64_t i = 1; i < 40; i++) {
        loop(FILL_LONG, 1, &i, a, 0, 0);
        loop(OR_LONG, 1, &nothing, out, a, a);
        CHECK_EQUAL(read_long(out), i);
    }
}

static void test_in_a_graph(void)
{
    prepare();
    stream = stream_new();
    int64_t nothing = 0;
    bool yes = true;
    CUgraph graph;
    CUgraphExec exec;
    CHECK_EQUAL(cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL), 0);
    loop(OR_LONG, 2, &nothing, out, a, b);
    loop(FILL_BOOL, 1, &yes, out + 64, 0, 0);
    CHECK_EQUAL(cuStreamEndCapture(stream, &graph), 0);
    CHECK_EQUAL(cuGraphInstantiateWithFlags(&exec, graph, 0), 0);
    for (int64_t i = 1; i < 4; i++) {
        write_longs(a, i, i);
        write_longs(b, 8, 8);
        CHECK_EQUAL(cuMemsetD8_v2(out + 64, 0, 1), 0);
        CHECK_EQUAL(cuGraphLaunch(exec, stream), 0);
        CHECK_EQUAL(read_long(out), 8 | i);
        CHECK_EQUAL(read_flag(out + 64), 1);
    }
}

static void test_absolute(void)
{
    prepare();
    const float values[2] = {-2.5f, 4};
    float found[2] = {0, 0};
    int64_t nothing = 0;
    CHECK_EQUAL(cuMemcpyHtoD_v2(a, values, sizeof values), 0);
    loop(ABSOLUTE, 2, &nothing, a, a, 0);
    CHECK_EQUAL(cuMemcpyDtoH_v2(found, a, sizeof found), 0);
    CHECK(found[0] > 2.4f && found[0] < 2.6f && found[1] > 3.9f);
}

int main(void)
{
    RUN_SIM(test_known_values_are_computed);
    RUN_LATE(test_known_values_are_computed);
    RUN_SIM(test_a_kernel_that_is_not_understood_forgets_all);
    RUN_SIM(test_results_of_unknown_values_are_unknown);
    RUN_SIM(test_reductions);
    RUN_SIM(test_parameters_that_prove_nothing_are_not_believed);
    RUN_SIM(test_what_stays_of_a_piece);
    RUN_SIM(test_a_read_of_many);
    RUN_SIM(test_numbers_are_whole);
    RUN_SIM(test_in_the_order_of_the_stream);
    RUN_LATE(test_in_the_order_of_the_stream);
    RUN_SIM(test_in_a_graph);
    RUN_SIM(test_absolute);
    return 0;
}
