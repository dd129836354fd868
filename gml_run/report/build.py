# SPDX-License-Identifier: Apache-2.0
"""Builds report.json from how the run began, what its processes shared, and how it ended."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from gml_run.analysis.events import event_rows
from gml_run.analysis.history import Point
from gml_run.analysis.reason import why_nothing
from gml_run.analysis.steps import Steps, found_steps
from gml_run.launch.process import Ending
from gml_run.report.advice import advice_for
from gml_run.report.failures import oom_entries
from gml_run.report.identity import driver_version
from gml_run.report.lines import sites_of, unread_lines
from gml_run.report.places import process_entry, steps_entry
from gml_run.report.record import SCHEMA_VERSION, RunRecord
from gml_run.report.verdict import verdict_of
from gml_run.telemetry.reader import ProcessSnapshot

if TYPE_CHECKING:
    from gml_run.telemetry.sites import Sites


def build_report(
    record: RunRecord,
    processes: Sequence[ProcessSnapshot],
    problems: Sequence[str],
    versions: dict[str, str],
    ending: Ending,
    duration_s: float,
    history: Sequence[Point] = (),
    steps: Steps | None = None,
    sites: Mapping[int, Sequence[Sites]] | None = None,
    others: Mapping[int, int | None] | None = None,
) -> dict[str, Any]:
    """The whole report. Never fails for want of telemetry: it then says why there is none.

    `others`: process id -> bytes that foreign processes held when the device was fullest; None: not known.
    """
    others = others or {}
    run = record.identity()
    run["versions"].update(versions)
    driver = None if run["simulated"] else driver_version()
    if driver is not None:
        run["versions"]["driver"] = driver
    run.update(duration_s=round(duration_s, 3), exit_code=ending.shell_code, signal=ending.signal_name)
    lines = sites_of(processes, sites or {})
    entries = [
        process_entry(process, found, others.get(process.pid))
        for process, found in zip(processes, lines, strict=True)
    ]
    report = {
        "schema_version": SCHEMA_VERSION,
        "verdict": "",
        "run": run,
        "device": _device_overview(processes),
        "baseline": [],
        "steps": steps_entry(steps or found_steps(processes)),
        "processes": entries,
        "ooms": oom_entries(processes, lines, record.options.limit_bytes, others),
        "events": _events(processes, record),
        "problems": [*problems, *_own_problems(processes), *unread_lines(entries)],
        "not_served": "",
        "timeline": {"fields": list(Point._fields), "points": [list(point) for point in history]},
    }
    devices = [device for entry in entries for device in entry["devices"]]
    if not any(device["peak_reserved_bytes"] for device in devices) and not (devices and report["ooms"]):
        report["not_served"] = record.not_served or why_nothing(record.program, processes)
    report["verdict"] = verdict_of(report)
    report["advice"] = advice_for(report)
    return report


def _events(processes: Sequence[ProcessSnapshot], record: RunRecord) -> list[dict[str, Any]]:
    return [
        {
            "t_s": round(max(0.0, row.time_ns / 1e9 - record.started), 3),
            "pid": row.pid,
            "rank": row.rank,
            "kind": row.kind.lower(),
            "device": row.device,
            "count": row.count,
            "bytes": row.bytes,
            "text": row.text,
        }
        for row in event_rows(processes, record.notices, int(record.started * 1e9))
    ]


def _device_overview(processes: Sequence[ProcessSnapshot]) -> dict[str, Any]:
    """The device that was filled most, over all processes."""
    devices = [device for process in processes for device in process.devices]
    if not devices:
        return {"name": "", "total_bytes": 0, "peak_used_bytes": 0}
    fullest = max(devices, key=lambda device: device.figures.peak_used_bytes)
    return {
        "name": fullest.name,
        "total_bytes": fullest.figures.total_bytes,
        "peak_used_bytes": fullest.figures.peak_used_bytes,
    }


def _own_problems(processes: Sequence[ProcessSnapshot]) -> list[str]:
    """What an observer should know about our own part."""
    found = []
    for process in processes:
        if process.counters.degraded:
            found.append(f"process {process.pid}: an internal fault was met; later requests went to the driver")
        if process.message:
            found.append(f"process {process.pid}: {process.message}")
        if any(device.torn for device in process.devices):
            found.append(f"process {process.pid}: it ended inside an update, the last figures may not fit together")
    return found
