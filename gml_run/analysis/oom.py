# SPDX-License-Identifier: Apache-2.0
"""Tells what kind of out of memory a failure was, from the figures at that moment.

The kinds, in the order in which they are tried; available is what the driver has free, idle what the
allocator holds and nobody uses:

    impossible    the request is larger than the device
    limit         --limit forbids it
    refused       the driver has enough free, and it or PyTorch's own limit refused all the same
    stream        available + idle would do, but too much of it waits on another stream
    fragmentation available + idle would do, but not in one piece
    others        it would fit if other processes held nothing
    full          none of these: the program needs more than there is
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from gml_run._abi import OomRecord
from gml_run.telemetry.reader import ProcessSnapshot
from gml_run.units import MIB, format_size

# A CUDA context with its libraries; more than this outside the pool belongs to somebody else.
CONTEXT_ALLOWANCE = 1024 * MIB

SOURCES = ("heap", "torch", "driver")
TOPS = sum(1 for name in OomRecord._fields if name.startswith("top") and name.endswith("_count"))


@dataclass(frozen=True, slots=True)
class Verdict:
    """The kind of a failure, one sentence on it, and what would help."""

    kind: str
    sentence: str
    advice: str


def classify(oom: OomRecord, limit_bytes: int | None = None, alone: bool = False) -> Verdict:
    """The verdict on one failure. `alone`: nobody else can be on the device, as it is a simulated one."""
    request = oom.request_bytes
    asked = format_size(request)
    idle = max(0, oom.reserved_bytes - oom.live_bytes)
    others = max(0, oom.total_bytes - oom.free_bytes - oom.reserved_bytes - CONTEXT_ALLOWANCE)
    if oom.total_bytes and request > oom.total_bytes:
        return Verdict(
            "impossible",
            f"{asked} was asked for in one piece; the device has {format_size(oom.total_bytes)}",
            "look at the shape that asked for it: it is often a wrong dimension",
        )
    if limit_bytes and oom.live_bytes + request > limit_bytes:
        return Verdict(
            "limit",
            f"{asked} more would go over --limit {format_size(limit_bytes)}; {format_size(oom.live_bytes)} is in use",
            "raise --limit, or make the batch smaller",
        )
    if oom.free_bytes >= request:
        outside = "another process may have been faster, or a limit outside this program holds"
        who, advice = "the driver refused ", outside
        if SOURCES[min(oom.source, 2)] == "torch":  # which has a limit of its own, and then asks nobody
            who = "PyTorch did not get "
            advice = f"a higher torch.cuda.set_per_process_memory_fraction, if it is set; else {outside}"
        return Verdict("refused", f"{who}{asked} although {format_size(oom.free_bytes)} was free", advice)
    if request <= oom.free_bytes + idle:
        return _enough_in_sum(oom, asked, idle)
    if others and not alone and request <= oom.free_bytes + idle + others:
        return Verdict(
            "others",
            f"{asked} did not fit because about {format_size(others)} is held outside this program",
            "see who holds it with nvidia-smi, and wait for it or end it",
        )
    missing = request - oom.free_bytes - idle
    return Verdict(
        "full",
        f"{asked} did not fit: {format_size(oom.live_bytes)} is in use, {format_size(missing)} is missing",
        "make the batch smaller, recompute activations, or use a larger device",
    )


def smaller_batch(oom: OomRecord, kind: str, limit_bytes: int | None = None) -> str:
    """How much smaller the batch must be at least; empty where that is not the point."""
    if kind not in ("full", "limit", "others"):
        return ""
    capacity = limit_bytes if kind == "limit" and limit_bytes else max(oom.reserved_bytes, oom.live_bytes)
    capacity += 0 if kind == "limit" else oom.free_bytes
    stays = min(oom.step_low_bytes, oom.live_bytes) if oom.step_count else 0
    room, wanted = capacity - stays, oom.live_bytes + oom.request_bytes - stays
    if room <= 0:
        return f"no batch is small enough: {format_size(stays)} stay between steps"
    less = math.ceil(100 * (1 - room / wanted))
    if less <= 0:
        return ""
    if stays:
        rest = format_size(oom.live_bytes - stays)
        return f"a batch at least {less} % smaller: {format_size(stays)} stay between steps, {rest} go with the batch"
    return f"at least {less} % less: how much of it stays between steps is not known, as no step had ended"


SAME_NS = 1_000_000_000  # a second request of the same size within this time is the same failure


def failure_count(process: ProcessSnapshot, device: int) -> int:
    """The failures on a device as a user counts them: PyTorch asks a second time before it gives up."""
    count = 0
    last: OomRecord | None = None
    for oom in process.ooms:
        if oom.device != device:
            continue
        if last is None or oom.request_bytes != last.request_bytes or oom.time_ns - last.time_ns >= SAME_NS:
            count += 1
        last = oom
    return count + (process.oom_count - len(process.ooms) if count else 0)


def top_sizes(oom: OomRecord) -> list[tuple[int, int]]:
    """(bytes, live blocks) of the sizes that held most, the largest sum first."""
    pairs = [(getattr(oom, f"top{n}_bytes"), getattr(oom, f"top{n}_count")) for n in range(1, TOPS + 1)]
    return [(size, count) for size, count in pairs if count]


def _enough_in_sum(oom: OomRecord, asked: str, idle: int) -> Verdict:
    """Free and idle memory would do in sum; why could it not be used?"""
    usable = oom.free_bytes + max(0, idle - oom.stream_held_bytes)
    if oom.stream_held_bytes and oom.request_bytes > usable:
        return Verdict(
            "stream",
            f"{asked} did not fit while {format_size(oom.stream_held_bytes)} waited for work on another stream",
            "wait for the other stream before the large request, or free earlier on it",
        )
    free = f"the driver had {format_size(oom.free_bytes)} left"
    if SOURCES[min(oom.source, 2)] == "heap":
        piece = format_size(max(oom.largest_servable_bytes, oom.free_bytes))
        return Verdict(
            "fragmentation",
            f"{asked} did not fit although {format_size(idle)} was held and unused: it lies in partly used "
            f"chunks, which cannot be stitched; at most {piece} would have fitted",
            "keep small long-lived tensors apart from large ones, or free them",
        )
    return Verdict(
        "fragmentation",
        f"{asked} did not fit although {format_size(idle)} was held and unused in smaller pieces; {free}",
        "run it with gml-run --allocator vms, which stitches such pieces",
    )
