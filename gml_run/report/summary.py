# SPDX-License-Identifier: Apache-2.0
"""The short block at the end of a run, made from report.json alone."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from typing import Any

from gml_run._abi import EVENT_COUNT
from gml_run.analysis.fit import smallest_card
from gml_run.analysis.steps import FEWEST
from gml_run.report.lines import line_text
from gml_run.report.simulation import simulation_sentences
from gml_run.report.verdict import OOM_KINDS, distinct_ooms, peak_device
from gml_run.units import format_count, format_percent, format_seconds, format_size, shorten

LABEL = 15
_ALLOCATORS = {
    "vms": "vms: free memory is stitched",
    "native": "PyTorch's native allocator",
    "expandable": "PyTorch's expandable segments",
    "cuda-async": "the driver's cudaMallocAsync",
    "raw": "the driver's cudaMalloc",
    "observe": "the program's own allocator",
}
SIMULATED_NOTE = "computed values mean nothing, memory figures are real"
NOTHING_SEEN: dict[str, Any] = {"unfilled_calls": {}}

_LINES = 4  # of those that held most

Rows = list[tuple[str, str]]


def summary_rows(report: dict[str, Any], directory: str | None) -> Rows:
    """(label, text) pairs; an empty label continues the row above."""
    rows: Rows = []
    run = report["run"]
    if report["device"]["name"]:
        total = format_size(report["device"]["total_bytes"])
        rows.append(("device", f"{report['device']['name']}, {total}"))
    if run["simulated"]:
        rows.append(("simulated", SIMULATED_NOTE))
        rows += [("", sentence) for sentence in simulation_sentences(report.get("simulation") or NOTHING_SEEN)]
    if report["not_served"]:
        rows.append(("not measured", report["not_served"]))
    else:
        rows += _memory_rows(report)
    rows += _oom_rows(report)
    if _may_be_ours(report):
        rows.append(("it failed", "if that is new, see whether it does so under gml-run --observe as well"))
    rows += [
        ("advice" if number == 0 else "", f"{entry['do']}: {entry['why']}")
        for number, entry in enumerate(report.get("advice", ()))
        if entry["setting"] and run["allocator"] == "vms"  # for others, the last row says it
    ]
    rows += [("note", text) for text in report["problems"]]
    if directory is not None:
        rows.append(("files", directory))
    rows.append(("next", _next_command(report, directory)))
    return rows


def headline(report: dict[str, Any], width: int = 80) -> str:
    """The line above the rows: what ran, for how long, and how it ended."""
    run = report["run"]
    ended = f"killed by {run['signal']}" if run["signal"] else f"exit {run['exit_code']}"
    if run["exit_code"] is None:
        ended = "end not known"
    rest = f" · {format_seconds(run['duration_s'])} · {ended}"
    return "gml-run · " + shorten(command_text(run["command"]), max(16, width - len("gml-run · ") - len(rest))) + rest


def command_text(words: list[str]) -> str:
    """The command as one would type it, its program without the folder."""
    return shlex.join([words[0].rsplit("/", 1)[-1], *words[1:]])


def _memory_rows(report: dict[str, Any]) -> Rows:
    busy = [
        (process, device)
        for process in report["processes"]
        for device in process["devices"]
        if device["peak_reserved_bytes"]
    ]
    device = peak_device(report)
    rows = _held_rows(report, device)
    if len(busy) > 1:
        rows.append(("", f"the fullest of {len(busy)}, which the other rows are about; all of them:"))
        busy.sort(key=lambda place: (place[0]["rank"] is None, place[0]["rank"] or 0, place[0]["pid"]))
        rows += [("", _process_row(process, entry)) for process, entry in busy[:16]]
        if len(busy) > 16:
            rows.append(("", f"and {len(busy) - 16} more, see report.json"))
    if device["counted_by"] == "heap":
        rows += _heap_rows(report, device)
    rows += _flush_rows(report, device)
    rows += step_rows(report["steps"])
    lines = _line_texts(report, device.get("lines", ())) if not report["ooms"] else []
    rows += [("lines at peak" if number == 0 else "", text) for number, text in enumerate(lines)]
    rows += _comparison_rows(report, device, len(busy))
    outside = device["peak_used_bytes"] - device["peak_reserved_bytes"]
    if device["peak_used_bytes"] and len(busy) == 1 and outside > 0:
        rows.append(("outside", _outside(outside, device.get("others_bytes"))))
    return rows


def _flush_rows(report: dict[str, Any], device: dict[str, Any]) -> Rows:
    """How often PyTorch's own allocator had to stop: cudaMalloc failed, and it emptied its cache and asked again."""
    pid = next(process["pid"] for process in report["processes"] if device in process["devices"])
    events = [event for event in report.get("events", ()) if event["pid"] == pid]
    failed = sum(
        event["count"] for event in events if event["kind"] == "flush" and event["device"] == device["index"]
    )
    count = failed - device["ooms"]  # the one before it gives up is no retry
    if count <= 0:
        return []
    most = "at least " if len(events) >= EVENT_COUNT else ""
    times = "once" if count == 1 else f"{most}{format_count(count)} times"
    return [("pressure", f"PyTorch emptied its cache and asked again {times}, each waits for the device")]


