# SPDX-License-Identifier: Apache-2.0
"""Holds a known amount of GPU memory, then ends as the argument says."""

import json
import os
import signal
import sys
from ctypes import byref, c_void_p

import cuda
from cuda import MIB, OUT_OF_MEMORY, check, lib, malloc, malloc_async

# 100 blocks of 21.5 MiB, half of them freed again: the peak is 2150 MiB, 1075 MiB stay live.
BLOCKS, BLOCK_BYTES = 100, 21 * MIB + MIB // 2


def hold() -> None:
    blocks = [malloc_async(BLOCK_BYTES) for _ in range(BLOCKS)]
    for block in blocks[::2]:
        check(lib.cudaFreeAsync(block, None))
    print(json.dumps({"used": cuda.used_bytes(), "pid": os.getpid()}), flush=True)


def fill() -> int:
    """cudaMalloc until there is no more."""
    out, count = c_void_p(), 0
    while (error := lib.cudaMalloc(byref(out), 256 * MIB)) == 0:
        count += 1
    assert error == OUT_OF_MEMORY
    return count


def main(ending: str) -> None:
    hold()
    if ending == "killed":
        os.kill(os.getpid(), signal.SIGKILL)
    if ending == "hard-exit":
        os._exit(7)
    if ending == "out-of-memory":
        print(json.dumps({"count": fill()}), flush=True)
        sys.exit(9)
    if ending == "fault":
        import ctypes

        ctypes.string_at(malloc(MIB))  # device memory touched from the host
    if ending == "exec":
        os.execvp("sh", ["sh", "-c", "exit 5"])
    if ending == "children":
        for _ in range(2):
            if os.fork() == 0:  # a fork after first use serves nothing
                os._exit(0)
            os.wait()


main(sys.argv[1])
