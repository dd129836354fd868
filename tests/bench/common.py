# SPDX-License-Identifier: Apache-2.0
"""What the benchmarks share: the scripts they measure, the modes they compare, builds, and Markdown tables."""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
BENCH = ROOT / "tests" / "bench"
sys.path.insert(0, str(ROOT / "tests" / "support"))

from runs import PROGRAMS, Run, python, run  # noqa: E402

MIB = 1 << 20
GIB = 1 << 30


@dataclass(frozen=True, slots=True)
class Mode:
    """One way to serve the memory, as options of gml-run."""

    name: str
    options: tuple[str, ...]
    ours: bool


NATIVE = Mode("native", ("--allocator", "native"), False)
EXPANDABLE = Mode("expandable_segments", ("--allocator", "expandable"), False)
MEMORY = Mode("vms, goal memory", ("--goal", "memory"), True)
BALANCED = Mode("vms, goal balanced", ("--goal", "balanced"), True)
MODES = (NATIVE, EXPANDABLE, MEMORY, BALANCED)


def scripts_parser(description: str) -> argparse.ArgumentParser:
    """Arguments of a benchmark over scripts."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--more", type=Path, metavar="DIR", help="a folder of further scripts (or BENCH_WORKLOADS)")
    parser.add_argument("scripts", nargs="*", type=Path, help="default: the project's workloads and those of DIR")
    return parser


def chosen_scripts(arguments: argparse.Namespace) -> list[Path]:
    """The scripts to measure: those named, or the project's and those of a further folder."""
    if arguments.scripts:
        return [Path(script).resolve() for script in arguments.scripts]
    more = arguments.more or os.environ.get("BENCH_WORKLOADS")
    folders = [Path(more)] if more else []
    folders.append(PROGRAMS / "workloads")
    found = [script for folder in folders for script in sorted(folder.glob("*.py"))]
    return [script.resolve() for script in found if script.stem != "peaks"]


def devices_of(script: Path) -> int:
    """How many devices the script wants: its own DEVICES = N, else one."""
    found = re.search(r"^DEVICES = (\d+)", script.read_text(), re.MULTILINE)
    return int(found[1]) if found else 1


def measure(script: Path, mode: Mode, folder: Path, device: str = "h100", *, timeout: float = 600) -> Run:
    """The script under one mode, on simulated devices of one kind. The folder is new."""
    variables = {"GML_SIM_DEVICES": str(devices_of(script))}
    options = ["-q", "--simulate", device, *mode.options]
    return run(options, python(script), folder, timeout=timeout, variables=variables)


class Ranks:
    """The figures of a run whose processes each use one device: a list of one for most scripts, in no order."""

    def __init__(self, ended: Run, mode: Mode):
        self.mode = mode
        lines = [line for line in ended.stdout.splitlines() if line.startswith(b"{")]
        self.said: list[dict[str, Any]] = [said for said in map(json.loads, lines) if "peak_allocated" in said]
        devices = [device for process in ended.report["processes"] for device in process["devices"]]
        self.reported: list[dict[str, Any]] = [device for device in devices if device["peak_live_bytes"]]
        simulated = [json.loads(path.read_text()) for path in ended.folder.glob("sim-*.json")]
        self.simulated = [each for each in simulated if any(device["peak_bytes"] for device in each["devices"])]

    def needs_bytes(self) -> list[int]:
        """Peaks of live memory, by PyTorch's own count."""
        return [said["peak_allocated"] for said in self.said]

    def held_bytes(self) -> int:
        """Peaks of physical memory that the simulated devices had given out, of all of them together."""
        return sum(device["peak_bytes"] for each in self.simulated for device in each["devices"])

    def steps(self) -> int:
        return int(self.said[0].get("steps") or 1)

    def calls(self, *names: str) -> int:
        """Calls of the runtime or driver, by the simulator's counters."""
        return sum(each["calls"].get(name, 0) for each in self.simulated for name in names)

    def virtual_ns(self) -> int:
        return sum(each["virtual_ns"] for each in self.simulated)

    def driver_ns(self) -> float:
        """Time in the driver's memory functions, as the library measured it; ours alone."""
        return sum(1e9 * device["driver_time_s"] for device in self.reported)

    def flushes(self) -> int:
        """How often the allocator had to stop, wait and give memory back: PyTorch's own count, or ours."""
        if self.mode.ours:
            return sum(int(device["retries"]) for device in self.reported)
        return sum(int(said["retries"] if "retries" in said else said["num_alloc_retries"]) for said in self.said)

    def ladder(self, rung: str) -> int:
        """How often a rung of our out-of-memory ladder was climbed."""
        return sum((device.get("ladder") or {}).get(rung, 0) for device in self.reported)


def build_folder() -> Path:
    """Where the native parts were built: BENCH_BUILD, GML_LIB_DIR, or what `make setup` made."""
    named = os.environ.get("BENCH_BUILD") or os.environ.get("GML_LIB_DIR")
    folder = Path(named) if named else ROOT / "build" / "dev"
    if not (folder / "libgml_pure.a").exists():
        raise SystemExit(f"bench: nothing is built in {folder}: make setup, or name a build folder with BENCH_BUILD")
    return folder


def compiler() -> str:
    """The C compiler of this machine."""
    found = shutil.which("cc") or shutil.which("gcc")
    if found is None:
        raise SystemExit("bench: a C compiler is needed")
    return found


def build_c(name: str, folder: Path) -> Path:
    """Compiles tests/bench/NAME.c over the pure part of the library."""
    out = folder / name
    parts = [str(BENCH / f"{name}.c"), str(build_folder() / "libgml_pure.a")]
    subprocess.run([compiler(), "-std=c11", "-O2", f"-I{ROOT / 'preload'}", *parts, "-o", str(out)], check=True)
    return out


def print_table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """A Markdown table, a row as soon as it is known."""
    print("| " + " | ".join(head) + " |\n|" + "---|" * len(head), flush=True)
    for row in rows:
        print("| " + " | ".join(row) + " |", flush=True)


def smallest_step(fits: Callable[[int], bool], most: int) -> int | None:
    """The smallest step in 0..most that fits, by doubling and bisection; None if none does.

    Takes fitting to be monotonic, as memory sizes nearly are.
    """
    low, high = -1, 0
    while not fits(high):
        if high >= most:
            return None
        low, high = high, min(most, max(1, 2 * high))
    while high - low > 1:
        middle = (low + high) // 2
        if fits(middle):
            high = middle
        else:
            low = middle
    return high
