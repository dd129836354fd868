# SPDX-License-Identifier: Apache-2.0
"""The views that the keys 2 to 6 choose: one question each, on a whole screen."""

from __future__ import annotations

from collections.abc import Sequence

from rich.text import Text

from gml_run.analysis.events import Row, row_text
from gml_run.analysis.frame import Frame
from gml_run.analysis.history import Point
from gml_run.analysis.latency import latency_of
from gml_run.analysis.ranks import imbalance_text, rank_rows
from gml_run.live.page import course_lines, driver_lines, map_lines, size_lines
from gml_run.live.paint import bar_line, legend_line, sparkline, waste_line, work_line
from gml_run.telemetry.reader import ProcessSnapshot
from gml_run.units import format_count, format_percent, format_seconds, format_size

_STITCHED = 128  # added to a map cell that is mostly live in a stitched arena
_HALF = "▀"
_HIGH = 18  # rows from which on the stitching view has room for a table of latencies

Size = tuple[int, int]


def timeline_lines(frame: Frame, points: Sequence[Point], elapsed: float, size: Size) -> list[Text]:
    """Memory in use over time, as high as the screen allows, and waste below it."""
    rows, columns = size
    lines = [bar_line(frame, columns), legend_line(frame, columns), work_line(frame, elapsed, columns)]
    lines.append(_title("memory in use over time, the most between two looks"))
    lines += course_lines(points, frame, columns, max(3, rows - len(lines) - 3))
    if len(points) > 1:
        shown = points[-max(1, columns - 12) :]
        left, right = format_seconds(shown[0].t_s), format_seconds(shown[-1].t_s)
        gap = max(1, len(shown) - len(left) - len(right))
        lines.append(Text(f"{'':>10}{left}{' ' * gap}{right}", style="dim"))
    return lines[:rows]


def fragmentation_lines(frame: Frame, points: Sequence[Point], size: Size) -> list[Text]:
    """What is held and not in use, by cause, and the largest request that would be served."""
    rows, columns = size
    lines = [bar_line(frame, columns), legend_line(frame, columns)]
    if not frame.heap:
        lines += [waste_line(frame, columns), Text()]
        lines.append(Text(f" largest that the driver could give now {format_size(frame.free)}"))
        lines.append(Text(" what lies in pieces is known under --allocator vms", style="dim"))
        return lines[:rows]
    held = max(1, frame.usage.reserved)
    lines.append(_title("held and not in use, by cause"))
    causes = [
        ("idle, whole chunks", frame.idle, "yellow"),
        ("free but scattered", frame.scattered, "magenta"),
        ("waiting on a stream", frame.held_by_streams, "cyan"),
        ("rounding", frame.rounding, "blue"),
    ]
    width = max(4, columns - 48)
    for name, count, style in causes:
        text = Text(f" {name:<20} {format_size(count):>9} {format_percent(count / held):>7} of held ")
        lines.append(text.append("█" * round(min(1.0, count / held) * width), style))
    stats = frame.device.stats
    lines.append(_title("largest request that would be served now"))
    lines.append(Text(f" {'without stitching':<26} {format_size(stats.largest_gap_bytes):>9}"))
    lines.append(Text(f" {'with stitching':<26} {format_size(stats.largest_servable_bytes):>9}"))
    lines.append(Text(f" {'with new memory as well':<26} {format_size(frame.largest):>9}"))
    lines.append(_title("waste over time"))
    values = [point.rounding + point.scattered + point.stream_held for point in points[-max(1, columns - 24) :]]
    top = max(values, default=0)
    lines.append(Text(" ").append(sparkline(values, top), "magenta").append(f" at most {format_size(top)}"))
    if values:
        mean = sum(values) // len(values)
        lines.append(Text(f" mean {format_size(mean)}, {format_percent(mean / held)} of what is held now"))
    return lines[:rows]


def stitching_lines(frame: Frame, elapsed: float, budget: float | None, size: Size) -> list[Text]:
    """How requests were placed, and what that cost."""
    rows, columns = size
    lines = [bar_line(frame, columns), legend_line(frame, columns)]
    if not frame.heap:
        return [*lines, Text(), Text(" this allocator stitches nothing: --allocator vms does", style="dim")][:rows]
    stats = frame.device.stats
    placed = [
        ("reused, exact size", stats.place_exact, "green"),
        ("reused, part of more", stats.place_split, "green"),
        ("extended", stats.place_extend, "cyan"),
        ("stitched", stats.place_stitch, "cyan"),
        ("new memory", stats.place_grow, "yellow"),
        ("failed", stats.place_fail, "red"),
    ]
    total = max(1, sum(count for _, count, _ in placed))
    lines.append(_title("placements"))
    width = max(4, columns - 48)
    for name, count, style in placed:
        if count or style != "red":
            text = Text(f" {name:<20} {format_count(count):>12} {format_percent(count / total):>8} ")
            lines.append(text.append("█" * round(count / total * width), style))
    lines.append(_title("driver"))
    if rows < _HIGH:
        lines += latency_lines(frame, short=True)
    lines += driver_lines(frame, elapsed, columns)[: None if rows >= _HIGH else -1]
    calls = stats.driver_create + stats.driver_map + stats.driver_unmap + stats.driver_set_access
    calls += stats.driver_release + stats.driver_reserve
    each = format_seconds(frame.spent_on_driver / calls) if calls else "-"
    per = format_seconds(frame.spent_on_driver / total)
    lines.append(Text(f" mean {each} a call, {per} a request"))
    share = format_percent(frame.spent_on_driver / elapsed) if elapsed > 0 else "-"
    by = "by public figures for this device" if frame.process.simulated else "of the run so far"
    allowed = "" if budget is None else f"; --max-driver-time {budget:g} %"
    lines.append(Text(f" budget: {share} {by}{allowed}"))
    lines += [
        *(latency_lines(frame) if rows >= _HIGH else ()),
        _title("requests by size"),
        *size_lines(frame, columns),
    ]
    return lines[:rows]


