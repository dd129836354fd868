# SPDX-License-Identifier: Apache-2.0
"""Waste, driver calls and virtual driver time of scripts under every allocator; prints a Markdown table.

    python tests/bench/waste.py [--ours | --theirs] [--more DIR] [SCRIPT ...]

needs    the smallest peak of live memory that any mode had: no allocator can do with less
held     most physical memory that the simulated device had given out, by its own count; ranks are added up
waste    1 - needs / held
calls    the driver's memory calls of the whole run, by the simulator's counters (create, map, unmap, set access,
         release, plain allocations and frees), for each step; and those that map a chunk, alone
time     virtual driver time a step: ours as measured by the library; for PyTorch's allocators what the run's
         virtual time has beyond the same run of ours without its driver time (kernels and copies cost the same)
"""

from __future__ import annotations

import functools
import tempfile
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from common import GIB, MEMORY, MODES, Mode, Ranks, chosen_scripts, devices_of, measure, print_table, scripts_parser

MEMORY_CALLS = ("cuMemCreate", "cuMemRelease", "cuMemMap", "cuMemUnmap", "cuMemSetAccess", "cudaMalloc", "cudaFree")


def run_all(script: Path, modes: Sequence[Mode], folder: Path) -> dict[str, Ranks]:
    """Every mode, two at a time: a simulated run is mostly one busy thread."""
    with ThreadPoolExecutor(1 if devices_of(script) > 1 else 2) as pool:
        runs = pool.map(lambda mode: measure(script, mode, folder / script.stem / mode.name.replace(" ", "")), modes)
        named = {mode.name: ended for mode, ended in zip(modes, runs, strict=True)}
    for name, ended in named.items():
        if ended.code != 0:
            raise SystemExit(f"waste: {script.stem} under {name} ended with {ended.code}: {ended.stderr[-500:]}")
    return {mode.name: Ranks(named[mode.name], mode) for mode in modes}


def rows_of(script: Path, modes: Sequence[Mode], folder: Path) -> Iterator[list[str]]:
    runs = run_all(script, modes, folder)
    needs = min(sum(ranks.needs_bytes()) for ranks in runs.values())
    ours = runs.get(MEMORY.name)
    work_ns = ours.virtual_ns() - ours.driver_ns() if ours else None
    for mode in modes:
        ranks = runs[mode.name]
        held, steps = ranks.held_bytes(), ranks.steps()
        driver_ns = ranks.driver_ns() if mode.ours else ranks.virtual_ns() - work_ns if work_ns else None
        yield [
            script.stem,
            mode.name,
            f"{needs / GIB:.2f}",
            f"{held / GIB:.2f}",
            f"{100 * (1 - needs / held):.2f} %",
            f"{ranks.calls(*MEMORY_CALLS) / steps:,.0f}",
            f"{ranks.calls('cuMemMap') / steps:,.0f}",
            f"{driver_ns / steps / 1e6:,.1f}" if driver_ns is not None else "",
            f"{100 * driver_ns / ranks.virtual_ns():.1f} %" if driver_ns is not None else "",
            str(ranks.flushes()),
        ]


def main() -> None:
    parser = scripts_parser("Waste and driver cost of scripts on the simulated GPU.")
    only = parser.add_mutually_exclusive_group()
    only.add_argument("--ours", action="store_true", help="run ours alone; needs is then the smallest of its peaks")
    only.add_argument(
        "--theirs", action="store_true", help="run PyTorch's allocators alone, without their driver time"
    )
    arguments = parser.parse_args()
    modes = [mode for mode in MODES if not (arguments.theirs if mode.ours else arguments.ours)]
    head = ["script", "mode", "needs (GiB)", "held (GiB)", "waste", "driver calls / step", "maps / step"]
    with tempfile.TemporaryDirectory(prefix="gml-waste-") as name:
        rows = functools.partial(rows_of, modes=modes, folder=Path(name))
        table = (row for script in chosen_scripts(arguments) for row in rows(script))
        print_table([*head, "driver ms / step", "of virtual time", "flushes"], table)


if __name__ == "__main__":
    main()
