# SPDX-License-Identifier: Apache-2.0
"""Shows a run on the full screen of this terminal until a key ends it; the run itself is not touched."""

from __future__ import annotations

import os
import select
import shutil
import signal
import sys
import termios
import time
import tty
from collections.abc import Callable, Mapping
from typing import Any

from rich.text import Text

from gml_run.analysis.frame import make_frame
from gml_run.analysis.history import History, Point
from gml_run.analysis.steps import Steps, found_steps
from gml_run.live.keys import split_keys
from gml_run.live.render import Renderer
from gml_run.live.scene import Scene, scene_lines
from gml_run.telemetry.reader import TelemetryReader

_INTERVAL = 0.25


class Viewer:
    """One view of one run directory."""

    def __init__(
        self,
        directory: str,
        scene: Scene,
        started: float,
        alive: Callable[[], bool],
        report: dict[str, Any] | None,
        environ: Mapping[str, str],
    ) -> None:
        """`report` is that of a run that has ended; it knows how long it took and how it went."""
        self._reader = TelemetryReader(directory)
        self._scene = scene
        self._started = started
        self._alive = alive
        self._history = History()
        self._points = [Point(*point) for point in report["timeline"]["points"]] if report else None
        self._duration_s = report["run"]["duration_s"] if report else None
        self._steps = Steps(**report["steps"]) if report else None
        self._renderer = Renderer(environ)
        scene.colours = self._renderer.colours and not self._renderer.ascii

    def look(self) -> Scene:
        """Brings the scene up to date."""
        scene = self._scene
        scene.elapsed = self._duration_s if self._duration_s is not None else time.time() - self._started
        scene.processes = self._reader.read()
        scene.state = "running" if self._alive() else "ended"
        scene.frame = make_frame(scene.processes, time.monotonic_ns())
        scene.steps = self._steps or found_steps(scene.processes)
        if scene.frame is not None:
            self._history.add(scene.frame, scene.elapsed)
        scene.points = self._points if self._points is not None else self._history.points
        return scene

    def once(self, rows: int, columns: int, styled: bool) -> list[str]:
        """The screen once, without the keys and without empty lines at the end."""
        lines: list[Text] = scene_lines(self.look(), rows, columns)[:-1]
        while lines and not lines[-1].plain.strip():
            lines.pop()
        return [self._renderer.render(line if styled else Text(line.plain), columns) for line in lines]

    def run(self) -> None:
        """Draws until q, ^C or the end of the terminal."""
        stream = sys.stdout
        saved = termios.tcgetattr(0)
        previous = signal.signal(signal.SIGTERM, _leave)
        signal.signal(signal.SIGINT, _leave)
        signal.signal(signal.SIGWINCH, lambda *_: None)  # ends the wait for a key
        try:
            tty.setcbreak(0)
            stream.write("\x1b[?1049h\x1b[?7l\x1b[?25l\x1b[2J")
            while True:
                if not self._scene.paused:
                    self.look()
                self._draw()
                for key in self._keys():
                    if key in "qQ":
                        return
                    self._scene.press(key)
        except KeyboardInterrupt:
            return
        finally:
            stream.write("\x1b[?7h\x1b[?25h\x1b[?1049l")
            stream.flush()
            termios.tcsetattr(0, termios.TCSADRAIN, saved)
            signal.signal(signal.SIGTERM, previous)

    def _draw(self) -> None:
        columns, rows = shutil.get_terminal_size()
        out = []
        for row, line in enumerate(scene_lines(self._scene, rows, columns - 1), 1):
            out.append(f"\x1b[{row};1H{self._renderer.render(line, columns - 1)}\x1b[0m\x1b[K")
        sys.stdout.write("".join(out))
        sys.stdout.flush()

    def _keys(self) -> str:
        """What was typed within the interval; "q" when the terminal is gone."""
        try:
            if not select.select([0], [], [], _INTERVAL)[0]:
                return ""
        except InterruptedError:
            return ""
        data = os.read(0, 64)
        return "".join(key.decode("latin-1") for key in split_keys(data) if len(key) == 1) if data else "q"


def _leave(number: int, frame: Any) -> None:
    raise KeyboardInterrupt
