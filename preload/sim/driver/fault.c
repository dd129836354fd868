/* SPDX-License-Identifier: Apache-2.0 */
/* Faults on demand, from GML_SIM_FAULTS: a comma list of
 *
 *   cuMemMap:3=2        the third cuMemMap answers 2
 *   cuMemCreate:10+=2   every cuMemCreate from the tenth on answers 2
 *   cuMemFree:5~80      the fifth cuMemFree takes 80 ms
 *   cuMemUnmap:2/=999   the second cuMemUnmap unmaps the first half of its maps, then answers 999
 *                       (cuMemUnmap and cuMemSetAccess alone)
 *   foreign:40=2G       from the 40th physical allocation on another process holds 2 GiB of each device */
#define _GNU_SOURCE
#include "sim/driver/driver.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { FAULTS = 32, NAME = 48 };

static struct fault {
    char name[NAME];
    uint64_t call;
    bool onward, halfway;
    unsigned delay_ms;
    CUresult result;
    size_t bytes;
} faults[FAULTS];
static unsigned count;
static uint64_t physical_allocations;
static __thread CUresult halfway_result;
_Atomic bool sim_faults_on;

static void parse_one(const char *text, size_t length)
{
    const char *colon = memchr(text, ':', length);
    if (!colon || colon - text >= NAME || count == FAULTS) return;
    struct fault *f = &faults[count];
    char *at;
    memcpy(f->name, text, (size_t)(colon - text));
    f->call = strtoull(colon + 1, &at, 10);
    if (*at == '+') f->onward = true, at++;
    if (*at == '/') f->halfway = true, at++;
    if (*at == '~') f->delay_ms = (unsigned)atoi(at + 1);
    else if (*at == '=') f->result = (CUresult)atoi(at + 1), f->bytes = sim_size_parse(at + 1);
    else return;
    count++;
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
    halfway_result = CUDA_SUCCESS;
    for (unsigned i = 0; i < count; i++) {
        const struct fault *f = &faults[i];
        if (strcmp(f->name, name) != 0 || (f->call != call && !(f->onward && f->call < call))) continue;
        if (f->delay_ms) usleep(f->delay_ms * 1000);
        else if (f->halfway) halfway_result = f->result;
        else return f->result;
    }
    return CUDA_SUCCESS;
}

CUresult sim_fault_halfway(void)
{
    return sim_faults_on ? halfway_result : CUDA_SUCCESS;
}

size_t sim_fault_foreign_bytes(void)
{
    size_t bytes = 0;
    physical_allocations++;
    for (unsigned i = 0; i < count; i++)
        if (!strcmp(faults[i].name, "foreign") && faults[i].call <= physical_allocations) bytes = faults[i].bytes;
    return bytes;
}
