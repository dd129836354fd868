# SPDX-License-Identifier: Apache-2.0
"""Paints a frame as a few terminal lines with Rich: pool bar, waste by cause, placements."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from rich.text import Text

from gml_run.analysis.frame import Frame
from gml_run.analysis.history import Point
from gml_run.analysis.oom import failure_count
from gml_run.analysis.steps import NONE, Steps
from gml_run.live.render import Renderer
from gml_run.units import format_count, format_percent, format_seconds, format_size

HEIGHT = 5
_SHORT = {
    "in use": "used",
    "in use, stitched": "stitched",
    "idle, stitched": "idle, st.",
    "outside the pool": "outside",
}
_SPARKS = 20  # moments in the small curve of memory in use
_BLOCKS = "▁▂▃▄▅▆▇█"
_STALE = 5.0  # seconds without a change after which the age of the data is shown


@dataclass(frozen=True, slots=True)
class Part:
    """One kind of memory in the bar."""

    name: str
    size: int
    mark: str
    style: str


class Painter:
    """Turns frames into lines with escape sequences, for a terminal described by `environ`."""

    def __init__(self, title: str, environ: Mapping[str, str]) -> None:
        self._title = title
        self._renderer = Renderer(environ)

    def lines(
        self, frame: Frame, elapsed: float, columns: int, points: Sequence[Point] = (), steps: Steps = NONE
    ) -> list[str]:
        """HEIGHT lines of at most `columns` cells."""
        texts = [
            self._rule(frame, elapsed, columns, points, steps),
            bar_line(frame, columns),
            legend_line(frame, columns),
            waste_line(frame, columns),
            work_line(frame, elapsed, columns),
        ]
        return [self._renderer.render(text, columns) for text in texts]

    def _rule(self, frame: Frame, elapsed: float, columns: int, points: Sequence[Point], steps: Steps) -> Text:
        right = format_seconds(elapsed)
        if steps.per_s is not None:
            right = f"{format_rate(steps)} · {right}"
        if frame.age_s > _STALE:
            right = f"no GPU memory call for {format_seconds(frame.age_s)} · {right}"
        elif frame.places > 1:
            right = f"fullest of {frame.places} · {right}"
        room = columns - len(right) - 5  # for what stands left of a rule of one cell
        left = _fitting(room, [f"── {title} " for title in _shorter(self._title)] + ["── "])
        spark = sparkline([point.live for point in points[-_SPARKS:]], frame.usage.peak_reserved)
        if spark and len(left) + len(spark) + 1 <= room:
            left += f"{spark} "
        return Text(f"{left}{'─' * max(1, columns - len(left) - len(right) - 4)} {right} ──", style="dim")


def format_rate(steps: Steps) -> str:
    """Steps a second, or the seconds that one takes."""
    per_s, unit = steps.per_s or 0.0, steps.unit.rsplit(" ")[-1]
    if per_s >= 0.5:
        return f"{per_s:.3g} {unit}/s"
    return f"{format_seconds(steps.p50_s)} a {unit.removesuffix('es' if unit == 'passes' else 's')}"


def sparkline(values: Sequence[int], top: int) -> str:
    """One block a value, from nothing to `top`."""
    steps = len(_BLOCKS) - 1
    return "".join(_BLOCKS[min(steps, round(value * steps / max(1, top)))] for value in values)


def parts_of(frame: Frame) -> list[Part]:
    """What the device's memory consists of now, in the order of the bar."""
    if frame.heap:
        stats = frame.device.stats
        idle, idle_stitched = frame.idle_by_pool
        inside = [
            Part("in use", stats.primitive_live_bytes, "█", "green"),
            Part("in use, stitched", stats.stitched_live_bytes, "▓", "cyan"),
            Part("idle", idle, "▒", "yellow"),
            Part("idle, stitched", idle_stitched, "▒", "magenta"),
        ]
    elif frame.usage.source == "torch":
        inside = [
            Part("allocated", frame.usage.live, "█", "green"),
            Part("cached", frame.idle, "▒", "yellow"),
        ]
    else:
        inside = [Part("in use", frame.usage.live, "█", "green")]
    return [*inside, Part("outside the pool", frame.outside, "░", "blue")]


