/* SPDX-License-Identifier: Apache-2.0 */
/* cuDNN: handles, versions, and the descriptors of the older API; the backend is in dnn_graph.c. */
#include "sim/libs/dnn.h"

#include <stdlib.h>

SIM_ENTRY(size_t, cudnnGetVersion, (void))
{
    return 92400;
}

SIM_ENTRY(size_t, cudnnGetCudartVersion, (void))
{
    return 13000;
}

LIBRARY(cudnnGetProperty, (int which, int *out))
{
    static const int version[] = {9, 24, 0};
    if (!out || which < 0 || which > 2) return DNN_BAD_PARAM;
    *out = version[which];
    return DNN_SUCCESS;
}

SIM_ENTRY(const char *, cudnnGetErrorString, (int status))
{
    switch (status) {
    case DNN_SUCCESS: return "CUDNN_STATUS_SUCCESS";
    case DNN_BAD_PARAM: return "CUDNN_STATUS_BAD_PARAM";
    case DNN_NOT_SUPPORTED: return "simulated cuDNN: CUDNN_STATUS_NOT_SUPPORTED";
    case DNN_ALLOC_FAILED: return "CUDNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED";
    case DNN_EXECUTION_FAILED: return "CUDNN_STATUS_EXECUTION_FAILED";
    default: return "simulated cuDNN: an unknown status";
    }
}

SIM_ENTRY(void, cudnnGetLastErrorString, (char *text, size_t room))
{
    if (room) *text = 0;
}

LIBRARY(cudnnCreate, (struct dnn **out))
{
    COUNT(cudnnCreate);
    return sim_library_new((void **)out, sizeof **out) ? DNN_ALLOC_FAILED : DNN_SUCCESS;
}

LIBRARY(cudnnDestroy, (struct dnn * dnn))
{
    free(dnn);
    return DNN_SUCCESS;
}

LIBRARY(cudnnSetStream, (struct dnn * dnn, void *stream))
{
    if (!dnn) return DNN_BAD_PARAM;
    dnn->stream = stream;
    return DNN_SUCCESS;
}

LIBRARY(cudnnGetStream, (struct dnn * dnn, void **out))
{
    if (!dnn || !out) return DNN_BAD_PARAM;
    *out = dnn->stream;
    return DNN_SUCCESS;
}

/* ---- older descriptors: made and dropped, their settings are passed over ---- */

#define DESCRIPTOR(name)                                              \
    LIBRARY(cudnnCreate##name##Descriptor, (void **out))              \
    {                                                                 \
        return sim_library_new(out, DNN_DESCRIPTOR_BYTES) ? DNN_ALLOC_FAILED : DNN_SUCCESS; \
    }                                                                 \
    LIBRARY(cudnnDestroy##name##Descriptor, (void *descriptor))       \
    {                                                                 \
        free(descriptor);                                             \
        return DNN_SUCCESS;                                           \
    }
DESCRIPTOR(Activation)
DESCRIPTOR(CTCLoss)
DESCRIPTOR(Convolution)
DESCRIPTOR(Dropout)
DESCRIPTOR(Filter)
DESCRIPTOR(Pooling)
DESCRIPTOR(RNNData)
DESCRIPTOR(RNN)
DESCRIPTOR(SpatialTransformer)
DESCRIPTOR(Tensor)

LIBRARY(cudnnDropoutGetStatesSize, (struct dnn * dnn, size_t *out))
{
    if (!dnn || !out) return DNN_BAD_PARAM;
    *out = (size_t)1 << 20;
    return DNN_SUCCESS;
}

LIBRARY(cudnnGetBatchNormalizationForwardTrainingExWorkspaceSize,
        (struct dnn * dnn, int mode, int ops, void *x, void *z, void *y, void *scale, void *activation, size_t *out))
{
    (void)mode, (void)ops, (void)x, (void)z, (void)y, (void)scale, (void)activation;
    if (!dnn || !out) return DNN_BAD_PARAM;
    *out = 0;
    return DNN_SUCCESS;
}

LIBRARY(cudnnGetBatchNormalizationTrainingExReserveSpaceSize,
        (struct dnn * dnn, int mode, int ops, void *activation, void *x, size_t *out))
{
    (void)mode, (void)ops, (void)activation, (void)x;
    if (!dnn || !out) return DNN_BAD_PARAM;
    *out = 0;
    return DNN_SUCCESS;
}

LIBRARY(cudnnGetBatchNormalizationBackwardExWorkspaceSize,
        (struct dnn * dnn, int mode, int ops, void *x, void *y, void *dy, void *dz, void *dx, void *scale,
         void *activation, size_t *out))
{
    (void)mode, (void)ops, (void)x, (void)y, (void)dy, (void)dz, (void)dx, (void)scale, (void)activation;
    if (!dnn || !out) return DNN_BAD_PARAM;
    *out = 0;
    return DNN_SUCCESS;
}
