# SPDX-License-Identifier: Apache-2.0
"""What is known of a run when it begins: run.json, and the part of the report that says what ran."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from gml_run import __version__
from gml_run.config import RunOptions
from gml_run.report.identity import alloc_conf, git_commit, working_directory
from gml_run.report.mask import mask_command
from gml_run.report.runs import process_start

SCHEMA_VERSION = 1


@dataclass(frozen=True, slots=True)
class RunRecord:
    """What is known of a run when it begins."""

    id: str
    program: str  # the file that is executed
    command: list[str]
    options: RunOptions
    not_served: str  # why the libraries were not preloaded; empty when they were
    started: float
    alloc_conf: str | None = None  # the user's settings of PyTorch's own allocator
    git_commit: str | None = None  # of the working directory
    directory: str | None = None  # the working directory
    notices: tuple[str, ...] = ()  # what gml-run had to say when it began

    @classmethod
    def begin(
        cls,
        run_id: str,
        program: str,
        command: Sequence[str],
        options: RunOptions,
        not_served: str,
        environ: Mapping[str, str] = os.environ,
        notices: Sequence[str] = (),
    ) -> RunRecord:
        """The record of a run that starts now."""
        here = working_directory()
        return cls(
            run_id,
            program,
            mask_command(command),
            options,
            not_served,
            time.time(),
            alloc_conf(environ),
            git_commit(here) if here else None,
            here,
            tuple(notices),
        )

    def opening(self) -> dict[str, Any]:
        """The content of run.json."""
        return {
            "schema_version": SCHEMA_VERSION,
            "launcher_pid": os.getpid(),
            "launcher_start": process_start(os.getpid()),
            "program": self.program,
            "not_served": self.not_served,
            "started_s": self.started,
            "notices": list(self.notices),
            "run": self.identity(),
        }

    def identity(self) -> dict[str, Any]:
        """The part of `run` that is known from the start."""
        options = self.options
        simulation = options.simulation
        return {
            "id": self.id,
            "command": self.command,
            "directory": self.directory,
            "started": time.strftime("%Y-%m-%dT%H:%M:%S%z", time.localtime(self.started)),
            "allocator": options.allocator.value,
            "intercept": options.intercept.value,
            "goal": options.goal.value,
            "limit_bytes": options.limit_bytes,
            "max_driver_time": options.max_driver_time,
            "driver_costs": options.driver_costs,
            "simulated": simulation is not None,
            "simulate": simulation.text if simulation else None,
            "alloc_conf": self.alloc_conf,
            "git_commit": self.git_commit,
            "versions": {"gml_run": __version__},
        }
