# SPDX-License-Identifier: Apache-2.0
"""What a simulated device could not know about a run: for the report's part on it."""

from __future__ import annotations

import glob
import json
import os
from typing import Any

ALWAYS = (
    "workspaces of libraries such as cuBLAS and cuDNN",
    "the exact size of a context",
    "shapes that depend on computed values (masks, routing, sampling): they were those of all-zero data",
)

# PyTorch asks for these at every start and does without them.
HARMLESS = frozenset({"cuLogsRegisterCallback"})


def read_simulation(directory: str | None) -> dict[str, Any]:
    """`unfilled_calls` by name, from the files that processes leave when they end by themselves, and
    `unknown`, what no simulated run can tell."""
    calls: dict[str, int] = {}
    if directory is not None:
        for path in sorted(glob.glob(os.path.join(glob.escape(directory), "sim-*.json"))):
            try:
                with open(path, encoding="utf-8") as file:
                    unfilled = json.load(file)["unfilled"]
                for name, count in unfilled.items():
                    if name not in HARMLESS:
                        calls[name] = calls.get(name, 0) + int(count)
            except (OSError, ValueError, KeyError, TypeError, AttributeError):
                continue  # the process was killed while it wrote
    return {"unfilled_calls": calls, "unknown": list(ALWAYS)}


def unfilled_sentence(simulation: dict[str, Any]) -> str:
    """One sentence on the calls whose outputs nothing filled; empty when there was none."""
    calls = simulation["unfilled_calls"]
    if not calls:
        return ""
    names = sorted(calls, key=lambda name: (-calls[name], name))
    more = f" and {len(names) - 4} more" if len(names) > 4 else ""
    return f"not simulated, answered with an error: {', '.join(names[:4])}{more}"
