# SPDX-License-Identifier: Apache-2.0
"""The dock as a live view: frames go in, the dock gets painted lines."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from gml_run.analysis.frame import Frame
from gml_run.analysis.history import History, Point
from gml_run.analysis.steps import Steps
from gml_run.live.dock import Dock

INTERVAL = 0.25  # seconds between looks


class DockView:
    """Paints frames into a dock. Rich is imported with the first frame, when the child runs already."""

    def __init__(
        self, dock: Dock, title: str, environ: Mapping[str, str], history: History, steps: Callable[[], Steps]
    ) -> None:
        self._dock = dock
        self._title = title
        self._environ = environ
        self._history = history
        self._steps = steps
        self._paint: Callable[[Frame, float, int, list[Point], Steps], list[str]] | None = None

    def show(self, frame: Frame | None, elapsed: float) -> None:
        """Puts the frame into the dock; nothing is shown before the first memory call."""
        if frame is None:
            return
        if self._paint is None:
            from gml_run.live.paint import Painter

            self._paint = Painter(self._title, self._environ).lines
        self._dock.set_lines(self._paint(frame, elapsed, self._dock.columns, self._history.points, self._steps()))
