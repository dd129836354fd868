# SPDX-License-Identifier: Apache-2.0
"""Charts as SVG text: no script, no outside file, readable on light and dark pages."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import Any

from gml_run.units import format_count, format_seconds, format_size

_WIDTH = 720
_LEFT = 76  # room for the scale


def timeline_chart(timeline: dict[str, Any], peak_live: int, total: int) -> str:
    """Memory held and in use over time; empty when there are fewer than two points.

    The points are looks at moments; the dashed line is the peak in use, which no look may have met.
    """
    points: list[dict[str, Any]] = [dict(zip(timeline["fields"], point, strict=True)) for point in timeline["points"]]
    if len(points) < 2:
        return ""
    height, bottom = 220, 190
    start: float = points[0]["t_s"]
    span: float = max(1e-9, points[-1]["t_s"] - start)
    top: int = max(max(point["reserved"] for point in points), 1)

    def across(seconds: float) -> float:
        return _LEFT + (seconds - start) / span * (_WIDTH - _LEFT - 10)

    def up(size: int) -> float:
        return bottom - size / top * (bottom - 14)

    parts = [_grid(top, up)]
    for name, style in (("reserved", "held"), ("live", "live")):
        line = " ".join(f"{across(point['t_s']):.1f},{up(point[name]):.1f}" for point in points)
        first, last = f"{across(start):.1f},{bottom}", f"{across(start + span):.1f},{bottom}"
        parts.append(f'<polygon class="{style}" points="{first} {line} {last}"/>')
    y = up(min(peak_live, top))
    parts.append(f'<line class="peak" x1="{_LEFT}" y1="{y:.1f}" x2="{_WIDTH - 10}" y2="{y:.1f}"/>')
    for share in (0.0, 0.5, 1.0):
        seconds = start + share * span
        anchor = "start" if share == 0 else "end" if share == 1 else "middle"
        place = f'x="{across(seconds):.1f}" y="{height - 10}" text-anchor="{anchor}"'
        parts.append(f"<text {place}>{format_seconds(seconds)}</text>")
    label = f"Memory held and in use over time, at most {format_size(top)}"
    if total:
        label += f" of {format_size(total)}"
    return _svg(height, label, parts)


def waste_chart(timeline: dict[str, Any]) -> str:
    """Held and not in use over time, one cause on the other; empty without points or without waste."""
    names = (("rounding", "rounding"), ("scattered", "held"), ("stream_held", "waiting"))
    points = [dict(zip(timeline["fields"], point, strict=True)) for point in timeline["points"]]
    if len(points) < 2 or not all(name in points[0] for name, _ in names):
        return ""
    top = max(sum(point[name] for name, _ in names) for point in points)
    if not top:
        return ""
    bottom = 130
    start, span = points[0]["t_s"], max(1e-9, points[-1]["t_s"] - points[0]["t_s"])

    def place(point: dict[str, Any], size: int) -> str:
        x = _LEFT + (point["t_s"] - start) / span * (_WIDTH - _LEFT - 10)
        return f"{x:.1f},{bottom - size / top * (bottom - 14):.1f}"

    parts = [_grid(top, lambda size: bottom - size / top * (bottom - 14))]
    below = [0] * len(points)
    for number, (name, style) in enumerate(names):
        above = [base + point[name] for base, point in zip(below, points, strict=True)]
        edge = [place(point, size) for point, size in zip(points, above, strict=True)]
        edge += [place(point, size) for point, size in reversed(list(zip(points, below, strict=True)))]
        parts.append(f'<polygon class="{style}" points="{" ".join(edge)}"/>')
        x = _LEFT + number * 170
        parts.append(f'<rect class="{style}" x="{x}" y="{bottom + 12}" width="12" height="12"/>')
        text = ("rounding", "free but scattered", "waiting on another stream")[number]
        parts.append(f'<text x="{x + 18}" y="{bottom + 22}">{text}</text>')
        below = above
    return _svg(bottom + 32, f"Waste over time, at most {format_size(top)}", parts)


def parts_chart(parts: Sequence[tuple[str, int, str]]) -> str:
    """(name, bytes, style) side by side in one bar, with a legend below."""
    shown = [part for part in parts if part[1] > 0]
    total = sum(size for _, size, _ in shown)
    if not total:
        return ""
    out = []
    position = 0.0
    for name, size, style in shown:
        width = size / total * _WIDTH
        out.append(
            f'<rect class="{style}" x="{position:.1f}" y="4" width="{width:.1f}" height="36">'
            f"<title>{escape(name)}: {format_size(size)}</title></rect>"
        )
        position += width
    for number, (name, size, style) in enumerate(shown):
        x, y = (number % 3) * (_WIDTH // 3), 62 + (number // 3) * 22
        out.append(f'<rect class="{style}" x="{x}" y="{y - 11}" width="12" height="12"/>')
        out.append(f'<text x="{x + 18}" y="{y}">{escape(name)} {format_size(size)}</text>')
    height = 62 + (len(shown) - 1) // 3 * 22 + 12
    label = "Memory when most was held: " + ", ".join(f"{name} {format_size(size)}" for name, size, _ in shown)
    return _svg(height, label, out)


def bars_chart(label: str, rows: Sequence[tuple[str, int]]) -> str:
    """One horizontal bar a row, its count behind it; the longest fills the width."""
    if not rows:
        return ""
    most = max(count for _, count in rows) or 1
    out = []
    for number, (name, count) in enumerate(rows):
        y = 6 + number * 24
        width = max(1.0, count / most * (_WIDTH - 290)) if count else 0.0
        out.append(f'<text x="170" y="{y + 14}" text-anchor="end">{escape(name)}</text>')
        out.append(f'<rect class="live" x="180" y="{y}" width="{width:.1f}" height="18"/>')
        out.append(f'<text x="{186 + width:.1f}" y="{y + 14}">{format_count(count)}</text>')
    return _svg(12 + len(rows) * 24, label, out)


def _grid(top: int, up: Any) -> str:
    lines = []
    for share in (0.0, 0.25, 0.5, 0.75, 1.0):
        size = int(top * share)
        y = up(size)
        lines.append(f'<line class="grid" x1="{_LEFT}" y1="{y:.1f}" x2="{_WIDTH - 10}" y2="{y:.1f}"/>')
        lines.append(f'<text x="{_LEFT - 8}" y="{y + 4:.1f}" text-anchor="end">{format_size(size)}</text>')
    return "".join(lines)


def _svg(height: int, label: str, parts: Sequence[str]) -> str:
    return (
        f'<svg role="img" viewBox="0 0 {_WIDTH} {height}" width="100%" aria-label="{escape(label, quote=True)}">'
        f"{''.join(parts)}</svg>"
    )
