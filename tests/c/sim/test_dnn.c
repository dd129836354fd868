/* SPDX-License-Identifier: Apache-2.0 */
/* cuDNN's recurrent networks and CTC loss: the weight space, sizes of the other spaces, and what is refused. */
#define _GNU_SOURCE
#include "support.h"

#include <string.h>

enum { FLOAT, LSTM = 2, GRU = 3, DOUBLE_BIAS = 2, BAD_PARAM = 2000, NOT_SUPPORTED = 3000, FAILED = 5000 };

typedef void *object;
int cudnnCreate(object *dnn);
int cudnnCreateRNNDescriptor(object *rnn);
int cudnnCreateRNNDataDescriptor(object *data);
int cudnnCreateTensorDescriptor(object *tensor);
int cudnnCreateDropoutDescriptor(object *dropout);
int cudnnCreateCTCLossDescriptor(object *ctc);
int cudnnDropoutGetStatesSize(object dnn, size_t *bytes);
int cudnnSetDropoutDescriptor(object dropout, object dnn, float rate, void *states, size_t bytes,
                              unsigned long long seed);
int cudnnSetTensorNdDescriptor(object tensor, int type, int dims, const int *size, const int *stride);
int cudnnGetTensorNdDescriptor(object tensor, int wanted, int *type, int *dims, int *size, int *stride);
int cudnnSetRNNDescriptor_v8(object rnn, int algorithm, int cell, int bias, int direction, int input_mode, int type,
                             int precision, int math, int input, int hidden, int projected, int layers,
                             object dropout, unsigned flags);
int cudnnSetRNNDataDescriptor(object data, int type, int layout, int steps, int batch, int vector,
                              const int *lengths, void *padding);
int cudnnGetRNNWeightSpaceSize(object dnn, object rnn, size_t *bytes);
int cudnnGetRNNWeightParams(object dnn, object rnn, int pseudo, size_t bytes, const void *space, int id,
                            object matrix, void **matrix_at, object bias, void **bias_at);
int cudnnGetRNNTempSpaceSizes(object dnn, object rnn, int mode, object x, size_t *work, size_t *reserve);
int cudnnRNNForward(object dnn, object rnn, int mode, const int *lengths, object x_data, const void *x, object y_data,
                    void *y, object h, const void *hx, void *hy, object c, const void *cx, void *cy,
                    size_t weight_size, const void *weights, size_t work_size, void *work,
                    size_t reserve_size, void *reserve);
int cudnnRNNBackwardWeights_v8(object dnn, object rnn, int add, const int *lengths, object x_data, const void *x,
                               object h, const void *hx, object y_data, const void *y, size_t weight_size,
                               void *gradients, size_t work_size, void *work, size_t reserve_size, void *reserve);
int cudnnSetCTCLossDescriptor_v9(object ctc, int type, int normalization, int mode, int max_label);
int cudnnGetCTCLossWorkspaceSize_v8(object dnn, int algorithm, object ctc, object probabilities, object gradients,
                                    size_t *bytes);
int cudnnCTCLoss_v8(object dnn, int algorithm, object ctc, object probabilities, const void *probs, const int *labels,
                    const int *label_lengths, const int *input_lengths, void *costs, object gradients, void *grads,
                    size_t space_bytes, void *space);

static object made(int (*make)(object *))
{
    object o = NULL;
    CHECK_EQUAL(make(&o), 0);
    CHECK(o);
    return o;
}

static object tensor(int a, int b, int c)
{
    object t = made(cudnnCreateTensorDescriptor);
    CHECK_EQUAL(cudnnSetTensorNdDescriptor(t, FLOAT, 3, (int[]){a, b, c}, (int[]){b * c, c, 1}), 0);
    return t;
}

static size_t elements(object t)
{
    int type, dims, size[3], stride[3];
    CHECK_EQUAL(cudnnGetTensorNdDescriptor(t, 3, &type, &dims, size, stride), 0);
    return dims ? (size_t)size[0] * (size_t)size[1] * (size_t)size[2] : 0;
}

