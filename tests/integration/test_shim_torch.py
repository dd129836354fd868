# SPDX-License-Identifier: Apache-2.0
"""Real PyTorch on the simulated GPU: which allocator it gets, and that our figures are its own."""

import functools
import json

import pytest
from shim import run_program

from gml_run._abi import STEP_SOURCES


@pytest.fixture(scope="module")
def run_torch(tmp_path_factory):
    """What the program said, and its run; one run for all tests that ask for the same."""

    @functools.cache
    def made(variation, variables):
        run = run_program("torch_small.py", variation, folder=tmp_path_factory.mktemp("torch"), **dict(variables))
        assert run.code == 0, run.stderr
        return json.loads(run.stdout.splitlines()[-1]), run

    def ask(variation="", **variables):
        return made(variation, tuple((name, value) for name, value in variables.items() if value is not None))

    return ask


def test_tensors_are_served(run_torch):
    said, run = run_torch(GML_CHECK="1")
    process, device = run.process, run.process.devices[0]
    assert said["backend"] == "cudaMallocAsync"
    assert said["environment"] is None  # the program's own environment is left alone
    assert process.counters.served_calls > 1000 and process.counters.forwarded_calls == 0
    assert process.counters.torch_seen == process.counters.async_seen == 1
    assert process.counters.backend_dropped == process.counters.degraded == 0
    assert said["peak_allocated"] == device.stats.peak_live_bytes
    assert said["peak_reserved"] == device.stats.peak_reserved_bytes
    assert device.stats.place_extend + device.stats.place_stitch > 0


@pytest.mark.parametrize("allocator", ["native", "expandable"])
def test_observed_peaks_are_pytorchs_own(allocator, run_torch):
    said, run = run_torch(GML_ALLOCATOR=allocator)
    process, figures = run.process, run.process.devices[0].figures
    assert said["backend"] == "native"
    assert process.counters.reporter_seen == process.counters.torch_seen == 1
    assert figures.torch_peak_allocated_bytes == said["peak_allocated"]
    assert figures.torch_peak_reserved_bytes == said["peak_reserved"]
    assert figures.torch_allocated_bytes == said["allocated"]
    assert figures.torch_allocs - figures.torch_frees >= 1
    assert process.counters.served_calls == 0


@pytest.mark.parametrize(("setting", "segments_reach_us"), [(None, True), ("expandable_segments:True", False)])
def test_observe_leaves_the_users_settings(setting, segments_reach_us, run_torch):
    said, run = run_torch(GML_ALLOCATOR="observe", PYTORCH_CUDA_ALLOC_CONF=setting)
    figures = run.process.devices[0].figures
    assert figures.torch_peak_reserved_bytes == said["peak_reserved"]
    assert (figures.peak_driver_live_bytes == said["peak_reserved"]) == segments_reach_us
    assert run.process.counters.backend_dropped == 0


def test_a_setting_of_the_scripts_is_replaced_and_said(run_torch):
    said, run = run_torch("sets-expandable")
    assert said["backend"] == "cudaMallocAsync"
    assert run.process.counters.backend_dropped == 1
    assert run.process.counters.served_calls > 1000


@pytest.mark.parametrize("allocator", ["vms", "native", "observe"])
def test_a_program_may_plug_in_an_allocator(allocator, run_torch):
    said, run = run_torch("plugged", GML_ALLOCATOR=allocator)
    assert said == {"made": 1024}, run.stderr


def test_cuda_async_is_forwarded(run_torch):
    said, run = run_torch(GML_ALLOCATOR="cuda-async")
    assert said["backend"] == "cudaMallocAsync"
    assert run.process.counters.served_calls == 0 and run.process.counters.forwarded_calls > 1000


@pytest.mark.parametrize(("allocator", "intercept"), [("raw", None), ("vms", "uncached")])
def test_without_pytorchs_cache(allocator, intercept, run_torch):
    said, run = run_torch(GML_ALLOCATOR=allocator, GML_INTERCEPT=intercept)
    assert said["backend"] == "native" and said["peak_reserved"] == 0
    served, forwarded = run.process.counters.served_calls, run.process.counters.forwarded_calls
    assert (served > 1000) == (allocator == "vms") and (forwarded > 1000) == (allocator == "raw")


