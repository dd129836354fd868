# SPDX-License-Identifier: Apache-2.0
"""--release-idle gives back what a phase of the program no longer needs, and nothing without it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = """
import time, torch
kept = torch.empty(8 << 20, dtype=torch.uint8, device="cuda")
big = torch.empty(512 << 20, dtype=torch.uint8, device="cuda")
del big
for _ in range(16):  # small traffic, far below what the first phase held
    small = torch.empty(4 << 20, dtype=torch.uint8, device="cuda")
    del small
    time.sleep(0.25)
"""


@pytest.mark.parametrize(("options", "low", "high"), [([], 520, 640), (["--release-idle", "1"], 8, 64)])
def test_idle_memory(tmp_path: Path, options: list[str], low: int, high: int) -> None:
    run = tmp_path / "run"
    command = [sys.executable, "-m", "gml_run", "-q", "--simulate", "t4", "-o", str(run), *options]
    environ = {name: value for name, value in os.environ.items() if not name.startswith("PYTORCH_")}
    done = subprocess.run([*command, sys.executable, "-c", SCRIPT], env=environ, capture_output=True, timeout=120)
    assert done.returncode == 0, done.stderr[-2000:]
    device = json.loads((run / "report.json").read_text())["processes"][0]["devices"][0]
    assert low << 20 <= device["reserved_bytes"] <= high << 20


@pytest.mark.parametrize("text", ["soon", "-1", "1.5"])
def test_a_bad_interval_is_refused(text: str) -> None:
    command = [sys.executable, "-m", "gml_run", "--release-idle", text, "true"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.returncode == 125 and done.stderr.count("\n") <= 2 and "--release-idle" in done.stderr
