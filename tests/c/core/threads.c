/* SPDX-License-Identifier: Apache-2.0 */
/* Many threads on one heap: allocations, frees, trims and looks at once. Each thread writes its own
 * mark over the pages of its blocks in a shadow of the address space, so that two owners of one byte
 * are seen. Run under ThreadSanitizer too (-DGML_SANITIZE=thread). */
#include "base/align.h"
#include "check.h"
#include "core/heap.h"
#include "device/model.h"

#include <pthread.h>
#include <stdbool.h>
#include <string.h>

#define THREADS 8
#define ROUNDS 1500
#define HELD 24

/* The model is not thread-safe, a driver is: one lock around every call makes it so. */
typedef struct locked_device {
    gml_device device;
    gml_device *inner;
    pthread_mutex_t mutex;
} locked_device;

static locked_device device = {.mutex = PTHREAD_MUTEX_INITIALIZER};

#define LOCKED(result, name, params, args)                       \
    static result name params                                    \
    {                                                            \
        (void)dev;                                               \
        pthread_mutex_lock(&device.mutex);                       \
        result value = device.inner->ops->name args;             \
        pthread_mutex_unlock(&device.mutex);                     \
        return value;                                            \
    }

LOCKED(gml_status, create, (gml_device *dev, size_t bytes, gml_handle *out), (device.inner, bytes, out))
LOCKED(gml_status, release, (gml_device *dev, gml_handle handle), (device.inner, handle))
LOCKED(gml_status, reserve, (gml_device *dev, size_t bytes, uintptr_t *out), (device.inner, bytes, out))
LOCKED(gml_status, free_va, (gml_device *dev, uintptr_t va, size_t bytes), (device.inner, va, bytes))
LOCKED(gml_status, map, (gml_device *dev, uintptr_t va, size_t bytes, gml_handle handle), (device.inner, va, bytes, handle))
LOCKED(gml_status, unmap, (gml_device *dev, uintptr_t va, size_t bytes), (device.inner, va, bytes))
LOCKED(gml_status, set_access, (gml_device *dev, uintptr_t va, size_t bytes), (device.inner, va, bytes))
LOCKED(gml_status, event_record, (gml_device *dev, gml_stream stream, gml_event *out), (device.inner, stream, out))
LOCKED(gml_status, event_query, (gml_device *dev, gml_event event), (device.inner, event))
LOCKED(gml_status, event_sync, (gml_device *dev, gml_event event), (device.inner, event))
LOCKED(gml_status, event_destroy, (gml_device *dev, gml_event event), (device.inner, event))
LOCKED(gml_status, stream_wait, (gml_device *dev, gml_stream stream, gml_event event), (device.inner, stream, event))
LOCKED(gml_status, sync, (gml_device *dev), (device.inner))
LOCKED(gml_status, mem_info, (gml_device *dev, size_t *out_free, size_t *out_total), (device.inner, out_free, out_total))
LOCKED(uint64_t, now_ns, (gml_device *dev), (device.inner))

static const gml_device_ops locked_ops = {
    .create = create,
    .release = release,
    .reserve = reserve,
    .free_va = free_va,
    .map = map,
    .unmap = unmap,
    .set_access = set_access,
    .event_record = event_record,
    .event_query = event_query,
    .event_sync = event_sync,
    .event_destroy = event_destroy,
    .stream_wait = stream_wait,
    .sync = sync,
    .mem_info = mem_info,
    .now_ns = now_ns,
};

static gml_heap *heap;

/* Owners by block start: who holds which range, under a lock of its own. */
static pthread_mutex_t owners_mutex = PTHREAD_MUTEX_INITIALIZER;
static struct {
    uintptr_t address;
    uint64_t bytes;
} owned[THREADS][HELD];