def test_segments_are_served(run_torch):
    said, run = run_torch(GML_INTERCEPT="segments")
    assert said["backend"] == "native"
    assert 0 < run.process.counters.served_calls < 500
    assert run.process.devices[0].stats.peak_live_bytes == said["peak_reserved"]
    assert run.process.message == ""


@pytest.mark.parametrize(
    ("allocator", "intercept", "source"),
    [
        ("vms", None, 0),
        ("vms", "uncached", 0),
        ("vms", "segments", 1),
        ("native", None, 1),
        ("observe", None, 1),
        ("raw", None, 2),
        ("cuda-async", None, 2),
    ],
)
def test_out_of_memory_is_recorded(allocator, intercept, source, run_torch):
    size = 10 << 30
    said, run = run_torch("oom", GML_ALLOCATOR=allocator, GML_INTERCEPT=intercept, GML_SIM_MEMORY=str(size))
    assert "out of memory" in said["oom"]
    record = run.process.ooms[-1]
    # What holds most: the blocks that the program kept asking for.
    assert (record.top1_bytes, record.top1_count) == (1 << 30, record.live_bytes >> 30)
    assert record.top1_bytes * record.top1_count >= record.top2_bytes * record.top2_count > 0
    assert record.step_count == run.process.devices[0].figures.step_count
    assert (record.source, record.request_bytes) == (source, 1 << 30)
    assert record.live_bytes >= 7 << 30
    assert record.total_bytes == size and record.free_bytes < 1 << 30


@pytest.mark.parametrize("setting", [{"GML_INTERCEPT": "segments"}, {"GML_ALLOCATOR": "native"}])
def test_a_request_that_only_empties_pytorchs_cache_is_no_failure(setting, run_torch):
    _, run = run_torch("flush", GML_SIM_MEMORY=str(6 << 30), **setting)
    assert run.code == 0 and run.process.oom_count == 0
    assert [event.kind for event in run.process.events].count("FLUSH") == 1


@pytest.mark.parametrize("setting", [{"GML_CHECK": "1"}, {"GML_ALLOCATOR": "native"}, {"GML_ALLOCATOR": "raw"}])
def test_training_steps_are_found(setting, run_torch):
    _, run = run_torch(**setting)
    (device,) = run.process.devices
    assert device.figures.step_count == len(device.step_times_ns) == 30
    assert STEP_SOURCES[device.figures.step_source][0] == "GRADIENTS"
    assert device.step_times_ns[:2] == (0, 0) and min(device.step_times_ns[2:]) > 0


def test_reports_reach_pytorchs_profiler_too(run_torch):
    said, run = run_torch("profile", GML_ALLOCATOR="native")
    assert said["profiled"] >= 5 * (4 << 20)
    assert run.process.counters.reporter_seen == 1


def test_captured_allocations_are_the_drivers(run_torch):
    _, run = run_torch("graph", GML_CHECK="1")
    counters = run.process.counters
    assert counters.captures == 1 and counters.forwarded_calls > 0 and counters.degraded == 0
    assert counters.served_calls > 1000


@pytest.mark.parametrize(
    ("allocator", "intercept"),
    [("vms", "tensors"), ("vms", "uncached"), ("native", "tensors"), ("cuda-async", "tensors"), ("raw", "tensors")],
)
def test_a_forked_child_may_drop_tensors(allocator, intercept, run_torch):
    said, run = run_torch("fork", GML_ALLOCATOR=allocator, GML_INTERCEPT=intercept)
    assert said["child"] == 7, run.stderr
    assert len(run.processes) == 1 and run.process.counters.degraded == 0


def test_limit_is_an_ordinary_out_of_memory(run_torch):
    said, run = run_torch("oom", GML_LIMIT="3GiB")
    assert "out of memory" in said["oom"]
    assert run.process.devices[0].stats.peak_reserved_bytes <= 3 << 30
    assert said["free"] <= 3 << 30
