# SPDX-License-Identifier: Apache-2.0
"""The matrix of GMLake's evaluation on simulated A100-80G: reserved and utilisation; prints a Markdown table.

    python tests/bench/paper.py [--models NAME,...] [--strategies N,R,...] [--ranks N,...] [--steps N] [--ours]

Utilisation is the run's own peak of live memory by its peak of reserved memory, as the paper defines it; reserved is
what the simulated device had given out, by its own count; of several ranks, one to a device, the mean. The paper's
figures are read off its plots, on real A100s with other batch sizes and other ranks, so compare the ratios and not
the gigabytes.
"""

from __future__ import annotations

import argparse
import itertools
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from common import BENCH, EXPANDABLE, GIB, MEMORY, NATIVE, Mode, Ranks, print_table, python, run

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


def command_of(ranks: int, *arguments: str) -> list[str]:
    script = BENCH / "paper_model.py"
    if ranks == 1:
        return python(script, *arguments)
    torchrun = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(ranks)]
    return [sys.executable, *torchrun, str(script), *arguments]


def cell(model: str, strategy: str, ranks: int, mode: Mode, steps: int, folder: Path) -> str:
    command, variables = command_of(ranks, model, strategy, str(steps)), {"GML_SIM_DEVICES": str(ranks)}
    options = ["-q", "--simulate", "a100-80g", *mode.options]
    ended = run(options, command, folder, timeout=1200, variables=variables)
    if ended.code != 0:
        if "OutOfMemoryError" not in ended.stderr:
            raise SystemExit(f"paper: {model} {strategy} under {mode.name}: {ended.stderr[-800:]}")
        return "out of memory"
    figures = Ranks(ended, mode)
    held = figures.held_bytes()
    return f"{held / ranks / GIB:.1f} / {sum(figures.needs_bytes()) / held:.3f}"


def rows(arguments: argparse.Namespace, modes: list[Mode]) -> Iterator[list[str]]:
    wanted = (arguments.models.split(","), arguments.strategies.split(","), map(int, arguments.ranks.split(",")))
    for model, strategy, count in itertools.product(*wanted):
        with tempfile.TemporaryDirectory(prefix="gml-paper-") as name:
            places = [(mode, Path(name) / str(i)) for i, mode in enumerate(modes)]
            cells = [cell(model, strategy, count, mode, arguments.steps, place) for mode, place in places]
        yield [model, strategy, str(count), *cells, PUBLISHED.get((model, strategy), "")]


def main() -> None:
    parser = argparse.ArgumentParser(description="The matrix of GMLake's evaluation on simulated A100-80G.")
    parser.add_argument("--models", default=",".join(MODELS))
    parser.add_argument("--strategies", default=",".join(STRATEGIES))
    parser.add_argument("--ranks", default="1", help="numbers of ranks, such as 1,4,8 (1)")
    parser.add_argument("--steps", type=int, default=8)
    parser.add_argument("--ours", action="store_true", help="run ours alone")
    arguments = parser.parse_args()
    modes = [mode for mode in MODES if mode.ours or not arguments.ours]
    head = ["model", "strategy", "ranks", *(f"{mode.name}: GiB / utilisation" for mode in modes)]
    print_table([*head, "published: GB / utilisation, PyTorch → GMLake"], rows(arguments, modes))


if __name__ == "__main__":
    main()
