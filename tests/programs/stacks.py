# SPDX-License-Identifier: Apache-2.0
"""Takes memory at lines that say how much of it lives at the end ("# lives MIB") and at the peak ("# peak MIB")."""

import os
import signal
import threading
from ctypes import byref, c_void_p

from cuda import MIB, lib

kept = []


def take(mib):
    pointer = c_void_p()
    lib.cudaMalloc(byref(pointer), mib * MIB)  # lives 30 # peak 30
    kept.append(pointer)


def several():
    for mib in range(5):
        pointer = c_void_p()
        lib.cudaMallocAsync(byref(pointer), (mib + 1) * MIB, None)  # lives 0 # peak 15
        yield pointer


class Model:
    def __call__(self):
        return [self.one(mib) for mib in (2, 4)]

    def one(self, mib, **more):
        pointer = c_void_p()
        (
            lambda: lib.cudaMalloc(
                byref(pointer),
                mib * MIB,  # the line of a call is the one where it begins
            )
        )()
        return pointer


def work():
    pointer = c_void_p()
    lib.cudaMalloc(byref(pointer), 64 * MIB)  # lives 64 # peak 64
    kept.append(pointer)


for count in (10, 20):
    take(count)
passing = list(several())
kept += Model()()
worker = threading.Thread(target=work)
worker.start()
worker.join()
for block in passing:
    lib.cudaFreeAsync(block, None)
top = c_void_p()
lib.cudaMalloc(byref(top), 8 * MIB)  # lives 8 # peak 0
failed = c_void_p()
for _ in range(2):
    assert lib.cudaMalloc(byref(failed), 1 << 40) == 2  # fails
print("ready", flush=True)
os.kill(os.getpid(), signal.SIGKILL)
