# SPDX-License-Identifier: Apache-2.0
"""The options of a run, after flags and GML_* variables were merged and checked."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import TypeVar

from gml_run._profiles import PROFILES
from gml_run.errors import GmlError
from gml_run.units import GIB, MIB, parse_size

# A context needs its part of a device; the allocator keeps books for up to 2^18 chunks of 2 MiB.
SMALLEST_DEVICE = 256 * MIB
LARGEST_DEVICE = 512 * GIB
MOST_SECONDS = 10**9


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
    SCREEN = "screen"
    LINE = "line"
    OFF = "off"


# The driver's memory calls that a cost can be given for.
DRIVER_CALLS = ("create", "map", "set_access", "unmap")
_NANOSECONDS = {"ns": 1.0, "us": 1e3, "ms": 1e6}

DEFAULT_DRIVER_TIME = 1.0  # percent; the library's own default


class Told(str):
    """An option's value that stands elsewhere than on the command line, and where."""

    __slots__ = ("where",)
    where: str

    def __new__(cls, value: str, where: str) -> Told:
        told = super().__new__(cls, value)
        told.where = where
        return told


@dataclass(frozen=True, slots=True)
class Simulation:
    """A simulated GPU: its profile and, when one was asked for, its size."""

    profile: str
    size_bytes: int | None

    @property
    def text(self) -> str:
        """As it is written behind --simulate."""
        if self.size_bytes is None:
            return self.profile
        for factor, unit in ((GIB, "G"), (MIB, "M")):
            if self.size_bytes % factor == 0:
                return f"{self.profile}:{self.size_bytes // factor}{unit}"
        return f"{self.profile}:{self.size_bytes}"


@dataclass(frozen=True, slots=True)
class RunOptions:
    """Everything that `gml-run [OPTIONS] COMMAND` can be told."""

    allocator: Allocator = Allocator.VMS
    intercept: Intercept = Intercept.TENSORS
    goal: Goal = Goal.BALANCED
    simulation: Simulation | None = None
    limit_bytes: int | None = None
    max_driver_time: float | None = None
    driver_costs: str | None = None
    release_idle_s: int | None = None
    stacks: bool = False
    live: Live = Live.AUTO
    step: str | None = None
    output: str | None = None
    metrics: str | None = None
    status_file: str | None = None
    quiet: bool = False
    strict: bool = False


def without_effect(options: RunOptions) -> str | None:
    """One sentence when options were given that only the stitching allocator obeys, and another one is used."""
    given = (
        ("--limit", options.limit_bytes),
        ("--release-idle", options.release_idle_s),
        ("--max-driver-time", options.max_driver_time),
        ("--goal", None if options.goal is Goal.BALANCED else options.goal),
        ("--intercept", None if options.intercept is Intercept.TENSORS else options.intercept),
    )
    names = [name for name, value in given if value is not None]
    if options.allocator is Allocator.VMS or not names:
        return None
    verb = "has" if len(names) == 1 else "have"
    listed = " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)
    return f"{listed} {verb} no effect with --allocator {options.allocator}: only vms obeys"


def make_options(values: Mapping[str, str | bool | None]) -> RunOptions:
    """The options after everything was checked that can be checked now; an absent value is the default.

    Raises GmlError for a value that is not valid, which says where it stands.
    """
    try:
        return _make_options(values)
    except GmlError as error:
        option, space, rest = error.where.partition(" ")
        value = values.get(option.removeprefix("--").replace("-", "_"))
        if not option.startswith("--") or not isinstance(value, Told):
            raise
        raise GmlError(error.what, f"{value.where}{space}{rest}", error.hint, error.exit_code) from None


