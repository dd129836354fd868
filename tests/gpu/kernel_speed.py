# SPDX-License-Identifier: Apache-2.0
"""Are kernels slower on a tensor stitched from scattered 2 MiB chunks? Run under gml-run; prints one JSON object.

The plain tensor is the first of the process, on fresh chunks. Then the heap is filled with small tensors of which
every other one is freed, so that the next large tensor is stitched from what lies between the rest: the reserved
memory must not grow for it. The same work is timed on both, in turn.
"""

import json
import statistics
import sys

import torch

MIB = 1 << 20
SIDE = 8192  # of the matrices, 16-bit: 128 MiB each
PIECE = 6 * MIB  # frees at least two whole chunks wherever it lies


def milliseconds(work, rounds):
    start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    start.record()
    for _ in range(rounds):
        work()
    end.record()
    end.synchronize()
    return start.elapsed_time(end) / rounds


def compare(name, work_of, plain, stitched, rounds, repeats):
    """Both tensors in turn, so that a clock that changes meets both."""
    first, second = work_of(plain), work_of(stitched)
    milliseconds(first, 2), milliseconds(second, 2)
    pairs = [(milliseconds(first, rounds), milliseconds(second, rounds)) for _ in range(repeats)]
    return {
        "work": name,
        "plain_ms": statistics.median(a for a, _ in pairs),
        "stitched_ms": statistics.median(b for _, b in pairs),
        "ratio": statistics.median(b / a if a else 1.0 for a, b in pairs),
    }


def scatter(bytes_):
    """Free chunks that add up to `bytes_`, with live memory between them."""
    pieces = [torch.empty(PIECE, dtype=torch.uint8, device="cuda") for _ in range(2 * bytes_ // (4 * MIB))]
    kept = pieces[1::2]
    del pieces
    torch.cuda.synchronize()
    return kept


def main():
    rounds, repeats = (2, 3) if "--short" in sys.argv else (10, 9)
    if torch.cuda.get_allocator_backend() != "cudaMallocAsync":
        raise SystemExit("kernel_speed: run it under gml-run --goal memory")
    count = 2 * SIDE * SIDE
    plain = torch.randn(count, device="cuda", dtype=torch.bfloat16)
    other = torch.randn(SIDE, SIDE, device="cuda", dtype=torch.bfloat16)
    out = torch.empty(SIDE, SIDE, device="cuda", dtype=torch.bfloat16)
    target = torch.empty_like(plain)
    kept = scatter(2 * count)
    before = torch.cuda.memory_reserved()
    stitched = torch.empty_like(plain)
    grew = torch.cuda.memory_reserved() - before
    stitched.copy_(plain)
    works = {
        "matmul 8192³, left factor": lambda t: (
            lambda: torch.matmul(t[: SIDE * SIDE].view(SIDE, SIDE), other, out=out)
        ),
        "copy 256 MiB, read": lambda t: lambda: target.copy_(t),
        "copy 256 MiB, write": lambda t: lambda: t.copy_(target),
        "add in place": lambda t: lambda: t.add_(1),
        "gather 1 Mi rows of 256 B": lambda t: lambda: t.view(-1, 128)[rows],
    }
    rows = torch.randint(0, count // 128, (1 << 20,), device="cuda")
    results = [compare(name, work, plain, stitched, rounds, repeats) for name, work in works.items()]
    print(json.dumps({"tensor_bytes": 2 * count, "reserved_grew_bytes": grew, "kept": len(kept), "results": results}))


if __name__ == "__main__":
    main()