static object network(object dropout, int cell, int direction, int projected, int layers)
{
    object rnn = made(cudnnCreateRNNDescriptor);
    CHECK_EQUAL(cudnnSetRNNDescriptor_v8(rnn, 0, cell, DOUBLE_BIAS, direction, 0, FLOAT, FLOAT, 0, 10, 20, projected,
                                         layers, dropout, 0), 0);
    return rnn;
}

/* The pieces of the weight space cover it without overlap, and those of one kind follow each other. */
static void check_weights(object dnn, object rnn, int pseudo_layers, int matrices, int biases, size_t expected)
{
    static char space[1 << 20];
    static unsigned char seen[1 << 20];
    size_t bytes = 0;
    CHECK_EQUAL(cudnnGetRNNWeightSpaceSize(dnn, rnn, &bytes), 0);
    CHECK_EQUAL(bytes, expected * 4);
    memset(seen, 0, sizeof seen);
    object matrix = made(cudnnCreateTensorDescriptor), bias = made(cudnnCreateTensorDescriptor);
    for (int p = 0; p < pseudo_layers; p++)
        for (int id = 0; id < matrices; id++) {
            void *at, *bias_at;
            CHECK_EQUAL(cudnnGetRNNWeightParams(dnn, rnn, p, bytes, space, id, matrix, &at, bias, &bias_at), 0);
            CHECK((id < biases) == (bias_at != NULL));
            for (size_t i = 0; i < elements(matrix) * 4; i++) CHECK_EQUAL(seen[(char *)at - space + (long)i]++, 0);
            for (size_t i = 0; bias_at && i < 80; i++) CHECK_EQUAL(seen[(char *)bias_at - space + (long)i]++, 0);
        }
    for (size_t i = 0; i < bytes; i++) CHECK_EQUAL(seen[i], 1);
    void *at;
    const int all = pseudo_layers;
    CHECK_EQUAL(cudnnGetRNNWeightParams(dnn, rnn, all, bytes, space, 0, matrix, &at, NULL, NULL), BAD_PARAM);
    CHECK_EQUAL(cudnnGetRNNWeightParams(dnn, rnn, 0, bytes - 1, space, 0, matrix, &at, NULL, NULL), BAD_PARAM);
}

static void test_the_weight_space(void)
{
    use_device();
    object dnn = made(cudnnCreate), dropout = made(cudnnCreateDropoutDescriptor);
    CHECK_EQUAL(cudnnSetDropoutDescriptor(dropout, dnn, 0, NULL, 0, 0), 0);
    /* One layer of an LSTM: 4 gates of 20 x 10, 20 x 20 and two biases. */
    check_weights(dnn, network(dropout, LSTM, 0, 0, 1), 1, 8, 8, 4 * (20 * 10 + 20 * 20 + 20 + 20));
    /* Two layers, both directions: the second layer's input is both directions of the first. */
    check_weights(dnn, network(dropout, GRU, 1, 0, 2), 4, 6, 6,
                  2 * 3 * (20 * 10 + 20 * 20 + 40) + 2 * 3 * (20 * 40 + 20 * 20 + 40));
    /* A projection to 5: recurrent matrices of 20 x 5 and one of 5 x 20. */
    check_weights(dnn, network(dropout, LSTM, 0, 5, 1), 1, 9, 8, 4 * (20 * 10 + 20 * 5 + 40) + 5 * 20);
    object rnn = made(cudnnCreateRNNDescriptor);
    CHECK_EQUAL(cudnnSetRNNDescriptor_v8(rnn, 0, GRU, 2, 0, 0, FLOAT, FLOAT, 0, 10, 20, 5, 1, dropout, 0),
                NOT_SUPPORTED);
    CHECK_EQUAL(cudnnSetRNNDescriptor_v8(rnn, 0, LSTM, 2, 0, 0, FLOAT, FLOAT, 0, 10, 20, 21, 1, dropout, 0),
                BAD_PARAM);
}

