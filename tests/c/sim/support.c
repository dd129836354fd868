/* SPDX-License-Identifier: Apache-2.0 */
/* Support of the simulator's tests: child processes with a device of their own, and short hands. */
#define _GNU_SOURCE
#include "support.h"

#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static int in_child(void (*test)(void), const char *setting, char *output, size_t room)
{
    int pipe_end[2];
    CHECK(pipe(pipe_end) == 0);
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        dup2(pipe_end[1], 2);
        close(pipe_end[0]);
        setenv("GML_SIM_PROFILE", "h100", 1);
        setenv("GML_SIM_MEMORY", "1592786944", 1); /* 999 MiB behind the context, and not a multiple of 32 */
        char *pair = setting ? strdup(setting) : NULL;
        if (pair) {
            char *value = strchr(pair, '=');
            *value = 0;
            setenv(pair, value + 1, 1);
        }
        test();
        exit(0);
    }
    close(pipe_end[1]);
    size_t length = 0;
    char scratch[512];
    for (;;) {
        ssize_t n = read(pipe_end[0], scratch, sizeof scratch);
        if (n <= 0) break;
        size_t keep = room - 1 - length < (size_t)n ? room - 1 - length : (size_t)n;
        memcpy(output + length, scratch, keep);
        length += keep;
    }
    output[length] = 0;
    close(pipe_end[0]);
    int status;
    CHECK(waitpid(child, &status, 0) == child);
    return status;
}

void run_on_device(const char *name, void (*test)(void), const char *setting)
{
    static char output[65536];
    printf("%s %s\n", name, setting ? setting : "");
    fflush(stdout);
    int status = in_child(test, setting, output, sizeof output);
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) {
        fprintf(stderr, "%s ended with status 0x%x\n%s", name, (unsigned)status, output);
        exit(1);
    }
}

void run_until_stop(const char *name, void (*test)(void), const char *setting, const char *text)
{
    static char output[65536];
    printf("%s\n", name);
    fflush(stdout);
    int status = in_child(test, setting, output, sizeof output);
    if (!WIFSIGNALED(status) || WTERMSIG(status) != SIGABRT || !strstr(output, text)) {
        fprintf(stderr, "%s ended with status 0x%x instead of a stop with \"%s\"\n%s", name, (unsigned)status, text,
                output);
        exit(1);
    }
}

CUcontext use_device(void)
{
    CUcontext ctx;
    CHECK_EQUAL(cuInit(0), 0);
    CHECK_EQUAL(cuDevicePrimaryCtxRetain(&ctx, 0), 0);
    CHECK_EQUAL(cuCtxSetCurrent(ctx), 0);
    return ctx;
}

CUmemAllocationProp device_memory(void)
{
    return (CUmemAllocationProp){.type = CU_MEM_ALLOCATION_TYPE_PINNED,
                                 .location = {CU_MEM_LOCATION_TYPE_DEVICE, 0}};
}

CUmemGenericAllocationHandle create(size_t bytes)
{
    CUmemGenericAllocationHandle handle;
    CUmemAllocationProp prop = device_memory();
    CHECK_EQUAL(cuMemCreate(&handle, bytes, &prop, 0), 0);
    return handle;
}

CUdeviceptr reserve(size_t bytes)
{
    CUdeviceptr va;
    CHECK_EQUAL(cuMemAddressReserve(&va, bytes, 0, 0, 0), 0);
    return va;
}

void give_access(CUdeviceptr va, size_t bytes)
{
    CUmemAccessDesc desc = {{CU_MEM_LOCATION_TYPE_DEVICE, 0}, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    CHECK_EQUAL(cuMemSetAccess(va, bytes, &desc, 1), 0);
}

CUdeviceptr mapped(size_t bytes, CUmemGenericAllocationHandle *handle)
{
    CUdeviceptr va = reserve(bytes);
    *handle = create(bytes);
    CHECK_EQUAL(cuMemMap(va, bytes, 0, *handle, 0), 0);
    give_access(va, bytes);
    return va;
}

CUstream stream_new(void)
{
    CUstream stream;
    CHECK_EQUAL(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING), 0);
    return stream;
}

CUevent event_new(void)
{
    CUevent event;
    CHECK_EQUAL(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING), 0);
    return event;
}

CUfunction kernel(const char *name)
{
    CUmodule module;
    CUfunction function;
    CHECK_EQUAL(cuModuleLoadData(&module, "image"), 0);
    CHECK_EQUAL(cuModuleGetFunction(&function, module, name), 0);
    return function;
}

void sleep_ms(void *ms)
{
    usleep((unsigned)(uintptr_t)ms * 1000);
}

void keep_busy(CUstream stream, unsigned ms)
{
    CHECK_EQUAL(cuLaunchHostFunc(stream, sleep_ms, (void *)(uintptr_t)ms), 0);
}
