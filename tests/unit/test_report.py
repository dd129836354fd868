# SPDX-License-Identifier: Apache-2.0
"""The report and its summary, from telemetry written by hand to the text that a user reads."""

import pytest
from telemetry_files import device, oom, write_process

from gml_run.config import Allocator, RunOptions, Simulation
from gml_run.launch.process import Ending
from gml_run.report.build import build_report
from gml_run.report.record import RunRecord
from gml_run.report.summary import format_summary
from gml_run.telemetry.reader import TelemetryReader

GIB = 1 << 30
MIB = 1 << 20
HEAP = {
    "total_bytes": 80 * GIB,
    "peak_used_bytes": 27 * GIB,
    "live_bytes": 20 * GIB,
    "reserved_bytes": 26 * GIB,
    "peak_live_bytes": 25 * GIB,
    "peak_reserved_bytes": 26 * GIB,
    "at_peak_requested_bytes": 25 * GIB - 40 * MIB,
    "at_peak_internal_bytes": 40 * MIB,
    "at_peak_external_bytes": 900 * MIB,
    "at_peak_stream_held_bytes": 124 * MIB,
    "place_exact": 1_000_000,
    "place_split": 200_000,
    "place_extend": 4_000,
    "place_stitch": 112,
    "place_grow": 400,
    "driver_map": 30_000,
    "driver_set_access": 5_000,
    "driver_ns": 420_000_000,
    "waste_mib_sum": 25,
    "reserved_mib_sum": 1000,
    "allocs": 1_204_512,
    "frees": 1_204_000,
}


def report_of(
    tmp_path, ending=None, options=None, command=("python", "train.py", "--api-key", "s3cret"), not_served=""
):
    record = RunRecord.begin(
        "20260101-000000-train-abcd", "/usr/bin/python", command, options or RunOptions(), not_served
    )
    reader = TelemetryReader(str(tmp_path))
    return build_report(record, reader.read(final=True), [], {"torch": "2.14.1"}, ending or Ending(0, None), 42.25)


def test_figures_map_directly(tmp_path):
    write_process(tmp_path, counters={"served_calls": 9, "forwarded_calls": 1}, rank=0, devices={0: device(**HEAP)})
    report = report_of(tmp_path)
    (process,) = report["processes"]
    (block,) = process["devices"]
    assert (process["served_calls"], process["forwarded_calls"], process["rank"]) == (9, 1, 0)
    assert block["waste_ratio"] == pytest.approx(1 - 25 / 26, abs=1e-6)
    assert block["mean_waste_ratio"] == 0.025
    assert block["waste"] == {
        "requested_bytes": 25 * GIB - 40 * MIB,
        "internal_bytes": 40 * MIB,
        "external_bytes": 900 * MIB,
        "stream_held_bytes": 124 * MIB,
    }
    assert block["placements"] == {
        "exact": 1_000_000,
        "split": 200_000,
        "extend": 4_000,
        "stitch": 112,
        "grow": 400,
        "fail": 0,
    }
    assert block["driver_calls"]["map"] == 30_000 and block["driver_time_s"] == 0.42
    assert report["device"] == {"name": "NVIDIA H100 80GB HBM3", "total_bytes": 80 * GIB, "peak_used_bytes": 27 * GIB}
    assert report["run"]["command"][-1] == "***" and report["run"]["versions"]["torch"] == "2.14.1"


def test_summary_of_our_allocator(tmp_path):
    write_process(tmp_path, counters={"served_calls": 9}, devices={0: device(**HEAP)})
    report = report_of(tmp_path, options=RunOptions(simulation=Simulation("h100", None)))
    assert format_summary(report, "gml-runs/x", 80) == [
        "gml-run · python train.py --api-key '***' · 42.2 s · exit 0",
        "  device         NVIDIA H100 80GB HBM3, 80 GiB",
        "  simulated      computed values mean nothing, memory figures are real",
        "  allocator      vms: free memory is stitched",
        "  held at peak   26 GiB of 80 GiB, 96.2 % of it in use (25 GiB)",
        "  waste at peak  rounding 40 MiB · free but scattered 900 MiB · waiting on",
        "                 another stream 124 MiB",
        "  placed         1,204,512 requests: 1,200,000 reused, 4,000 extended, 112",
        "                 stitched, 400 new memory",
        "  driver time    420 ms in 35,000 memory calls, 349 ns a request, by public",
        "                 figures for it",
        "  smallest card  Tesla V100-SXM2-32GB, 31.7 GiB, of those known",
        "  outside        1 GiB of the device: context, libraries, other processes",
        "  files          gml-runs/x",
        "  next           gml-run report gml-runs/x --html report.html",
    ]


