# SPDX-License-Identifier: Apache-2.0
"""What passes to the terminal while our lines are on it: rewritten rows, half written sequences."""

import random

import pytest

from gml_run.live.stream import OutputStream


def stream(rows=20):
    made = OutputStream()
    made.rows = rows
    return made


@pytest.mark.parametrize(
    ("given", "written"),
    [
        (b"plain\r\n", b"plain\r\n"),
        (b"\x1b[31;1mred\x1b[0m", b"\x1b[31;1mred\x1b[0m"),
        (b"\x1b[999;999H", b"\x1b[20;999H"),
        (b"\x1b[5;7H\x1b[H\x1b[;9f", b"\x1b[5;7H\x1b[H\x1b[;9f"),
        (b"\x1b[24d", b"\x1b[20d"),
        (b"\x1b[r", b"\x1b[1;20r"),
        (b"\x1b[5;24r", b"\x1b[5;20r"),
        (b"\x1b[22;24r", b"\x1b[1;20r"),
        (b"\x1b[3;10r", b"\x1b[3;10r"),
        (b"\x1b[?6h", b""),
        (b"\x1b[?25l\x1b[?2004h", b"\x1b[?25l\x1b[?2004h"),
        (b"\x1b]0;a title\x07\x1b]8;;http://x\x1b\\", b"\x1b]0;a title\x07\x1b]8;;http://x\x1b\\"),
        (b"\x1bPq#0~\x1b\\x", b"\x1bPq#0~\x1b\\x"),
        (b"\x1b(0lqk\x1b(B\x1bM\x1bD", b"\x1b(0lqk\x1b(B\x1bM\x1bD"),
        (b"\xff\xfe latin \xe9 text", b"\xff\xfe latin \xe9 text"),
        (b"\x1b\x00", b"\x1b\x00"),
        (bytes(range(32, 127)), bytes(range(32, 127))),
    ],
)
def test_rewriting(given, written):
    made = stream()
    out, _ = made.feed(given)
    assert out + made.release() == written


def test_pieces_give_the_same_as_the_whole():
    seed = random.randrange(1 << 30)
    print("seed", seed)
    chance = random.Random(seed)
    words = [
        b"text ",
        "größe 漢字 🙂".encode(),
        b"\x1b[31m",
        b"\x1b[99;1H",
        b"\x1b]0;t\x07",
        b"\x1b[r",
        b"\x1b7\x1b8",
        b"\n",
    ]
    for _ in range(300):
        data = b"".join(chance.choice(words) for _ in range(20))
        whole, pieces = stream(), stream()
        expected = whole.feed(data)[0] + whole.release()
        got = b""
        position = 0
        while position < len(data):
            size = chance.randint(1, 7)
            got += pieces.feed(data[position : position + size])[0]
            position += size
        assert got + pieces.release() == expected


@pytest.mark.parametrize("half", [b"\x1b", b"\x1b[", b"\x1b[38;2;1", b"\x1b]0;tit", b"\x1b(", "漢".encode()[:2]])
def test_nothing_is_painted_into_a_half_written_sequence(half):
    made = stream()
    assert made.feed(b"text" + half)[0] == b"text"
    assert not made.calm
    made.feed(b"m")
    assert made.calm or half == b"\x1b]0;tit"


def test_a_half_sequence_that_was_let_go_still_forbids_painting():
    made = stream()
    made.feed(b"\x1b[3")
    assert made.release() == b"\x1b[3" and not made.calm
    assert made.feed(b"1mx")[0] == b"1mx" and made.calm


def test_an_endless_string_is_not_kept_back_for_ever():
    made = stream()
    data = b"\x1b]" + b"x" * 10_000
    assert made.feed(data)[0] + made.release() == data
    assert made.calm


def test_alternate_screen_is_left_alone():
    made = stream()
    made.unbind, made.bind = b"<unbind>", b"<bind>"
    out, effects = made.feed(b"a\x1b[?1049h\x1b[r\x1b[99;1H\x1b[2Jb")
    assert out == b"a<unbind>\x1b[?1049h\x1b[r\x1b[99;1H\x1b[2Jb"
    assert effects.entered and made.alternate
    out, effects = made.feed(b"\x1b[?1049l\x1b[99;1H")
    assert out == b"\x1b[?1049l<bind>\x1b[20;1H"
    assert effects.left and effects.wiped and not made.alternate


@pytest.mark.parametrize(
    ("data", "wiped", "unbound"),
    [
        (b"\x1b[J", True, False),
        (b"\x1b[2J", True, False),
        (b"\x1bc", True, True),
        (b"\x1b[!p", False, True),
        (b"\x1b[K", False, False),
    ],
)
def test_what_happens_to_our_lines(data, wiped, unbound):
    _, effects = stream().feed(data)
    assert (effects.wiped, effects.unbound) == (wiped, unbound)


def test_saved_cursor_is_noted():
    made = stream()
    for data, saved in ((b"\x1b7", True), (b"\x1b8", False), (b"\x1b[s", True), (b"\x1b[u", False)):
        made.feed(data)
        assert made.saved is saved


def test_without_our_lines_nothing_is_rewritten():
    made = OutputStream()
    data = b"\x1b[99;1H\x1b[r\x1b[?6h"
    assert made.feed(data)[0] == data