def _make_options(values: Mapping[str, str | bool | None]) -> RunOptions:
    def text(name: str) -> str | None:
        value = values.get(name)
        return value if isinstance(value, str) and value else None

    allocator = _member(Allocator, "--allocator", text("allocator") or Allocator.VMS)
    if values.get("observe"):
        allocator = Allocator.OBSERVE
    live = _member(Live, "--live", text("live") or Live.AUTO)
    limit, simulate, share = text("limit"), text("simulate"), text("max_driver_time")
    return RunOptions(
        allocator=allocator,
        intercept=_member(Intercept, "--intercept", text("intercept") or Intercept.TENSORS),
        goal=_member(Goal, "--goal", text("goal") or Goal.BALANCED),
        simulation=parse_simulation(simulate) if simulate else None,
        limit_bytes=_size("--limit", limit) if limit and limit != "0" else None,
        max_driver_time=_percent("--max-driver-time", share) if share else None,
        driver_costs=_costs("--driver-costs", costs) if (costs := text("driver_costs")) else None,
        release_idle_s=_seconds("--release-idle", idle) if (idle := text("release_idle")) else None,
        stacks=_switch("stacks", values.get("stacks")),
        live=live,
        step=_pattern("--step", step) if (step := text("step")) else None,
        output=text("output"),
        metrics=_file("--metrics", text("metrics")),
        status_file=_file("--status-file", text("status_file")),
        quiet=bool(values.get("quiet")),
        strict=bool(values.get("strict")),
    )


def _costs(option: str, text: str) -> str:
    """The list as the libraries read it: without blanks, each call once."""
    import re

    found: dict[str, str] = {}
    for entry in text.split(","):
        match = re.fullmatch(r"\s*(\w+)\s*=\s*(\d{1,9}(?:\.\d{0,6})?)\s*(ns|us|ms)\s*", entry, re.ASCII)
        known = match is not None and match[1] in DRIVER_CALLS and match[1] not in found
        if match is None or not known or float(match[2]) * _NANOSECONDS[match[3]] > 1e9:
            calls = ", ".join(DRIVER_CALLS)
            fix = f"write call=time with {calls}, each once, in ns, us or ms up to a second"
            raise GmlError(f"{entry.strip()!r} is no cost", option, fix)
        found[match[1]] = match[2] + match[3]
    return ",".join(f"{call}={time}" for call, time in found.items())


def _seconds(option: str, text: str) -> int:
    if not text.isascii() or not text.isdigit() or int(text) > MOST_SECONDS:
        raise GmlError("not a whole number of seconds", f"{option} {text}", "give one such as 60")
    return int(text)


def _file(option: str, text: str | None) -> str | None:
    """A number is taken for a port by who knows other exporters; nothing of ours listens."""
    if text is not None and text.isdigit():
        raise GmlError("is a number, no file", f"{option} {text}", f"give a file; ./{text} if that is its name")
    return text


def _switch(name: str, value: str | bool | None) -> bool:
    """A switch as the command line, the file or its variable has it."""
    if isinstance(value, str) and value not in ("0", "1"):
        raise GmlError(f"{value!r} is neither 1 nor 0", f"GML_{name.upper()}", "write 1 or 0, or leave it out")
    return value not in (None, False, "0")


def _pattern(option: str, text: str) -> str:
    import re

    try:
        re.compile(text.encode())
    except re.error as error:
        raise GmlError(f"{text!r} is no regular expression: {error}", option) from None
    return text


_Choice = TypeVar("_Choice", bound=StrEnum)


def _member(choices: type[_Choice], option: str, text: str) -> _Choice:
    try:
        return choices(text)
    except ValueError:
        known = ", ".join(choice.value for choice in choices)
        raise GmlError(f"{text!r} is not one of {known}", option) from None


def parse_simulation(text: str) -> Simulation:
    """Reads "h100" or "h100:24G"."""
    name, colon, size = text.partition(":")
    if name not in PROFILES:
        raise GmlError(f"no simulated GPU is called {name!r}", "--simulate", f"known: {', '.join(PROFILES)}")
    size_bytes = _size("--simulate", size) if colon else None
    if size_bytes is not None and not SMALLEST_DEVICE <= size_bytes <= LARGEST_DEVICE:
        raise GmlError(f"no device of {size} is simulated", "--simulate", "give a size from 256M to 512G")
    return Simulation(name, size_bytes)


def _size(option: str, text: str) -> int:
    try:
        return parse_size(text)
    except ValueError as bad:
        raise GmlError(str(bad), option, "write it like 512M or 24G") from None


def _percent(option: str, text: str) -> float:
    try:
        number = float(text)
    except ValueError:
        number = -1.0
    if not 0 <= number <= 100:
        raise GmlError(f"{text!r} is not a percentage from 0 to 100", option)
    return number
