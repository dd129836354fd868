# SPDX-License-Identifier: Apache-2.0
"""Allocates and frees COUNT times without need of new memory, or asks COUNT times for the current device."""

import sys
from ctypes import byref, c_int

from cuda import MIB, check, lib, malloc_async

SIZES = [512, 48 << 10, MIB, 3 * MIB, 64 * MIB, 200 * MIB]


def pairs(count):
    blocks = [malloc_async(size) for size in SIZES * 3]
    for i in range(count):
        at = i % len(blocks)
        check(lib.cudaFreeAsync(blocks[at], None))
        blocks[at] = malloc_async(SIZES[at % len(SIZES)])


def current(count):
    malloc_async(MIB)
    device = c_int()
    for _ in range(count):
        check(lib.cudaGetDevice(byref(device)))


if __name__ == "__main__":
    {"pairs": pairs, "current": current}[sys.argv[1]](int(sys.argv[2]))
