# SPDX-License-Identifier: Apache-2.0
"""The pane of the program's last lines: the same however the output comes and whenever it is shown."""

import random

import pytest

from gml_run.live import log
from gml_run.live.log import LogPane

LINES = [
    b"step %d\r\n",
    b"\x1b[1mbold\x1b[0m %d\n",
    b"10%%\r50%%\r100%% %d\n",
    b"caf\xc3\xa9 %d\n",
    b"\x1b]0;title\x07a\tb %d\n",
]


def shown(data, pieces, looks):
    """The pane after `data` came in pieces, with looks at it between."""
    pane, place = LogPane(), 0
    for size in pieces:
        pane.feed(data[place : place + size])
        place += size
        if looks and size % 3 == 0:
            pane.last(5, 80)
    pane.feed(data[place:])
    return pane.last(log._KEPT, 80)


@pytest.mark.parametrize("seed", range(5))
def test_pieces_and_looks_change_nothing(seed):
    chance = random.Random(seed)
    data = b"".join(chance.choice(LINES) % number for number in range(chance.choice((40, 700)))) + b"no end"
    whole = shown(data, [], looks=False)
    assert whole[-1] == "no end" and len(whole) <= log._KEPT
    pieces = [chance.randrange(1, 200) for _ in range(len(data) // 100)]
    assert shown(data, pieces, looks=False) == shown(data, pieces, looks=True) == whole


@pytest.mark.parametrize("end", [b"\n", b""])
def test_much_output_is_not_kept(end):
    pane = LogPane()
    pane.feed(b"early\n")
    assert pane.last(5, 80) == ["early"]
    for number in range(50_000):
        pane.feed(b"%064d" % number + end)
    assert len(pane._new) <= 2 * log._MOST_NEW
    lines = pane.last(log._KEPT, 80)
    assert "early" not in lines
    if end:
        assert lines == [f"{number:064d}" for number in range(50_000 - log._KEPT, 50_000)]
