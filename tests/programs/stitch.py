# SPDX-License-Identifier: Apache-2.0
"""Requests larger than every free range, in sizes that never return: each is stitched or takes new memory."""

import cuda
from cuda import MIB, check, lib

for step in range(24):
    size = (32 + 2 * step) * MIB
    blocks = [cuda.malloc_async(size) for _ in range(6)]
    for block in blocks[::2]:
        check(lib.cudaFreeAsync(block, None))
    large = cuda.malloc_async(3 * size - 4 * MIB)
    for block in (*blocks[1::2], large):
        check(lib.cudaFreeAsync(block, None))
