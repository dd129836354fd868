/* SPDX-License-Identifier: Apache-2.0 */
/* cuDNN: recurrent networks (LSTM, GRU, plain), forward and backward, and the dropout between their layers.
 *
 * The weight space holds, for each pseudo-layer (a layer in one direction), the matrices of its gates: the
 * ones for the input, the recurrent ones, then the projection; behind all matrices come the biases in the
 * same order. Work and reserve space are not documented: both are taken to hold what an implementation
 * needs, the gates of every step of a layer and, for the backward pass, gates and states of every layer. */
#include "sim/libs/dnn.h"

#include <string.h>

enum { RNN_RELU, RNN_TANH, RNN_LSTM, RNN_GRU };
enum { BIAS_NONE, BIAS_INPUT, BIAS_DOUBLE, BIAS_RECURRENT };
enum { LAYOUT_STEPS_PADDED, LAYOUT_STEPS_PACKED, LAYOUT_BATCH_PADDED };
enum { INFERENCE, TRAINING };

struct dropout {
    float rate;
    const void *states;
    size_t bytes;
};

struct rnn {
    int set; /* 0: never described */
    int cell, bias, directions, skip_input, type;
    int input, hidden, projected, layers; /* projected = hidden without a projection */
    const struct dropout *dropout;
};

struct rnn_data {
    int type, layout, steps, batch, vector;
    size_t packed; /* steps of all sequences together */
};

static size_t align(size_t bytes)
{
    return (bytes + 511) / 512 * 512;
}

static size_t gates(const struct rnn *rnn)
{
    return rnn->cell == RNN_LSTM ? 4 : rnn->cell == RNN_GRU ? 3 : 1;
}

/* Elements of one matrix of a pseudo-layer: the input's, the recurrent one, the projection. */
static void matrix_shape(const struct rnn *rnn, int pseudo, int id, int *rows, int *columns)
{
    int layer = pseudo / rnn->directions, each = (int)gates(rnn);
    *rows = rnn->hidden;
    *columns = rnn->projected;
    if (id < each) {
        *columns = layer ? rnn->projected * rnn->directions : rnn->skip_input ? 0 : rnn->input;
    } else if (id >= 2 * each) {
        *rows = rnn->projected;
        *columns = rnn->hidden;
    }
}

static int has_matrix(const struct rnn *rnn, int id)
{
    return id < 2 * (int)gates(rnn) || (id == 2 * (int)gates(rnn) && rnn->projected != rnn->hidden);
}

static int has_bias(const struct rnn *rnn, int id)
{
    int each = (int)gates(rnn);
    if (id >= 2 * each) return 0;
    return rnn->bias == BIAS_DOUBLE || (rnn->bias == BIAS_INPUT && id < each) ||
           (rnn->bias == BIAS_RECURRENT && id >= each);
}

/* Elements in front of matrix (or bias) `id` of `pseudo`; of all of them for the pseudo-layer behind the last. */
static size_t elements_before(const struct rnn *rnn, int pseudo, int id, int bias)
{
    size_t sum = 0;
    for (int p = 0; p <= pseudo && p < rnn->layers * rnn->directions; p++)
        for (int i = 0; has_matrix(rnn, i) && (p < pseudo || i < id); i++) {
            int rows, columns;
            matrix_shape(rnn, p, i, &rows, &columns);
            sum += bias ? (has_bias(rnn, i) ? (size_t)rnn->hidden : 0) : (size_t)rows * (size_t)columns;
        }
    return sum;
}

static size_t weight_bytes(const struct rnn *rnn)
{
    int all = rnn->layers * rnn->directions;
    return (elements_before(rnn, all, 0, 0) + elements_before(rnn, all, 0, 1)) * sim_dnn_width(rnn->type);
}

/* ---- descriptors ---- */

