# SPDX-License-Identifier: Apache-2.0
"""Arithmetic of small tensors on the device against the same on the CPU, where every input is known; prints what
differs, then how much was compared."""

import itertools
import operator

import torch

TYPES = (torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8, torch.bool, torch.float32, torch.float64)
COMPARED = [operator.gt, operator.ge, operator.lt, operator.le, operator.eq, operator.ne]
BITWISE = [operator.and_, operator.or_, operator.xor]
LOGICAL = [torch.logical_and, torch.logical_or]
OVER_ALL = [torch.sum, torch.max, torch.min, torch.all, torch.any]
UNARY = [torch.logical_not, *OVER_ALL]
NUMBERS = ([3, 7, 0, 1, 5], [5, 7, 0, 0, 1])


def operations(dtype):
    """Each takes a device and gives a tensor."""
    a, b = (torch.tensor(numbers).to(dtype) for numbers in NUMBERS)
    floats, boolean = dtype.is_floating_point, dtype is torch.bool
    two = [*COMPARED, *LOGICAL, operator.add, operator.mul, *([] if floats else BITWISE)]
    for op in two:
        yield op, lambda d, op=op: op(a.to(d), b.to(d))
        yield op, lambda d, op=op: op(a.to(d)[:, None], b.to(d)[None])  # broadcast
        yield op, lambda d, op=op: op(a.to(d)[::2], b.to(d)[2:])  # with gaps
    for op in (*COMPARED, operator.add, operator.mul):
        yield op, lambda d, op=op: op(a.to(d), True if boolean else 5)
        yield op, lambda d, op=op: op(True if boolean else 5, a.to(d))
    for op in UNARY:
        yield op, lambda d, op=op: op(a.to(d))
        yield op, lambda d, op=op: op(b.to(d)[:1])
    rows = torch.arange(12).reshape(3, 4).to(dtype)
    for dim in (0, 1):
        yield "rows", lambda d, dim=dim: rows.to(d).sum(dim)
        yield "rows", lambda d, dim=dim: rows.to(d).t().any(dim)
        yield "rows", lambda d, dim=dim: rows.to(d).amax(dim)
    if not boolean:
        yield "minus", lambda d: a.to(d) - b.to(d)
        yield "scaled", lambda d: torch.add(a.to(d), b.to(d), alpha=3)
        if dtype is not torch.uint8:
            yield "negative", lambda d: -a.to(d)
            yield "absolute", lambda d: (-a.to(d)).abs()
    if not floats:
        yield "not", lambda d: ~a.to(d)
    for count in (1, 2, 5):
        yield "cat", lambda d, n=count: torch.cat([a.to(d)[:n], b.to(d), a.to(d)])
        yield "stack", lambda d, n=count: torch.stack([a.to(d)[:n], b.to(d)[:n]])
    yield "full", lambda d: torch.full((3,), 1, dtype=dtype, device=d)
    yield "ones", lambda d: torch.ones(2, 3, dtype=dtype, device=d)
    for other in (*TYPES, torch.float16, torch.bfloat16):
        yield other, lambda d, other=other: a.to(d).to(other)
        yield other, lambda d, other=other: a.to(d)[::2].to(other) == b.to(d)[::2]


compared = 0
for dtype in TYPES:
    for name, run in operations(dtype):
        expected, found = run("cpu"), run("cuda")
        torch.cuda.synchronize()
        compared += 1
        if expected.tolist() != found.tolist():
            print("differs", dtype, getattr(name, "__name__", name), expected.tolist(), found.tolist())
for first, second in itertools.permutations(TYPES, 2):
    a, b = (torch.tensor(numbers).to(dtype) for numbers, dtype in zip(NUMBERS, (first, second), strict=True))
    for op in (operator.gt, operator.eq, operator.mul):
        compared += 1
        if op(a, b).tolist() != op(a.cuda(), b.cuda()).tolist():
            print("differs", first, second, op.__name__)
print("compared", compared)