def step_rows(steps: dict[str, Any]) -> Rows:
    """The row about steps; none when too few were seen."""
    if steps["count"] < FEWEST or not steps["p50_s"]:
        return []
    count = format_count(steps["count"])
    times = f"{format_seconds(steps['p50_s'])} p50, {format_seconds(steps['p95_s'])} p95"
    if steps.get("doubt"):
        seen = f"{count} {steps['unit']}, {times}"
        return [("steps", f"not known; {seen}: {steps['doubt']} (--step REGEX counts lines)")]
    return [("steps", f"{count}, {times}, by {steps['source']}")]


def _outside(outside: int, others: int | None) -> str:
    if others is None:
        return f"{format_size(outside)} of the device: context, libraries, other processes"
    others = min(others, outside)
    text = f"{format_size(outside - others)} of the device: context and libraries"
    return f"{text}; {format_size(others)}: other processes" if others else text


def _held_rows(report: dict[str, Any], device: dict[str, Any]) -> Rows:
    reserved, live = device["peak_reserved_bytes"], device["peak_live_bytes"]
    total = device["total_bytes"]
    of_total = f" of {format_size(total)}" if total else ""
    waste = device["waste"]
    rows: Rows = [("allocator", _ALLOCATORS.get(report["run"]["allocator"], report["run"]["allocator"]))]
    if device["counted_by"] == "driver":
        rows.append(("held at peak", f"{format_size(reserved)}{of_total} in calls to the driver"))
        return rows
    used = format_percent(1 - device["waste_ratio"])
    # The peaks of both may lie apart; the causes are of the moment when most was held first.
    apart = abs(reserved - live - _unused(waste)) > reserved // 100
    most, then = ("at most ", ", when that was held first") if apart else ("", "")
    rows.append(
        ("held at peak", f"{format_size(reserved)}{of_total}, {most}{used} of it in use ({format_size(live)})")
    )
    if device["counted_by"] == "torch":
        idle = format_size(waste["external_bytes"])
        rows.append(("cached at peak", f"{idle} that PyTorch held and no tensor used{then}: reusable, or scattered"))
        return rows
    causes = [
        ("rounding", waste["internal_bytes"]),
        ("free but scattered", waste["external_bytes"]),
        ("waiting on another stream", waste["stream_held_bytes"]),
    ]
    rows.append(("waste at peak", " · ".join(f"{name} {format_size(size)}" for name, size in causes) + then))
    return rows


def _unused(waste: dict[str, int]) -> int:
    return waste["internal_bytes"] + waste["external_bytes"] + waste["stream_held_bytes"]


def _heap_rows(report: dict[str, Any], device: dict[str, Any]) -> Rows:
    placed = device["placements"]
    total = sum(placed.values())
    kinds = [
        ("reused", placed["exact"] + placed["split"]),
        ("extended", placed["extend"]),
        ("stitched", placed["stitch"]),
        ("new memory", placed["grow"]),
        ("failed", placed["fail"]),
    ]
    shown = ", ".join(f"{format_count(count)} {name}" for name, count in kinds if count)
    rows: Rows = [("placed", f"{format_count(total)} requests: {shown}")] if total else []
    rows.append(("driver time", _driver_time(report["run"], device)))
    if device["retries"]:
        rows.append(("pressure", f"memory was short {format_count(device['retries'])} times"))
    return rows


def _comparison_rows(report: dict[str, Any], device: dict[str, Any], places: int) -> Rows:
    rows: Rows = []
    for entry in report["baseline"]:
        held = format_size(entry["peak_reserved_bytes"])
        rows.append(("in comparison", f"{held} under {entry['allocator']} ({entry['source']}: {entry['run']})"))
    if places == 1 and report["run"]["exit_code"] == 0:
        card = smallest_card(device["peak_reserved_bytes"])
        if card is not None:
            rows.append(("smallest card", f"{card[1].name}, {format_size(card[1].total_bytes)}, of those known"))
    return rows


