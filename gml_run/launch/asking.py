# SPDX-License-Identifier: Apache-2.0
"""Tells whether a program waits for keys on its terminal, so that a view of ours takes none that are meant for it."""

from __future__ import annotations

import os
import termios
from collections.abc import Iterator

_READ = "0"  # the number of the system call
_MOST = 256  # processes, and threads of each, that are looked at


def waits_for_keys(master: int, path: str, child: int) -> bool:
    """True while the program has its terminal, at `path` for it and `master` for us, in a mode for keys or without
    echo (an editor, a shell, a password), or while `child` or a process below it is in a read of that terminal."""
    try:
        local = termios.tcgetattr(master)[3]
    except termios.error:
        return False  # nobody is left there
    if not local & termios.ICANON or not local & termios.ECHO:
        return True
    return any(_reads(pid, (path, "/dev/tty")) for pid in _family(child))


def _family(child: int) -> Iterator[int]:
    waiting = [child]
    for _ in range(_MOST):
        if not waiting:
            return
        pid = waiting.pop()
        yield pid
        for thread in _threads(pid):
            waiting += map(int, _text(f"/proc/{pid}/task/{thread}/children").split())


def _reads(pid: int, paths: tuple[str, ...]) -> bool:
    for thread in _threads(pid):
        words = _text(f"/proc/{pid}/task/{thread}/syscall").split()
        if words[:1] != [_READ]:
            continue
        try:
            if os.readlink(f"/proc/{pid}/fd/{int(words[1], 16)}") in paths:
                return True
        except OSError:
            pass  # it has ended
    return False


def _threads(pid: int) -> list[str]:
    try:
        return os.listdir(f"/proc/{pid}/task")[:_MOST]
    except OSError:
        return []


def _text(path: str) -> str:
    """Empty where the process has ended, or may not be looked at."""
    try:
        with open(path, encoding="ascii") as file:
            return file.read()
    except OSError:
        return ""
