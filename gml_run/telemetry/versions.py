# SPDX-License-Identifier: Apache-2.0
"""Versions of the libraries that a running process has loaded, from its memory map."""

from __future__ import annotations

import os
import re

_TORCH_VERSION = re.compile(r"^(__version__|cuda)\b[^=]*= *'([^']+)'", re.MULTILINE)
_RUNTIME = re.compile(rb"/libcudart\.so\.(\d+)")


def library_versions(pid: int) -> dict[str, str]:
    """Maps "torch", "cuda" (what torch was built for), "cudart" and "nccl" as far as they are known; {} at worst."""
    try:
        with open(f"/proc/{pid}/maps", "rb") as file:
            maps = file.read()
    except OSError:
        return {}
    found: dict[str, str] = {}
    runtime = _RUNTIME.search(maps)
    if runtime:
        found["cudart"] = runtime[1].decode()
    position = maps.find(b"/torch/lib/libtorch")
    nccl = maps.find(b"/nvidia/nccl/lib/libnccl")
    if nccl >= 0:
        found.update(_nccl(os.fsdecode(maps[maps.rfind(b" ", 0, nccl) + 1 : nccl])))
    if position >= 0:
        start = maps.rfind(b" ", 0, position) + 1
        found.update(_torch(os.fsdecode(maps[start:position]) + "/torch/version.py"))
    return found


def _nccl(packages: str) -> dict[str, str]:
    """NCCL comes as a package whose folder of metadata names its version."""
    try:
        names = os.listdir(packages)
    except OSError:
        return {}
    matches = (re.fullmatch(r"nvidia_nccl_cu\d+-([\d.]+)\.dist-info", name) for name in names)
    return next(({"nccl": match[1]} for match in matches if match), {})


def _torch(path: str) -> dict[str, str]:
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            text = file.read(4096)
    except OSError:
        return {}
    names = {"__version__": "torch", "cuda": "cuda"}
    return {names[match[1]]: match[2] for match in _TORCH_VERSION.finditer(text)}
