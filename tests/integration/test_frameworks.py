# SPDX-License-Identifier: Apache-2.0
"""PyTorch's larger features under gml-run with stitching, on simulated devices."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

PROGRAMS = Path(__file__).resolve().parents[1] / "programs" / "frameworks"


def gml(run: Path, *words: str, **variables: str) -> tuple[str, dict]:
    environ = {name: value for name, value in os.environ.items() if not name.startswith(("PYTORCH_", "TRITON_"))}
    command = [sys.executable, "-m", "gml_run", "-q", "--simulate", "h100", "-o", str(run), *words]
    done = subprocess.run(command, env=environ | variables, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout, json.loads((run / "report.json").read_text())


def served(report: dict) -> int:
    return sum(process["served_calls"] for process in report["processes"])


def test_torch_compile(tmp_path: Path) -> None:
    cache = {"TORCHINDUCTOR_CACHE_DIR": str(tmp_path / "inductor"), "TRITON_CACHE_DIR": str(tmp_path / "triton")}
    out, report = gml(tmp_path / "run", sys.executable, str(PROGRAMS / "compiled.py"), **cache)
    assert out.splitlines() == ["(64, 512)", "(64, 512)", "(80, 512)", "trained 2 steps"]
    assert served(report) > 0


def test_a_captured_graph(tmp_path: Path) -> None:
    out, report = gml(tmp_path / "run", sys.executable, str(PROGRAMS / "captured_graph.py"))
    assert out.splitlines()[-1] == "(64, 512) True"
    process = report["processes"][0]
    # What is allocated while a stream is captured is the driver's, the rest is ours.
    assert process["forwarded_calls"] > 0 and process["served_calls"] > 20


def test_data_parallel_ranks(tmp_path: Path) -> None:
    words = ("-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2", str(PROGRAMS / "ddp.py"))
    out, report = gml(tmp_path / "run", sys.executable, *words, GML_SIM_DEVICES="2")
    peaks = sorted(line for line in out.splitlines() if line.startswith("rank"))
    # PyTorch's watchdog lets go of a collective's buffer, 64 MiB here, when it next looks: one more or less.
    sizes = [int(line.split()[-1]) for line in peaks]
    assert len(sizes) == 2 and all(384 <= size <= 576 for size in sizes)
    ranks = {process["rank"]: process for process in report["processes"] if process["rank"] is not None}
    assert set(ranks) == {0, 1}
    for process in ranks.values():
        used = [device for device in process["devices"] if device["peak_live_bytes"]]
        assert len(used) == 1 and used[0]["waste_ratio"] < 0.03


def test_small_models_of_many_kinds(tmp_path: Path) -> None:
    out, report = gml(tmp_path / "run", sys.executable, str(PROGRAMS / "models.py"))
    trained = dict(line.split() for line in out.splitlines())
    kinds = "gpt2 llama opt bert vit t5 channels_last grad_scaler checkpoint_file"
    assert list(trained) == kinds.split() and all(int(count) > 3000 for count in trained.values())
    assert report["ooms"] == [] and served(report) > 1000


def unfilled(run: Path) -> list[str]:
    """Calls whose outputs the simulator left unfilled, of every process of the run."""
    return [name for path in run.glob("sim-*.json") for name in json.loads(path.read_text())["unfilled"]]


def test_recurrent_networks(tmp_path: Path) -> None:
    out, report = gml(tmp_path / "run", sys.executable, str(PROGRAMS / "recurrent.py"))
    dtypes = ("float32", "float16", "bfloat16")
    kinds = [f"{kind} {dtype} 96 48" for kind in ("LSTM", "GRU", "RNN") for dtype in dtypes]
    assert out.splitlines() == [*kinds, "projected 16", "autocast (5, 2, 48)", "ctc (50, 4, 20)"]
    assert served(report) > 1000 and unfilled(tmp_path / "run") == []


def test_ranks_exchange_what_is_small(tmp_path: Path) -> None:
    words = ("-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2", str(PROGRAMS / "ranks.py"))
    out, report = gml(tmp_path / "run", sys.executable, *words, GML_SIM_DEVICES="2")
    total, gathered, swapped, told = [3.0, 4.0], [0.0, 0.5, 1.0, 1.5], [0.0, 10.0], [1.0, 1.0]
    assert out.splitlines()[-1] == str([[total, gathered, swapped, told], 2 * (512 * 512 + 512)])
    assert served(report) > 100 and unfilled(tmp_path / "run") == []


def test_several_devices_in_one_process(tmp_path: Path) -> None:
    words = (sys.executable, str(PROGRAMS / "ranks.py"), "replicas")
    out, report = gml(tmp_path / "run", *words, GML_SIM_DEVICES="4")
    assert out.splitlines()[-1] == str([0.0, 4.0, 8.0, *map(float, range(8))])
    used = [device for process in report["processes"] for device in process["devices"]]
    assert len([device for device in used if device["peak_live_bytes"]]) == 4


def test_real_libraries(tmp_path: Path) -> None:
    out, report = gml(tmp_path / "run", sys.executable, str(PROGRAMS / "libraries.py"))
    parts = dict(line.split(": ", 1) for line in out.splitlines() if not line.startswith("{"))
    assert parts == {
        "peft": "8192 parameters",
        "accelerate": "64 rows, padded to 3 on 1",
        "lightning": "24 steps",
        "diffusers": "(1, 3, 16, 16) (1, 4, 16, 16)",
        "trainer": "6 steps",
    }
    assert served(report) > 10000 and report["ooms"] == [] and unfilled(tmp_path / "run") == []


def test_accelerate_on_two_devices(tmp_path: Path) -> None:
    options = "--multi_gpu --num_processes 2 --num_machines 1 --mixed_precision no --dynamo_backend no".split()
    script = [str(PROGRAMS / "libraries.py"), "accelerate"]
    words = ("-m", "accelerate.commands.accelerate_cli", "launch", *options, *script)
    out, report = gml(tmp_path / "run", sys.executable, *words, GML_SIM_DEVICES="2")
    assert out.splitlines() == 2 * ["accelerate: 64 rows, padded to 4 on 2"]  # each rank is told the longest
    assert {process["rank"] for process in report["processes"] if process["served_calls"]} == {0, 1}


def test_parts_of_pytorch(tmp_path: Path) -> None:
    kinds = "optimizers lbfgs loaders profiler layouts attention checkpoints graphs linear_algebra transforms"
    for name, options in {"served": (), "observed": ("--observe",)}.items():
        run = tmp_path / name
        out, report = gml(run, *options, sys.executable, str(PROGRAMS / "features.py"))
        assert [line for line in out.splitlines() if line in kinds.split()] == kinds.split()
        peak = max(device["peak_reserved_bytes"] for process in report["processes"] for device in process["devices"])
        assert 1 << 20 < peak < 1 << 30 and unfilled(run) == []


def test_fixed_shapes_need_no_driver_after_the_warm_up(tmp_path: Path) -> None:
    script = PROGRAMS.parent / "workloads" / "fixed_shape.py"
    out, _ = gml(tmp_path / "run", sys.executable, str(script))
    calls = json.loads(out.splitlines()[-1])
    assert calls["warm_up_calls"] > 100 and calls["later_calls"] == 0


def test_eight_billion_parameters_take_little_of_the_host(tmp_path: Path) -> None:
    out, report = gml(tmp_path / "run", sys.executable, str(PROGRAMS / "eight_billion.py"))
    figures = json.loads(out.splitlines()[-1])
    assert figures["parameters"] > 8e9 and figures["device_bytes"] > 55 << 30
    assert figures["host_bytes"] < 2 << 30
    assert report["processes"][0]["devices"][0]["waste_ratio"] < 0.01
