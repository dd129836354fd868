/* SPDX-License-Identifier: Apache-2.0 */
/* What every entry point begins with: its counter, faults on demand, and the checks of the API. */
#ifndef GML_SIM_ENTRY_H
#define GML_SIM_ENTRY_H

#include "cuda/driver_abi.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Declares and defines an exported function: the public ABI has no header of ours. */
#define SIM_EXPORT __attribute__((visibility("default")))
#define SIM_ENTRY(type, name, params) \
    SIM_EXPORT type name params;      \
    SIM_EXPORT type name params
#define DRIVER(name, params) SIM_ENTRY(CUresult, name, params)

/* First line of a driver entry point: counts the call, injects a fault, refuses without cuInit. */
#define ENTER(name)                                                 \
    do {                                                            \
        static struct sim_counter *counter_;                        \
        CUresult enter_ = sim_enter(&counter_, #name);              \
        if (enter_ != CUDA_SUCCESS) return enter_;                  \
    } while (0)
/* The same, for calls that need a current context, which becomes `ctx`. */
#define ENTER_CTX(name, ctx)                                        \
    ENTER(name);                                                    \
    struct sim_ctx *ctx;                                            \
    do {                                                            \
        CUresult ctx_ = sim_ctx_current(&ctx);                      \
        if (ctx_ != CUDA_SUCCESS) return ctx_;                      \
    } while (0)

/* ---- counters and report (count.c) ---- */

struct sim_counter {
    const char *name;
    _Atomic uint64_t calls;
    bool stub;
    struct sim_counter *next;
};

struct sim_counter *sim_counter_get(const char *name);
void sim_report_arm(void); /* writes sim-<pid>.json at exit if there is a run directory */
/* Faults on demand (fault.c): what the call answers instead; may sleep. Halfway faults let a call over
 * several maps act on the first half of them before it fails. */
CUresult sim_fault_check(const char *name, uint64_t call);
CUresult sim_fault_halfway(void);
size_t sim_fault_foreign_bytes(void); /* held by "another process" after so many physical allocations */
void sim_fault_read(void);
extern _Atomic bool sim_faults_on;

/* Counts a call; refuses it without cuInit, or as a fault was ordered (context.c). */
CUresult sim_enter(struct sim_counter **counter, const char *name);

#endif