struct step {
    object dnn, rnn, x, y, h;
    size_t weights, work, reserve;
    CUdeviceptr memory;
};

/* Four sequences of 6, 5, 5 and 1 steps, packed: 17 steps of 10 and 20 floats. */
static struct step step_of(object dropout, int rate_layers)
{
    struct step s = {.dnn = made(cudnnCreate)};
    s.rnn = network(dropout, LSTM, 0, 0, rate_layers);
    s.x = made(cudnnCreateRNNDataDescriptor);
    s.y = made(cudnnCreateRNNDataDescriptor);
    const int lengths[] = {6, 5, 5, 1};
    CHECK_EQUAL(cudnnSetRNNDataDescriptor(s.x, FLOAT, 1, 6, 4, 10, lengths, NULL), 0);
    CHECK_EQUAL(cudnnSetRNNDataDescriptor(s.y, FLOAT, 1, 6, 4, 20, lengths, NULL), 0);
    CHECK_EQUAL(cudnnSetRNNDataDescriptor(s.y, FLOAT, 1, 5, 4, 20, lengths, NULL), BAD_PARAM);
    s.h = tensor(rate_layers, 4, 20);
    CHECK_EQUAL(cudnnGetRNNWeightSpaceSize(s.dnn, s.rnn, &s.weights), 0);
    CHECK_EQUAL(cudnnGetRNNTempSpaceSizes(s.dnn, s.rnn, 1, s.x, &s.work, &s.reserve), 0);
    CHECK_EQUAL(cuMemAlloc_v2(&s.memory, 8 * MIB), 0);
    return s;
}

static void *at(const struct step *s, size_t mib)
{
    return (void *)(uintptr_t)(s->memory + mib * MIB);
}

static int forward(const struct step *s, int mode, void *y, size_t work, size_t reserve)
{
    return cudnnRNNForward(s->dnn, s->rnn, mode, NULL, s->x, at(s, 0), s->y, y, s->h, NULL, at(s, 2), s->h, NULL,
                           at(s, 3), s->weights, at(s, 4), work, at(s, 5), reserve, reserve ? at(s, 6) : NULL);
}

static void test_a_step(void)
{
    use_device();
    struct step s = step_of(NULL, 2);
    size_t inference_work, none;
    CHECK_EQUAL(cudnnGetRNNTempSpaceSizes(s.dnn, s.rnn, 0, s.x, &inference_work, &none), 0);
    CHECK(none == 0 && s.reserve > 0 && inference_work <= s.work);
    CHECK_EQUAL(forward(&s, 0, at(&s, 1), inference_work, 0), 0);
    CHECK_EQUAL(forward(&s, 1, at(&s, 1), s.work, s.reserve), 0);
    CHECK_EQUAL(forward(&s, 1, at(&s, 1), s.work - 1, s.reserve), BAD_PARAM);
    CHECK_EQUAL(forward(&s, 1, at(&s, 1), s.work, s.reserve - 1), BAD_PARAM);
    CHECK_EQUAL(forward(&s, 1, at(&s, 1), s.work, 0), BAD_PARAM); /* training needs a reserve space */
    CHECK_EQUAL(cudnnRNNBackwardWeights_v8(s.dnn, s.rnn, 0, NULL, s.x, at(&s, 0), s.h, NULL, s.y, at(&s, 1),
                                           s.weights, at(&s, 4), s.work, at(&s, 5), s.reserve, at(&s, 6)), 0);
    CHECK_EQUAL(cudnnRNNBackwardWeights_v8(s.dnn, s.rnn, 1, NULL, s.x, at(&s, 0), s.h, NULL, s.y, at(&s, 1),
                                           s.weights, at(&s, 4), s.work, at(&s, 5), s.reserve, at(&s, 6)),
                NOT_SUPPORTED);
    CHECK_EQUAL(cuCtxSynchronize(), 0);
    CHECK(gml_sim_calls("cudnnRNNForward") > 0);
}

