/* SPDX-License-Identifier: Apache-2.0 */
/* cuDNN: the CTC loss, with labels in host memory and (version 8 and later) in device memory.
 *
 * The workspace is taken to hold the forward and backward variables: two floats for every step, sequence
 * and position between labels and blanks. */
#include "sim/libs/dnn.h"

struct ctc {
    int set, max_label;
};

LIBRARY(cudnnSetCTCLossDescriptorEx, (struct ctc * ctc, int type, int normalization, int nan))
{
    (void)type, (void)normalization, (void)nan;
    if (!ctc) return DNN_BAD_PARAM;
    *ctc = (struct ctc){1, 0};
    return DNN_SUCCESS;
}

LIBRARY(cudnnSetCTCLossDescriptor_v8, (struct ctc * ctc, int type, int normalization, int nan, int max_label))
{
    (void)type, (void)normalization, (void)nan;
    if (!ctc || max_label < 0 || max_label > 255) return DNN_BAD_PARAM; /* 256 labels at most */
    *ctc = (struct ctc){1, max_label};
    return DNN_SUCCESS;
}

LIBRARY(cudnnSetCTCLossDescriptor_v9, (struct ctc * ctc, int type, int normalization, int mode, int max_label))
{
    return cudnnSetCTCLossDescriptor_v8(ctc, type, normalization, mode, max_label);
}

/* Probabilities are steps x batch x alphabet, and so are the gradients, which may be left out. */
static int shapes_ok(const struct dnn_tensor *probabilities, const struct dnn_tensor *gradients)
{
    if (!probabilities || probabilities->dims != 3) return 0;
    for (int i = 0; gradients && i < 3; i++)
        if (gradients->dims != 3 || gradients->size[i] != probabilities->size[i]) return 0;
    return 1;
}

static size_t workspace(const struct dnn_tensor *probabilities, int max_label)
{
    size_t steps = (size_t)probabilities->size[0], batch = (size_t)probabilities->size[1];
    return 2 * sizeof(float) * steps * batch * (2 * (size_t)max_label + 1);
}

static int longest(const int *lengths, int count)
{
    int most = 0;
    for (int i = 0; i < count; i++)
        if (lengths[i] > most) most = lengths[i];
    return most;
}

LIBRARY(cudnnGetCTCLossWorkspaceSize,
        (struct dnn * dnn, const struct dnn_tensor *probabilities, const struct dnn_tensor *gradients,
         const int *labels, const int *label_lengths, const int *input_lengths, int algorithm, const struct ctc *ctc,
         size_t *out))
{
    if (!dnn || !shapes_ok(probabilities, gradients) || !labels || !label_lengths || !input_lengths ||
        algorithm < 0 || algorithm > 1 || !ctc || !ctc->set || !out)
        return DNN_BAD_PARAM;
    *out = workspace(probabilities, longest(label_lengths, probabilities->size[1]));
    return DNN_SUCCESS;
}

LIBRARY(cudnnGetCTCLossWorkspaceSize_v8,
        (struct dnn * dnn, int algorithm, const struct ctc *ctc, const struct dnn_tensor *probabilities,
         const struct dnn_tensor *gradients, size_t *out))
{
    if (!dnn || !shapes_ok(probabilities, gradients) || algorithm < 0 || algorithm > 1 || !ctc || !ctc->set || !out)
        return DNN_BAD_PARAM;
    *out = workspace(probabilities, ctc->max_label);
    return DNN_SUCCESS;
}

static int work(const struct dnn *dnn, const struct dnn_buffer *buffers, size_t count)
{
    int result = sim_dnn_touch(dnn, buffers, count);
    if (result == DNN_SUCCESS && sim_library_launch(dnn->stream)) result = DNN_EXECUTION_FAILED;
    return result;
}

LIBRARY(cudnnCTCLoss,
        (struct dnn * dnn, const struct dnn_tensor *probabilities, const void *probs, const int *labels,
         const int *label_lengths, const int *input_lengths, void *costs, const struct dnn_tensor *gradients,
         void *grads, int algorithm, const struct ctc *ctc, void *space, size_t space_bytes))
{
    COUNT(cudnnCTCLoss);
    size_t needed;
    int result = cudnnGetCTCLossWorkspaceSize(dnn, probabilities, gradients, labels, label_lengths, input_lengths,
                                              algorithm, ctc, &needed);
    if (result == DNN_SUCCESS && (space_bytes < needed || !probs || !costs)) result = DNN_BAD_PARAM;
    if (result != DNN_SUCCESS) return result;
    const struct dnn_buffer buffers[] = {{probs, sim_dnn_tensor_bytes(probabilities)},
                                         {costs, (size_t)probabilities->size[1] * sizeof(float)},
                                         {grads, sim_dnn_tensor_bytes(gradients)},
                                         {space, space_bytes}};
    return work(dnn, buffers, sizeof buffers / sizeof *buffers);
}

LIBRARY(cudnnCTCLoss_v8,
        (struct dnn * dnn, int algorithm, const struct ctc *ctc, const struct dnn_tensor *probabilities,
         const void *probs, const int *labels, const int *label_lengths, const int *input_lengths, void *costs,
         const struct dnn_tensor *gradients, void *grads, size_t space_bytes, void *space))
{
    COUNT(cudnnCTCLoss_v8);
    size_t needed;
    int result = cudnnGetCTCLossWorkspaceSize_v8(dnn, algorithm, ctc, probabilities, gradients, &needed);
    if (result == DNN_SUCCESS &&
        (space_bytes < needed || !probs || !labels || !label_lengths || !input_lengths || !costs))
        result = DNN_BAD_PARAM;
    if (result != DNN_SUCCESS) return result;
    size_t batch = (size_t)probabilities->size[1];
    const struct dnn_buffer buffers[] = {{probs, sim_dnn_tensor_bytes(probabilities)},
                                         {labels, sizeof(int)},
                                         {label_lengths, batch * sizeof(int)},
                                         {input_lengths, batch * sizeof(int)},
                                         {costs, batch * sizeof(float)},
                                         {grads, sim_dnn_tensor_bytes(gradients)},
                                         {space, space_bytes}};
    return work(dnn, buffers, sizeof buffers / sizeof *buffers);
}
