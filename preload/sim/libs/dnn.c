/* SPDX-License-Identifier: Apache-2.0 */
/* cuDNN: the backend API of version 9 as torch uses it, and the descriptors of the older one.
 *
 * The backend is a bag of attributes: torch's frontend builds an operation graph, asks a heuristic for
 * engine configurations, finalises one into a plan and executes it. One engine without workspace is
 * offered for every graph; attributes that are asked for and have no answer here count as empty. */
#include "sim/libs/dnn.h"

#include <stdlib.h>
#include <string.h>

/* cudnnBackendAttributeName_t: those that are answered. */
enum {
    ENGINEHEUR_RESULTS = 202,
    ENGINECFG_ENGINE = 300,
    ENGINECFG_INTERMEDIATE_INFO = 301,
    ENGINECFG_KNOB_CHOICES = 302,
    ENGINECFG_WORKSPACE_SIZE = 303,
    ENGINECFG_SHARED_MEMORY = 304,
    PLAN_WORKSPACE_SIZE = 402,
    PLAN_JSON = 405,
    ENGINE_WORKSPACE = 1301,
    ENGINE_SM_COUNT = 1306
};

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

/* ---- backend ---- */

LIBRARY(cudnnBackendCreateDescriptor, (int type, void **out))
{
    COUNT(cudnnBackendCreateDescriptor);
    if (sim_library_new(out, 64)) return DNN_ALLOC_FAILED;
    memcpy(*out, &type, sizeof type);
    return DNN_SUCCESS;
}

LIBRARY(cudnnBackendDestroyDescriptor, (void *descriptor))
{
    free(descriptor);
    return DNN_SUCCESS;
}

LIBRARY(cudnnBackendFinalize, (void *descriptor))
{
    return descriptor ? DNN_SUCCESS : DNN_BAD_PARAM;
}

LIBRARY(cudnnBackendSetAttribute, (void *descriptor, int name, int type, int64_t count, const void *values))
{
    (void)name, (void)type, (void)count, (void)values;
    return descriptor ? DNN_SUCCESS : DNN_BAD_PARAM;
}

LIBRARY(cudnnBackendGetAttribute,
        (void *descriptor, int name, int type, int64_t wanted, int64_t *found, void *values))
{
    (void)type;
    COUNT(cudnnBackendGetAttribute);
    if (!descriptor) return DNN_BAD_PARAM;
    int64_t answers = 0;
    switch (name) {
    case ENGINEHEUR_RESULTS:
    case ENGINECFG_ENGINE:
    case ENGINECFG_INTERMEDIATE_INFO: answers = 1; break; /* the caller's descriptor stands for the answer */
    case ENGINECFG_WORKSPACE_SIZE:
    case PLAN_WORKSPACE_SIZE:
    case ENGINE_WORKSPACE:
        if (values) memset(values, 0, sizeof(int64_t));
        answers = 1;
        break;
    case ENGINECFG_SHARED_MEMORY:
    case ENGINE_SM_COUNT:
        if (values) memset(values, 0, sizeof(int32_t));
        answers = 1;
        break;
    case PLAN_JSON:
        if (values && wanted >= 3) memcpy(values, "{}", 3);
        answers = 3;
        break;
    default: break; /* knobs, notes: none */
    }
    if (found) *found = answers;
    return DNN_SUCCESS;
}

LIBRARY(cudnnBackendExecute, (struct dnn * dnn, void *plan, void *variants))
{
    (void)variants;
    COUNT(cudnnBackendExecute);
    if (!dnn || !plan) return DNN_BAD_PARAM;
    return sim_library_launch(dnn->stream) ? DNN_EXECUTION_FAILED : DNN_SUCCESS;
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
