# SPDX-License-Identifier: Apache-2.0
"""Carries bytes between the user's terminal and the child's, for as long as our lines share the screen."""

from __future__ import annotations

import os
import select
import signal
import time
from collections.abc import Callable
from typing import Protocol

from gml_run.launch.asking import waits_for_keys
from gml_run.launch.job import Job
from gml_run.launch.keeper import keep_open
from gml_run.launch.process import Ending, ending_of
from gml_run.launch.signals import STOPS, Arrival, SignalInbox, send, tell_parent
from gml_run.launch.supervisor import NEVER, Tick, foreground_job
from gml_run.launch.terminal import Terminal, set_size, unread
from gml_run.launch.witness import Witness

_MOST_PENDING = 1 << 16  # bytes; beyond it the faster side waits
_SILENCE = 0.2  # seconds after which a half written sequence is taken for what it is
_LAST_WORDS = 20.0  # seconds that a terminal may take nothing of the last output; a signal ends it sooner
_GIVE_UP = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT)
_LINGER = 2.0  # seconds to wait for output of processes that the child left behind
_MOST_LEFT = 1 << 20  # bytes of it; what the child itself wrote is less


class Screen(Protocol):
    """Who decides what goes to the terminal."""

    @property
    def child_rows(self) -> int: ...
    @property
    def child_columns(self) -> int: ...
    @property
    def takes_keys(self) -> bool: ...
    def output(self, data: bytes) -> bytes: ...
    def keys(self, data: bytes) -> tuple[bytes, bytes]: ...
    def refresh(self) -> bytes: ...
    def release(self) -> bytes: ...
    def resize(self, rows: int, columns: int) -> bytes: ...
    def suspend(self) -> bytes: ...
    def resume(self) -> bytes: ...
    def close(self) -> bytes: ...


