/* SPDX-License-Identifier: Apache-2.0 */
/* cuDNN's backend (graph) API as torch uses it.
 *
 * The backend is a bag of attributes: torch's frontend describes tensors, builds operations and a graph of them,
 * asks a heuristic for engine configurations, finalises one into a plan and executes it. One engine without
 * workspace is offered for every graph; attributes that are asked for and have no answer here count as empty.
 *
 * What is kept is how much a graph computes, for the virtual clock: a convolution N x K x P x Q of C / groups
 * channels under filters R x S takes 2 N K P Q (C / groups) R S operations, forward and for either gradient alike;
 * a matrix product 2 m n k per batch; attention two products forward and five backward, masks save none. The
 * figure passes from descriptor to descriptor as they refer to each other, so that none of them needs to live as long
 * as the plan. */
#include "sim/libs/dnn.h"

#include <stdlib.h>
#include <string.h>

/* cudnnBackendAttributeName_t: those that are looked at. */
enum {
    ENGINEHEUR_GRAPH = 201,
    ENGINEHEUR_RESULTS = 202,
    ENGINECFG_ENGINE = 300,
    ENGINECFG_INTERMEDIATE_INFO = 301,
    ENGINECFG_WORKSPACE_SIZE = 303,
    ENGINECFG_SHARED_MEMORY = 304,
    PLAN_ENGINE_CONFIG = 401,
    PLAN_WORKSPACE_SIZE = 402,
    PLAN_JSON = 405,
    CONVOLUTION_FORWARD_W = 703,
    CONVOLUTION_FORWARD_Y = 705,
    CONVOLUTION_BWD_DATA_W = 709,
    CONVOLUTION_BWD_DATA_DY = 711,
    CONVOLUTION_BWD_FILTER_DW = 715,
    CONVOLUTION_BWD_FILTER_DY = 717,
    GRAPH_OPERATIONS = 801,
    TENSOR_DIMENSIONS = 902,
    VARIANT_DATA_POINTERS = 1001,
    ENGINE_GRAPH = 1300,
    ENGINE_WORKSPACE = 1301,
    ENGINE_SM_COUNT = 1306,
    MATMUL_A = 1520,
    MATMUL_C = 1522,
    ATTENTION_Q = 2800,
    ATTENTION_K = 2801,
    ATTENTION_O = 2803,
    ATTENTION_BWD_Q = 2851,
    ATTENTION_BWD_K = 2852,
    ATTENTION_BWD_O = 2854
};

struct descriptor {
    int type;
    double elements, first, rows, columns; /* of a tensor: its elements, and the first and last two dimensions */
    double output, depth; /* of an operation: elements that are computed, and products that are added up in each */
    double operations;    /* of an operation, and of what is made of it */
    const void **pointers; /* of a variant pack: tensors */
    size_t count;
};

LIBRARY(cudnnBackendCreateDescriptor, (int type, struct descriptor **out))
{
    COUNT(cudnnBackendCreateDescriptor);
    if (!out) return DNN_BAD_PARAM;
    if (sim_library_new((void **)out, sizeof **out)) return DNN_ALLOC_FAILED;
    (*out)->type = type;
    return DNN_SUCCESS;
}

LIBRARY(cudnnBackendDestroyDescriptor, (struct descriptor * descriptor))
{
    if (descriptor) free(descriptor->pointers);
    free(descriptor);
    return DNN_SUCCESS;
}

LIBRARY(cudnnBackendFinalize, (struct descriptor * descriptor))
{
    return descriptor ? DNN_SUCCESS : DNN_BAD_PARAM;
}

static void set_dimensions(struct descriptor *tensor, int64_t count, const int64_t *sizes)
{
    tensor->elements = 1;
    for (int64_t i = 0; i < count; i++) tensor->elements *= (double)sizes[i];
    tensor->first = (double)sizes[0];
    tensor->rows = (double)sizes[count > 1 ? count - 2 : 0];
    tensor->columns = (double)sizes[count - 1];
}

