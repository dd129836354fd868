# SPDX-License-Identifier: Apache-2.0
"""Stands in for a program under the preloaded library: writes telemetry of a growing heap.

usage: fake_gpu.py SECONDS [EXIT_CODE]

It ends early once the working directory holds a file named "stop".
"""

import mmap
import os
import struct
import sys
import time

from telemetry_files import NO_RANK, device, telemetry_bytes

from gml_run import _abi

GIB = 1 << 30


def block(step):
    live = GIB + (step % 40) * (GIB // 2)
    reserved = max(live + (64 << 20), GIB * 12)
    return {
        0: device(
            cells=bytes([1, 2, 10, 138, 5, 133, 0, 10] * 20),
            latency={"alloc": {28: 950, 30: 40, 78: 10}, "free": {24: 1000}, "driver": {78: 10}},
            steps_ns=[100_000_000 + step * 1000] * min(step, 64),
            step_count=step,
            sizes={9: step * 20, 21: step * 45, 26: step * 5},
            total_bytes=80 * GIB,
            free_bytes=80 * GIB - reserved - (600 << 20),
            peak_used_bytes=40 * GIB,
            updated_ns=time.monotonic_ns(),
            live_bytes=live,
            requested_bytes=live - (8 << 20),
            peak_live_bytes=21 * GIB,
            reserved_bytes=reserved,
            peak_reserved_bytes=22 * GIB,
            primitive_live_bytes=live // 2,
            stitched_live_bytes=live // 2,
            primitive_idle_bytes=(reserved - live) // 2,
            stitched_idle_bytes=(reserved - live) // 4,
            stream_held_bytes=16 << 20,
            largest_servable_bytes=(reserved - live) // 2,
            free_chunk_bytes=(reserved - live) // 2,
            place_exact=step * 50,
            place_split=step * 10,
            place_extend=step,
            place_stitch=step // 4,
            place_grow=12,
            driver_ns=step * 100_000,
            driver_map=step * 3,
            allocs=step * 70,
            waste_mib_sum=10,
            reserved_mib_sum=1000,
        )
    }


EVENTS = (
    {"kind": "BEGIN", "time_ns": time.time_ns(), "device": 0},
    {"kind": "RETRY", "time_ns": time.time_ns() + 1, "device": 0, "count": 3},
    {"kind": "OOM", "time_ns": time.time_ns() + 2, "device": 0, "bytes": 5 << 30},
)


def telemetry_path():
    folder = os.path.join(os.environ["GML_RUN_DIR"], "telemetry")
    os.makedirs(folder, exist_ok=True)
    return os.path.join(folder, f"{os.getpid()}.gml")


def share_once():
    """Shares one state of the heap, as a program would after its first memory calls."""
    with open(telemetry_path(), "wb") as file:
        rank = int(os.environ.get("FAKE_RANK", NO_RANK))
        counters = {"served_calls": 1}
        file.write(telemetry_bytes(os.getpid(), block(1), counters=counters, events=EVENTS, rank=rank))


def main():
    seconds, code = float(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 0
    share_once()
    with open(telemetry_path(), "r+b") as file, mmap.mmap(file.fileno(), 0) as memory:
        end = time.monotonic() + seconds
        step = 1
        while time.monotonic() < end and not os.path.exists("stop"):
            step += 1
            data = telemetry_bytes(pid=os.getpid(), devices=block(step), counters={"served_calls": step})
            start = _abi.DEVICE_OFFSET
            struct.pack_into("<Q", memory, start, 2 * step - 1)
            memory[start + 8 :] = data[start + 8 :]
            struct.pack_into("<Q", memory, start, 2 * step)
            print("step", step, flush=True)
            time.sleep(0.1)
    sys.exit(code)


if __name__ == "__main__":
    main()