def latency_lines(frame: Frame, short: bool = False) -> list[Text]:
    """Percentiles of what calls took, all on one line if `short`; kinds that were not timed are left out."""
    device = frame.device
    kinds = [
        ("allocation", device.alloc_latency),
        ("free", device.free_latency),
        ("driver work", device.driver_latency),
    ]
    lines = []
    if short:
        known = [(name, found) for name, buckets in kinds if (found := latency_of(buckets)) is not None]
        text = " · ".join(
            f"{name} p50 ≤ {format_seconds(found.p50_s)} p99 ≤ {format_seconds(found.p99_s)}"
            for name, found in known[::2]
        )
        return [Text(f" {text}")] if text else []
    for name, buckets in kinds:
        found = latency_of(buckets)
        if found is not None:
            figures = zip(("p50", "p99", "max"), (found.p50_s, found.p99_s, found.max_s), strict=True)
            text = "  ".join(f"{label} ≤ {format_seconds(seconds):<8}" for label, seconds in figures)
            lines.append(Text(f" {name:<17} {text}".rstrip()))
    return lines


def map_view_lines(frame: Frame, size: Size, colours: bool) -> list[Text]:
    """The physical memory, two cells a character where there are colours."""
    rows, columns = size
    lines = [
        bar_line(frame, columns),
        legend_line(frame, columns),
        _title("arena map: chunks in the order of their ids"),
    ]
    cells = frame.device.cells.rstrip(b"\0")
    if not frame.heap or not cells:
        return [*lines, Text(" the map is known under --allocator vms", style="dim")][:rows]
    lines += half_block_lines(cells, columns) if colours else map_lines(cells, columns)
    live = sum(1 for cell in cells if cell & 127 >= 3)
    aliased = sum(1 for cell in cells if cell & 127 == 2)
    shares = [("live", live), ("idle", len(cells) - live - aliased), ("idle, aliased", aliased)]
    lines.append(Text(" " + " · ".join(f"{name} {format_percent(count / len(cells))}" for name, count in shares)))
    stats = frame.device.stats
    lines.append(
        Text(
            f" {format_count(stats.chunks)} chunks in {len(cells)} cells · {format_count(stats.mappings)} mappings · "
            f"{format_count(stats.arenas)} arenas, {format_count(stats.stitched_arenas)} stitched"
        )
    )
    return lines[:rows]


def half_block_lines(cells: bytes, columns: int) -> list[Text]:
    """Half blocks: the upper cell is the character's colour, the lower one its background."""
    width = max(1, columns - 2)
    legend = Text(" ")
    names = (
        ("green", "live"),
        ("cyan", "live, stitched"),
        ("blue", "partly"),
        ("yellow", "idle"),
        ("magenta", "aliased"),
    )
    for style, name in names:
        legend.append("█", style).append(f" {name}  ")
    lines = [legend]
    for start in range(0, len(cells), 2 * width):
        upper, lower = cells[start : start + width], cells[start + width : start + 2 * width]
        text = Text(" ")
        for number, cell in enumerate(upper):
            below = _colour(lower[number]) if number < len(lower) else ""
            text.append(_HALF, f"{_colour(cell) or 'default'} on {below}" if below else _colour(cell))
        lines.append(text)
    return lines


def _colour(cell: int) -> str:
    state = cell & (_STITCHED - 1)
    if state < 3:
        return ("", "yellow", "magenta")[state]
    if state < 9:
        return "blue"
    return "cyan" if cell & _STITCHED else "green"


def rank_view_lines(
    processes: Sequence[ProcessSnapshot], events: Sequence[Row], started_ns: int, size: Size
) -> list[Text]:
    """One line a process and device, in the order of ranks; below them what happened, the newest last."""
    rows, _ = size
    found = rank_rows(processes)
    room = max(1, min(len(found), rows - 3 - min(len(events), rows // 2)))
    lines = [
        _title(f"{'':<12} dev {'held':>9} {'in use':>9} {'peak':>9} {'waste':>7} {'steps':>7} {'p50':>7} {'OOM':>6}")
    ]
    for row in found[:room]:
        steps = f"{format_count(row.steps.count)}{'?' if row.steps.doubt else ''}" if row.steps.per_s else "-"
        p50 = format_seconds(row.steps.p50_s) if row.steps.per_s else "-"
        lines.append(
            Text(
                f" {row.name:<12} {row.device:<3} {format_size(row.reserved):>9} {format_size(row.live):>9} "
                f"{format_size(row.peak_reserved):>9} {format_percent(row.waste_ratio):>7} {steps:>7} {p50:>7} "
                f"{row.ooms:>6}"
            )
        )
    if len(found) > room:
        lines.append(Text(f" and {len(found) - room} more: gml-run report --ranks", style="dim"))
    balance = imbalance_text(found)
    if balance:
        lines.append(Text(f" {balance}"))
    lines.append(_title("log"))
    shown = events[-max(0, rows - len(lines)) :] if rows > len(lines) else []
    lines += [Text(f" {row_text(row, started_ns)}") for row in shown]
    if not shown:
        lines.append(Text(" nothing yet", style="dim"))
    return lines[:rows]


def _title(text: str) -> Text:
    return Text(f" {text}", style="bold")
