/* SPDX-License-Identifier: Apache-2.0 */
/* Priced device: forwards every call, and keeps how far its clock is from the inner device's. */
#include "device/priced.h"

#include "base/pages.h"

#include <stdatomic.h>
#include <string.h>

typedef struct priced_device {
    gml_device device;
    gml_device *inner;
    gml_prices prices;
    _Atomic int64_t ahead_ns; /* of the inner device's clock; below zero: behind it */
    _Atomic uint64_t told_ns; /* the latest time that was given out */
} priced_device;

static priced_device *priced_of(const gml_device *device)
{
    union {
        const gml_device *from;
        priced_device *to;
    } cast = {device};
    return cast.to;
}

/* ---- prices as text ---- */

#define MOST_NS 1000000000u /* a second for 2 MiB; sums stay far from overflow */

/* "1.5us": the number ends at its unit, and that at a comma or the end. NULL when it is none. */
static const char *parse_time(const char *p, uint64_t *out_ns)
{
    static const struct {
        const char *name;
        uint64_t ns;
    } units[] = {{"ns", 1}, {"us", 1000}, {"ms", 1000000}};
    uint64_t whole = 0, fraction = 0, scale = 1;
    const char *start = p;
    for (; *p >= '0' && *p <= '9' && whole < 1000000000; p++)
        whole = whole * 10 + (uint64_t)(*p - '0');
    if (p == start)
        return NULL;
    if (*p == '.')
        for (p++; *p >= '0' && *p <= '9'; p++)
            if (scale < 1000000) {
                fraction = fraction * 10 + (uint64_t)(*p - '0');
                scale *= 10;
            }
    for (size_t i = 0; i < sizeof units / sizeof units[0]; i++)
        if (strncmp(p, units[i].name, 2) == 0) {
            *out_ns = whole * units[i].ns + fraction * units[i].ns / scale;
            return *out_ns <= MOST_NS ? p + 2 : NULL;
        }
    return NULL;
}

static bool parse_all(const char *p, gml_prices *prices)
{
    const struct {
        const char *name;
        uint64_t *price;
    } calls[] = {{"create=", &prices->create_ns},
                 {"map=", &prices->map_ns},
                 {"set_access=", &prices->set_access_ns},
                 {"unmap=", &prices->unmap_ns}};
    for (;;) {
        uint64_t *price = NULL;
        for (size_t i = 0; i < sizeof calls / sizeof calls[0] && price == NULL; i++)
            if (strncmp(p, calls[i].name, strlen(calls[i].name)) == 0) {
                price = calls[i].price;
                p += strlen(calls[i].name);
            }
        if (price == NULL || (p = parse_time(p, price)) == NULL)
            return false;
        if (*p == '\0')
            return true;
        if (*p++ != ',')
            return false;
    }
}

bool gml_prices_parse(const char *text, gml_prices *out_prices)
{
    static const gml_prices measured = {GML_PRICE_MEASURED, GML_PRICE_MEASURED, GML_PRICE_MEASURED,
                                        GML_PRICE_MEASURED};
    *out_prices = measured;
    if (parse_all(text, out_prices))
        return true;
    *out_prices = measured;
    return false;
}

/* ---- calls ---- */

static uint64_t inner_now(const priced_device *priced)
{
    return priced->inner->ops->now_ns(priced->inner);
}

static gml_status charge(priced_device *priced, gml_status status, uint64_t price_ns, size_t bytes, uint64_t start_ns)
{
    if (status != GML_OK || price_ns == GML_PRICE_MEASURED)
        return status;
    uint64_t price = price_ns * (bytes / priced->device.chunk_bytes);
    int64_t change = (int64_t)(price - (inner_now(priced) - start_ns));
    (void)atomic_fetch_add_explicit(&priced->ahead_ns, change, memory_order_relaxed);
    return status;
}

