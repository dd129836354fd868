/* SPDX-License-Identifier: Apache-2.0 */
/* gen_abi: prints the Python mirror of the C lists: `gen_abi abi` or `gen_abi profiles`. */
#include "base/options.h"
#include "base/status.h"
#include "interpose/hooks.h"
#include "telemetry/layout.h"
#include "telemetry/sites.h"

#include <stddef.h>
#include <stdio.h>
#include <string.h>

/* The C `char` name of a field's type, as Python's struct module calls it. */
#define FORMAT(type, field) (sizeof(((type *)0)->field) == 4 ? "I" : "Q")

static void print_scalar(const char *name, size_t offset, const char *format) {
    printf("    \"%s\": (%zu, \"<%s\"),\n", name, offset, format);
}

static void print_text(const char *name, size_t offset, size_t bytes) {
    printf("    \"%s\": (%zu, \"<%zus\"),\n", name, offset, bytes);
}

/* A C list of uint64_t fields that lie side by side becomes a NamedTuple and its struct format. */
static void open_tuple(const char *name, const char *doc) {
    printf("\n\nclass %s(NamedTuple):\n    \"\"\"%s\"\"\"\n\n", name, doc);
}

static void print_field(const char *name, const char *meaning) {
    printf("    %s: int  # %s\n", name, meaning);
}

static void print_header(void) {
    printf("\n# The fixed part of a telemetry file: name -> (offset, struct format).\nHEADER = {\n");
    print_text("magic", offsetof(gml_telemetry, magic), sizeof(((gml_telemetry *)0)->magic));
#define SCALAR(f) print_scalar(#f, offsetof(gml_telemetry, f), FORMAT(gml_telemetry, f))
#define TEXT(f) print_text(#f, offsetof(gml_telemetry, f), sizeof(((gml_telemetry *)0)->f))
    SCALAR(version);
    SCALAR(header_bytes);
    SCALAR(total_bytes);
    SCALAR(pid);
    SCALAR(parent_pid);
    SCALAR(start_ns);
    SCALAR(rank);
    SCALAR(local_rank);
    SCALAR(simulated);
    TEXT(allocator);
    TEXT(intercept);
    TEXT(goal);
    TEXT(command);
    TEXT(message);
    SCALAR(oom_count);
    SCALAR(event_count);
#undef SCALAR
#undef TEXT
    printf("}\n");
}

#define COUNT_ONE(...) +1
#define FIELD(name, meaning) print_field(#name, meaning);
#define OOM_FIELD(type, name, meaning) print_field(#name, meaning);

static void print_tuples(void) {
    open_tuple("ProcessCounters", "Counters of the whole process.");
    GML_PROCESS_FIELDS(FIELD)
    open_tuple("DeviceFigures", "Figures of one device, and of PyTorch's own allocator on it.");
    GML_DEVICE_FIELDS(FIELD)
    GML_TORCH_FIELDS(FIELD)
    open_tuple("Stats", "Statistics of the heap of one device.");
    GML_STATS(FIELD)
    open_tuple("OomRecord", "One out-of-memory failure.");
    GML_OOM_FIELDS(OOM_FIELD)
    open_tuple("SiteFigures", "One line of the program on one device.");
    GML_SITE_FIELDS(FIELD)
    open_tuple("SiteDevice", "All lines on one device.");
    GML_SITE_DEVICE_FIELDS(FIELD)
}

