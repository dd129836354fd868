/* SPDX-License-Identifier: Apache-2.0 */
/* What is known of the contents of device memory (known.c). */
#ifndef GML_SIM_KNOWN_H
#define GML_SIM_KNOWN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct sim_phys;

enum sim_known {
    SIM_UNKNOWN, /* a kernel computed it, or nobody wrote it */
    SIM_HOLDS,   /* booleans nobody computed, each the answer of a check that is taken to hold (compute.c) */
    SIM_ALL,     /* the same, and it is an all() over such answers */
    SIM_KNOWN    /* the bytes in memory are what a device would hold */
};

enum sim_given {
    SIM_GIVEN_NOT,
    SIM_GIVEN_COPY,   /* by a copy from the host */
    SIM_GIVEN_ELEMENT /* one element, by a fill, or by the step of a loss scaler, which alone goes by it (scaler.c) */
};

/* A piece gets a new state; SIM_UNKNOWN forgets it. */
void sim_known_set_locked(const struct sim_phys *phys, size_t at, size_t bytes, enum sim_known state);
/* The state of all of these bytes; SIM_UNKNOWN where they differ. */
enum sim_known sim_known_get_locked(const struct sim_phys *phys, size_t at, size_t bytes);
/* Anything is known of these bytes. */
bool sim_known_any_locked(const struct sim_phys *phys, size_t at, size_t bytes);
/* Zeros in place of what is not known, in a copy of these bytes. */
void sim_known_blank_locked(const struct sim_phys *phys, size_t at, size_t bytes, char *copy);
/* Just these bytes were written here in one piece; how, where that is the last that is remembered of the place. */
void sim_known_give_locked(const struct sim_phys *phys, size_t at, size_t bytes, enum sim_given how);
enum sim_given sim_known_given_locked(const struct sim_phys *phys, size_t at, size_t bytes);
/* A copy between two places. */
void sim_known_copy_locked(const struct sim_phys *from, size_t at, size_t bytes, const struct sim_phys *to,
                           size_t to_at);
/* A kernel ran that may have written anything. */
void sim_known_nothing_locked(void);

/* The same for addresses of the device, which may cross maps. */
void sim_known_mark_locked(uintptr_t va, size_t bytes, enum sim_known state);
enum sim_known sim_known_of_locked(uintptr_t va, size_t bytes);
bool sim_known_some_locked(uintptr_t va, size_t bytes);

#endif
