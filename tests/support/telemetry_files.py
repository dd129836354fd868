# SPDX-License-Identifier: Apache-2.0
"""Writes telemetry files as a process would, from the mirror of the C layout."""

from __future__ import annotations

import os
import struct
from collections.abc import Iterable, Mapping
from typing import Any

from gml_run import _abi

NO_RANK = (1 << 64) - 1


def device(
    name: str = "NVIDIA H100 80GB HBM3",
    cells: bytes = b"",
    sizes: Mapping[int, int] | None = None,
    steps_ns: Iterable[int] = (),
    latency: Mapping[str, Mapping[int, int]] | None = None,
    **fields: int,
) -> dict[str, Any]:
    """One device block; `fields` are names of statistics and figures, all others are 0."""
    unknown = set(fields) - set(_abi.Stats._fields) - set(_abi.DeviceFigures._fields)
    assert not unknown, unknown
    steps = list(steps_ns)
    if steps:
        names = [name for name, _ in _abi.STEP_SOURCES]
        fields.setdefault("step_source", names.index("GRADIENTS"))
        fields.setdefault("step_count", len(steps))
    sizes, latency = dict(sizes or {}), latency or {}
    return {"name": name, "fields": fields, "cells": cells, "sizes": sizes, "steps": steps, "latency": latency}


def oom(**fields: int) -> dict[str, int]:
    """One failure; all fields not named are 0."""
    unknown = set(fields) - set(_abi.OomRecord._fields)
    assert not unknown, unknown
    return fields


def telemetry_bytes(
    pid: int = 4242,
    devices: Mapping[int, Mapping[str, Any]] | None = None,
    ooms: Iterable[Mapping[str, int]] = (),
    counters: Mapping[str, int] | None = None,
    events: Iterable[Mapping[str, Any]] = (),
    command: str = "python\0train.py",
    **header: Any,
) -> bytearray:
    """The whole file of one process."""
    data = bytearray(_abi.FILE_BYTES)
    values: dict[str, Any] = {
        "magic": _abi.MAGIC,
        "version": _abi.VERSION,
        "header_bytes": _abi.DEVICE_OFFSET,
        "total_bytes": _abi.FILE_BYTES,
        "pid": pid,
        "start_ns": 1_700_000_000_000_000_000 + pid,
        "rank": NO_RANK,
        "local_rank": NO_RANK,
        "allocator": "vms",
        "intercept": "tensors",
        "goal": "balanced",
        "command": command,
    }
    values.update(header)
    ooms, events = list(ooms), list(events)
    values.setdefault("event_count", len(events))
    values.setdefault("oom_count", len(ooms))
    for field, value in values.items():
        offset, format_ = _abi.HEADER[field]
        struct.pack_into(format_, data, offset, value.encode() if isinstance(value, str) else value)
    put_tuple(data, _abi.PROCESS_FORMAT, _abi.PROCESS_OFFSET, _abi.ProcessCounters, counters or {})
    for number, record in enumerate(ooms):
        place = _abi.OOM_OFFSET + (number % _abi.OOM_COUNT) * _abi.OOM_BYTES
        put_tuple(data, _abi.OOM_FORMAT, place, _abi.OomRecord, record)
    names = [name for name, _ in _abi.EVENT_KINDS]
    for number, event in enumerate(events):
        place = _abi.EVENT_OFFSET + (number % _abi.EVENT_COUNT) * _abi.EVENT_BYTES
        device = event.get("device", NO_RANK)
        words = (number + 1, event["time_ns"], names.index(event["kind"]), device, event.get("count", 1))
        struct.pack_into(
            _abi.EVENT_FORMAT, data, place, *words, event.get("bytes", 0), event.get("text", "").encode()
        )
    for index, block in (devices or {}).items():
        start = _abi.DEVICE_OFFSET + index * _abi.DEVICE_BYTES
        struct.pack_into("<Q", data, start + _abi.PRESENT_OFFSET, 1)
        struct.pack_into(f"<{_abi.NAME_BYTES}s", data, start + _abi.NAME_OFFSET, block["name"].encode())
        fields = block["fields"]
        put_tuple(data, _abi.FIGURES_FORMAT, start + _abi.FIGURES_OFFSET, _abi.DeviceFigures, fields)
        put_tuple(data, _abi.STATS_FORMAT, start + _abi.STATS_OFFSET, _abi.Stats, fields)
        for number, count in block["sizes"].items():
            struct.pack_into("<Q", data, start + _abi.SIZE_COUNTS_OFFSET + 8 * number, count)
        for number, nanoseconds in enumerate(block["steps"]):
            place = start + _abi.STEP_NS_OFFSET + 8 * (number % _abi.STEP_NS_COUNT)
            struct.pack_into("<Q", data, place, nanoseconds)
        for kind, buckets in block["latency"].items():
            place = start + getattr(_abi, f"{kind.upper()}_LATENCY_OFFSET")
            for number, count in buckets.items():
                struct.pack_into("<Q", data, place + 8 * number, count)
        data[start + _abi.MAP_OFFSET : start + _abi.MAP_OFFSET + len(block["cells"])] = block["cells"]
    return data


def put_tuple(data: bytearray, format_: str, offset: int, kind: Any, fields: Mapping[str, int]) -> None:
    """Packs the fields that `kind` has, the others as 0."""
    struct.pack_into(format_, data, offset, *(fields.get(name, 0) for name in kind._fields))


def write_process(run_directory: str | os.PathLike[str], **arguments: Any) -> str:
    """Writes <run>/telemetry/<pid>.gml; returns its path."""
    data = telemetry_bytes(**arguments)
    folder = os.path.join(run_directory, "telemetry")
    os.makedirs(folder, exist_ok=True)
    path = os.path.join(folder, f"{arguments.get('pid', 4242)}.gml")
    with open(path, "wb") as file:
        file.write(data)
    return path
