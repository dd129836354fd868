# SPDX-License-Identifier: Apache-2.0
"""After a failure: what held most, how much smaller the batch must be, and what to try."""

import os

import pytest
from telemetry_files import device, oom, write_process
from test_report import GIB, HEAP, MIB, report_of

from gml_run._abi import OomRecord
from gml_run.analysis.frame import make_frame
from gml_run.analysis.oom import classify, failure_count, smaller_batch, top_sizes
from gml_run.config import Allocator, Goal, RunOptions
from gml_run.launch.process import Ending
from gml_run.live.line import format_line
from gml_run.report.identity import alloc_conf, git_commit
from gml_run.report.summary import format_summary
from gml_run.report.tables import rank_lines, report_tables
from gml_run.telemetry.reader import TelemetryReader


def record(**fields):
    return OomRecord(**{**dict.fromkeys(OomRecord._fields, 0), **fields})


# 80 GiB device, 1 GiB of it outside: 79 GiB can be held.
FULL = {
    "request_bytes": 4 * GIB,
    "live_bytes": 78 * GIB,
    "reserved_bytes": 78 * GIB,
    "free_bytes": GIB,
    "total_bytes": 80 * GIB,
}


def test_batch_by_what_stays_between_steps():
    full = record(**FULL, step_low_bytes=19 * GIB, step_count=2)
    assert classify(full).kind == "full"
    # 60 GiB of room for 63 GiB that go with the batch.
    assert smaller_batch(full, "full") == (
        "a batch at least 5 % smaller: 19 GiB stay between steps, 59 GiB go with the batch"
    )


def test_batch_before_the_first_step_is_a_lower_bound():
    text = smaller_batch(record(**FULL, step_low_bytes=19 * GIB), "full")
    assert text.startswith("at least 4 % less") and "not known" in text


def test_no_batch_is_small_enough():
    fixed = record(
        **{**FULL, "live_bytes": 79 * GIB, "reserved_bytes": 79 * GIB, "free_bytes": 0},
        step_low_bytes=79 * GIB,
        step_count=2,
    )
    assert smaller_batch(fixed, "full") == "no batch is small enough: 79 GiB stay between steps"


def test_under_a_limit_the_limit_counts():
    limited = record(request_bytes=2 * GIB, live_bytes=9 * GIB, reserved_bytes=9 * GIB, free_bytes=70 * GIB,
                     total_bytes=80 * GIB, step_low_bytes=2 * GIB, step_count=9)  # fmt: skip
    assert classify(limited, 10 * GIB).kind == "limit"
    assert smaller_batch(limited, "limit", 10 * GIB).startswith("a batch at least 12 % smaller")


@pytest.mark.parametrize("kind", ["fragmentation", "stream", "refused", "impossible"])
def test_no_word_on_the_batch_where_it_is_not_the_point(kind):
    assert smaller_batch(record(**FULL), kind) == ""


def test_pytorchs_second_try_is_the_same_failure(tmp_path):
    def at(second, request=4 * GIB, where=0):
        return oom(**{**FULL, "request_bytes": request}, time_ns=int(second * 1e9), device=where)

    failures = [at(1), at(1.1), at(3), at(3.1, GIB), at(3.1, where=1)]
    devices = {0: device(**HEAP), 1: device(**HEAP)}
    write_process(tmp_path, counters={"served_calls": 9}, devices=devices, ooms=failures)
    (process,) = TelemetryReader(str(tmp_path)).read()
    assert [failure_count(process, index) for index in (0, 1, 2)] == [3, 1, 0]
    line = format_line(make_frame([process.only(process.devices[0])], 0), 12)
    assert " · peak 26 GiB (3.8 % of it waste) · " in line and line.endswith(" · out of memory 3×")


def test_top_sizes():
    held = record(top1_bytes=GIB, top1_count=7, top2_bytes=300 * MIB, top2_count=2)
    assert top_sizes(held) == [(GIB, 7), (300 * MIB, 2)]


def test_the_summary_is_a_post_mortem(tmp_path):
    failure = oom(**FULL, step_count=12, allocs=34567, step_low_bytes=19 * GIB, top1_bytes=GIB, top1_count=7,
                  top2_bytes=300 * MIB, top2_count=20)  # fmt: skip
    trained = device(**HEAP, steps_ns=[10**8] * 12)
    write_process(tmp_path, counters={"served_calls": 9}, devices={0: trained}, ooms=[failure])
    report = report_of(tmp_path, ending=Ending(1, None))
    text = " ".join(" ".join(format_summary(report, "x", 80)).split())
    assert "out of memory genuinely full" in text and "3 GiB is missing" in text
    assert "after 12 steps, 34,567 requests" in text
    assert "held most then: 7 × 1 GiB · 20 × 300 MiB" in text
    assert "a batch at least 5 % smaller" in text
    titles = {table.title: table for table in report_tables(report)}
    holders = titles["Live blocks that held most at the last failure"]
    assert holders.rows[0] == ("1 GiB", "7", "7 GiB") and "5 % smaller" in holders.note
    assert any("out of memory" in row[1] for row in titles["What to try"].rows)


