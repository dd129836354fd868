# SPDX-License-Identifier: Apache-2.0
"""Loads the report of a run, also of one that still runs or whose launcher was killed."""

from __future__ import annotations

import time
from typing import Any

from gml_run.config import Allocator, Goal, Intercept, RunOptions, parse_simulation
from gml_run.launch.process import Ending
from gml_run.report.build import build_report
from gml_run.report.record import RunRecord
from gml_run.report.runs import is_alive, read_opening, read_report
from gml_run.report.simulation import foreign_bytes
from gml_run.telemetry.reader import TelemetryReader
from gml_run.telemetry.sites import read_sites


def load_report(directory: str) -> dict[str, Any]:
    """report.json; when there is none, a report made now from what the processes shared."""
    report = read_report(directory)
    if report is not None:
        return report
    opening = read_opening(directory)
    alive = is_alive(opening)
    reader = TelemetryReader(directory)
    processes = reader.read(final=not alive)
    record = _record(opening)
    report = build_report(
        record,
        processes,
        list(reader.problems.values()),
        {},
        Ending(0, None),
        time.time() - record.started,
        sites=read_sites(directory),
        others=foreign_bytes(directory) if record.options.simulation is not None else None,
    )
    reader.close()
    report["run"].update(exit_code=None, signal=None)  # nobody was there to see it
    report["problems"].insert(0, _note(alive, watched=bool(opening.get("launcher_pid"))))
    return report


def _record(opening: dict[str, Any]) -> RunRecord:
    run = opening["run"]
    options = RunOptions(
        allocator=Allocator(run["allocator"]),
        intercept=Intercept(run["intercept"]),
        goal=Goal(run["goal"]),
        simulation=parse_simulation(run["simulate"]) if run["simulated"] else None,
        limit_bytes=run["limit_bytes"],
        max_driver_time=run.get("max_driver_time"),
        driver_costs=run.get("driver_costs"),
    )
    return RunRecord(
        run["id"],
        opening["program"],
        run["command"],
        options,
        opening["not_served"],
        opening["started_s"],
        run.get("alloc_conf"),
        run.get("git_commit"),
        run.get("directory"),
        tuple(opening.get("notices", ())),
    )


def _note(alive: bool, watched: bool) -> str:
    """Why this report was made now."""
    if not watched:
        return "from what the processes have shared so far: no gml-run watches them (print-env)"
    if alive:
        return "it still runs: figures so far"
    return "the launcher did not live to write a report: made from telemetry"
