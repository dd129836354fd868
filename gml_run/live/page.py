# SPDX-License-Identifier: Apache-2.0
"""The overview of a run on a whole screen: pool, processes, arena map, course, driver, sizes."""

from __future__ import annotations

from collections.abc import Sequence

from rich.text import Text

from gml_run.analysis.frame import Frame
from gml_run.analysis.history import Point
from gml_run.analysis.usage import usage_of
from gml_run.live.paint import bar_line, legend_line, sparkline, waste_line, work_line
from gml_run.telemetry.reader import ProcessSnapshot
from gml_run.units import format_count, format_percent, format_seconds, format_size

_BLOCKS = " ▁▂▃▄▅▆▇█"
_STITCHED = 128  # added to a cell that is mostly live in a stitched arena
MAP_LEGEND = "█ in use  ▓ in use, stitched  ▒ partly used  · idle  : idle, shared"


def overview_lines(
    frame: Frame, processes: Sequence[ProcessSnapshot], points: Sequence[Point], elapsed: float, size: tuple[int, int]
) -> list[Text]:
    """Lines that fill a screen of `size` rows and columns, most important first."""
    rows, columns = size
    lines = [
        bar_line(frame, columns),
        legend_line(frame, columns),
        waste_line(frame, columns),
        work_line(frame, elapsed, columns),
    ]
    lines += _section("processes", process_lines(processes, columns), rows - len(lines), 4)
    if frame.heap:
        lines += _section(
            "arena map", map_lines(frame.device.cells, columns), rows - len(lines) - 2, 8 if rows > 16 else 4
        )
    room = rows - len(lines)
    course = course_lines(points, frame, columns) if room > 5 else _spark_lines(points, frame, columns)
    lines += _section("memory in use over time", course, room, 6)
    if frame.heap:
        lines += _section("driver", driver_lines(frame, elapsed, columns), rows - len(lines), 3)
    lines += _section("requests by size", size_lines(frame, columns), rows - len(lines), 6)
    return lines[:rows]


def _section(title: str, lines: Sequence[Text], room: int, most: int) -> list[Text]:
    """The lines below a heading, as many as there is room for; nothing when they would be too few."""
    shown = min(len(lines), most, room - 1)
    if shown < 1:
        return []
    return [Text(f" {title}", style="bold"), *lines[:shown]]


def process_lines(processes: Sequence[ProcessSnapshot], columns: int) -> list[Text]:
    """One line a process and device that holds memory, the fullest first."""
    places = [(process, device, usage_of(process, device)) for process in processes for device in process.devices]
    places = [place for place in places if place[2].peak_reserved]
    places.sort(key=lambda place: -place[2].reserved)
    lines = []
    for process, device, usage in places:
        name = f"rank {process.rank}" if process.rank is not None else f"pid {process.pid}"
        lines.append(
            Text(
                f" {name:<12} dev {device.index:<2} held {format_size(usage.reserved):>8}  in use "
                f"{format_size(usage.live):>8}  peak {format_size(usage.peak_reserved):>8}  "
                f"waste {format_percent(usage.waste_ratio)}"
            )
        )
    return lines


def map_lines(cells: bytes, columns: int) -> list[Text]:
    """The physical memory as a map, one character a cell; cells without memory at the end are left out."""
    used = cells.rstrip(b"\0")
    if not used:
        return []
    width = max(1, columns - 2)
    lines = [Text(f" {MAP_LEGEND}", style="dim")]
    for start in range(0, len(used), width):
        text = Text(" ")
        for cell in used[start : start + width]:
            mark, style = cell_mark(cell)
            text.append(mark, style)
        lines.append(text)
    return lines


def cell_mark(cell: int) -> tuple[str, str]:
    """Character and style of one cell, see the map in telemetry/layout.h."""
    state = cell & (_STITCHED - 1)
    if state == 0:
        return " ", ""
    if state == 1:
        return "·", "yellow"
    if state == 2:
        return ":", "magenta"
    if state < 9:
        return "▒", "cyan" if cell & _STITCHED else "green"
    return ("▓", "cyan") if cell & _STITCHED else ("█", "green")


def course_lines(points: Sequence[Point], frame: Frame, columns: int, height: int = 5) -> list[Text]:
    """Memory in use as columns of blocks, the newest at the right."""
    width = max(1, columns - 12)
    values = [point.live for point in points[-width:]]
    if not values:
        return []
    top = max(1, frame.usage.peak_reserved)
    lines = []
    for row in range(height):
        base = height - 1 - row
        label = format_size(top) if row == 0 else "0" if row == height - 1 else ""
        text = Text(f"{label:>9} ")
        for value in values:
            level = value / top * height - base
            text.append(_BLOCKS[max(0, min(8, round(level * 8)))], "green")
        lines.append(text)
    return lines


def _spark_lines(points: Sequence[Point], frame: Frame, columns: int) -> list[Text]:
    """The same on one line, where there is no room for more."""
    values = [point.live for point in points[-max(1, columns - 2) :]]
    return [Text(f" {sparkline(values, frame.usage.peak_reserved)}", "green")] if values else []


def driver_lines(frame: Frame, elapsed: float, columns: int) -> list[Text]:
    """What the allocator asked of the driver."""
    stats = frame.device.stats
    calls = [
        ("create", stats.driver_create),
        ("map", stats.driver_map),
        ("set access", stats.driver_set_access),
        ("unmap", stats.driver_unmap),
        ("release", stats.driver_release),
    ]
    text = " " + " · ".join(f"{name} {format_count(count)}" for name, count in calls if count)
    rungs = [
        ("retried", stats.ladder_events),
        ("drained", stats.ladder_drain),
        ("other stream", stats.ladder_cross_stream),
        ("released", stats.ladder_release),
        ("forwarded", stats.ladder_forward),
        ("made room", stats.ladder_other),
    ]
    lines = [Text(f"{text} · {format_seconds(stats.driver_ns / 1e9)} in all")]
    pressed = " · ".join(f"{name} {format_count(count)}" for name, count in rungs if count)
    if pressed:
        lines.append(Text(f" under pressure: {pressed}"))
    lines.append(
        Text(
            f" {format_count(stats.chunks)} chunks · {format_count(stats.mappings)} mappings · "
            f"{format_count(stats.arenas)} arenas, {format_count(stats.stitched_arenas)} stitched"
        )
    )
    return lines


def size_lines(frame: Frame, columns: int) -> list[Text]:
    """The most frequent request sizes."""
    counts = [(count, number) for number, count in enumerate(frame.device.size_counts) if count]
    if not counts:
        return []
    most = max(counts)[0]
    width = max(1, columns - 34)
    return [
        Text(f" up to {format_size(1 << number):>9} ")
        .append("█" * max(1, round(count / most * width)), "green")
        .append(f" {format_count(count)}")
        for count, number in sorted(sorted(counts, reverse=True)[:6], key=lambda entry: entry[1])
    ]
