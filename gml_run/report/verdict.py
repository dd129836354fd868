# SPDX-License-Identifier: Apache-2.0
"""The one sentence at the top of a report."""

from __future__ import annotations

from typing import Any

from gml_run.analysis.oom import SAME_NS
from gml_run.units import format_percent, format_size

OOM_KINDS = {
    "impossible": "larger than the device",
    "limit": "over --limit",
    "refused": "refused although enough was free",
    "stream": "waiting on another stream",
    "fragmentation": "fragmentation",
    "others": "held by someone else",
    "full": "genuinely full",
}

_NOTHING = {"peak_reserved_bytes": 0, "waste_ratio": 0.0}  # of a report whose processes have no device


def verdict_of(report: dict[str, Any]) -> str:
    """What happened to the memory, in one sentence."""
    if report["not_served"]:
        return f"nothing was measured: {report['not_served']}"
    peak = peak_device(report)
    held = format_size(peak["peak_reserved_bytes"])
    used = format_percent(1 - peak["waste_ratio"])
    text = f"at most {held} held, {used} of it in use at the peaks"
    failures = distinct_ooms(report)
    if not failures:
        return text
    if report["run"]["exit_code"] != 0:
        return f"out of memory ({OOM_KINDS[failures[-1]['kind']]}): {failures[-1]['sentence']}; {text}"
    return f"{text}; {len(failures)} out-of-memory failure{'s' if len(failures) > 1 else ''} met and survived"


def distinct_ooms(report: dict[str, Any]) -> list[dict[str, Any]]:
    """The failures as a user counts them: PyTorch asks a second time before it gives up."""
    kept: list[dict[str, Any]] = []
    for oom in report["ooms"]:
        again = kept and all(oom[key] == kept[-1][key] for key in ("pid", "device", "request_bytes", "kind"))
        if again and oom["time_ns"] - kept[-1]["time_ns"] < SAME_NS:
            kept[-1] = oom
        else:
            kept.append(oom)
    return kept


def peak_device(report: dict[str, Any]) -> dict[str, Any]:
    """The entry of the process and device that held most."""
    devices: list[dict[str, Any]] = [device for process in report["processes"] for device in process["devices"]]
    return max(devices, key=lambda device: device["peak_reserved_bytes"], default=_NOTHING)
