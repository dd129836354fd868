# SPDX-License-Identifier: Apache-2.0
"""The program's output as plain lines, for a pane that shows the last ones.

Output is taken as it comes and made into lines only when they are shown: a program that writes a lot is not to wait
for lines that nobody sees.
"""

from __future__ import annotations

import codecs
import re
from collections import deque

_ESCAPE = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|[\]PX^_].*?(?:\x07|\x1b\\)|[ -/]*[0-OQ-WYZ\\`-~])", re.DOTALL)
_BROKEN = re.compile(r"\x1b[^\x1b]{0,256}\Z", re.DOTALL)  # a sequence that may go on
_CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]")
_KEPT = 500
_LONGEST = 2000  # characters of one line
_MOST_NEW = 1 << 20  # bytes that wait to be made into lines


class LogPane:
    """Keeps the last lines. Colours and moves are dropped; a carriage return writes the line anew."""

    def __init__(self) -> None:
        self._new = bytearray()
        self._lines: deque[str] = deque(maxlen=_KEPT)
        self._begin()

    def _begin(self) -> None:
        """At the start of a line, with nothing half taken."""
        self._decode = codecs.getincrementaldecoder("utf-8")("replace").decode
        self._line = ""
        self._anew = False
        self._rest = ""

    def feed(self, data: bytes) -> None:
        """More of the output."""
        self._new += data
        if len(self._new) > 2 * _MOST_NEW:
            self._skip(self._new.find(b"\n", len(self._new) - _MOST_NEW) + 1 or len(self._new) - _MOST_NEW)

    def _skip(self, count: int) -> None:
        """Forgets the oldest output; lines before it would be older still."""
        del self._new[:count]
        self._lines.clear()
        self._begin()

    def _take(self) -> None:
        end = len(self._new)
        for _ in range(_KEPT + 1):
            end = self._new.rfind(b"\n", 0, end)
            if end < 0:
                break
        else:
            self._skip(end + 1)
        data = bytes(self._new)
        self._new.clear()
        text = _ESCAPE.sub("", self._rest + self._decode(data))
        broken = _BROKEN.search(text)
        self._rest = broken[0] if broken else ""
        if broken:
            text = text[: broken.start()]
        for part in re.split(r"([\r\n])", text):
            if part == "\n":
                self._lines.append(self._line)
                self._line, self._anew = "", False
            elif part == "\r":
                self._anew = True
            elif part:
                if self._anew:
                    self._line, self._anew = "", False
                self._line = (self._line + _CONTROL.sub("", part.expandtabs(8)))[:_LONGEST]

    def last(self, count: int, columns: int) -> list[str]:
        """The last `count` lines at this width; long lines are cut."""
        self._take()
        lines = [*self._lines, self._line] if self._line else list(self._lines)
        return [line if len(line) <= columns else line[: columns - 1] + "…" for line in lines[-count:]]
