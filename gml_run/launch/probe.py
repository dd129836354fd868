# SPDX-License-Identifier: Apache-2.0
"""Runs a command under gml-run once more, on a device of a given size, and says whether it fitted."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from gml_run.errors import GmlError


@dataclass(frozen=True, slots=True)
class Outcome:
    """How one try ended. Sizes are bytes, 0 when not known."""

    fitted: bool
    peak_live: int
    peak_reserved: int
    outside: int
    retries: int
    directory: str


def probe(
    command: Sequence[str], directory: str, simulation: str | None, options: Sequence[str], allocator: str
) -> Outcome:
    """One run. Raises GmlError when the command failed for another reason than memory."""
    words = [sys.executable, "-m", "gml_run", "-q", "-o", directory, "--allocator", allocator, *options]
    if simulation is not None:
        words += ["--simulate", simulation]
    done = subprocess.run([*words, "--", *command], stdin=subprocess.DEVNULL, capture_output=True, check=False)
    try:
        with open(os.path.join(directory, "report.json"), encoding="utf-8") as file:
            report = json.load(file)
    except (OSError, ValueError):
        last = done.stderr.decode(errors="replace").strip().splitlines()[-1:] or ["no output"]
        raise GmlError(f"a try left no report: {last[0]}", " ".join(command)) from None
    outcome = _outcome(report, done.returncode == 0, directory)
    if not outcome.fitted and not report.get("ooms"):
        tail = done.stderr.decode(errors="replace").strip().splitlines()[-1:] or [""]
        raise GmlError(
            f"it ended with {done.returncode}, and not for want of memory: {tail[0][:200]}",
            f"a try with {allocator} on {simulation or 'this GPU'}",
            "run the command once under gml-run to see why",
        )
    return outcome


def _outcome(report: dict[str, Any], fitted: bool, directory: str) -> Outcome:
    devices = [device for process in report.get("processes", []) for device in process.get("devices", [])]
    fullest = max(devices, key=lambda device: device["peak_reserved_bytes"], default=None)
    if fullest is None:
        return Outcome(fitted, 0, 0, 0, 0, directory)
    reserved = fullest["peak_reserved_bytes"]
    used = report.get("device", {}).get("peak_used_bytes", 0)
    return Outcome(
        fitted, fullest["peak_live_bytes"], reserved, max(0, used - reserved), fullest.get("retries", 0), directory
    )
