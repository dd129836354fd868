# SPDX-License-Identifier: Apache-2.0
"""Allocation traces for the benchmarks: recorded ones from a folder, or one of a training loop made here.

A line an event: "A id bytes stream" allocates, "F id stream" frees; stream 0 is the default one.
"""

from __future__ import annotations

import lzma
import os
import random
from pathlib import Path


def traces(folder: Path) -> list[Path]:
    """Plain text traces, unpacked into `folder`: those of BENCH_TRACES, else a made one."""
    recorded = os.environ.get("BENCH_TRACES")
    if not recorded:
        out = folder / "made_gpt_varlen.tr"
        out.write_text("".join(training(steps=40)))
        return [out]
    found = []
    for packed in sorted(Path(recorded).glob("*.tr*")):
        out = folder / packed.name.removesuffix(".xz")
        out.write_bytes(lzma.decompress(packed.read_bytes()) if packed.suffix == ".xz" else packed.read_bytes())
        found.append(out)
    if not found:
        raise SystemExit(f"bench: no *.tr or *.tr.xz in {recorded}")
    return found


class _Recorder:
    def __init__(self):
        self.lines: list[str] = []
        self.next_id = 0

    def take(self, bytes_: int) -> int:
        self.lines.append(f"A {self.next_id} {bytes_} 0\n")
        self.next_id += 1
        return self.next_id - 1

    def give(self, block: int) -> None:
        self.lines.append(f"F {block} 0\n")


def training(steps: int, layers: int = 24, width: int = 1024, batch: int = 8, seed: int = 1) -> list[str]:
    """What training a GPT on random lengths asks for, in outline: weights, activations, gradients, small pieces."""
    lengths, out = random.Random(seed), _Recorder()
    weights = [4 * width * width * n for _ in range(layers) for n in (3, 1, 4, 4)]
    for _ in range(3):  # weights and two moments
        for bytes_ in weights:
            out.take(bytes_)
    for _ in range(steps):
        tokens = batch * max(32, min(1024, int(lengths.lognormvariate(6.0, 0.7))))
        kept: list[list[int]] = []
        for _ in range(layers):
            saved = []
            for factor in (2, 6, 2, 2, 8, 8, 2):
                short = [out.take(512 * (1 + lengths.randrange(8))) for _ in range(3)]
                saved.append(out.take(tokens * width * factor))
                for block in short:
                    out.give(block)
            kept.append(saved)
        gradients = []
        for layer in reversed(range(layers)):
            work = [out.take(tokens * width * factor) for factor in (4, 2)]
            gradients += [out.take(bytes_) for bytes_ in weights[4 * layer : 4 * layer + 4]]
            for block in kept[layer] + work:
                out.give(block)
        for block in gradients:
            out.give(block)
    return out.lines