def test_summary_of_an_observed_allocator_that_ran_out(tmp_path):
    torch = {
        "total_bytes": 80 * GIB,
        "peak_used_bytes": 79 * GIB,
        "torch_peak_allocated_bytes": 50 * GIB,
        "torch_peak_reserved_bytes": 78 * GIB,
        "torch_at_peak_allocated_bytes": 48 * GIB,
        "torch_ooms": 1,
    }
    failure = oom(
        request_bytes=4 * GIB,
        free_bytes=GIB,
        total_bytes=80 * GIB,
        reserved_bytes=78 * GIB,
        live_bytes=49 * GIB,
        source=1,
    )
    write_process(tmp_path, allocator="observe", devices={0: device(**torch)}, ooms=[failure])
    report = report_of(tmp_path, Ending(1, None), RunOptions(allocator=Allocator.OBSERVE), ("python", "train.py"))
    assert report["ooms"][0]["kind"] == "fragmentation"
    assert report["processes"][0]["devices"][0]["peak_live_bytes"] == 50 * GIB
    assert report["processes"][0]["devices"][0]["mean_waste_ratio"] is None
    assert report["verdict"].startswith("out of memory (fragmentation): 4 GiB did not fit")
    assert format_summary(report, "gml-runs/x", 80) == [
        "gml-run · python train.py · 42.2 s · exit 1",
        "  device         NVIDIA H100 80GB HBM3, 80 GiB",
        "  allocator      the program's own allocator",
        "  held at peak   78 GiB of 80 GiB, at most 64.1 % of it in use (50 GiB)",
        "  cached at peak 30 GiB that PyTorch held and no tensor used, when that was held",
        "                 first: reusable, or scattered",
        "  outside        1 GiB of the device: context, libraries, other processes",
        "  out of memory  fragmentation",
        "                 4 GiB did not fit although 29 GiB was held and unused in",
        "                 smaller pieces; the driver had 1 GiB left",
        "                 try: run it with gml-run --allocator vms, which stitches such",
        "                 pieces",
        "  files          gml-runs/x",
        "  next           gml-run python train.py  (the same with stitching)",
    ]


def test_several_ranks(tmp_path):
    for rank in range(3):
        fields = {**HEAP, "peak_reserved_bytes": (26 + rank) * GIB}
        write_process(
            tmp_path, pid=100 + rank, rank=rank, counters={"served_calls": 9}, devices={rank: device(**fields)}
        )
    lines = format_summary(report_of(tmp_path), "gml-runs/x", 80)
    assert "  held at peak   28 GiB of 80 GiB, at most 89.3 % of it in use (25 GiB)" in lines
    assert "                 rank 0, device 0: 26 GiB held, 96.2 % in use" in lines
    assert "                 rank 2, device 2: 28 GiB held, 89.3 % in use" in lines


@pytest.mark.parametrize(
    ("telemetry", "not_served", "text"),
    [
        (None, "no NVIDIA driver here", "no NVIDIA driver here"),
        (None, "", "made none, or its CUDA runtime is linked statically"),
        ({}, "", "reached CUDA but asked for no memory"),
        ({"counters": {"torch_seen": 1}}, "", "PyTorch was loaded"),
        ({"counters": {"degraded": 1}}, "", "internal fault"),
    ],
)
def test_nothing_served_is_explained(tmp_path, telemetry, not_served, text):
    if telemetry is not None:
        write_process(tmp_path, **telemetry)
    report = report_of(tmp_path, not_served=not_served)
    assert text in report["not_served"]
    assert any("not measured" in line for line in format_summary(report, None, 80))


def test_signals_and_codes(tmp_path):
    assert report_of(tmp_path, Ending(0, 9))["run"]["signal"] == "SIGKILL"
    assert report_of(tmp_path, Ending(0, 9))["run"]["exit_code"] == 137
    assert "killed by SIGKILL" in format_summary(report_of(tmp_path, Ending(0, 9)), None, 80)[0]


def test_words_that_are_not_utf8_do_not_break_the_report(tmp_path):
    from gml_run.report.files import read_json, write_json

    report = report_of(tmp_path, command=("python", "\udcff\udcfe"))
    write_json(str(tmp_path / "report.json"), report)
    assert read_json(str(tmp_path / "report.json"))["run"]["command"][0] == "python"


@pytest.mark.parametrize(
    ("ending", "options", "told"),
    [
        (Ending(1, None), RunOptions(), True),
        (Ending(0, 11), RunOptions(), True),
        (Ending(0, None), RunOptions(), False),
        (Ending(0, 2), RunOptions(), False),
        (Ending(1, None), RunOptions(allocator=Allocator.OBSERVE), False),
    ],
)
def test_a_failure_under_our_allocator_points_to_observe(tmp_path, ending, options, told):
    write_process(tmp_path, counters={"served_calls": 9}, devices={0: device(**HEAP)})
    lines = format_summary(report_of(tmp_path, ending, options), None, 80)
    assert any("gml-run --observe" in line for line in lines) is told


def test_a_failure_that_was_asked_for_twice_counts_once(tmp_path):
    second = 1_000_000_000
    failures = [
        oom(request_bytes=GIB, total_bytes=80 * GIB, time_ns=time_ns) for time_ns in (0, second // 10, 5 * second)
    ]
    write_process(tmp_path, counters={"served_calls": 9}, devices={0: device(**HEAP)}, ooms=failures)
    report = report_of(tmp_path)
    assert len(report["ooms"]) == 3
    assert "2 out-of-memory failures met and survived" in report["verdict"]
    assert any("2 times, the last: held by someone else" in line for line in format_summary(report, None, 80))


def test_only_failures_is_something_measured(tmp_path):
    failure = oom(request_bytes=2 * GIB, total_bytes=4 * GIB, free_bytes=3 * GIB)
    write_process(tmp_path, counters={"served_calls": 1}, devices={0: device(total_bytes=4 * GIB)}, ooms=[failure])
    report = report_of(tmp_path, Ending(1, None), RunOptions(limit_bytes=GIB))
    assert report["not_served"] == "" and report["verdict"].startswith("out of memory (over --limit)")
    assert any("out of memory  over --limit" in line for line in format_summary(report, None, 80))
