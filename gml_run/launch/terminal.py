# SPDX-License-Identifier: Apache-2.0
"""The user's terminal while our lines are on it: raw mode, size, and writing that never blocks."""

from __future__ import annotations

import fcntl
import os
import struct
import termios

_TIOCGPTPEER = 0x5441  # opens the other end of a pseudo terminal; Python has no name for it
_MOST_LINES = 1000  # a terminal that is gone is at its end for ever
_SIZE = struct.Struct("HHHH")


class Terminal:
    """A description of our own on the terminal, so that no flag of ours reaches another process."""

    def __init__(self, path: str) -> None:
        """Raises OSError when it cannot be opened."""
        flags = os.O_RDWR | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
        self.descriptor = os.open(path, flags)
        self.modes = termios.tcgetattr(self.descriptor)
        self._taken = False
        self._pending = bytearray()
        self._gone = False

    @property
    def pending(self) -> int:
        """Bytes that are still to be written."""
        return len(self._pending)

    def foreground(self) -> bool:
        """True when our job has the terminal."""
        try:
            return os.tcgetpgrp(self.descriptor) == os.getpgrp()
        except OSError:
            return False

    def typed_ahead(self) -> bytes:
        """What was typed before `take`, as keys. The kernel has made lines of them; an end of input (^D) is no
        byte in its queue, and would be lost with the mode."""
        if not self.modes[3] & termios.ICANON:
            return b""
        controls = self.modes[6]
        ends = tuple(controls[index] for index in (termios.VEOL, termios.VEOL2) if controls[index] != b"\0")
        keys = b""
        for _ in range(_MOST_LINES):
            try:
                line = os.read(self.descriptor, 4096)
            except OSError:
                break  # no whole line is left
            keys += line if line.endswith((b"\n", *ends)) else line + controls[termios.VEOF]
        return keys

    def take(self) -> None:
        """Passes keys on as they are typed, and output as it is written. Our job must have the terminal."""
        self._taken = True
        modes = [*self.modes[:6], list(self.modes[6])]
        modes[1] &= ~termios.OPOST
        modes[0] &= ~(
            termios.BRKINT | termios.ICRNL | termios.IGNBRK | termios.IGNCR | termios.INLCR | termios.INPCK
        ) & ~(termios.ISTRIP | termios.IXON | termios.PARMRK)
        modes[2] = (modes[2] & ~(termios.CSIZE | termios.PARENB)) | termios.CS8
        modes[3] &= ~(termios.ECHO | termios.ECHONL | termios.ICANON | termios.IEXTEN | termios.ISIG)
        modes[6][termios.VMIN], modes[6][termios.VTIME] = 1, 0
        self._set(modes)

    def give_back(self) -> None:
        """The modes that were found, unless others have the terminal now."""
        if self._taken and self.foreground():
            self._set(self.modes)
        self._taken = False

    def push_back(self, keys: bytes) -> None:
        """Leaves keys that the child never read to whoever reads next, as the shell. Some kernels forbid it."""
        if not self.foreground():
            return
        try:
            for key in keys:
                fcntl.ioctl(self.descriptor, termios.TIOCSTI, bytes([key]))
        except OSError:
            pass

    def size(self) -> tuple[int, int]:
        """Rows and columns."""
        data = fcntl.ioctl(self.descriptor, termios.TIOCGWINSZ, bytes(_SIZE.size))
        rows, columns, _, _ = _SIZE.unpack(data)
        return rows or 24, columns or 80

    def read(self) -> bytes:
        """Keys that were typed; empty when there are none or the terminal is gone."""
        try:
            data = os.read(self.descriptor, 4096)
        except BlockingIOError:
            return b""
        except OSError:
            self._gone = True
            return b""
        if not data:
            self._gone = True
        return data

    @property
    def gone(self) -> bool:
        """True after the terminal was closed."""
        return self._gone

    def write(self, data: bytes) -> None:
        """Queues bytes and writes what the terminal takes now."""
        self._pending += data
        self.flush()

    def flush(self) -> None:
        """Writes what the terminal takes now."""
        while self._pending and not self._gone:
            try:
                written = os.write(self.descriptor, self._pending[:16384])
            except BlockingIOError:
                return
            except OSError:
                self._gone = True
                break
            del self._pending[:written]
        if self._gone:
            self._pending.clear()

    def close(self) -> None:
        """Lets go of the terminal; its modes are left as they are."""
        os.close(self.descriptor)

    def _set(self, modes: list[object]) -> None:
        try:
            termios.tcsetattr(self.descriptor, termios.TCSADRAIN, modes)  # type: ignore[arg-type]
        except (OSError, termios.error):
            pass  # the terminal is gone


def unread(master: int) -> bytes:
    """What the child was typed and did not read, taken out of its terminal."""
    try:
        flags = os.O_RDWR | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
        slave = fcntl.ioctl(master, _TIOCGPTPEER, flags)
    except OSError:
        return b""
    try:
        modes = termios.tcgetattr(slave)
        modes[3] &= ~(termios.ICANON | termios.ECHO)
        modes[6][termios.VMIN], modes[6][termios.VTIME] = 0, 0
        termios.tcsetattr(slave, termios.TCSANOW, modes)
        return os.read(slave, 4096)  # it holds no more
    except (OSError, termios.error):
        return b""
    finally:
        os.close(slave)


def set_size(descriptor: int, rows: int, columns: int) -> None:
    """Gives the pseudo terminal a size; its foreground processes get SIGWINCH when it changed."""
    fcntl.ioctl(descriptor, termios.TIOCSWINSZ, _SIZE.pack(rows, columns, 0, 0))
