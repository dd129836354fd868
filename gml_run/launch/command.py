# SPDX-License-Identifier: Apache-2.0
"""Finds the program that a command names, with the shell's exit codes when it cannot be run."""

from __future__ import annotations

import errno
import os
from collections.abc import Mapping

from gml_run.errors import NOT_EXECUTABLE, NOT_FOUND, GmlError


def find_program(word: str, environ: Mapping[str, str]) -> str:
    """The path to execute for the first word of a command.

    Raises GmlError with exit code 127 when there is no such program, 126 when it cannot be executed.
    """
    if "/" in word:
        problem = _problem(word)
        if problem == 0:
            return word
        raise _refusal(word, problem)
    worst = errno.ENOENT
    for folder in environ.get("PATH", os.defpath).split(":"):
        path = os.path.join(folder or ".", word)
        problem = _problem(path)
        if problem == 0:
            return path
        if problem not in (errno.ENOENT, errno.ENOTDIR):
            worst = problem
    raise _refusal(word, worst)


def exec_refusal(word: str, code: int) -> GmlError:
    """The error for a program that was found but that the kernel would not execute."""
    if code == errno.ENOENT:
        return GmlError("its interpreter or loader is missing", word, "", NOT_FOUND)
    return GmlError(os.strerror(code), word, "", NOT_EXECUTABLE)


def _problem(path: str) -> int:
    """0 when `path` is an executable file, else an errno."""
    try:
        if os.path.isdir(path):
            return errno.EISDIR
        os.stat(path)
    except OSError as error:
        return error.errno or errno.ENOENT
    except ValueError:
        return errno.ENOENT  # a NUL byte in the name
    return 0 if os.access(path, os.X_OK) else errno.EACCES


def _refusal(word: str, code: int) -> GmlError:
    if not word:
        return GmlError("the command is empty", "", "is a variable in it not set?", NOT_FOUND)
    if code == errno.ENOENT:
        hint = "check the spelling" if "/" in word else "check the spelling and PATH"
        return GmlError("command not found", word, hint, NOT_FOUND)
    if code == errno.EACCES:
        return GmlError("not executable", word, f"run it with an interpreter, or chmod +x {word}", NOT_EXECUTABLE)
    return GmlError(os.strerror(code), word, "", NOT_EXECUTABLE)
