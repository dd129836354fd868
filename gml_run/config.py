# SPDX-License-Identifier: Apache-2.0
"""The options of a run, after flags and GML_* variables were merged and checked."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from gml_run._profiles import PROFILES
from gml_run.errors import GmlError
from gml_run.units import parse_size


class Allocator(StrEnum):
    """Who serves the memory."""

    VMS = "vms"
    NATIVE = "native"
    EXPANDABLE = "expandable"
    CUDA_ASYNC = "cuda-async"
    RAW = "raw"
    OBSERVE = "observe"

    @property
    def ours(self) -> bool:
        """True when our heap serves the memory, rather than only watching another allocator."""
        return self is Allocator.VMS


class Intercept(StrEnum):
    """What of PyTorch reaches our allocator."""

    TENSORS = "tensors"
    SEGMENTS = "segments"
    UNCACHED = "uncached"


class Goal(StrEnum):
    """What to favour when memory and driver time pull apart."""

    MEMORY = "memory"
    BALANCED = "balanced"
    THROUGHPUT = "throughput"


class Live(StrEnum):
    """How to show the run while it lasts."""

    AUTO = "auto"
    DOCK = "dock"
    LINE = "line"
    SCREEN = "screen"
    OFF = "off"


@dataclass(frozen=True, slots=True)
class Simulation:
    """A simulated GPU: its profile and, when one was asked for, its size."""

    profile: str
    size_bytes: int | None


@dataclass(frozen=True, slots=True)
class RunOptions:
    """Everything that `gml-run [OPTIONS] COMMAND` can be told."""

    allocator: Allocator = Allocator.VMS
    intercept: Intercept = Intercept.TENSORS
    goal: Goal = Goal.BALANCED
    simulation: Simulation | None = None
    limit_bytes: int | None = None
    max_driver_time: float | None = None
    live: Live = Live.AUTO
    output: str | None = None
    quiet: bool = False
    strict: bool = False


def parse_simulation(text: str) -> Simulation:
    """Reads "h100" or "h100:24G"."""
    name, colon, size = text.partition(":")
    if name not in PROFILES:
        known = ", ".join(PROFILES)
        raise GmlError(f"no simulated GPU is called {name!r}", f"--simulate {text}", f"known: {known}")
    if not colon:
        return Simulation(name, None)
    return Simulation(name, parse_option_size("--simulate", size))


def parse_option_size(option: str, text: str) -> int:
    """The size behind an option, or a clear error."""
    try:
        return parse_size(text)
    except ValueError as bad:
        raise GmlError(str(bad), option, "write it like 512M or 24G") from None