class Relay:
    """One child on a terminal of its own."""

    def __init__(
        self,
        inbox: SignalInbox,
        witness: Witness,
        terminal: Terminal,
        job: Job,
        screen: Screen,
        listen: Callable[[bytes], None] | None = None,
    ) -> None:
        """`listen` is told all output."""
        self._listen = listen
        self._inbox = inbox
        self._witness = witness
        self._terminal = terminal
        self._job = job
        self._screen = screen
        self._size = (screen.child_rows, screen.child_columns)
        self._keys = bytearray()
        self._events = b""
        self._ending: Ending | None = None
        self._master_open = True
        self._passed = 0  # bytes of output

    def wait(self, tick: Tick) -> Ending:
        """Returns when the child has ended and its output is on the terminal."""
        if self._terminal.foreground():
            self._keys += self._terminal.typed_ahead()
        self._terminal.take()
        try:
            self._loop(tick)
            self._drain()
            os.waitpid(self._job.monitor, 0)
            if not keep_open(self._job.master, self._terminal.descriptor):
                self._terminal.push_back(unread(self._job.master) + self._keys)
        finally:
            self._show(self._screen.close())
            self._finish_output()
            self._terminal.give_back()
        assert self._ending is not None
        return self._ending

    def carry_on(self) -> Ending:
        """After a fault of ours: bytes only, until the child has ended."""
        poll = select.poll()
        poll.register(self._job.events, select.POLLIN)
        poll.register(self._job.master, select.POLLIN)
        while self._ending is None:
            for descriptor, _ in poll.poll():
                if descriptor == self._job.events:
                    self._take_events()
                    continue
                try:
                    os.write(1, os.read(self._job.master, 65536))
                except OSError:
                    poll.unregister(self._job.master)
        return self._ending

    def _loop(self, tick: Tick) -> None:
        start = time.monotonic()
        due = start
        silent_at = NEVER
        while self._ending is None:
            now = time.monotonic()
            if now >= due:
                due = now + tick(now - start)
                self._show(self._screen.refresh())
                continue
            if now >= silent_at:
                silent_at = NEVER
                self._show(self._screen.release())
            wake = min(due, silent_at)
            ready = self._poll(None if wake == NEVER else (wake - now) * 1000)
            if ready.get(self._inbox.descriptor):
                for arrival in self._inbox.take():
                    self._handle(arrival)
            if ready.get(self._job.master, 0) & ~select.POLLOUT and self._pass_output():
                silent_at = time.monotonic() + _SILENCE
            if ready.get(self._job.master, 0) & select.POLLOUT:
                self._pass_keys()
            if ready.get(self._terminal.descriptor, 0) & ~select.POLLOUT:
                self._take_keys(self._terminal.read())
            if ready.get(self._terminal.descriptor, 0) & select.POLLOUT:
                self._terminal.flush()
            if ready.get(self._job.events):
                self._take_events()

    def _poll(self, milliseconds: float | None) -> dict[int, int]:
        poll = select.poll()
        poll.register(self._inbox.descriptor, select.POLLIN)
        poll.register(self._job.events, select.POLLIN)
        terminal = select.POLLOUT if self._terminal.pending else 0
        if len(self._keys) < _MOST_PENDING and self._terminal.foreground():
            terminal |= select.POLLIN
        if terminal and not self._terminal.gone:
            poll.register(self._terminal.descriptor, terminal)
        if self._master_open:
            master = select.POLLOUT if self._keys else 0
            if self._terminal.pending < _MOST_PENDING:
                master |= select.POLLIN
            if master:
                poll.register(self._job.master, master)
        return dict(poll.poll(milliseconds))

    def _show(self, data: bytes) -> None:
        """Writes to the terminal, and tells the child when its part of the screen changed."""
        if data:
            self._terminal.write(data)
        size = (self._screen.child_rows, self._screen.child_columns)
        if size != self._size and self._master_open:
            self._size = size
            set_size(self._job.master, *size)

    def _pass_output(self) -> bool:
        try:
            data = os.read(self._job.master, 65536)
        except BlockingIOError:
            return False
        except OSError:
            data = b""  # the last one that had the terminal open closed it
        if not data:
            self._master_open = False
            return False
        self._passed += len(data)
        if self._listen is not None:
            self._listen(data)
        self._show(self._screen.output(data))
        return True

    def _take_keys(self, keys: bytes) -> None:
        if not self._screen.takes_keys or waits_for_keys(self._job.master, self._job.path, self._job.child):
            self._keys += keys
        else:
            passed, painted = self._screen.keys(keys)
            self._keys += passed
            self._show(painted)
        self._pass_keys()

    def _pass_keys(self) -> None:
        while self._keys and self._master_open:
            try:
                written = os.write(self._job.master, self._keys[:1024])
            except BlockingIOError:
                return
            except OSError:
                self._keys.clear()
                return
            del self._keys[:written]

    def _take_events(self) -> None:
        try:
            data = os.read(self._job.events, 4096)
        except BlockingIOError:
            return
        if not data:
            # The monitor was killed, and the child with it.
            self._ending = Ending(0, signal.SIGKILL)
            return
        *lines, self._events = (self._events + data).split(b"\n")
        for line in lines:
            if line.startswith(b"S"):
                self._stop_with(int(line[1:]))
            elif line.startswith(b"K"):
                tell_parent(int(line[1:]))
            else:
                self._ending = ending_of(int(line[1:]))

    def _handle(self, arrival: Arrival) -> None:
        number = arrival.number
        if number in (signal.SIGCHLD, signal.SIGTTIN, signal.SIGTTOU):
            return
        if number == signal.SIGWINCH:
            self._show(self._screen.resize(*self._terminal.size()))
        elif number == signal.SIGCONT:
            self._come_forward()
        elif arrival.sent and arrival.sender == self._job.child:
            if not self._witness.saw(number):
                tell_parent(number)
        elif arrival.sent and not self._witness.saw(number):
            send(self._job.child, number)
        else:
            # Meant for everyone on our terminal: the child's is another, so its job gets it from us.
            send(-self._foreground_group(), number)

    def _foreground_group(self) -> int:
        try:
            return os.tcgetpgrp(self._job.master) or self._job.child
        except OSError:
            return self._job.child

    def _stop_with(self, number: int) -> None:
        """The child stopped: so do we, that the shell takes over, with the terminal as it left it."""
        if number not in STOPS and number != signal.SIGSTOP:
            return
        if not foreground_job():
            if number in STOPS:
                send(-self._job.child, signal.SIGCONT)  # without a shell nobody else would
            return
        while self._pass_output():
            pass
        self._show(self._screen.suspend())
        self._finish_output()
        self._terminal.give_back()
        os.kill(os.getpid(), signal.SIGSTOP)
        self._come_forward()
        send(-self._job.child, signal.SIGCONT)

    def _come_forward(self) -> None:
        """Takes the terminal again when our job has it; in the background we only pass output on."""
        if self._terminal.foreground():
            self._terminal.take()
            self._show(self._screen.resize(*self._terminal.size()))
            self._show(self._screen.resume())

    def _drain(self) -> None:
        """The child has ended: what it wrote before still stands in its terminal.

        Time in which our terminal takes nothing does not count: that output is not lost by being slow.
        """
        waited, before = 0.0, self._passed
        while self._master_open and waited < _LINGER and self._passed - before < _MOST_LEFT:
            began = time.monotonic()
            if not self._poll_master():
                return
            waited += time.monotonic() - began
            if not self._pass_output():
                return
            if self._terminal.pending >= _MOST_PENDING and not self._finish_output():
                return

    def _poll_master(self) -> bool:
        poll = select.poll()
        poll.register(self._job.master, select.POLLIN)
        return bool(poll.poll(20))

    def _finish_output(self) -> bool:
        """False when the terminal did not take it: for long, or until somebody wanted us to end."""
        ended = self._ending is not None
        patience = _LAST_WORDS if ended else _LINGER
        deadline = time.monotonic() + patience
        poll = select.poll()
        poll.register(self._terminal.descriptor, select.POLLOUT)
        if ended:  # before that, signals are the child's
            poll.register(self._inbox.descriptor, select.POLLIN)
        while self._terminal.pending and not self._terminal.gone:
            before = self._terminal.pending
            if self._inbox.descriptor in dict(poll.poll(100)) and any(
                arrival.number in _GIVE_UP for arrival in self._inbox.take()
            ):
                return False
            self._terminal.flush()
            if self._terminal.pending < before:  # slow, not stuck
                deadline = time.monotonic() + patience
            elif time.monotonic() >= deadline:
                return False
        return not self._terminal.gone
