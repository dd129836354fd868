# SPDX-License-Identifier: Apache-2.0
"""Starts the child as a job on a terminal of its own, under a monitor that leads its session.

The monitor is there for job control: a process group whose parent is outside its session cannot be
stopped by ^Z. It starts the child, tells us how the child stops and ends, and does nothing else.
"""

from __future__ import annotations

import fcntl
import os
import signal
import termios
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NoReturn

from gml_run.launch.command import exec_refusal
from gml_run.launch.descriptors import close_all_but
from gml_run.launch.process import become, die_with_parent, name_process
from gml_run.launch.signals import Inherited
from gml_run.launch.terminal import set_size


@dataclass(frozen=True, slots=True)
class Job:
    """A running child: `master` is our end of its terminal, `path` its own, `events` where the monitor writes."""

    monitor: int
    child: int
    master: int
    events: int
    path: str


def start_job(
    program: str,
    command: Sequence[str],
    environ: Mapping[str, str],
    inherited: Inherited,
    on_terminal: Sequence[int],
    modes: list[object],
    size: tuple[int, int],
) -> Job:
    """Starts the child with the descriptors `on_terminal` on a new terminal with these modes and size.

    Raises GmlError when the program cannot be executed, OSError when there is no pseudo terminal.
    """
    opened: list[int] = []
    try:
        for make in (os.openpty, _pipe, _pipe):
            opened += make()
        master, slave, events, tell, ready, report = opened
        termios.tcsetattr(slave, termios.TCSANOW, modes)  # type: ignore[arg-type]
        set_size(master, *size)
        path = os.ttyname(slave)
        parent = os.getpid()
        monitor = os.fork()
        if monitor == 0:
            try:
                die_with_parent(parent)
                _monitor(program, command, environ, inherited, on_terminal, slave, tell, report)
            finally:
                os._exit(127)
        for descriptor in (slave, tell, report):
            opened.remove(descriptor)
            os.close(descriptor)
        answer = os.read(ready, 16)
        if answer:
            os.waitpid(monitor, 0)
            raise exec_refusal(command[0], int(answer))
        child = int(_read_line(events)[1:])
    except (OSError, termios.error) as error:
        for descriptor in opened:
            os.close(descriptor)
        raise OSError(*error.args) from None
    os.close(ready)
    os.set_blocking(master, False)
    os.set_blocking(events, False)
    return Job(monitor, child, master, events, path)


def _pipe() -> tuple[int, int]:
    return os.pipe2(os.O_CLOEXEC)


def _monitor(
    program: str,
    command: Sequence[str],
    environ: Mapping[str, str],
    inherited: Inherited,
    on_terminal: Sequence[int],
    slave: int,
    tell: int,
    report: int,
) -> NoReturn:
    os.setsid()
    fcntl.ioctl(slave, termios.TIOCSCTTY, 0)
    leader = os.getpid()
    child = os.fork()
    if child == 0:

        def take_terminal() -> None:
            os.setpgid(0, 0)
            os.tcsetpgrp(slave, os.getpid())  # SIGTTOU is blocked here
            for descriptor in on_terminal:
                os.dup2(slave, descriptor)

        become(program, command, environ, inherited, leader, report, take_terminal)
    signal.signal(signal.SIGPIPE, signal.SIG_IGN)
    close_all_but(tell)
    name_process("gml-run-monitor")
    os.write(tell, b"P%d\n" % child)
    everything = signal.valid_signals()  # all that can be blocked is
    while True:
        got = signal.sigwaitinfo(everything)
        if got.si_signo == signal.SIGCHLD:
            _tell_state(child, tell)
        _tell_signal(got, child, tell)


def _tell_signal(got: signal.struct_siginfo, child: int, tell: int) -> None:
    """What the child sends to its parent is meant for gml-run's."""
    if got.si_pid == child and got.si_code <= 0:
        os.write(tell, b"K%d\n" % got.si_signo)


def _tell_state(child: int, tell: int) -> None:
    """How the child stopped, or how it ended; then nothing is left to do."""
    while True:
        pid, status = os.waitpid(child, os.WUNTRACED | os.WNOHANG)
        if pid == 0:
            return
        if os.WIFSTOPPED(status):
            os.write(tell, b"S%d\n" % os.WSTOPSIG(status))
            continue
        while got := signal.sigtimedwait(signal.valid_signals(), 0):
            _tell_signal(got, child, tell)
        _spare_the_rest()
        os.write(tell, b"E%d\n" % status)
        os._exit(0)


def _spare_the_rest() -> None:
    """What the child left behind lives on, as on the user's own terminal: when the leader of a session ends, only
    its foreground group is sent SIGHUP, so that shall be our own, which blocks it."""
    try:
        terminal = os.open("/dev/tty", os.O_RDWR | os.O_CLOEXEC | os.O_NOCTTY)
        os.tcsetpgrp(terminal, os.getpgrp())
        os.close(terminal)
    except OSError:
        pass  # the terminal is gone, and they know


def _read_line(descriptor: int) -> bytes:
    line = b""
    while not line.endswith(b"\n"):
        piece = os.read(descriptor, 1)
        if not piece:
            raise OSError("the monitor ended early")
        line += piece
    return line
