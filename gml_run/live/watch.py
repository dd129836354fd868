# SPDX-License-Identifier: Apache-2.0
"""Follows a run while it lasts: reads telemetry, notes versions, and feeds the live view."""

from __future__ import annotations

from collections.abc import Sequence

from gml_run.config import RunOptions
from gml_run.telemetry.reader import ProcessSnapshot, TelemetryReader
from gml_run.telemetry.versions import library_versions

_FIRST = 0.25  # seconds until the first look
_IDLE = 1.0  # seconds between looks when nothing is drawn


class Watch:
    """`directory` is None when nothing is shared: then there is nothing to see."""

    def __init__(self, directory: str | None, options: RunOptions) -> None:
        self._reader = TelemetryReader(directory) if directory is not None else None
        self._options = options
        self.versions: dict[str, str] = {}
        self.problems: list[str] = []

    def tick(self, elapsed: float) -> float:
        """One look; returns the seconds until the next. Never raises: the run goes on without a view."""
        if self._reader is None:
            return float("inf")
        try:
            self._look(self._reader.read())
        except Exception as error:
            self.problems.append(f"the live view stopped: {type(error).__name__}: {error}")
            return float("inf")
        return _FIRST if elapsed < _IDLE else _IDLE

    def finish(self) -> Sequence[ProcessSnapshot]:
        """The last figures of every process."""
        if self._reader is None:
            return []
        processes = self._reader.read(final=True)
        self.problems += [f"telemetry of process {name[:-4]} {why}" for name, why in self._reader.problems.items()]
        self._reader.close()
        return processes

    def _look(self, processes: Sequence[ProcessSnapshot]) -> None:
        if "torch" not in self.versions:
            for process in processes:
                self.versions.update(library_versions(process.pid))