def _driver_time(run: dict[str, Any], device: dict[str, Any]) -> str:
    calls = format_count(sum(device["driver_calls"].values()))
    text = f"{format_seconds(device['driver_time_s'])} in {calls} memory calls"
    if device["driver_time_s"] and device["allocs"]:
        text += f", {format_seconds(device['driver_time_s'] / device['allocs'])} a request"
    if run["simulated"]:
        return f"{text}, by public figures for it"
    share = device["driver_time_s"] / run["duration_s"] if run["duration_s"] else 0.0
    return f"{text}, {format_percent(share)} of the run"


def _process_row(process: dict[str, Any], device: dict[str, Any]) -> str:
    name = f"rank {process['rank']}" if process["rank"] is not None else f"process {process['pid']}"
    used = format_percent(1 - device["waste_ratio"])
    return f"{name}, device {device['index']}: {format_size(device['peak_reserved_bytes'])} held, {used} in use"


def _may_be_ours(report: dict[str, Any]) -> bool:
    """The program failed, not for want of memory and not by a signal from outside, while we served it."""
    run = report["run"]
    outside = ("SIGINT", "SIGTERM", "SIGKILL", "SIGHUP", "SIGPIPE")
    ended_badly = run["exit_code"] not in (0, None) and run["signal"] not in outside
    return ended_badly and not report["ooms"] and not report["not_served"] and run["allocator"] == "vms"


def _oom_rows(report: dict[str, Any]) -> Rows:
    ooms = distinct_ooms(report)
    if not ooms:
        return []
    last = ooms[-1]
    times = f"{len(ooms)} times, the last: " if len(ooms) > 1 else ""
    return [
        ("out of memory", f"{times}{OOM_KINDS[last['kind']]}"),
        ("", last["sentence"]),
        *[("", text) for text in (_moment(last), _asked(report, last), _holders(last)) if text],
        *[("", text) for text in (*_line_texts(report, last.get("lines", ())), last.get("batch", "")) if text],
        ("", f"try: {last['advice']}"),
    ]


def _moment(oom: dict[str, Any]) -> str:
    """When it was: after how many requests and steps, on which stream."""
    parts = []
    if oom.get("step_count"):
        parts.append(f"after {format_count(oom['step_count'])} {oom.get('step_unit', 'steps')}")
    if oom.get("allocs"):
        parts.append(f"{format_count(oom['allocs'])} requests")
    if oom.get("retries"):
        parts.append(f"memory had been short {format_count(oom['retries'])} times")
    return ", ".join(parts)


def _holders(oom: dict[str, Any]) -> str:
    """The sizes that held most."""
    sizes = [f"{format_count(entry['count'])} × {format_size(entry['bytes'])}" for entry in oom.get("top_sizes", ())]
    return f"held most then: {' · '.join(sizes)}" if sizes else ""


def _asked(report: dict[str, Any], oom: dict[str, Any]) -> str:
    asked = oom.get("asked_by")
    return f"asked for by {line_text(asked, report['run'].get('directory'))}" if asked else ""


def _line_texts(report: dict[str, Any], lines: Sequence[dict[str, Any]]) -> list[str]:
    """The lines that held most, one a row."""
    where = report["run"].get("directory")
    return [
        f"{format_size(line['bytes'])} in {format_count(line['count'])} block{'s' if line['count'] > 1 else ''}: "
        f"{line_text(line, where)}"
        for line in lines[:_LINES]
    ]


def _next_command(report: dict[str, Any], directory: str | None) -> str:
    run = report["run"]
    if not report["not_served"] and run["allocator"] != "vms":
        simulate = f" --simulate {run['simulate']}" if run["simulated"] else ""
        command = shlex.join(run["command"])
        if len(command) > 60 or "\n" in command:
            command = "COMMAND"
        return f"gml-run{simulate} {command}  (the same with stitching)"
    if directory is None:
        return "gml-run --help"
    return f"gml-run report {shlex.quote(directory)} --html report.html"


def format_summary(report: dict[str, Any], directory: str | None, width: int = 80) -> list[str]:
    """The block as plain lines, wrapped at `width`."""
    import textwrap

    lines = [shorten(headline(report, width), width)]
    for label, text in summary_rows(report, directory):
        head = f"  {label:<{LABEL}}"
        room = max(20, width - len(head))
        # Paths and commands stay in one piece: people copy them.
        wrapped = [text] if label in ("files", "next") else textwrap.wrap(text, room, break_on_hyphens=False)
        lines.append(head + wrapped[0])
        lines += [" " * len(head) + rest for rest in wrapped[1:]]
    return [line.rstrip() for line in lines]
