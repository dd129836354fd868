# SPDX-License-Identifier: Apache-2.0
"""Says which GPU is here; without one, a clear line and exit code 1. Needs nothing but the standard library."""

from __future__ import annotations

import ctypes
import sys


def find_gpu() -> tuple[str | None, str]:
    """(name of the first GPU, "") or (None, why there is none)."""
    try:
        driver = ctypes.CDLL("libcuda.so.1")
    except OSError:
        return None, "the NVIDIA driver (libcuda.so.1) is not installed"
    if hasattr(driver, "gml_sim_now_ns"):
        return None, "libcuda.so.1 is the simulated driver"
    code = driver.cuInit(0)
    if code != 0:
        return None, f"the NVIDIA driver finds no usable GPU (cuInit says {code})"
    count, name = ctypes.c_int(), ctypes.create_string_buffer(256)
    if driver.cuDeviceGetCount(ctypes.byref(count)) != 0 or count.value < 1:
        return None, "the NVIDIA driver sees no GPU"
    driver.cuDeviceGetName(name, len(name), 0)
    return name.value.decode(errors="replace"), ""


def main() -> None:
    name, why = find_gpu()
    if name is None:
        print(f"check-gpu: no GPU here: {why}. Run it on a machine with an NVIDIA GPU.", file=sys.stderr)
        raise SystemExit(1)
    print(f"check-gpu: {name}")


if __name__ == "__main__":
    main()
