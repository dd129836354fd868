/* SPDX-License-Identifier: Apache-2.0 */
/* Reads options from `environ`. */
#include "base/config.h"

#include <string.h>

extern char **environ;

#define X(name, value, meaning) {"GML_" #name, value},
static const struct {
    const char *variable;
    const char *fallback;
} option_table[GML_OPTION_COUNT] = {GML_OPTIONS(X)};
#undef X

const char *gml_config_environment(const char *name)
{
    size_t length = strlen(name);
    for (char **entry = environ; entry != NULL && *entry != NULL; entry++)
        if (strncmp(*entry, name, length) == 0 && (*entry)[length] == '=')
            return *entry + length + 1;
    return NULL;
}

bool gml_config_is_set(gml_option option)
{
    const char *text = gml_config_environment(option_table[option].variable);
    return text != NULL && text[0] != '\0';
}

const char *gml_config_text(gml_option option)
{
    const char *text = gml_config_environment(option_table[option].variable);
    return text != NULL && text[0] != '\0' ? text : option_table[option].fallback;
}

/* Reads digits with an optional fraction; the value comes in 1/1000 so that no float is needed. */
static const char *scan_milli(const char *text, uint64_t *out_milli)
{
    uint64_t whole = 0;
    uint64_t scale = 1000;
    const char *p = text;
    for (; *p >= '0' && *p <= '9'; p++) {
        if (whole > UINT64_MAX / 100000)
            return NULL;
        whole = whole * 10 + (uint64_t)(*p - '0');
    }
    if (p == text)
        return NULL;
    uint64_t milli = whole * 1000;
    if (*p == '.') {
        for (p++; *p >= '0' && *p <= '9'; p++) {
            scale /= 10;
            milli += scale * (uint64_t)(*p - '0');
        }
    }
    *out_milli = milli;
    return p;
}

/* The power of 1024 that a unit's first letter stands for; -1 when it is no unit. */
static int unit_power(char letter)
{
    static const char units[] = "bkmgtp";
    const char *found = strchr(units, letter >= 'A' && letter <= 'Z' ? letter + 32 : letter);
    return letter == '\0' ? 0 : found == NULL ? -1 : (int)(found - units);
}

bool gml_config_parse_size(const char *text, uint64_t *out_bytes)
{
    uint64_t milli = 0;
    const char *p = scan_milli(text, &milli);
    if (p == NULL)
        return false;
    while (*p == ' ')
        p++;
    int power = unit_power(*p);
    if (power < 0)
        return false;
    if (*p != '\0')
        p++;
    if (power > 0 && (*p == 'i' || *p == 'I'))
        p++;
    if (power > 0 && (*p == 'b' || *p == 'B'))
        p++;
    if (*p != '\0')
        return false;
    uint64_t unit = (uint64_t)1 << (10 * power);
    if (milli / 1000 > UINT64_MAX / unit)
        return false;
    *out_bytes = milli / 1000 * unit + milli % 1000 * unit / 1000;
    return true;
}

uint64_t gml_config_number(gml_option option, uint64_t fallback)
{
    uint64_t value = 0;
    const char *text = gml_config_text(option);
    if (*text == '\0')
        return fallback;
    for (; *text != '\0'; text++) {
        if (*text < '0' || *text > '9' || value > UINT64_MAX / 10 - 10)
            return fallback;
        value = value * 10 + (uint64_t)(*text - '0');
    }
    return value;
}
