/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the driver's entry points and translates its results. */
#define _GNU_SOURCE
#include "device/cuda_driver.h"

#include "base/config.h"

#include <dlfcn.h>
#include <string.h>

typedef CUresult (*proc_address_fn)(const char *, void **, int, uint64_t, int *);

typedef struct entry {
    const char *symbol;
    const char *name;
    int version;
    size_t offset;
    bool required;
} entry;

static const entry entries[] = {
#define X(field, symbol, name, version, parameters) \
    {symbol, name, version, offsetof(gml_cuda_driver, field), true},
    GML_DRIVER_REQUIRED(X)
#undef X
#define X(field, symbol, name, version, parameters) \
    {symbol, name, version, offsetof(gml_cuda_driver, field), false},
    GML_DRIVER_OPTIONAL(X)
#undef X
};

/* A function pointer cannot be assigned from void* in ISO C; copying the bytes is the portable way. */
static void store(gml_cuda_driver *driver, size_t offset, void *function)
{
    memcpy((char *)driver + offset, &function, sizeof function);
}

static void *find(void *library, proc_address_fn proc_address, const entry *wanted)
{
    void *function = NULL;
    int found = CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
    /* The driver's own resolver first: it answers with the ABI that the version asks for. */
    if (proc_address != NULL &&
        proc_address(wanted->name, &function, wanted->version, CU_GET_PROC_ADDRESS_LEGACY_STREAM, &found) ==
            CUDA_SUCCESS &&
        found == CU_GET_PROC_ADDRESS_SUCCESS && function != NULL)
        return function;
    return dlsym(library, wanted->symbol);
}

gml_status gml_cuda_driver_load(gml_cuda_driver *driver)
{
    void *library = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_NOLOAD);
    if (library == NULL)
        library = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_LOCAL);
    if (library == NULL)
        return GML_NOT_FOUND;
    proc_address_fn proc_address = NULL;
    void *symbol = dlsym(library, "cuGetProcAddress_v2");
    memcpy(&proc_address, &symbol, sizeof symbol);
    for (size_t i = 0; i < sizeof entries / sizeof entries[0]; i++) {
        void *function = find(library, proc_address, &entries[i]);
        if (function == NULL && entries[i].required)
            return GML_UNSUPPORTED;
        store(driver, entries[i].offset, function);
    }
    store(driver, offsetof(gml_cuda_driver, sim_now_ns), dlsym(library, "gml_sim_now_ns"));
    if (strcmp(gml_config_text(GML_OPTION_SIM_ORACLE), "0") != 0)
        store(driver, offsetof(gml_cuda_driver, sim_note), dlsym(library, "gml_sim_note"));
    return GML_OK;
}

/* Only the results that the heap tells apart are named. Everything else means that the context is
 * unusable: such errors stick, and the next real call reports them to the program. */
gml_status gml_cuda_status(CUresult result)
{
    static const struct {
        int result;
        gml_status status;
    } table[] = {
        {CUDA_SUCCESS, GML_OK},
        {CUDA_ERROR_OUT_OF_MEMORY, GML_OUT_OF_MEMORY},
        {CUDA_ERROR_NOT_READY, GML_NOT_READY},
        {CUDA_ERROR_INVALID_VALUE, GML_INVALID},
        {CUDA_ERROR_INVALID_HANDLE, GML_INVALID},
        {CUDA_ERROR_ILLEGAL_STATE, GML_INVALID},
        {CUDA_ERROR_INVALID_CONTEXT, GML_NO_CONTEXT},
        {CUDA_ERROR_NOT_SUPPORTED, GML_UNSUPPORTED},
        {CUDA_ERROR_NOT_PERMITTED, GML_UNSUPPORTED},
        {CUDA_ERROR_OPERATING_SYSTEM, GML_OS},
    };
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++)
        if (table[i].result == (int)result)
            return table[i].status;
    if ((int)result >= CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED &&
        (int)result <= CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD)
        return GML_CAPTURING;
    return GML_DEVICE_LOST;
}
