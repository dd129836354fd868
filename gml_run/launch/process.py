# SPDX-License-Identifier: Apache-2.0
"""Starts the child so that it finds what it would find without us, and reports how it ended."""

from __future__ import annotations

import ctypes
import errno
import os
import resource
import signal
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import NoReturn

from gml_run.launch.command import exec_refusal
from gml_run.launch.signals import Inherited

_PR_SET_PDEATHSIG = 1
_PR_SET_DUMPABLE = 4
_PR_SET_NAME = 15
_LIBC = ctypes.CDLL(None, use_errno=True)


@dataclass(frozen=True, slots=True)
class Ending:
    """How a child ended: an exit code, or the signal that killed it."""

    code: int
    signal: int | None

    @property
    def shell_code(self) -> int:
        """The status as a shell shows it."""
        return self.code if self.signal is None else 128 + self.signal

    @property
    def signal_name(self) -> str | None:
        """The name, such as SIGKILL, or None when no signal killed it."""
        return None if self.signal is None else signal_name(self.signal)


class NoChildError(Exception):
    """No process or no descriptor is left for a child; nothing has been started."""


def signal_name(number: int) -> str:
    """The name of a signal; real-time ones have none of their own."""
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"SIGRTMIN+{number - signal.SIGRTMIN}"


def ending_of(wait_status: int) -> Ending:
    """What `waitpid` said, decoded."""
    if os.WIFSIGNALED(wait_status):
        return Ending(0, os.WTERMSIG(wait_status))
    return Ending(os.WEXITSTATUS(wait_status), None)


def die_with_parent(parent: int, number: int = signal.SIGKILL) -> None:
    """In a new child: have the kernel send `number` when `parent`, which forked us, ends.

    A program that changes user on exec loses this, as the kernel wants it.
    """
    _LIBC.prctl(_PR_SET_PDEATHSIG, int(number), 0, 0, 0)
    if os.getppid() != parent:
        os.kill(os.getpid(), number)


def name_process(name: str) -> None:
    """What `ps` and `top` show for a helper of ours; at most 15 characters count."""
    _LIBC.prctl(_PR_SET_NAME, name.encode(), 0, 0, 0)


def spawn(
    program: str,
    command: Sequence[str],
    environ: Mapping[str, str],
    inherited: Inherited,
    prepare: Callable[[], None] | None = None,
) -> int:
    """Forks and executes; returns the child's process id once the program runs.

    It starts with what was `inherited`.
    Raises GmlError when the program cannot be executed, NoChildError when there can be none. Only the main
    thread may call this: the kernel ties "die with the parent" to it.
    """
    parent = os.getpid()
    try:
        ready, report = os.pipe2(os.O_CLOEXEC)
        child = os.fork()
    except OSError as error:
        raise NoChildError(error.strerror) from None
    if child == 0:
        become(program, command, environ, inherited, parent, report, prepare)
    os.close(report)
    try:
        answer = os.read(ready, 16)
    finally:
        os.close(ready)
    if answer:
        os.waitpid(child, 0)
        raise exec_refusal(command[0], int(answer))
    return child


def become(
    program: str,
    command: Sequence[str],
    environ: Mapping[str, str],
    inherited: Inherited,
    parent: int,
    report: int,
    prepare: Callable[[], None] | None,
) -> NoReturn:
    """The child's side of a fork: never returns, writes an errno to `report` when it cannot execute."""
    code = errno.EINVAL
    try:
        die_with_parent(parent)
        if prepare is not None:
            prepare()
        inherited.restore()
        _execute(program, command, environ)
    except OSError as error:
        code = error.errno or errno.EINVAL
    except BaseException:
        code = errno.EINVAL
    finally:
        os.write(report, str(code).encode())
        os._exit(127)


def replace_self(program: str, command: Sequence[str], environ: Mapping[str, str], inherited: Inherited) -> NoReturn:
    """Executes the program in our place, where no child can be had. Raises GmlError when that fails too."""
    try:
        inherited.restore()
        _execute(program, command, environ)
    except OSError as error:
        raise exec_refusal(command[0], error.errno or errno.EINVAL) from None


def _execute(program: str, command: Sequence[str], environ: Mapping[str, str]) -> NoReturn:
    """Raises OSError when the kernel refuses."""
    entries = environment_entries(environ, given_entries() or [])
    code = _execve(program, command, entries)
    if code == errno.ENOEXEC:
        # A script without a first line: what a shell and execvp do.
        code = _execve("/bin/sh", ["sh", program, *command[1:]], entries)
    raise OSError(code, os.strerror(code))


def _execve(program: str, command: Sequence[str], entries: Sequence[bytes]) -> int:
    """The call itself: Python's own takes no environment with a name twice, or with none. Returns an errno."""
    words = [os.fsencode(word) for word in command]
    _LIBC.execve(os.fsencode(program), _texts(words), _texts(entries))
    return ctypes.get_errno()


def _texts(words: Sequence[bytes]) -> ctypes.Array[ctypes.c_char_p]:
    return (ctypes.c_char_p * (len(words) + 1))(*words, None)


def environment_entries(environ: Mapping[str, str], given: Sequence[bytes]) -> list[bytes]:
    """The environment for the kernel: what was `given` to us, byte for byte and in its order, as far as `environ`
    did not change it, and what `environ` has beside that. Of a name given twice the first counts, as for getenv."""
    wanted = {os.fsencode(name): os.fsencode(value) for name, value in environ.items()}
    entries: list[bytes] = []
    kept: dict[bytes, bool] = {}
    for entry in given:
        name, equals, value = entry.partition(b"=")
        if not equals or not name:
            entries.append(entry)  # no variable: nobody can have changed it
            continue
        if name not in kept:
            kept[name] = wanted.get(name) == value
        if kept[name]:
            entries.append(entry)
    new = [name + b"=" + value for name, value in wanted.items() if name and not kept.get(name, False)]
    return entries + new


def given_entries() -> list[bytes] | None:
    """The environment that we were started with; None where /proc does not tell it."""
    try:
        with open("/proc/self/environ", "rb") as file:
            return file.read().split(b"\0")[:-1]
    except OSError:
        return None


def end_like(ending: Ending) -> NoReturn:
    """Ends this process the way the child ended, without a core dump of our own."""
    if ending.signal is not None:
        _LIBC.prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0)
        _, hard = resource.getrlimit(resource.RLIMIT_CORE)
        resource.setrlimit(resource.RLIMIT_CORE, (0, hard))
        if ending.signal not in (signal.SIGKILL, signal.SIGSTOP):
            signal.signal(ending.signal, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {ending.signal})
        os.kill(os.getpid(), ending.signal)
        # Only the first process of a container survives its own signal.
    os._exit(ending.shell_code & 0xFF)
