# SPDX-License-Identifier: Apache-2.0
"""The dock against a terminal: above it, the screen is what the program would have made of a smaller one."""

import random

import pyte
import pytest

from gml_run.live.dock import Dock

ROWS, COLUMNS, HEIGHT = 24, 60, 5
LINES = [f"dock line {number}" for number in range(HEIGHT)]


class Screen(pyte.Screen):
    """A cursor behind the last column stays there when it is saved and restored, as on terminals."""

    def restore_cursor(self):
        column = self.savepoints[-1].cursor.x if self.savepoints else None
        super().restore_cursor()
        if column == self.columns:
            self.cursor.x = column


class Emulator:
    """A terminal of a given size that is fed bytes."""

    def __init__(self, rows):
        self.screen = Screen(COLUMNS, rows)
        self.stream = pyte.ByteStream(self.screen)

    def feed(self, data):
        self.stream.feed(data)

    def top(self, rows):
        return [line.rstrip() for line in self.screen.display[:rows]]


def pieces(chance, count):
    """Output as programs make it: text, movements, erasing, regions, colours."""
    for _ in range(count):
        row, column = chance.randint(1, 40), chance.randint(1, COLUMNS)
        yield chance.choice(
            [
                b"some text ",
                "größe é ".encode(),
                b"\r\n",
                b"\r\n" * chance.randint(1, 6),
                b"\r",
                b"\x08",
                b"\t",
                b"\x1b[%d;%dH" % (row, column),
                b"\x1b[%dA" % chance.randint(1, 9),
                b"\x1b[%dB" % chance.randint(1, 9),
                b"\x1b[%dd" % row,
                b"\x1b[K",
                b"\x1b[1K",
                b"\x1b[J",
                b"\x1b[2J",
                b"\x1b[31;1m",
                b"\x1b[0m",
                b"\x1bM",
                b"\x1b[%dL" % chance.randint(1, 3),
                b"\x1b[%dM" % chance.randint(1, 3),
                b"\x1b[%dP" % chance.randint(1, 3),
                b"\x1b]0;title\x07",
                b"\x1b[1;%dr" % chance.randint(ROWS - HEIGHT, 30),
                b"\x1b[r",
            ]
        )


def chop(chance, data):
    """The bytes in pieces as a pipe might deliver them."""
    position = 0
    while position < len(data):
        size = chance.choice((1, 2, 3, 50, 400))
        yield data[position : position + size]
        position += size


@pytest.mark.parametrize("round_", range(30))
def test_the_screen_above_is_the_programs_own(round_):
    seed = random.randrange(1 << 30)
    print("seed", seed)
    chance = random.Random(seed)
    reference, terminal = Emulator(ROWS - HEIGHT), Emulator(ROWS)
    dock = Dock(ROWS, COLUMNS, HEIGHT)
    dock.set_lines(LINES)
    terminal.feed(dock.refresh())
    data = b"".join(pieces(chance, 60))
    # Terminals go home when the region is reset; this emulator does so only when it is named.
    reference.feed(data.replace(b"\x1b[r", b"\x1b[1;%dr" % (ROWS - HEIGHT)))
    for piece in chop(chance, data):
        terminal.feed(dock.output(piece))
        if chance.random() < 0.2:
            dock.set_lines([f"{line} {chance.random():.3f}" for line in LINES])
        if chance.random() < 0.5:
            terminal.feed(dock.refresh())
    terminal.feed(dock.release() + dock.refresh())
    assert terminal.top(ROWS - HEIGHT) == reference.top(ROWS - HEIGHT)
    cursor, expected = terminal.screen.cursor, reference.screen.cursor
    assert (cursor.y, cursor.x) == (expected.y, expected.x)
    assert [line.split()[:2] for line in terminal.top(ROWS)[ROWS - HEIGHT :]] == [["dock", "line"]] * HEIGHT


