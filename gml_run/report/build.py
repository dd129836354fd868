# SPDX-License-Identifier: Apache-2.0
"""Builds report.json from how the run began, what its processes shared, and how it ended."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from gml_run import __version__
from gml_run.config import RunOptions
from gml_run.launch.process import Ending
from gml_run.report.mask import mask_command

SCHEMA_VERSION = 1


@dataclass(frozen=True, slots=True)
class RunRecord:
    """What is known of a run when it begins."""

    id: str
    command: list[str]
    options: RunOptions
    not_served: str  # why the libraries were not preloaded; empty when they were
    started: float

    @classmethod
    def begin(cls, run_id: str, command: Sequence[str], options: RunOptions, not_served: str) -> RunRecord:
        """The record of a run that starts now."""
        return cls(run_id, mask_command(command), options, not_served, time.time())

    def opening(self) -> dict[str, Any]:
        """The content of run.json."""
        return {"schema_version": SCHEMA_VERSION, "launcher_pid": os.getpid(), "run": self.identity()}

    def identity(self) -> dict[str, Any]:
        """The part of `run` that is known from the start."""
        options = self.options
        return {
            "id": self.id,
            "command": self.command,
            "started": time.strftime("%Y-%m-%dT%H:%M:%S%z", time.localtime(self.started)),
            "allocator": options.allocator.value,
            "intercept": options.intercept.value,
            "goal": options.goal.value,
            "simulated": options.simulation is not None,
            "versions": {"gml_run": __version__},
        }


def build_report(
    record: RunRecord, directory: str | None, ending: Ending, duration_s: float
) -> dict[str, Any]:
    """The whole report. Never fails for want of telemetry: it then says why there is none."""
    run = record.identity()
    run.update(duration_s=round(duration_s, 3), exit_code=ending.shell_code, signal=ending.signal_name)
    return {
        "schema_version": SCHEMA_VERSION,
        "verdict": record.not_served or "no GPU memory was served or observed",
        "run": run,
        "device": {"name": "", "total_bytes": 0, "peak_used_bytes": 0},
        "baseline": [],
        "steps": {"count": 0, "p50_s": 0.0, "p95_s": 0.0, "source": "not known"},
        "processes": [],
        "ooms": [],
    }
