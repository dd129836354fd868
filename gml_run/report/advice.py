# SPDX-License-Identifier: Apache-2.0
"""What to try next, with the exact settings, from the figures of one report. Nothing is guessed: each rule
names the figure that it goes by."""

from __future__ import annotations

from typing import Any

from gml_run.report.verdict import distinct_ooms, peak_device
from gml_run.units import GIB, format_count, format_percent, format_size

_MUCH_WASTE = 0.1  # of what was held
_WORTH_BYTES = GIB // 4  # below, nothing is to be gained
_MUCH_TIME = 0.02  # of the run
_UNEQUAL = 0.1  # above the mean of the ranks


def advice_for(report: dict[str, Any]) -> list[dict[str, str]]:
    """Each with `why` and `setting`; a setting is empty where the program itself has to change."""
    if report["not_served"]:
        return []
    run, device = report["run"], peak_device(report)
    if run["allocator"] == "vms":
        found = _for_ours(run, device)
    elif device.get("counted_by") == "torch" and device["waste_ratio"] >= _MUCH_WASTE and _is_worth(device):
        idle = format_size(device["waste"]["external_bytes"])
        found = [_entry(f"PyTorch held {idle} that no tensor used when it held most", "--allocator vms")]
    else:
        found = []
    found += [_entry(f"out of memory: {oom['sentence']}", "", oom["advice"]) for oom in distinct_ooms(report)[-1:]]
    return found + _for_ranks(report)


def _is_worth(device: dict[str, Any]) -> bool:
    return int(device["waste"]["external_bytes"]) >= _WORTH_BYTES


def _for_ours(run: dict[str, Any], device: dict[str, Any]) -> list[dict[str, str]]:
    found = []
    held = device["peak_reserved_bytes"]
    external = device["waste"]["external_bytes"] if held else 0
    if run["intercept"] == "segments":
        found.append(_entry("PyTorch's cache lies between its tensors and the allocator", "--intercept tensors"))
    if held and external / held >= _MUCH_WASTE and _is_worth(device) and run["goal"] != "memory":
        free = format_percent(external / held)
        found.append(_entry(f"{free} of what was held was free when most was held", "--goal memory"))
    share = device.get("driver_time_s", 0.0) / run["duration_s"] if run["duration_s"] else 0.0
    if share >= _MUCH_TIME and not run["simulated"]:
        found.append(_entry(f"{format_percent(share)} of the time went into driver calls", "--goal throughput"))
    if device.get("retries"):
        times = format_count(device["retries"])
        found.append(
            _entry(f"memory was short {times} times, and calls waited for it", "", "make the batch a little smaller")
        )
    idle = device.get("reserved_bytes", 0) - device.get("live_bytes", 0)
    outside = device.get("peak_used_bytes", 0) - held
    if idle >= GIB and outside >= 4 * GIB and not run["simulated"]:
        found.append(
            _entry(f"{format_size(idle)} was held idle at the end while others use the device", "--release-idle 60")
        )
    return found


def _for_ranks(report: dict[str, Any]) -> list[dict[str, str]]:
    held = [
        (device["peak_reserved_bytes"], process["rank"])
        for process in report["processes"]
        for device in process["devices"]
        if process["rank"] is not None and device["peak_reserved_bytes"]
    ]
    if len(held) < 2:
        return []
    most, rank = max(held)
    above = most / (sum(size for size, _ in held) / len(held)) - 1
    if above < _UNEQUAL:
        return []
    why = f"rank {rank} held {format_percent(above)} more than the mean of the ranks"
    return [_entry(why, "", "give it fewer layers or shorter batches: the fullest rank decides what fits")]


def _entry(why: str, setting: str, otherwise: str = "") -> dict[str, str]:
    return {"why": why, "setting": setting, "do": otherwise or f"gml-run {setting}"}
