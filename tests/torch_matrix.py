# SPDX-License-Identifier: Apache-2.0
"""Runs a training script on the simulated GPU under older releases of PyTorch (CUDA 12 beside 13).

usage: torch_matrix.py [VERSION ...]          (default: 2.4.1 2.8.0)

Each release gets an environment of its own in build/torch-VERSION, about 3 GB to download. Outside of
`make test` for that reason; `make test-torch-matrix` runs it. Exit status 1 when a run fails.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import venv
from pathlib import Path

from gml_run.native import find_native

ROOT = Path(__file__).resolve().parents[1]
BACKENDS = ("", "expandable_segments:True", "backend:cudaMallocAsync")
# Parts of frameworks/features.py that every release has.
FEATURES = ("optimizers", "lbfgs", "loaders", "layouts", "graphs", "linear_algebra", "transforms")


def environment(version: str) -> Path:
    """The Python of an environment with that torch, made at first use."""
    folder = ROOT / "build" / f"torch-{version}"
    python = folder / "bin" / "python"
    if not (folder / "done").exists():
        print(f"torch {version}: installs into {folder}, about 3 GB to download", flush=True)
        venv.create(folder, with_pip=True)
        subprocess.run([python, "-m", "pip", "install", "-q", f"torch=={version}", "numpy"], check=True)
        (folder / "done").touch()
    return python


def simulated(backend: str) -> dict[str, str]:
    """The environment of a program on the simulated GPU."""
    native = find_native()
    assert native is not None and native.simulated, "the simulated GPU is not built: make setup"
    environ = {name: value for name, value in os.environ.items() if not name.startswith(("GML_", "PYTORCH_"))}
    environ |= {"GML_SIM_PROFILE": "h100", "LD_PRELOAD": " ".join(native.simulated)}
    return environ | {"PYTORCH_CUDA_ALLOC_CONF": backend}


def features(python: Path, backend: str) -> str:
    """Parts of PyTorch, one line about them as of a run."""
    command = [python, ROOT / "tests" / "programs" / "frameworks" / "features.py", *FEATURES]
    run = subprocess.run(command, env=simulated(backend), capture_output=True, text=True, timeout=600)
    ran = [line for line in run.stdout.splitlines() if line in FEATURES]
    return f"ok, {len(ran)} features" if ran == list(FEATURES) else f"after {ran}: {run.stderr[-500:]}"


def train(python: Path, backend: str) -> str:
    """One line about a run; it begins with "ok" when the run was good."""
    environ = simulated(backend)
    script = ROOT / "tests" / "programs" / "sim_train.py"
    run = subprocess.run([python, script], env=environ, capture_output=True, text=True, timeout=600)
    if run.returncode:
        return f"exit {run.returncode}: {run.stderr[-500:]}"
    seen = json.loads(run.stdout.splitlines()[-1])
    refused = "200.00 GiB" in seen["error"] or seen["error"].startswith("Allocation on device")
    if not seen["round_trip"] or not refused:
        return f"wrong: {seen}"
    return f"ok, {seen['allocated_mib']:.0f} MiB allocated, {seen['reserved_mib']:.0f} reserved"


def values(python: Path) -> str:
    """Small values that are computed: kernels' names and parameters differ from release to release."""
    folder = ROOT / "tests" / "programs" / "frameworks"
    environ, seen = simulated(""), []
    for script in ("small_values.py", "scaler.py"):
        run = subprocess.run([python, folder / script], env=environ, capture_output=True, text=True, timeout=600)
        if run.returncode:
            return f"exit {run.returncode}: {run.stderr[-500:]}"
        seen.append(run.stdout.splitlines())
    small, scales = seen
    right = len(small) == 1 and scales[1:] == [scales[0], "0.0"]
    return f"ok, {small[-1]}" if right else f"wrong: {len(small) - 1} values, scales {scales}"


def main(versions: list[str]) -> int:
    failed = 0
    for version in versions or ["2.4.1", "2.8.0"]:
        python = environment(version)
        for backend in BACKENDS:
            result = train(python, backend)
            parts = features(python, backend)
            failed += not (result.startswith("ok") and parts.startswith("ok"))
            print(f"torch {version} {backend or 'native'}: {result}; {parts}", flush=True)
        computed = values(python)
        failed += not computed.startswith("ok")
        print(f"torch {version} small values: {computed}", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
