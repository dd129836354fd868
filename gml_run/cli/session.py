# SPDX-License-Identifier: Apache-2.0
"""One run from start to end: prepare, start, watch, report, and end as the child ended."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NoReturn

from gml_run.cli.screen import complain, error_width, write_error
from gml_run.cli.specs import RUN_SPECS
from gml_run.cli.view import Launch, run_plain, run_with_dock
from gml_run.config import RunOptions, without_effect
from gml_run.errors import OWN_FAILURE, GmlError
from gml_run.launch.command import find_program
from gml_run.launch.environment import (
    preload_value,
    run_variables,
    safe_folders,
    sanitizer_of,
    simulation_variables,
    user_environment,
)
from gml_run.launch.process import Ending, NoChildError, end_like, replace_self
from gml_run.launch.rundir import local_rank_of, make_run_directory
from gml_run.launch.signals import Inherited, SignalInbox
from gml_run.launch.variables import checked_variables, unknown_variables
from gml_run.launch.witness import Witness
from gml_run.live.watch import Sink, Watch
from gml_run.native import Native, driver_present, find_native, glibc_version
from gml_run.report.baseline import find_baselines
from gml_run.report.build import build_report
from gml_run.report.files import write_json
from gml_run.report.record import RunRecord
from gml_run.report.runs import short_path
from gml_run.report.simulation import foreign_bytes, read_simulation
from gml_run.report.summary import SIMULATED_NOTE, format_summary

if TYPE_CHECKING:
    from gml_run.telemetry.sites import Sites


def run_session(options: RunOptions, command: Sequence[str]) -> NoReturn:
    """Runs the command and ends this process as the child ended."""
    environ = user_environment()
    if local_rank_of(environ) != 0:
        options = replace(options, quiet=True)  # of several on one machine, one draws and tells
    checked_variables(environ)
    sinks = _make_sinks(options)
    program = find_program(command[0], environ)
    native, reason = choose_native(options)
    directory = make_run_directory(options.output, command, environ)
    notices = [notice for notice in (directory.notice, without_effect(options)) if notice]
    notices += unknown_variables(environ, [spec.variable for spec in RUN_SPECS])
    if native is None:
        notices.append(f"{reason}: the command runs as without gml-run")
    else:
        if options.simulation is not None:
            notices.append(f"simulated {options.simulation.profile}: {SIMULATED_NOTE}")
        try:
            environ = prepare_environment(options, native, directory.path, environ, sanitizer_of(program))
        except OSError as error:
            native = None
            reason = f"no plain path to the libraries can be made ({error.strerror})"
            notices.append(f"{reason}: the command runs as without gml-run")
    if not options.quiet:
        for notice in notices:
            complain(notice)
    record = RunRecord.begin(directory.id, program, command, options, reason, environ, notices)
    _store(directory.path, "run.json", record.opening())

    watched = directory.path if native is not None else None
    start = time.monotonic()
    inherited = Inherited.found()
    witness: Witness | None = None
    try:
        inbox, witness = _helpers(inherited)
        launch = Launch(program, command, environ, options, sinks, inbox, witness, notices)
        ending, watch = run_with_dock(launch, watched) or run_plain(launch, watched)
    except NoChildError as error:
        if witness is not None:
            witness.end()
        complain(f"cannot stay beside the command ({error}): it runs in the place of gml-run, without a report")
        replace_self(program, command, environ, inherited)
    duration_s = time.monotonic() - start
    witness.end()
    _finish(record, watch, directory.path, ending, duration_s)


def _helpers(inherited: Inherited) -> tuple[SignalInbox, Witness]:
    try:
        return SignalInbox(inherited), Witness()
    except OSError as error:
        raise NoChildError(error.strerror) from None


def _make_sinks(options: RunOptions) -> list[Sink]:
    sinks: list[Sink] = []
    if options.metrics is not None:
        from gml_run.report.metrics import prometheus_sink

        sinks.append(prometheus_sink(options.metrics))
    if options.status_file is not None:
        from gml_run.report.metrics import status_sink

        sinks.append(status_sink(options.status_file))
    return sinks


def _finish(record: RunRecord, watch: Watch, path: str | None, ending: Ending, duration_s: float) -> NoReturn:
    """Writes and shows the report. Whatever goes wrong here does not change how the run ended."""
    options = record.options
    stored = measured = False
    try:
        processes = watch.finish(duration_s)
        report = build_report(
            record,
            processes,
            watch.problems,
            watch.versions,
            ending,
            duration_s,
            watch.history.points,
            watch.steps(),
            _sites(options, path),
            _others(options, watch, path),
        )
        if path is not None and not report["not_served"]:
            report["baseline"] = find_baselines(report, path)
        if options.simulation is not None:
            report["simulation"] = read_simulation(path)
        stored = _store(path, "report.json", report)
        measured = not report["not_served"]
        if not options.quiet:
            shown = None if path is None else short_path(path)
            write_error("\n".join(format_summary(report, shown, error_width())) + "\n")
    except Exception as error:
        if os.environ.get("GML_DEBUG"):
            raise
        complain(f"the report could not be made: {type(error).__name__}: {error}")
    if options.strict and not (stored and measured):
        complain("--strict: the run was not measured or not reported")
        os._exit(OWN_FAILURE)
    end_like(ending)


def _sites(options: RunOptions, path: str | None) -> dict[int, list[Sites]] | None:
    """The lines that hold memory, where they were asked for."""
    if path is None or not options.stacks:
        return None
    from gml_run.telemetry.sites import read_sites

    return read_sites(path)


def _others(options: RunOptions, watch: Watch, path: str | None) -> dict[int, int | None]:
    """What foreign processes held, by process of ours."""
    if options.simulation is not None:
        return foreign_bytes(path)
    return watch.neighbours.others if watch.neighbours is not None else {}


def prepare_environment(
    options: RunOptions, native: Native, path: str | None, environ: dict[str, str], before: str = ""
) -> dict[str, str]:
    """The user's environment with ours added; `before` names a library that must be loaded before ours. Raises
    OSError when the libraries have no usable path."""
    result = {**environ, **checked_variables(environ), **run_variables(options, path)}
    if not options.stacks:
        result.pop("GML_STACKS", None)
    simulate = options.simulation is not None
    if options.simulation is not None and options.simulation.size_bytes is None:
        result.pop("GML_SIM_SIZE", None)  # it would be that of a gml-run around this one
    if simulate:
        result |= simulation_variables(native, environ)
    theirs = f"{before}:{environ.get('LD_PRELOAD', '')}"
    result["LD_PRELOAD"] = preload_value(native, simulate, theirs, safe_folders(native))
    return result


def choose_native(options: RunOptions) -> tuple[Native | None, str]:
    """The libraries to preload, or None and why the command runs without them."""
    native = find_native()
    if options.simulation is not None:
        if native is None or not native.simulated:
            raise GmlError("the simulated GPU is not built", "--simulate", "build it: pip install .")
        return native, ""
    version = glibc_version()
    if native is None:
        return None, "libgml.so is not built"
    if version is None or version < (2, 34):
        return None, "libgml.so needs glibc 2.34 or newer"
    if not driver_present():
        return None, "no NVIDIA driver here (--simulate h100 runs without one)"
    return native, ""


def _store(path: str | None, name: str, content: dict[str, Any]) -> bool:
    """Writes a file of the run directory; a full or vanished disk is told in one line."""
    if path is None:
        return False
    try:
        write_json(os.path.join(path, name), content)
    except OSError as error:
        complain(f"{name} could not be written: {error.strerror}")
        return False
    return True
