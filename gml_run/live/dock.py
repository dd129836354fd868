# SPDX-License-Identifier: Apache-2.0
"""Our lines at the bottom of the terminal, below a scroll region in which the child's output goes on.

Only this module knows how the screen is shared. It turns the child's output and our lines into bytes;
it reads and writes nothing itself.
"""

from __future__ import annotations

from collections.abc import Sequence

from gml_run.live.stream import OutputStream

SMALLEST_ROWS = 12  # on a lower screen the child needs all of it
_SAVE = b"\x1b7"
_RESTORE = b"\x1b8"
_REST = 4  # refreshes after the child gave up a scroll region of its own: it may just take another
_PATIENCE = 8  # refreshes for which a cursor that the child saved keeps us from painting


class Dock:
    """A dock of up to `height` lines on a screen of `rows`; hidden until there is something to show."""

    def __init__(self, rows: int, columns: int, height: int) -> None:
        self._rows = rows
        self._columns = columns
        self._height = height
        self._stream = OutputStream()
        self._stream.screen_rows = rows
        self._lines: tuple[str, ...] = ()
        self._shown = False  # the region is set
        self._wanted = True  # false while suspended
        self._dirty = False
        self._waits = 0
        self._rest = 0  # refreshes until our lines come back

    @property
    def columns(self) -> int:
        """Width that lines may have; the last column stays free, or a terminal would wrap."""
        return self._columns - 1

    @property
    def child_rows(self) -> int:
        """Rows of the child's screen."""
        return self._rows - self._height if self._shown and not self._stream.alternate else self._rows

    @property
    def child_columns(self) -> int:
        """Columns of the child's screen."""
        return self._columns

    def output(self, data: bytes) -> bytes:
        """The child's output as it goes to the terminal, our lines repaired where it wiped them."""
        written, effects = self._stream.feed(data)
        if not self._shown:
            return written
        if effects.parted:
            self._shown, self._rest = False, _REST
            self._stream.rows = None
            return written
        if effects.unbound and not self._stream.alternate:
            written += self._bind()
        if effects.wiped or effects.unbound:
            self._dirty = True
            written += self._paint_if_calm(force=False)
        return written

    @property
    def takes_keys(self) -> bool:
        """What is typed is the child's, all of it."""
        return False

    def keys(self, data: bytes) -> tuple[bytes, bytes]:
        """What of these keys is the child's, and what goes to the terminal at once."""
        return data, b""

    def set_lines(self, lines: Sequence[str]) -> None:
        """New content for the dock; it is painted by the next refresh."""
        if tuple(lines) != self._lines:
            self._lines = tuple(lines)
            self._dirty = True

    def refresh(self) -> bytes:
        """Shows the dock when there is something to show, and paints what changed."""
        if not self._lines or not self._wanted or self._stream.alternate:
            return b""
        if self._stream.parted:
            self._rest = _REST
            return b""
        if not self._shown:
            self._rest -= 1
            if self._rows < SMALLEST_ROWS or not self._stream.calm or self._rest > 0:
                return b""
            return self._show()
        self._waits += 1
        return self._paint_if_calm(force=self._waits > _PATIENCE)

    def release(self) -> bytes:
        """The child has been silent for a while: what was kept back of its output goes out."""
        return self._stream.release()

    def resize(self, rows: int, columns: int) -> bytes:
        """The terminal has a new size."""
        same = (rows, columns) == (self._rows, self._columns)
        self._rows, self._columns = rows, columns
        self._stream.screen_rows = rows
        if same or not self._shown:
            return b""
        self._shown = False
        self._stream.rows = None
        if self._stream.alternate:
            self._stream.bind = self._stream.unbind = b""
            return b""
        # What the terminal made of our old lines lies below the cursor.
        text = _SAVE + b"\x1b[r\x1b[0m" + _RESTORE + b"\x1b[J"
        return text + (self._show() if rows >= SMALLEST_ROWS else b"")

    def suspend(self) -> bytes:
        """Gives the whole screen back for now."""
        self._wanted = False
        return self._hide() if self._shown else b""

    def resume(self) -> bytes:
        """Takes our lines again."""
        self._wanted = True
        return self.refresh()

    def close(self) -> bytes:
        """Gives the screen back for good."""
        return self._stream.release() + self.suspend()

    def _show(self) -> bytes:
        self._shown = True
        rows = self._rows - self._height
        self._stream.rows = rows
        self._stream.bind = self._bind()
        self._stream.unbind = _SAVE + b"\x1b[r" + _RESTORE
        self._stream.clear = self._clear()
        # Line feeds make room, by scrolling where the cursor is low on the screen.
        room = b"\n" * self._height + b"\x1b[%dA" % self._height
        return room + self._bind() + self._paint()

    def _hide(self) -> bytes:
        self._shown = False
        self._stream.rows = None
        if self._stream.alternate:
            self._stream.bind = self._stream.unbind = b""
            return b""
        return self._clear()

    def _clear(self) -> bytes:
        """Takes our lines off the screen and lets all of it scroll."""
        first = self._rows - self._height + 1
        clear = b"".join(b"\x1b[%d;1H\x1b[2K" % row for row in range(first, self._rows + 1))
        return _SAVE + b"\x1b[r\x1b[0m" + clear + _RESTORE

    def _bind(self) -> bytes:
        return _SAVE + b"\x1b[1;%dr" % (self._rows - self._height) + _RESTORE

    def _paint_if_calm(self, force: bool) -> bytes:
        """A saved cursor is one slot that the child and we share: wait until the child took it back."""
        if not self._dirty or not self._stream.calm or self._stream.alternate:
            return b""
        if self._stream.saved and not force:
            return b""
        return self._paint()

    def _paint(self) -> bytes:
        self._dirty = False
        self._waits = 0
        first = self._rows - self._height + 1
        parts = [_SAVE, b"\x1b[0m\x1b(B"]
        for number in range(self._height):
            line = self._lines[number] if number < len(self._lines) else ""
            parts.append(b"\x1b[%d;1H\x1b[2K%s\x1b[0m" % (first + number, line.encode(errors="replace")))
        parts.append(_RESTORE)
        return b"".join(parts)
