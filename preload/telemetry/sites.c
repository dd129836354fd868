/* SPDX-License-Identifier: Apache-2.0 */
/* Keeps the memory of each line, and what it was at the peak. */
#include "telemetry/sites.h"

#include <string.h>

/* Readers copy the file and look at the number before and after; fences keep the two in order. */
static void begin(gml_sites *sites)
{
    __atomic_store_n(&sites->sequence, sites->sequence + 1, __ATOMIC_RELAXED);
    __atomic_thread_fence(__ATOMIC_RELEASE);
}

static void end(gml_sites *sites)
{
    __atomic_store_n(&sites->sequence, sites->sequence + 1, __ATOMIC_RELEASE);
}

/* The end of a long path says more than its beginning. */
static void copy_end(char *to, size_t capacity, const char *from)
{
    size_t length = strlen(from);
    if (length >= capacity)
        from += length - (capacity - 1);
    strncpy(to, from, capacity - 1);
    to[capacity - 1] = '\0';
}

static const char *shown_end(const char *file)
{
    size_t length = strlen(file);
    return length < GML_SITES_FILE ? file : file + (length - (GML_SITES_FILE - 1));
}

size_t gml_sites_find(gml_sites *sites, uint64_t device, const char *file, uint64_t line, const char *function)
{
    const char *shown = shown_end(file);
    for (size_t i = 0; i < sites->count; i++) {
        const gml_site *site = &sites->sites[i];
        if (site->line == line && site->device == device && strcmp(site->file, shown) == 0 &&
            (line != 0 || strncmp(site->function, function, GML_SITES_FUNCTION - 1) == 0))
            return i;
    }
    size_t place = sites->count < GML_SITES_NAMED ? (size_t)sites->count : GML_SITES_NAMED + (size_t)device;
    gml_site *site = &sites->sites[place];
    begin(sites);
    if (place < GML_SITES_NAMED) {
        site->line = line;
        copy_end(site->file, sizeof site->file, file);
        strncpy(site->function, function, sizeof site->function - 1);
        sites->count++;
    }
    site->device = device;
    end(sites);
    return place;
}

/* Before a change: what it held at the last peak is what it still holds, unless it was noted. */
static void settle(gml_site *site, const gml_site_device *device)
{
    if (site->peak_number == device->peak_number)
        return;
    site->peak_number = device->peak_number;
    site->peak_bytes = site->live_bytes;
    site->peak_count = site->live_count;
}

void gml_sites_add(gml_sites *sites, size_t place, uint64_t bytes)
{
    gml_site *site = &sites->sites[place];
    gml_site_device *device = &sites->devices[site->device];
    begin(sites);
    settle(site, device);
    site->live_bytes += bytes;
    site->live_count++;
    site->allocs++;
    device->live_bytes += bytes;
    if (device->live_bytes > device->peak_bytes) {
        device->peak_bytes = device->live_bytes;
        device->peak_number++;
    }
    end(sites);
}

void gml_sites_remove(gml_sites *sites, size_t place, uint64_t bytes)
{
    gml_site *site = &sites->sites[place];
    gml_site_device *device = &sites->devices[site->device];
    begin(sites);
    settle(site, device);
    site->live_bytes -= bytes;
    site->live_count--;
    device->live_bytes -= bytes;
    end(sites);
}

/* Keeps `tops` sorted, the largest first. */
static void rank(gml_site_share *tops, gml_site_share share)
{
    size_t place = GML_SITES_TOPS;
    while (place > 0 && tops[place - 1].bytes < share.bytes)
        place--;
    if (place == GML_SITES_TOPS)
        return;
    memmove(&tops[place + 1], &tops[place], (GML_SITES_TOPS - 1 - place) * sizeof *tops);
    tops[place] = share;
}

void gml_sites_note_oom(gml_sites *sites, uint64_t number, uint64_t device, size_t asked)
{
    gml_site_oom *oom = &sites->ooms[number % GML_TELEMETRY_OOMS];
    begin(sites);
    memset(oom, 0, sizeof *oom);
    oom->number = number + 1;
    oom->asked = asked < GML_SITES_MOST ? asked + 1 : 0;
    for (size_t i = 0; i < GML_SITES_MOST; i++) {
        const gml_site *site = &sites->sites[i];
        if (site->device == device && site->live_bytes > 0)
            rank(oom->tops, (gml_site_share){i + 1, site->live_bytes, site->live_count});
    }
    end(sites);
}
