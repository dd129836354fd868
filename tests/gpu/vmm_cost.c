/* SPDX-License-Identifier: Apache-2.0 */
/* vmm_cost: what the driver's memory calls cost, chunk by chunk and for whole ranges; prints one JSON object.
 *
 * usage: vmm_cost [CHUNKS] [ROUNDS]
 * Maps CHUNKS chunks ROUNDS times, with access and unmap once for every chunk and once for the range, then
 * the same bytes as one large handle. Nanoseconds by the device's clock: real time on a GPU, the published
 * costs on the simulated one. */
#include "c/contract/subject.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#define MOST_ROUNDS 200

typedef enum step {
    CREATE,
    RESERVE,
    MAP,
    ACCESS_CHUNK,
    UNMAP_CHUNK,
    ACCESS_RANGE,
    UNMAP_RANGE,
    FREE_VA,
    RELEASE,
    LARGE_CREATE,
    LARGE_MAP,
    LARGE_ACCESS,
    LARGE_UNMAP,
    LARGE_RELEASE,
    STEP_COUNT
} step;

static const char *const names[STEP_COUNT] = {
    "create_per_chunk",       "reserve_per_range",      "map_per_chunk",          "set_access_per_chunk",
    "unmap_per_chunk",        "set_access_per_range",   "unmap_per_range",        "free_va_per_range",
    "release_per_chunk",      "create_large_handle",    "map_large_handle",       "set_access_large_handle",
    "unmap_large_handle",     "release_large_handle",
};

static uint64_t times[STEP_COUNT][MOST_ROUNDS];
static subject device;
static uint64_t started;

static void check(gml_status status, const char *what)
{
    if (status != GML_OK) {
        fprintf(stderr, "vmm_cost: %s: %s\n", what, gml_status_text(status));
        exit(1);
    }
}

static void begin(void)
{
    started = device.dev->ops->now_ns(device.dev);
}

static void end(step s, size_t round, size_t parts)
{
    times[s][round] = (device.dev->ops->now_ns(device.dev) - started) / parts;
}

static void map_all(uintptr_t va, const gml_handle *handles, size_t count)
{
    size_t chunk = device.dev->chunk_bytes;
    for (size_t i = 0; i < count; i++)
        check(device.dev->ops->map(device.dev, va + i * chunk, chunk, handles[i]), "map");
}

static void measure_chunks(gml_handle *handles, size_t count, size_t round)
{
    gml_device *d = device.dev;
    size_t chunk = d->chunk_bytes;
    uintptr_t va = 0;
    begin();
    for (size_t i = 0; i < count; i++)
        check(d->ops->create(d, chunk, &handles[i]), "create");
    end(CREATE, round, count);
    begin();
    check(d->ops->reserve(d, count * chunk, &va), "reserve");
    end(RESERVE, round, 1);
    begin();
    map_all(va, handles, count);
    end(MAP, round, count);
    begin();
    for (size_t i = 0; i < count; i++)
        check(d->ops->set_access(d, va + i * chunk, chunk), "set access");
    end(ACCESS_CHUNK, round, count);
    begin();
    for (size_t i = 0; i < count; i++)
        check(d->ops->unmap(d, va + i * chunk, chunk), "unmap");
    end(UNMAP_CHUNK, round, count);
    map_all(va, handles, count);
    begin();
    check(d->ops->set_access(d, va, count * chunk), "set access");
    end(ACCESS_RANGE, round, 1);
    begin();
    check(d->ops->unmap(d, va, count * chunk), "unmap");
    end(UNMAP_RANGE, round, 1);
    begin();
    check(d->ops->free_va(d, va, count * chunk), "free addresses");
    end(FREE_VA, round, 1);
    begin();
    for (size_t i = 0; i < count; i++)
        check(d->ops->release(d, handles[i]), "release");
    end(RELEASE, round, count);
}

static void measure_large(size_t bytes, size_t round)
{
    gml_device *d = device.dev;
    gml_handle handle = 0;
    uintptr_t va = 0;
    check(d->ops->reserve(d, bytes, &va), "reserve");
    begin();
    check(d->ops->create(d, bytes, &handle), "create");
    end(LARGE_CREATE, round, 1);
    begin();
    check(d->ops->map(d, va, bytes, handle), "map");
    end(LARGE_MAP, round, 1);
    begin();
    check(d->ops->set_access(d, va, bytes), "set access");
    end(LARGE_ACCESS, round, 1);
    begin();
    check(d->ops->unmap(d, va, bytes), "unmap");
    end(LARGE_UNMAP, round, 1);
    begin();
    check(d->ops->release(d, handle), "release");
    end(LARGE_RELEASE, round, 1);
    check(d->ops->free_va(d, va, bytes), "free addresses");
}

static int ascending(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

int main(int argc, char **argv)
{
    size_t count = argc > 1 ? strtoull(argv[1], NULL, 10) : 64;
    size_t rounds = argc > 2 ? strtoull(argv[2], NULL, 10) : 30;
    const char *why = NULL;
    if (count == 0 || rounds == 0 || rounds > MOST_ROUNDS) {
        fprintf(stderr, "usage: vmm_cost [CHUNKS] [ROUNDS, at most %d]\n", MOST_ROUNDS);
        return 2;
    }
    if (!subject_open_cuda(&device, &why)) {
        fprintf(stderr, "vmm_cost: no device: %s\n", why);
        return 2;
    }
    gml_handle *handles = calloc(count, sizeof *handles);
    if (handles == NULL)
        return 1;
    for (size_t round = 0; round < rounds; round++) {
        measure_chunks(handles, count, round);
        measure_large(count * device.dev->chunk_bytes, round);
    }
    printf("{\"device\": \"%s\", \"chunk_bytes\": %zu, \"chunks\": %zu, \"rounds\": %zu, \"ns\": {", device.name,
           device.dev->chunk_bytes, count, rounds);
    for (step s = CREATE; s < STEP_COUNT; s++) {
        qsort(times[s], rounds, sizeof times[s][0], ascending);
        printf("%s\"%s\": {\"p50\": %" PRIu64 ", \"p90\": %" PRIu64 "}", s == CREATE ? "" : ", ", names[s],
               times[s][rounds / 2], times[s][rounds * 9 / 10]);
    }
    printf("}}\n");
    subject_close_cuda(&device);
    return 0;
}
