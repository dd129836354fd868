/* SPDX-License-Identifier: Apache-2.0 */
/* Simulated cuDNN: what its files share. Descriptors are zeroed objects of DNN_DESCRIPTOR_BYTES. */
#ifndef GML_SIM_DNN_H
#define GML_SIM_DNN_H

#include "sim/libs/libs.h"

enum {
    DNN_SUCCESS = 0,
    DNN_BAD_PARAM = 2000,
    DNN_NOT_SUPPORTED = 3000,
    DNN_ALLOC_FAILED = 4003,
    DNN_EXECUTION_FAILED = 5000,
    DNN_DESCRIPTOR_BYTES = 256,
    DNN_MAX_DIMS = 8
};

struct dnn {
    void *stream;
};

/* Behind tensor and filter descriptors: cudnnDataType_t and sizes in elements. */
struct dnn_tensor {
    int type, format, dims;
    int size[DNN_MAX_DIMS], stride[DNN_MAX_DIMS];
};

/* Bytes of an element of cudnnDataType_t; 0 for an unknown type. */
size_t sim_dnn_width(int type);
/* A dense tensor, the last dimension without gaps. */
void sim_dnn_tensor_fill(struct dnn_tensor *tensor, int type, int dims, const int *size);
/* Bytes from its first to its last element; 0 when it was never set. */
size_t sim_dnn_tensor_bytes(const struct dnn_tensor *tensor);

/* A buffer that work reads or writes. A NULL pointer stands for one that was left out. */
struct dnn_buffer {
    const void *pointer;
    size_t bytes;
};

/* The work touches every byte of these buffers: one without access is an illegal access. */
int sim_dnn_touch(const struct dnn *dnn, const struct dnn_buffer *buffers, size_t count);

#endif
