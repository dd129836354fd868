/* SPDX-License-Identifier: Apache-2.0 */
/* Errors of the runtime: the last one of each thread, and their names and texts. */
#include "sim/runtime/runtime.h"

static __thread cudaError_t last_error;
static __thread unsigned error_epoch; /* when it happened */
static _Atomic unsigned epoch;        /* resets of a device so far: what was lost before one is lost no more */

cudaError_t sim_fail(cudaError_t error)
{
    if (error == cudaSuccess) return error;
    last_error = error;
    error_epoch = epoch;
    return error;
}

cudaError_t sim_return(CUresult result)
{
    return sim_fail((cudaError_t)result);
}

void sim_forget_lost(void)
{
    epoch++;
}

SIM_ENTRY(cudaError_t, cudaPeekAtLastError, (void))
{
    if (last_error == cudaErrorIllegalAddress && error_epoch != epoch) last_error = cudaSuccess;
    return last_error;
}

/* An illegal access stays while the context is lost, that is until a reset. */
SIM_ENTRY(cudaError_t, cudaGetLastError, (void))
{
    cudaError_t error = cudaPeekAtLastError();
    if (error != cudaErrorIllegalAddress) last_error = cudaSuccess;
    return error;
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