static void claim(unsigned thread, unsigned slot, uintptr_t address, uint64_t bytes)
{
    pthread_mutex_lock(&owners_mutex);
    for (unsigned t = 0; t < THREADS; t++)
        for (unsigned s = 0; s < HELD; s++)
            CHECK(owned[t][s].bytes == 0 || address + bytes <= owned[t][s].address ||
                  owned[t][s].address + owned[t][s].bytes <= address);
    owned[thread][slot].address = address;
    owned[thread][slot].bytes = bytes;
    pthread_mutex_unlock(&owners_mutex);
}

static uintptr_t disclaim(unsigned thread, unsigned slot)
{
    pthread_mutex_lock(&owners_mutex);
    uintptr_t address = owned[thread][slot].address;
    owned[thread][slot].bytes = 0;
    pthread_mutex_unlock(&owners_mutex);
    return address;
}

static void look(uint64_t dice)
{
    gml_stats stats;
    uint8_t cells[64];
    uint64_t released = 0;
    if (dice % 3 == 0)
        CHECK_EQUAL(gml_heap_trim(heap, 200 * GML_MIB, &released), GML_OK);
    else if (dice % 3 == 1)
        gml_heap_stats(heap, &stats);
    else
        gml_heap_map(heap, cells, sizeof cells);
    CHECK(gml_heap_idle_bytes(heap) <= 2000 * GML_MIB);
}

static void *work(void *argument)
{
    unsigned thread = (unsigned)(uintptr_t)argument;
    uint64_t seed = 77 + thread, held = 0;
    bool full[HELD] = {false};
    for (unsigned round = 0; round < ROUNDS; round++) {
        unsigned slot = (unsigned)random_below(&seed, HELD);
        if (full[slot]) {
            uintptr_t address = disclaim(thread, slot);
            CHECK_EQUAL(gml_heap_free(heap, address, random_below(&seed, 4) == 0 ? GML_STREAM_NONE : 3 + thread % 5), GML_OK);
            full[slot] = false;
            held--;
        } else {
            uint64_t bytes = 1 + random_below(&seed, random_below(&seed, 20) == 0 ? 180 * GML_MIB : 8 * GML_MIB);
            uintptr_t address = 0;
            gml_status status = gml_heap_alloc(heap, bytes, 3 + thread % 5, GML_API_ASYNC, &address);
            CHECK(status == GML_OK || status == GML_OUT_OF_MEMORY);
            if (status != GML_OK)
                continue;
            claim(thread, slot, address, bytes);
            full[slot] = true;
            held++;
        }
        if (round % 97 == 0)
            look(round / 97 + thread);
    }
    for (unsigned slot = 0; slot < HELD; slot++)
        if (full[slot])
            CHECK_EQUAL(gml_heap_free(heap, disclaim(thread, slot), 3 + thread % 5), GML_OK);
    return NULL;
}

int main(void)
{
    pthread_t thread[THREADS];
    gml_model_options options = {.total_bytes = 2000 * GML_MIB};
    CHECK_EQUAL(gml_model_create(&options, &device.inner), GML_OK);
    device.device = (gml_device){.ops = &locked_ops, .chunk_bytes = device.inner->chunk_bytes};
    CHECK_EQUAL(gml_heap_create(&device.device, &(gml_heap_options){.goal = GML_GOAL_MEMORY}, &heap), GML_OK);
    for (uintptr_t i = 0; i < THREADS; i++)
        CHECK_EQUAL(pthread_create(&thread[i], NULL, work, (void *)i), 0);
    for (unsigned i = 0; i < THREADS; i++)
        CHECK_EQUAL(pthread_join(thread[i], NULL), 0);
    const char *why = "";
    if (gml_heap_check(heap, &why) != GML_OK) {
        fprintf(stderr, "invariant broken: %s\n", why);
        return 1;
    }
    gml_stats stats;
    gml_heap_stats(heap, &stats);
    CHECK_EQUAL(stats.live_bytes, 0);
    CHECK_EQUAL(stats.allocs, stats.frees);
    CHECK(stats.allocs > THREADS * ROUNDS / 4);
    gml_heap_destroy(heap);
    CHECK(gml_model_violation(device.inner) == NULL);
    gml_model_destroy(device.inner);
    return 0;
}
