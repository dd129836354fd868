# SPDX-License-Identifier: Apache-2.0
"""Follows a run while it lasts: reads telemetry, notes versions, and feeds the live view."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from gml_run.analysis.frame import Frame, make_frame
from gml_run.analysis.history import History
from gml_run.analysis.steps import StepLines, Steps, found_steps
from gml_run.telemetry.reader import ProcessSnapshot, TelemetryReader
from gml_run.telemetry.versions import library_versions

if TYPE_CHECKING:
    from gml_run.telemetry.neighbours import Neighbours

_EAGER = 0.25  # seconds between looks at first: the course of short runs should still be seen
_EASY = 1.0  # and after two minutes, when nothing is drawn
_RESTRAINT = 50  # reading takes at most one part in so many of a core
_SLOWEST = 5.0
_NEVER = float("inf")

SINK_INTERVAL = 5.0  # seconds between writes for other programs

Sink = Callable[[Sequence[ProcessSnapshot], float], None]  # takes snapshots and seconds since the start
Show = Callable[[Frame | None, float], None]  # takes the frame and the seconds since the start


class Watch:
    """`directory` is None when nothing is shared: then there is nothing to see.

    `show` draws; it is called every `interval` seconds, or as often as seems right without one.
    """

    def __init__(
        self,
        directory: str | None,
        show: Show | None = None,
        interval: float | None = None,
        sinks: Sequence[Sink] = (),
    ) -> None:
        self._reader = TelemetryReader(directory) if directory is not None else None
        self.show = show
        self._interval = interval
        self._sinks = list(sinks)
        self._sinks_due = 0.0
        self.versions: dict[str, str] = {}
        self.problems: list[str] = []
        self.history = History()
        self.processes: Sequence[ProcessSnapshot] = ()
        self.step_lines: StepLines | None = None
        self.neighbours: Neighbours | None = None

    def tick(self, elapsed: float) -> float:
        """One look; returns the seconds until the next. Never raises: the run goes on without a view."""
        if self._reader is None:
            return _NEVER
        try:
            begin = time.thread_time()
            processes = self.processes = self._reader.read()
            cost = time.thread_time() - begin
            self._note_versions(processes)
            if self.neighbours is not None:
                self.neighbours.look(processes, elapsed)
            if elapsed >= self._sinks_due:
                self._sinks_due = elapsed + SINK_INTERVAL
                self._feed_sinks(processes, elapsed)
            frame = make_frame(processes, time.monotonic_ns())
            if frame is not None:
                self.history.add(frame, elapsed)
            if self.show is not None:
                self.show(frame, elapsed)
        except Exception as error:
            self.problems.append(f"the live view stopped: {type(error).__name__}: {error}")
            self.show = None
            return _NEVER
        interval = self._interval or (_EAGER if elapsed < 120 else _EASY)
        # Hundreds of processes make a look expensive: then there are fewer of them.
        return max(interval, min(cost * _RESTRAINT, _SLOWEST))

    def steps(self) -> Steps:
        """Steps so far: by the program's lines where those are followed, else by its allocations."""
        return found_steps(self.processes) if self.step_lines is None else self.step_lines.steps

    def finish(self, elapsed: float) -> Sequence[ProcessSnapshot]:
        """The last figures of every process."""
        if self._reader is None:
            return []
        processes = self.processes = self._reader.read(final=True)
        self._feed_sinks(processes, elapsed)
        self.problems += [f"telemetry of process {name[:-4]} {why}" for name, why in self._reader.problems.items()]
        self._reader.close()
        return processes

    def _feed_sinks(self, processes: Sequence[ProcessSnapshot], elapsed: float) -> None:
        for sink in list(self._sinks):
            try:
                sink(processes, elapsed)
            except OSError as error:
                self._sinks.remove(sink)
                self.problems.append(f"figures could not be written any more: {error}")

    def _note_versions(self, processes: Sequence[ProcessSnapshot]) -> None:
        if "torch" not in self.versions:
            for process in processes:
                self.versions.update(library_versions(process.pid))
