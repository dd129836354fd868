# SPDX-License-Identifier: Apache-2.0
"""One run from start to end: prepare, start, watch, report, and end as the child ended."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from typing import NoReturn

from gml_run.config import RunOptions
from gml_run.errors import GmlError
from gml_run.launch.command import find_program
from gml_run.launch.environment import preload_value, run_variables, safe_folders, user_environment
from gml_run.launch.process import end_like, spawn
from gml_run.launch.rundir import make_run_directory
from gml_run.launch.signals import SignalInbox
from gml_run.launch.supervisor import Supervisor
from gml_run.launch.witness import Witness
from gml_run.native import Native, driver_present, find_native, glibc_version
from gml_run.report.build import RunRecord, build_report
from gml_run.report.files import write_json

Say = Callable[[str], None]


def run_session(options: RunOptions, command: Sequence[str], complain: Say) -> NoReturn:
    """Runs the command and ends this process as the child ended."""
    say: Say = (lambda text: None) if options.quiet else complain
    environ = user_environment()
    program = find_program(command[0], environ)
    native, reason = choose_native(options)
    directory = make_run_directory(options.output, command, environ)
    if directory.notice:
        say(directory.notice)
    if native is None:
        say(f"{reason}: the command runs as without gml-run")
    else:
        environ = {**environ, **run_variables(options, directory.path)}
        folders = safe_folders(native)
        simulate = options.simulation is not None
        environ["LD_PRELOAD"] = preload_value(native, simulate, environ.get("LD_PRELOAD", ""), folders)
    record = RunRecord.begin(directory.id, command, options, reason)
    if directory.path is not None:
        write_json(os.path.join(directory.path, "run.json"), record.opening())

    inbox = SignalInbox()
    witness = Witness(inbox.wanted)
    start = time.monotonic()
    child = spawn(program, command, environ, inbox.inherited_mask, inbox.child_ignored)
    ending = Supervisor(inbox, witness, child).wait()
    witness.end()

    report = build_report(record, directory.path, ending, time.monotonic() - start)
    if directory.path is not None:
        try:
            write_json(os.path.join(directory.path, "report.json"), report)
        except OSError as error:
            complain(f"report.json could not be written: {error.strerror}")
    end_like(ending)


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
