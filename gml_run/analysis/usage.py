# SPDX-License-Identifier: Apache-2.0
"""What one process holds on one device, by one set of words for every allocator."""

from __future__ import annotations

from dataclasses import dataclass

from gml_run.telemetry.reader import DeviceSnapshot, ProcessSnapshot


@dataclass(frozen=True, slots=True)
class Usage:
    """Bytes now and at the peak. `source` says who counted them:

    "heap" our own allocator, "torch" PyTorch's reports of its own, "driver" calls passed to the driver.
    """

    source: str
    live: int
    reserved: int
    peak_live: int
    peak_reserved: int
    requested: int  # the last four: a snapshot when reserved was at its peak
    internal: int
    external: int
    stream_held: int
    mean_waste: float | None  # None: not known

    @property
    def waste_ratio(self) -> float:
        """1 - peak live / peak reserved; 0 when nothing was reserved."""
        if self.peak_reserved == 0:
            return 0.0
        return max(0.0, 1 - self.peak_live / self.peak_reserved)

    @property
    def idle(self) -> int:
        """Held now and not live."""
        return max(0, self.reserved - self.live)


def usage_of(process: ProcessSnapshot, device: DeviceSnapshot) -> Usage:
    """The usage of one device, from whichever counters the run's allocator keeps."""
    stats = device.stats
    if stats.peak_reserved_bytes > 0 or process.counters.served_calls > 0:
        mean = stats.waste_mib_sum / stats.reserved_mib_sum if stats.reserved_mib_sum else None
        return Usage(
            source="heap",
            live=stats.live_bytes,
            reserved=stats.reserved_bytes,
            peak_live=stats.peak_live_bytes,
            peak_reserved=stats.peak_reserved_bytes,
            requested=stats.at_peak_requested_bytes,
            internal=stats.at_peak_internal_bytes,
            external=stats.at_peak_external_bytes,
            stream_held=stats.at_peak_stream_held_bytes,
            mean_waste=mean,
        )
    figures = device.figures
    if figures.torch_peak_reserved_bytes > 0:
        at_peak = figures.torch_at_peak_allocated_bytes
        return Usage(
            source="torch",
            live=figures.torch_allocated_bytes,
            reserved=figures.torch_reserved_bytes,
            peak_live=figures.torch_peak_allocated_bytes,
            peak_reserved=figures.torch_peak_reserved_bytes,
            requested=at_peak,
            internal=0,
            external=max(0, figures.torch_peak_reserved_bytes - at_peak),
            stream_held=0,
            mean_waste=None,
        )
    return Usage(
        source="driver",
        live=figures.driver_live_bytes,
        reserved=figures.driver_live_bytes,
        peak_live=figures.peak_driver_live_bytes,
        peak_reserved=figures.peak_driver_live_bytes,
        requested=figures.peak_driver_live_bytes,
        internal=0,
        external=0,
        stream_held=0,
        mean_waste=None,
    )
