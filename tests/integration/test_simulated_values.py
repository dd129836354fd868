# SPDX-License-Identifier: Apache-2.0
"""Small values on the simulated device: what is known is computed, exchanged between ranks, and steers programs."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

PROGRAMS = Path(__file__).resolve().parents[1] / "programs" / "frameworks"


def gml(run: Path, *words: str, **variables: str) -> tuple[list[str], dict]:
    environ = {name: value for name, value in os.environ.items() if not name.startswith(("PYTORCH_", "TRITON_"))}
    command = [sys.executable, "-m", "gml_run", "-q", "--simulate", "h100", "-o", str(run), sys.executable, *words]
    done = subprocess.run(command, env=environ | variables, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout.splitlines(), json.loads((run / "report.json").read_text())


def test_small_tensors_are_computed_as_on_the_cpu(tmp_path: Path) -> None:
    out, _ = gml(tmp_path / "run", str(PROGRAMS / "small_values.py"))
    assert out[:-1] == [] and int(out[-1].split()[1]) > 900


def test_generate_ends_and_checks_hold(tmp_path: Path) -> None:
    out, report = gml(tmp_path / "run", str(PROGRAMS / "generate.py"), GML_SIM_FLAG_AFTER="20", GML_SIM_STRICT="1")
    assert out[:5] == ["tokens 9"] * 5
    assert out[5:] == ["rounds 21", "steps 60", "checks True True False", "refused", "found 0 0"]
    simulation = report["simulation"]
    assert simulation["flags"]["after"] == 20 and simulation["flags"]["answered"] == 1
    assert simulation["flags"]["held"] > 60 and int(simulation["value_reads"]["1"]) >= 140
    assert simulation["data_dependent"]["nonzero"] >= 2
    command = [sys.executable, "-m", "gml_run", "report", str(tmp_path / "run")]
    summary = " ".join(subprocess.run(command, capture_output=True, text=True, timeout=60).stdout.split())
    assert "GML_SIM_FLAG_AFTER" in summary and "nonzero" in summary and "taken to hold" in summary


def test_lengths_outlive_kernels(tmp_path: Path) -> None:
    out, _ = gml(tmp_path / "run", str(PROGRAMS / "lengths.py"))
    assert out == [f"[7, {5 - step}] [0, 0, 0]" for step in range(3)]


def test_loss_scales_are_those_of_the_cpu(tmp_path: Path) -> None:
    out, _ = gml(tmp_path / "run", str(PROGRAMS / "scaler.py"))
    assert out[0].startswith("[65536.0, 65536.0, 65536.0] [1024.0, 2048.0,") and out[1] == out[0]
    assert out[2:] == ["0.0"]


def test_objects_between_ranks(tmp_path: Path) -> None:
    words = ("-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2", str(PROGRAMS / "objects.py"))
    out, _ = gml(tmp_path / "run", *words, GML_SIM_DEVICES="2")
    lines = [line.split(" ", 1) for line in out if line[:2] in ("0 ", "1 ")]
    rows = [[0, 1, 2, 3, 4, 5, 6, 7], [8, 9]]
    both = [
        "gathered: [10, 6]",
        "large: [100000, 200000]",
        "told: [0, 30]",
        "agreed: [True, 0.0]",
        f"accelerate: {[rows, [0, 'word'], [{'rank': 0}, {'rank': 1}]]}",
        "lightning: ['ddp', 8, 'och=1-step=8.ckpt']",
        "lightning: ['fsdp', 8, 'och=1-step=8.ckpt']",
    ]
    for rank in (0, 1):
        own = [
            f"collected: {[('rank', 0), ('rank', 1)] if rank == 0 else None}",
            f"handed_out: {2 + rank}",
            f"sent: {[[1.5, 2.5], [{'three': 3}]]}",
            f"swapped: {[1.0 - rank] * 3}",
        ]
        assert sorted(line for owner, line in lines if owner == str(rank)) == sorted(both + own)


def test_expandable_segments_start_without_a_warning(tmp_path: Path) -> None:
    code = "import torch; torch.zeros(3, device='cuda')"
    command = [sys.executable, "-m", "gml_run", "-q", "--simulate", "h100", "--allocator", "expandable"]
    done = subprocess.run(
        [*command, "-o", str(tmp_path / "run"), sys.executable, "-W", "error", "-c", code],
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert (done.returncode, done.stderr) == (0, "")