def test_it_makes_room_where_the_cursor_is_low():
    terminal = Emulator(ROWS)
    text = b"".join(b"line %d\r\n" % number for number in range(23)) + b"prompt> "
    terminal.feed(text)
    dock = Dock(ROWS, COLUMNS, HEIGHT)
    dock.output(text)
    dock.set_lines(LINES)
    terminal.feed(dock.refresh())
    above = terminal.top(ROWS - HEIGHT)
    assert above[-1] == "prompt>" and above[-2] == "line 22"
    assert (terminal.screen.cursor.y, terminal.screen.cursor.x) == (ROWS - HEIGHT - 1, 8)


def test_closing_gives_the_screen_back():
    terminal = Emulator(ROWS)
    dock = Dock(ROWS, COLUMNS, HEIGHT)
    dock.set_lines(LINES)
    terminal.feed(dock.refresh() + dock.output(b"text\r\n") + dock.close())
    assert terminal.top(ROWS) == ["text", *[""] * (ROWS - 1)]
    terminal.feed(b"x\r\n" * 40)  # the region is gone: the whole screen scrolls
    assert terminal.top(ROWS)[-2] == "x"
    assert dock.child_rows == ROWS


def test_a_saved_cursor_delays_painting_but_not_for_ever():
    dock = Dock(ROWS, COLUMNS, HEIGHT)
    dock.set_lines(LINES)
    dock.refresh()
    dock.output(b"\x1b7")
    dock.set_lines(["new"] * HEIGHT)
    painted = [bool(dock.refresh()) for _ in range(12)]
    assert not painted[0] and painted.count(True) == 1


@pytest.mark.parametrize(("rows", "shown"), [(11, False), (12, True)])
def test_a_low_screen_has_no_dock(rows, shown):
    dock = Dock(rows, COLUMNS, HEIGHT)
    dock.set_lines(LINES)
    assert bool(dock.refresh()) is shown
    assert dock.child_rows == (rows - HEIGHT if shown else rows)


@pytest.mark.parametrize("region", [b"\x1b[3;10r", b"\x1b[;%dr" % (ROWS - HEIGHT - 1), b"\x1b[1;2r"])
def test_our_lines_give_way_to_a_scroll_region_that_ends_above_them(region):
    """As for a progress bar below a region: line feeds below it would go on into our lines."""
    terminal = Emulator(ROWS)
    dock = Dock(ROWS, COLUMNS, HEIGHT)
    dock.set_lines(LINES)
    terminal.feed(dock.refresh())
    assert dock.child_rows == ROWS - HEIGHT
    last = b"\x1b[%d;1H" % (ROWS - HEIGHT)
    for piece in (region[:3], region[3:] + last + b"bar 1", b"\x1b[E\x1b[%d;1Hbar 3" % ROWS):
        terminal.feed(dock.output(piece) + dock.refresh())
    assert dock.child_rows == ROWS
    shown = terminal.top(ROWS)
    assert (shown[ROWS - HEIGHT - 1], shown[ROWS - 1]) == ("bar 1", "bar 3")
    assert not any("dock line" in line for line in shown)
    terminal.feed(dock.output(b"\x1b[r\x1b[2J\x1b[Hdone\r\n"))
    refreshes = [dock.refresh() for _ in range(6)]
    assert refreshes[0] == b"" and any(refreshes)
    terminal.feed(b"".join(refreshes))
    assert terminal.top(1) == ["done"] and dock.child_rows == ROWS - HEIGHT
    assert [line.split()[:2] for line in terminal.top(ROWS)[ROWS - HEIGHT :]] == [["dock", "line"]] * HEIGHT


def test_a_region_that_was_there_first_keeps_our_lines_away():
    dock = Dock(ROWS, COLUMNS, HEIGHT)
    dock.output(b"\x1b[1;%dr" % (ROWS - 1))
    dock.set_lines(LINES)
    assert not any(dock.refresh() for _ in range(10))
    dock.output(b"\x1b[1;%dr" % ROWS)
    assert any(dock.refresh() for _ in range(10))


def test_a_full_reset_ends_the_region():
    dock = Dock(ROWS, COLUMNS, HEIGHT)
    dock.output(b"\x1b[2;9r")
    dock.output(b"\x1bc")
    dock.set_lines(LINES)
    assert any(dock.refresh() for _ in range(10))
