/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the real functions: by the caller's library, by well-known names, by load order. */
#define _GNU_SOURCE
#include "interpose/lookup.h"

#include "base/config.h"
#include "base/lock.h"

#include <dlfcn.h>
#include <link.h>
#include <stdatomic.h>
#include <stdint.h>
#include <string.h>

#define CACHE_SLOTS 1024u
#define CACHE_PROBES 4u
#define MAX_RUNTIMES 8u

/* A cache entry is one word, so that it can be read without a lock: the return address above, then
 * one bit for PyTorch, then the runtime's index. */
#define ENTRY_INDEX 0x7fu
#define ENTRY_TORCH 0x80u
#define ENTRY_SHIFT 8

static const char *const runtime_names[] = {"libcudart.so.13", "libcudart.so.12", "libcudart.so.11.0", NULL};

static struct {
    gml_lock lock;
    gml_real runtimes[MAX_RUNTIMES];
    unsigned count; /* under the lock; a runtime is published by the cache word that names it */
    _Atomic uint64_t cache[CACHE_SLOTS];
} lookup = {.lock = GML_LOCK_INIT};

/* ---- symbols ---- */

static const char *base_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash == NULL ? path : slash + 1;
}

/* The loaded library that holds `address`, by the name it was loaded under; NULL for the program. */
static const char *library_of(const void *address)
{
    Dl_info info;
    struct link_map *map = NULL;
    void *extra = NULL;
    if (dladdr1(address, &info, &extra, RTLD_DL_LINKMAP) == 0)
        return NULL;
    map = extra;
    return map == NULL || map->l_name == NULL || map->l_name[0] == '\0' ? NULL : map->l_name;
}

static void *symbol_in(void *library, const char *name, const void *own)
{
    void *symbol = dlsym(library, name);
    return symbol == own ? NULL : symbol;
}

/* Where to look for a caller's function `name`: a handle for dlsym. */
static void *library_for(const void *return_address, const char *name, const char *const *libraries,
                         const void *own)
{
    const char *path = library_of(return_address);
    void *library = NULL;
    if (path != NULL) {
        library = dlopen(path, RTLD_LAZY | RTLD_NOLOAD);
        if (library != NULL && symbol_in(library, name, own) != NULL)
            return library;
        if (library != NULL)
            (void)dlclose(library);
    }
    /* The program itself and what was loaded with it: the global order is what the linker used. */
    if (path == NULL && symbol_in(RTLD_NEXT, name, own) != NULL)
        return RTLD_NEXT;
    for (size_t i = 0; libraries[i] != NULL; i++) {
        library = dlopen(libraries[i], RTLD_LAZY | RTLD_NOLOAD);
        if (library != NULL && symbol_in(library, name, own) != NULL)
            return library;
        if (library != NULL)
            (void)dlclose(library);
    }
    return RTLD_NEXT;
}

void *gml_lookup_symbol(const void *return_address, const char *name, const char *const *libraries,
                        const void *own)
{
    void *library = library_for(return_address, name, libraries, own);
    void *symbol = symbol_in(library, name, own);
    /* The caller's own dependency stays loaded as long as the caller; nothing needs pinning. */
    if (library != RTLD_NEXT)
        (void)dlclose(library);
    return symbol;
}

bool gml_lookup_simulated(void)
{
    return dlsym(RTLD_DEFAULT, "gml_sim_runtime") != NULL;
}

/* A runtime that somebody preloads, the simulated one for instance, is no rival. */
static bool is_runtime(const char *library)
{
    return strncmp(library, "libcudart", strlen("libcudart")) == 0 || strcmp(library, "libgmlsim.so") == 0;
}

const char *gml_lookup_rival(void)
{
    const char *preloaded = gml_config_environment("LD_PRELOAD");
    void *symbol = dlsym(RTLD_NEXT, "cudaMalloc");
    const char *path = symbol == NULL ? NULL : library_of(symbol);
    if (preloaded == NULL || path == NULL)
        return NULL;
    const char *name = base_name(path);
    return !is_runtime(name) && strstr(preloaded, name) != NULL ? name : NULL;
}

/* ---- runtimes ---- */

static const struct {
    const char *name;
    size_t offset;
    const void *own;
} functions[] = {
#define X(name, parameters, what) {#name, offsetof(gml_real, name), NULL},
    GML_RUNTIME_HOOKS(X)
#undef X
#define X(name, parameters) {#name, offsetof(gml_real, name), NULL},
    GML_RUNTIME_USED(X)
#undef X
};

