# SPDX-License-Identifier: Apache-2.0
"""What a program may expect of the CUDA runtime, one function a case; the argument names the case."""

import os
import random
import sys
import threading
from ctypes import byref, c_int, c_size_t, c_void_p, create_string_buffer

import cuda
from cuda import GIB, INVALID_VALUE, MIB, OUT_OF_MEMORY, check, lib, malloc, malloc_async


def first_call():
    """The very first call of the process is an allocation, the second a free."""
    check(lib.cudaFree(malloc(MIB)))


def threads():
    """Threads without a context allocate, and free what others allocated."""
    made, lock = [], threading.Lock()

    def work():
        for _ in range(200):
            pointer = malloc(3 * MIB)
            with lock:
                made.append(pointer)
                other = made.pop(0)
            check(lib.cudaFree(other))

    workers = [threading.Thread(target=work) for _ in range(6)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()


def edges():
    """NULL, size 0, foreign pointers, double and interior frees; the last error stays the runtime's."""
    out = c_void_p(0x1234)
    assert lib.cudaMalloc(None, 64) == INVALID_VALUE
    assert lib.cudaGetLastError() == INVALID_VALUE
    check(lib.cudaMalloc(byref(out), 0))
    assert not out.value
    check(lib.cudaFree(None))
    assert lib.cudaPeekAtLastError() == 0
    block = malloc(8 * MIB)
    for wrong in (block + 4096, 0x123456000, block + 8 * MIB):
        assert lib.cudaFree(wrong) not in (0, OUT_OF_MEMORY)
        assert lib.cudaGetLastError() not in (0, OUT_OF_MEMORY)
    check(lib.cudaFree(block))
    assert lib.cudaFree(block) not in (0, OUT_OF_MEMORY)
    assert lib.cudaGetLastError() != 0
    assert lib.cudaGetLastError() == 0


def mixed_frees():
    """Memory of one API is freed with the other."""
    stream = cuda.stream()
    for _ in range(50):
        check(lib.cudaFreeAsync(malloc(5 * MIB), stream))
        check(lib.cudaFree(malloc_async(5 * MIB, stream)))
        check(lib.cudaFreeAsync(malloc_async(5 * MIB, stream), None))
    out = c_void_p()
    check(lib.cudaMallocAsync_ptsz(byref(out), MIB, None))
    check(lib.cudaFreeAsync_ptsz(out, None))


def plain_calls():
    """A plain call names no stream: it waits for all before memory is used again, on whatever stream."""
    side, back = cuda.stream(), create_string_buffer(64)

    def write(block, mark, stream):
        check(lib.cudaMemsetAsync(block, mark, MIB, stream))

    def expect(block, mark):
        check(lib.cudaDeviceSynchronize())
        check(lib.cudaMemcpy(back, block, 64, 2))
        assert back.raw == bytes([mark]) * 64, f"{back.raw[:4]!r} is not {mark}"

    for _ in range(10):
        freed = malloc(4 * MIB)
        with cuda.held(side):
            write(freed, 1, side)
            check(lib.cudaFree(freed))
            block = malloc_async(4 * MIB)
            write(block, 2, None)
            check(lib.cudaStreamSynchronize(None))
        expect(block, 2)
        with cuda.held(None):
            write(block, 3, None)
            check(lib.cudaFreeAsync(block, None))
            block = malloc(4 * MIB)
            write(block, 4, side)
            check(lib.cudaStreamSynchronize(side))
        expect(block, 4)
        check(lib.cudaFree(block))


def out_of_memory():
    """A request that cannot be met: error 2, no pointer, the runtime's own last error, and life goes on."""
    free, _ = cuda.mem_info()
    kept = malloc(free // 2)
    for size in (free, 1 << 62):
        out = c_void_p(0)
        assert lib.cudaMalloc(byref(out), size) == OUT_OF_MEMORY
        assert not out.value
        assert lib.cudaPeekAtLastError() == OUT_OF_MEMORY
        assert lib.cudaGetLastError() == OUT_OF_MEMORY
        assert lib.cudaGetLastError() == 0
    check(lib.cudaFree(malloc(free // 3)))
    check(lib.cudaFree(kept))


def limit():
    """Runs with GML_LIMIT=1GiB: the device has room, we may not take it."""
    block = malloc_async(512 * MIB)
    for allocate in (
        lambda out: lib.cudaMalloc(out, 700 * MIB),
        lambda out: lib.cudaMallocAsync(out, 700 * MIB, None),
    ):
        out = c_void_p(0x1234)
        assert allocate(byref(out)) == OUT_OF_MEMORY
        assert out.value == 0x1234
        assert lib.cudaGetLastError() == OUT_OF_MEMORY
        assert lib.cudaGetLastError() == 0
    assert cuda.used_bytes() <= GIB
    assert cuda.mem_info()[0] in range(500 * MIB, 512 * MIB + 1)
    check(lib.cudaFreeAsync(block, None))
    check(lib.cudaFreeAsync(malloc_async(1000 * MIB), None))


def mem_info():
    """Idle chunks count as free, whether or not the total is asked for; it never changes; NULL is the driver's."""
    before, total = cuda.mem_info()
    block = malloc(GIB)
    during, _ = cuda.mem_info()
    assert before - during >= GIB
    assert during <= total - GIB
    check(lib.cudaFree(block))
    check(lib.cudaDeviceSynchronize())
    after, total_after = cuda.mem_info()
    assert after == before and total_after == total
    alone = c_size_t()
    check(lib.cudaMemGetInfo(byref(alone), None))
    assert alone.value == after
    small = malloc(1000)
    assert before - cuda.mem_info()[0] in range(1, 65 * MIB)
    check(lib.cudaFree(small))
    value = c_size_t(7)
    lib.cudaMemGetInfo(None, byref(value))
    lib.cudaGetLastError()


def pool():
    """The default pool speaks of our memory."""
    pool = cuda.default_pool()
    first = malloc_async(100 * MIB)
    second = malloc_async(50 * MIB)
    assert cuda.pool_get(pool, cuda.POOL_USED) == 150 * MIB
    assert cuda.pool_get(pool, cuda.POOL_RESERVED) >= 150 * MIB
    check(lib.cudaFreeAsync(first, None))
    assert cuda.pool_get(pool, cuda.POOL_USED) == 50 * MIB
    assert cuda.pool_get(pool, cuda.POOL_USED_HIGH) == 150 * MIB
    assert cuda.pool_set(pool, cuda.POOL_USED_HIGH, 5) != 0
    lib.cudaGetLastError()
    check(cuda.pool_set(pool, cuda.POOL_USED_HIGH, 0))
    check(cuda.pool_set(pool, cuda.POOL_RESERVED_HIGH, 0))
    assert cuda.pool_get(pool, cuda.POOL_USED_HIGH) == 50 * MIB
    third = malloc_async(30 * MIB)
    check(lib.cudaFreeAsync(third, None))
    assert cuda.pool_get(pool, cuda.POOL_USED_HIGH) == 80 * MIB
    fourth = malloc_async(300 * MIB)
    assert cuda.pool_get(pool, cuda.POOL_USED_HIGH) == 350 * MIB
    check(lib.cudaFreeAsync(fourth, None))
    check(lib.cudaMemPoolTrimTo(pool, 200 * MIB))
    assert cuda.pool_get(pool, cuda.POOL_RESERVED) in range(150 * MIB, 200 * MIB + 1)
    check(lib.cudaMemPoolTrimTo(pool, 0))
    assert cuda.pool_get(pool, cuda.POOL_RESERVED) in range(50 * MIB, 56 * MIB)
    assert cuda.used_bytes() in range(50 * MIB, 56 * MIB)
    check(lib.cudaFreeAsync(second, None))


def release_threshold():
    """A threshold below the maximum gives idle memory back at the next call."""
    pool = cuda.default_pool()
    block = malloc_async(GIB)
    check(lib.cudaFreeAsync(block, None))
    check(lib.cudaDeviceSynchronize())
    assert cuda.used_bytes() >= GIB
    check(cuda.pool_set(pool, cuda.POOL_RELEASE_THRESHOLD, 64 * MIB))
    assert cuda.pool_get(pool, cuda.POOL_RELEASE_THRESHOLD) == 64 * MIB
    check(lib.cudaFreeAsync(malloc_async(MIB), None))
    assert cuda.used_bytes() <= 64 * MIB


def own_pool():
    """A new pool of the program's own."""
    properties = create_string_buffer(256)
    properties[0:4] = (1).to_bytes(4, "little")  # pinned
    properties[8:12] = (1).to_bytes(4, "little")  # on a device
    own = c_void_p()
    check(lib.cudaMemPoolCreate(byref(own), properties))
    return own


def from_pool():
    """Requests on the default pool are served, on a pool of the program's own forwarded."""
    out = c_void_p()
    check(lib.cudaMallocFromPoolAsync(byref(out), 4 * MIB, cuda.default_pool(), None))
    check(lib.cudaFreeAsync(out, None))
    own = own_pool()
    check(lib.cudaMallocFromPoolAsync(byref(out), 4 * MIB, own, None))
    check(lib.cudaFreeAsync(out, None))
    check(lib.cudaDeviceSetMemPool(0, own))
    check(lib.cudaFreeAsync(malloc_async(4 * MIB), None))
    check(lib.cudaDeviceSetMemPool(0, cuda.default_pool()))
    check(lib.cudaFreeAsync(malloc_async(4 * MIB), None))


def streams_end():
    """Streams come and go with frees pending on them."""
    for i in range(300):
        stream = cuda.stream()
        block = malloc_async(64 * MIB, stream)
        check(lib.cudaMemsetAsync(block, i & 255, MIB, stream))
        check(lib.cudaFreeAsync(block, stream))
        check(lib.cudaStreamDestroy(stream))
    assert cuda.used_bytes() <= GIB
    # Each left an event of its own while its handle was good: nobody had to wait for the whole device.
    assert cuda.driver_calls("cuCtxRecordEvent") == 0 == cuda.driver_calls("cuCtxSynchronize")


def capture():
    """A capture sees the driver's own allocations and is not spoiled by ours on other streams."""
    captured, other = cuda.stream(), cuda.stream()
    before = malloc_async(8 * MIB, captured)
    check(lib.cudaFree(malloc(8 * MIB)))
    check(lib.cudaStreamBeginCapture(captured, 0))
    inside = malloc_async(2 * MIB, captured)
    check(lib.cudaFreeAsync(inside, captured))
    for _ in range(20):
        check(lib.cudaFreeAsync(malloc_async(32 * MIB, other), other))
    block = malloc(4 * MIB)
    check(lib.cudaFree(block))
    check(lib.cudaFreeAsync(before, captured))
    status, graph = c_int(), c_void_p()
    check(lib.cudaStreamIsCapturing(captured, byref(status)))
    assert status.value == 1
    check(lib.cudaStreamEndCapture(captured, byref(graph)))
    assert graph.value
    check(lib.cudaGraphDestroy(graph))
    # What the graph frees at each launch stays its own; afterwards idle memory can be given back again.
    blocks = [malloc_async(8 * MIB, captured) for _ in range(3)]
    assert before not in blocks
    for block in blocks:
        check(lib.cudaFreeAsync(block, captured))
    check(lib.cudaMemPoolTrimTo(cuda.default_pool(), 0))
    kept = 8 * MIB  # the block itself: a graph that was never launched takes nothing
    assert cuda.used_bytes() <= kept
    # A capture that was refused does not count: everything is served, and given back, as before.
    assert lib.cudaStreamBeginCapture(None, 0) != 0
    lib.cudaGetLastError()
    check(lib.cudaFreeAsync(malloc_async(8 * MIB, other), other))
    check(lib.cudaMemPoolTrimTo(cuda.default_pool(), 0))
    assert cuda.used_bytes() <= kept


def reset():
    """A device reset takes everything; the process goes on."""
    for _ in range(3):
        malloc(256 * MIB)
        malloc_async(256 * MIB)
        check(lib.cudaDeviceReset())
        assert cuda.used_bytes() == 0
    check(lib.cudaFree(malloc(MIB)))


def fork():
    """A child forked after our state exists is on its own, and leaves no trace here."""
    block = malloc(MIB)
    child = os.fork()
    if child == 0:
        out = c_void_p()
        lib.cudaMalloc(byref(out), MIB)
        lib.cudaFree(block)
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
    check(lib.cudaFree(block))


def ipc():
    """Legacy IPC cannot share our memory: the driver's error."""
    handle = create_string_buffer(64)
    assert lib.cudaIpcGetMemHandle(handle, malloc(4 * MIB)) != 0
    lib.cudaGetLastError()


def pitch():
    """Pitched memory is the driver's, and freed as such; our idle memory makes room for it."""
    out, pitch = c_void_p(), c_size_t()
    check(lib.cudaMallocPitch(byref(out), byref(pitch), 1000, 100))
    assert pitch.value >= 1000
    check(lib.cudaFree(out))
    check(lib.cudaFree(malloc(cuda.mem_info()[0] - GIB)))
    check(lib.cudaMallocPitch(byref(out), byref(pitch), MIB, 4000))
    assert lib.cudaPeekAtLastError() == 0
    check(lib.cudaFree(out))
    pitched = (c_size_t * 4)()
    check(lib.cudaFree(malloc(cuda.mem_info()[0] - GIB)))
    check(lib.cudaMalloc3D(byref(pitched), cuda.Extent(MIB, 1000, 4)))
    assert lib.cudaPeekAtLastError() == 0
    check(lib.cudaFree(pitched[0]))


def make_room():
    """Memory of a pool of the program's own, and a stream (which fails at first, see the test), when
    all memory is idle with us: both get it, and no error stays behind."""
    check(lib.cudaFree(malloc(cuda.mem_info()[0] - GIB)))
    out = c_void_p()
    check(lib.cudaMallocFromPoolAsync(byref(out), 20 * GIB, own_pool(), None))
    assert lib.cudaPeekAtLastError() == 0
    check(lib.cudaFreeAsync(out, None))
    check(lib.cudaFree(malloc(4 * GIB)))
    check(lib.cudaStreamDestroy(cuda.stream()))
    assert lib.cudaPeekAtLastError() == 0
    # An error that was there before is not forgiven.
    assert lib.cudaMalloc(None, 64) == INVALID_VALUE
    check(lib.cudaFree(malloc(4 * GIB)))
    check(lib.cudaStreamDestroy(cuda.stream()))
    assert lib.cudaGetLastError() == OUT_OF_MEMORY
    # Without idle memory the failure is the runtime's.
    held = malloc(GIB)
    assert lib.cudaStreamCreateWithFlags(byref(out), 1) == OUT_OF_MEMORY
    check(lib.cudaFree(held))


def graph_memory():
    """A graph takes the memory of its own blocks at its first launch, when all is idle with us."""
    stream, graph, executable = cuda.stream(), c_void_p(), c_void_p()
    check(lib.cudaStreamBeginCapture(stream, 0))
    check(lib.cudaFreeAsync(malloc_async(20 * GIB, stream), stream))
    check(lib.cudaStreamEndCapture(stream, byref(graph)))
    check(lib.cudaGraphInstantiateWithFlags(byref(executable), graph, 0))
    check(lib.cudaFree(malloc(cuda.mem_info()[0] - GIB)))
    check(lib.cudaGraphLaunch(executable, stream))
    assert lib.cudaPeekAtLastError() == 0
    check(lib.cudaStreamSynchronize(stream))


def other_kinds():
    """Host, managed and 3-D memory are the runtime's own; each is freed as usual."""
    out = c_void_p()
    check(lib.cudaMallocHost(byref(out), c_size_t(MIB)))
    check(lib.cudaFreeHost(out))
    check(lib.cudaMallocManaged(byref(out), c_size_t(MIB), 1))
    check(lib.cudaFree(out))
    pitched = (c_size_t * 4)()
    check(lib.cudaMalloc3D(byref(pitched), cuda.Extent(1000, 20, 3)))
    assert pitched[0] and pitched[1] >= 1000
    check(lib.cudaFree(pitched[0]))


def devices():
    """Runs with two devices: what counts is where a block was made, not what is current."""
    check(lib.cudaSetDevice(1))
    on_one = malloc(300 * MIB)
    check(lib.cudaSetDevice(0))
    on_zero = malloc(100 * MIB)
    assert cuda.used_bytes(1) >= 300 * MIB and 100 * MIB <= cuda.used_bytes(0) < 300 * MIB
    check(lib.cudaFree(on_one))
    check(lib.cudaSetDevice(1))
    check(lib.cudaFree(on_zero))
    # A stream carries its device along.
    there = cuda.stream()
    check(lib.cudaSetDevice(0))
    at_stream = malloc_async(40 * MIB, there)
    check(lib.cudaMemsetAsync(at_stream, 1, MIB, there))
    check(lib.cudaFreeAsync(at_stream, there))
    check(lib.cudaStreamDestroy(there))
    check(lib.cudaSetDevice(1))
    check(lib.cudaDeviceEnablePeerAccess(0, 0))
    check(lib.cudaSetDevice(0))
    shared = [malloc(4 * MIB), malloc(400 * MIB)]  # mapped before, and mapped now
    check(lib.cudaSetDevice(1))
    for block in shared:
        check(lib.cudaMemset(block, 1, MIB))
    check(lib.cudaMemset(shared[1] + 399 * MIB, 1, MIB))
    check(lib.cudaDeviceSynchronize())


def late_free():
    """Frees while the process ends, when the driver may be gone."""
    import atexit

    blocks = [malloc(MIB) for _ in range(10)]
    atexit.register(lambda: [lib.cudaFree(block) for block in blocks])


def churn():
    """Random traffic on four streams with contents that are checked."""
    generator = random.Random(5)
    streams = [cuda.stream() for _ in range(4)]
    live, freed = {}, 0
    back = create_string_buffer(64)
    for step in range(1500):
        if live and generator.random() < 0.5:
            block, (mark, stream) = live.popitem() if generator.random() < 0.5 else _take(live, generator)
            check(lib.cudaStreamSynchronize(stream))
            check(lib.cudaMemcpy(back, block, 64, 2))
            assert back.raw == bytes([mark]) * 64, f"step {step}: {back.raw[:4]!r} is not {mark}"
            check(lib.cudaFreeAsync(block, generator.choice([stream, stream, streams[0]])))
            freed += 1
        else:
            stream, mark = generator.choice(streams), generator.randrange(256)
            block = malloc_async(generator.choice([700, 40_000, 3 * MIB, 17 * MIB, 150 * MIB]), stream)
            check(lib.cudaMemsetAsync(block, mark, 64, stream))
            live[block] = mark, stream
    assert freed > 500


def _take(live, generator):
    block = generator.choice(list(live))
    return block, live.pop(block)


if __name__ == "__main__":
    globals()[sys.argv[1]]()
    print("ok", sys.argv[1])
