# SPDX-License-Identifier: Apache-2.0
"""Reads which lines of a program hold its memory: the files that `--stacks` leaves beside the telemetry."""

from __future__ import annotations

import mmap
import os
import struct
import time
from dataclasses import dataclass
from typing import Any

from gml_run import _abi

_TRIES = 40
_PAUSE = 0.00005  # seconds
OTHERS = "all other lines"  # shown for those that found no place of their own


@dataclass(frozen=True, slots=True)
class Site:
    """One line of the program. `line` 0: no Python ran in the thread, whose name `function` then is."""

    file: str
    line: int
    function: str
    bytes: int
    count: int


@dataclass(frozen=True, slots=True)
class OomSites:
    """The lines that held most at one failure, the largest first, and the one that asked."""

    asked: Site | None
    held: tuple[Site, ...]


@dataclass(frozen=True, slots=True)
class Sites:
    """All lines of one process."""

    status: str  # which Python was read, or why none was
    now: dict[int, tuple[Site, ...]]  # device index -> lines that hold memory, the largest first
    at_peak: dict[int, tuple[Site, ...]]  # the same when most was live on that device
    ooms: dict[int, OomSites]  # number of the failure in this process, from 0


def read_sites(run_directory: str) -> dict[int, list[Sites]]:
    """Process id -> its files, one a program image; files that are damaged or not finished are left out."""
    folder = os.path.join(run_directory, "telemetry")
    try:
        names = sorted(name for name in os.listdir(folder) if name.endswith(".sites"))
    except OSError:
        return {}
    found: dict[int, list[Sites]] = {}
    for name in names:
        pid = name.split(".", 1)[0]
        data = _copy(os.path.join(folder, name))
        if data is not None and pid.isdigit():
            found.setdefault(int(pid), []).append(_sites(data))
    return found


def _copy(path: str) -> bytes | None:
    """The file as it stood between two updates; as it is when the writer died inside one."""
    try:
        with open(path, "rb") as file:
            if os.fstat(file.fileno()).st_size < _abi.SITES_FILE_BYTES:
                return None
            with mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ) as pages:
                if _field(pages, "magic") != _abi.SITES_MAGIC or _field(pages, "version") != _abi.SITES_VERSION:
                    return None
                for _ in range(_TRIES):
                    before = _field(pages, "sequence")
                    data = bytes(pages[: _abi.SITES_FILE_BYTES])
                    if before % 2 == 0 and _field(pages, "sequence") == before:
                        break
                    time.sleep(_PAUSE)
                return data
    except (OSError, ValueError):
        return None


def _field(data: Any, name: str) -> Any:
    offset, format_ = _abi.SITES_HEADER[name]
    return struct.unpack_from(format_, data, offset)[0]


def _sites(data: bytes) -> Sites:
    count = min(_field(data, "count"), _abi.SITE_NAMED)
    places = [*range(count), *range(_abi.SITE_NAMED, _abi.SITE_COUNT)]
    size = struct.calcsize(_abi.SITE_DEVICE_FORMAT)
    starts = [_abi.SITE_DEVICES_OFFSET + number * size for number in range(_abi.DEVICE_COUNT)]
    devices = [_abi.SiteDevice._make(struct.unpack_from(_abi.SITE_DEVICE_FORMAT, data, start)) for start in starts]
    now: dict[int, list[Site]] = {}
    at_peak: dict[int, list[Site]] = {}
    for place in places:
        figures = _figures(data, place)
        # A line that has not changed since the peak still holds what it held then.
        fresh = figures.peak_number == devices[figures.device % len(devices)].peak_number
        then = (figures.peak_bytes, figures.peak_count) if fresh else (figures.live_bytes, figures.live_count)
        if figures.live_bytes:
            now.setdefault(figures.device, []).append(_site(data, place, figures.live_bytes, figures.live_count))
        if then[0]:
            at_peak.setdefault(figures.device, []).append(_site(data, place, *then))
    return Sites(
        status=_text(_field(data, "status")), now=_sorted(now), at_peak=_sorted(at_peak), ooms=dict(_ooms(data))
    )


def _sorted(lines: dict[int, list[Site]]) -> dict[int, tuple[Site, ...]]:
    return {device: tuple(sorted(found, key=lambda site: -site.bytes)) for device, found in lines.items()}


def _ooms(data: bytes) -> list[tuple[int, OomSites]]:
    found = []
    words = f"<{2 + 3 * _abi.SITE_OOM_TOPS}Q"
    for slot in range(_abi.OOM_COUNT):
        number, asked, *shares = struct.unpack_from(words, data, _abi.SITE_OOMS_OFFSET + slot * _abi.SITE_OOM_BYTES)
        if not number:
            continue
        tops = zip(shares[0::3], shares[1::3], shares[2::3], strict=True)
        held = tuple(_site(data, place - 1, size, count) for place, size, count in tops if place)
        found.append((number - 1, OomSites(_site(data, asked - 1, 0, 0) if asked else None, held)))
    return found


def _figures(data: bytes, place: int) -> _abi.SiteFigures:
    return _abi.SiteFigures._make(
        struct.unpack_from(_abi.SITE_FORMAT, data, _abi.SITES_OFFSET + place * _abi.SITE_BYTES)
    )


def _site(data: bytes, place: int, size: int, count: int) -> Site:
    start = _abi.SITES_OFFSET + place * _abi.SITE_BYTES
    file = start + struct.calcsize(_abi.SITE_FORMAT)
    function = file + _abi.SITE_FILE_BYTES
    name = _text(data[function : function + _abi.SITE_FUNCTION_BYTES])
    return Site(
        file=_text(data[file : file + _abi.SITE_FILE_BYTES]),
        line=_figures(data, place).line,
        function=OTHERS if place >= _abi.SITE_NAMED else name,
        bytes=size,
        count=count,
    )


def _text(data: bytes) -> str:
    return data.split(b"\0", 1)[0].decode(errors="replace")
