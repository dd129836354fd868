# SPDX-License-Identifier: Apache-2.0
"""The benchmarks' own parts: the search for a smallest size, made traces, profiles, tables in the document."""

import json
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "bench"))

import flat
import publish
import traces
from common import EXPANDABLE, MEMORY, Ranks, devices_of, smallest_step
from runs import PROGRAMS, Run


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


def test_a_script_says_how_many_devices_it_wants():
    assert devices_of(PROGRAMS / "workloads" / "fsdp2_lengths.py") == 2
    assert devices_of(PROGRAMS / "workloads" / "gpt_varlen.py") == 1


def test_figures_of_ranks_are_added_up(tmp_path):
    stdout, processes = b"starting\n", [{"devices": []}]
    for rank in range(2):
        stdout += json.dumps({"steps": 4, "peak_allocated": 70 + rank, "retries": 1}).encode() + b"\n"
        device = {"peak_live_bytes": 70, "driver_time_s": 0.25, "retries": 2, "ladder": {"drain": rank}}
        processes.append({"devices": [{**device, "index": rank}, {**device, "peak_live_bytes": 0}]})
        account = {"devices": [{"peak_bytes": 0}, {"peak_bytes": 0}], "calls": {"cuMemMap": 5}, "virtual_ns": 9}
        account["devices"][rank]["peak_bytes"] = 80
        (tmp_path / f"sim-{rank}.json").write_text(json.dumps(account))
    idle = {"devices": [{"peak_bytes": 0}], "calls": {"cuMemMap": 9}, "virtual_ns": 100}
    (tmp_path / "sim-9.json").write_text(json.dumps(idle))  # what started the ranks used no memory
    ended = Run(0, stdout, "", tmp_path, {"processes": processes})
    ranks = Ranks(ended, MEMORY)
    assert sorted(ranks.needs_bytes()) == [70, 71] and ranks.held_bytes() == 160 and ranks.steps() == 4
    assert ranks.calls("cuMemMap", "cuMemUnmap") == 10 and ranks.virtual_ns() == 18 and ranks.driver_ns() == 5e8
    assert ranks.flushes() == 4 and ranks.ladder("drain") == 1
    assert Ranks(ended, EXPANDABLE).flushes() == 2