static void print_places(void) {
    const size_t process_count = 0 GML_PROCESS_FIELDS(COUNT_ONE);
    const size_t figure_count = 0 GML_DEVICE_FIELDS(COUNT_ONE) GML_TORCH_FIELDS(COUNT_ONE);
    const size_t stats_count = 0 GML_STATS(COUNT_ONE);
    const size_t oom_count = 0 GML_OOM_FIELDS(COUNT_ONE);

    printf("\n\n# Where the tuples lie: process counters and failures in the file, the rest in a device block.\n");
    printf("PROCESS_OFFSET = %zu\n", offsetof(gml_telemetry, oom_count) + sizeof(uint64_t));
    printf("PROCESS_FORMAT = \"<%zuQ\"\n", process_count);
    printf("OOM_OFFSET = %zu\nOOM_BYTES = %zu\n", offsetof(gml_telemetry, ooms), sizeof(gml_oom_record));
    printf("OOM_FORMAT = \"<%zuQ\"\nOOM_COUNT = %d\n", oom_count, GML_TELEMETRY_OOMS);
    printf("DEVICE_OFFSET = %zu\nDEVICE_BYTES = %zu\nDEVICE_COUNT = %d\n",
           offsetof(gml_telemetry, devices), sizeof(gml_device_block), GML_TELEMETRY_DEVICES);
    printf("SEQUENCE_OFFSET = %zu\nPRESENT_OFFSET = %zu\n", offsetof(gml_device_block, sequence),
           offsetof(gml_device_block, present));
    printf("NAME_OFFSET = %zu\nNAME_BYTES = %d\n", offsetof(gml_device_block, name), GML_TELEMETRY_TEXT);
    printf("FIGURES_OFFSET = %zu\nFIGURES_FORMAT = \"<%zuQ\"\n",
           offsetof(gml_device_block, name) + GML_TELEMETRY_TEXT, figure_count);
    printf("STATS_OFFSET = %zu\nSTATS_FORMAT = \"<%zuQ\"\n", offsetof(gml_device_block, stats), stats_count);
    printf("SIZE_COUNTS_OFFSET = %zu\nSIZE_CLASSES = %d\n", offsetof(gml_device_block, size_counts),
           GML_TELEMETRY_SIZE_CLASSES);
    printf("ALLOC_LATENCY_OFFSET = %zu\nFREE_LATENCY_OFFSET = %zu\nDRIVER_LATENCY_OFFSET = %zu\nLATENCY_COUNT = %d\n",
           offsetof(gml_device_block, alloc_latency), offsetof(gml_device_block, free_latency),
           offsetof(gml_device_block, driver_latency), GML_TELEMETRY_LATENCIES);
    printf("EVENT_OFFSET = %zu\nEVENT_BYTES = %zu\nEVENT_COUNT = %d\nEVENT_FORMAT = \"<6Q%ds\"\n",
           offsetof(gml_telemetry, events), sizeof(gml_log_event), GML_TELEMETRY_EVENTS, GML_TELEMETRY_EVENT_TEXT);
    printf("STEP_NS_OFFSET = %zu\nSTEP_NS_COUNT = %d\n", offsetof(gml_device_block, step_ns), GML_TELEMETRY_STEPS);
    printf("WINDOW_NUMBER_OFFSET = %zu\nWINDOW_LIVE_OFFSET = %zu\nWINDOW_COUNT = %d\nWINDOW_NS = %u\n",
           offsetof(gml_device_block, window_number), offsetof(gml_device_block, window_live),
           GML_TELEMETRY_WINDOWS, GML_TELEMETRY_WINDOW_NS);
    printf("MAP_OFFSET = %zu\nMAP_CELLS = %d\n", offsetof(gml_device_block, map), GML_TELEMETRY_MAP_CELLS);
    printf("FILE_BYTES = %zu\n", sizeof(gml_telemetry));
}

static void print_sites(void) {
    const size_t site_count = 0 GML_SITE_FIELDS(COUNT_ONE);
    const size_t device_count = 0 GML_SITE_DEVICE_FIELDS(COUNT_ONE);

    printf("\n\n# The file of lines that hold memory: name -> (offset, struct format), and where the rest lies.\n");
    printf("SITES_MAGIC = b\"%s\"\nSITES_VERSION = %u\nSITES_HEADER = {\n", GML_SITES_MAGIC, GML_SITES_VERSION);
#define SCALAR(f) print_scalar(#f, offsetof(gml_sites, f), FORMAT(gml_sites, f))
#define TEXT(f) print_text(#f, offsetof(gml_sites, f), sizeof(((gml_sites *)0)->f))
    TEXT(magic);
    SCALAR(version);
    SCALAR(sequence);
    SCALAR(count);
    TEXT(status);
#undef SCALAR
#undef TEXT
    printf("}\nSITE_DEVICES_OFFSET = %zu\nSITE_DEVICE_FORMAT = \"<%zuQ\"\n", offsetof(gml_sites, devices), device_count);
    printf("SITE_OOMS_OFFSET = %zu\nSITE_OOM_BYTES = %zu\nSITE_OOM_TOPS = %d\n", offsetof(gml_sites, ooms),
           sizeof(gml_site_oom), GML_SITES_TOPS);
    printf("SITES_OFFSET = %zu\nSITE_BYTES = %zu\nSITE_COUNT = %d\nSITE_NAMED = %d\n", offsetof(gml_sites, sites),
           sizeof(gml_site), GML_SITES_MOST, GML_SITES_NAMED);
    printf("SITE_FORMAT = \"<%zuQ\"\nSITE_FILE_BYTES = %d\nSITE_FUNCTION_BYTES = %d\n", site_count, GML_SITES_FILE,
           GML_SITES_FUNCTION);
    printf("SITES_FILE_BYTES = %zu\n", sizeof(gml_sites));
}

