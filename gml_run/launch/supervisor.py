# SPDX-License-Identifier: Apache-2.0
"""Waits for the child: forwards signals once, follows its stops, and lets the live view tick."""

from __future__ import annotations

import os
import select
import signal
import time
from collections.abc import Callable

from gml_run.launch.process import Ending, ending_of
from gml_run.launch.signals import STOPS, Arrival, SignalInbox, send, tell_parent
from gml_run.launch.witness import Witness

Tick = Callable[[float], float]  # takes the seconds since the start, returns seconds until the next call

NEVER = float("inf")


class Supervisor:
    """One child that shares our terminal, descriptors and process group."""

    def __init__(self, inbox: SignalInbox, witness: Witness, child: int) -> None:
        self._inbox = inbox
        self._witness = witness
        self._child = child
        self._ending: Ending | None = None

    def wait(self, tick: Tick | None = None) -> Ending:
        """Returns when the child has ended."""
        start = time.monotonic()
        due = start if tick is not None else NEVER
        poll = select.poll()
        poll.register(self._inbox.descriptor, select.POLLIN)
        self._reap()
        while self._ending is None:
            now = time.monotonic()
            if tick is not None and now >= due:
                due = now + tick(now - start)
                continue
            poll.poll(None if due == NEVER else max(0.0, due - now) * 1000)
            for arrival in self._inbox.take():
                self._handle(arrival)
        return self._ending

    def _handle(self, arrival: Arrival) -> None:
        if arrival.number == signal.SIGCHLD:
            self._reap()
        elif arrival.sent and arrival.sender == self._child:
            # It is meant for our parent, unless it was sent to the whole group (`kill 0`), which we are of and our
            # parent need not be.
            if not self._witness.saw(arrival.number):
                tell_parent(arrival.number)
        elif (arrival.sent or arrival.number == signal.SIGHUP) and not self._witness.saw(arrival.number):
            # Sent to us alone: the child is who was meant. What the terminal or a sender to the whole
            # group raised has reached the child already. A terminal that goes away tells only the
            # leader of its session, which we may be in the child's place.
            self._send(arrival.number)

    def _send(self, number: int) -> None:
        if self._ending is None:
            send(self._child, number)

    def _reap(self) -> None:
        while self._ending is None:
            pid, status = os.waitpid(self._child, os.WNOHANG | os.WUNTRACED)
            if pid == 0:
                return
            if os.WIFSTOPPED(status):
                self._stop_with(os.WSTOPSIG(status))
            else:
                self._ending = ending_of(status)

    def _stop_with(self, number: int) -> None:
        """The child stopped. In an interactive job the shell must see us stop too, to take over."""
        if number not in STOPS and number != signal.SIGSTOP:
            return
        if not foreground_job():
            return
        os.kill(os.getpid(), signal.SIGSTOP)
        # Here the shell continued the job; it continues the group, the child included.


def foreground_job() -> bool:
    """True when a shell with job control waits for us and would notice that we stop."""
    try:
        terminal = os.open("/dev/tty", os.O_RDWR | os.O_CLOEXEC | os.O_NOCTTY)
    except OSError:
        return False
    try:
        # A shell with job control gives each job a group of its own.
        return os.tcgetpgrp(terminal) == os.getpgrp() and os.getsid(0) != os.getpid()
    except OSError:
        return False
    finally:
        os.close(terminal)
