/* SPDX-License-Identifier: Apache-2.0 */
/* Execution of copies and fills through the page table.
 *
 * Fast time keeps host pages few, so it leaves out what is too large to matter to a training script:
 * asynchronous device-to-device copies and non-zero fills over 1 MiB, asynchronous copies to the device
 * over 4 MiB and from it over 16 MiB, and anything plain (a call that names no stream) over 64 MiB. What
 * is left out changes no byte. Zero fills have no limit: they make holes. Adversarial time leaves nothing out.
 * Access is checked over the whole range in every case.
 *
 * Kernels write nothing, so what a program reads back of a kernel's result is whatever an earlier owner of
 * the memory left there. A read of at most 16 bytes (.item(), a count, a flag) from memory that no copy or
 * fill wrote since the last launch (fresh.c) yields zeros instead: losses are 0, nothing is non-finite,
 * nonzero() finds nothing, flags are false. */
#include "sim/driver/driver.h"

#include <string.h>

static const size_t CAP_PLAIN = (size_t)64 << 20, CAP_DEVICE = (size_t)1 << 20;
static const size_t CAP_TO = (size_t)4 << 20, CAP_FROM = (size_t)16 << 20;
static const size_t SMALL = 16;
static const size_t SLICE = (size_t)1 << 20;
static char bounce[1 << 20]; /* used under the lock */

/* Where an address leads: a phys and the place in it, or host memory. */
struct place {
    struct sim_phys *phys;
    size_t at, bytes; /* bytes: how far this place reaches, at most as asked */
    char *host;
};

static struct place locate_locked(uintptr_t va, size_t bytes)
{
    struct sim_page page = sim_page_locked(va);
    if (!page.range || page.range->kind == SIM_RANGE_MANAGED) return (struct place){NULL, 0, bytes, (char *)va};
    if (!page.map) return (struct place){NULL, 0, 0, NULL};
    size_t left = page.map->va + page.map->bytes - va;
    return (struct place){page.map->phys, va - page.map->va, left < bytes ? left : bytes, NULL};
}

static bool is_device_locked(uintptr_t va)
{
    struct sim_range *range = sim_range_find_locked(va);
    return range && range->kind != SIM_RANGE_MANAGED;
}

/* Copies one row. A read by the host of nothing but a kernel's result yields zeros, or yes for a flag. */
static bool row_locked(struct sim_stream *stream, uintptr_t dst, uintptr_t src, size_t bytes, const char *staging)
{
    const size_t total = bytes;
    bool yes = false;
    while (bytes) {
        struct place to = locate_locked(dst, bytes < SLICE ? bytes : SLICE);
        struct place from = staging ? (struct place){NULL, 0, to.bytes, (char *)(uintptr_t)staging}
                                    : locate_locked(src, to.bytes);
        size_t n = from.bytes;
        if (!n) return false;
        bool ok = true;
        bool fresh = !from.phys || sim_fresh_locked(from.phys, from.at, n);
        bool read = !fresh && !to.phys && total <= SMALL;
        if (read && bytes == total) yes = sim_values_read_locked(stream, total);
        if (from.phys && (!from.phys->dirty || read)) { /* never written: zeros, without making pages */
            if (to.phys) sim_phys_zero(to.phys, to.at, n);
            else memset(to.host, yes, n);
        } else if (to.phys && from.phys) {
            ok = sim_phys_read(from.phys, from.at, bounce, n) && sim_phys_write(to.phys, to.at, bounce, n);
        } else if (to.phys) ok = sim_phys_write(to.phys, to.at, from.host, n);
        else if (from.phys) ok = sim_phys_read(from.phys, from.at, to.host, n);
        else memmove(to.host, from.host, n);
        if (!ok) return false;
        if (to.phys && from.phys) sim_fresh_copy_locked(from.phys, from.at, n, to.phys, to.at);
        else if (to.phys) sim_fresh_add_locked(to.phys, to.at, n);
        dst += n, src += n, bytes -= n;
        if (staging) staging += n;
    }
    return true;
}

static CUresult check_locked(struct sim_ctx *ctx, uintptr_t va, size_t bytes, bool write, const char *what)
{
    if (!is_device_locked(va) || sim_access_ok_locked(va, bytes, ctx->device, write)) return CUDA_SUCCESS;
    return sim_ctx_fault_locked(ctx, what, va, bytes);
}

CUresult sim_copy_locked(struct sim_stream *stream, const struct sim_op *op)
{
    struct sim_ctx *ctx = stream->ctx;
    uintptr_t dst = op->u.copy.dst, src = op->u.copy.src;
    size_t row = op->u.copy.bytes, total = row * op->u.copy.rows;
    bool to = is_device_locked(dst), from = !op->u.copy.staging && is_device_locked(src);
    size_t cap = op->u.copy.plain ? CAP_PLAIN : to && from ? CAP_DEVICE : to ? CAP_TO : CAP_FROM;
    const char *staging = op->u.copy.staging;
    sim_time_copy(total);
    for (size_t i = 0; i < op->u.copy.rows; i++) {
        uintptr_t d = dst + i * op->u.copy.dst_pitch, s = src + i * op->u.copy.src_pitch;
        CUresult result = check_locked(ctx, d, row, true, "copy to");
        if (result == CUDA_SUCCESS && from) result = check_locked(ctx, s, row, false, "copy from");
        if (result != CUDA_SUCCESS) return result;
        if (total > cap && !sim_config_get()->adversarial) continue;
        if (!row_locked(stream, d, s, row, staging ? staging + i * row : NULL))
            return sim_ctx_fault_locked(ctx, "copy between bad host memory and", d, row);
    }
    return CUDA_SUCCESS;
}

static bool fill_row_locked(uintptr_t va, size_t bytes, uint32_t value, unsigned width)
{
    if (value) {
        for (size_t i = 0; i < sizeof bounce && i < bytes + 4; i += width) memcpy(bounce + i, &value, width);
    }
    while (bytes) {
        struct place to = locate_locked(va, value && bytes > SLICE ? SLICE : bytes);
        if (!to.bytes) return false;
        if (!to.phys) {
            if (value) memcpy(to.host, bounce, to.bytes);
            else memset(to.host, 0, to.bytes);
        } else if (!value) {
            sim_phys_zero(to.phys, to.at, to.bytes);
        } else if (!sim_phys_write(to.phys, to.at, bounce, to.bytes)) {
            return false;
        }
        if (to.phys) sim_fresh_add_locked(to.phys, to.at, to.bytes);
        va += to.bytes, bytes -= to.bytes;
    }
    return true;
}

CUresult sim_fill_locked(struct sim_ctx *ctx, const struct sim_op *op)
{
    size_t row = op->u.fill.count * op->u.fill.width, total = row * op->u.fill.rows;
    size_t cap = op->u.fill.plain ? CAP_PLAIN : CAP_DEVICE;
    sim_time_copy(total);
    for (size_t i = 0; i < op->u.fill.rows; i++) {
        uintptr_t va = op->u.fill.va + i * op->u.fill.pitch;
        CUresult result = check_locked(ctx, va, row, true, "fill");
        if (result != CUDA_SUCCESS) return result;
        if (op->u.fill.value && total > cap && !sim_config_get()->adversarial) continue;
        if (!fill_row_locked(va, row, op->u.fill.value, op->u.fill.width))
            return sim_ctx_fault_locked(ctx, "fill", va, row);
    }
    return CUDA_SUCCESS;
}

CUresult sim_touch_locked(struct sim_ctx *ctx, const struct sim_op *op)
{
    return check_locked(ctx, op->u.touch.va, op->u.touch.bytes, false, "library work");
}
