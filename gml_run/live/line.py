# SPDX-License-Identifier: Apache-2.0
"""The live view for logs: one short line now and then, rarer as the run gets longer."""

from __future__ import annotations

from gml_run.analysis.frame import Frame
from gml_run.analysis.oom import failure_count
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
    of_peak = "" if usage.source == "driver" else f" ({format_percent(usage.waste_ratio)} of it waste)"
    parts.append(f"peak {format_size(usage.peak_reserved)}{of_peak}")
    if frame.heap:
        stats = frame.device.stats
        parts.append(f"stitches {stats.place_stitch + stats.place_extend:,}")
    if failures := failure_count(frame.process, frame.device.index):
        parts.append(f"out of memory {failures}×")
    if frame.places > 1:
        parts.append(f"fullest of {frame.places}")
    return " · ".join(parts)
