# SPDX-License-Identifier: Apache-2.0
"""Instructions per call of the heap from 100 to 100,000 live blocks, counted by callgrind; prints a Markdown table.

    python tests/bench/flat.py [--operations N] [BLOCKS ...]

The heap runs over the model device. Each step frees a random block and allocates one of a random size; no step
needs the driver. Instructions are exact and do not depend on how busy the machine is.
"""

from __future__ import annotations

import argparse
import json
import re
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from common import build_c, print_table

BLOCKS = [100, 1_000, 10_000, 100_000]
ALIASES = 4  # mappings of each chunk in the second set of rows
COUNTED = ("gml_heap_alloc", "gml_heap_free")


@dataclass(frozen=True, slots=True)
class Cost:
    """Instructions of one call, and what the program said about its run."""

    alloc: float
    free: float
    said: dict[str, float]

    @property
    def pair(self) -> float:
        return self.alloc + self.free


def inclusive(profile: str, function: str) -> int:
    """Instructions inside a function and what it calls, from callgrind's file."""
    names: dict[str, str] = {}
    total, callee, is_call = 0, "", False
    for line in profile.splitlines():
        named = re.match(r"c?fn=\((\d+)\)(?: (.*))?", line)
        if named:
            names.setdefault(named[1], named[2] or "")
            callee = names[named[1]] if line.startswith("c") else ""
        elif line.startswith("calls="):
            is_call = True
        elif is_call:
            total += int(line.split()[1]) if callee == function else 0
            is_call = False
    return total


def measure(program: Path, blocks: int, aliases: int, operations: int) -> Cost:
    with tempfile.TemporaryDirectory(prefix="gml-flat-") as folder:
        out = Path(folder) / "callgrind"
        options = ["--quiet", f"--callgrind-out-file={out}", "--toggle-collect=measured"]
        command = ["valgrind", "--tool=callgrind", *options, str(program), str(blocks), str(operations), str(aliases)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise SystemExit(f"flat: {done.stderr}")
        profile = out.read_text()
    alloc, free = (inclusive(profile, function) / operations for function in COUNTED)
    return Cost(alloc, free, json.loads(done.stdout))


def spread(costs: Sequence[float]) -> float:
    """Half the distance of the extremes by their middle: 0.1 is "within ± 10 %"."""
    return (max(costs) - min(costs)) / (max(costs) + min(costs))


def main() -> None:
    parser = argparse.ArgumentParser(description="Counts instructions per call of the heap.")
    parser.add_argument("--operations", type=int, default=20_000)
    parser.add_argument("blocks", nargs="*", type=int, help=f"default: {BLOCKS}")
    arguments = parser.parse_args()
    if shutil.which("valgrind") is None:
        raise SystemExit("flat: needs valgrind")
    costs: dict[int, list[Cost]] = {}

    def rows():
        for aliases in (0, ALIASES):
            for blocks in arguments.blocks or BLOCKS:
                cost = measure(program, blocks, aliases, arguments.operations)
                costs.setdefault(aliases, []).append(cost)
                said = cost.said
                yield [
                    f"{blocks:,}",
                    f"{said['mappings_per_chunk']:.1f}",
                    f"{cost.alloc:.0f}",
                    f"{cost.free:.0f}",
                    f"{cost.pair:.0f}",
                    f"{said['driver_calls']:.0f}",
                    f"{100 * said['metadata_share']:.3f} %",
                ]

    with tempfile.TemporaryDirectory(prefix="gml-flat-") as folder:
        program = build_c("flat", Path(folder))
        head = ["live blocks", "mappings per chunk", "alloc", "free", "alloc + free", "driver calls", "metadata"]
        print_table(head, rows())
    for aliases, measured in costs.items():
        name = "stitched before" if aliases else "never stitched"
        parts = [
            f"{label} ± {100 * spread([getattr(cost, part) for cost in measured]):.1f} %"
            for part, label in (("alloc", "alloc"), ("free", "free"), ("pair", "both together"))
        ]
        print(f"\nSpread, {name}: {', '.join(parts)}.")


if __name__ == "__main__":
    main()
