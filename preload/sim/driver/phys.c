/* SPDX-License-Identifier: Apache-2.0 */
/* Physical memory: budgets per device, and contents in one sparse file.
 *
 * Offsets in the file are never used twice, so a fresh phys reads as zeros; holes cost nothing, and
 * reading one through pread allocates no page (reading it through a mapping would). */
#define _GNU_SOURCE
#include "sim/driver/driver.h"
#include "sim/driver/exports.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#define FILE_BYTES ((rlim_t)1 << 61)

static int file = -1;
static uint64_t next_offset;

static bool open_file(void)
{
    if (file >= 0) return true;
    struct rlimit limit = {RLIM_INFINITY, RLIM_INFINITY};
    /* A program that may write no such file would be sent SIGXFSZ for it. */
    if (getrlimit(RLIMIT_FSIZE, &limit) != 0 || limit.rlim_cur < FILE_BYTES) return false;
    file = memfd_create("gml-sim-device-memory", MFD_CLOEXEC);
    return file >= 0 && ftruncate(file, (off_t)FILE_BYTES) == 0;
}

size_t gml_sim_used_bytes(int device)
{
    if (device < 0 || device >= SIM_MAX_DEVICES) return 0;
    sim_lock();
    size_t used = sim.device[device].used;
    sim_unlock();
    return used;
}

size_t gml_sim_peak_bytes(int device)
{
    if (device < 0 || device >= SIM_MAX_DEVICES) return 0;
    sim_lock();
    size_t peak = sim.device[device].peak;
    sim_unlock();
    return peak;
}

size_t gml_sim_context_bytes(int device)
{
    if (device < 0 || device >= SIM_MAX_DEVICES || !sim_config_get()->profile) return 0;
    sim_lock();
    size_t bytes = sim.device[device].contexts * sim_config_get()->profile->context_bytes;
    sim_unlock();
    return bytes;
}

bool sim_budget_take_locked(int device, size_t bytes)
{
    const struct sim_config *config = sim_config_get();
    struct sim_device *d = &sim.device[device];
    if (sim_faults_on) d->foreign = sim_fault_foreign_bytes();
    size_t held = d->used + d->foreign + d->contexts * config->profile->context_bytes;
    if (held > config->total_bytes || bytes > config->total_bytes - held) return false;
    d->used += bytes;
    if (d->used > d->peak) d->peak = d->used;
    return true;
}

void sim_budget_give_locked(int device, size_t bytes)
{
    sim.device[device].used -= bytes;
}

CUresult sim_phys_new_locked(int device, size_t bytes, bool pooled, struct sim_phys **out)
{
    if (!open_file()) return CUDA_ERROR_OPERATING_SYSTEM;
    bool budgeted = device >= 0 && !pooled;
    if (budgeted && !sim_budget_take_locked(device, bytes)) return CUDA_ERROR_OUT_OF_MEMORY;
    struct sim_phys *phys = sim_object_new_locked(SIM_PHYS);
    if (!phys) {
        if (budgeted) sim_budget_give_locked(device, bytes);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    phys->bytes = bytes;
    phys->offset = next_offset;
    next_offset += sim_round_up(bytes, SIM_CHUNK);
    phys->device = device;
    phys->pooled = pooled;
    phys->refs = 1;
    phys->id = ++sim.next_id;
    *out = phys;
    return CUDA_SUCCESS;
}

void sim_phys_unref_locked(struct sim_phys *phys)
{
    if (phys->refs || phys->maps) return;
    if (phys->device >= 0 && !phys->pooled) sim_budget_give_locked(phys->device, phys->bytes);
    sim_phys_zero(phys, 0, sim_round_up(phys->bytes, 4096));
    sim_marks_free_locked(phys);
    sim_object_free_locked(phys);
}

static void count_held(const void *object, void *context)
{
    const struct sim_phys *phys = object;
    if (phys->refs) (*(size_t *)context)++;
}

size_t sim_phys_held_locked(void)
{
    size_t count = 0;
    sim_object_each_locked(SIM_PHYS, count_held, &count);
    return count;
}

bool sim_phys_read(const struct sim_phys *phys, size_t at, void *dst, size_t bytes)
{
    char *to = dst;
    if (!phys->dirty) { /* never written */
        memset(dst, 0, bytes);
        return true;
    }
    while (bytes) {
        ssize_t n = pread(file, to, bytes, (off_t)(phys->offset + at));
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) return false;
        to += n, at += (size_t)n, bytes -= (size_t)n;
    }
    return true;
}

bool sim_phys_write(struct sim_phys *phys, size_t at, const void *src, size_t bytes)
{
    const char *from = src;
    phys->dirty = true;
    while (bytes) {
        ssize_t n = pwrite(file, from, bytes, (off_t)(phys->offset + at));
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) return false;
        from += n, at += (size_t)n, bytes -= (size_t)n;
    }
    return true;
}

/* Whole pages become holes; what was never written needs nothing. */
void sim_phys_zero(struct sim_phys *phys, size_t at, size_t bytes)
{
    if (!phys->dirty || !bytes) return;
    if (fallocate(file, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, (off_t)(phys->offset + at), (off_t)bytes) == 0) {
        if (at == 0 && bytes >= phys->bytes) phys->dirty = false;
        return;
    }
    static const char zeros[65536];
    for (size_t done = 0; done < bytes; done += sizeof zeros) {
        size_t n = bytes - done < sizeof zeros ? bytes - done : sizeof zeros;
        if (!sim_phys_write(phys, at + done, zeros, n)) return;
    }
}