LIBRARY(cudnnSetRNNDescriptor_v8,
        (struct rnn * rnn, int algorithm, int cell, int bias, int direction, int input_mode, int type, int precision,
         int math, int input, int hidden, int projected, int layers, struct dropout *dropout, unsigned flags))
{
    (void)precision, (void)math, (void)flags;
    if (!rnn || algorithm < 0 || algorithm > 3 || cell < RNN_RELU || cell > RNN_GRU || bias < BIAS_NONE ||
        bias > BIAS_RECURRENT || direction < 0 || direction > 1 || input_mode < 0 || input_mode > 1)
        return DNN_BAD_PARAM;
    if (!sim_dnn_width(type) || input < 1 || hidden < 1 || layers < 1 || projected < 0 || projected > hidden)
        return DNN_BAD_PARAM;
    if (projected && projected != hidden && (cell != RNN_LSTM || algorithm != 0)) return DNN_NOT_SUPPORTED;
    *rnn = (struct rnn){.set = 1, .cell = cell, .bias = bias, .directions = direction + 1, .skip_input = input_mode,
                        .type = type, .input = input, .hidden = hidden,
                        .projected = projected ? projected : hidden, .layers = layers, .dropout = dropout};
    return DNN_SUCCESS;
}

LIBRARY(cudnnSetRNNDataDescriptor, (struct rnn_data * data, int type, int layout, int steps, int batch, int vector,
                                    const int *lengths, void *padding))
{
    (void)padding;
    if (!data || !sim_dnn_width(type) || layout < LAYOUT_STEPS_PADDED || layout > LAYOUT_BATCH_PADDED || steps < 1 ||
        batch < 1 || vector < 1 || !lengths)
        return DNN_BAD_PARAM;
    size_t packed = 0;
    for (int i = 0; i < batch; i++) {
        if (lengths[i] < 0 || lengths[i] > steps) return DNN_BAD_PARAM;
        packed += (size_t)lengths[i];
    }
    *data = (struct rnn_data){type, layout, steps, batch, vector, packed};
    return DNN_SUCCESS;
}

static int set_dropout(struct dropout *dropout, const struct dnn *dnn, float rate, const void *states, size_t bytes)
{
    if (!dropout || !dnn || rate < 0 || rate > 1) return DNN_BAD_PARAM;
    *dropout = (struct dropout){rate, states, bytes};
    return DNN_SUCCESS;
}

/* Without states it only sets the rate; with them it starts the random numbers anew, which is device work. */
LIBRARY(cudnnSetDropoutDescriptor, (struct dropout * dropout, struct dnn *dnn, float rate, void *states, size_t bytes,
                                    unsigned long long seed))
{
    (void)seed;
    COUNT(cudnnSetDropoutDescriptor);
    int result = set_dropout(dropout, dnn, rate, states, bytes);
    const struct dnn_buffer buffer = {states, bytes};
    if (result == DNN_SUCCESS && states) result = sim_dnn_touch(dnn, &buffer, 1);
    if (result == DNN_SUCCESS && states && sim_library_launch(dnn->stream)) result = DNN_EXECUTION_FAILED;
    return result;
}

LIBRARY(cudnnRestoreDropoutDescriptor, (struct dropout * dropout, struct dnn *dnn, float rate, void *states,
                                        size_t bytes, unsigned long long seed))
{
    (void)seed;
    return set_dropout(dropout, dnn, rate, states, bytes);
}

/* ---- sizes ---- */

LIBRARY(cudnnGetRNNWeightSpaceSize, (struct dnn * dnn, const struct rnn *rnn, size_t *out))
{
    if (!dnn || !rnn || !rnn->set || !out) return DNN_BAD_PARAM;
    *out = weight_bytes(rnn);
    return DNN_SUCCESS;
}

/* The address and shape of one matrix and its bias; NULL and no dimensions for what is not there. Either of
 * the two may be left out by NULL. */
LIBRARY(cudnnGetRNNWeightParams,
        (struct dnn * dnn, const struct rnn *rnn, int pseudo, size_t space_bytes, const void *space, int id,
         struct dnn_tensor *matrix, void **matrix_at, struct dnn_tensor *bias, void **bias_at))
{
    if (!dnn || !rnn || !rnn->set || !space || !matrix != !matrix_at || !bias != !bias_at) return DNN_BAD_PARAM;
    if (pseudo < 0 || pseudo >= rnn->layers * rnn->directions || id < 0 || id > 2 * (int)gates(rnn) ||
        space_bytes < weight_bytes(rnn))
        return DNN_BAD_PARAM;
    size_t width = sim_dnn_width(rnn->type);
    size_t biases = elements_before(rnn, rnn->layers * rnn->directions, 0, 0);
    uintptr_t base = (uintptr_t)space;
    int rows = 0, columns = 0;
    if (has_matrix(rnn, id)) matrix_shape(rnn, pseudo, id, &rows, &columns);
    if (matrix) *matrix = (struct dnn_tensor){.type = rnn->type}, *matrix_at = NULL;
    if (bias) *bias = (struct dnn_tensor){.type = rnn->type}, *bias_at = NULL;
    if (matrix && rows && columns) {
        sim_dnn_tensor_fill(matrix, rnn->type, 3, (const int[]){1, rows, columns});
        *matrix_at = (void *)(base + elements_before(rnn, pseudo, id, 0) * width);
    }
    if (bias && has_bias(rnn, id)) {
        sim_dnn_tensor_fill(bias, rnn->type, 3, (const int[]){1, rnn->hidden, 1});
        *bias_at = (void *)(base + (biases + elements_before(rnn, pseudo, id, 1)) * width);
    }
    return DNN_SUCCESS;
}

