# SPDX-License-Identifier: Apache-2.0
"""However a program ends, its exit status is the program's own and the report tells the truth."""

import json
import signal
import sys

import pytest
from runs import PROGRAMS, python, run

MIB = 1 << 20
SIMULATE = ["--simulate", "h100"]
PEAK, LIVE = 2150 * MIB, 1075 * MIB


def ended(folder, ending, *options):
    return run([*SIMULATE, *options], python(PROGRAMS / "endings.py", ending), folder)


@pytest.mark.parametrize(
    ("ending", "code", "name"),
    [
        ("normal", 0, None),
        ("killed", -signal.SIGKILL, "SIGKILL"),
        ("hard-exit", 7, None),
        ("fault", -signal.SIGSEGV, "SIGSEGV"),
        ("exec", 5, None),
        ("children", 0, None),
    ],
)
def test_report_is_true_however_the_program_ends(ending, code, name, tmp_path):
    done = ended(tmp_path / "run", ending)
    assert done.code == code
    shown = code if code >= 0 else 128 - code
    assert (done.report["run"]["exit_code"], done.report["run"]["signal"]) == (shown, name)
    used = json.loads(done.stdout.splitlines()[0])["used"]
    assert done.process["pid"] == json.loads(done.stdout.splitlines()[0])["pid"]
    assert done.device["peak_live_bytes"] - PEAK in (0, MIB) and done.device["live_bytes"] - LIVE in (0, MIB)
    assert done.device["reserved_bytes"] == pytest.approx(used, abs=2 * MIB)
    assert PEAK <= done.device["peak_reserved_bytes"] <= PEAK + 8 * MIB
    assert done.report["ooms"] == [] and done.report["problems"] == []
    assert (name or f"exit {code}") in done.stderr


def test_out_of_memory_is_explained(tmp_path):
    done = ended(tmp_path / "run", "out-of-memory", "--simulate", "h100:8G")
    assert done.code == done.report["run"]["exit_code"] == 9
    count = json.loads(done.stdout.splitlines()[-1])["count"]
    held = LIVE + count * 256 * MIB
    (oom,) = done.report["ooms"]
    assert oom["request_bytes"] == 256 * MIB and oom["total_bytes"] == 8 << 30
    assert oom["live_bytes"] == held and oom["kind"] == "full"
    # What was left would not have done: the context is all that is not ours.
    assert (8 << 30) - (520 * MIB) - held < 256 * MIB
    assert "out of memory (genuinely full)" in done.report["verdict"]
    assert oom["sentence"] in done.stderr


@pytest.mark.parametrize("allocator", ["vms", "native", "observe"])
def test_out_of_memory_of_a_training_script(allocator, tmp_path):
    code = "import torch\nkept = [torch.empty(700 << 20, dtype=torch.uint8, device='cuda') for _ in range(99)]"
    options = ["--simulate", "h100:6G", "--allocator", allocator]
    done = run([*SIMULATE, *options], [sys.executable, "-c", code], tmp_path / "run")
    assert done.code == done.report["run"]["exit_code"] == 1
    assert "torch.OutOfMemoryError" in done.stderr
    assert done.device["peak_live_bytes"] == 8 * (700 << 20)  # and 520 MiB of context: a ninth has no room
    assert done.report["ooms"][-1]["request_bytes"] == 700 << 20
    assert done.report["verdict"].startswith("out of memory (genuinely full)")


@pytest.mark.parametrize("code", [0, 3])
def test_a_program_that_never_touches_cuda(code, tmp_path):
    done = run(SIMULATE, ["sh", "-c", f"echo out; exit {code}"], tmp_path / "run")
    assert (done.code, done.stdout) == (code, b"out\n")
    assert done.report["processes"] == [] and done.report["run"]["exit_code"] == code
    assert done.report["device"]["peak_used_bytes"] == 0
    assert "no GPU memory call was seen" in done.report["not_served"]
    assert done.report["not_served"] in done.report["verdict"]
    assert done.report["not_served"] in " ".join(done.stderr.split())  # the summary is wrapped


def test_what_is_simulated_is_said(tmp_path):
    done = ended(tmp_path / "run", "normal")
    assert done.report["run"]["simulated"] is True
    assert done.stderr.startswith("gml-run: simulated h100: computed values mean nothing")
