# SPDX-License-Identifier: Apache-2.0
"""The reading commands on runs made by the real launcher."""

import json
import os
import shutil
import signal
import subprocess
import sys

import pytest
from launcher import GML_RUN, PROGRAMS, environment, wait_until
from runs import python, run

PY = sys.executable
FAKE = str(PROGRAMS / "fake_gpu.py")
SIMULATE = ("--simulate", "h100")


@pytest.fixture(scope="module")
def template(tmp_path_factory, libraries):
    """A folder with one run that has ended, and how it ended."""
    folder = tmp_path_factory.mktemp("finished")
    command = [*GML_RUN, *SIMULATE, PY, FAKE, "0.5", "3"]
    done = subprocess.run(command, env=environment(libraries), cwd=folder, capture_output=True, timeout=60)
    assert done.returncode == 3
    return folder, done


@pytest.fixture
def finished(template, tmp_path):
    """How the run ended that tmp_path holds a copy of."""
    folder, done = template
    shutil.copytree(folder, tmp_path, symlinks=True, dirs_exist_ok=True)
    return done


def test_summary_and_report_say_the_same(gml, finished):
    summary = finished.stderr.decode().splitlines()
    assert summary[0] == "gml-run: simulated h100: computed values mean nothing, memory figures are real"
    shown = gml("report", "latest").stdout.decode().splitlines()
    same = [line for line in shown if not line.startswith(("  files", "  next"))]
    assert [line for line in summary[1:] if not line.startswith(("  files", "  next"))] == same
    assert any("22 GiB of 80 GiB" in line for line in same)


@pytest.mark.parametrize("words", [["report", "latest", "--json"], ["runs"]])
def test_a_full_disk_behind_standard_output_is_one_line(words, env, tmp_path, finished):
    with open("/dev/full", "wb") as full:
        done = subprocess.run([*GML_RUN, *words], stdout=full, stderr=subprocess.PIPE, env=env, cwd=tmp_path)
    assert done.returncode == 125
    assert done.stderr.decode() == "gml-run: standard output: No space left on device\n"


def test_json_has_the_promised_keys(gml, finished):
    report = json.loads(gml("report", "latest", "--json").stdout)
    assert set(report) >= {"schema_version", "verdict", "run", "device", "baseline", "steps", "processes", "ooms"}
    assert set(report["run"]) >= {
        "id", "command", "duration_s", "exit_code", "signal", "allocator", "intercept", "goal", "simulated",
        "versions",
    }  # fmt: skip
    assert report["run"]["exit_code"] == 3 and report["run"]["simulated"] is True
    (block,) = report["processes"][0]["devices"]
    assert set(block) >= {
        "index", "peak_live_bytes", "peak_reserved_bytes", "live_bytes", "reserved_bytes", "waste_ratio",
        "mean_waste_ratio", "pools", "waste", "largest_servable_bytes", "allocs", "frees", "merges", "ooms",
        "retries", "placements", "driver_calls", "driver_time_s",
    }  # fmt: skip


def test_runs_lists_every_run(gml, finished):
    gml("-q", *SIMULATE, "false")
    rows = json.loads(gml("runs", "--json").stdout)
    assert [(row["state"], row["exit_code"]) for row in rows] == [("ended", 3), ("ended", 1)]
    text = gml("runs").stdout.decode()
    assert text.count("\n") == 2 and "22 GiB" in text


def test_a_run_is_found_by_path_name_and_beginning(gml, finished, tmp_path):
    name = os.path.basename(os.path.realpath(tmp_path / "gml-runs" / "latest"))
    answers = {
        gml("report", word, "--json").stdout
        for word in ("latest", name, name[:-2], f"gml-runs/{name}", str(tmp_path / "gml-runs" / name / "report.json"))
    }
    assert len(answers) == 1 and answers != {b""}
    missing = gml("report", "nothing-like-it")
    assert missing.returncode == 125 and missing.stderr.count(b"\n") == 1


