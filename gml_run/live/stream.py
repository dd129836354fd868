# SPDX-License-Identifier: Apache-2.0
"""Follows the child's terminal output so that our lines can share the screen with it.

The child believes in a screen that is as much shorter as our lines are high. Most output passes as it
is. Rewritten are only sequences that would reach our lines: absolute rows are limited to the child's
screen, and scroll regions end above our lines. Noted are: whether a sequence or a character is half
written (nothing may be painted then), the alternate screen, and what wipes our lines.

A scroll region that ends above the last row of the child's screen cannot be shared: below it a line feed
would go on into our lines, where the child's own screen ends. They give way while there is one.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

# One escape sequence: CSI, OSC / DCS / APC / PM / SOS strings, and the short ones.
_SEQUENCE = re.compile(
    rb"\x1b(?:\[(?P<csi>[0-9:;<=>?]*)(?P<mid>[ -/]*)(?P<final>[@-~])"
    rb"|[\]PX^_](?:[^\x07\x1b]|\x1b(?!\\))*(?:\x07|\x1b\\)"
    rb"|(?P<short>[ -/]*[0-OQ-WYZ\\`-~]))"
)
_ALTERNATE = (b"47", b"1047", b"1049")
_LONGEST = 4096  # a "half sequence" longer than this is no sequence
_UTF8_TAIL = re.compile(rb"(?:[\xc2-\xdf]|[\xe0-\xef][\x80-\xbf]?|[\xf0-\xf4][\x80-\xbf]{0,2})\Z")


@dataclass(slots=True)
class Effects:
    """What a piece of output did to our lines."""

    wiped: bool = False  # our lines may have been erased or scrolled away
    unbound: bool = False  # the scroll region was reset
    parted: bool = False  # the child took a scroll region that leaves no room for them: they are cleared
    entered: bool = False  # the child went to the alternate screen
    left: bool = False  # and came back


class OutputStream:
    """`rows`: the child's screen; None while our lines are not shown, when nothing is rewritten."""

    def __init__(self) -> None:
        self.rows: int | None = None
        self.screen_rows = 0  # of the terminal, for when our lines are not shown
        self.clear = b""  # written before our lines give way
        self.parted = False  # the child has a scroll region that ends above its last row
        self.unbind = b""  # written before the child enters the alternate screen
        self.bind = b""  # written after it came back
        self.alternate = False
        self.saved = False  # the child saved the cursor and has not restored it
        self._held = b""
        self._forced = False

    @property
    def _limits(self) -> bool:
        return self.rows is not None and not self.alternate and not self.parted

    @property
    def calm(self) -> bool:
        """True when nothing is half written, so that something else may be written now."""
        return not self._held and not self._forced

    def feed(self, data: bytes) -> tuple[bytes, Effects]:
        """The bytes to write for `data`, and what they do. A half written end is kept back."""
        effects = Effects()
        data = self._held + data
        self._held = b""
        self._forced = False
        if b"\x1b" not in data:
            return self._keep_tail(data, _UTF8_TAIL.search(data[-4:])), effects
        out = []
        position = 0
        while (start := data.find(b"\x1b", position)) >= 0:
            out.append(data[position:start])
            match = _SEQUENCE.match(data, start)
            if match is None:
                if _unfinished(data, start):
                    self._held = data[start:]
                    return b"".join(out), effects
                out.append(data[start : start + 1])
                position = start + 1
                continue
            out.append(self._sequence(match, effects))
            position = match.end()
        rest = data[position:]
        out.append(self._keep_tail(rest, _UTF8_TAIL.search(rest[-4:])))
        return b"".join(out), effects

    def release(self) -> bytes:
        """What was kept back, when nothing seems to complete it."""
        held, self._held = self._held, b""
        self._forced = bool(held)  # its other half may still come: nothing may stand between them
        return held

    def _keep_tail(self, data: bytes, tail: re.Match[bytes] | None) -> bytes:
        if tail is None:
            return data
        self._held = tail[0]
        return data[: len(data) - len(tail[0])]

    def _sequence(self, match: re.Match[bytes], effects: Effects) -> bytes:
        if match["short"] is not None:
            return self._short(match, effects)
        if match["final"] is None or match["mid"] == b"!":
            if match["final"] == b"p":  # soft reset
                effects.unbound, self.parted = True, False
            return match[0]
        if match["mid"]:
            return match[0]
        final, parameters = match["final"], match["csi"]
        if parameters.startswith(b"?"):
            return self._mode(match, final, parameters[1:].split(b";"), effects)
        if final in b"JK":
            effects.wiped = effects.wiped or final == b"J"
        elif final == b"r" and not self.alternate and not parameters.startswith((b"<", b"=", b">")):
            return self._region(match, parameters, effects)
        elif final in b"su":
            self.saved = final == b"s"
        elif self._limits and final in b"Hfd" and not parameters.startswith((b"<", b"=", b">")):
            return self._position(final, parameters)
        return match[0]

    def _short(self, match: re.Match[bytes], effects: Effects) -> bytes:
        kind = match["short"]
        if kind == b"c":  # full reset
            effects.unbound = effects.wiped = True
            self.saved = self.parted = False
        elif kind in (b"7", b"8"):
            self.saved = kind == b"7"
        elif kind == b"#8":  # fills the screen
            effects.wiped = True
        return match[0]

    def _mode(self, match: re.Match[bytes], final: bytes, modes: list[bytes], effects: Effects) -> bytes:
        if final not in b"hl":
            return match[0]
        if self._limits and modes == [b"6"]:
            return b""  # rows relative to a region: ours begins at the top anyway
        if any(mode in _ALTERNATE for mode in modes):
            # The main screen is bound again only by its own sequence, in its place in the stream.
            inside = final == b"h"
            if inside and not self.alternate:
                self.alternate = effects.entered = True
                return self.unbind + match[0]
            if self.alternate and not inside:
                self.alternate = False
                effects.left = effects.wiped = True
                return match[0] + self.bind
        return match[0]

    def _region(self, match: re.Match[bytes], parameters: bytes, effects: Effects) -> bytes:
        """A scroll region: one down to the child's last row ends above our lines, any other sends them away."""
        values = parameters.split(b";")
        rows = self.rows if self.rows is not None and not self.parted else self.screen_rows
        top, bottom = _number(values, 0, 1), _number(values, 1, rows)
        if top < bottom < rows:
            first = not self.parted
            self.parted = True
            if first and self.rows is not None:
                effects.parted = True
                return self.clear + match[0]
            return match[0]
        self.parted = False
        if not self._limits:
            return match[0]
        bottom = min(bottom, rows)
        return b"\x1b[%d;%dr" % (top, bottom) if top < bottom else b"\x1b[1;%dr" % rows

    def _position(self, final: bytes, parameters: bytes) -> bytes:
        """An absolute row, kept inside the child's screen."""
        rows = self.rows or 0
        values = parameters.split(b";")
        if _number(values, 0, 1) > rows:
            values[0] = b"%d" % rows
        return b"\x1b[" + b";".join(values) + final


def _unfinished(data: bytes, start: int) -> bool:
    """True when the bytes from `start` may be the beginning of a sequence."""
    piece = data[start:]
    if len(piece) > _LONGEST:
        return False
    if len(piece) == 1 or piece[1:2] in b"]PX^_":
        return True
    if piece[1:2] == b"[":
        return re.fullmatch(rb"\x1b\[[0-9:;<=>?]*[ -/]*", piece) is not None
    return re.fullmatch(rb"\x1b[ -/]*", piece) is not None


def _number(values: list[bytes], index: int, default: int) -> int:
    if index >= len(values) or not values[index].isdigit():
        return default
    return int(values[index][:6]) or default
