# SPDX-License-Identifier: Apache-2.0
"""Measures what gml-run adds to a program that never calls CUDA; prints a Markdown table.

    python tests/bench/startup.py [ROUNDS]

Each pair of commands runs in turn, so that a change of the machine's load meets both; the figures are medians,
and the smallest times in brackets.
"""

from __future__ import annotations

import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "support"))

from runs import GML_RUN, environment
from shim import preload


def seconds(command: list[str], environ: dict[str, str], folder: str) -> float:
    start = time.perf_counter()
    subprocess.run(command, env=environ, cwd=folder, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return time.perf_counter() - start


def compare(rounds: int, plain: tuple, ours: tuple, folder: str) -> str:
    pairs = [(seconds(*plain, folder), seconds(*ours, folder)) for _ in range(rounds)]
    medians = [statistics.median(times) for times in zip(*pairs, strict=True)]
    least = [min(times) for times in zip(*pairs, strict=True)]
    cells = [f"{1e3 * median:.2f} ({1e3 * best:.2f})" for median, best in zip(medians, least, strict=True)]
    return f"{cells[0]} | {cells[1]} | {1e3 * (medians[1] - medians[0]):.2f} ({1e3 * (least[1] - least[0]):.2f})"


def main() -> None:
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 200
    plain = environment()
    preloaded = {**plain, "LD_PRELOAD": preload(simulate=False), "GML_ALLOCATOR": "vms"}
    print("| program | without (ms) | with (ms) | added (ms) |\n|---|---|---|---|")
    with tempfile.TemporaryDirectory() as folder:
        shell = ["bash", "-c", ":"]
        for name, command in (("true", ["/bin/true"]), ("bash -c :", shell)):
            row = compare(rounds, (command, plain), (command, preloaded), folder)
            print(f"| `{name}`, libgml.so preloaded | {row} |", flush=True)
        simulated = [*GML_RUN, "-q", "--simulate", "h100", "true"]
        row = compare(max(10, rounds // 10), (["/bin/true"], plain), (simulated, plain), folder)
        print(f"| `gml-run -q --simulate h100 true` | {row} |")
        row = compare(max(10, rounds // 10), (["/bin/true"], plain), ([*GML_RUN, "-q", "true"], plain), folder)
        print(f"| `gml-run -q true` | {row} |")


if __name__ == "__main__":
    main()
