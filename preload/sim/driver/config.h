/* SPDX-License-Identifier: Apache-2.0 */
/* Configuration of the simulated device, and the virtual clock that its costs run on. */
#ifndef GML_SIM_CONFIG_H
#define GML_SIM_CONFIG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SIM_MAX_DEVICES 16
#define SIM_CHUNK ((size_t)2 << 20) /* granularity of physical memory and of the page table */

/* What driver calls cost for each chunk, in nanoseconds of virtual time. */
struct sim_costs {
    uint64_t create, map, set_access, unmap;
};

struct sim_profile {
    const char *name, *full_name;
    size_t total_bytes, context_bytes;
    int cc_major, cc_minor, sms;
    double peak_tflops, bandwidth_gbps;
    struct sim_costs costs;
};

struct sim_config {
    const struct sim_profile *profile; /* NULL: the simulation is off */
    size_t total_bytes;
    struct sim_costs costs; /* the profile's, or what GML_DRIVER_COSTS says */
    int devices;
    bool strict, oracle, adversarial;
    uint64_t seed;
    size_t va_bytes;     /* virtual space for device addresses */
    uint64_t flag_after; /* the read of a computed flag that is answered with yes; 0: none */
};

/* Reads the environment once, at the first call. */
const struct sim_config *sim_config_get(void);
size_t sim_size_parse(const char *text); /* "80G", "512MiB", "84942979072"; ends at a comma */

/* ---- virtual time (clock.c) ---- */

void sim_time_add(uint64_t ns);
void sim_time_copy(size_t bytes);

#endif
