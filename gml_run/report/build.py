# SPDX-License-Identifier: Apache-2.0
"""Builds report.json from how the run began, what its processes shared, and how it ended."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from gml_run import __version__
from gml_run._abi import SIZE_CLASSES, OomRecord
from gml_run.analysis.events import event_rows
from gml_run.analysis.history import Point
from gml_run.analysis.latency import latency_of
from gml_run.analysis.oom import SOURCES, classify, smaller_batch, top_sizes
from gml_run.analysis.reason import why_nothing
from gml_run.analysis.steps import Steps, found_steps, steps_of
from gml_run.analysis.usage import Usage, usage_of
from gml_run.config import RunOptions
from gml_run.launch.process import Ending
from gml_run.report.advice import advice_for
from gml_run.report.identity import alloc_conf, driver_version, git_commit, working_directory
from gml_run.report.lines import device_lines, oom_lines, sites_of, unread_lines
from gml_run.report.mask import mask_command
from gml_run.report.runs import process_start
from gml_run.report.verdict import verdict_of
from gml_run.telemetry.reader import DeviceSnapshot, ProcessSnapshot

if TYPE_CHECKING:
    from gml_run.telemetry.sites import Sites

SCHEMA_VERSION = 1


@dataclass(frozen=True, slots=True)
class RunRecord:
    """What is known of a run when it begins."""

    id: str
    program: str  # the file that is executed
    command: list[str]
    options: RunOptions
    not_served: str  # why the libraries were not preloaded; empty when they were
    started: float
    alloc_conf: str | None = None  # the user's settings of PyTorch's own allocator
    git_commit: str | None = None  # of the working directory
    directory: str | None = None  # the working directory
    notices: tuple[str, ...] = ()  # what gml-run had to say when it began

    @classmethod
    def begin(
        cls,
        run_id: str,
        program: str,
        command: Sequence[str],
        options: RunOptions,
        not_served: str,
        environ: Mapping[str, str] = os.environ,
        notices: Sequence[str] = (),
    ) -> RunRecord:
        """The record of a run that starts now."""
        here = working_directory()
        return cls(
            run_id,
            program,
            mask_command(command),
            options,
            not_served,
            time.time(),
            alloc_conf(environ),
            git_commit(here) if here else None,
            here,
            tuple(notices),
        )

    def opening(self) -> dict[str, Any]:
        """The content of run.json."""
        return {
            "schema_version": SCHEMA_VERSION,
            "launcher_pid": os.getpid(),
            "launcher_start": process_start(os.getpid()),
            "program": self.program,
            "not_served": self.not_served,
            "started_s": self.started,
            "notices": list(self.notices),
            "run": self.identity(),
        }

    def identity(self) -> dict[str, Any]:
        """The part of `run` that is known from the start."""
        options = self.options
        simulation = options.simulation
        return {
            "id": self.id,
            "command": self.command,
            "directory": self.directory,
            "started": time.strftime("%Y-%m-%dT%H:%M:%S%z", time.localtime(self.started)),
            "allocator": options.allocator.value,
            "intercept": options.intercept.value,
            "goal": options.goal.value,
            "limit_bytes": options.limit_bytes,
            "max_driver_time": options.max_driver_time,
            "driver_costs": options.driver_costs,
            "simulated": simulation is not None,
            "simulate": simulation.text if simulation else None,
            "alloc_conf": self.alloc_conf,
            "git_commit": self.git_commit,
            "versions": {"gml_run": __version__},
        }


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
        _process(process, found, others.get(process.pid)) for process, found in zip(processes, lines, strict=True)
    ]
    report = {
        "schema_version": SCHEMA_VERSION,
        "verdict": "",
        "run": run,
        "device": _device_overview(processes),
        "baseline": [],
        "steps": _steps(steps or found_steps(processes)),
        "processes": entries,
        "ooms": _ooms(processes, lines, record.options.limit_bytes, others),
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


def _steps(steps: Steps) -> dict[str, Any]:
    return {
        "count": steps.count,
        "p50_s": round(steps.p50_s, 6),
        "p95_s": round(steps.p95_s, 6),
        "source": steps.source,
    }


def _process(process: ProcessSnapshot, sites: Sites | None, others: int | None) -> dict[str, Any]:
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
        "steps": _steps(steps_of(device)),
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


def _ooms(
    processes: Sequence[ProcessSnapshot],
    lines: Sequence[Sites | None],
    limit_bytes: int | None,
    others: Mapping[int, int | None],
) -> list[dict[str, Any]]:
    entries = []
    for process, sites in zip(processes, lines, strict=True):
        first = process.oom_count - len(process.ooms)
        for number, oom in enumerate(process.ooms, first):
            alone = others.get(process.pid) == 0 or (process.simulated and not others.get(process.pid))
            entries.append({**_oom(oom, process, limit_bytes, alone), **oom_lines(sites, number)})
    return sorted(entries, key=lambda entry: int(entry["time_ns"]))


def _oom(oom: OomRecord, process: ProcessSnapshot, limit_bytes: int | None, alone: bool) -> dict[str, Any]:
    verdict = classify(oom, limit_bytes, alone)
    entry: dict[str, Any] = {name: value for name, value in oom._asdict().items() if not name.startswith("top")}
    entry.update(
        pid=process.pid,
        rank=process.rank,
        stream=None if oom.stream == (1 << 64) - 1 else oom.stream,
        source=SOURCES[min(oom.source, len(SOURCES) - 1)],
        kind=verdict.kind,
        sentence=verdict.sentence,
        advice=verdict.advice,
        top_sizes=[{"bytes": size, "count": count} for size, count in top_sizes(oom)],
        batch=smaller_batch(oom, verdict.kind, limit_bytes),
    )
    return entry


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


def _trimmed(counts: Sequence[int]) -> list[int]:
    """Without the empty classes at the end."""
    last = max((number for number in range(SIZE_CLASSES) if counts[number]), default=-1)
    return list(counts[: last + 1])
