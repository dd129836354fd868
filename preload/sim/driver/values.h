/* SPDX-License-Identifier: Apache-2.0 */
/* Computed values: what the program asked of results that nobody computed (values.c). */
#ifndef GML_SIM_VALUES_H
#define GML_SIM_VALUES_H

#include "sim/driver/kernel.h"
#include "sim/driver/object.h"
#include "sim/driver/stream.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* A kernel as the driver knows it. */
struct sim_function {
    struct sim_object object;
    int max_dynamic_shared;
    int result; /* the data-dependent result that it computes, -1: none */
    struct sim_plan plan;
};

/* What a kernel of this (mangled) name computes, for `result`. */
int sim_values_result(const char *name);

/* A launch; `function` is NULL for a library's work. To be called by the thread that submits it. */
void sim_values_launched_locked(const struct sim_function *function);
/* A copy is submitted between host and device: data that breaks a row of flags, or one more read of it. */
void sim_values_exchanged_locked(bool to_host, size_t bytes);
/* A kernel of `function` has its turn on a stream. */
void sim_values_executed_locked(struct sim_stream *stream, const struct sim_function *function);
/* The host reads `bytes` that are not known, behind the kernels of `stream`. True: answer yes. `holds`: it is an
 * all() over checks that are taken to hold. */
bool sim_values_read_locked(const struct sim_stream *stream, size_t bytes, bool holds);

/* The part of sim-<pid>.json. */
void sim_values_write(FILE *out);

#endif
