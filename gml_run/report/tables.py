# SPDX-License-Identifier: Apache-2.0
"""The tables of a full report, the same for Markdown and HTML."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from gml_run.report.verdict import OOM_KINDS, peak_device
from gml_run.units import format_count, format_percent, format_seconds, format_size

PLACEMENTS = {
    "exact": "reused, exact size",
    "split": "reused, part of more",
    "extend": "extended",
    "stitch": "stitched",
    "grow": "new memory",
    "fail": "failed",
}


@dataclass(frozen=True, slots=True)
class Table:
    """Texts only; the first column is the name of the row."""

    title: str
    heads: tuple[str, ...]
    rows: Sequence[tuple[str, ...]]
    note: str = ""


def report_tables(report: dict[str, Any]) -> list[Table]:
    """All tables that have something to say."""
    tables = [_identity(report)]
    if not report["not_served"]:
        device = peak_device(report)
        tables += [_reconciliation(device), _processes(report)]
        if device["counted_by"] == "heap":
            tables += [_waste(device), _placements(device), _driver(device)]
        tables.append(_sizes(device))
    if report["ooms"]:
        tables.append(_ooms(report))
    return [table for table in tables if table.rows]


def _identity(report: dict[str, Any]) -> Table:
    run = report["run"]
    rows = [
        ("run", run["id"]),
        ("started", run["started"]),
        ("took", format_seconds(run["duration_s"])),
        ("allocator", run["allocator"]),
        ("intercept", run["intercept"]),
        ("goal", run["goal"]),
        ("limit", format_size(run["limit_bytes"]) if run["limit_bytes"] else "none"),
        ("simulated", run["simulate"] or "no"),
    ]
    rows += [(name.replace("_", "-"), version) for name, version in run["versions"].items()]
    return Table("Run", ("what", "value"), rows)


def _reconciliation(device: dict[str, Any]) -> Table:
    """One sum from what the program asked for up to what the device had in use."""
    waste = device["waste"]
    reserved = device["peak_reserved_bytes"]
    outside = device["peak_used_bytes"] - reserved
    rows = [
        ("asked for", format_size(waste["requested_bytes"])),
        ("+ rounding", format_size(waste["internal_bytes"])),
        ("+ free but scattered, or idle", format_size(waste["external_bytes"])),
        ("+ waiting on another stream", format_size(waste["stream_held_bytes"])),
        ("= held by the allocator", format_size(reserved)),
    ]
    if outside > 0:
        rows += [
            ("+ context, libraries, other processes", format_size(outside)),
            ("= in use on the device", format_size(device["peak_used_bytes"])),
        ]
    if device["total_bytes"]:
        rows.append(("of", format_size(device["total_bytes"])))
    return Table(
        "Where the memory was when most was held",
        ("part", "size"),
        rows,
        "nvidia-smi shows what the device has in use, context and libraries included; torch.cuda.mem_get_info "
        "shows what the driver has left, and with it what the allocator could give out at once.",
    )


def _processes(report: dict[str, Any]) -> Table:
    rows = []
    for process in report["processes"]:
        name = f"{process['pid']}" if process["rank"] is None else f"{process['pid']} (rank {process['rank']})"
        for device in process["devices"]:
            rows.append(
                (
                    name,
                    str(device["index"]),
                    format_size(device["peak_reserved_bytes"]),
                    format_size(device["peak_live_bytes"]),
                    format_percent(device["waste_ratio"]),
                    format_count(device["allocs"]),
                    format_count(device["ooms"]),
                )
            )
    heads = ("process", "device", "peak held", "peak in use", "waste", "requests", "out of memory")
    return Table("Processes", heads, rows)


def _waste(device: dict[str, Any]) -> Table:
    reserved = device["peak_reserved_bytes"] or 1
    names = {
        "internal_bytes": "rounding",
        "external_bytes": "free but scattered, or idle",
        "stream_held_bytes": "waiting on another stream",
    }
    rows = [
        (text, format_size(device["waste"][name]), format_percent(device["waste"][name] / reserved))
        for name, text in names.items()
    ]
    mean = device["mean_waste_ratio"]
    note = (
        ""
        if mean is None
        else f"On average over all calls, {format_percent(mean)} of what was held was idle or wasted."
    )
    return Table("Waste by cause, when most was held", ("cause", "size", "of held"), rows, note)


def _placements(device: dict[str, Any]) -> Table:
    placed = device["placements"]
    total = sum(placed.values()) or 1
    rows = [(PLACEMENTS[kind], format_count(count), format_percent(count / total)) for kind, count in placed.items()]
    return Table("How requests were placed", ("placement", "requests", "share"), rows)


def _driver(device: dict[str, Any]) -> Table:
    rows = [(name.replace("_", " "), format_count(count)) for name, count in device["driver_calls"].items()]
    rows.append(("time in all of them", format_seconds(device["driver_time_s"])))
    return Table("Calls to the driver's memory functions", ("call", "count"), rows)


def _sizes(device: dict[str, Any]) -> Table:
    """Class i counts requests of (2^(i-1), 2^i] bytes."""
    rows = [(name, format_count(count)) for name, count in size_rows(device["size_counts"])]
    return Table("Requests by size", ("size", "requests"), rows)


def size_rows(counts: Sequence[int]) -> list[tuple[str, int]]:
    """(name, requests) of the classes that occur; the smallest ones, which all get 512 bytes, as one."""
    small = sum(counts[:10])
    rows = [("up to 512 B", small)] if small else []
    rows += [
        (f"up to {format_size(1 << number)}", count) for number, count in enumerate(counts) if number > 9 and count
    ]
    return rows


def _ooms(report: dict[str, Any]) -> Table:
    rows = [
        (
            OOM_KINDS[oom["kind"]],
            format_size(oom["request_bytes"]),
            format_size(oom["live_bytes"]),
            format_size(oom["reserved_bytes"]),
            format_size(oom["free_bytes"]),
            oom["sentence"],
        )
        for oom in report["ooms"]
    ]
    return Table("Out of memory", ("kind", "asked for", "in use", "held", "free", "what happened"), rows)