/* The output of 17 steps ends one byte behind the mapped memory. */
static void test_a_step_over_the_end(void)
{
    use_device();
    struct step s = step_of(NULL, 1);
    size_t bytes = (size_t)17 * 20 * 4;
    CHECK_EQUAL(forward(&s, 1, (char *)at(&s, 8) - bytes, s.work, s.reserve), 0);
    CHECK_EQUAL(forward(&s, 1, (char *)at(&s, 8) - bytes + 1, s.work, s.reserve), FAILED);
    CHECK_EQUAL(cuCtxSynchronize(), CUDA_ERROR_ILLEGAL_ADDRESS);
}

static void test_dropout_keeps_masks(void)
{
    use_device();
    object dnn = made(cudnnCreate), dropout = made(cudnnCreateDropoutDescriptor);
    size_t states, without, with;
    CUdeviceptr memory;
    CHECK_EQUAL(cudnnDropoutGetStatesSize(dnn, &states), 0);
    CHECK_EQUAL(cuMemAlloc_v2(&memory, states), 0);
    char *p = (char *)(uintptr_t)memory;
    CHECK_EQUAL(cudnnSetDropoutDescriptor(dropout, dnn, 0.5f, p, states, 1), 0);
    without = step_of(NULL, 2).reserve;
    with = step_of(dropout, 2).reserve;
    CHECK(with > without);
    CHECK_EQUAL(cudnnSetDropoutDescriptor(dropout, dnn, 2, NULL, 0, 0), BAD_PARAM);
    p = (char *)(uintptr_t)reserve(CHUNK); /* never mapped */
    CHECK_EQUAL(cudnnSetDropoutDescriptor(dropout, dnn, 0.5f, p, states, 1), FAILED);
}

static void test_the_ctc_loss(void)
{
    use_device();
    object dnn = made(cudnnCreate), ctc = made(cudnnCreateCTCLossDescriptor), shape = tensor(50, 4, 20);
    size_t bytes;
    CUdeviceptr m;
    CHECK_EQUAL(cudnnGetCTCLossWorkspaceSize_v8(dnn, 0, ctc, shape, shape, &bytes), BAD_PARAM); /* never set */
    CHECK_EQUAL(cudnnSetCTCLossDescriptor_v9(ctc, FLOAT, 1, 0, 256), BAD_PARAM);
    CHECK_EQUAL(cudnnSetCTCLossDescriptor_v9(ctc, FLOAT, 1, 0, 10), 0);
    CHECK_EQUAL(cudnnGetCTCLossWorkspaceSize_v8(dnn, 0, ctc, shape, shape, &bytes), 0);
    CHECK_EQUAL(cuMemAlloc_v2(&m, 4 * MIB), 0);
    char *p = (char *)(uintptr_t)m;
    const int *words = (const int *)(p + 3 * MIB);
    const struct {
        void *gradients;
        size_t space_bytes;
        int result;
    } tries[] = {{p + MIB, bytes, 0}, {p + MIB, bytes - 1, BAD_PARAM}, {p + 4 * MIB - 8, bytes, FAILED}};
    for (size_t i = 0; i < sizeof tries / sizeof *tries; i++)
        CHECK_EQUAL(cudnnCTCLoss_v8(dnn, 0, ctc, shape, p, words, words, words, p + 2 * MIB, shape,
                                    tries[i].gradients, tries[i].space_bytes, p + 3 * MIB), tries[i].result);
}

int main(void)
{
    RUN_SIM(test_the_weight_space);
    RUN_SIM(test_a_step);
    RUN_SIM(test_a_step_over_the_end);
    RUN_SIM(test_dropout_keeps_masks);
    RUN_SIM(test_the_ctc_loss);
    return 0;
}
