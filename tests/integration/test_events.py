# SPDX-License-Identifier: Apache-2.0
"""What happened in a run is kept in its telemetry, with the times of calls, and told in the report."""

import pytest
from runs import python, run
from shim import run_program

from gml_run.analysis.latency import latency_of


def test_a_failure_and_what_led_to_it(tmp_path):
    done = run_program("shim_cases.py", "out_of_memory", folder=tmp_path)
    assert done.code == 0, done.stderr
    events = done.process.events
    kinds = [event.kind for event in events]
    assert kinds[0] == "BEGIN" and "RETRY" in kinds
    assert kinds.index("RETRY") < kinds.index("OOM")
    assert [event.time_ns for event in events] == sorted(event.time_ns for event in events)
    told = sum(event.count for event in events if event.kind == "OOM")
    assert told == done.process.oom_count > 0


def test_messages_are_all_kept(tmp_path):
    done = run_program("shim_cases.py", "ipc", folder=tmp_path)
    texts = [event.text for event in done.process.events if event.kind == "MESSAGE"]
    assert len(texts) == 1 and "cudaIpcGetMemHandle" in texts[0] and texts[0][:60] in done.process.message


def test_every_call_is_in_the_histograms(tmp_path):
    """Calls with driver work one by one, the others by their sample."""
    done = run_program("shim_cases.py", "churn", folder=tmp_path)
    device = done.process.devices[0]
    stats = device.stats
    worked = stats.place_extend + stats.place_stitch + stats.place_grow
    assert sum(device.driver_latency) >= worked > 0
    timed = sum(device.alloc_latency)
    assert abs(timed - stats.allocs) <= sum(device.driver_latency) + 251
    assert abs(sum(device.free_latency) - stats.frees) <= 251
    assert latency_of(device.alloc_latency).max_s >= latency_of(device.driver_latency).p50_s


@pytest.mark.parametrize("options", [[], ["--observe"]])
def test_the_report_tells_them(options, tmp_path):
    script = tmp_path / "train.py"
    script.write_text(
        "import torch\n"
        "kept = [torch.empty(1 << 30, dtype=torch.uint8, device='cuda') for _ in range(4)]\n"
        "del kept\n"
        "for _ in range(300):\n"
        "    x = torch.empty(1 << 20, device='cuda')\n"
        "    del x\n"
        "torch.empty(21 << 30, dtype=torch.uint8, device='cuda')\n"
        "try:\n"
        "    torch.empty(60 << 30, dtype=torch.uint8, device='cuda')\n"
        "except torch.OutOfMemoryError:\n"
        "    pass\n"
        "print(torch.cuda.memory_stats()['num_alloc_retries'])\n"
    )
    done = run(["--simulate", "h100:24G", *options], python(script), tmp_path / "run")
    assert done.code == 0
    texts = [event["text"] for event in done.report["events"]]
    assert texts[0].startswith("simulated h100")
    assert any(text.startswith("out of memory: 60 GiB was asked for") for text in texts)
    if options:
        assert any("PyTorch empties its cache" in text for text in texts)
        retries = int(done.stdout.split()[-1])
        assert retries == 2
        assert f"PyTorch emptied its cache and asked again {retries} times" in " ".join(done.stderr.split())
    else:
        latency = done.device["latency"]
        assert 0 < latency["alloc"]["p50_s"] <= latency["alloc"]["p99_s"] <= latency["alloc"]["max_s"]
        assert latency["driver"]["max_s"] > 0
    assert all(event["t_s"] >= 0 for event in done.report["events"])