#define PRICED(name, params, args)                                                       \
    static gml_status name params                                                        \
    {                                                                                    \
        priced_device *priced = priced_of(dev);                                          \
        uint64_t start_ns = inner_now(priced);                                           \
        gml_status status = priced->inner->ops->name args;                               \
        return charge(priced, status, priced->prices.name##_ns, bytes, start_ns);        \
    }

PRICED(create, (gml_device *dev, size_t bytes, gml_handle *out), (priced->inner, bytes, out))
PRICED(map, (gml_device *dev, uintptr_t va, size_t bytes, gml_handle handle), (priced->inner, va, bytes, handle))
PRICED(set_access, (gml_device *dev, uintptr_t va, size_t bytes), (priced->inner, va, bytes))
PRICED(unmap, (gml_device *dev, uintptr_t va, size_t bytes), (priced->inner, va, bytes))

#define FORWARD(name, params, args)                        \
    static gml_status name params                          \
    {                                                      \
        gml_device *inner = priced_of(dev)->inner;         \
        return inner->ops->name args;                      \
    }

FORWARD(release, (gml_device *dev, gml_handle handle), (inner, handle))
FORWARD(reserve, (gml_device *dev, size_t bytes, uintptr_t *out), (inner, bytes, out))
FORWARD(free_va, (gml_device *dev, uintptr_t va, size_t bytes), (inner, va, bytes))
FORWARD(event_record, (gml_device *dev, gml_stream stream, gml_event *out), (inner, stream, out))
FORWARD(event_query, (gml_device *dev, gml_event event), (inner, event))
FORWARD(event_sync, (gml_device *dev, gml_event event), (inner, event))
FORWARD(event_destroy, (gml_device *dev, gml_event event), (inner, event))
FORWARD(stream_wait, (gml_device *dev, gml_stream stream, gml_event event), (inner, stream, event))
FORWARD(sync, (gml_device *dev), (inner))
FORWARD(mem_info, (gml_device *dev, size_t *out_free, size_t *out_total), (inner, out_free, out_total))

/* A call that cost less than it took takes time back; what another thread has seen meanwhile stays. */
static uint64_t now_ns(gml_device *dev)
{
    priced_device *priced = priced_of(dev);
    int64_t ahead = atomic_load_explicit(&priced->ahead_ns, memory_order_relaxed);
    uint64_t now = inner_now(priced);
    now = ahead < 0 && now < (uint64_t)-ahead ? 0 : now + (uint64_t)ahead;
    uint64_t told = atomic_load_explicit(&priced->told_ns, memory_order_relaxed);
    while (told < now)
        if (atomic_compare_exchange_weak_explicit(&priced->told_ns, &told, now, memory_order_relaxed,
                                                  memory_order_relaxed))
            return now;
    return told;
}

static void note(gml_device *dev, gml_note what, uintptr_t va, size_t bytes, gml_stream stream)
{
    gml_device *inner = priced_of(dev)->inner;
    inner->ops->note(inner, what, va, bytes, stream);
}

#define FUNCTIONS                                                                                      \
    .create = create, .release = release, .reserve = reserve, .free_va = free_va, .map = map,          \
    .unmap = unmap, .set_access = set_access, .event_record = event_record, .event_query = event_query, \
    .event_sync = event_sync, .event_destroy = event_destroy, .stream_wait = stream_wait, .sync = sync, \
    .mem_info = mem_info, .now_ns = now_ns
static const gml_device_ops ops = {FUNCTIONS};
static const gml_device_ops checking_ops = {FUNCTIONS, .note = note};

gml_status gml_priced_create(gml_device *inner, const gml_prices *prices, gml_device **out_device)
{
    priced_device *priced = gml_pages_map(sizeof *priced);
    if (priced == NULL)
        return GML_OUT_OF_METADATA;
    priced->device.ops = inner->ops->note != NULL ? &checking_ops : &ops;
    priced->device.chunk_bytes = inner->chunk_bytes;
    priced->inner = inner;
    priced->prices = *prices;
    *out_device = &priced->device;
    return GML_OK;
}

void gml_priced_destroy(gml_device *device)
{
    gml_pages_unmap(priced_of(device), sizeof(priced_device));
}
