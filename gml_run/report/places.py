# SPDX-License-Identifier: Apache-2.0
"""The entries of report.json for each process and device."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from gml_run._abi import SIZE_CLASSES
from gml_run.analysis.latency import latency_of
from gml_run.analysis.steps import Steps, steps_of
from gml_run.analysis.usage import Usage, usage_of
from gml_run.report.lines import device_lines
from gml_run.report.mask import mask_command
from gml_run.telemetry.reader import DeviceSnapshot, ProcessSnapshot

if TYPE_CHECKING:
    from gml_run.telemetry.sites import Sites


def process_entry(process: ProcessSnapshot, sites: Sites | None, others: int | None) -> dict[str, Any]:
    """One process; `others`: what foreign processes held when its device was fullest, None: not known."""
    counters = process.counters
    entry = {
        "pid": process.pid,
        "parent_pid": process.parent_pid,
        "rank": process.rank,
        "command": " ".join(mask_command(process.command)),
        "allocator": process.allocator,
        "served_calls": counters.served_calls,
        "forwarded_calls": counters.forwarded_calls,
        "observed_calls": counters.observed_calls,
        "captures": counters.captures,
        "message": process.message,
        "devices": [{**_device(process, device, sites), "others_bytes": others} for device in process.devices],
    }
    if sites is not None:
        entry["lines_read_from"] = sites.status
    return entry


def _device(process: ProcessSnapshot, device: DeviceSnapshot, sites: Sites | None) -> dict[str, Any]:
    stats, figures = device.stats, device.figures
    usage = usage_of(process, device)
    heap = usage.source == "heap"
    return {
        "index": device.index,
        "name": device.name,
        "total_bytes": figures.total_bytes,
        "peak_used_bytes": figures.peak_used_bytes,
        "counted_by": usage.source,
        "peak_live_bytes": usage.peak_live,
        "peak_reserved_bytes": usage.peak_reserved,
        "live_bytes": usage.live,
        "reserved_bytes": usage.reserved,
        "waste_ratio": round(usage.waste_ratio, 6),
        "mean_waste_ratio": None if usage.mean_waste is None else round(usage.mean_waste, 6),
        "pools": {
            "primitive": {"live_bytes": stats.primitive_live_bytes, "idle_bytes": stats.primitive_idle_bytes},
            "stitched": {"live_bytes": stats.stitched_live_bytes, "idle_bytes": stats.stitched_idle_bytes},
        },
        "waste": _waste(usage),
        "largest_servable_bytes": stats.largest_servable_bytes,
        "largest_gap_bytes": stats.largest_gap_bytes,
        "allocs": stats.allocs if heap else figures.torch_allocs,
        "frees": stats.frees if heap else figures.torch_frees,
        "merges": stats.merges,
        "ooms": stats.ooms if heap else figures.torch_ooms,
        "retries": stats.retries,
        "ladder": {
            "events": stats.ladder_events,
            "drain": stats.ladder_drain,
            "cross_stream": stats.ladder_cross_stream,
            "release": stats.ladder_release,
            "forward": stats.ladder_forward,
            "other": stats.ladder_other,
        },
        "placements": {
            "exact": stats.place_exact,
            "split": stats.place_split,
            "extend": stats.place_extend,
            "stitch": stats.place_stitch,
            "grow": stats.place_grow,
            "fail": stats.place_fail,
        },
        "driver_calls": {
            "create": stats.driver_create,
            "release": stats.driver_release,
            "reserve": stats.driver_reserve,
            "map": stats.driver_map,
            "unmap": stats.driver_unmap,
            "set_access": stats.driver_set_access,
        },
        "driver_time_s": stats.driver_ns / 1e9,
        "latency": _latency(device),
        "budget_refusals": stats.budget_refusals,
        "peak_driver_live_bytes": figures.peak_driver_live_bytes,
        "forwarded_bytes": stats.forwarded_bytes,
        "arenas": {"all": stats.arenas, "stitched": stats.stitched_arenas},
        "steps": steps_entry(steps_of(device)),
        "metadata_bytes": stats.metadata_bytes,
        "size_counts": _trimmed(device.size_counts),
        "torn": device.torn,
        **device_lines(sites, device.index),
    }


def _waste(usage: Usage) -> dict[str, int]:
    return {
        "requested_bytes": usage.requested,
        "internal_bytes": usage.internal,
        "external_bytes": usage.external,
        "stream_held_bytes": usage.stream_held,
    }


def steps_entry(steps: Steps) -> dict[str, Any]:
    """How many there were, and how long they took."""
    return {
        "count": steps.count,
        "p50_s": round(steps.p50_s, 6),
        "p95_s": round(steps.p95_s, 6),
        "source": steps.source,
        "unit": steps.unit,
        "doubt": steps.doubt,
    }


def _latency(device: DeviceSnapshot) -> dict[str, Any]:
    """By kind of call; kinds that were not timed are left out."""
    found = {
        "alloc": latency_of(device.alloc_latency),
        "free": latency_of(device.free_latency),
        "driver": latency_of(device.driver_latency),
    }
    return {
        name: {"p50_s": each.p50_s, "p99_s": each.p99_s, "max_s": each.max_s}
        for name, each in found.items()
        if each is not None
    }


def _trimmed(counts: Sequence[int]) -> list[int]:
    """Without the empty classes at the end."""
    last = max((number for number in range(SIZE_CLASSES) if counts[number]), default=-1)
    return list(counts[: last + 1])