static size_t step_elements(const struct rnn *rnn, const struct rnn_data *x)
{
    return (size_t)x->steps * (size_t)x->batch * (size_t)rnn->hidden;
}

static size_t work_bytes(const struct rnn *rnn, const struct rnn_data *x, int mode)
{
    size_t layer = step_elements(rnn, x) * (size_t)rnn->directions;
    return align(layer * (gates(rnn) + (mode == TRAINING ? 2 : 1)) * sim_dnn_width(rnn->type));
}

static size_t reserve_bytes(const struct rnn *rnn, const struct rnn_data *x, int mode)
{
    if (mode != TRAINING) return 0;
    size_t layer = step_elements(rnn, x) * (size_t)rnn->directions;
    size_t kept = gates(rnn) + (rnn->cell == RNN_LSTM ? 2 : 1);
    size_t masks = rnn->dropout && rnn->dropout->rate > 0 ? layer * (size_t)(rnn->layers - 1) : 0;
    return align(layer * kept * (size_t)rnn->layers * sim_dnn_width(rnn->type) + masks);
}

LIBRARY(cudnnGetRNNTempSpaceSizes, (struct dnn * dnn, const struct rnn *rnn, int mode, const struct rnn_data *x,
                                    size_t *work, size_t *reserve))
{
    if (!dnn || !rnn || !rnn->set || !x || !x->steps || (mode != INFERENCE && mode != TRAINING)) return DNN_BAD_PARAM;
    if (work) *work = work_bytes(rnn, x, mode);
    if (reserve) *reserve = reserve_bytes(rnn, x, mode);
    return DNN_SUCCESS;
}

/* ---- work ---- */

/* What a call was given: spaces and data. */
struct call {
    const struct dnn *dnn;
    const struct rnn *rnn;
    int mode;
    const int *lengths; /* on the device; may be NULL */
    const struct rnn_data *x, *y;
    size_t weight_bytes, work_bytes, reserve_bytes;
    const void *weights, *work, *reserve;
};

static int fits(const struct call *call)
{
    const struct rnn *rnn = call->rnn;
    const struct rnn_data *x = call->x, *y = call->y;
    if (!call->dnn || !rnn || !rnn->set || !x || !y || (call->mode != INFERENCE && call->mode != TRAINING)) return 0;
    if (x->vector != rnn->input || y->vector != rnn->projected * rnn->directions || x->type != rnn->type) return 0;
    if (x->steps != y->steps || x->batch != y->batch || x->packed != y->packed || x->layout != y->layout) return 0;
    if (call->weight_bytes < weight_bytes(rnn) || !call->weights) return 0;
    if (call->work_bytes < work_bytes(rnn, x, call->mode) || !call->work) return 0;
    return call->mode == INFERENCE || (call->reserve && call->reserve_bytes >= reserve_bytes(rnn, x, call->mode));
}

static size_t data_bytes(const struct rnn_data *data)
{
    size_t steps = data->layout == LAYOUT_STEPS_PACKED ? data->packed : (size_t)data->steps * (size_t)data->batch;
    return steps * (size_t)data->vector * sim_dnn_width(data->type);
}

/* Products of one pass over the network, one a layer and direction. */
static int multiply(const struct call *call)
{
    const struct rnn *rnn = call->rnn;
    for (int p = 0; p < rnn->layers * rnn->directions; p++) {
        int rows, columns;
        matrix_shape(rnn, p, 0, &rows, &columns);
        if (sim_library_product(call->dnn->stream, (int64_t)call->x->packed, (int64_t)gates(rnn) * rnn->hidden,
                                columns + rnn->projected, 1))
            return DNN_EXECUTION_FAILED;
    }
    return DNN_SUCCESS;
}

