# SPDX-License-Identifier: Apache-2.0
"""The CUDA runtime of the process through ctypes, for small test programs."""

import ctypes
import time
from collections.abc import Iterator
from contextlib import contextmanager
from ctypes import POINTER, byref, c_int, c_size_t, c_uint, c_uint64, c_void_p

MIB = 1 << 20
GIB = 1 << 30

SUCCESS, INVALID_VALUE, OUT_OF_MEMORY = 0, 1, 2
POOL_RELEASE_THRESHOLD, POOL_RESERVED, POOL_RESERVED_HIGH, POOL_USED, POOL_USED_HIGH = 4, 5, 6, 7, 8

lib = ctypes.CDLL(None)


HostFunction = ctypes.CFUNCTYPE(None, c_void_p)


class Extent(ctypes.Structure):
    """cudaExtent, passed by value."""

    _fields_ = [("width", c_size_t), ("height", c_size_t), ("depth", c_size_t)]


_SIGNATURES = {
    "cudaMalloc": [POINTER(c_void_p), c_size_t],
    "cudaFree": [c_void_p],
    "cudaMallocAsync": [POINTER(c_void_p), c_size_t, c_void_p],
    "cudaFreeAsync": [c_void_p, c_void_p],
    "cudaMallocAsync_ptsz": [POINTER(c_void_p), c_size_t, c_void_p],
    "cudaFreeAsync_ptsz": [c_void_p, c_void_p],
    "cudaMallocFromPoolAsync": [POINTER(c_void_p), c_size_t, c_void_p, c_void_p],
    "cudaMallocPitch": [POINTER(c_void_p), POINTER(c_size_t), c_size_t, c_size_t],
    "cudaMalloc3D": [c_void_p, Extent],
    "cudaMemGetInfo": [POINTER(c_size_t), POINTER(c_size_t)],
    "cudaDeviceGetDefaultMemPool": [POINTER(c_void_p), c_int],
    "cudaDeviceSetMemPool": [c_int, c_void_p],
    "cudaMemPoolGetAttribute": [c_void_p, c_int, c_void_p],
    "cudaMemPoolSetAttribute": [c_void_p, c_int, c_void_p],
    "cudaMemPoolTrimTo": [c_void_p, c_size_t],
    "cudaMemPoolCreate": [POINTER(c_void_p), c_void_p],
    "cudaStreamCreateWithFlags": [POINTER(c_void_p), c_uint],
    "cudaStreamDestroy": [c_void_p],
    "cudaStreamSynchronize": [c_void_p],
    "cudaLaunchHostFunc": [c_void_p, HostFunction, c_void_p],
    "cudaStreamBeginCapture": [c_void_p, c_int],
    "cudaStreamEndCapture": [c_void_p, POINTER(c_void_p)],
    "cudaStreamIsCapturing": [c_void_p, POINTER(c_int)],
    "cudaGraphDestroy": [c_void_p],
    "cudaGraphInstantiateWithFlags": [POINTER(c_void_p), c_void_p, c_uint64],
    "cudaGraphLaunch": [c_void_p, c_void_p],
    "cudaMemset": [c_void_p, c_int, c_size_t],
    "cudaMemsetAsync": [c_void_p, c_int, c_size_t, c_void_p],
    "cudaMemcpy": [c_void_p, c_void_p, c_size_t, c_int],
    "cudaSetDevice": [c_int],
    "cudaGetDevice": [POINTER(c_int)],
    "cudaDeviceSynchronize": [],
    "cudaDeviceReset": [],
    "cudaDeviceEnablePeerAccess": [c_int, c_uint],
    "cudaGetLastError": [],
    "cudaPeekAtLastError": [],
    "cudaIpcGetMemHandle": [c_void_p, c_void_p],
}
for _name, _arguments in _SIGNATURES.items():
    _function = getattr(lib, _name)
    _function.argtypes, _function.restype = _arguments, c_int


def check(error: int) -> None:
    """A call that must succeed."""
    assert error == SUCCESS, f"error {error}"


def malloc(size: int) -> int:
    """cudaMalloc that must succeed."""
    out = c_void_p()
    check(lib.cudaMalloc(byref(out), size))
    return out.value


def malloc_async(size: int, stream=None) -> int:
    """cudaMallocAsync that must succeed."""
    out = c_void_p()
    check(lib.cudaMallocAsync(byref(out), size, stream))
    return out.value


def stream() -> int:
    """A new non-blocking stream."""
    out = c_void_p()
    check(lib.cudaStreamCreateWithFlags(byref(out), 1))
    return out.value


@contextmanager
def held(stream, seconds: float = 0.05) -> Iterator[None]:
    """What the block puts on the stream begins late: who waits for it is slow, who does not comes first."""
    function = HostFunction(lambda _: time.sleep(seconds))
    check(lib.cudaLaunchHostFunc(stream, function, None))
    yield
    check(lib.cudaStreamSynchronize(stream))  # the function must live until it ran


def mem_info() -> tuple[int, int]:
    """Free and total bytes of the current device."""
    free, total = c_size_t(), c_size_t()
    check(lib.cudaMemGetInfo(byref(free), byref(total)))
    return free.value, total.value


def default_pool(device: int = 0) -> int:
    """The device's default memory pool."""
    out = c_void_p()
    check(lib.cudaDeviceGetDefaultMemPool(byref(out), device))
    return out.value


def pool_get(pool: int, attribute: int) -> int:
    """A 64-bit attribute of a pool."""
    value = c_uint64()
    check(lib.cudaMemPoolGetAttribute(pool, attribute, byref(value)))
    return value.value


def pool_set(pool: int, attribute: int, value: int) -> int:
    """Sets a 64-bit attribute; the error."""
    return lib.cudaMemPoolSetAttribute(pool, attribute, byref(c_uint64(value)))


def used_bytes(device: int = 0) -> int:
    """Physical bytes in use, as the simulated device counts them."""
    function = lib.gml_sim_used_bytes
    function.restype, function.argtypes = c_size_t, [c_int]
    return function(device)


def driver_calls(name: str) -> int:
    """How often the simulated driver's function was called."""
    function = lib.gml_sim_calls
    function.restype, function.argtypes = c_uint64, [ctypes.c_char_p]
    return function(name.encode())
