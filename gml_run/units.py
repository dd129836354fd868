# SPDX-License-Identifier: Apache-2.0
"""Sizes, times and texts as people write and read them; inside the program sizes are int bytes."""

from __future__ import annotations

import re

KIB = 1 << 10
MIB = 1 << 20
GIB = 1 << 30
TIB = 1 << 40

_FACTORS = {"": 1, "K": KIB, "M": MIB, "G": GIB, "T": TIB}
_SIZE = re.compile(r"\s*(\d+(?:\.\d*)?|\.\d+)\s*([KMGT]?)(?:I?B)?\s*", re.IGNORECASE | re.ASCII)


def parse_size(text: str) -> int:
    """Bytes of "24G", "24GiB", "1.5 g", "512M" or "1048576"; K, M, G, T are powers of 1024.

    Raises ValueError for anything else, and for sizes that are not positive.
    """
    match = _SIZE.fullmatch(text)
    if match is None:
        raise ValueError(f"{text!r} is not a size")
    number = int(float(match[1]) * _FACTORS[match[2].upper()])
    if number <= 0:
        raise ValueError(f"{text!r} is not a positive size")
    return number


def format_size(count: int) -> str:
    """A size in four significant places at most: "79.6 GiB", "512 MiB", "0"."""
    if count < 0:
        return "-" + format_size(-count)
    if count == 0:
        return "0"
    for factor, unit in ((TIB, "TiB"), (GIB, "GiB"), (MIB, "MiB"), (KIB, "KiB")):
        if count >= factor:
            value = count / factor
            digits = 2 if value < 10 else 1 if value < 100 else 0
            text = f"{value:.{digits}f}"
            return f"{text.rstrip('0').rstrip('.') if '.' in text else text} {unit}"
    return f"{count} B"


def format_seconds(seconds: float) -> str:
    """A time in at most three places: "850 µs", "12.3 ms", "4.2 s", "3 min 05 s", "2 h 07 min"."""
    if seconds < 0:
        return "-" + format_seconds(-seconds)
    if 0 < seconds < 1e-6:
        return f"{seconds * 1e9:.0f} ns"
    if seconds < 1e-3:
        return f"{seconds * 1e6:.0f} µs"
    if seconds < 1:
        return f"{seconds * 1e3:.3g} ms"
    if seconds < 60:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 60:
        return f"{minutes} min {rest:02d} s"
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes:02d} min"


def format_count(count: int) -> str:
    """A count with thousands separated: "1,234,567"."""
    return f"{count:,}"


def format_percent(ratio: float) -> str:
    """A share as percent: "0.4 %", "12 %", "34.5 %"."""
    value = 100 * ratio
    if 0 < value < 0.05:
        return "<0.1 %"
    return f"{value:.1f} %"


def shorten(text: str, width: int) -> str:
    """The text on one line of at most `width` characters, its middle left out."""
    text = text.replace("\n", " ")
    if len(text) <= width:
        return text
    half = (width - 1) // 2
    return text[:half] + "…" + text[-(width - 1 - half) :]
