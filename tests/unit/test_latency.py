# SPDX-License-Identifier: Apache-2.0
"""Percentiles from the buckets, and their bounds, which are those of telemetry/latency.h."""

import itertools

import pytest

from gml_run import _abi
from gml_run.analysis.latency import bound_ns, latency_of


def bucket_of(ns):
    """As the C function, written another way."""
    return next(number for number in range(_abi.LATENCY_COUNT) if ns <= bound_ns(number))


@pytest.mark.parametrize(
    ("ns", "bucket"), [(0, 0), (3, 3), (4, 4), (7, 7), (8, 8), (9, 8), (10, 9), (160, 25), (1 << 20, 76)]
)
def test_bounds(ns, bucket):
    """tests/c/telemetry/latency.c has the same pairs."""
    assert bucket_of(ns) == bucket


def test_each_bucket_is_at_most_a_fourth_wider_than_the_one_before():
    bounds = [bound_ns(number) for number in range(_abi.LATENCY_COUNT)]
    assert bounds == sorted(set(bounds))
    assert all(after <= 1.34 * before for before, after in itertools.pairwise(bounds[8:]))


def test_percentiles():
    buckets = [0] * _abi.LATENCY_COUNT
    assert latency_of(buckets) is None
    buckets[bucket_of(160)], buckets[bucket_of(900)], buckets[bucket_of(3_000_000)] = 980, 19, 1
    found = latency_of(buckets)
    assert found.count == 1000
    assert 160e-9 <= found.p50_s < 200e-9
    assert 900e-9 <= found.p99_s < 1200e-9
    assert 3e-3 <= found.max_s < 4e-3
