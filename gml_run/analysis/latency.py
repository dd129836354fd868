# SPDX-License-Identifier: Apache-2.0
"""How long calls took, from the buckets that the library counts them in (telemetry/latency.h)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Latency:
    """Upper bounds of the buckets that hold the median, the 99th percentile and the longest call, in seconds."""

    count: int
    p50_s: float
    p99_s: float
    max_s: float


def bound_ns(bucket: int) -> int:
    """No call in this bucket took longer; buckets are a quarter of a power of two wide."""
    if bucket < 4:
        return bucket
    power = bucket // 4 + 1
    return (1 << power) + (bucket % 4 + 1) * (1 << (power - 2)) - 1


def latency_of(buckets: Sequence[int]) -> Latency | None:
    """None when nothing was timed."""
    total = sum(buckets)
    if not total:
        return None
    last = max(number for number, count in enumerate(buckets) if count)
    return Latency(total, _quantile(buckets, total, 0.5), _quantile(buckets, total, 0.99), bound_ns(last) / 1e9)


def _quantile(buckets: Sequence[int], total: int, share: float) -> float:
    wanted = share * total
    seen = 0
    for bucket, count in enumerate(buckets):
        seen += count
        if count and seen >= wanted:
            return bound_ns(bucket) / 1e9
    return 0.0