static void print_lists(void) {
    printf("\n# Variables that the libraries in the child read: (name, default, meaning).\nOPTIONS = (\n");
#define OPTION(name, value, meaning) printf("    (\"GML_%s\", \"%s\", \"%s\"),\n", #name, value, meaning);
    GML_OPTIONS(OPTION)
#undef OPTION
    printf(")\n\n# What happened, by number: (name, words).\nEVENT_KINDS = (\n");
#define KIND(name, words) printf("    (\"%s\", \"%s\"),\n", #name, words);
    GML_EVENT_KINDS(KIND)
    printf(")\n\n# What steps are found by, by number: (name, words).\nSTEP_SOURCES = (\n");
    GML_STEP_SOURCES(KIND)
#undef KIND
    printf(")\n\n# Status codes: name -> text.\nSTATUSES = {\n");
#define STATUS(name, text) printf("    \"%s\": \"%s\",\n", #name, text);
    GML_STATUSES(STATUS)
#undef STATUS
    printf("}\n");
}

static void print_abi(void) {
    printf("# SPDX-License-Identifier: Apache-2.0\n# Generated by `make gen` from the C lists; do not edit.\n");
    printf("\"\"\"Mirror of the telemetry layout, the options and the status codes of the native libraries.\"\"\"\n\n");
    printf("from __future__ import annotations\n\nfrom typing import NamedTuple\n\n");
    printf("MAGIC = b\"%s\"\nVERSION = %u\n", GML_TELEMETRY_MAGIC, GML_TELEMETRY_VERSION);
    print_header();
    print_tuples();
    print_places();
    print_sites();
    print_lists();
}

static void print_profiles(void) {
    printf("# SPDX-License-Identifier: Apache-2.0\n# Generated by `make gen` from preload/sim/profiles.def; do not edit.\n");
    printf("\"\"\"Simulated GPUs that --simulate knows.\"\"\"\n\n");
    printf("from __future__ import annotations\n\nfrom typing import NamedTuple\n\n\n");
    printf("class Profile(NamedTuple):\n    \"\"\"One simulated GPU.\"\"\"\n\n");
    printf("    name: str\n    total_bytes: int\n    context_bytes: int\n\n\nPROFILES = {\n");
#define X(name, full, total, context, ...) \
    printf("    \"%s\": Profile(\"%s\", %llu, %llu),\n", #name, full, total##ULL, context##ULL);
#include "sim/profiles.def"
#undef X
    printf("}\n");
}

static void print_hooks(void) {
    printf("# Hooked CUDA runtime symbols\n\n"
           "Generated from `preload/interpose/hooks.h` by `make gen`. Everything else of CUDA passes by untouched.\n"
           "Besides these the library defines `getenv` and `secure_getenv` (PyTorch's allocator settings) and\n"
           "PyTorch's `c10::reportMemoryUsageToProfiler` and `c10::reportOutOfMemoryToProfiler`, which it passes on.\n\n"
           "| function | what happens |\n|---|---|\n");
#define X(name, parameters, what) printf("| `%s` | %s |\n", #name, what);
    GML_RUNTIME_HOOKS(X)
#undef X
}

int main(int argc, char **argv) {
    if (argc == 2 && strcmp(argv[1], "abi") == 0) {
        print_abi();
    } else if (argc == 2 && strcmp(argv[1], "hooks") == 0) {
        print_hooks();
    } else if (argc == 2 && strcmp(argv[1], "profiles") == 0) {
        print_profiles();
    } else {
        fprintf(stderr, "usage: gen_abi abi | profiles | hooks\n");
        return 2;
    }
    return fflush(stdout) == 0 ? 0 : 1;
}
