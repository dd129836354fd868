/* SPDX-License-Identifier: Apache-2.0 */
/* Configuration of the simulated device: read from the environment at first use. */
#include "sim/driver/driver.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct sim_profile profiles[] = {
#define X(name, full, total, context, major, minor, sms, tflops, gbps, create, map, access, unmap) \
    {#name, full, (size_t)total, (size_t)context, major, minor, sms, tflops, gbps, {create, map, access, unmap}},
#include "sim/profiles.def"
#undef X
};

static struct sim_config config;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static const char *text(const char *name)
{
    const char *value = getenv(name);
    return value && *value ? value : NULL;
}

/* Binary units; 0 when it is no size. */
size_t sim_size_parse(const char *value)
{
    char *end;
    double number = strtod(value, &end);
    static const char units[] = "KMGT";
    const char *unit = *end ? strchr(units, *end & ~0x20) : NULL;
    if (number < 0) return 0;
    if (!unit) return *end && *end != ',' ? 0 : (size_t)strtoull(value, NULL, 0);
    for (long i = 0; i <= unit - units; i++) number *= 1024;
    return (size_t)number;
}

static void read_sizes(void)
{
    const char *value = text("GML_SIM_SIZE");
    if (!value) value = text("GML_SIM_MEMORY");
    config.total_bytes = value ? sim_size_parse(value) : 0;
    if (!config.total_bytes) config.total_bytes = config.profile->total_bytes;
    value = text("GML_SIM_VA");
    config.va_bytes = value ? sim_size_parse(value) : (size_t)1 << 47;
    value = text("GML_SIM_DEVICES");
    config.devices = value ? atoi(value) : 1;
    if (config.devices < 1) config.devices = 1;
    if (config.devices > SIM_MAX_DEVICES) config.devices = SIM_MAX_DEVICES;
}

/* The cost of `call` in a list such as "create=193us,map=1.5us", in nanoseconds; `otherwise` when it is not there. */
static uint64_t read_cost(const char *list, const char *call, uint64_t otherwise)
{
    size_t length = strlen(call);
    for (const char *p = list; p; p = strchr(p, ',')) {
        p += *p == ',';
        if (strncmp(p, call, length) != 0 || p[length] != '=') continue;
        char *unit;
        double number = strtod(p + length + 1, &unit);
        double ns = !strncmp(unit, "ns", 2) ? 1 : !strncmp(unit, "us", 2) ? 1e3 : !strncmp(unit, "ms", 2) ? 1e6 : -1;
        return number >= 0 && ns > 0 ? (uint64_t)(number * ns + 0.5) : otherwise;
    }
    return otherwise;
}

static void read_costs(void)
{
    const char *list = text("GML_DRIVER_COSTS");
    const struct sim_costs own = config.profile->costs;
    config.costs = (struct sim_costs){read_cost(list, "create", own.create), read_cost(list, "map", own.map),
                                      read_cost(list, "set_access", own.set_access),
                                      read_cost(list, "unmap", own.unmap)};
}

static void read_all(void)
{
    const char *name = text("GML_SIM_PROFILE");
    if (!name) return;
    for (size_t i = 0; i < sizeof profiles / sizeof *profiles; i++)
        if (!strcmp(profiles[i].name, name)) config.profile = &profiles[i];
    if (!config.profile) {
        fprintf(stderr, "gml-sim: there is no simulated device called %s\n", name);
        return;
    }
    read_sizes();
    read_costs();
    const char *value = text("GML_SIM_STRICT");
    config.strict = value && atoi(value) != 0;
    value = text("GML_SIM_ORACLE");
    config.oracle = !value || atoi(value) != 0;
    value = text("GML_SIM_FLAG_AFTER");
    config.flag_after = value ? strtoull(value, NULL, 10) : 1024;
    value = text("GML_SIM_TIME");
    if (value && !strncmp(value, "adversarial", 11)) {
        config.adversarial = true;
        config.seed = value[11] == ':' ? strtoull(value + 12, NULL, 0) : 1;
    }
}

const struct sim_config *sim_config_get(void)
{
    pthread_once(&once, read_all);
    return &config;
}
