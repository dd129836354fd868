# SPDX-License-Identifier: Apache-2.0
"""A daemon thread asks for memory while the interpreter ends, which has freed the thread's state by then."""

import ctypes
import os
import sys
import threading
import time
import types

library = ctypes.CDLL(sys.argv[1])
calls = ctypes.c_long.in_dll(library, "calls")
lib_c = ctypes.CDLL(None)
lib_c.malloc.restype = ctypes.c_void_p


class Ending:
    """Its end comes when the interpreter takes modules apart."""

    def __del__(self, calls=calls, malloc=lib_c.malloc, memset=ctypes.memset, sleep=time.sleep, write=os.write):
        for size in range(200, 1500, 16):  # what was freed has other contents now
            for _ in range(9):
                memset(malloc(size), 0x41, size)
        before = calls.value
        while calls.value < before + 1000:
            sleep(0.01)
        write(1, b"asked on\n")


holder = types.ModuleType("holder")
holder.ending = Ending()
sys.modules["holder"] = holder
del holder
threading.Thread(target=library.loop, daemon=True).start()
while calls.value < 1000:
    time.sleep(0.01)
