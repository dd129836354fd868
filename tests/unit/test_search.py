# SPDX-License-Identifier: Apache-2.0
"""Bisection finds the edge, wherever it lies, in few tries."""

from __future__ import annotations

import math

import pytest

from gml_run.analysis.search import largest_that_fits, smallest_that_fits


@pytest.mark.parametrize("edge", range(101, 401, 7))
def test_smallest(edge: int) -> None:
    asked: list[int] = []

    def fits(size: int) -> bool:
        asked.append(size)
        return size >= edge

    found = smallest_that_fits(100, 400, 10, fits)
    assert found % 10 == 0 and found - 10 < edge <= found
    assert len(asked) <= math.ceil(math.log2(30)) + 1
    assert 400 not in asked  # it is known to fit


@pytest.mark.parametrize("edge", [0, *range(1, 33), 200, 511, 512, 900])
def test_largest(edge: int) -> None:
    asked: list[int] = []

    def fits(value: int) -> bool:
        asked.append(value)
        return value <= edge

    found = largest_that_fits(1, 512, fits)
    assert found == (None if edge == 0 else min(edge, 512))
    assert len(asked) == len(set(asked)) <= 2 * math.log2(512) + 2
    assert all(1 <= value <= 512 for value in asked)


def test_largest_never_runs_far_beyond_the_edge() -> None:
    asked: list[int] = []
    largest_that_fits(1, 10**6, lambda value: asked.append(value) is None and value <= 10)
    assert max(asked) <= 20
