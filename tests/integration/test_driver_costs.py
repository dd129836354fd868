# SPDX-License-Identifier: Apache-2.0
"""Costs that are given for driver calls decide how often memory is stitched; a simulated device takes as long."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

PROGRAM = Path(__file__).resolve().parents[1] / "programs" / "stitch.py"


def run(folder: Path, *options: str, **variables: str) -> tuple[dict[str, Any], float]:
    """The device's part of the report, and the virtual seconds of the run."""
    environ = {name: value for name, value in os.environ.items() if not name.startswith("GML_")} | variables
    words = [sys.executable, "-m", "gml_run", "-q", "--simulate", "h100", "-o", str(folder), *options]
    words += [sys.executable, str(PROGRAM)]
    done = subprocess.run(words, env=environ, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    report = json.loads((folder / "report.json").read_text())
    (simulated,) = folder.glob("sim-*.json")
    return report["processes"][0]["devices"][0], json.loads(simulated.read_text())["virtual_ns"] / 1e9


def mapped(device: dict[str, Any]) -> int:
    return device["placements"]["stitch"] + device["placements"]["extend"]


def test_dear_calls_stitch_less(tmp_path: Path) -> None:
    usual, usual_s = run(tmp_path / "usual")
    dear, dear_s = run(tmp_path / "dear", "--driver-costs", "set_access=100ms")
    assert mapped(usual) >= 20 and mapped(dear) < mapped(usual) - 4
    assert dear["peak_reserved_bytes"] > 1.2 * usual["peak_reserved_bytes"]
    assert usual_s < 1 < 20 < dear_s and dear["driver_time_s"] > 20


def test_only_the_goal_balanced_counts(tmp_path: Path) -> None:
    dear, _ = run(tmp_path / "memory", "--goal", "memory", GML_DRIVER_COSTS="set_access=100ms")
    assert mapped(dear) >= 20


def test_a_bad_list_is_one_line() -> None:
    words = [sys.executable, "-m", "gml_run", "--driver-costs", "map=5", "true"]
    done = subprocess.run(words, capture_output=True, text=True, timeout=60)
    assert done.returncode == 125 and len(done.stderr.splitlines()) == 1
    assert "map=5" in done.stderr and "set_access" in done.stderr and "us" in done.stderr
