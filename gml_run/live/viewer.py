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
from collections.abc import Callable
from typing import Any

from rich.console import Console
from rich.text import Text

from gml_run.analysis.frame import make_frame
from gml_run.analysis.history import History, Point
from gml_run.live.page import page_lines
from gml_run.telemetry.reader import TelemetryReader
from gml_run.units import format_seconds, shorten

_INTERVAL = 0.25
HELP = "q quit   space pause   ? help"


class Viewer:
    """One view of one run directory."""

    def __init__(
        self, directory: str, title: str, started: float, alive: Callable[[], bool], report: dict[str, Any] | None
    ) -> None:
        """`report` is that of a run that has ended; it knows how long it took and how it went."""
        self._reader = TelemetryReader(directory)
        self._title = title
        self._started = started
        self._alive = alive
        self._history = History()
        self._points = [Point(*point) for point in report["timeline"]["points"]] if report else None
        self._duration_s = report["run"]["duration_s"] if report else None
        self._paused = False
        self._help = False

    def lines(self, rows: int, columns: int) -> list[Text]:
        """The screen as it is now."""
        elapsed = self._duration_s if self._duration_s is not None else time.time() - self._started
        processes = self._reader.read()
        frame = make_frame(processes, time.monotonic_ns())
        state = "paused" if self._paused else "running" if self._alive() else "ended"
        right = f"{state} · {format_seconds(elapsed)}"
        title = shorten(self._title, max(16, columns - len(right) - 9))
        fill = max(1, columns - len(title) - len(right) - 8)
        head = Text(f"── {title} {'─' * fill} {right} ──", style="dim")
        if frame is None:
            return [head, Text(" no GPU memory call yet")]
        self._history.add(frame, elapsed)
        points = self._points if self._points is not None else self._history.points
        body = page_lines(frame, processes, points, elapsed, (rows - 2, columns))
        return [head, *body, *([Text(f" {HELP}", style="reverse")] if self._help else [])]

    def run(self) -> None:
        """Draws until q, ^C or the end of the terminal."""
        stream = sys.stdout
        console = Console(file=stream, highlight=False)
        saved = termios.tcgetattr(0)
        previous = signal.signal(signal.SIGTERM, _leave)
        signal.signal(signal.SIGINT, _leave)
        try:
            tty.setcbreak(0)
            stream.write("\x1b[?1049h\x1b[?25l")
            while True:
                if not self._paused:
                    self._draw(console)
                key = self._key()
                if key in (b"q", b"Q", b""):
                    return
                if key == b" ":
                    self._paused = not self._paused
                elif key == b"?":
                    self._help = not self._help
        except KeyboardInterrupt:
            return
        finally:
            stream.write("\x1b[?25h\x1b[?1049l")
            stream.flush()
            termios.tcsetattr(0, termios.TCSADRAIN, saved)
            signal.signal(signal.SIGTERM, previous)

    def _draw(self, console: Console) -> None:
        columns, rows = shutil.get_terminal_size()
        console.size = (columns, rows)
        lines = self.lines(rows, columns - 1)
        console.file.write("\x1b[H")
        for number, line in enumerate(lines[:rows]):
            line.truncate(columns - 1, overflow="ellipsis")
            console.print(line, end="\x1b[K" + ("\n" if number < min(len(lines), rows) - 1 else ""), soft_wrap=True)
        console.file.write("\x1b[J")
        console.file.flush()

    def _key(self) -> bytes | None:
        """A key within the interval; None without one, empty when the terminal is gone."""
        if not select.select([0], [], [], _INTERVAL)[0]:
            return None
        return os.read(0, 1)


def _leave(number: int, frame: Any) -> None:
    raise KeyboardInterrupt
