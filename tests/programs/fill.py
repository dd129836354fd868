# SPDX-License-Identifier: Apache-2.0
"""Holds COUNT blocks of 100 MiB, frees every second one, and wants their memory in one piece; ends
with 1 when memory runs out."""

import sys

from cuda import MIB, SUCCESS, byref, c_void_p, lib


def take(mib: int) -> c_void_p:
    pointer = c_void_p()
    if lib.cudaMalloc(byref(pointer), mib * MIB) != SUCCESS:
        print("out of memory", file=sys.stderr)
        raise SystemExit(1)
    return pointer


count = int(sys.argv[1])
blocks = [take(100) for _ in range(count)]
for block in blocks[::2]:
    lib.cudaFree(block)
take(100 * len(blocks[::2]))
