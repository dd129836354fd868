# SPDX-License-Identifier: Apache-2.0
"""Waste, driver calls and virtual driver time of scripts under every allocator; prints a Markdown table.

    python tests/bench/waste.py [--more DIR] [SCRIPT ...]

needs    the smallest peak of live memory that any mode had: no allocator can do with less
held     most physical memory that the simulated device had given out, by its own count
waste    1 - needs / held
calls    the driver's memory calls of the whole run, by the simulator's counters (create, map, unmap, set access,
         release, plain allocations and frees), for each step
time     virtual driver time a step: ours as measured by the library; for PyTorch's allocators what the run's
         virtual time has beyond the same run of ours without its driver time (kernels and copies cost the same)
"""

from __future__ import annotations

import functools
import json
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from common import GIB, MEMORY, MODES, Run, chosen_scripts, flushes, measure, print_table, scripts_parser

MEMORY_CALLS = ("cuMemCreate", "cuMemRelease", "cuMemMap", "cuMemUnmap", "cuMemSetAccess", "cudaMalloc", "cudaFree")


def simulator(ended: Run) -> dict[str, Any]:
    """The simulator's own account of a run."""
    (path,) = ended.folder.glob("sim-*.json")
    return json.loads(path.read_text())


def run_all(script: Path, folder: Path) -> dict[str, Run]:
    """Every mode, two at a time: a simulated run is mostly one busy thread."""
    with ThreadPoolExecutor(2) as pool:
        runs = pool.map(lambda mode: measure(script, mode, folder / script.stem / mode.name.replace(" ", "")), MODES)
        named = {mode.name: ended for mode, ended in zip(MODES, runs, strict=True)}
    for name, ended in named.items():
        if ended.code != 0:
            raise SystemExit(f"waste: {script.stem} under {name} ended with {ended.code}: {ended.stderr[-500:]}")
    return named


def rows_of(script: Path, folder: Path) -> Iterator[list[str]]:
    runs = run_all(script, folder)
    needs = min(ended.said["peak_allocated"] for ended in runs.values())
    work_ns = simulator(runs[MEMORY.name])["virtual_ns"] - 1e9 * runs[MEMORY.name].device["driver_time_s"]
    for mode in MODES:
        ended = runs[mode.name]
        account, steps = simulator(ended), int(ended.said.get("steps") or 1)
        held = ended.true_peak_bytes
        calls = sum(account["calls"].get(name, 0) for name in MEMORY_CALLS)
        driver_ns = 1e9 * ended.device["driver_time_s"] if mode.ours else account["virtual_ns"] - work_ns
        yield [
            script.stem,
            mode.name,
            f"{needs / GIB:.2f}",
            f"{held / GIB:.2f}",
            f"{100 * (1 - needs / held):.2f} %",
            f"{calls / steps:,.0f}",
            f"{driver_ns / steps / 1e6:,.1f}",
            f"{100 * driver_ns / account['virtual_ns']:.1f} %",
            str(flushes(ended, mode)),
        ]


def main() -> None:
    arguments = scripts_parser("Waste and driver cost of scripts on the simulated GPU.").parse_args()
    head = ["script", "mode", "needs (GiB)", "held (GiB)", "waste", "driver calls / step", "driver ms / step"]
    with tempfile.TemporaryDirectory(prefix="gml-waste-") as name:
        rows = functools.partial(rows_of, folder=Path(name))
        table = (row for script in chosen_scripts(arguments) for row in rows(script))
        print_table([*head, "of virtual time", "flushes"], table)


if __name__ == "__main__":
    main()
