/* SPDX-License-Identifier: Apache-2.0 */
/* Sites: the program's lines, and how much live memory each of them asked for (`--stacks`).
 *
 * `<run directory>/telemetry/<pid>.sites` lies beside the telemetry file, has the same rules (no pointers,
 * little endian, every field naturally aligned, stays when the process ends however it ends) and one sequence
 * number for all of it. It exists only when it was asked for.
 *
 * What each line held when most was live is kept without touching all lines at each new peak: a new peak only
 * raises the device's `peak_number`. A line that changes later first notes what it held, and that number. So a
 * line whose number is older has not changed since: it held then what it holds now.
 *
 * Not thread-safe: the caller's lock. Memory is bounded: with all places taken, further lines of a device share
 * one. */
#ifndef GML_TELEMETRY_SITES_H
#define GML_TELEMETRY_SITES_H

#include "telemetry/layout.h"

#include <stddef.h>
#include <stdint.h>

#define GML_SITES_MAGIC "GMLSIT01" /* 8 bytes, no terminator */
#define GML_SITES_VERSION 1u
#define GML_SITES_MOST 1024 /* the last GML_TELEMETRY_DEVICES are "all other lines" of a device each */
#define GML_SITES_NAMED (GML_SITES_MOST - GML_TELEMETRY_DEVICES)
#define GML_SITES_FILE 192
#define GML_SITES_FUNCTION 64
#define GML_SITES_TOPS 8

/* X(name, meaning): one line on one device, each a uint64_t. */
#define GML_SITE_FIELDS(X)                                              \
    X(device, "device index")                                           \
    X(line, "line in the file; 0: the thread ran no Python")            \
    X(live_bytes, "live blocks that it asked for")                      \
    X(live_count, "how many they are")                                  \
    X(allocs, "how many it ever asked for")                             \
    X(peak_bytes, "what it held at peak peak_number of the device")     \
    X(peak_count, "how many blocks then")                               \
    X(peak_number, "the peak that it noted last")

/* X(name, meaning): one device, each a uint64_t. */
#define GML_SITE_DEVICE_FIELDS(X)                  \
    X(live_bytes, "live, by all lines")            \
    X(peak_bytes, "highest live_bytes")            \
    X(peak_number, "how often it rose to a new one")

typedef struct gml_site {
#define X(name, meaning) uint64_t name;
    GML_SITE_FIELDS(X)
#undef X
    char file[GML_SITES_FILE];         /* its end, when it is longer */
    char function[GML_SITES_FUNCTION]; /* or the name of a thread that ran no Python */
} gml_site;

typedef struct gml_site_device {
#define X(name, meaning) uint64_t name;
    GML_SITE_DEVICE_FIELDS(X)
#undef X
} gml_site_device;

typedef struct gml_site_share {
    uint64_t site; /* index + 1; 0: none */
    uint64_t bytes;
    uint64_t count;
} gml_site_share;

/* The lines that held most at an out-of-memory failure. */
typedef struct gml_site_oom {
    uint64_t number; /* of the failure in this process, from 1; 0: never written */
    uint64_t asked;  /* the line that asked, index + 1; 0: not known */
    gml_site_share tops[GML_SITES_TOPS];
} gml_site_oom;

typedef struct gml_sites {
    char magic[8];
    uint32_t version;
    uint32_t header_bytes; /* offset of `sites` */
    uint64_t total_bytes;
    uint64_t sequence; /* odd while the writer is inside */
    uint64_t count;    /* places taken, from the first on */
    char status[128];  /* which Python it reads, or why it cannot */
    gml_site_device devices[GML_TELEMETRY_DEVICES];
    gml_site_oom ooms[GML_TELEMETRY_OOMS]; /* failure n at n modulo the length, as in the telemetry file */
    gml_site sites[GML_SITES_MOST];
} gml_sites;

/* The place of a line, made when it is new. `function` names the function, or the thread when `line` is 0. */
size_t gml_sites_find(gml_sites *sites, uint64_t device, const char *file, uint64_t line, const char *function);

/* A block that the line asked for lives, and dies. */
void gml_sites_add(gml_sites *sites, size_t site, uint64_t bytes);
void gml_sites_remove(gml_sites *sites, size_t site, uint64_t bytes);

/* Notes the lines that hold most on the device as the ones of failure `number` (from 0). `asked` is the place
 * of the line that asked; GML_SITES_MOST: not known. */
void gml_sites_note_oom(gml_sites *sites, uint64_t number, uint64_t device, size_t asked);

#endif
