# SPDX-License-Identifier: Apache-2.0
"""Runs programs with the preloaded library on the simulated GPU, without the launcher in between."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from gml_run.native import find_native
from gml_run.telemetry.reader import ProcessSnapshot, TelemetryReader

ROOT = Path(__file__).resolve().parents[2]
PROGRAMS = ROOT / "tests" / "programs"


@dataclass(frozen=True, slots=True)
class ShimRun:
    """How a program ended and what it shared."""

    code: int
    stdout: str
    stderr: str
    processes: list[ProcessSnapshot]

    @property
    def process(self) -> ProcessSnapshot:
        """The only process that used a device."""
        assert len(self.processes) == 1, [process.pid for process in self.processes]
        return self.processes[0]


def preload(simulate: bool = True) -> str:
    """LD_PRELOAD for the built libraries."""
    native = find_native()
    assert native is not None, "the libraries are not built"
    assert native.simulated or not simulate, "the simulated GPU is not built"
    return " ".join([native.shim, *(native.simulated if simulate else ())])


def run_shim(
    command: list[str], folder: Path, *, timeout: float = 120, simulate: bool = True, **variables: str
) -> ShimRun:
    """Runs a command; `variables` are set on top of a clean environment (None removes one)."""
    environ = {name: value for name, value in os.environ.items() if not name.startswith(("GML_", "PYTORCH_"))}
    environ.update(
        LD_PRELOAD=preload(simulate),
        GML_RUN_DIR=str(folder),
        GML_ALLOCATOR="vms",
        PYTHONDONTWRITEBYTECODE="1",
    )
    if simulate:
        environ.update(GML_SIM_PROFILE="h100")
    environ.update({name: value for name, value in variables.items() if value is not None})
    done = subprocess.run(command, env=environ, capture_output=True, text=True, timeout=timeout, check=False)
    reader = TelemetryReader(str(folder))
    processes = reader.read(final=True)
    reader.close()
    return ShimRun(done.returncode, done.stdout, done.stderr, processes)


def run_program(name: str, *arguments: str, folder: Path, **options: str) -> ShimRun:
    """Runs a Python program of tests/programs."""
    return run_shim([sys.executable, str(PROGRAMS / name), *arguments], folder, **options)
