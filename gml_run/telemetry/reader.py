# SPDX-License-Identifier: Apache-2.0
"""Reads the telemetry files of a run: consistent snapshots of what each process shares."""

from __future__ import annotations

import mmap
import os
import struct
import time
from dataclasses import dataclass, replace
from typing import Any

from gml_run import _abi

NO_RANK = (1 << 64) - 1
_MOST_OPEN = 128
_TRIES = 40
_PAUSE = 0.00005  # seconds; the writer is inside a block for less than a microsecond


@dataclass(frozen=True, slots=True)
class DeviceSnapshot:
    """One device as one process sees it."""

    index: int
    name: str
    figures: _abi.DeviceFigures
    stats: _abi.Stats
    size_counts: tuple[int, ...]
    cells: bytes  # the arena map, see telemetry/layout.h
    step_times_ns: tuple[int, ...]  # the last ones, oldest first; their number is figures.step_count
    alloc_latency: tuple[int, ...]  # calls by the time that they took, see telemetry/latency.h
    free_latency: tuple[int, ...]
    driver_latency: tuple[int, ...]
    windows: tuple[tuple[int, int], ...]  # (number, most live bytes) of the last windows of time
    torn: bool  # the writer died inside an update: fields may not fit together


@dataclass(frozen=True, slots=True)
class Event:
    """Something that happened, `count` times from `time_ns` (CLOCK_REALTIME) on."""

    time_ns: int
    kind: str  # a name of EVENT_KINDS
    device: int | None
    count: int
    bytes: int  # of the request; 0: not known
    text: str


@dataclass(frozen=True, slots=True)
class ProcessSnapshot:
    """One process that served or observed GPU memory."""

    pid: int
    parent_pid: int
    start_ns: int
    rank: int | None
    local_rank: int | None
    simulated: bool
    allocator: str
    intercept: str
    goal: str
    command: tuple[str, ...]
    message: str
    counters: _abi.ProcessCounters
    oom_count: int
    ooms: tuple[_abi.OomRecord, ...]
    events: tuple[Event, ...]  # the last ones, oldest first
    devices: tuple[DeviceSnapshot, ...]

    def only(self, device: DeviceSnapshot) -> ProcessSnapshot:
        """The same process with one of its devices."""
        return replace(self, devices=(device,))


class TelemetryReader:
    """All telemetry files of one run directory; new ones are picked up at every read."""

    def __init__(self, run_directory: str) -> None:
        self._folder = os.path.join(run_directory, "telemetry")
        self._files: dict[str, _TelemetryFile] = {}
        self._closed: set[str] = set()
        self._ended: list[ProcessSnapshot] = []  # last words of processes whose file was let go
        self.problems: dict[str, str] = {}  # file name -> why it cannot be read

    def read(self, final: bool = False) -> list[ProcessSnapshot]:
        """Snapshots of all processes, oldest first. `final`: the writers have ended, take what is there."""
        try:
            names = sorted(os.listdir(self._folder))
        except OSError:
            return []
        for name in names:
            if name.endswith(".gml") and name not in self._files and name not in self._closed:
                self._open(name, final)
        if len(self._files) > _MOST_OPEN and not final:
            self._close_ended()
        snapshots = [*self._ended, *(file.read(final) for file in self._files.values())]
        return sorted(snapshots, key=lambda snapshot: (snapshot.start_ns, snapshot.pid))

    def close(self) -> None:
        """Lets go of the files."""
        for file in self._files.values():
            file.close()
        self._files.clear()

    def _close_ended(self) -> None:
        """A mapping costs a descriptor: with many processes, those that have ended are read once more."""
        for name, file in list(self._files.items()):
            snapshot = file.read(final=True)
            if not os.path.exists(f"/proc/{snapshot.pid}"):
                self._ended.append(snapshot)
                self._closed.add(name)
                self._files.pop(name).close()

    def _open(self, name: str, final: bool) -> None:
        try:
            self._files[name] = _TelemetryFile(os.path.join(self._folder, name))
            self.problems.pop(name, None)
        except _NotReadyError:
            if final:
                self.problems[name] = "was begun and not finished"
        except (OSError, ValueError) as error:
            self.problems[name] = str(error)


class _NotReadyError(Exception):
    """The writer has made the file, but not filled its head yet."""


