# SPDX-License-Identifier: Apache-2.0
"""What identifies a run beside its command: the state of the source, PyTorch's settings, the driver."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping

_ALLOC_CONF = ("PYTORCH_CUDA_ALLOC_CONF", "PYTORCH_ALLOC_CONF")
_HASH = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")


def alloc_conf(environ: Mapping[str, str]) -> str | None:
    """The user's own settings of PyTorch's allocator."""
    return next((environ[name] for name in _ALLOC_CONF if environ.get(name)), None)


def working_directory() -> str | None:
    """Where the command was started; None when that folder is gone."""
    try:
        return os.getcwd()
    except OSError:
        return None


def git_commit(folder: str) -> str | None:
    """The commit that is checked out around `folder`, read from git's files; None without one."""
    folder = os.path.abspath(folder)
    while True:
        found = _head(os.path.join(folder, ".git"))
        parent = os.path.dirname(folder)
        if found is not None or parent == folder:
            return found
        folder = parent


def driver_version() -> str | None:
    """The version of the NVIDIA driver that is loaded."""
    text = _read("/proc/driver/nvidia/version") or ""
    match = re.search(r"Kernel Module(?: for \S+)?\s+(\d[\d.]+)", text)
    return match[1] if match else None


def _head(git: str) -> str | None:
    if os.path.isfile(git):  # a worktree or a submodule: the file names the folder
        link = _read(git) or ""
        git = os.path.join(os.path.dirname(git), link.partition("gitdir:")[2].strip())
    head = _read(os.path.join(git, "HEAD"))
    if head is None:
        return None
    name = head.partition("ref:")[2].strip()
    if not name:
        return head if _HASH.fullmatch(head) else None
    common = os.path.join(git, _read(os.path.join(git, "commondir")) or "")
    for place in (git, common):
        value = _read(os.path.join(place, name))
        if value is not None:
            return value if _HASH.fullmatch(value) else None
    for line in (_read(os.path.join(common, "packed-refs")) or "").splitlines():
        value, _, ref = line.partition(" ")
        if ref == name and _HASH.fullmatch(value):
            return value
    return None


def _read(path: str) -> str | None:
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read(1 << 20).strip()
    except OSError:
        return None
