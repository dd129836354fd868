/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the line behind each block, remembers it until the block dies. */
#include "interpose/stacks.h"

#include "base/align.h"
#include "base/config.h"
#include "base/lock.h"
#include "base/map.h"
#include "base/pages.h"
#include "interpose/python.h"
#include "interpose/shim.h"
#include "os/os.h"
#include "telemetry/sites.h"

#include <stdio.h>
#include <string.h>

#define DEEPEST 64           /* frames that are looked at */
#define BLOCK_BYTES 512u     /* live bytes are counted in these, as in core/stats.h */
#define EXEC_TRIES 64
#define MOST_PLACES 65536u   /* remembered (code, instruction) pairs; past it they are looked up each time */
#define SITE_BITS 10         /* in a packed block */
#define SITE_MASK ((1u << SITE_BITS) - 1)

_Static_assert(GML_SITES_MOST <= SITE_MASK + 1, "a place fits its bits");

struct gml_stacks {
    gml_lock lock;
    gml_sites *sites;
    gml_python python;
    char status[128]; /* what was found of Python */
    gml_map blocks; /* address -> place in the low bits, bytes above; bytes are never 0 */
    gml_map places; /* what a frame is known by -> its place + 1 */
    gml_map codes;  /* the same of a code object -> OURS or THEIRS */
};

enum { OURS = 1, THEIRS = 2 }; /* PyTorch's code, and everybody else's */

gml_stacks *gml_stacks_new(void)
{
    if (strcmp(gml_config_text(GML_OPTION_STACKS), "1") != 0)
        return NULL;
    gml_stacks *stacks = gml_pages_map(sizeof *stacks);
    if (stacks == NULL)
        return NULL;
    stacks->lock = (gml_lock)GML_LOCK_INIT;
    gml_python_find(&stacks->python, stacks->status, sizeof stacks->status);
    return stacks;
}

void gml_stacks_destroy(gml_stacks *stacks)
{
    if (stacks == NULL)
        return;
    gml_map_destroy(&stacks->blocks);
    gml_map_destroy(&stacks->places);
    gml_map_destroy(&stacks->codes);
    gml_pages_unmap(stacks, sizeof *stacks);
}

static gml_sites *create_file(const char *run_directory)
{
    char path[4096];
    int length = snprintf(path, sizeof path, "%s/telemetry/%llu", run_directory, (unsigned long long)gml_os_pid());
    if (run_directory[0] == '\0' || length < 0 || (size_t)length + 32 > sizeof path)
        return NULL;
    /* An earlier image of this process may have left one, as with the telemetry file. */
    for (int image = 0; image < EXEC_TRIES; image++) {
        bool exists = false;
        size_t room = sizeof path - (size_t)length;
        if (image == 0)
            (void)snprintf(path + length, room, ".sites");
        else
            (void)snprintf(path + length, room, ".%d.sites", image);
        gml_sites *sites = gml_os_create_shared(path, sizeof *sites, &exists);
        if (sites != NULL || !exists)
            return sites;
    }
    return NULL;
}

bool gml_stacks_open(gml_stacks *stacks, const char *run_directory)
{
    gml_sites *sites = stacks->sites = create_file(run_directory);
    if (sites == NULL)
        return false;
    sites->version = GML_SITES_VERSION;
    sites->header_bytes = (uint32_t)offsetof(gml_sites, sites);
    sites->total_bytes = sizeof *sites;
    memcpy(sites->status, stacks->status, sizeof sites->status);
    __atomic_thread_fence(__ATOMIC_RELEASE);
    memcpy(sites->magic, GML_SITES_MAGIC, sizeof sites->magic);
    return true;
}

/* ---- places ---- */

static uint64_t mixed(uint64_t seed, uint64_t value)
{
    uint64_t x = (seed ^ value) * 0x9e3779b97f4a7c15u;
    return (x ^ (x >> 29)) * 0xbf58476d1ce4e5b9u;
}

static void remember(gml_map *map, uint64_t key, uintptr_t value)
{
    if (map->count < MOST_PLACES && gml_map_ensure(map) == GML_OK)
        gml_map_put(map, key, (void *)value);
}

static bool is_torch(gml_stacks *stacks, const gml_python_frame *frame)
{
    /* The name's address makes it unlikely that another code object at the same place is taken for this one. */
    uint64_t key = mixed(mixed(1, frame->code), frame->file) | 1;
    uintptr_t known = (uintptr_t)gml_map_get(&stacks->codes, key);
    if (known == 0) {
        char file[GML_SITES_FILE];
        gml_python_file(&stacks->python, frame, file, sizeof file);
        known = strstr(file, "-packages/torch/") != NULL || strncmp(file, "<frozen ", 8) == 0 ? OURS : THEIRS;
        remember(&stacks->codes, key, known);
    }
    return known == OURS;
}

