# SPDX-License-Identifier: Apache-2.0
"""The matrix of GMLake's evaluation on one simulated A100-80G: reserved and utilisation; prints a Markdown table.

    python tests/bench/paper.py [--models NAME,...] [--strategies N,R,...] [--steps N]

Utilisation is the run's own peak of live memory by its peak of reserved memory, as the paper defines it; reserved is
what the simulated device had given out, by its own count. The paper's figures are read off its plots, on real
A100s with other batch sizes and other ranks, so compare the ratios and not the gigabytes.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Iterator
from pathlib import Path

from common import BENCH, EXPANDABLE, GIB, MEMORY, NATIVE, Mode, print_table, python, run

MODELS = ("gpt2", "opt-1.3b", "opt-13b", "gpt-neox-20b")
STRATEGIES = ("N", "R", "LR", "RO", "LRO")
MODES = (NATIVE, EXPANDABLE, MEMORY)
# GMLake (ASPLOS 2024): GB reserved / utilisation, PyTorch -> GMLake. GPT-2 ran under Colossal-AI.
PUBLISHED = {
    ("opt-1.3b", "LRO"): "59 / .63 → 43 / .88",
    ("gpt-neox-20b", "LRO"): "71 / .71 → 54 / .94",
    ("gpt2", "N"): "75 / .53 → 50 / .80 (Colossal-AI)",
    ("opt-13b", "N"): "46 / .69 → 38 / .84 (16 GPUs, strategy not said)",
}


def cell(model: str, strategy: str, mode: Mode, steps: int, folder: Path) -> str:
    command = python(BENCH / "paper_model.py", model, strategy, str(steps))
    ended = run(["-q", "--simulate", "a100-80g", *mode.options], command, folder, timeout=1200)
    if ended.code != 0:
        if "OutOfMemoryError" not in ended.stderr:
            raise SystemExit(f"paper: {model} {strategy} under {mode.name}: {ended.stderr[-800:]}")
        return "out of memory"
    held = ended.true_peak_bytes
    return f"{held / GIB:.1f} / {ended.said['peak_allocated'] / held:.3f}"


def rows(models: list[str], strategies: list[str], steps: int) -> Iterator[list[str]]:
    for model in models:
        for strategy in strategies:
            with tempfile.TemporaryDirectory(prefix="gml-paper-") as name:
                cells = [cell(model, strategy, mode, steps, Path(name) / str(i)) for i, mode in enumerate(MODES)]
            yield [model, strategy, *cells, PUBLISHED.get((model, strategy), "")]


def main() -> None:
    parser = argparse.ArgumentParser(description="The matrix of GMLake's evaluation on a simulated A100-80G.")
    parser.add_argument("--models", default=",".join(MODELS))
    parser.add_argument("--strategies", default=",".join(STRATEGIES))
    parser.add_argument("--steps", type=int, default=8)
    arguments = parser.parse_args()
    head = ["model", "strategy", *(f"{mode.name}: GiB / utilisation" for mode in MODES)]
    wanted = rows(arguments.models.split(","), arguments.strategies.split(","), arguments.steps)
    print_table([*head, "published: GB / utilisation, PyTorch → GMLake"], wanted)


if __name__ == "__main__":
    main()
