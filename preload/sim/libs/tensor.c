/* SPDX-License-Identifier: Apache-2.0 */
/* cuDNN: tensor and filter descriptors, and the buffers of a call. */
#include "sim/libs/dnn.h"

#include <string.h>

size_t sim_dnn_width(int type)
{
    /* float, double, half, int8, int32, int8x4, uint8, uint8x4, int8x32, bfloat16, int64, boolean, fp8 twice */
    static const unsigned char bytes[] = {4, 8, 2, 1, 4, 4, 1, 4, 32, 2, 8, 1, 1, 1};
    return type >= 0 && (size_t)type < sizeof bytes ? bytes[type] : 0;
}

void sim_dnn_tensor_fill(struct dnn_tensor *tensor, int type, int dims, const int *size)
{
    *tensor = (struct dnn_tensor){.type = type, .dims = dims};
    for (int i = dims - 1, stride = 1; i >= 0; stride *= size[i], i--) {
        tensor->size[i] = size[i];
        tensor->stride[i] = stride;
    }
}

size_t sim_dnn_tensor_bytes(const struct dnn_tensor *tensor)
{
    size_t last = 0;
    if (!tensor || !tensor->dims) return 0;
    for (int i = 0; i < tensor->dims; i++) last += (size_t)(tensor->size[i] - 1) * (size_t)tensor->stride[i];
    return (last + 1) * sim_dnn_width(tensor->type);
}

int sim_dnn_touch(const struct dnn *dnn, const struct dnn_buffer *buffers, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (buffers[i].pointer && buffers[i].bytes &&
            sim_library_touch(dnn->stream, buffers[i].pointer, buffers[i].bytes))
            return DNN_EXECUTION_FAILED;
    return DNN_SUCCESS;
}

static int sizes_ok(int type, int dims, const int *size)
{
    if (!sim_dnn_width(type) || dims < 1 || dims > DNN_MAX_DIMS || !size) return 0;
    for (int i = 0; i < dims; i++)
        if (size[i] < 1) return 0;
    return 1;
}

LIBRARY(cudnnSetTensorNdDescriptor,
        (struct dnn_tensor * tensor, int type, int dims, const int *size, const int *stride))
{
    if (!tensor || !stride || !sizes_ok(type, dims, size)) return DNN_BAD_PARAM;
    sim_dnn_tensor_fill(tensor, type, dims, size);
    memcpy(tensor->stride, stride, (size_t)dims * sizeof *stride);
    return DNN_SUCCESS;
}

LIBRARY(cudnnGetTensorNdDescriptor,
        (const struct dnn_tensor *tensor, int wanted, int *type, int *dims, int *size, int *stride))
{
    if (!tensor || wanted < 1 || !type || !dims || !size || !stride) return DNN_BAD_PARAM;
    *type = tensor->type;
    *dims = tensor->dims;
    for (int i = 0; i < wanted && i < tensor->dims; i++) {
        size[i] = tensor->size[i];
        stride[i] = tensor->stride[i];
    }
    return DNN_SUCCESS;
}

LIBRARY(cudnnSetFilterNdDescriptor, (struct dnn_tensor * filter, int type, int format, int dims, const int *size))
{
    if (!filter || !sizes_ok(type, dims, size)) return DNN_BAD_PARAM;
    sim_dnn_tensor_fill(filter, type, dims, size);
    filter->format = format;
    return DNN_SUCCESS;
}

LIBRARY(cudnnGetFilterNdDescriptor,
        (const struct dnn_tensor *filter, int wanted, int *type, int *format, int *dims, int *size))
{
    if (!filter || wanted < 1 || !type || !format || !dims || !size) return DNN_BAD_PARAM;
    *type = filter->type;
    *format = filter->format;
    *dims = filter->dims;
    for (int i = 0; i < wanted && i < filter->dims; i++) size[i] = filter->size[i];
    return DNN_SUCCESS;
}