def test_advice_names_settings(tmp_path):
    waste = {**HEAP, "at_peak_external_bytes": 6 * GIB}
    write_process(tmp_path, counters={"served_calls": 9}, devices={0: device(**waste)})
    settings = [entry["setting"] for entry in report_of(tmp_path)["advice"]]
    assert settings == ["--goal memory"]
    assert report_of(tmp_path, options=RunOptions(goal=Goal.MEMORY))["advice"] == []


def test_no_advice_for_a_few_mebibytes(tmp_path):
    tiny = {**HEAP, "peak_reserved_bytes": 4 * MIB, "at_peak_external_bytes": 2 * MIB, "reserved_bytes": 0}
    write_process(tmp_path, counters={"served_calls": 9}, devices={0: device(**tiny)})
    assert report_of(tmp_path)["advice"] == []


def test_advice_for_pytorchs_own_allocator(tmp_path):
    figures = {"torch_peak_reserved_bytes": 40 * GIB, "torch_peak_allocated_bytes": 30 * GIB,
               "torch_at_peak_allocated_bytes": 30 * GIB, "torch_allocs": 5, "total_bytes": 80 * GIB}  # fmt: skip
    write_process(tmp_path, devices={0: device(**figures)}, allocator="native")
    (entry,) = report_of(tmp_path, options=RunOptions(allocator=Allocator.NATIVE))["advice"]
    assert entry["setting"] == "--allocator vms" and "10 GiB" in entry["why"]


def test_ranks_that_are_unequal(tmp_path):
    for rank, size in enumerate((10, 10, 20)):
        fields = {**HEAP, "peak_reserved_bytes": size * GIB, "peak_live_bytes": size * GIB}
        steps = [10**8 + rank] * 5
        write_process(tmp_path, pid=10 + rank, rank=rank, counters={"served_calls": 1},
                      devices={0: device(**fields, steps_ns=steps)})  # fmt: skip
    report = report_of(tmp_path)
    assert any("rank 2 held 50.0 % more" in entry["why"] for entry in report["advice"])
    lines = rank_lines(report)
    assert [line.split()[0] for line in lines[1:4]] == ["10", "11", "12"]
    assert "100 ms" in lines[1] and lines[-1] == "The fullest is rank 2, 50.0 % above the mean of 3."
    assert report["steps"]["count"] == 5


def test_waste_over_time_is_in_the_table(tmp_path):
    write_process(tmp_path, counters={"served_calls": 9}, devices={0: device(**HEAP)})
    report = report_of(tmp_path)
    report["timeline"]["points"] = [[0, GIB, GIB, 0, 2 * GIB, 0], [1, GIB, GIB, 0, 4 * GIB, 0]]
    (table,) = [table for table in report_tables(report) if table.title == "Waste by cause"]
    assert table.rows[1][3:] == ("4 GiB", "3 GiB")


def test_the_table_of_parts_adds_up(tmp_path):
    write_process(tmp_path, counters={"served_calls": 9}, devices={0: device(**HEAP)})
    (table,) = [table for table in report_tables(report_of(tmp_path)) if table.title.startswith("Where")]
    parts = dict(table.rows)
    assert parts["= live (PyTorch: allocated)"] == "25 GiB"
    assert parts["= held by the allocator (PyTorch: reserved)"] == "26 GiB"
    assert parts["= in use on the device"] == "27 GiB" and parts["+ free"] == "53 GiB"
    assert parts["= memory of the device"] == "80 GiB"
    assert "nvidia-smi" in table.note and "mem_get_info" in table.note


def test_the_commit_is_read_from_gits_files(tmp_path):
    assert git_commit(str(tmp_path)) is None or not str(tmp_path).startswith("/tmp")
    commit = "0123456789abcdef0123456789abcdef01234567"
    git = tmp_path / ".git"
    (git / "refs" / "heads").mkdir(parents=True)
    (git / "HEAD").write_text("ref: refs/heads/main\n")
    (git / "packed-refs").write_text(f"# pack-refs\n{commit} refs/heads/main\n")
    inner = tmp_path / "a" / "b"
    os.makedirs(inner)
    assert git_commit(str(inner)) == commit
    (git / "refs" / "heads" / "main").write_text(commit[::-1] + "\n")
    assert git_commit(str(inner)) == commit[::-1]
    (git / "HEAD").write_text("nonsense\n")
    assert git_commit(str(inner)) is None


def test_alloc_conf_is_the_first_that_pytorch_reads():
    assert alloc_conf({"PYTORCH_ALLOC_CONF": "b", "PYTORCH_CUDA_ALLOC_CONF": "a"}) == "a"
    assert alloc_conf({}) is None
