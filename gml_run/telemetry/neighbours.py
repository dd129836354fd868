# SPDX-License-Identifier: Apache-2.0
"""What others held on the device when our processes had filled it most."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from gml_run.telemetry.nvml import Nvml
from gml_run.telemetry.reader import ProcessSnapshot

_INTERVAL = 1.0  # seconds between questions to the driver: one takes it about a millisecond


class Neighbours:
    """Asks while the run lasts, whenever a device is fuller than ever; nothing is asked of a simulated one."""

    def __init__(self, load: Callable[[], Nvml | None] = Nvml.load) -> None:
        self._load = load
        self._nvml: Nvml | None = None
        self._tried = False
        self._asked_at = -_INTERVAL
        self._peaks: dict[int, int] = {}
        self.others: dict[int, int | None] = {}  # process id -> bytes; None: not known

    def look(self, processes: Sequence[ProcessSnapshot], elapsed: float) -> None:
        """Asks when there is something new."""
        peaks = {
            process.pid: max(device.figures.peak_used_bytes for device in process.devices)
            for process in processes
            if process.devices and not process.simulated
        }
        risen = [pid for pid, peak in peaks.items() if peak > self._peaks.get(pid, 0)]
        if not risen or elapsed - self._asked_at < _INTERVAL:
            return
        self._asked_at = elapsed
        if not self._tried:
            self._tried, self._nvml = True, self._load()
        if self._nvml is None:
            return
        for pid, shares in self._nvml.shares(list(peaks)).items():
            if pid in risen:
                self.others[pid] = None if shares is None else shares.others_bytes
        self._peaks.update(peaks)
