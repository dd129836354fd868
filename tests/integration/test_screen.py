# SPDX-License-Identifier: Apache-2.0
"""The full screen: `--live screen` and `gml-run top`, on terminals of several kinds and sizes."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
from launcher import GML_RUN, PROGRAMS, TerminalRun, wait_until

PY = sys.executable
FAKE = str(PROGRAMS / "fake_gpu.py")
LAUNCH = [*GML_RUN, "--simulate", "h100", "--live", "screen", "-o", "run"]

# What each view must say, whatever the size.
VIEWS = {
    "1": ("waste:", "processes", "arena map", "memory in use over time"),
    "2": ("memory in use over time, the most between two looks", "22 GiB", "headroom"),
    "3": ("by cause", "without stitching", "with stitching", "free but scattered", "waste over time"),
    "4": ("placements", "extended", "stitched", "a request", "p99", "budget:", "--max-driver-time 1 %"),
    "5": ("arena map", "live", "idle, aliased", "mappings"),
    "6": ("held", "pid ", "log", "memory was short, tried again, 3 times", "out of memory: 5 GiB was asked for"),
    "?": ("held", "stitched", "choose a view"),
}


def show(view, key, last_line=""):
    view.send(key.encode())
    view.until(lambda: all(word in "\n".join(view.lines()) for word in VIEWS[key]) and last_line in view.lines()[-1])
    return view.lines()


@pytest.fixture
def running(env, tmp_path):
    command = [*GML_RUN, "-q", "--simulate", "h100", "-o", "run", PY, FAKE, "60"]
    process = subprocess.Popen(command, env=env, cwd=tmp_path, stdout=subprocess.DEVNULL)
    assert wait_until(lambda: any((tmp_path / "run" / "telemetry").glob("*.gml")))
    yield process
    process.terminate()
    process.wait()


@pytest.mark.parametrize(("rows", "columns"), [(24, 80), (40, 120)])
def test_views_of_a_run_that_is_launched(env, tmp_path, rows, columns):
    with TerminalRun([*LAUNCH, PY, FAKE, "60"], rows, columns, env, tmp_path) as view:
        view.wait_for("of 80 GiB held")
        for key in VIEWS:
            lines = show(view, key, "? help  q dock")
            assert len(lines) == rows and all(len(line) < columns for line in lines)
            assert re.match(r"── gml-run · vms.* running · .*\d m?s ──$", lines[0])
            view.wait_for(r"── output(?:.*\n)+step ")
        view.send(b"?1")
        view.send(b"\x03")
        assert view.finish() == 130


@pytest.mark.parametrize(("rows", "columns"), [(24, 80), (40, 120)])
def test_views_of_a_run_elsewhere(running, env, tmp_path, rows, columns):
    with TerminalRun([*GML_RUN, "top", "run"], rows, columns, env, tmp_path) as view:
        view.wait_for("of 80 GiB held")
        for key in VIEWS:
            lines = show(view, key, "q quit")
            assert all(len(line) < columns for line in lines)
        view.send(b"\x1b[A")  # an arrow key is no key of ours
        view.send(b"q")
        assert view.finish() == 0
    assert running.poll() is None


def test_pause_stops_painting_and_nothing_else(running, env, tmp_path):
    with TerminalRun([*GML_RUN, "top", "run"], env=env, cwd=tmp_path) as view:
        view.wait_for("of 80 GiB held")
        view.send(b" ")
        view.wait_for("paused")
        view.until(lambda: "space go on" in view.lines()[-1])
        first = view.lines()
        for _ in range(20):
            view.pump()
        assert view.lines() == first
        view.send(b" ")
        view.wait_for("running")
        view.until(lambda: view.lines() != first)
        view.send(b"q")
        assert view.finish() == 0


def test_the_table_of_ranks_first(running, env, tmp_path):
    with TerminalRun([*GML_RUN, "top", "run", "--ranks"], env=env, cwd=tmp_path) as view:
        view.wait_for(r"p50 +OOM")
        view.send(b"q")
        assert view.finish() == 0


@pytest.mark.parametrize("command", [["top", "run"], None])
def test_it_follows_the_size_of_the_window(running, env, tmp_path, command):
    words = [*GML_RUN, *command] if command else [*GML_RUN, "--simulate", "h100", "--live", "screen", PY, FAKE, "60"]
    with TerminalRun(words, 24, 80, env, tmp_path) as view:
        view.wait_for("of 80 GiB held")
        for rows, columns in ((40, 120), (14, 60), (30, 100)):
            view.resize(rows, columns)
            view.until(lambda: "? help" in view.lines()[-1])
            assert all(len(line) < columns for line in view.lines())


def test_sixteen_colours_and_none(running, env, tmp_path):
    kinds = {"xterm": r"\x1b\[(?:\d+;)*3[0-7]", "xterm-256color": r"\x1b\[(?:\d+;)*3[0-7]"}
    for kind, colour in kinds.items():
        with TerminalRun([*GML_RUN, "top", "run"], env={**env, "TERM": kind}, cwd=tmp_path) as view:
            view.wait_for("of 80 GiB held")
            show(view, "5")
            text = view.raw.decode()
            # The terminal's own sixteen colours: they fit a light and a dark background.
            assert re.search(colour, text) and not re.search(r"[34]8;[25];", text)
            assert "▀" in text
    with TerminalRun([*GML_RUN, "top", "run"], env={**env, "NO_COLOR": "1"}, cwd=tmp_path) as view:
        view.wait_for("of 80 GiB held")
        show(view, "5")
        text = view.raw.decode()
        assert not re.search(r"\x1b\[(?:\d+;)*[34][0-7]m", text) and "▀" not in text and "▓" in text


@pytest.mark.parametrize("command", [["top", "run"], None])
def test_ascii(running, env, tmp_path, command):
    words = [*GML_RUN, *command] if command else [*GML_RUN, "--simulate", "h100", "--live", "screen", PY, FAKE, "60"]
    plain = {**env, "LANG": "C", "PYTHONUTF8": "1"}
    with TerminalRun(words, env=plain, cwd=tmp_path) as view:
        view.wait_for("of 80 GiB held")
        for key in "12345":
            show(view, key)
        assert max(view.raw) < 128


PRINTS = "import sys, time; [print('line', n) for n in range({count})]; time.sleep({pause}); print('the end')"


def test_no_line_is_lost_or_doubled(env, tmp_path):
    program = PRINTS.format(count=10_000, pause=1)
    with TerminalRun([*LAUNCH, PY, "-c", program], env=env, cwd=tmp_path) as view:
        view.wait_for("line 9999")
        assert view.finish() == 0
        lines = [line for line in view.history() if line.startswith("line ")]
        assert lines == [f"line {number}" for number in range(10_000)]
        assert "the end" in view.history()


def test_left_for_the_dock_and_back_to_the_programs_keys(env, tmp_path):
    program = f"import os; os.spawnl(0, {PY!r}, 'python', {FAKE!r}, '60'); print('you said', input('? '))"
    with TerminalRun([*LAUNCH, PY, "-c", program], env=env, cwd=tmp_path) as view:
        view.wait_for("of 80 GiB held")
        view.send(b"q")
        view.until(lambda: "── output" not in "\n".join(view.lines()))
        view.wait_for(r"── gml-run .*\n.*held\n.*peak 22 GiB\n waste:.*\n stitched.*$")
        view.wait_for(r"step 20")
        (tmp_path / "stop").touch()
        view.send(b"12 quick ?\n")
        view.wait_for("you said 12 quick ?")
        assert view.finish() == 0
        steps = [line for line in view.history() if line.startswith("step ")]
        assert steps == [f"step {number}" for number in range(2, len(steps) + 2)] and len(steps) > 15


def test_other_keys_are_the_programs(env, tmp_path):
    program = "import sys; print('you said', sys.stdin.readline())"
    with TerminalRun([*LAUNCH, PY, "-c", program], env=env, cwd=tmp_path) as view:
        view.wait_for("── output")
        view.send(b"yes\n")
        assert view.finish() == 0
        assert "you said yes" in view.history()


ASKS = {
    "line": "line = input('what? ')",
    "password": "import getpass; line = getpass.getpass('what? ')",
    "debugger": "line = ''; import pdb; pdb.set_trace()",
    "thread": "import threading, sys; line = ''\ndef ask(): global line; print('what? ', end='', flush=True); "
    "line = sys.stdin.readline().strip()\nthread = threading.Thread(target=ask); thread.start(); thread.join()",
    "below": "import subprocess; line = subprocess.run(['sh', '-c', 'printf \"what? \" >&2; read x; echo $x'], "
    "stdout=subprocess.PIPE, text=True).stdout.strip()",
}


@pytest.mark.parametrize("how", ASKS)
def test_all_keys_are_the_programs_while_it_waits_for_them(env, tmp_path, how):
    (tmp_path / "asks.py").write_text(f"{ASKS[how]}\nopen('said', 'w').write(line)\n")
    with TerminalRun([*LAUNCH, PY, "asks.py"], env=env, cwd=tmp_path) as view:
        view.wait_for(r"\(Pdb\)" if how == "debugger" else r"what\?")
        assert wait_until(lambda: waits_for_input(view.pid))
        if how == "debugger":
            view.send(b"line = '12q ?'\n")
            view.wait_for(r"\(Pdb\) line = '12q \?'\n\(Pdb\)")
            assert wait_until(lambda: waits_for_input(view.pid))
            view.send(b"c\n")
        else:
            view.send(b"12q ?\n")
        assert view.finish() == 0
    assert (tmp_path / "said").read_text() == "12q ?"


def waits_for_input(launcher):
    """True when the program is in a call that waits for a descriptor: read, poll, select, pselect6."""
    (monitor,) = (pid for pid in children(launcher) if name(pid) == "gml-run-monitor")
    waiting = children(monitor)
    while waiting:
        pid = waiting.pop()
        calls = [file.read_text().split() for file in Path(f"/proc/{pid}/task").glob("*/syscall")]
        if any(call[0] in ("0", "7", "23", "270") for call in calls):
            return True
        waiting += children(pid)
    return False


def children(pid):
    return [int(word) for file in Path(f"/proc/{pid}/task").glob("*/children") for word in file.read_text().split()]


def name(pid):
    return Path(f"/proc/{pid}/comm").read_text().strip()


def test_a_program_that_takes_the_whole_screen_gets_it(env, tmp_path):
    program = r"""
