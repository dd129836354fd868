# SPDX-License-Identifier: Apache-2.0
"""Keeps descriptors 0, 1 and 2 occupied, so that no file of ours ends up as the child's stdin or stdout."""

from __future__ import annotations

import os


def hold_standard_descriptors() -> None:
    """Puts /dev/null on closed standard descriptors, close-on-exec: the child still finds them closed."""
    for number in (0, 1, 2):
        try:
            os.fstat(number)
        except OSError:
            opened = os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC)
            if opened != number:  # a lower one is closed too, and is filled by a later round
                os.dup2(opened, number, inheritable=False)
                os.close(opened)


def standard_terminals() -> tuple[bool, bool, bool]:
    """Which of stdin, stdout and stderr are terminals."""
    first, second, third = (os.isatty(number) for number in (0, 1, 2))
    return first, second, third
