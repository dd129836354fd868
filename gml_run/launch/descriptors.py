# SPDX-License-Identifier: Apache-2.0
"""Which descriptors are the child's and which are ours: none of ours reaches it, and we hold none of its own."""

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


def let_go(standard: tuple[int, ...]) -> None:
    """Gives up what we were started with, once the child has it: those of `standard`, and every one above 2.

    Whoever reads a pipe to its end, waits for a lock or listens to a socket then waits for the child alone.
    """
    numbers = [number for number in (*standard, *_inherited()) if not is_locked(number)]
    try:
        nothing = os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC)
    except OSError:
        return
    # Not closed: a library that the user preloads may have opened one of them in us, and goes on writing to it.
    for number in numbers:
        os.dup2(nothing, number, inheritable=False)
    os.close(nothing)


def close_all_but(*kept: int) -> None:
    """In a helper of ours: whoever reads the program's output waits for its last writer."""
    start = 0
    for number in sorted(kept):
        os.closerange(start, number)
        start = number + 1
    os.closerange(start, min(os.sysconf("SC_OPEN_MAX"), 1 << 20))


def _inherited() -> list[int]:
    """The descriptors above 2 that a program which we start inherits; none that we opened ourselves is."""
    try:
        numbers = [int(name) for name in os.listdir("/proc/self/fd")]
    except OSError:
        return []
    return [number for number in numbers if number > 2 and _is_inheritable(number)]


def is_locked(number: int) -> bool:
    """True for a file of which this process holds a lock by fcntl: closing any descriptor of it would drop that."""
    try:
        with open(f"/proc/self/fdinfo/{number}", "rb") as file:
            return any(line.startswith(b"lock:") and b" POSIX " in line for line in file)
    except OSError:
        return False


def _is_inheritable(number: int) -> bool:
    try:
        return os.get_inheritable(number)
    except OSError:
        return False  # that which listed them
