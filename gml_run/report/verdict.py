# SPDX-License-Identifier: Apache-2.0
"""The one sentence at the top of a report."""

from __future__ import annotations

from typing import Any

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


def verdict_of(report: dict[str, Any]) -> str:
    """What happened to the memory, in one sentence."""
    if report["not_served"]:
        return f"nothing was measured: {report['not_served']}"
    failures = sum(device["ooms"] for process in report["processes"] for device in process["devices"])
    failures = max(failures, len(report["ooms"]))
    peak = peak_device(report)
    held = format_size(peak["peak_reserved_bytes"])
    used = format_percent(1 - peak["waste_ratio"])
    text = f"at most {held} held, {used} of it in use at the peaks"
    if report["ooms"] and report["run"]["exit_code"] != 0:
        last = report["ooms"][-1]
        return f"out of memory ({OOM_KINDS[last['kind']]}): {last['sentence']}; {text}"
    if failures:
        return f"{text}; {failures} out-of-memory failure{'s' if failures > 1 else ''} met and survived"
    return text


def peak_device(report: dict[str, Any]) -> dict[str, Any]:
    """The entry of the process and device that held most."""
    devices: list[dict[str, Any]] = [device for process in report["processes"] for device in process["devices"]]
    return max(devices, key=lambda device: device["peak_reserved_bytes"])
