# SPDX-License-Identifier: Apache-2.0
"""Tells a signal sent to us alone from one sent to our whole process group.

The kernel does not say which it was, yet only the first may be forwarded: in the second case the child
has it already, and would get it twice. So a second process, the witness, stays in our group with every
signal blocked. What it has pending was sent to everyone. It holds none of our descriptors, and the
kernel ends it when we end.
"""

from __future__ import annotations

import os
import signal
import time

from gml_run.launch.process import die_with_parent

# A group is signalled newest member first, so the witness has a signal before we do. Batch systems
# signal each process on its own; they get this many seconds to reach the witness too.
_LOOKS = (0.0, 0.001, 0.004)


class Witness:
    """A child of ours that shares our process group. Made before the program is started."""

    def __init__(self, wanted: set[int]) -> None:
        asked, self._ask = os.pipe2(os.O_CLOEXEC)
        self._answer, answered = os.pipe2(os.O_CLOEXEC)
        parent = os.getpid()
        self.pid = os.fork()
        if self.pid == 0:
            try:
                _witness(asked, answered, wanted, parent)
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


def _witness(asked: int, answered: int, wanted: set[int], parent: int) -> None:
    die_with_parent(parent)
    # Hold nothing open: whoever reads the program's output waits for its last writer.
    keep = sorted((asked, answered))
    os.closerange(0, keep[0])
    os.closerange(keep[0] + 1, keep[1])
    os.closerange(keep[1] + 1, min(os.sysconf("SC_OPEN_MAX"), 1 << 20))
    while question := os.read(asked, 1):
        signal.sigtimedwait({question[0]}, 0)
        os.write(answered, question)