static int work(const struct call *call, const struct dnn_buffer *buffers, size_t count)
{
    const struct dnn_buffer spaces[] = {
        {call->lengths, (size_t)call->x->batch * sizeof(int)},
        {call->weights, call->weight_bytes},
        {call->work, call->work_bytes},
        {call->reserve, call->reserve_bytes},
    };
    int result = sim_dnn_touch(call->dnn, buffers, count);
    if (result == DNN_SUCCESS) result = sim_dnn_touch(call->dnn, spaces, sizeof spaces / sizeof *spaces);
    return result == DNN_SUCCESS ? multiply(call) : result;
}

LIBRARY(cudnnRNNForward,
        (struct dnn * dnn, const struct rnn *rnn, int mode, const int *lengths, const struct rnn_data *x_data,
         const void *x, const struct rnn_data *y_data, void *y, const struct dnn_tensor *h, const void *hx, void *hy,
         const struct dnn_tensor *c, const void *cx, void *cy, size_t weight_size, const void *weights,
         size_t work_size, void *work_space, size_t reserve_size, void *reserve))
{
    COUNT(cudnnRNNForward);
    const struct call call = {dnn,         rnn,       mode,         lengths, x_data,     y_data,
                              weight_size, work_size, reserve_size, weights, work_space, reserve};
    if (!fits(&call) || !x || !y) return DNN_BAD_PARAM;
    size_t h_bytes = sim_dnn_tensor_bytes(h), c_bytes = sim_dnn_tensor_bytes(c);
    const struct dnn_buffer buffers[] = {{x, data_bytes(x_data)}, {y, data_bytes(y_data)}, {hx, h_bytes},
                                         {hy, h_bytes},           {cx, c_bytes},           {cy, c_bytes}};
    return work(&call, buffers, sizeof buffers / sizeof *buffers);
}

LIBRARY(cudnnRNNBackwardData_v8,
        (struct dnn * dnn, const struct rnn *rnn, const int *lengths, const struct rnn_data *y_data, const void *y,
         const void *dy, const struct rnn_data *x_data, void *dx, const struct dnn_tensor *h, const void *hx,
         const void *dhy, void *dhx, const struct dnn_tensor *c, const void *cx, const void *dcy, void *dcx,
         size_t weight_size, const void *weights, size_t work_size, void *work_space, size_t reserve_size,
         void *reserve))
{
    COUNT(cudnnRNNBackwardData_v8);
    const struct call call = {dnn,         rnn,       TRAINING,     lengths, x_data,     y_data,
                              weight_size, work_size, reserve_size, weights, work_space, reserve};
    if (!fits(&call) || !y || !dy || !dx) return DNN_BAD_PARAM;
    size_t h_bytes = sim_dnn_tensor_bytes(h), c_bytes = sim_dnn_tensor_bytes(c), y_bytes = data_bytes(y_data);
    const struct dnn_buffer buffers[] = {{y, y_bytes},   {dy, y_bytes},  {dx, data_bytes(x_data)},
                                         {hx, h_bytes},  {dhy, h_bytes}, {dhx, h_bytes},
                                         {cx, c_bytes},  {dcy, c_bytes}, {dcx, c_bytes}};
    return work(&call, buffers, sizeof buffers / sizeof *buffers);
}

/* Gradients are added to what the space holds; any other mode is not supported by the real one either. */
LIBRARY(cudnnRNNBackwardWeights_v8,
        (struct dnn * dnn, const struct rnn *rnn, int add, const int *lengths, const struct rnn_data *x_data,
         const void *x, const struct dnn_tensor *h, const void *hx, const struct rnn_data *y_data, const void *y,
         size_t weight_size, void *gradients, size_t work_size, void *work_space, size_t reserve_size, void *reserve))
{
    COUNT(cudnnRNNBackwardWeights_v8);
    if (add) return DNN_NOT_SUPPORTED;
    const struct call call = {dnn,         rnn,       TRAINING,     lengths,   x_data,     y_data,
                              weight_size, work_size, reserve_size, gradients, work_space, reserve};
    if (!fits(&call) || !x || !y) return DNN_BAD_PARAM;
    const struct dnn_buffer buffers[] = {{x, data_bytes(x_data)}, {y, data_bytes(y_data)},
                                         {hx, sim_dnn_tensor_bytes(h)}};
    return work(&call, buffers, sizeof buffers / sizeof *buffers);
}
