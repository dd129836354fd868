/* SPDX-License-Identifier: Apache-2.0 */
/* Objects behind handles: slabs that are never unmapped, so that a stale handle is told from a live one.
 *
 * A freed object's slot is used again, last freed first, as a real driver's handles return. */
#define _GNU_SOURCE
#include "sim/driver/driver.h"

#include <string.h>
#include <sys/mman.h>

enum { SLABS = 24, FIRST_SLAB = 256 };
static const uint32_t MAGIC = 0x51a17e57;

static const size_t sizes[SIM_KIND_COUNT] = {
    [SIM_CTX] = sizeof(struct sim_ctx),     [SIM_STREAM] = sizeof(struct sim_stream),
    [SIM_EVENT] = sizeof(struct sim_event), [SIM_PHYS] = sizeof(struct sim_phys),
    [SIM_POOL] = sizeof(struct sim_pool),   [SIM_GRAPH] = sizeof(struct sim_graph),
    [SIM_EXEC] = sizeof(struct sim_graph),  [SIM_NODE] = 64,
    [SIM_USER_OBJECT] = 128,                [SIM_MODULE] = 64,
    [SIM_FUNCTION] = sizeof(struct sim_function),
};

/* Slab k of a kind holds FIRST_SLAB << k objects. */
static struct {
    unsigned slabs;
    char *base[SLABS];
    struct sim_object *free;
} kinds[SIM_KIND_COUNT];

static size_t stride(enum sim_kind kind)
{
    return sim_round_up(sizes[kind], 64);
}

static bool grow(enum sim_kind kind)
{
    unsigned k = kinds[kind].slabs;
    if (k == SLABS) return false;
    size_t count = (size_t)FIRST_SLAB << k;
    char *base = mmap(NULL, count * stride(kind), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (base == MAP_FAILED) return false;
    kinds[kind].base[k] = base;
    kinds[kind].slabs++;
    for (size_t i = count; i-- > 0;) {
        struct sim_object *object = (struct sim_object *)(void *)(base + i * stride(kind));
        object->next_free = kinds[kind].free;
        kinds[kind].free = object;
    }
    return true;
}

void *sim_object_new_locked(enum sim_kind kind)
{
    if (!kinds[kind].free && !grow(kind)) return NULL;
    struct sim_object *object = kinds[kind].free;
    kinds[kind].free = object->next_free;
    memset(object, 0, sizes[kind]);
    object->magic = MAGIC;
    object->kind = kind;
    return object;
}

void sim_object_free_locked(void *pointer)
{
    struct sim_object *object = pointer;
    object->magic = 0;
    object->next_free = kinds[object->kind].free;
    kinds[object->kind].free = object;
}

void *sim_object_get_locked(enum sim_kind kind, const void *handle)
{
    uintptr_t at = (uintptr_t)handle;
    for (unsigned k = kinds[kind].slabs; k-- > 0;) {
        uintptr_t base = (uintptr_t)kinds[kind].base[k];
        if (at < base || at >= base + ((size_t)FIRST_SLAB << k) * stride(kind)) continue;
        if ((at - base) % stride(kind)) return NULL;
        struct sim_object *object = (struct sim_object *)at;
        return object->magic == MAGIC ? object : NULL;
    }
    return NULL;
}

void sim_object_each_locked(enum sim_kind kind, void (*see)(const void *object, void *context), void *context)
{
    for (unsigned k = 0; k < kinds[kind].slabs; k++)
        for (size_t i = 0; i < (size_t)FIRST_SLAB << k; i++) {
            const struct sim_object *object = (const struct sim_object *)(void *)(kinds[kind].base[k] + i * stride(kind));
            if (object->magic == MAGIC) see(object, context);
        }
}
