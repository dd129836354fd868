# SPDX-License-Identifier: Apache-2.0
"""Whole runs, as a user types them: gml-run with the built libraries, the report, and the simulator's own figures."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
PROGRAMS = ROOT / "tests" / "programs"
GML_RUN = [sys.executable, "-m", "gml_run"]


@dataclass(frozen=True, slots=True)
class Run:
    """How a run ended and what it left."""

    code: int  # negative for a signal
    stdout: bytes
    stderr: str
    folder: Path
    report: dict[str, Any]

    @property
    def said(self) -> dict[str, Any]:
        """The JSON line at the end of the program's own output."""
        return json.loads(self.stdout.splitlines()[-1])

    @property
    def process(self) -> dict[str, Any]:
        """The only process that used a device."""
        used = [process for process in self.report["processes"] if process["devices"]]
        assert len(used) == 1, [process["command"] for process in used]
        return used[0]

    @property
    def device(self) -> dict[str, Any]:
        """Its only device."""
        assert len(self.process["devices"]) == 1
        return self.process["devices"][0]

    @property
    def true_peak_bytes(self) -> int:
        """Most physical memory that the simulated device had given out, by its own count, without the context."""
        (path,) = self.folder.glob("sim-*.json")
        return json.loads(path.read_text())["devices"][0]["peak_bytes"]


def environment(**changes: str | None) -> dict[str, str]:
    """This process's environment without settings of ours and PyTorch's; None removes a variable."""
    ours = ("GML_", "PYTORCH_", "LD_PRELOAD")
    environ = {name: value for name, value in os.environ.items() if not name.startswith(ours)}
    if "GML_LIB_DIR" in os.environ:  # a development build
        environ["GML_LIB_DIR"] = os.environ["GML_LIB_DIR"]
    environ["PYTHONDONTWRITEBYTECODE"] = "1"
    environ.update({name: value for name, value in changes.items() if value is not None})
    return environ


def run(
    options: Sequence[str],
    command: Sequence[str],
    folder: Path,
    *,
    timeout: float = 180,
    variables: Mapping[str, str | None] | None = None,
) -> Run:
    """gml-run -o FOLDER OPTIONS COMMAND."""
    done = subprocess.run(
        [*GML_RUN, "-o", str(folder), *options, *command],
        env=environment(**(variables or {})),
        capture_output=True,
        stdin=subprocess.DEVNULL,
        timeout=timeout,
    )
    report = folder / "report.json"
    assert report.exists(), done.stderr.decode(errors="replace")
    stderr = done.stderr.decode(errors="replace")
    return Run(done.returncode, done.stdout, stderr, folder, json.loads(report.read_text()))


def python(path: Path, *arguments: str) -> list[str]:
    """The command for a script."""
    return [sys.executable, str(path), *arguments]


def at_once(tasks: Mapping[str, Callable[[], Run]]) -> dict[str, Run]:
    """Two runs at a time: a simulated run is mostly one busy thread."""
    with ThreadPoolExecutor(1 if "PYTEST_XDIST_WORKER" in os.environ else 2) as pool:
        futures = {name: pool.submit(task) for name, task in tasks.items()}
        return {name: future.result() for name, future in futures.items()}
