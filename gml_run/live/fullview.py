# SPDX-License-Identifier: Apache-2.0
"""Feeds the full screen of a run that this process launched."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from gml_run.analysis.frame import Frame
from gml_run.analysis.history import History
from gml_run.analysis.steps import Steps
from gml_run.live.dock import Dock
from gml_run.live.docked import DockView
from gml_run.live.full import FullScreen
from gml_run.live.render import Renderer
from gml_run.live.scene import Scene, log_rows, scene_lines
from gml_run.telemetry.reader import ProcessSnapshot


class FullView:
    """Keeps the scene up to date; once the full screen was left, the dock is fed instead."""

    def __init__(
        self,
        dock: Dock,
        size: tuple[int, int],
        scene: Scene,
        environ: Mapping[str, str],
        history: History,
        processes: Callable[[], Sequence[ProcessSnapshot]],
        steps: Callable[[], Steps],
    ) -> None:
        self._renderer = Renderer(environ)
        scene.colours = self._renderer.colours and not self._renderer.ascii
        self._scene = scene
        self._history, self._processes, self._steps = history, processes, steps
        self._docked = DockView(dock, scene.title, environ, history, steps)
        self.screen = FullScreen(dock, *size, self._paint, scene.press, log_rows)

    def show(self, frame: Frame | None, elapsed: float) -> None:
        """Takes the figures of this moment."""
        if not self.screen.full:
            self._docked.show(frame, elapsed)
            return
        if self._scene.paused:
            return
        self._scene.frame, self._scene.elapsed = frame, elapsed
        self._scene.processes, self._scene.points = self._processes(), list(self._history.points)
        self._scene.steps = self._steps()

    def _paint(self, rows: int, columns: int, log: Sequence[str]) -> list[str]:
        lines = scene_lines(self._scene, rows, columns - 1, log)
        return [self._renderer.render(line, columns - 1) for line in lines]
