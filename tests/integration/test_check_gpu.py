# SPDX-License-Identifier: Apache-2.0
"""The checks for a real GPU: they say plainly when there is none, and are themselves rehearsed on a simulated one."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
CHECK = [sys.executable, str(ROOT / "tests" / "gpu" / "check_gpu.py")]


@pytest.mark.parametrize("command", [CHECK, [sys.executable, str(ROOT / "tests" / "gpu" / "find_gpu.py")]])
def test_without_a_gpu_one_line_says_so(command, tmp_path):
    done = subprocess.run(command, env={**os.environ, "CUDA_VISIBLE_DEVICES": ""}, capture_output=True, text=True)
    assert done.returncode == 1
    assert done.stdout == ""
    assert len(done.stderr.splitlines()) == 1
    assert done.stderr.startswith("check-gpu: no GPU here: ")


def test_a_rehearsal_is_marked_and_leaves_nothing_out(tmp_path):
    out = tmp_path / "result.json"
    options = ["--simulate", "h100", "-o", str(out), "--only", "contract,driver_costs"]
    done = subprocess.run([*CHECK, *options], capture_output=True, text=True)
    told = json.loads(out.read_text())
    assert told["simulated"] is True
    checks = told["checks"]
    assert checks["contract"]["status"] == checks["driver_costs"]["status"] == "ok", done.stdout
    assert len(checks["contract"]["result"]["tests"]) >= 16 and not checks["contract"]["result"]["allows_more"]
    assert checks["driver_costs"]["result"]["ns"]["create_per_chunk"]["p50"] == 193_000
    left_out = {name for name, result in checks.items() if result["status"] == "not run"}
    assert left_out == {"kernels_on_stitched_memory", "workload_gpt_varlen", "workload_lora_offload"}
    assert all(checks[name]["why"] for name in left_out)
    assert done.returncode == 1  # what was not run is not proven


def test_a_rehearsal_is_never_kept_as_a_result():
    done = subprocess.run([*CHECK, "--simulate", "h100"], capture_output=True, text=True)
    assert done.returncode == 2 and "needs -o" in done.stderr
