# SPDX-License-Identifier: Apache-2.0
"""Writes our lines to stderr; a closed or broken stderr changes nothing."""

from __future__ import annotations

import os
import select


def complain(text: str) -> None:
    """One line under our name."""
    write_error(f"gml-run: {text}\n")


def write_error(text: str) -> None:
    """Text for stderr, whole or not at all."""
    data = text.encode(errors="surrogateescape")
    try:
        while data:
            written = os.write(2, data)
            data = data[written:]
    except OSError:
        pass


def error_is_ready() -> bool:
    """False when writing to stderr would block: its reader is stuck, and must not hold us up."""
    poll = select.poll()
    poll.register(2, select.POLLOUT)
    return any(event & select.POLLOUT for _, event in poll.poll(0))


def error_width(default: int = 80) -> int:
    """Columns of the terminal on stderr."""
    try:
        return max(40, os.get_terminal_size(2).columns)
    except OSError:
        return default
