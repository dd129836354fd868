# SPDX-License-Identifier: Apache-2.0
"""The state at one moment, as numbers for a view: made from snapshots, painted elsewhere."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from gml_run._abi import WINDOW_NS
from gml_run.analysis.usage import Usage, usage_of
from gml_run.telemetry.reader import DeviceSnapshot, ProcessSnapshot


@dataclass(frozen=True, slots=True)
class Frame:
    """The process and device that hold most memory, and how many others there are."""

    process: ProcessSnapshot
    device: DeviceSnapshot
    usage: Usage
    places: int  # pairs of process and device that hold or held memory
    age_s: float  # since the last change of any figure
    now_ns: int = 0  # CLOCK_MONOTONIC when it was made

    @property
    def heap(self) -> bool:
        """True when our own allocator serves the memory."""
        return self.usage.source == "heap"

    @property
    def total(self) -> int:
        """Memory of the device; 0: not known."""
        return self.device.figures.total_bytes

    @property
    def free(self) -> int:
        """Free on the device at the last look, never more than what we do not hold."""
        return min(self.device.figures.free_bytes, max(0, self.total - self.usage.reserved))

    @property
    def outside(self) -> int:
        """In use on the device and not in this pool: context, libraries, other processes."""
        return max(0, self.total - self.free - self.usage.reserved)

    @property
    def idle(self) -> int:
        """Held and given out at once to whoever asks: wholly free chunks."""
        return min(self.device.stats.free_chunk_bytes, self.usage.idle) if self.heap else self.usage.idle

    @property
    def idle_by_pool(self) -> tuple[int, int]:
        """All that is held and not in use, in the primitive and in the stitched pool."""
        stats = self.device.stats
        known = stats.primitive_idle_bytes + stats.stitched_idle_bytes
        stitched = self.usage.idle * stats.stitched_idle_bytes // known if known else 0
        return self.usage.idle - stitched, stitched

    @property
    def rounding(self) -> int:
        """Given out beyond what was asked for."""
        return max(0, self.usage.live - self.device.stats.requested_bytes) if self.heap else 0

    @property
    def held_by_streams(self) -> int:
        """Freed, and waiting for work on another stream."""
        return min(self.device.stats.stream_held_bytes, self.usage.idle - self.idle) if self.heap else 0

    @property
    def scattered(self) -> int:
        """Free bytes in chunks that are partly used."""
        return self.usage.idle - self.idle - self.held_by_streams if self.heap else 0

    @property
    def headroom(self) -> int:
        """What is left before the device is full."""
        return self.free + self.idle

    @property
    def largest(self) -> int:
        """The largest request that would be served now, with new memory where there is some."""
        return max(self.device.stats.largest_servable_bytes, self.headroom if self.heap else self.free)

    @property
    def spent_on_driver(self) -> float:
        """Seconds in the driver's memory calls."""
        return self.device.stats.driver_ns / 1e9

    def peak_live_since(self, seconds: float) -> int:
        """Most memory in use in the last `seconds`, as the program noted it; no look is needed at the peak."""
        first = (self.now_ns - int(seconds * 1e9)) // WINDOW_NS
        return max([live for number, live in self.device.windows if number >= first > 0] + [self.usage.live])


def make_frame(processes: Sequence[ProcessSnapshot], now_ns: int) -> Frame | None:
    """The frame for these snapshots; `now_ns` is CLOCK_MONOTONIC. None when nobody holds anything yet."""
    places = [(process, device, usage_of(process, device)) for process in processes for device in process.devices]
    places = [place for place in places if place[2].peak_reserved > 0]
    if not places:
        return None
    process, device, usage = max(places, key=lambda place: (place[2].reserved, place[2].peak_reserved))
    changed = max(place[1].figures.updated_ns for place in places)
    age_s = max(0.0, (now_ns - changed) / 1e9) if changed else 0.0
    return Frame(process, device, usage, len(places), age_s, now_ns)
