# SPDX-License-Identifier: Apache-2.0
"""The benchmarks' own parts: the search for a smallest size, made traces, profiles, tables in the document."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "bench"))

import flat
import publish
import traces
from common import smallest_step


@pytest.mark.parametrize("first", range(65))
def test_the_smallest_step_is_found(first):
    asked = []

    def fits(step):
        asked.append(step)
        return step >= first

    assert smallest_step(fits, 64) == first
    assert len(asked) == len(set(asked)) <= 14  # no size is tried twice


def test_no_step_fits():
    assert smallest_step(lambda step: False, 64) is None


def test_a_made_trace_is_whole():
    live, peak = {}, 0
    for line in traces.training(steps=3, layers=4):
        kind, *numbers = line.split()
        if kind == "A":
            block, bytes_, stream = map(int, numbers)
            assert block not in live and bytes_ > 0 and stream == 0
            live[block] = bytes_
        else:
            del live[int(numbers[0])]
        peak = max(peak, sum(live.values()))
    weights = sum(live.values())
    assert weights == 3 * 4 * 12 * 4 * 1024 * 1024 and peak > weights
    assert traces.training(steps=3, layers=4) == traces.training(steps=3, layers=4)


def test_instructions_are_read_from_a_profile():
    profile = (
        "fn=(1) measured\n0 1\ncfn=(2) gml_heap_alloc\ncalls=2 5\n0 700\ncfn=(3) gml_heap_free\ncalls=2 9\n0 40\n"
    )
    profile += "fn=(4) other\n0 3\ncfn=(2)\ncalls=1 5\n0 11\n"
    assert flat.inclusive(profile, "gml_heap_alloc") == 711
    assert flat.inclusive(profile, "gml_heap_free") == 40


def test_a_table_replaces_the_one_before():
    document = "a\n<!-- fit -->\nold\n<!-- end of fit -->\nb\n"
    written = publish.spliced(document, "fit", "| new |\n")
    assert written == "a\n<!-- fit -->\n\n| new |\n\n<!-- end of fit -->\nb\n"
    assert publish.spliced(written, "fit", "| new |\n") == written


def test_every_benchmark_has_its_place():
    document = publish.DOCUMENT.read_text()
    for name in publish.NAMES:
        assert publish.spliced(document, name, "here").count("\nhere\n") == 1
        assert f"    make bench-{name}\n" in document
