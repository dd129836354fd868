/* SPDX-License-Identifier: Apache-2.0 */
/* Faults on demand: GML_SIM_FAULTS="cuMemMap:3=2,cuMemCreate:10+=2" makes the third cuMemMap answer 2, and
 * every cuMemCreate from the tenth on. */
#include "sim/driver/driver.h"

#include <stdlib.h>
#include <string.h>

enum { FAULTS = 32, NAME = 48 };

static struct {
    char name[NAME];
    uint64_t call;
    bool onward;
    CUresult result;
} fault[FAULTS];
static unsigned count;
_Atomic bool sim_faults_on;

static bool parse_one(const char *text, size_t length)
{
    const char *colon = memchr(text, ':', length);
    if (!colon || colon - text >= NAME || count == FAULTS) return false;
    char *end;
    memcpy(fault[count].name, text, (size_t)(colon - text));
    fault[count].call = strtoull(colon + 1, &end, 10);
    fault[count].onward = *end == '+';
    if (fault[count].onward) end++;
    if (*end != '=' || !fault[count].call) return false;
    fault[count].result = (CUresult)atoi(end + 1);
    count++;
    return true;
}

void sim_fault_read(void)
{
    const char *text = getenv("GML_SIM_FAULTS");
    while (text && *text) {
        size_t length = strcspn(text, ",");
        parse_one(text, length);
        text += length + (text[length] == ',');
    }
    sim_faults_on = count > 0;
}

CUresult sim_fault_check(const char *name, uint64_t call)
{
    for (unsigned i = 0; i < count; i++)
        if (!strcmp(fault[i].name, name) && (fault[i].call == call || (fault[i].onward && fault[i].call < call)))
            return fault[i].result;
    return CUDA_SUCCESS;
}
