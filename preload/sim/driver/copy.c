/* SPDX-License-Identifier: Apache-2.0 */
/* Execution of copies and fills through the page table.
 *
 * Fast time keeps host pages few, so it leaves out what is too large to matter to a training script:
 * asynchronous device-to-device copies and non-zero fills over 1 MiB, asynchronous copies to the device
 * over 4 MiB and from it over 16 MiB, and anything plain (a call that names no stream) over 64 MiB. What
 * is left out changes no byte. Zero fills have no limit: they make holes. Adversarial time leaves nothing out.
 * Access is checked over the whole range in every case.
 *
 * Most kernels write nothing, so what a program reads back of a kernel's result is whatever an earlier owner of
 * the memory left there. A small read (.item(), a count, a flag, indices) yields zeros for what is not known
 * (known.c): losses are 0, nothing is non-finite, nonzero() finds nothing, flags are false, indices are in range.
 * Larger ones, as those of weights, read memory as it is: nobody may have written it since it was loaded. */
#include "sim/driver/driver.h"

#include <string.h>

static const size_t CAP_PLAIN = (size_t)64 << 20, CAP_DEVICE = (size_t)1 << 20;
static const size_t CAP_TO = (size_t)4 << 20, CAP_FROM = (size_t)16 << 20;
static const size_t SMALL = 65536, SMALL_ADVERSARIAL = 16; /* there every byte shows */
static const size_t SLICE = (size_t)1 << 20;
static char bounce[1 << 20]; /* used under the lock */

struct sim_place sim_locate_locked(uintptr_t va, size_t bytes)
{
    struct sim_page page = sim_page_locked(va);
    if (!page.range || page.range->kind == SIM_RANGE_MANAGED) return (struct sim_place){NULL, 0, bytes, (char *)va};
    if (!page.map) return (struct sim_place){NULL, 0, 0, NULL};
    size_t left = page.map->va + page.map->bytes - va;
    return (struct sim_place){page.map->phys, va - page.map->va, left < bytes ? left : bytes, NULL};
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
        struct sim_place to = sim_locate_locked(dst, bytes < SLICE ? bytes : SLICE);
        struct sim_place from = staging ? (struct sim_place){NULL, 0, to.bytes, (char *)(uintptr_t)staging}
                                    : sim_locate_locked(src, to.bytes);
        size_t n = from.bytes;
        if (!n) return false;
        bool ok = true;
        enum sim_known state = from.phys ? sim_known_get_locked(from.phys, from.at, n) : SIM_KNOWN;
        const size_t small = sim_config_get()->adversarial ? SMALL_ADVERSARIAL : SMALL;
        bool read = state != SIM_KNOWN && !to.phys && total <= small;
        if (read && total > SMALL_ADVERSARIAL && n == total)
            read = sim_known_given_locked(from.phys, from.at, n) != SIM_GIVEN_COPY;
        if (read && bytes == total) yes = sim_values_read_locked(stream, total, state == SIM_ALL);
        if (to.phys && from.phys && !from.phys->dirty) {
            sim_phys_zero(to.phys, to.at, n); /* without making pages */
        } else if (to.phys && from.phys) {
            ok = sim_phys_read(from.phys, from.at, bounce, n) && sim_phys_write(to.phys, to.at, bounce, n);
        } else if (to.phys) ok = sim_phys_write(to.phys, to.at, from.host, n);
        else if (from.phys) ok = sim_phys_read(from.phys, from.at, to.host, n);
        else memmove(to.host, from.host, n);
        if (!ok) return false;
        if (read && yes) *to.host = 1;
        else if (read) sim_known_blank_locked(from.phys, from.at, n, to.host);
        if (to.phys && from.phys) sim_known_copy_locked(from.phys, from.at, n, to.phys, to.at);
        else if (to.phys) sim_known_set_locked(to.phys, to.at, n, SIM_KNOWN);
        if (to.phys && !from.phys && n == total && n <= SMALL) sim_known_give_locked(to.phys, to.at, n, SIM_GIVEN_COPY);
        dst += n, src += n, bytes -= n;
        if (staging) staging += n;
    }
    return true;
}

static CUresult check_from_locked(struct sim_ctx *ctx, int device, uintptr_t va, size_t bytes, bool write,
                                  const char *what)
{
    /* What was device memory when the work was submitted, and is none now, is no memory of the host's either. */
    if (is_device_locked(va) ? sim_access_ok_locked(va, bytes, device, write) : !sim_stale_locked(va)) return CUDA_SUCCESS;
    return sim_ctx_fault_locked(ctx, what, va, bytes);
}

static CUresult check_locked(struct sim_ctx *ctx, uintptr_t va, size_t bytes, bool write, const char *what)
{
    return check_from_locked(ctx, ctx->device, va, bytes, write, what);
}

/* The device that reaches one end of a copy: the stream's, or for a copy between peers the one that has the memory. */
static int reaches_locked(const struct sim_stream *stream, const struct sim_op *op, uintptr_t va)
{
    struct sim_page page = op->u.copy.peers ? sim_page_locked(va) : (struct sim_page){0};
    return page.map ? page.map->phys->device : stream->ctx->device;
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
        CUresult result = check_from_locked(ctx, reaches_locked(stream, op, d), d, row, true, "copy to");
        if (result == CUDA_SUCCESS && !staging)
            result = check_from_locked(ctx, reaches_locked(stream, op, s), s, row, false, "copy from");
        if (result != CUDA_SUCCESS) return result;
        if (total > cap && !sim_config_get()->adversarial) {
            if (to) sim_known_mark_locked(d, row, SIM_UNKNOWN);
            continue;
        }
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
        struct sim_place to = sim_locate_locked(va, value && bytes > SLICE ? SLICE : bytes);
        if (!to.bytes) return false;
        if (!to.phys) {
            if (value) memcpy(to.host, bounce, to.bytes);
            else memset(to.host, 0, to.bytes);
        } else if (!value) {
            sim_phys_zero(to.phys, to.at, to.bytes);
        } else if (!sim_phys_write(to.phys, to.at, bounce, to.bytes)) {
            return false;
        }
        if (to.phys) sim_known_set_locked(to.phys, to.at, to.bytes, SIM_KNOWN);
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
        if (op->u.fill.value && total > cap && !sim_config_get()->adversarial) {
            sim_known_mark_locked(va, row, SIM_UNKNOWN);
            continue;
        }
        if (!fill_row_locked(va, row, op->u.fill.value, op->u.fill.width))
            return sim_ctx_fault_locked(ctx, "fill", va, row);
    }
    return CUDA_SUCCESS;
}

CUresult sim_touch_locked(struct sim_ctx *ctx, const struct sim_op *op)
{
    const uintptr_t va = op->u.touch.va;
    if (sim_stale_locked(va)) return sim_ctx_fault_locked(ctx, "library work after the free", va, op->u.touch.bytes);
    return check_locked(ctx, va, op->u.touch.bytes, false, "library work");
}