/* An attribute whose values are other descriptors. */
static void refer(struct descriptor *d, int name, int64_t count, struct descriptor *const *to)
{
    const struct descriptor *one = to[0];
    switch (name) {
    case CONVOLUTION_FORWARD_W:
    case CONVOLUTION_BWD_DATA_W:
    case CONVOLUTION_BWD_FILTER_DW: /* a filter is [K, C / groups, R, S] */
        d->depth = one->first > 0 ? one->elements / one->first : 0;
        break;
    case MATMUL_A: d->depth = one->columns; break;
    case ATTENTION_K:
    case ATTENTION_BWD_K: d->depth = one->rows; break; /* queries and outputs are [batch, heads, length, width] */
    case ATTENTION_Q:
    case ATTENTION_O: d->output += one->elements; break;
    case ATTENTION_BWD_Q: d->output += 3 * one->elements; break;
    case ATTENTION_BWD_O: d->output += 2 * one->elements; break;
    case CONVOLUTION_FORWARD_Y:
    case CONVOLUTION_BWD_DATA_DY:
    case CONVOLUTION_BWD_FILTER_DY:
    case MATMUL_C: d->output = one->elements; break;
    case GRAPH_OPERATIONS:
        d->operations = 0;
        for (int64_t i = 0; i < count; i++) d->operations += to[i] ? to[i]->operations : 0;
        return;
    case ENGINEHEUR_GRAPH:
    case ENGINE_GRAPH:
    case ENGINECFG_ENGINE:
    case PLAN_ENGINE_CONFIG: d->operations = one->operations; return;
    default: return;
    }
    d->operations = 2 * d->depth * d->output;
}

static int add_pointers(struct descriptor *d, int64_t count, const void *const *pointers)
{
    const void **grown = realloc(d->pointers, (d->count + (size_t)count) * sizeof *grown);
    if (!grown) return DNN_ALLOC_FAILED;
    memcpy(grown + d->count, pointers, (size_t)count * sizeof *grown);
    d->pointers = grown;
    d->count += (size_t)count;
    return DNN_SUCCESS;
}

LIBRARY(cudnnBackendSetAttribute,
        (struct descriptor * descriptor, int name, int type, int64_t count, const void *values))
{
    enum { TYPE_INT64 = 3, TYPE_POINTER = 6, TYPE_DESCRIPTOR = 15 };
    if (!descriptor) return DNN_BAD_PARAM;
    if (count < 1 || !values) return DNN_SUCCESS;
    if (type == TYPE_POINTER && name == VARIANT_DATA_POINTERS) /* the workspace has no bytes: it may be anywhere */
        return add_pointers(descriptor, count, values);
    if (type == TYPE_INT64 && name == TENSOR_DIMENSIONS) set_dimensions(descriptor, count, values);
    struct descriptor *const *to = values;
    if (type == TYPE_DESCRIPTOR && to[0]) refer(descriptor, name, count, to);
    return DNN_SUCCESS;
}

LIBRARY(cudnnBackendGetAttribute,
        (struct descriptor * descriptor, int name, int type, int64_t wanted, int64_t *found, void *values))
{
    (void)type;
    COUNT(cudnnBackendGetAttribute);
    if (!descriptor) return DNN_BAD_PARAM;
    int64_t answers = 0;
    switch (name) {
    case ENGINEHEUR_RESULTS:
    case ENGINECFG_ENGINE:
    case ENGINECFG_INTERMEDIATE_INFO: /* the caller's descriptor stands for the answer */
        if (values && wanted >= 1 && *(struct descriptor **)values)
            (*(struct descriptor **)values)->operations = descriptor->operations;
        answers = 1;
        break;
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

LIBRARY(cudnnBackendExecute, (struct dnn * dnn, struct descriptor *plan, struct descriptor *variants))
{
    COUNT(cudnnBackendExecute);
    if (!dnn || !plan) return DNN_BAD_PARAM;
    /* Sizes are not kept: the first byte of each tensor counts. Numbers of the host stand among them as well. */
    for (size_t i = 0; variants && i < variants->count; i++)
        if (variants->pointers[i] && sim_library_touch(dnn->stream, variants->pointers[i], 1))
            return DNN_EXECUTION_FAILED;
    return sim_library_work(dnn->stream, plan->operations) ? DNN_EXECUTION_FAILED : DNN_SUCCESS;
}
