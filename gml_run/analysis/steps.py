# SPDX-License-Identifier: Apache-2.0
"""Steps of a run: from what its allocations show, or from lines that it prints."""

from __future__ import annotations

import re
import time
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, replace

from gml_run._abi import STEP_SOURCES
from gml_run.analysis.usage import usage_of
from gml_run.telemetry.reader import DeviceSnapshot, ProcessSnapshot

FEWEST = 3  # less is no period
NOT_KNOWN = "not known"

# What is counted when it is not known to be steps, by the name of the source, and why.
_UNSURE = {
    "TURNS": ("rounds", "no backward pass of PyTorch's was seen, so these may be anything that repeats"),
    "PASSES": ("backward passes", "no gradient was ever dropped, so a step may be several of these"),
}

_KEPT = 4096  # times; the quantiles are about the last ones
_LONGEST_LINE = 4096  # bytes
_ESCAPES = re.compile(rb"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\\\)|[ -/]*[0-~])")


@dataclass(frozen=True, slots=True)
class Steps:
    """How many there were, and how long the last ones took."""

    count: int
    p50_s: float
    p95_s: float
    source: str
    unit: str = "steps"  # what was counted
    doubt: str = ""  # why these may be no steps; empty: they are

    @property
    def per_s(self) -> float | None:
        """Steps a second, by the median; None when there are none."""
        return 1 / self.p50_s if self.count >= FEWEST and self.p50_s > 0 else None


NONE = Steps(0, 0.0, 0.0, NOT_KNOWN)


def steps_of(device: DeviceSnapshot) -> Steps:
    """The steps, or what may be steps, that were found in the allocations of one device."""
    times = [each / 1e9 for each in device.step_times_ns if each]  # 0: counted later, when its time was not known
    count = device.figures.step_count + device.figures.step_begun
    if count < FEWEST or not times:
        return NONE
    name, words = STEP_SOURCES[device.figures.step_source]
    unit, doubt = _UNSURE.get(name, ("steps", ""))
    return replace(_summary(count, times, words), unit=unit, doubt=doubt)


def unit_of(device: DeviceSnapshot) -> str:
    """What `step_count` of this device counts."""
    return _UNSURE.get(STEP_SOURCES[device.figures.step_source][0], ("steps", ""))[0]


def found_steps(processes: Sequence[ProcessSnapshot]) -> Steps:
    """The steps of the place that held most."""
    places = [(process, device) for process in processes for device in process.devices]
    if not places:
        return NONE
    return steps_of(max(places, key=lambda place: usage_of(*place).peak_reserved)[1])


class StepLines:
    """Finds steps in a program's output: each line that matches ends one."""

    def __init__(self, pattern: str) -> None:
        self._pattern = re.compile(pattern.encode())
        self._source = f"lines that match {pattern!r}"
        self._line = bytearray()
        self._times: deque[float] = deque(maxlen=_KEPT)
        self._last: float | None = None
        self._count = 0

    def feed(self, data: bytes, now: float | None = None) -> None:
        """More of the output; `now` is time.monotonic(). A carriage return ends a line too: progress bars."""
        *whole, rest = re.split(rb"[\r\n]", data)
        for part in whole:
            self._line += part
            self._end(time.monotonic() if now is None else now)
        self._line += rest
        del self._line[_LONGEST_LINE:]

    def _end(self, now: float) -> None:
        line, self._line = bytes(self._line[:_LONGEST_LINE]), bytearray()
        if not self._pattern.search(_ESCAPES.sub(b"", line)):
            return
        self._count += 1
        if self._last is not None:
            self._times.append(now - self._last)
        self._last = now

    @property
    def steps(self) -> Steps:
        """What was seen so far."""
        if not self._times:
            return Steps(self._count, 0.0, 0.0, self._source)
        return _summary(self._count, list(self._times), self._source)


def _summary(count: int, times: list[float], source: str) -> Steps:
    times = sorted(times)
    return Steps(count, times[len(times) // 2], times[min(len(times) - 1, len(times) * 95 // 100)], source)