@pytest.mark.parametrize("name", ["report.json", "run.json"])
@pytest.mark.parametrize("text", ["{", "[]", '{"schema_version": 1}'])
def test_a_damaged_report_is_one_line_and_hides_no_other(gml, finished, tmp_path, name, text):
    whole = tmp_path / "gml-runs" / "20200101-000000-whole"
    shutil.copytree(os.path.realpath(tmp_path / "gml-runs" / "latest"), whole)
    (tmp_path / "gml-runs" / "latest" / name).write_text(text)
    if name == "run.json":
        (tmp_path / "gml-runs" / "latest" / "report.json").unlink()
    for words in (["report", "latest"], ["top", "latest", "--once"]):
        done = gml(*words)
        assert done.returncode == 125 and b"damaged" in done.stderr and done.stderr.count(b"\n") == 1
    states = {run["run"]: run["state"] for run in json.loads(gml("runs", "--json").stdout)}
    assert sorted(states.values()) == ["damaged", "ended"] and states[whole.name] == "ended"
    assert gml("runs").returncode == 0
    assert gml("runs", "--clean").stdout == b"2 runs deleted\n"


def test_a_running_run_and_one_whose_launcher_was_killed(gml, env, tmp_path):
    process = subprocess.Popen(
        [*GML_RUN, "-q", *SIMULATE, "-o", "run", PY, FAKE, "30"], env=env, cwd=tmp_path, stdout=subprocess.DEVNULL
    )
    try:
        # The first figures stand in the file a moment after it is there.
        assert wait_until(lambda: b"22 GiB" in gml("report", "run").stdout)
        running = json.loads(gml("report", "run", "--json").stdout)
        assert running["run"]["exit_code"] is None and "still runs" in running["problems"][0]
        assert running["processes"][0]["devices"][0]["peak_reserved_bytes"] == 22 << 30
    finally:
        process.send_signal(signal.SIGKILL)
        process.wait()
    lost = json.loads(gml("report", "run", "--json").stdout)
    assert "did not live" in lost["problems"][0]
    assert lost["processes"][0]["devices"][0]["peak_reserved_bytes"] == 22 << 30


def test_strict_fails_what_was_not_measured(gml):
    assert gml("-q", "--strict", *SIMULATE, "true").returncode == 125
    assert gml("-q", "--strict", *SIMULATE, PY, FAKE, "0.3").returncode == 0


def test_quiet_writes_the_report_and_nothing_else(gml, tmp_path):
    done = gml("-q", *SIMULATE, PY, FAKE, "0.3")
    assert done.stderr == b""
    assert (tmp_path / "gml-runs" / "latest" / "report.json").exists()


def test_output_directory(gml, env, tmp_path):
    done = gml("-q", *SIMULATE, "-o", "out/%q{JOB}-%r", "true", env={**env, "JOB": "j1", "RANK": "2"})
    assert done.returncode == 0 and (tmp_path / "out" / "j1-2" / "report.json").exists()
    again = gml("-q", *SIMULATE, "-o", "out/%q{JOB}-%r", "true", env={**env, "JOB": "j1", "RANK": "2"})
    assert again.returncode == 125 and b"holds a run already" in again.stderr


def test_print_env_sets_up_a_shell(gml, env, tmp_path):
    printed = gml("print-env", *SIMULATE, "-o", "run", "--goal", "memory").stdout.decode()
    script = printed + 'echo "$GML_GOAL $GML_SIM_PROFILE $(basename "$GML_RUN_DIR")"'
    plain = {**env, "LD_PRELOAD": ""}
    done = subprocess.run(["sh", "-c", script], env=plain, cwd=tmp_path, capture_output=True, text=True)
    assert done.stdout == "memory h100 run\n"
    assert "libgmlsim.so" in printed and gml("report", "run").returncode == 0
    variables = json.loads(gml("print-env", *SIMULATE, "--release-idle", "60", "--json").stdout)
    assert variables["GML_RELEASE_IDLE"] == "60" and "libgml.so" in variables["LD_PRELOAD"]


@pytest.mark.parametrize("words", [["--help"], ["report", "--help"], ["runs", "--help"], ["print-env", "--help"]])
def test_help_has_examples(gml, words):
    done = gml(*words)
    assert done.returncode == 0 and b"Examples" in done.stdout and done.stderr == b""


