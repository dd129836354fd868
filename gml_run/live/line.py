# SPDX-License-Identifier: Apache-2.0
"""The live view for logs: one short line now and then, rarer as the run gets longer."""

from __future__ import annotations

from gml_run.analysis.frame import Frame
from gml_run.units import format_percent, format_seconds, format_size

FIRST = 10.0  # seconds of silence at the start
_LONGEST = 300.0


class LineSchedule:
    """Says when the next line is due: every 10 s at first, every 5 min in the end."""

    def __init__(self) -> None:
        self._due = FIRST

    def due(self, elapsed: float) -> bool:
        """True when a line should be printed now; then the next one is scheduled."""
        if elapsed < self._due:
            return False
        self._due = elapsed + min(_LONGEST, max(FIRST, elapsed / 3))
        return True


def format_line(frame: Frame, elapsed: float) -> str:
    """The state in one line."""
    usage = frame.usage
    of_total = f" of {format_size(frame.total)}" if frame.total else ""
    parts = [
        format_seconds(elapsed),
        f"held {format_size(usage.reserved)}{of_total}",
        f"in use {format_size(usage.live)}",
    ]
    if usage.source != "driver":
        parts.append(f"waste {format_percent(usage.waste_ratio)}")
    parts.append(f"peak {format_size(usage.peak_reserved)}")
    if frame.heap:
        stats = frame.device.stats
        parts.append(f"stitches {stats.place_stitch + stats.place_extend:,}")
        if stats.ooms:
            parts.append(f"out of memory {stats.ooms}×")
    elif frame.device.figures.torch_ooms:
        parts.append(f"out of memory {frame.device.figures.torch_ooms}×")
    if frame.places > 1:
        parts.append(f"fullest of {frame.places}")
    return " · ".join(parts)
