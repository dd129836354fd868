# SPDX-License-Identifier: Apache-2.0
"""Sizes and times as people write and read them."""

import pytest

from gml_run.units import format_percent, format_seconds, format_size, parse_size


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("24G", 24 << 30),
        ("24GiB", 24 << 30),
        ("24 gb", 24 << 30),
        ("1.5g", 3 << 29),
        ("512M", 512 << 20),
        ("1048576", 1 << 20),
        ("100B", 100),
        (".5k", 512),
        ("1T", 1 << 40),
    ],
)
def test_sizes_are_read(text, count):
    assert parse_size(text) == count


@pytest.mark.parametrize("text", ["", "0", "G", "-1G", "1.2.3G", "12Q", "1e9", "٣G", "nan", "0.0M"])
def test_other_words_are_no_sizes(text):
    with pytest.raises(ValueError):
        parse_size(text)


@pytest.mark.parametrize(
    ("count", "text"),
    [
        (0, "0"),
        (512, "512 B"),
        (2 << 20, "2 MiB"),
        (84942979072, "79.1 GiB"),
        (1536 << 20, "1.5 GiB"),
        (1023 << 20, "1023 MiB"),
        (-(3 << 30), "-3 GiB"),
    ],
)
def test_sizes_are_shown(count, text):
    assert format_size(count) == text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0.00085, "850 µs"), (0.0123, "12.3 ms"), (4.21, "4.2 s"), (185, "3 min 05 s"), (7620, "2 h 07 min")],
)
def test_times_are_shown(seconds, text):
    assert format_seconds(seconds) == text


def test_small_shares_do_not_vanish():
    assert format_percent(0.0001) == "<0.1 %"
    assert format_percent(0) == "0.0 %"
    assert format_percent(0.9962) == "99.6 %"
