# SPDX-License-Identifier: Apache-2.0
"""The tables of a full report, the same for Markdown and HTML."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from gml_run.analysis.steps import FEWEST
from gml_run.report.lines import line_text
from gml_run.report.verdict import OOM_KINDS, distinct_ooms, peak_device
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
            tables += [_waste(report, device), _placements(device), _driver(report["run"], device)]
        tables += [_sizes(device), _lines(report, device)]
    if report["ooms"]:
        tables += [_ooms(report), _holders(report), _failed_lines(report)]
    tables += [_events(report), _advice(report)]
    return [table for table in tables if table.rows]


_WHY_TOOLS_DIFFER = (
    "nvidia-smi shows all that is in use on the device, so context, libraries and other processes too; "
    "torch.cuda.mem_get_info gives what the driver has left, and under gml-run also the allocator's idle chunks, "
    "which it would give out at once."
)


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
        ("PyTorch's allocator settings", run.get("alloc_conf") or "none"),
        ("git commit", run.get("git_commit") or "none"),
        ("GPU", report["device"]["name"] or "none"),
    ]
    rows += [(name.replace("_", "-"), version) for name, version in run["versions"].items()]
    return Table("Run", ("what", "value"), rows)


def _reconciliation(device: dict[str, Any]) -> Table:
    """One sum from what the program asked for up to what the device had in use."""
    waste = device["waste"]
    reserved = device["peak_reserved_bytes"]
    outside = device["peak_used_bytes"] - reserved
    live = waste["requested_bytes"] + waste["internal_bytes"]
    rows = [
        ("requested", format_size(waste["requested_bytes"])),
        ("+ rounding", format_size(waste["internal_bytes"])),
        ("= live (PyTorch: allocated)", format_size(live)),
        ("+ free but scattered, or idle", format_size(waste["external_bytes"])),
        ("+ waiting on another stream", format_size(waste["stream_held_bytes"])),
        ("= held by the allocator (PyTorch: reserved)", format_size(reserved)),
    ]
    if outside > 0:
        others = device.get("others_bytes")
        if others is not None:
            others = min(others, outside)
            rows.append(("+ context and libraries", format_size(outside - others)))
            rows.append(("+ other processes", format_size(others)))
        else:
            rows.append(
                ("+ context and libraries, and other processes: the driver gives their sum", format_size(outside))
            )
        rows.append(("= in use on the device", format_size(device["peak_used_bytes"])))
    if device["total_bytes"]:
        used = max(device["peak_used_bytes"], reserved)
        rows += [
            ("+ free", format_size(max(0, device["total_bytes"] - used))),
            ("= memory of the device", format_size(device["total_bytes"])),
        ]
    return Table("Where the memory was when most was held", ("part", "size"), rows, _WHY_TOOLS_DIFFER)


def _processes(report: dict[str, Any]) -> Table:
    rows = []
    failures = Counter((oom["pid"], oom["device"]) for oom in distinct_ooms(report))
    order = sorted(report["processes"], key=lambda each: (each["rank"] is None, each["rank"] or 0, each["pid"]))
    for process in order:
        name = f"{process['pid']}" if process["rank"] is None else f"{process['pid']} (rank {process['rank']})"
        for device in process["devices"]:
            rows.append(
                (
                    name,
                    str(device["index"]),
                    format_size(device["peak_reserved_bytes"]),
                    format_size(device["peak_live_bytes"]),
                    format_percent(device["waste_ratio"]),
                    _step_time(device),
                    format_count(device["allocs"]),
                    format_count(failures[process["pid"], device["index"]]),
                )
            )
    heads = ("process", "device", "peak held", "peak in use", "waste", "step p50", "requests", "out of memory")
    return Table("Processes", heads, rows, _imbalance(report))


def _step_time(device: dict[str, Any]) -> str:
    steps = device.get("steps") or {"count": 0}
    certain = steps["count"] >= FEWEST and not steps.get("doubt")
    return format_seconds(steps["p50_s"]) if certain else "-"


def _imbalance(report: dict[str, Any]) -> str:
    """How far the fullest lies above the mean, for several places."""
    held = [
        (device["peak_reserved_bytes"], process)
        for process in report["processes"]
        for device in process["devices"]
        if device["peak_reserved_bytes"]
    ]
    if len(held) < 2:
        return ""
    most, process = max(held, key=lambda place: place[0])
    name = f"process {process['pid']}" if process["rank"] is None else f"rank {process['rank']}"
    mean = sum(size for size, _ in held) / len(held)
    return f"The fullest is {name}, {format_percent(most / mean - 1)} above the mean of {len(held)}."


def _waste(report: dict[str, Any], device: dict[str, Any]) -> Table:
    reserved = device["peak_reserved_bytes"] or 1
    names = {
        "internal_bytes": "rounding",
        "external_bytes": "free but scattered, or idle",
        "stream_held_bytes": "waiting on another stream",
    }
    rows = []
    for name, text in names.items():
        most, mean = _over_time(report["timeline"], _IN_TIMELINE[name])
        size = device["waste"][name]
        rows.append((text, format_size(size), format_percent(size / reserved), most, mean))
    mean = device["mean_waste_ratio"]
    note = (
        ""
        if mean is None
        else f"On average over all calls, {format_percent(mean)} of what was held was idle or wasted."
    )
    heads = ("cause", "when most was held", "of held", "most at a look", "mean of the looks")
    return Table("Waste by cause", heads, rows, note)


_IN_TIMELINE = {"internal_bytes": "rounding", "external_bytes": "scattered", "stream_held_bytes": "stream_held"}


def _over_time(timeline: dict[str, Any], field: str) -> tuple[str, str]:
    """Highest and mean over the looks; "-" where there were none."""
    if field not in timeline["fields"] or not timeline["points"]:
        return "-", "-"
    place = timeline["fields"].index(field)
    values = [point[place] for point in timeline["points"]]
    return format_size(max(values)), format_size(sum(values) // len(values))


def _placements(device: dict[str, Any]) -> Table:
    placed = device["placements"]
    total = sum(placed.values()) or 1
    rows = [(PLACEMENTS[kind], format_count(count), format_percent(count / total)) for kind, count in placed.items()]
    return Table("How requests were placed", ("placement", "requests", "share"), rows)


def _driver(run: dict[str, Any], device: dict[str, Any]) -> Table:
    rows = [(name.replace("_", " "), format_count(count)) for name, count in device["driver_calls"].items()]
    spent = device["driver_time_s"]
    calls = sum(device["driver_calls"].values())
    rows.append(("time in all of them", format_seconds(spent)))
    if calls:
        rows.append(("mean of a call", format_seconds(spent / calls)))
    if device["allocs"]:
        rows.append(("overhead of a request, mean", format_seconds(spent / device["allocs"])))
    rows += latency_rows(device)
    if run["duration_s"]:
        rows.append(("share of the run", format_percent(spent / run["duration_s"])))
    rows.append(("times that memory was short", format_count(device["retries"])))
    note = "The times are public figures for such a device, not this machine's." if run["simulated"] else ""
    return Table("Calls to the driver's memory functions", ("call", "count"), rows, note)


def latency_rows(device: dict[str, Any]) -> list[tuple[str, str]]:
    """(what was timed, its percentiles); the bounds of the buckets that hold them."""
    names = {"alloc": "an allocation", "free": "a free", "driver": "the driver work of one, where there was any"}
    latency = device.get("latency", {})
    return [
        (
            f"{name}: p50, p99, longest",
            ", ".join(f"≤ {format_seconds(latency[kind][figure])}" for figure in ("p50_s", "p99_s", "max_s")),
        )
        for kind, name in names.items()
        if kind in latency
    ]


def _events(report: dict[str, Any]) -> Table:
    """The last ones; report.json has them all."""
    rows = []
    for event in report.get("events", ())[-_MOST_EVENTS:]:
        who = "gml-run" if event["pid"] is None else f"process {event['pid']}"
        who = who if event["rank"] is None else f"rank {event['rank']}"
        rows.append((format_seconds(event["t_s"]), who, event["text"]))
    return Table("What happened", ("after", "who", "what"), rows)


_MOST_EVENTS = 40


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


def _holders(report: dict[str, Any]) -> Table:
    """What held most at the last failure."""
    last = report["ooms"][-1]
    rows = [
        (format_size(entry["bytes"]), format_count(entry["count"]), format_size(entry["bytes"] * entry["count"]))
        for entry in last.get("top_sizes", ())
    ]
    note = f"To have fitted: {last['batch']}." if last.get("batch") else ""
    return Table("Live blocks that held most at the last failure", ("size", "blocks", "together"), rows, note)


def _lines(report: dict[str, Any], device: dict[str, Any]) -> Table:
    """Who asked for what was live at the peak."""
    rows = _line_rows(report, device.get("lines", ()), device.get("lines_bytes", 0))
    note = "A line is the innermost one outside PyTorch's own package." if rows else ""
    return Table("Lines that held most when most was in use", _LINE_HEADS, rows, note)


def _failed_lines(report: dict[str, Any]) -> Table:
    last = report["ooms"][-1]
    rows = _line_rows(report, last.get("lines", ()), last["live_bytes"])
    asked = last.get("asked_by")
    note = f"Asked for by {line_text(asked, report['run'].get('directory'))}." if asked else ""
    return Table("Lines that held most at the last failure", _LINE_HEADS, rows, note)


_LINE_HEADS = ("line", "blocks", "together", "of all")


def _line_rows(report: dict[str, Any], lines: Sequence[dict[str, Any]], total: int) -> list[tuple[str, ...]]:
    where = report["run"].get("directory")
    return [
        (
            line_text(line, where),
            format_count(line["count"]),
            format_size(line["bytes"]),
            format_percent(line["bytes"] / total) if total else "-",
        )
        for line in lines
    ]


def _advice(report: dict[str, Any]) -> Table:
    rows = [(entry["do"], entry["why"]) for entry in report.get("advice", ())]
    return Table("What to try", ("try", "because"), rows)


def rank_lines(report: dict[str, Any]) -> list[str]:
    """The table of processes as plain lines."""
    table = _processes(report)
    cells = [table.heads, *table.rows]
    widths = [max(len(row[column]) for row in cells) for column in range(len(table.heads))]
    lines = []
    for row in cells:
        first, *rest = (
            cell.ljust(width) if number == 0 else cell.rjust(width)
            for number, (cell, width) in enumerate(zip(row, widths, strict=True))
        )
        lines.append("  ".join([first, *rest]).rstrip())
    return [*lines, *([table.note] if table.note else [])]