def test_help_names_no_command_that_does_not_exist(gml):
    text = gml("--help").stdout.decode()
    for word in ("replay", "compare", "trim"):
        assert f" {word} " not in text.split("Commands")[-1]


def test_version(gml):
    assert gml("--version").stdout.split()[0] == b"gml-run"


def test_markdown_and_html(gml, finished, tmp_path):
    assert gml("report", "latest", "--md").stdout.startswith(b"### gml-run")
    assert gml("report", "latest", "--html", "page.html").stdout == b"page.html\n"
    assert (tmp_path / "page.html").read_text().startswith("<!doctype html>")
    assert gml("report", "latest", "--html", "/proc/page.html").returncode == 125
    assert gml("report", "latest", "--md", "--json").returncode == 125


def test_diff_codes_are_those_of_diff(gml, finished):
    assert gml("diff", "latest", "latest").returncode == 0
    broken = gml("diff", "latest", "latest", "--fail-on", "peak_reserved>1G", "--fail-on", "ooms>0")
    assert broken.returncode == 1 and broken.stderr.count(b"\n") == 1
    assert gml("diff", "latest", "nothing-like-it").returncode == 2
    assert gml("diff", "latest", "latest", "--fail-on", "??").returncode == 2
    assert set(json.loads(gml("diff", "latest", "latest", "--json").stdout)) == {"figures", "broken"}


def test_old_runs_are_deleted(gml, env, tmp_path):
    for _ in range(4):
        assert gml("-q", *SIMULATE, "true").returncode == 0
    parent = tmp_path / "gml-runs"
    (parent / "notes").mkdir()
    names = sorted(path.name for path in parent.iterdir() if path.name[0] == "2")
    still = subprocess.Popen([*GML_RUN, "-q", *SIMULATE, "sleep", "60"], env=env, cwd=tmp_path)
    try:
        assert wait_until(lambda: len([path for path in parent.iterdir() if path.name[0] == "2"]) == 5)
        assert wait_until(lambda: all((path / "run.json").exists() for path in parent.glob("2*")))
        assert json.loads(gml("runs", "--keep", "2", "--json").stdout)["deleted"] == names[:2]
        assert gml("runs", "--clean").stdout == b"2 runs deleted\n"
        (row,) = json.loads(gml("runs", "--json").stdout)
        assert row["state"] == "running" and (parent / "notes").exists()
    finally:
        still.terminate()
        still.wait()
    assert gml("runs", "--keep", "1", "--clean").returncode == 125
    assert gml("runs", "--clean").stdout == b"1 runs deleted\n"
    assert not (parent / "latest").is_symlink() and gml("runs").stdout == b"no runs here\n"


def test_a_table_of_ranks(gml, finished):
    lines = gml("report", "latest", "--ranks").stdout.decode().splitlines()
    assert lines[0].startswith("process") and "step p50" in lines[0] and "22 GiB" in lines[1]


def test_what_others_hold_has_a_row_of_its_own(gml, tmp_path):
    """A simulated neighbour takes 2 GiB: the table says so, and a failure is not blamed on the program."""
    script = tmp_path / "take.py"
    script.write_text(
        "import torch\n"
        "kept = [torch.empty(1 << 30, dtype=torch.uint8, device='cuda') for _ in range(3)]\n"
        "try:\n"
        "    torch.empty(19 << 30, dtype=torch.uint8, device='cuda')\n"
        "except torch.OutOfMemoryError:\n"
        "    pass\n"
    )
    faults = {"GML_SIM_FAULTS": "foreign:2=2G"}
    start = ["-q", "--simulate", "h100:24G"]
    alone = run(start, python(script), tmp_path / "alone")
    shared = run(start, python(script), tmp_path / "shared", variables=faults)
    assert (alone.code, shared.code) == (0, 0), alone.stderr + shared.stderr
    said = gml("report", "shared", "--md").stdout.decode()
    assert "| + other processes | 2 GiB |" in said and "| + context and libraries | 520 MiB |" in said
    assert "| + other processes | 0 |" in gml("report", "alone", "--md").stdout.decode()
    assert {oom["kind"] for oom in shared.report["ooms"]} == {"others"}
    assert alone.report["ooms"] == []
