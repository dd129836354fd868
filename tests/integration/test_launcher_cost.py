# SPDX-License-Identifier: Apache-2.0
"""What the launcher and the report cost: processor time while live, memory for a long run."""

import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

from launcher import GML_RUN, PROGRAMS, TerminalRun
from runs import environment as run_environment

PY = sys.executable
FAKE = str(PROGRAMS / "fake_gpu.py")
MIB = 1 << 20


def processor_seconds(pid):
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


RANKS = f"""
import os, subprocess, sys
ranks = [subprocess.Popen([{PY!r}, {FAKE!r}, '60'], env={{**os.environ, 'FAKE_RANK': str(rank)}},
                          stdout=subprocess.DEVNULL) for rank in range(8)]
for rank in ranks:
    rank.wait()
"""


def test_eight_ranks_under_the_dock_take_less_than_one_percent_of_a_core(env, tmp_path):
    command = [*GML_RUN, "--simulate", "h100", PY, "-c", RANKS]
    with TerminalRun(command, 24, 80, env, tmp_path) as view:
        view.wait_for("of 80 GiB held")
        view.wait_for("fullest of 8")
        for _ in range(40):
            view.pump()
        before, begin = processor_seconds(view.pid), time.monotonic()
        shown = len(view.raw)
        while time.monotonic() - begin < 6:
            view.pump(0.2)
        share = (processor_seconds(view.pid) - before) / (time.monotonic() - begin)
        assert view.raw.count(b"steps/s", shown) >= 12, "it was painted, about four times a second"
        # The claim (below 1 % of a core) is a benchmark's; this catches a loop that does not rest.
        assert share < 0.05, f"{100 * share:.2f} % of a core"


MEASURE = """
import resource, subprocess, sys
done = subprocess.run(sys.argv[1:], stdout=subprocess.PIPE)
sys.stdout.write(done.stdout.decode() + f"peak {resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss}")
sys.exit(done.returncode)
"""


def test_a_report_of_a_million_events_is_read_in_little_memory(tmp_path):
    compiler = shutil.which("cc") or shutil.which("gcc")
    assert compiler, "a C compiler is needed to build this project"
    program = tmp_path / "churn"
    subprocess.run([compiler, "-O2", "-o", program, PROGRAMS / "churn.c"], check=True)
    environ = run_environment()
    run = subprocess.run(
        [*GML_RUN, "-q", "--simulate", "h100", "-o", str(tmp_path / "run"), str(program), "500000"],
        env=environ, capture_output=True, text=True, timeout=300,
    )  # fmt: skip
    assert (run.returncode, run.stdout) == (0, "500000\n"), run.stderr
    size = sum(path.stat().st_size for path in (tmp_path / "run").rglob("*") if path.is_file())
    assert size < 2 * MIB, "a run directory stays small, however long the run"
    for words in (["--json"], ["--html", str(tmp_path / "page.html")], ["--md"], []):
        # Run by a small process: a child's ru_maxrss begins with what its parent held when it forked.
        report = [*GML_RUN, "report", str(tmp_path / "run"), *words]
        done = subprocess.run([sys.executable, "-c", MEASURE, *report], env=environ, capture_output=True, timeout=120)
        assert done.returncode == 0, done.stderr
        text, _, peak_kib = done.stdout.decode().rpartition("peak ")
        assert int(peak_kib) << 10 < 200 * MIB, words
        if words == ["--json"]:
            (device,) = json.loads(text)["processes"][0]["devices"]
            assert device["allocs"] == 500_000 and device["frees"] >= 499_900
