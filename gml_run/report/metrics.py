# SPDX-License-Identifier: Apache-2.0
"""Figures for other programs while the run lasts: a Prometheus text file, a file of JSON lines."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Sequence
from typing import Any

from gml_run.analysis.frame import Frame, make_frame
from gml_run.errors import GmlError
from gml_run.live.watch import Sink
from gml_run.telemetry.reader import ProcessSnapshot

# name -> (help, value): gauges, then counters; counters get `_total`.
GAUGES: dict[str, tuple[str, Callable[[Frame], float]]] = {
    "gml_device_bytes": ("Memory of the device.", lambda frame: frame.total),
    "gml_live_bytes": ("Memory in use by the program.", lambda frame: frame.usage.live),
    "gml_reserved_bytes": ("Memory held from the driver.", lambda frame: frame.usage.reserved),
    "gml_peak_live_bytes": ("Highest memory in use.", lambda frame: frame.usage.peak_live),
    "gml_peak_reserved_bytes": ("Highest memory held.", lambda frame: frame.usage.peak_reserved),
    "gml_idle_bytes": ("Held, and given out at once to whoever asks.", lambda frame: frame.idle),
    "gml_scattered_bytes": ("Held and free, but in partly used chunks.", lambda frame: frame.scattered),
    "gml_stream_held_bytes": ("Freed, and waiting for another stream.", lambda frame: frame.held_by_streams),
    "gml_headroom_bytes": ("What is left before the device is full.", lambda frame: frame.headroom),
    "gml_largest_servable_bytes": ("The largest request that would be served now.", lambda frame: frame.largest),
    "gml_waste_ratio": ("1 - peak in use / peak held.", lambda frame: frame.usage.waste_ratio),
}
COUNTERS: dict[str, tuple[str, Callable[[Frame], float]]] = {
    "gml_allocations": ("Requests that got memory.", lambda frame: _either(frame, "allocs", "torch_allocs")),
    "gml_ooms": ("Requests refused for want of memory.", lambda frame: _either(frame, "ooms", "torch_ooms")),
    "gml_retries": ("Times that memory was short.", lambda frame: frame.device.stats.retries),
    "gml_stitches": ("Requests placed on stitched chunks.", lambda frame: frame.device.stats.place_stitch),
    "gml_extends": ("Requests placed by extending.", lambda frame: frame.device.stats.place_extend),
    "gml_grows": ("Requests for which memory was created.", lambda frame: frame.device.stats.place_grow),
    "gml_driver_seconds": ("Time in driver memory calls.", lambda frame: frame.device.stats.driver_ns / 1e9),
}
_LABELS = ("pid", "rank", "device")


def _either(frame: Frame, ours: str, theirs: str) -> float:
    value: int = getattr(frame.device.stats, ours) if frame.heap else getattr(frame.device.figures, theirs)
    return value


def prometheus_sink(path: str) -> Sink:
    """Writes `path` in the text format, whole each time. Raises GmlError when that cannot work."""
    try:
        from prometheus_client import CollectorRegistry, write_to_textfile
        from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
    except ImportError:
        raise GmlError("needs prometheus_client", "--metrics", "pip install 'gml-run[metrics]'") from None
    _try_writing("--metrics", path)

    class Collector:
        frames: Sequence[Frame] = ()

        def collect(self) -> list[Any]:
            families: list[Any] = []
            for name, (text, take) in GAUGES.items():
                families.append(GaugeMetricFamily(name, text, labels=_LABELS))
                _fill(families[-1], self.frames, take)
            for name, (text, take) in COUNTERS.items():
                families.append(CounterMetricFamily(name, text, labels=_LABELS))
                _fill(families[-1], self.frames, take)
            return families

    registry = CollectorRegistry()
    collector = Collector()
    registry.register(collector)

    def write(processes: Sequence[ProcessSnapshot], elapsed: float) -> None:
        collector.frames = frames_of(processes)
        write_to_textfile(path, registry)

    return write


def status_sink(path: str) -> Sink:
    """Appends one JSON object a write to `path`, each with all places. Raises GmlError like the other."""
    _try_writing("--status-file", path)

    def write(processes: Sequence[ProcessSnapshot], elapsed: float) -> None:
        places = [
            {**dict(zip(_LABELS, _labels(frame), strict=True)), **_values(frame)} for frame in frames_of(processes)
        ]
        line = json.dumps({"time": round(time.time(), 3), "elapsed_s": round(elapsed, 3), "places": places})
        with open(path, "a", encoding="utf-8") as file:
            file.write(line + "\n")

    return write


def frames_of(processes: Sequence[ProcessSnapshot]) -> list[Frame]:
    """A frame for every process and device that holds or held memory."""
    now = time.monotonic_ns()
    frames = []
    for process in processes:
        for device in process.devices:
            frame = make_frame([process.only(device)], now)
            if frame is not None:
                frames.append(frame)
    return frames


def _fill(family: Any, frames: Sequence[Frame], take: Callable[[Frame], float]) -> None:
    for frame in frames:
        family.add_metric(_labels(frame), take(frame))


def _labels(frame: Frame) -> list[str]:
    rank = "" if frame.process.rank is None else str(frame.process.rank)
    return [str(frame.process.pid), rank, str(frame.device.index)]


def _values(frame: Frame) -> dict[str, float]:
    values = {name.removeprefix("gml_"): take(frame) for name, (_, take) in GAUGES.items()}
    values.update({name.removeprefix("gml_"): take(frame) for name, (_, take) in COUNTERS.items()})
    return values


def _try_writing(option: str, path: str) -> None:
    """What was asked for explicitly and cannot be had is said before the program starts."""
    folder = os.path.dirname(os.path.abspath(path))
    if not os.path.isdir(folder) or not os.access(folder, os.W_OK) or os.path.isdir(path):
        raise GmlError("cannot be written", f"{option} {path}", "choose a file in a folder that can be written")
