# SPDX-License-Identifier: Apache-2.0
"""Runs the child under the live view that fits the terminal: the dock, or lines, or nothing."""

from __future__ import annotations

import os
import stat
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from gml_run.analysis.frame import Frame
from gml_run.cli.screen import complain, error_is_ready
from gml_run.config import DEFAULT_DRIVER_TIME, Live, RunOptions
from gml_run.launch.descriptors import let_go
from gml_run.launch.process import Ending, ending_of, spawn
from gml_run.launch.signals import SignalInbox
from gml_run.launch.supervisor import Supervisor
from gml_run.launch.witness import Witness
from gml_run.live.dock import SMALLEST_ROWS
from gml_run.live.line import LineSchedule, format_line
from gml_run.live.watch import Show, Sink, Watch

if TYPE_CHECKING:
    from gml_run.live.full import FullScreen

_SMALLEST_COLUMNS = 40


@dataclass(frozen=True, slots=True)
class Launch:
    """Everything that starting the child takes."""

    program: str
    command: Sequence[str]
    environ: Mapping[str, str]
    options: RunOptions
    sinks: Sequence[Sink]
    inbox: SignalInbox
    witness: Witness
    notices: Sequence[str] = ()


def run_plain(launch: Launch, directory: str | None) -> tuple[Ending, Watch]:
    """The child keeps our descriptors; a line is printed now and then where that was not switched off.

    Raises NoChildError when there can be no child.
    """
    if directory is not None and launch.options.live in (Live.DOCK, Live.SCREEN) and not launch.options.quiet:
        complain(
            f"--live {launch.options.live}: not possible here, it needs a terminal of {SMALLEST_ROWS} rows and "
            f"{_SMALLEST_COLUMNS} columns for output and errors, in the foreground, and no pipe as input; a line now "
            "and then instead"
        )
    watch = Watch(directory, _show_lines(launch.options), sinks=launch.sinks)
    _look_around(launch.options, directory, watch)
    if launch.options.step is not None and not launch.options.quiet:
        complain(
            "--step: the program's output does not pass through gml-run here, only under the dock and the full "
            "screen; steps are looked for in its allocations"
        )
    inbox = launch.inbox
    child = spawn(launch.program, launch.command, launch.environ, inbox.inherited)
    if not launch.sinks:  # one of those may write to any of ours, as to /dev/fd/9
        let_go((0, 1))
    try:
        return Supervisor(inbox, launch.witness, child).wait(watch.tick), watch
    except Exception as error:
        # A fault of ours must not take the child along: then we only wait.
        _tell_fault(error)
        return _wait_only(child), watch


def run_with_dock(launch: Launch, directory: str | None) -> tuple[Ending, Watch] | None:
    """The child on a terminal of its own, our lines below; None where the dock cannot be right."""
    options = launch.options
    if directory is None or options.quiet or options.live not in (Live.AUTO, Live.DOCK, Live.SCREEN):
        return None
    terminals = tuple(number for number in (0, 1, 2) if os.isatty(number))
    if 1 not in terminals or 2 not in terminals or not _can_share_screen(launch.environ):
        return None
    if _in_a_pipeline():
        return None

    from gml_run.launch.job import start_job
    from gml_run.launch.relay import Relay
    from gml_run.launch.terminal import Terminal
    from gml_run.live.dock import Dock
    from gml_run.live.docked import INTERVAL, DockView

    try:
        if len({os.fstat(number).st_rdev for number in terminals}) != 1:
            return None  # two terminals: which one would be ours?
        path = os.ttyname(1)
        terminal = Terminal(path)
    except OSError:
        return None
    rows, columns = terminal.size()
    if rows < SMALLEST_ROWS or columns < _SMALLEST_COLUMNS or not terminal.foreground():
        terminal.close()
        return None
    dock = Dock(rows, columns, height=5)
    watch = Watch(directory, None, INTERVAL, launch.sinks)
    _look_around(launch.options, directory, watch)
    if options.step is not None:
        from gml_run.analysis.steps import StepLines

        watch.step_lines = StepLines(options.step)
    screen: Dock | FullScreen = dock
    if options.live is Live.SCREEN:
        from gml_run.live.fullview import FullView
        from gml_run.live.scene import Scene

        scene = Scene(
            _title(options),
            budget=_budget(options),
            leaves="dock",
            started=time.time(),
            notices=launch.notices,
        )
        view = FullView(
            dock, (rows, columns), scene, launch.environ, watch.history, lambda: watch.processes, watch.steps
        )
        watch.show, screen = view.show, view.screen
    else:
        watch.show = DockView(dock, _title(options), launch.environ, watch.history, watch.steps).show
    inbox = launch.inbox
    try:
        job = start_job(
            launch.program,
            launch.command,
            launch.environ,
            inbox.inherited,
            terminals,
            terminal.modes,
            (screen.child_rows, screen.child_columns),
        )
    except OSError:  # no pseudo terminal, no process for its monitor
        terminal.close()
        return None
    if not launch.sinks:
        let_go(() if 0 in terminals else (0,))
    launch.witness.guard(path, terminal.modes)
    listen = watch.step_lines.feed if watch.step_lines is not None else None
    relay = Relay(inbox, launch.witness, terminal, job, screen, listen)
    try:
        return relay.wait(watch.tick), watch
    except Exception as error:
        _tell_fault(error)
        return relay.carry_on(), watch


def _look_around(options: RunOptions, directory: str | None, watch: Watch) -> None:
    if options.simulation is None and directory is not None:
        from gml_run.telemetry.neighbours import Neighbours

        watch.neighbours = Neighbours()


def _in_a_pipeline() -> bool:
    """True when stdin is a pipe: then whoever writes to it may be reading the terminal, which cannot be ours too."""
    mode = os.fstat(0).st_mode
    return stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode)


def _can_share_screen(environ: Mapping[str, str]) -> bool:
    """False for terminals that are none: editors' shells, and notebooks, which give programs a terminal too."""
    kind = environ.get("TERM", "")
    if kind in ("", "dumb", "emacs", "unknown") or kind.startswith("eterm"):
        return False
    return "JPY_PARENT_PID" not in environ and "INSIDE_EMACS" not in environ


def _title(options: RunOptions) -> str:
    parts = ["gml-run", options.allocator.value]
    if options.allocator.ours:
        parts.append(options.goal.value)
    if options.simulation is not None:
        parts.append(f"simulated {options.simulation.profile}")
    return " · ".join(parts)


def _budget(options: RunOptions) -> float | None:
    if not options.allocator.ours:
        return None
    return DEFAULT_DRIVER_TIME if options.max_driver_time is None else options.max_driver_time


def _show_lines(options: RunOptions) -> Show | None:
    """What prints a line to stderr now and then; None when nothing is to be shown."""
    if options.quiet or options.live is Live.OFF:
        return None
    schedule = LineSchedule()

    def show(frame: Frame | None, elapsed: float) -> None:
        if frame is not None and schedule.due(elapsed) and error_is_ready():
            complain(format_line(frame, elapsed))

    return show


def _wait_only(child: int) -> Ending:
    while True:
        pid, status = os.waitpid(child, 0)
        if pid == child:
            return ending_of(status)


def _tell_fault(error: Exception) -> None:
    if os.environ.get("GML_DEBUG"):
        raise error
    complain(f"internal error: {type(error).__name__}: {error}; only waiting for the command now")
