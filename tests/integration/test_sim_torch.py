# SPDX-License-Identifier: Apache-2.0
"""An unmodified PyTorch trains on the simulated GPU, under each of its own allocators."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from gml_run.native import find_native

PROGRAMS = Path(__file__).resolve().parents[1] / "programs"
BACKENDS = ["", "expandable_segments:True", "backend:cudaMallocAsync"]


def simulate(command: list[str], **variables: str) -> subprocess.CompletedProcess[str]:
    """Runs Python on the simulated device alone: nothing of ours serves its memory."""
    native = find_native()
    assert native is not None and native.simulated, "the simulated GPU is not built"
    environ = {name: value for name, value in os.environ.items() if not name.startswith(("GML_", "PYTORCH_"))}
    environ |= {"GML_SIM_PROFILE": "h100", "LD_PRELOAD": " ".join(native.simulated), **variables}
    return subprocess.run([sys.executable, *command], env=environ, capture_output=True, text=True, timeout=300)


def last_json(run: subprocess.CompletedProcess[str]) -> dict:
    assert run.returncode == 0, run.stderr[-3000:]
    return json.loads(run.stdout.splitlines()[-1])


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_training_script_under_each_allocator(backend: str) -> None:
    seen = last_json(simulate([str(PROGRAMS / "sim_train.py")], PYTORCH_CUDA_ALLOC_CONF=backend))
    assert seen["device"] == "NVIDIA H100 80GB HBM3"
    assert seen["total_mib"] == 81007
    assert 520 <= seen["total_mib"] - seen["free_mib"] <= 520 + seen["reserved_mib"] + 64
    assert 30 < seen["allocated_mib"] <= seen["reserved_mib"] < 4 * seen["allocated_mib"]
    assert seen["round_trip"] is True
    assert seen["nonzero"] == [0, 1] and seen["item"] == 0.0
    assert seen["graph"] == [64, 64]
    assert "200.00 GiB" in seen["error"]  # in PyTorch's own words


def test_adversarial_time_trains_as_well() -> None:
    seen = last_json(simulate([str(PROGRAMS / "sim_train.py")], GML_SIM_TIME="adversarial:11"))
    assert seen["round_trip"] is True and seen["optimizer_states"] > 20


def test_the_size_is_the_one_asked_for() -> None:
    code = "import torch; print(torch.cuda.mem_get_info()[1])"
    profile = simulate(["-c", code], GML_SIM_PROFILE="a100-40g")
    memory = simulate(["-c", code], GML_SIM_MEMORY=str(3 << 30))
    both = simulate(["-c", code], GML_SIM_MEMORY=str(3 << 30), GML_SIM_SIZE=str(5 << 30))
    assert [int(run.stdout) for run in (profile, memory, both)] == [42297786368, 3 << 30, 5 << 30]


def test_nothing_is_simulated_unless_asked_for() -> None:
    run = simulate(["-c", "import torch; print(torch.cuda.is_available())"], GML_SIM_PROFILE="")
    assert (run.returncode, run.stdout.strip()) == (0, "False"), run.stderr


COMPRESSED = "import torch\ntorch._cslt_compress(torch.zeros(64, 64, device='cuda', dtype=torch.half))\n"


def test_a_call_without_outputs_is_an_error_and_is_named(tmp_path: Path) -> None:
    run = simulate(["-c", COMPRESSED], GML_RUN_DIR=str(tmp_path))
    assert run.returncode == 1 and "not supported" in run.stderr.lower(), run.stderr
    (report,) = tmp_path.glob("sim-*.json")
    assert any(name.startswith("cusparseLt") for name in json.loads(report.read_text())["unfilled"])


def test_a_call_without_outputs_stops_a_strict_run() -> None:
    run = simulate(["-c", COMPRESSED], GML_SIM_STRICT="1")
    assert run.returncode == -6 and "is not simulated" in run.stderr, run.stderr


def test_convolutions_and_attention_take_virtual_time() -> None:
    """As many operations as the sizes say: forward once, and once for either gradient."""
    found = last_json(simulate([str(PROGRAMS / "virtual_time.py"), str(0.4 * 989.4)]))
    for name in ("conv2d", "groups", "transposed", "conv1d", "conv3d"):
        assert found[name] == pytest.approx([1, 2], abs=0.02), name
    assert found["attention"] == pytest.approx([1, 2.5], abs=0.02)
