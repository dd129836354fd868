# SPDX-License-Identifier: Apache-2.0
"""A call of the heap that needs no driver costs the same with few and with many live blocks, in instructions."""

import shutil
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "bench"))

import flat
from common import build_c

pytestmark = pytest.mark.skipif(shutil.which("valgrind") is None, reason="counts instructions with valgrind")


@pytest.fixture(scope="module")
def program(tmp_path_factory):
    return build_c("flat", tmp_path_factory.mktemp("flat"))


@pytest.mark.parametrize("aliases", [0, flat.ALIASES], ids=["never-stitched", "stitched-before"])
def test_cost_does_not_grow_with_the_number_of_blocks(program, aliases):
    costs = [flat.measure(program, blocks, aliases, 5_000) for blocks in (100, 1_500, 20_000)]
    assert [cost.said["driver_calls"] for cost in costs] == [0, 0, 0]
    if aliases:
        assert min(cost.said["mappings_per_chunk"] for cost in costs) > 3
    assert min(min(cost.alloc, cost.free) for cost in costs) > 50  # something was counted
    for counted in ("alloc", "free", "pair"):
        assert flat.spread([getattr(cost, counted) for cost in costs]) <= 0.10, counted
