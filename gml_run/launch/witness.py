# SPDX-License-Identifier: Apache-2.0
"""Tells a signal sent to us alone from one sent to our whole process group.

The kernel does not say which it was, yet only the first may be forwarded: in the second case the child
has it already, and would get it twice. So a second process, the witness, stays in our group with every
signal blocked. What it has pending was sent to everyone. It holds none of our descriptors, and ends
when we end.

It is also the one who is left when we are killed while our lines share the terminal: it then gives the
terminal back.
"""

from __future__ import annotations

import marshal
import os
import signal
import struct
import termios
import time
from typing import Any

from gml_run.launch.descriptors import close_all_but
from gml_run.launch.process import name_process

# A group is signalled newest member first, so the witness has a signal before we do. Batch systems
# signal each process on its own; they get this many seconds to reach the witness too, on a busy machine as well.
_LOOKS = (0.0, 0.001, 0.004, 0.015, 0.1)
_GUARD = 255  # a question that is no signal: remember this terminal
_WHOLE_SCREEN = b"\x1b7\x1b[r\x1b8\x1b[0m\x1b[J\r\n"  # no scroll region, nothing of ours below the cursor


class Witness:
    """A child of ours that shares our process group. Made before the program is started."""

    def __init__(self) -> None:
        asked, self._ask = os.pipe2(os.O_CLOEXEC)
        self._answer, answered = os.pipe2(os.O_CLOEXEC)
        self.pid = os.fork()
        if self.pid == 0:
            try:
                _witness(asked, answered)
            finally:
                os._exit(0)
        os.close(asked)
        os.close(answered)

    def saw(self, number: int) -> bool:
        """True when the witness got this signal as well; it then forgets about it."""
        for pause in _LOOKS:
            if pause:
                time.sleep(pause)
            if self._pending() >> (number - 1) & 1:
                self._forget(number)
                return True
        return False

    def guard(self, path: str, modes: list[Any]) -> None:
        """Have this terminal given back with these modes, should we be killed."""
        note = marshal.dumps((path, modes))
        try:
            os.write(self._ask, bytes([_GUARD]) + struct.pack("<I", len(note)) + note)
        except OSError:
            pass  # it was killed

    def end(self) -> None:
        """Ends and reaps the witness."""
        try:
            os.kill(self.pid, signal.SIGKILL)
            os.waitpid(self.pid, 0)
        except (ProcessLookupError, ChildProcessError):
            pass
        os.close(self._ask)
        os.close(self._answer)

    def _pending(self) -> int:
        try:
            with open(f"/proc/{self.pid}/status", "rb") as file:
                for line in file:
                    if line.startswith(b"ShdPnd:"):
                        return int(line.split()[1], 16)
        except OSError:
            pass
        return 0

    def _forget(self, number: int) -> None:
        try:
            os.write(self._ask, bytes([number]))
            os.read(self._answer, 1)
        except OSError:
            pass  # it was killed; signals are then taken as sent to us alone


def _witness(asked: int, answered: int) -> None:
    close_all_but(asked, answered)
    name_process("gml-run-witness")
    terminal: tuple[str, list[Any]] | None = None
    while question := os.read(asked, 1):
        if question[0] == _GUARD:
            (size,) = struct.unpack("<I", os.read(asked, 4))
            terminal = marshal.loads(os.read(asked, size))
            continue
        signal.sigtimedwait({question[0]}, 0)
        os.write(answered, question)
    # Nobody is left to ask: an ordinary end would have ended us first.
    if terminal is not None:
        _give_back(*terminal)


def _give_back(path: str, modes: list[Any]) -> None:
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_NOCTTY | os.O_NONBLOCK | os.O_CLOEXEC)
        os.write(descriptor, _WHOLE_SCREEN)
        # A shell that has taken over already knows better.
        if os.tcgetpgrp(descriptor) == os.getpgrp():
            termios.tcsetattr(descriptor, termios.TCSANOW, modes)
    except (OSError, termios.error):
        pass  # the terminal is gone too
