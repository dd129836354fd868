# SPDX-License-Identifier: Apache-2.0
"""Times torch.empty and the del that follows; prints one JSON object: size in bytes -> median ns per pair."""

import json
import statistics
import time

import torch

BATCHES, PAIRS = 60, 200
SIZES = [1 << 10, 1 << 20, 32 << 20, 256 << 20]


def batch_ns(elements: int) -> float:
    start = time.perf_counter_ns()
    for _ in range(PAIRS):
        block = torch.empty(elements, dtype=torch.uint8, device="cuda")
        del block
    return (time.perf_counter_ns() - start) / PAIRS


def main():
    kept = [torch.empty(size, dtype=torch.uint8, device="cuda") for size in SIZES * 8]
    medians = {}
    for size in SIZES:
        batch_ns(size)
        medians[size] = statistics.median(batch_ns(size) for _ in range(BATCHES))
    assert len(kept) == 8 * len(SIZES)
    print(json.dumps({"backend": torch.cuda.get_allocator_backend(), "ns": medians}))


if __name__ == "__main__":
    main()
