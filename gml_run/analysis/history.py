# SPDX-License-Identifier: Apache-2.0
"""The course of a run in a bounded number of points, however long it lasts."""

from __future__ import annotations

from typing import NamedTuple

from gml_run.analysis.frame import Frame

MOST_POINTS = 480


class Point(NamedTuple):
    """One moment of the place that held most then; bytes, and seconds since the start.

    `live` is the most since the point before, the others are what was found at the moment.
    """

    t_s: float
    live: int
    reserved: int
    rounding: int
    scattered: int
    stream_held: int


class History:
    """Keeps points at even distances; when there are too many, every second one goes."""

    def __init__(self) -> None:
        self._points: list[Point] = []
        self._distance = 0.0

    def add(self, frame: Frame, elapsed: float) -> None:
        """Notes the frame, unless the last point is too near."""
        if self._points and elapsed - self._points[-1].t_s < self._distance:
            return
        live = frame.peak_live_since(elapsed - self._points[-1].t_s if self._points else 0.0)
        self._points.append(
            Point(
                round(elapsed, 3),
                live,
                max(live, frame.usage.reserved),
                frame.rounding,
                frame.scattered,
                frame.held_by_streams,
            )
        )
        if len(self._points) > MOST_POINTS:
            del self._points[1::2]
            span = self._points[-1].t_s - self._points[0].t_s
            self._distance = span / len(self._points)

    @property
    def points(self) -> list[Point]:
        """Oldest first."""
        return self._points
