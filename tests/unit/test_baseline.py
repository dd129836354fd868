# SPDX-License-Identifier: Apache-2.0
"""Comparisons come from runs of the same command that were really made."""

import pytest
from telemetry_files import device, write_process
from test_report import GIB, HEAP, report_of

from gml_run._profiles import PROFILES
from gml_run.analysis.fit import smallest_card
from gml_run.config import Allocator, RunOptions
from gml_run.launch.process import Ending
from gml_run.report.baseline import find_baselines
from gml_run.report.files import write_json
from gml_run.report.summary import format_summary


def put_run(parent, name, allocator, peak, command=("python", "a.py"), ending=None):
    folder = parent / name
    fields = (
        {"torch_peak_reserved_bytes": peak}
        if allocator is not Allocator.VMS
        else {**HEAP, "peak_reserved_bytes": peak}
    )
    write_process(folder, allocator=allocator.value, devices={0: device(**fields)})
    report = report_of(folder, ending, RunOptions(allocator=allocator), command)
    write_json(str(folder / "report.json"), report)
    return report


def test_the_newest_run_of_each_other_allocator(tmp_path):
    put_run(tmp_path, "1-native", Allocator.NATIVE, 50 * GIB)
    put_run(tmp_path, "2-native", Allocator.NATIVE, 40 * GIB)
    put_run(tmp_path, "3-expandable", Allocator.EXPANDABLE, 30 * GIB)
    put_run(tmp_path, "4-other", Allocator.RAW, 20 * GIB, command=("python", "b.py"))
    put_run(tmp_path, "5-failed", Allocator.OBSERVE, 20 * GIB, ending=Ending(1, None))
    (tmp_path / "6-damaged").mkdir()
    (tmp_path / "6-damaged" / "report.json").write_text("{")
    report = put_run(tmp_path, "7-vms", Allocator.VMS, 26 * GIB)
    report["baseline"] = find_baselines(report, str(tmp_path / "7-vms"))
    assert [(entry["allocator"], entry["peak_reserved_bytes"], entry["source"]) for entry in report["baseline"]] == [
        ("expandable", 30 * GIB, "measured"),
        ("native", 40 * GIB, "measured"),
    ]
    lines = format_summary(report, None, 120)
    assert any("40 GiB under native (measured: " in line for line in lines)


@pytest.mark.parametrize(("size", "card"), [(1 << 30, "t4"), (22 << 30, "l4"), (70 << 30, "h100"), (10 << 40, None)])
def test_smallest_card(size, card):
    found = smallest_card(size)
    if card is None:
        assert found is None
    else:
        assert found[1].total_bytes >= size + found[1].context_bytes
        smaller = [profile for profile in PROFILES.values() if profile.total_bytes < found[1].total_bytes]
        assert all(size + profile.context_bytes > profile.total_bytes for profile in smaller)
