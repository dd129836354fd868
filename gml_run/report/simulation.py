# SPDX-License-Identifier: Apache-2.0
"""What a simulated device could not know about a run: for the report's part on it."""

from __future__ import annotations

import glob
import json
import os
from collections import Counter
from typing import Any

ALWAYS = ("workspaces of libraries such as cuBLAS and cuDNN", "the exact size of a context")

# PyTorch asks for these at every start and does without them.
HARMLESS = frozenset({"cuLogsRegisterCallback"})


def read_simulation(directory: str | None) -> dict[str, Any]:
    """What the files say that processes leave when they end by themselves, summed over the processes:
    `unfilled_calls` by name; `data_dependent`, launches of kernels whose results have a size that depends on data;
    `value_reads`, unknown values that the program read, by their bytes; `flags`, how many of them were answered
    with yes to end a loop, after how many reads, and how many checks were taken to hold. `unknown` is what the run
    cannot tell."""
    calls: Counter[str] = Counter()
    shapes: Counter[str] = Counter()
    reads: Counter[str] = Counter()
    flags = {"after": 0, "answered": 0, "held": 0}
    for _, content in _contents(directory):
        try:
            calls.update({name: int(n) for name, n in content["unfilled"].items() if name not in HARMLESS})
            shapes.update({name: int(n) for name, n in content["data_dependent"].items()})
            reads.update({size: int(n) for size, n in content["reads"].items()})
            flags["after"] = int(content["flags"]["after"])
            flags["answered"] += int(content["flags"]["answered"])
            flags["held"] += int(content["flags"]["held"])
        except (ValueError, KeyError, TypeError, AttributeError):
            continue
    found: dict[str, Any] = {
        "unfilled_calls": dict(calls),
        "data_dependent": dict(shapes),
        "value_reads": dict(reads),
        "flags": flags,
    }
    sentence = shapes_sentence(found)
    return found | {"unknown": [*ALWAYS, *([sentence] if sentence else [])]}


def _contents(directory: str | None) -> list[tuple[int, Any]]:
    """Process id and content of each file that is whole."""
    contents = []
    for path in sorted(glob.glob(os.path.join(glob.escape(directory), "sim-*.json"))) if directory else ():
        try:
            with open(path, encoding="utf-8") as file:
                pid = int(os.path.basename(path)[len("sim-") : -len(".json")])
                contents.append((pid, json.load(file)))
        except (OSError, ValueError):
            continue  # the process was killed while it wrote
    return contents


def simulation_sentences(simulation: dict[str, Any]) -> list[str]:
    """What the reader should know about this run: nothing when its results could decide nothing."""
    sentences = (
        unfilled_sentence(simulation),
        shapes_sentence(simulation),
        flags_sentence(simulation),
        checks_sentence(simulation),
    )
    return [sentence for sentence in sentences if sentence]


def foreign_bytes(directory: str | None) -> dict[int, int | None]:
    """Process id -> what the simulator had held by "another process" (a fault on demand; else nothing). A process
    that was killed leaves no figure."""
    found: dict[int, int | None] = {}
    for pid, content in _contents(directory):
        try:
            found[pid] = max((int(device["foreign_bytes"]) for device in content["devices"]), default=0)
        except (ValueError, KeyError, TypeError):
            continue
    return found


def unfilled_sentence(simulation: dict[str, Any]) -> str:
    """One sentence on the calls whose outputs nothing filled; empty when there was none."""
    calls = simulation["unfilled_calls"]
    if not calls:
        return ""
    names = sorted(calls, key=lambda name: (-calls[name], name))
    more = f" and {len(names) - 4} more" if len(names) > 4 else ""
    return f"not simulated, answered with an error: {', '.join(names[:4])}{more}"


def shapes_sentence(simulation: dict[str, Any]) -> str:
    """One sentence on shapes that depended on data; empty when there was none."""
    shapes = simulation.get("data_dependent", {})
    if not shapes:
        return ""
    names = sorted(shapes, key=lambda name: (-shapes[name], name))
    seen = ", ".join(f"{name.replace('_', ' ')} {_times(shapes[name])}" for name in names)
    return f"shapes that depended on data ({seen}) were those of all-zero data"


def flags_sentence(simulation: dict[str, Any]) -> str:
    """One sentence on computed flags that were answered with yes; empty when there was none."""
    flags = simulation.get("flags", {"answered": 0})
    if not flags["answered"]:
        return ""
    after = flags["after"]
    return (
        f"loops on a computed flag ended {_times(flags['answered'])}, by a yes at the {after:,}th read in a row; "
        "lengths and peaks follow from that, GML_SIM_FLAG_AFTER=N sets at which"
    )


def checks_sentence(simulation: dict[str, Any]) -> str:
    """One sentence on checks of unknown values that were taken to hold; empty when there was none."""
    held = simulation.get("flags", {}).get("held", 0)
    return f"checks of unknown values were taken to hold {_times(held)}" if held else ""


def _times(count: int) -> str:
    return "once" if count == 1 else f"{count:,} times"
