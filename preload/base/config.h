/* SPDX-License-Identifier: Apache-2.0 */
/* Config: reads the options of base/options.h from the environment, without libc's getenv.
 *
 * The libraries are preloaded, one of them replaces getenv, and options are read from inside hooked
 * calls: so this walks `environ` itself and takes no lock. Nothing is cached here. */
#ifndef GML_BASE_CONFIG_H
#define GML_BASE_CONFIG_H

#include "base/options.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef enum gml_option {
#define X(name, value, meaning) GML_OPTION_##name,
    GML_OPTIONS(X)
#undef X
    GML_OPTION_COUNT
} gml_option;

/* The value of an environment variable, NULL when it is not set. Points into the environment. */
const char *gml_config_environment(const char *name);

/* The value of an option: the environment's, else its default. Never NULL. */
const char *gml_config_text(gml_option option);

/* True when the environment sets the option to a non-empty value. */
bool gml_config_is_set(gml_option option);

/* A whole number; `fallback` when the text is none. */
uint64_t gml_config_number(gml_option option, uint64_t fallback);

/* A size in bytes: "80", "80GB", "80GiB", "512M", "1.5g" (all units are powers of 1024). False when
 * the text is no size. */
bool gml_config_parse_size(const char *text, uint64_t *out_bytes);

#endif
