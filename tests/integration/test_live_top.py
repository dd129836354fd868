# SPDX-License-Identifier: Apache-2.0
"""Watching a run from another terminal."""

import json
import subprocess
import sys

import pytest
from launcher import GML_RUN, PROGRAMS, TerminalRun, wait_until

PY = sys.executable
FAKE = str(PROGRAMS / "fake_gpu.py")


@pytest.fixture
def running(env, tmp_path):
    process = subprocess.Popen(
        [*GML_RUN, "-q", "--simulate", "h100", "-o", "run", PY, FAKE, "30"],
        env=env,
        cwd=tmp_path,
        stdout=subprocess.DEVNULL,
    )
    assert wait_until(lambda: any((tmp_path / "run" / "telemetry").glob("*.gml")))
    yield process
    process.terminate()
    process.wait()


@pytest.mark.parametrize(("rows", "columns"), [(24, 80), (40, 120)])
def test_full_screen(running, env, tmp_path, rows, columns):
    with TerminalRun([*GML_RUN, "top", "run"], rows, columns, env, tmp_path) as view:
        view.wait_for("of 80 GiB held")
        view.wait_for("running")
        view.wait_for("requests by size" if rows > 24 else "memory in use over time")
        text = "\n".join(view.lines())
        for word in ("processes", "arena map", "memory in use over time", "waste:", "stitched"):
            assert word in text
        assert all(len(line) <= columns for line in view.lines())
        before = view.lines()[0]
        view.until(lambda: view.lines()[0] != before)
        view.send(b" ")
        view.send(b"?")
        view.send(b"q")
        assert view.finish() == 0
        assert view.raw.rstrip().endswith(b"\x1b[?1049l")


def test_it_leaves_the_run_alone(running, env, tmp_path):
    with TerminalRun([*GML_RUN, "top", "run"], env=env, cwd=tmp_path) as view:
        view.wait_for("of 80 GiB held")
        view.send(b"\x03")
        assert view.finish() == 0
    assert running.poll() is None


def test_once(running, gml):
    text = gml("top", "run", "--once").stdout.decode()
    assert "of 80 GiB held" in text and "running" in text and "\x1b" not in text
    state = json.loads(gml("top", "run", "--json").stdout)
    assert state["processes"][0]["devices"][0]["peak_reserved_bytes"] == 22 << 30


def test_a_run_that_has_ended(gml):
    gml("-q", "--simulate", "h100", "-o", "done", PY, FAKE, "1.2")
    text = gml("top", "done", "--once").stdout.decode()
    assert "ended" in text and "memory in use over time" in text and "█" in text


def test_without_a_terminal_it_says_what_to_use(gml):
    gml("-q", "--simulate", "h100", "-o", "done", "true")
    done = gml("top", "done")
    assert done.returncode == 125 and b"--once" in done.stderr
