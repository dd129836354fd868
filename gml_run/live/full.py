# SPDX-License-Identifier: Apache-2.0
"""The full screen while the program runs: our views above, its output in a pane below.

The program keeps a terminal of its own, as high as the pane. What it writes is kept, and written to the
real screen when the full screen is left, by `q`, at the end, or because the program itself wants the full
screen or an answer from the terminal. Then the dock takes over.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from gml_run.live.dock import SMALLEST_ROWS, Dock
from gml_run.live.keys import split_keys
from gml_run.live.log import LogPane

_ENTER = b"\x1b[?1049h\x1b[?7l\x1b[?25l\x1b[2J"
_LEAVE = b"\x1b[?7h\x1b[?25h\x1b[?1049l"
# The program wants the full screen, or asks the terminal something: where its cursor is, what it is, its colours.
_FOR_TERMINAL = re.compile(rb"\x1b\[(?:\?(?:1049|1047|47)h|[>=]?0?c|\??[56]n)|\x1b\]1[0-2];\?")
_TAIL = 12  # bytes that the start of such a sequence may take
_KEPT = 4 << 20  # bytes of output that are written out when the full screen is left

# Rows, columns and the program's last lines -> one painted line for each row.
Paint = Callable[[int, int, Sequence[str]], Sequence[str]]
Press = Callable[[str], bool]  # takes a key; False: it is the program's


class FullScreen:
    """Stands where the dock would stand; it becomes the dock for good when it is left."""

    def __init__(self, dock: Dock, rows: int, columns: int, paint: Paint, press: Press, pane: Callable[[int], int]):
        self._dock = dock
        self._rows, self._columns = rows, columns
        self._paint, self._press, self._pane = paint, press, pane
        self._log = LogPane()
        self._kept = bytearray()
        self._cut = False
        self._shown: list[str] = []
        self._full = rows >= SMALLEST_ROWS  # false once it was left
        self._entered = False

    @property
    def full(self) -> bool:
        """True until the full screen was left for the dock."""
        return self._full

    @property
    def child_rows(self) -> int:
        """Rows of the program's screen."""
        return self._pane(self._rows) if self._full else self._dock.child_rows

    @property
    def child_columns(self) -> int:
        """Its columns."""
        return self._columns

    @property
    def takes_keys(self) -> bool:
        """True while some keys are ours, unless the program waits for them."""
        return self._full

    def output(self, data: bytes) -> bytes:
        """The program's output: into the pane, or to the terminal when the full screen was left."""
        if not self._full:
            return self._dock.output(data)
        start = max(0, len(self._kept) - _TAIL)
        self._kept += data
        if _FOR_TERMINAL.search(self._kept, start):
            return self.leave()
        if len(self._kept) > _KEPT:
            del self._kept[: len(self._kept) - _KEPT]
            del self._kept[: self._kept.find(b"\n") + 1]
            self._cut = True
        self._log.feed(data)
        return b""

    def keys(self, data: bytes) -> tuple[bytes, bytes]:
        """What was typed: what of it is the program's, and what goes to the terminal at once."""
        if not self._full:
            return data, b""
        passed = bytearray()
        keys = split_keys(data)
        for place, key in enumerate(keys):
            if key in (b"q", b"Q"):
                return bytes(passed) + b"".join(keys[place + 1 :]), self.leave() + self._dock.refresh()
            if len(key) > 1 or not self._press(key.decode("latin-1")):
                passed += key
        return bytes(passed), self.refresh()

    def refresh(self) -> bytes:
        """Paints the rows that changed."""
        if not self._full:
            return self._dock.refresh()
        out = bytearray()
        if not self._entered:
            self._entered, self._shown = True, []
            out += _ENTER
        lines = list(self._paint(self._rows, self._columns, self._log.last(self._pane(self._rows), self._columns)))
        for row, line in enumerate(lines):
            if row >= len(self._shown) or line != self._shown[row]:
                out += b"\x1b[%d;1H%s\x1b[0m\x1b[K" % (row + 1, line.encode(errors="replace"))
        self._shown = lines
        return bytes(out)

    def leave(self) -> bytes:
        """Gives the screen to the dock, with what the program wrote meanwhile."""
        self._full = False
        note = b"... earlier output was shown in the full screen only\r\n" if self._cut else b""
        return (_LEAVE if self._entered else b"") + note + self._dock.output(bytes(self._kept))

    def release(self) -> bytes:
        """The program has been silent for a while."""
        return b"" if self._full else self._dock.release()

    def resize(self, rows: int, columns: int) -> bytes:
        """The terminal has a new size."""
        self._rows, self._columns = rows, columns
        text = self._dock.resize(rows, columns)
        if not self._full:
            return text
        if rows < SMALLEST_ROWS:
            return self.leave()
        self._shown = []
        return b"\x1b[2J" + self.refresh() if self._entered else b""

    def suspend(self) -> bytes:
        """Gives the whole screen back for now."""
        if not self._full:
            return self._dock.suspend()
        entered, self._entered = self._entered, False
        return _LEAVE if entered else b""

    def resume(self) -> bytes:
        """Takes it again."""
        return self.refresh() if self._full else self._dock.resume()

    def close(self) -> bytes:
        """Gives the screen back for good."""
        return self.leave() + self._dock.close() if self._full else self._dock.close()
