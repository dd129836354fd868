# SPDX-License-Identifier: Apache-2.0
"""Receives signals as readable events and decides which of them the child still has to be sent."""

from __future__ import annotations

import ctypes
import os
import signal
import struct
from dataclasses import dataclass

_LIBC = ctypes.CDLL(None, use_errno=True)
_SFD_CLOEXEC = 0o2000000
_SFD_NONBLOCK = 0o4000
_INFO_BYTES = 128
_INFO = struct.Struct("<IiiI")  # signo, errno, code, pid: the first fields of signalfd_siginfo

# Left alone: these cannot be caught, report a fault of this very process, or mean nothing to a child.
_NOT_OURS = {
    signal.SIGKILL,
    signal.SIGSTOP,
    signal.SIGSEGV,
    signal.SIGBUS,
    signal.SIGFPE,
    signal.SIGILL,
    signal.SIGTRAP,
    signal.SIGSYS,
    signal.SIGPIPE,
    signal.SIGXFSZ,
    signal.SIGURG,
}
STOPS = {signal.SIGTSTP, signal.SIGTTIN, signal.SIGTTOU}


_TIMERS = (signal.ITIMER_REAL, signal.ITIMER_VIRTUAL, signal.ITIMER_PROF)


@dataclass(frozen=True, slots=True)
class Inherited:
    """What whoever started us meant for the program: its signal mask, whether it ignores SIGCHLD, and the timers
    that were set before (as by `alarm 60; exec ...`), which a fork drops."""

    mask: set[int]
    child_ignored: bool
    timers: tuple[tuple[int, float, float], ...]  # which, seconds left, interval

    @classmethod
    def found(cls) -> Inherited:
        """As it is in this process, before anything of ours changed it."""
        running = ((which, *signal.getitimer(which)) for which in _TIMERS)
        return cls(
            set(signal.pthread_sigmask(signal.SIG_BLOCK, ())),
            signal.getsignal(signal.SIGCHLD) == signal.SIG_IGN,
            tuple(timer for timer in running if timer[1] > 0),
        )

    def restore(self) -> None:
        """Puts it back, in the process that is to become the program."""
        # The interpreter ignores these two for itself; nobody asked for it on the program's behalf.
        signal.signal(signal.SIGPIPE, signal.SIG_DFL)
        signal.signal(signal.SIGXFSZ, signal.SIG_DFL)
        if self.child_ignored:
            signal.signal(signal.SIGCHLD, signal.SIG_IGN)
        for which, left, interval in self.timers:
            signal.setitimer(which, left, interval)
        signal.pthread_sigmask(signal.SIG_SETMASK, self.mask)


def send(target: int, number: int) -> None:
    """Sends a process, or a group by its negative number, a signal, if there still is one that takes it from us."""
    try:
        os.kill(target, number)
    except (ProcessLookupError, PermissionError):
        pass  # it ended just now; or it changed its user, as sudo does: it would not have got this without us either


def tell_parent(number: int) -> None:
    """The program notifies its parent; without us that is who started us."""
    if os.getppid() > 1:
        send(os.getppid(), number)


@dataclass(frozen=True, slots=True)
class Arrival:
    """One signal: `sent` is true when a process sent it, false when the kernel or the terminal did."""

    number: int
    sent: bool
    sender: int


class SignalInbox:
    """Blocks the signals that matter and offers them on a descriptor. One per process, main thread."""

    def __init__(self, inherited: Inherited) -> None:
        self.inherited = inherited
        for which, _, _ in inherited.timers:
            signal.setitimer(which, 0)
        # Those that we were started with ignored, as under `nohup` or by a shell's `&`, are among them: the
        # kernel keeps a blocked signal all the same, and the program may have set a handler of its own.
        wanted = {int(number) for number in signal.valid_signals()} - _NOT_OURS
        # Inherited so, it would make the kernel discard the child's status.
        if inherited.child_ignored:
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_BLOCK, wanted)
        self.wanted = wanted
        mask = ctypes.create_string_buffer(_mask_bytes(wanted), 128)
        self.descriptor = _LIBC.signalfd(-1, mask, _SFD_CLOEXEC | _SFD_NONBLOCK)
        if self.descriptor < 0:
            code = ctypes.get_errno()
            raise OSError(code, os.strerror(code))

    def take(self) -> list[Arrival]:
        """All signals that have arrived, oldest first; does not wait."""
        arrivals: list[Arrival] = []
        while True:
            try:
                data = os.read(self.descriptor, 32 * _INFO_BYTES)
            except BlockingIOError:
                return arrivals
            for offset in range(0, len(data), _INFO_BYTES):
                number, _, code, sender = _INFO.unpack_from(data, offset)
                arrivals.append(Arrival(number, code <= 0, sender))


def _mask_bytes(numbers: set[int]) -> bytes:
    mask = 0
    for number in numbers:
        mask |= 1 << (number - 1)
    return mask.to_bytes(8, "little")
