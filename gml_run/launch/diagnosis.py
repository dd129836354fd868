# SPDX-License-Identifier: Apache-2.0
"""Looks at this machine: what gml-run needs, what it has, and what will not work."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from gml_run.errors import GmlError
from gml_run.native import find_native, glibc_version
from gml_run.units import format_size

_VMM_SUPPORTED = 102  # CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED
_RDMA_WITH_VMM = 110  # CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_WITH_CUDA_VMM_SUPPORTED


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that was looked at. `state`: "good", "note" (works, but know this), or "bad"."""

    what: str
    state: str
    text: str


def findings() -> list[Finding]:
    """Everything that was found, without starting anything on a GPU."""
    return [_libraries(), _c_library(), *_devices(), _python(), _memory(), *_variables(), _run_directory()]


def _libraries() -> Finding:
    try:
        native = find_native()
    except GmlError as error:
        return Finding("libraries", "bad", error.line())
    if native is None:
        return Finding("libraries", "bad", "libgml.so is not built: pip install .")
    if not native.simulated:
        return Finding("libraries", "note", f"{native.shim}; without the simulated GPU")
    return Finding("libraries", "good", f"{native.shim}, and the simulated GPU")


def _c_library() -> Finding:
    version = glibc_version()
    if version is None:
        return Finding("C library", "bad", "is not glibc: nothing can be preloaded")
    text = f"glibc {version[0]}.{version[1]}"
    if version < (2, 34):
        return Finding("C library", "bad", f"{text}; 2.34 or newer is needed")
    return Finding("C library", "good", text)


def _devices() -> Iterator[Finding]:
    """What the driver says about its devices. No context is made: nothing is taken from a GPU in use."""
    try:
        from cuda.bindings import driver
    except ImportError:
        yield Finding("driver", "note", "cuda-bindings is not installed, so the driver cannot be asked")
        return
    try:
        (code,) = driver.cuInit(0)
        if int(code) != 0:
            yield Finding("driver", "bad", f"cuInit answers {code.name}")
            return
        _, version = driver.cuDriverGetVersion()
        _, count = driver.cuDeviceGetCount()
    except RuntimeError:
        # This is how the bindings say that there is no driver library.
        yield Finding("driver", "note", "no NVIDIA driver here; --simulate h100 runs without one")
        return
    yield Finding("driver", "good", f"CUDA {version // 1000}.{version % 1000 // 10}, {count} device(s)")
    for index in range(count):
        yield _device(driver, index)


def _device(driver: Any, index: int) -> Finding:
    _, handle = driver.cuDeviceGet(index)
    _, name = driver.cuDeviceGetName(256, handle)
    _, total = driver.cuDeviceTotalMem(handle)
    text = f"{name.split(bytes(1))[0].decode(errors='replace')}, {format_size(total)}"
    if not _attribute(driver, handle, _VMM_SUPPORTED):
        return Finding(f"device {index}", "bad", f"{text}; without virtual memory management: use --observe")
    if not _attribute(driver, handle, _RDMA_WITH_VMM):
        return Finding(f"device {index}", "good", f"{text}; no GPUDirect RDMA into stitched memory")
    return Finding(f"device {index}", "good", text)


def _attribute(driver: Any, handle: Any, number: int) -> int:
    code, value = driver.cuDeviceGetAttribute(driver.CUdevice_attribute(number), handle)
    return int(value) if int(code) == 0 else 0


def _python() -> Finding:
    python = shutil.which("python") or shutil.which("python3")
    if python is None:
        return Finding("PyTorch", "note", "no python on PATH")
    code = "from importlib.metadata import version; print(version('torch'))"
    try:
        done = subprocess.run([python, "-c", code], capture_output=True, text=True, timeout=20)
    except (OSError, subprocess.SubprocessError) as error:
        return Finding("PyTorch", "note", f"{python} does not run: {error}")
    if done.returncode != 0:
        return Finding("PyTorch", "note", f"{python} has none")
    version = done.stdout.strip()
    if "+cpu" in version:
        return Finding("PyTorch", "bad", f"{version} in {python} is a build without CUDA")
    return Finding("PyTorch", "good", f"{version} in {python}")


def _memory() -> Finding:
    import psutil

    memory = psutil.virtual_memory()
    text = f"{format_size(memory.available)} of {format_size(memory.total)} free"
    if memory.available < 2 << 30:
        return Finding("host memory", "note", f"{text}; a simulated GPU needs about 1 GiB beside the program")
    return Finding("host memory", "good", text)


def _variables() -> Iterator[Finding]:
    ours = ("libgml.so", "libgmlsim.so")
    preload = os.environ.get("LD_PRELOAD", "")
    if preload and not any(name in preload for name in ours):
        yield Finding("LD_PRELOAD", "note", f"{preload} stays loaded, behind ours")
    for name in ("PYTORCH_CUDA_ALLOC_CONF", "PYTORCH_ALLOC_CONF"):
        value = os.environ.get(name, "")
        if "expandable_segments:True" in value or "backend:" in value:
            text = f"{value}: its backend gives way to --allocator, except under --observe"
            yield Finding(name, "note", text)


def _run_directory() -> Finding:
    if os.access(".", os.W_OK):
        return Finding("run directory", "good", f"gml-runs/ in {os.getcwd()}")
    return Finding("run directory", "note", "cannot write here: reports go to the temporary folder")
