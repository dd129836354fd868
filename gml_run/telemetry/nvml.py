# SPDX-License-Identifier: Apache-2.0
"""Who else holds memory on a GPU, as the driver's management library (NVML) says it.

Nothing is concluded from what it does not say: in a container process ids may be of another name space, and on
some devices no process has a figure. Our own processes must be found on exactly one device, with all figures
known; else the answer is None.
"""

from __future__ import annotations

import ctypes
from collections.abc import Collection
from dataclasses import dataclass

_LIBRARY = "libnvidia-ml.so.1"
_NOT_AVAILABLE = (1 << 64) - 1
_MOST = 1024  # processes of a device


class _ProcessInfo(ctypes.Structure):
    _fields_ = [
        ("pid", ctypes.c_uint),
        ("used", ctypes.c_ulonglong),
        ("gpu_instance", ctypes.c_uint),
        ("compute_instance", ctypes.c_uint),
    ]


@dataclass(frozen=True, slots=True)
class Shares:
    """One device at one moment: what a process of ours holds on it, and what all foreign ones hold."""

    own_bytes: int
    others_bytes: int


class Nvml:
    """The library, once it is loaded and answers."""

    def __init__(self, library: ctypes.CDLL) -> None:
        self._library = library

    @classmethod
    def load(cls) -> Nvml | None:
        """None where there is no NVIDIA driver."""
        try:
            library = ctypes.CDLL(_LIBRARY)
            return cls(library) if library.nvmlInit_v2() == 0 else None
        except (OSError, AttributeError):
            return None

    def shares(self, pids: Collection[int]) -> dict[int, Shares | None]:
        """For each of our processes; None where it is not known."""
        devices = self._devices()
        found: dict[int, Shares | None] = {}
        for pid in pids:
            places = [held for held in devices if held is not None and pid in held]
            known = len(places) == 1 and None not in devices
            found[pid] = _shares(places[0], pid, pids) if known else None
        return found

    def _devices(self) -> list[dict[int, int] | None]:
        """Process id -> bytes, for each device; None for one that does not tell."""
        count = ctypes.c_uint(0)
        try:
            if self._library.nvmlDeviceGetCount_v2(ctypes.byref(count)) != 0:
                return []
            return [self._processes(index) for index in range(count.value)]
        except AttributeError:  # an old driver
            return []

    def _processes(self, index: int) -> dict[int, int] | None:
        device = ctypes.c_void_p()
        if self._library.nvmlDeviceGetHandleByIndex_v2(ctypes.c_uint(index), ctypes.byref(device)) != 0:
            return None
        held: dict[int, int] = {}
        for name in ("nvmlDeviceGetComputeRunningProcesses_v3", "nvmlDeviceGetGraphicsRunningProcesses_v3"):
            room = ctypes.c_uint(_MOST)
            infos = (_ProcessInfo * _MOST)()
            if getattr(self._library, name)(device, ctypes.byref(room), infos) != 0:
                return None
            # A process that computes and draws is in both lists, with the same figure.
            held.update({info.pid: info.used for info in infos[: room.value]})
        return held


def _shares(held: dict[int, int], pid: int, pids: Collection[int]) -> Shares | None:
    if _NOT_AVAILABLE in held.values():
        return None
    return Shares(held[pid], sum(used for other, used in held.items() if other not in pids))
