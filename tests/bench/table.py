# SPDX-License-Identifier: Apache-2.0
"""Measures scripts under PyTorch's two allocators and under gml-run, on the simulated GPU; prints a Markdown table.

    python tests/bench/table.py [--fit] [SCRIPT ...]      # default: every script in tests/programs/workloads

needs    the smallest peak of live memory that any of the three had: no allocator can do with less
held     most physical memory that the simulated device had given out, by its own count, on 80 GB; and the part
         of it that was not needed
--fit    also the smallest device on which the script finishes, as a multiple of what it needs with the CUDA
         context, and how often the allocator had to stop, wait for the device and give memory back (flushes)
"""

from __future__ import annotations

import argparse
import functools
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "support"))

from runs import PROGRAMS, Run, at_once, python, run

ALLOCATORS = {
    "native": ["--allocator", "native"],
    "expandable_segments": ["--allocator", "expandable"],
    "gml-run": ["--goal", "memory"],
}
CONTEXT_BYTES = 520 << 20  # of the h100 profile
STEPS = [1.0, 1.005, 1.01, 1.015, 1.02, 1.03, 1.04, 1.06, 1.08, 1.1, 1.15, 1.2, 1.25, 1.3, 1.4, 1.5, 1.75, 2.0]
GIB = 1 << 30


def measure(script: Path, allocator: str, folder: Path, device: str = "h100") -> Run:
    options = ["-q", "--simulate", device, *ALLOCATORS[allocator]]
    return run(options, python(script), folder / f"{script.stem}-{allocator}-{device}".replace(":", "-"))


def flushes(ended: Run, allocator: str) -> int:
    """Emergency stops: PyTorch's own count, or ours."""
    if allocator == "gml-run":
        return int(ended.device["retries"])
    said = ended.said
    return int(said["retries"] if "retries" in said else said["num_alloc_retries"])


def smallest(script: Path, allocator: str, needs: int, folder: Path) -> str:
    """The first step of device size on which the script finishes."""
    floor = needs + CONTEXT_BYTES
    for step in STEPS:
        device = f"h100:{-(-int(floor * step) // (1 << 20))}M"
        ended = measure(script, allocator, folder, device)
        if ended.code == 0:
            return f"{step:.3f} ×, {flushes(ended, allocator)}"
    return f"> {STEPS[-1]} ×"


def row(script: Path, folder: Path, fit: bool) -> list[str]:
    runs = at_once({name: functools.partial(measure, script, name, folder) for name in ALLOCATORS})
    failed = {name: ended.stderr[-500:] for name, ended in runs.items() if ended.code != 0}
    if failed:
        raise SystemExit(f"{script}: {failed}")
    needs = min(ended.said["peak_allocated"] for ended in runs.values())
    cells = [script.stem, f"{needs / GIB:.2f}"]
    for ended in runs.values():
        held = ended.true_peak_bytes
        cells.append(f"{held / GIB:.2f}, {100 * (1 - needs / held):.1f} %")
    if fit:
        cells += [smallest(script, name, needs, folder) for name in ALLOCATORS]
    return cells


def main() -> None:
    parser = argparse.ArgumentParser(description="Measures workloads on the simulated GPU.")
    parser.add_argument("--fit", action="store_true", help="find the smallest device for each as well")
    parser.add_argument("scripts", nargs="*", type=Path, metavar="SCRIPT")
    arguments = parser.parse_args()
    workloads = sorted(path for path in (PROGRAMS / "workloads").glob("*.py") if path.stem != "peaks")
    head = ["script", "needs (GiB)", *(f"{name}: held, waste" for name in ALLOCATORS)]
    if arguments.fit:
        head += [f"{name}: smallest device, flushes" for name in ALLOCATORS]
    print("| " + " | ".join(head) + " |\n|" + "---|" * len(head), flush=True)
    with tempfile.TemporaryDirectory(prefix="gml-table-") as folder:
        for script in arguments.scripts or workloads:
            print("| " + " | ".join(row(script, Path(folder), arguments.fit)) + " |", flush=True)


if __name__ == "__main__":
    main()