import os, time
print('before', flush=True)
time.sleep(0.5)
print('\x1b[?1049h\x1b[H\x1b[2Jmine', os.get_terminal_size().lines, flush=True)
while os.get_terminal_size().lines < 24:
    time.sleep(0.1)
print('mine', os.get_terminal_size().lines, flush=True)
while not os.path.exists('stop'):
    time.sleep(0.1)
print('\x1b[?1049l', end='', flush=True)
print('after')
"""
    with TerminalRun([*LAUNCH, PY, "-c", program], env=env, cwd=tmp_path) as view:
        view.wait_for("── output")
        view.wait_for("mine 24")
        assert not any("gml-run" in line for line in view.lines())
        (tmp_path / "stop").touch()
        assert view.finish() == 0
        assert "after" in "".join(view.history()) and "before" in view.history()
        assert not any("mine" in line for line in view.lines())


ASKS_THE_TERMINAL = r"""
import os, tty
tty.setraw(0)
os.write(1, b"\x1b[6n")
answer = b""
while not answer.endswith(b"R"):
    answer += os.read(0, 1)
open("answer", "wb").write(answer)
"""


def test_a_program_that_asks_the_terminal_gets_its_answer(env, tmp_path):
    with TerminalRun([*LAUNCH, PY, "-c", ASKS_THE_TERMINAL], env=env, cwd=tmp_path) as view:
        view.until(lambda: b"\x1b[6n" in view.raw)
        view.send(b"\x1b[5;1R")
        assert view.finish() == 0
    assert (tmp_path / "answer").read_bytes() == b"\x1b[5;1R"


def test_the_programs_terminal_is_as_high_as_the_pane(env, tmp_path):
    program = "import os, time; time.sleep(0.5); print('size', *os.get_terminal_size()); time.sleep(0.5)"
    with TerminalRun([*LAUNCH, PY, "-c", program], 30, 100, env, tmp_path) as view:
        view.wait_for("size 100 10")
        assert view.finish() == 0


STEPS = "import time\nfor n in range(12):\n    print(f'\\x1b[1mstep\\x1b[0m {n}', flush=True); time.sleep(0.1)"


@pytest.mark.parametrize("live", ["dock", "screen"])
def test_steps_by_lines(env, tmp_path, live):
    options = ["--simulate", "h100", "--live", live, "-o", "run", "--step", r"^step \d+"]
    with TerminalRun([*GML_RUN, *options, PY, "-c", STEPS], env=env, cwd=tmp_path) as view:
        assert view.finish() == 0
    steps = json.loads((tmp_path / "run" / "report.json").read_text())["steps"]
    assert steps["count"] == 12 and "step" in steps["source"]
    assert 0.05 < steps["p50_s"] <= steps["p95_s"]


def test_steps_by_lines_where_there_are_none_to_see(gml):
    done = gml("--simulate", "h100", "--step", "loss", "true")
    assert b"--step: the program's output does not pass through gml-run here" in done.stderr
    assert b"--step" not in gml("-q", "--simulate", "h100", "--step", "loss", "true").stderr
    wrong = gml("--step", "(", "true")
    assert wrong.returncode == 125 and b"no regular expression" in wrong.stderr


def test_the_dock_shows_steps_a_second(env, tmp_path):
    with TerminalRun([*GML_RUN, "--simulate", "h100", PY, FAKE, "60"], env=env, cwd=tmp_path) as view:
        view.wait_for(r"── gml-run .* 10 steps/s · \d")
