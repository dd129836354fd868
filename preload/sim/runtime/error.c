/* SPDX-License-Identifier: Apache-2.0 */
/* Errors of the runtime: the last one of each thread, and their names and texts. */
#include "sim/runtime/runtime.h"

static __thread cudaError_t last_error;

cudaError_t sim_fail(cudaError_t error)
{
    if (error != cudaSuccess) last_error = error;
    return error;
}

cudaError_t sim_return(CUresult result)
{
    return sim_fail((cudaError_t)result);
}

/* An illegal access stays: the context is lost. */
SIM_ENTRY(cudaError_t, cudaGetLastError, (void))
{
    cudaError_t error = last_error;
    if (error != cudaErrorIllegalAddress) last_error = cudaSuccess;
    return error;
}

SIM_ENTRY(cudaError_t, cudaPeekAtLastError, (void))
{
    return last_error;
}

static const struct {
    int value;
    const char *name, *text;
} errors[] = {
#define X(value, name, text) {value, #name, text},
    CUDA_ERRORS(X)
#undef X
};

SIM_ENTRY(const char *, cudaGetErrorString, (cudaError_t error))
{
    for (size_t i = 0; i < sizeof errors / sizeof *errors; i++)
        if (errors[i].value == (int)error) return errors[i].text;
    return "unrecognized error code";
}

SIM_ENTRY(const char *, cudaGetErrorName, (cudaError_t error))
{
    for (size_t i = 0; i < sizeof errors / sizeof *errors; i++)
        if (errors[i].value == (int)error) return errors[i].name;
    return "unrecognized error code";
}