/* Our own definition of a function, as dlsym would find it. */
static const void *own_symbol(size_t index)
{
    /* A function's address is no constant expression as void*; the table cannot hold it. */
    static const struct {
#define X(name, parameters, what) cudaError_t(*name) parameters;
        GML_RUNTIME_HOOKS(X)
#undef X
    } own = {
#define X(name, parameters, what) name,
        GML_RUNTIME_HOOKS(X)
#undef X
    };
    const void *symbol = NULL;
    if (index * sizeof symbol < sizeof own)
        memcpy(&symbol, (const char *)&own + index * sizeof symbol, sizeof symbol);
    return symbol;
}

static void fill(gml_real *real, void *library)
{
    for (size_t i = 0; i < sizeof functions / sizeof functions[0]; i++) {
        void *symbol = symbol_in(library, functions[i].name, own_symbol(i));
        memcpy((char *)real + functions[i].offset, &symbol, sizeof symbol);
    }
}

/* Index of the runtime `found`, which is added when it is new; MAX_RUNTIMES when there is no room. */
static unsigned runtime_index(const gml_real *found)
{
    unsigned index = 0;
    gml_lock_acquire(&lookup.lock);
    while (index < lookup.count && lookup.runtimes[index].cudaMalloc != found->cudaMalloc)
        index++;
    if (index == lookup.count && lookup.count < MAX_RUNTIMES)
        lookup.runtimes[lookup.count++] = *found;
    gml_lock_release(&lookup.lock);
    return index;
}

/* Keeps the runtime loaded for as long as its functions stand in our table. */
static void pin(const gml_real *found)
{
    const void *symbol = NULL;
    memcpy(&symbol, &found->cudaMalloc, sizeof symbol);
    const char *path = library_of(symbol);
    if (path != NULL)
        (void)dlopen(path, RTLD_LAZY | RTLD_NOLOAD);
}

static gml_caller from_entry(uint64_t entry)
{
    return (gml_caller){&lookup.runtimes[entry & ENTRY_INDEX], (entry & ENTRY_TORCH) != 0};
}

static _Atomic uint64_t *slot_of(uint64_t address, unsigned probe)
{
    return &lookup.cache[((address ^ address >> 12) + probe) % CACHE_SLOTS];
}

static void remember(uint64_t address, uint64_t entry)
{
    for (unsigned probe = 0; probe < CACHE_PROBES; probe++) {
        uint64_t empty = 0;
        if (atomic_compare_exchange_strong_explicit(slot_of(address, probe), &empty, entry,
                                                    memory_order_release, memory_order_relaxed))
            return;
    }
    atomic_store_explicit(slot_of(address, 0), entry, memory_order_release);
}

/* No lock of ours is held over the loader's calls: a library's constructor, which runs under the
 * loader's lock, may be in here too. */
static gml_caller find_caller(const void *return_address)
{
    gml_real found;
    void *library = RTLD_NEXT;
    /* With the simulation, or another allocator behind us, the load order decides. */
    if (!gml_lookup_simulated() && gml_lookup_rival() == NULL)
        library = library_for(return_address, "cudaMalloc", runtime_names, own_symbol(0));
    fill(&found, library);
    unsigned index = MAX_RUNTIMES;
    if (found.cudaMalloc != NULL) {
        pin(&found);
        index = runtime_index(&found);
    }
    if (library != RTLD_NEXT)
        (void)dlclose(library);
    if (index == MAX_RUNTIMES)
        return (gml_caller){NULL, false};
    const char *path = library_of(return_address);
    uint64_t entry = (uint64_t)(uintptr_t)return_address << ENTRY_SHIFT | index;
    if (path != NULL && strncmp(base_name(path), "libc10_cuda", strlen("libc10_cuda")) == 0)
        entry |= ENTRY_TORCH;
    remember((uint64_t)(uintptr_t)return_address, entry);
    return from_entry(entry);
}

gml_caller gml_lookup_caller(const void *return_address)
{
    uint64_t address = (uint64_t)(uintptr_t)return_address;
    for (unsigned probe = 0; probe < CACHE_PROBES; probe++) {
        uint64_t entry = atomic_load_explicit(slot_of(address, probe), memory_order_acquire);
        if (entry >> ENTRY_SHIFT == address)
            return from_entry(entry);
        if (entry == 0)
            break;
    }
    return find_caller(return_address);
}
