/* SPDX-License-Identifier: Apache-2.0 */
/* cuGetProcAddress: from name, version and flags to the entry point of that ABI. */
#include "sim/driver/driver.h"

#include <string.h>

/* Only the addresses matter here, so all are declared alike. */
#define X(name, symbol, version, flags) extern void sim_address_##symbol(void) __asm__(#symbol);
#include "sim/driver/entries.def"
#undef X
#define STUB(symbol) extern void sim_address_##symbol(void) __asm__(#symbol);
#include "driver_stubs.def"
#undef STUB

typedef void (*address)(void);

static const struct entry {
    const char *name;
    address at;
    int version;
    unsigned flags;
} entries[] = {
#define X(name, symbol, version, flags) {#name, sim_address_##symbol, version, flags},
#include "sim/driver/entries.def"
#undef X
};

static const struct {
    const char *name;
    address at;
} stubs[] = {
#define STUB(symbol) {#symbol, sim_address_##symbol},
#include "driver_stubs.def"
#undef STUB
};

/* The newest ABI that the version allows; the per-thread form where it is wanted and exists. */
static const struct entry *find(const char *name, int version, bool per_thread, bool *known)
{
    const struct entry *best = NULL;
    for (size_t i = 0; i < sizeof entries / sizeof *entries; i++) {
        const struct entry *e = &entries[i];
        if (strcmp(e->name, name) != 0) continue;
        *known = true;
        if (e->version > version || (e->flags && !per_thread)) continue;
        if (!best || e->flags > best->flags || (e->flags == best->flags && e->version > best->version)) best = e;
    }
    return best;
}

static CUresult lookup(const char *name, void **out, int version, uint64_t flags, int *status)
{
    if (!name || !out || flags > CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM || version > 13000)
        return CUDA_ERROR_INVALID_VALUE;
    bool known = false;
    const struct entry *entry = find(name, version, flags == CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM, &known);
    address at = entry ? entry->at : NULL;
    for (size_t i = 0; !known && !at && i < sizeof stubs / sizeof *stubs; i++)
        if (!strcmp(stubs[i].name, name)) at = stubs[i].at;
    memcpy(out, &at, sizeof at);
    if (status)
        *status = at      ? CU_GET_PROC_ADDRESS_SUCCESS
                  : known ? CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT
                          : CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
    return at || status ? CUDA_SUCCESS : CUDA_ERROR_NOT_FOUND;
}

DRIVER(cuGetProcAddress_v2, (const char *name, void **out, int version, uint64_t flags, int *status))
{
    return lookup(name, out, version, flags, status);
}

DRIVER(cuGetProcAddress, (const char *name, void **out, int version, uint64_t flags))
{
    return lookup(name, out, version, flags, NULL);
}