class _TelemetryFile:
    def __init__(self, path: str) -> None:
        with open(path, "rb") as file:
            if os.fstat(file.fileno()).st_size < _abi.DEVICE_OFFSET:
                raise _NotReadyError
            self._map = mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ)
        try:
            self._check()
        except Exception:
            self._map.close()
            raise
        self._last: dict[int, DeviceSnapshot] = {}

    def _check(self) -> None:
        magic = self._field("magic")
        if magic == bytes(8):
            raise _NotReadyError
        if magic != _abi.MAGIC:
            raise ValueError("is no telemetry file")
        if self._field("version") != _abi.VERSION:
            raise ValueError(f"has layout version {self._field('version')}, this gml-run reads {_abi.VERSION}")
        if len(self._map) < _abi.FILE_BYTES or self._field("total_bytes") > len(self._map):
            raise ValueError("is cut short")

    def close(self) -> None:
        self._map.close()

    def read(self, final: bool) -> ProcessSnapshot:
        count = self._field("oom_count")
        return ProcessSnapshot(
            pid=self._field("pid"),
            parent_pid=self._field("parent_pid"),
            start_ns=self._field("start_ns"),
            rank=_rank(self._field("rank")),
            local_rank=_rank(self._field("local_rank")),
            simulated=bool(self._field("simulated")),
            allocator=self._text("allocator"),
            intercept=self._text("intercept"),
            goal=self._text("goal"),
            command=self._command(),
            message=self._text("message"),
            counters=_abi.ProcessCounters._make(
                struct.unpack_from(_abi.PROCESS_FORMAT, self._map, _abi.PROCESS_OFFSET)
            ),
            oom_count=count,
            ooms=self._ooms(count),
            events=self._events(self._field("event_count")),
            devices=tuple(self._devices(final)),
        )

    def _field(self, name: str) -> Any:  # an int, or bytes for text
        offset, format_ = _abi.HEADER[name]
        return struct.unpack_from(format_, self._map, offset)[0]

    def _text(self, name: str) -> str:
        return _c_string(self._field(name))

    def _command(self) -> tuple[str, ...]:
        words = self._field("command").rstrip(b"\0").split(b"\0")
        return tuple(word.decode(errors="replace") for word in words)

    def _ooms(self, count: int) -> tuple[_abi.OomRecord, ...]:
        kept = min(count, _abi.OOM_COUNT)
        records = []
        for number in range(count - kept, count):
            offset = _abi.OOM_OFFSET + (number % _abi.OOM_COUNT) * _abi.OOM_BYTES
            records.append(_abi.OomRecord._make(struct.unpack_from(_abi.OOM_FORMAT, self._map, offset)))
        return tuple(records)

    def _events(self, count: int) -> tuple[Event, ...]:
        events = []
        for place in range(max(0, count - _abi.EVENT_COUNT), count):
            offset = _abi.EVENT_OFFSET + (place % _abi.EVENT_COUNT) * _abi.EVENT_BYTES
            number, time_ns, kind, device, times, size, text = struct.unpack_from(
                _abi.EVENT_FORMAT, self._map, offset
            )
            # Half written, or overtaken by a newer one: the next look sees it.
            if number == place + 1 and kind < len(_abi.EVENT_KINDS):
                name = _abi.EVENT_KINDS[kind][0]
                events.append(Event(time_ns, name, _rank(device), times, size, _c_string(text)))
        return tuple(events)

    def _devices(self, final: bool) -> list[DeviceSnapshot]:
        found = []
        for index in range(_abi.DEVICE_COUNT):
            start = _abi.DEVICE_OFFSET + index * _abi.DEVICE_BYTES
            if not struct.unpack_from("<Q", self._map, start + _abi.PRESENT_OFFSET)[0]:
                continue
            block, torn = self._block(start, final)
            if block is not None:
                self._last[index] = _device(index, block, torn)
            if index in self._last:
                found.append(self._last[index])
        return found

    def _block(self, start: int, final: bool) -> tuple[bytes | None, bool]:
        """One device block as it stood between two updates; None when the writer is too busy now."""
        for _ in range(_TRIES):
            before = self._sequence(start)
            if before % 2 == 0:
                block = self._map[start : start + _abi.DEVICE_BYTES]
                if self._sequence(start) == before:
                    return block, False
            time.sleep(_PAUSE)
        if final:
            return self._map[start : start + _abi.DEVICE_BYTES], True
        return None, False

    def _sequence(self, start: int) -> int:
        value: int = struct.unpack_from("<Q", self._map, start + _abi.SEQUENCE_OFFSET)[0]
        return value


def _device(index: int, block: bytes, torn: bool) -> DeviceSnapshot:
    sizes = struct.unpack_from(f"<{_abi.SIZE_CLASSES}Q", block, _abi.SIZE_COUNTS_OFFSET)
    figures = _abi.DeviceFigures._make(struct.unpack_from(_abi.FIGURES_FORMAT, block, _abi.FIGURES_OFFSET))
    return DeviceSnapshot(
        index=index,
        name=_c_string(block[_abi.NAME_OFFSET : _abi.NAME_OFFSET + _abi.NAME_BYTES]),
        figures=figures,
        stats=_abi.Stats._make(struct.unpack_from(_abi.STATS_FORMAT, block, _abi.STATS_OFFSET)),
        size_counts=sizes,
        cells=block[_abi.MAP_OFFSET : _abi.MAP_OFFSET + _abi.MAP_CELLS],
        alloc_latency=_latency(block, _abi.ALLOC_LATENCY_OFFSET),
        free_latency=_latency(block, _abi.FREE_LATENCY_OFFSET),
        driver_latency=_latency(block, _abi.DRIVER_LATENCY_OFFSET),
        step_times_ns=_step_times(block, figures.step_count),
        windows=_windows(block),
        torn=torn,
    )


def _latency(block: bytes, offset: int) -> tuple[int, ...]:
    return struct.unpack_from(f"<{_abi.LATENCY_COUNT}Q", block, offset)


def _windows(block: bytes) -> tuple[tuple[int, int], ...]:
    form = f"<{_abi.WINDOW_COUNT}Q"
    numbers = struct.unpack_from(form, block, _abi.WINDOW_NUMBER_OFFSET)
    return tuple(zip(numbers, struct.unpack_from(form, block, _abi.WINDOW_LIVE_OFFSET), strict=True))


def _step_times(block: bytes, count: int) -> tuple[int, ...]:
    ring = struct.unpack_from(f"<{_abi.STEP_NS_COUNT}Q", block, _abi.STEP_NS_OFFSET)
    first = count % len(ring) if count > len(ring) else 0
    return (ring[first:] + ring[:first])[: min(count, len(ring))]


def _rank(value: int) -> int | None:
    return None if value == NO_RANK else value


def _c_string(data: bytes) -> str:
    return data.split(b"\0", 1)[0].decode(errors="replace")
