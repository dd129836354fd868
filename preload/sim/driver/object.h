/* SPDX-License-Identifier: Apache-2.0 */
/* Objects behind handles (object.c). */
#ifndef GML_SIM_OBJECT_H
#define GML_SIM_OBJECT_H

#include <stdint.h>

enum sim_kind {
    SIM_CTX = 1,
    SIM_STREAM,
    SIM_EVENT,
    SIM_PHYS,
    SIM_POOL,
    SIM_GRAPH,
    SIM_EXEC,
    SIM_NODE,
    SIM_USER_OBJECT,
    SIM_MODULE,
    SIM_FUNCTION,
    SIM_KIND_COUNT
};

struct sim_object {
    uint32_t magic; /* 0 when freed */
    uint32_t kind;
    struct sim_object *next_free;
};

/* A zeroed object of `kind`; NULL without memory. Handles of dead objects never validate. */
void *sim_object_new_locked(enum sim_kind kind);
void sim_object_free_locked(void *object);
/* The object behind a handle from outside, or NULL. */
void *sim_object_get_locked(enum sim_kind kind, const void *handle);
void sim_object_each_locked(enum sim_kind kind, void (*see)(const void *object, void *context), void *context);

#endif
