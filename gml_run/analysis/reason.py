# SPDX-License-Identifier: Apache-2.0
"""Says why a run served no memory, instead of showing zeros."""

from __future__ import annotations

import os
import stat
import struct
from collections.abc import Sequence

from gml_run.telemetry.reader import ProcessSnapshot

_PT_INTERP = 3


def why_nothing(program: str, processes: Sequence[ProcessSnapshot]) -> str:
    """One sentence on why no GPU memory was served or observed."""
    if any(process.counters.degraded for process in processes):
        return "an internal fault was met before anything was served; the driver served the program"
    if any(process.counters.torch_seen for process in processes):
        return "PyTorch was loaded, but none of its GPU memory came through: it used none, or another allocator"
    if processes:
        return "the program reached CUDA but asked for no memory"
    shield = preload_obstacle(program)
    if shield:
        return shield
    return (
        "no GPU memory call was seen: the program made none, or its CUDA runtime is linked statically "
        "or loaded by the program itself"
    )


def preload_obstacle(program: str) -> str:
    """Why the loader does not preload into `program`; empty when nothing is in the way."""
    try:
        mode = os.stat(program).st_mode
        with open(program, "rb") as file:
            head = file.read(4096)
    except OSError:
        return ""
    if mode & (stat.S_ISUID | stat.S_ISGID):
        return "the program is setuid or setgid: the loader preloads nothing into it"
    if head[:4] != b"\x7fELF":
        return ""
    if head[4] == 1:
        return "the program is a 32-bit one: the libraries are 64-bit"
    if not _has_interpreter(head):
        return "the program is linked statically: nothing can be preloaded into it"
    return ""


def _has_interpreter(head: bytes) -> bool:
    try:
        (table,) = struct.unpack_from("<Q", head, 32)
        size, count = struct.unpack_from("<HH", head, 54)
        types = [struct.unpack_from("<I", head, table + number * size)[0] for number in range(count)]
    except struct.error:
        return True  # an odd file: claim nothing about it
    return _PT_INTERP in types
