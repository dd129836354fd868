# SPDX-License-Identifier: Apache-2.0
"""Finds the native libraries: in the installed package, or in GML_LIB_DIR for development builds."""

from __future__ import annotations

import os
from dataclasses import dataclass

import gml_run
from gml_run.errors import GmlError

SIMULATED = ("libgmlsim.so", "libcuda.so.1", "libnvidia-ml.so.1")


@dataclass(frozen=True, slots=True)
class Native:
    """Where the libraries lie; `simulated` is empty when the simulated GPU was not built."""

    shim: str
    simulated: tuple[str, ...]


def find_native() -> Native | None:
    """The libraries, as absolute paths; None when they were not built."""
    override = os.environ.get("GML_LIB_DIR", "")
    if override:
        found = _look_in(os.path.abspath(override))
        if found is None:
            raise GmlError("no libgml.so there", f"GML_LIB_DIR={override}", "point it at a build folder, or unset it")
        return found
    # `__path__` names the source folder and, in an editable install, the folder of built files too;
    # importlib.resources would look in the same places and costs 20 ms to import.
    for folder in gml_run.__path__:
        found = _look_in(os.path.join(os.path.abspath(folder), "lib"))
        if found is not None:
            return found
    return None


def _look_in(folder: str) -> Native | None:
    shim = os.path.join(folder, "libgml.so")
    if not os.path.isfile(shim):
        return None
    parts = tuple(os.path.join(folder, "sim", name) for name in SIMULATED)
    return Native(shim, parts if all(os.path.isfile(part) for part in parts) else ())


def glibc_version() -> tuple[int, int] | None:
    """The version of the C library that we run on; None when it is not glibc."""
    try:
        text = os.confstr("CS_GNU_LIBC_VERSION") or ""
        major, minor = text.split()[1].split(".")[:2]
        return int(major), int(minor)
    except (ValueError, IndexError, OSError):
        return None


def driver_present() -> bool:
    """True when the NVIDIA driver's library can be loaded here."""
    import ctypes

    try:
        ctypes.CDLL("libcuda.so.1")
    except OSError:
        return False
    return True
