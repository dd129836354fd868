# SPDX-License-Identifier: Apache-2.0
"""The smallest simulated device on which each script finishes, and the flushes it took; prints a Markdown table.

    python tests/bench/fit.py [--parts N] [--goal memory|balanced] [--ours] [--more DIR] [SCRIPT ...]

The floor is the smallest peak of live memory that any mode had, plus the CUDA context. Sizes tried are the floor
plus whole parts of it (1/64 by default), by doubling and bisection. A flush is an emergency stop: wait for the
device, give memory back, try again; for ours they are counted by rung of the out-of-memory ladder. A script of
several ranks gets devices of one size, by the rank that needs most, and its flushes are those of all ranks.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

from common import (
    BALANCED,
    EXPANDABLE,
    GIB,
    MEMORY,
    MIB,
    NATIVE,
    Mode,
    Ranks,
    Run,
    chosen_scripts,
    measure,
    print_table,
    scripts_parser,
    smallest_step,
)

CONTEXT_BYTES = 520 * MIB  # of the h100 profile
RUNGS = ("events", "drain", "cross_stream", "release", "forward")


class Fit:
    """Runs of one script under one mode on devices of several sizes."""

    def __init__(self, script: Path, mode: Mode, floor: int, parts: int, folder: Path):
        self.script, self.mode, self.floor, self.parts, self.folder = script, mode, floor, parts, folder
        self.ended: dict[int, Run] = {}

    def fits(self, step: int) -> bool:
        mib = -(-(self.floor + step * self.floor // self.parts) // MIB)
        place = self.folder / f"{self.script.stem}-{self.mode.name.replace(' ', '')}-{step}"
        self.ended[step] = measure(self.script, self.mode, place, f"h100:{mib}M")
        return self.ended[step].code == 0

    def cell(self) -> str:
        step = smallest_step(self.fits, self.parts)
        if step is None:
            return "more than 2 × the floor"
        ranks = Ranks(self.ended[step], self.mode)
        return f"{1 + step / self.parts:.3f} ×, {ranks.flushes()} flushes{rungs(ranks)}"


def rungs(ranks: Ranks) -> str:
    """The rungs of the ladder that were climbed, of ours."""
    climbed = [f"{name.replace('_', ' ')} {ranks.ladder(name)}" for name in RUNGS if ranks.ladder(name)]
    return f" ({', '.join(climbed)})" if ranks.mode.ours and climbed else ""


def row(script: Path, modes: tuple[Mode, ...], parts: int, folder: Path) -> list[str]:
    roomy = [measure(script, mode, folder / f"{script.stem}-{mode.name.replace(' ', '')}") for mode in modes]
    for mode, ended in zip(modes, roomy, strict=True):
        if ended.code != 0:
            raise SystemExit(f"fit: {script.stem} under {mode.name} ended with {ended.code}: {ended.stderr[-500:]}")
    needs = min(max(Ranks(ended, mode).needs_bytes()) for mode, ended in zip(modes, roomy, strict=True))
    floor = needs + CONTEXT_BYTES
    return [script.stem, f"{floor / GIB:.2f}", *(Fit(script, mode, floor, parts, folder).cell() for mode in modes)]


def main() -> None:
    parser = scripts_parser("The smallest simulated device on which each script finishes.")
    parser.add_argument("--parts", type=int, default=64, help="resolution: parts of the floor (64)")
    parser.add_argument("--goal", choices=["memory", "balanced"], default="memory", help="of ours (memory)")
    parser.add_argument("--ours", action="store_true", help="run ours alone; the floor is then by its own peak")
    arguments = parser.parse_args()
    ours = MEMORY if arguments.goal == "memory" else BALANCED
    modes = (ours,) if arguments.ours else (NATIVE, EXPANDABLE, ours)

    def rows() -> Iterator[list[str]]:
        for script in chosen_scripts(arguments):
            with tempfile.TemporaryDirectory(prefix="gml-fit-") as folder:
                yield row(script, modes, arguments.parts, Path(folder))

    print_table(["script", "floor (GiB)", *(mode.name for mode in modes)], rows())


if __name__ == "__main__":
    main()