def bar_line(frame: Frame, columns: int) -> Text:
    """The device as a bar with a mark at the peak."""
    total = frame.total or max(1, frame.usage.peak_reserved)
    label = f" {format_size(frame.usage.reserved)} of {format_size(total)} held"
    width = max(10, columns - len(label) - 1)
    marks, styles = [" "] * width, [""] * width
    start = 0
    for part in parts_of(frame):
        end = min(total, start + part.size)
        for cell in range(round(start * width / total), min(width, round(end * width / total))):
            marks[cell], styles[cell] = part.mark, part.style
        start = end
    peak = min(width - 1, round(frame.usage.peak_reserved * width / total))
    marks[peak], styles[peak] = "│", "bold"
    text = Text(" ")
    for mark, style in zip(marks, styles, strict=True):
        text.append(mark, style)
    return text.append(label)


def legend_line(frame: Frame, columns: int) -> Text:
    """The parts of the bar with their sizes, in as many words as there is room for; zeros are left out."""
    parts = [part for part in parts_of(frame) if part.size]
    variants = [
        [(part.mark, part.style, part.name, part.size) for part in parts],
        [(part.mark, part.style, _SHORT.get(part.name, part.name), part.size) for part in parts],
        [(part.mark, part.style, "", part.size) for part in parts],
    ]
    texts = [_legend(variant, frame.usage.peak_reserved) for variant in variants]
    return next((text for text in texts if text.cell_len <= columns), texts[-1])


def _legend(parts: Sequence[tuple[str, str, str, int]], peak: int) -> Text:
    text = Text(" ")
    for mark, style, name, size in parts:
        text.append(mark, style).append(f" {name} {format_size(size)} " if name else f" {format_size(size)} ")
    return text.append("│", "bold").append(f" peak {format_size(peak)}")


def waste_line(frame: Frame, columns: int) -> Text:
    """Waste by cause, in plain words."""
    if frame.usage.source == "torch":
        share = frame.idle / frame.usage.reserved if frame.usage.reserved else 0.0
        return Text(f" cached and unused {format_size(frame.idle)}, {format_percent(share)} of what PyTorch holds")
    if not frame.heap:
        return Text(" calls to the driver only: what lies inside them is not seen")
    sizes = [format_size(size) for size in (frame.rounding, frame.scattered, frame.held_by_streams)]
    names = ("rounding", "free but scattered", "waiting on another stream")
    short = ("rounding", "scattered", "waiting")
    return Text(_fitting(columns, [" waste: " + _pairs(names, sizes), " waste: " + _pairs(short, sizes)]))


def work_line(frame: Frame, elapsed: float, columns: int) -> Text:
    """What the allocator does, and how much room is left."""
    room = f"headroom {format_size(frame.headroom)}"
    failures = failure_count(frame.process, frame.device.index)
    ooms = f" · out of memory {failures}×" if failures else ""
    if not frame.heap:
        return Text(f" {format_count(frame.device.figures.torch_allocs)} blocks given out · {room}{ooms}")
    stats = frame.device.stats
    driver = format_seconds(stats.driver_ns / 1e9)
    if elapsed > 0 and not frame.process.simulated:  # simulated calls take no real time
        driver = format_percent(stats.driver_ns / 1e9 / elapsed)
    placed = f"stitched {format_count(stats.place_stitch)} · extended {format_count(stats.place_extend)}"
    new = f"new memory {format_count(stats.place_grow)}"
    largest = f"largest {format_size(frame.largest)}"
    variants = [
        f" {placed} · {new} · driver {driver} · {largest} · {room}{ooms}",
        f" {placed} · driver {driver} · {largest} · {room}{ooms}",
        f" {placed} · driver {driver} · {room}{ooms}",
        f" {placed}{ooms}",
    ]
    return Text(_fitting(columns, variants))


def _pairs(names: Sequence[str], sizes: Sequence[str]) -> str:
    return " · ".join(f"{name} {size}" for name, size in zip(names, sizes, strict=True))


def _shorter(title: str) -> list[str]:
    """The title, then with one part less each, down to its first."""
    parts = title.split(" · ")
    return [" · ".join(parts[:count]) for count in range(len(parts), 0, -1)]


def _fitting(columns: int, variants: Sequence[str]) -> str:
    return next((text for text in variants if len(text) <= columns), variants[-1])