static size_t place_of_frame(gml_stacks *stacks, int device, const gml_python_frame *frame)
{
    char file[4096], function[GML_SITES_FUNCTION];
    uint64_t key = mixed(mixed(mixed(2, frame->code), frame->file), (uint64_t)frame->offset << 8 | (uint64_t)device) | 1;
    uintptr_t known = (uintptr_t)gml_map_get(&stacks->places, key);
    if (known != 0)
        return known - 1;
    gml_python_file(&stacks->python, frame, file, sizeof file);
    gml_python_function(&stacks->python, frame, function, sizeof function);
    int line = gml_python_line(&stacks->python, frame);
    size_t place = gml_sites_find(stacks->sites, (uint64_t)device, file, line > 0 ? (uint64_t)line : 1, function);
    remember(&stacks->places, key, place + 1);
    return place;
}

/* A thread without a line of Python is known by its name: autograd's are. */
static size_t place_of_thread(gml_stacks *stacks, int device)
{
    const char *name = gml_shim_thread_name();
    uint64_t low = 0, high = 0;
    memcpy(&low, name, sizeof low);
    memcpy(&high, name + sizeof low, sizeof high);
    uint64_t key = mixed(mixed(mixed(3, low), high), (uint64_t)device) | 1;
    uintptr_t known = (uintptr_t)gml_map_get(&stacks->places, key);
    if (known != 0)
        return known - 1;
    size_t place = gml_sites_find(stacks->sites, (uint64_t)device, "", 0, name);
    remember(&stacks->places, key, place + 1);
    return place;
}

/* Why there are no lines after all is told instead of what Python it is. */
static void tell_trouble(gml_stacks *stacks)
{
    if (stacks->python.trouble == NULL)
        return;
    (void)snprintf(stacks->sites->status, sizeof stacks->sites->status, "not read: %s", stacks->python.trouble);
    stacks->python.trouble = NULL;
}

static size_t place_of_call(gml_stacks *stacks, int device)
{
    gml_python_frame frame = {0}, innermost = {0};
    if (!gml_python_first(&stacks->python, &frame)) {
        tell_trouble(stacks);
        return place_of_thread(stacks, device);
    }
    innermost = frame;
    for (int depth = 0; depth < DEEPEST; depth++) {
        if (!is_torch(stacks, &frame))
            return place_of_frame(stacks, device, &frame);
        if (!gml_python_next(&stacks->python, &frame))
            break;
    }
    return place_of_frame(stacks, device, &innermost);
}

/* ---- blocks ---- */

static void forget(gml_stacks *stacks, uintptr_t address)
{
    uint64_t packed = (uint64_t)(uintptr_t)gml_map_remove(&stacks->blocks, address);
    if (packed != 0)
        gml_sites_remove(stacks->sites, (size_t)(packed & SITE_MASK), packed >> SITE_BITS);
}

void gml_stacks_alloc(gml_stacks *stacks, int device, uintptr_t address, uint64_t bytes)
{
    if (stacks == NULL || address == 0 || bytes == 0)
        return;
    bytes = gml_align_up(bytes, BLOCK_BYTES);
    gml_lock_acquire(&stacks->lock);
    forget(stacks, address); /* its end was not seen */
    if (gml_map_ensure(&stacks->blocks) == GML_OK) {
        size_t place = place_of_call(stacks, device);
        gml_map_put(&stacks->blocks, address, (void *)(uintptr_t)(bytes << SITE_BITS | place));
        gml_sites_add(stacks->sites, place, bytes);
    }
    gml_lock_release(&stacks->lock);
}

void gml_stacks_free(gml_stacks *stacks, uintptr_t address)
{
    if (stacks == NULL || address == 0)
        return;
    gml_lock_acquire(&stacks->lock);
    forget(stacks, address);
    gml_lock_release(&stacks->lock);
}

void gml_stacks_note_oom(gml_stacks *stacks, int device, uint64_t number)
{
    if (stacks == NULL)
        return;
    gml_lock_acquire(&stacks->lock);
    gml_sites_note_oom(stacks->sites, number, (uint64_t)device, place_of_call(stacks, device));
    gml_lock_release(&stacks->lock);
}

void gml_stacks_drop_device(gml_stacks *stacks, int device)
{
    if (stacks == NULL)
        return;
    gml_lock_acquire(&stacks->lock);
    /* Removal moves entries, so the walk starts over after each; a reset is rare. */
    for (size_t i = 0; i < stacks->blocks.capacity;) {
        const gml_map_entry *entry = &stacks->blocks.entries[i];
        size_t place = (size_t)((uintptr_t)entry->value & SITE_MASK);
        if (entry->key != 0 && stacks->sites->sites[place].device == (uint64_t)device) {
            forget(stacks, entry->key);
            i = 0;
        } else {
            i++;
        }
    }
    gml_lock_release(&stacks->lock);
}
