/* SPDX-License-Identifier: Apache-2.0 */
/* What the simulator's tests share: a fresh device for each test, and tests that must end in a stop. */
#ifndef GML_TESTS_SIM_SUPPORT_H
#define GML_TESTS_SIM_SUPPORT_H

#include "check.h"
#include "cuda_calls.h"

#include <stdbool.h>

#define MIB ((size_t)1 << 20)
#define CHUNK (2 * MIB)

/* Runs `test` in a child process with a simulated device of its own, under `setting` ("NAME=value", may
 * be NULL); fails if it does not end well. */
void run_on_device(const char *name, void (*test)(void), const char *setting);
/* The same, but the child must be stopped by SIGABRT with `text` on its standard error. */
void run_until_stop(const char *name, void (*test)(void), const char *setting, const char *text);

#define RUN_SIM(test) run_on_device(#test, test, NULL)
#define RUN_LATE(test) run_on_device(#test, test, "GML_SIM_TIME=adversarial:7")
#define RUN_STOP(test, text) run_until_stop(#test, test, NULL, text)

/* The primary context of device 0, current on this thread. */
CUcontext use_device(void);
CUmemAllocationProp device_memory(void);
CUmemGenericAllocationHandle create(size_t bytes);
CUdeviceptr reserve(size_t bytes);
void give_access(CUdeviceptr va, size_t bytes);
/* Reserved, created, mapped, accessible. */
CUdeviceptr mapped(size_t bytes, CUmemGenericAllocationHandle *handle);
CUstream stream_new(void);
CUevent event_new(void);
/* A kernel that is registered with this (mangled) name. */
CUfunction kernel(const char *name);
/* A host function that sleeps for the number of milliseconds that its argument is. */
void sleep_ms(void *ms);
/* Keeps a stream busy. */
void keep_busy(CUstream stream, unsigned ms);

#endif
