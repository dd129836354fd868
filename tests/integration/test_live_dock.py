# SPDX-License-Identifier: Apache-2.0
"""The dock on a real pseudo terminal: our lines below, the child's output intact above."""

import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from launcher import GML_RUN, PATIENCE, PROGRAMS, TerminalRun

PY = sys.executable
DOCKED = [*GML_RUN, "--simulate", "h100"]
FAKE = str(PROGRAMS / "fake_gpu.py")
# Shares figures as the preloaded library would, and goes on with the code of the test once the dock is there: it
# has taken lines of the terminal. The code waits for what is to happen, too, and not for a time; `stopped` is so
# when the test has made the file "stop".
UNDER_DOCK = """
import os, sys, time

def until(condition, seconds=5 * {patience}):
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            sys.exit("the test's program waited in vain")
        time.sleep(0.02)

def lines():
    return os.get_terminal_size(2).lines

def stopped():
    return os.path.exists("stop")

sys.argv = ["fake_gpu.py", "0"]
sys.path.insert(0, {folder!r})
import fake_gpu
whole = lines()
fake_gpu.share_once()
until(lambda: lines() != whole)
"""


def program(tmp_path, code):
    """A script whose GPU memory is on show while it runs `code`."""
    script = tmp_path / "program.py"
    script.write_text(UNDER_DOCK.format(folder=str(PROGRAMS), patience=PATIENCE) + code)
    return [*DOCKED, PY, str(script)]


def dock_top(run):
    """Row of the dock's first line, or None."""
    for number, line in enumerate(run.lines()):
        if line.startswith("── gml-run"):
            return number
    return None


class TestPicture:
    @pytest.mark.parametrize(("rows", "columns"), [(24, 80), (40, 120)])
    def test_lines(self, env, tmp_path, rows, columns):
        title = "── gml-run · vms · balanced · simulated h100"
        with TerminalRun([*DOCKED, PY, FAKE, "60"], rows, columns, env, tmp_path) as run:
            run.wait_for(title + r" [▁▂▃▄▅▆▇█]+ ─+ 10 steps/s · [0-9.]+ m?s ──")
            run.wait_for(r"step 12")
            top = dock_top(run)
            assert top == rows - 5
            lines = run.lines()
            assert "of 80 GiB held" in lines[top + 1] and "█" in lines[top + 1] and "│" in lines[top + 1]
            assert "peak 22 GiB" in lines[top + 2] or "│ 22 GiB" in lines[top + 2]
            assert lines[top + 3].startswith(" waste: rounding 8 MiB")
            assert lines[top + 4].startswith(" stitched ")
            assert all(len(line) < columns for line in lines[top:])
            assert any(re.match(r"step \d+", line) for line in lines[:top])
            (tmp_path / "stop").touch()
            assert run.finish() == 0
            assert dock_top(run) is None
            assert not any("of 80 GiB held" in line and "█" in line for line in run.history())

    def test_no_colours_when_asked(self, env, tmp_path):
        with TerminalRun([*DOCKED, PY, FAKE, "60"], env={**env, "NO_COLOR": "1"}, cwd=tmp_path) as run:
            run.wait_for("of 80 GiB held")
            assert b"\x1b[32m" not in run.raw
        with TerminalRun([*DOCKED, PY, FAKE, "60"], env=env, cwd=tmp_path) as run:
            run.wait_for("of 80 GiB held")
            assert b"\x1b[32m" in run.raw

    def test_ascii_where_the_locale_says_so(self, env, tmp_path):
        with TerminalRun([*DOCKED, PY, FAKE, "60"], env={**env, "LANG": "C", "LC_ALL": "C"}, cwd=tmp_path) as run:
            run.wait_for("of 80 GiB held")
            assert run.raw.isascii()

    def test_a_program_without_gpu_memory_sees_the_whole_terminal(self, env, tmp_path):
        with TerminalRun([*DOCKED, "sh", "-c", "sleep 1; stty size"], env=env, cwd=tmp_path) as run:
            assert run.finish() == 0
            assert "24 80" in run.lines()
            assert b"\x1b[1;19r" not in run.raw


class TestWhereThereIsNone:
    @pytest.mark.parametrize(
        ("options", "variables"),
        [
            (["-q"], {}),
            (["--live", "off"], {}),
            (["--live", "line"], {}),
            ([], {"TERM": "dumb"}),
            ([], {"JPY_PARENT_PID": "1"}),
        ],
    )
    def test_not_wanted(self, env, tmp_path, options, variables):
        command = [*DOCKED, *options, PY, FAKE, "1.5"]
        with TerminalRun(command, env={**env, **variables}, cwd=tmp_path) as run:
            assert run.finish() == 0
            assert b"held" not in run.raw.split(b"gml-run \xc2\xb7")[0] and b"\x1b[1;19r" not in run.raw

    def test_low_terminal(self, env, tmp_path):
        with TerminalRun([*DOCKED, PY, FAKE, "1.5"], rows=10, env=env, cwd=tmp_path) as run:
            assert run.finish() == 0
            assert b"r\x1b8" not in run.raw

    def test_pipes_get_nothing_but_the_programs_output(self, env, tmp_path):
        done = subprocess.run([*DOCKED, PY, FAKE, "1"], env=env, cwd=tmp_path, capture_output=True, text=True)
        assert re.fullmatch(r"(step \d+\n)+", done.stdout)
        assert "\x1b" not in done.stderr


class TestChildsOutput:
    def test_ten_thousand_lines(self, env, tmp_path):
        code = "for n in range(10_000): print('line', n, 'x' * (n % 60))\n"
        with TerminalRun(program(tmp_path, code), env=env, cwd=tmp_path) as run:
            assert run.finish(60) == 0
            found = [line for line in run.history() if line.startswith("line ")]
            assert found == [f"line {n} {'x' * (n % 60)}".rstrip() for n in range(10_000)]

    def test_a_terminal_that_takes_nothing_for_a_while_loses_nothing(self, env, tmp_path):
        code = "for n in range(850): print('line', n, 'x' * 60)\n"
        with TerminalRun(program(tmp_path, code), env=env, cwd=tmp_path) as run:
            time.sleep(5)  # the program has ended long before
            assert run.finish(60) == 0
            assert [line.split()[1] for line in run.history() if line.startswith("line ")] == [*map(str, range(850))]

    def test_progress_bar(self, env, tmp_path):
        code = (
            "from tqdm import tqdm\n"
            "for n in tqdm(range(30), ncols=60): time.sleep(0.05), n == 20 and until(stopped)\n"
        )
        with TerminalRun(program(tmp_path, code), env=env, cwd=tmp_path) as run:
            run.wait_for(r"\d+%\|.*/30")
            run.until(lambda: dock_top(run) == 19)
            (tmp_path / "stop").touch()
            assert run.finish() == 0
            bars = [line for line in run.history() if "/30" in line]
            assert len(bars) == 1 and bars[0].startswith("100%")

    def test_input(self, env, tmp_path):
        code = "name = input('name? ')\nprint('hello', name)\n"
        with TerminalRun(program(tmp_path, code), env=env, cwd=tmp_path) as run:
            run.wait_for(r"name\?")
            run.wait_for("── gml-run")
            run.send(b"Bo\x7fb\n")
            run.wait_for("hello Bb")
            assert run.finish() == 0
            assert "name? Bb" in run.history()

    def test_wide_characters_and_half_sequences(self, env, tmp_path):
        code = (
            "import os\n"
            "for n in range(8):\n"
            "    os.write(1, '漢'.encode()[:2]); time.sleep(0.3)\n"
            "    os.write(1, '漢'.encode()[2:] + b'\\x1b[3'); time.sleep(0.1)\n"
            "    os.write(1, b'1mred\\x1b[0m\\r\\n')\n"
        )
        with TerminalRun(program(tmp_path, code), env=env, cwd=tmp_path) as run:
            assert run.finish() == 0
            assert sum(line.replace(" ", "") == "漢red" for line in run.history()) == 8

    def test_clearing_the_screen_leaves_our_lines(self, env, tmp_path):
        code = "print('\\x1b[2J\\x1b[Hclean', flush=True)\nuntil(stopped)\n"
        with TerminalRun(program(tmp_path, code), env=env, cwd=tmp_path) as run:
            run.wait_for("^clean")
            run.until(lambda: dock_top(run) == 19)

    def test_the_last_words_before_a_crash(self, env, tmp_path):
        code = "print('x' * 5000 + 'LAST', flush=True)\nimport os; os.kill(os.getpid(), 9)\n"
        with TerminalRun(program(tmp_path, code), env=env, cwd=tmp_path) as run:
            assert run.finish() == 137
            assert any("LAST" in line for line in run.history())
            assert any("killed by SIGKILL" in line for line in run.history())


class TestTerminal:
    def test_size_is_that_above_our_lines_and_follows_the_window(self, env, tmp_path):
        code = (
            "import os, signal\n"
            "show = lambda *_: print('size', *os.get_terminal_size(), flush=True)\n"
            "signal.signal(signal.SIGWINCH, show); show()\n"
            "until(stopped)\n"
        )
        with TerminalRun(program(tmp_path, code), env=env, cwd=tmp_path) as run:
            run.wait_for("size 80 19")
            run.resize(30, 100)
            run.wait_for("size 100 25")
            run.until(lambda: dock_top(run) == 25)
            run.resize(11, 100)
            run.wait_for("size 100 11")
            run.until(lambda: dock_top(run) is None)

    def test_full_screen_programs_get_the_whole_terminal(self, env, tmp_path):
        code = (
            "print('\\x1b[?1049h', end='', flush=True); until(lambda: lines() == whole); time.sleep(0.5)\n"
            "print('inside', lines(), flush=True); time.sleep(0.5)\n"
            "print('\\x1b[?1049l', end='', flush=True); until(lambda: lines() < whole)\n"
            "print('back', lines(), flush=True); until(stopped)\n"
        )
        with TerminalRun(program(tmp_path, code), env=env, cwd=tmp_path) as run:
            run.wait_for("inside 24")
            position = run.raw.index(b"inside")
            assert b"GiB held" not in run.raw[run.raw.index(b"\x1b[?1049h") : position]
            run.wait_for("back 19")
            run.until(lambda: dock_top(run) == 19)
            (tmp_path / "stop").touch()
            assert run.finish() == 0

    @pytest.mark.parametrize("end", ["sys.exit(0)", "os.kill(os.getpid(), 9)", "os.kill(os.getpid(), 11)"])
    def test_modes_are_restored(self, env, tmp_path, end):
        code = f"import os, sys, tty\ntty.setraw(0)\n{end}\n"
        command = " ".join(f"'{word}'" for word in program(tmp_path, code))
        shell = ["sh", "-c", f"stty -g > before; {command}; stty -g > after; stty size; echo END"]
        with TerminalRun(shell, env=env, cwd=tmp_path) as run:
            run.wait_for("END")
            run.finish()
        assert (tmp_path / "before").read_text() == (tmp_path / "after").read_text()
        assert "24 80" in run.lines()

    def test_control_c(self, env, tmp_path):
        code = (
            "import signal, sys\nseen = []\n"
            "signal.signal(signal.SIGINT, lambda *_: (seen.append(1), print('INT', len(seen), flush=True)))\n"
            "print('ready', flush=True)\n"
            "while len(seen) < 2: time.sleep(0.02)\n"
            "time.sleep(0.3); print('seen', len(seen)); sys.exit(5)\n"
        )
        with TerminalRun(program(tmp_path, code), env=env, cwd=tmp_path) as run:
            run.wait_for("ready")
            run.send(b"\x03")
            run.wait_for("INT 1")
            run.send(b"\x03")
            assert run.finish() == 5
            assert any("seen 2" in line for line in run.history())

    def test_stop_and_continue_from_a_shell(self, env, tmp_path):
        code = "print('ready', flush=True)\nuntil(stopped)\nprint('done', flush=True)\n"
        command = " ".join(f"'{word}'" for word in program(tmp_path, code))
        with TerminalRun(["bash", "--norc", "-i"], env={**env, "PS1": "prompt> "}, cwd=tmp_path) as run:
            run.wait_for("prompt>")
            run.send(command.encode() + b"\n")
            run.wait_for("ready")
            run.wait_for("── gml-run")
            run.send(b"\x1a")
            run.wait_for("Stopped")
            assert dock_top(run) is None
            run.send(b"echo in-2-shell\n")
            run.wait_for("in-2-shell")
            run.send(b"fg\n")
            run.until(lambda: dock_top(run) == 19)
            (tmp_path / "stop").touch()
            run.wait_for("done")
            run.wait_for(r"prompt>$")
            run.send(b"echo code $?\n")
            run.wait_for("code 0")

    def test_terminated_from_outside(self, env, tmp_path):
        code = "print('ready', flush=True)\nuntil(stopped)\n"
        with TerminalRun(program(tmp_path, code), env=env, cwd=tmp_path) as run:
            run.wait_for("ready")
            time.sleep(0.3)
            os.kill(run.pid, signal.SIGTERM)
            assert run.finish() == 143
            assert dock_top(run) is None

    def test_the_terminal_is_given_back_when_the_launcher_is_killed(self, env, tmp_path):
        code = "print('ready', flush=True)\nuntil(stopped)\n"
        command = " ".join(f"'{word}'" for word in program(tmp_path, code))
        given_back = 'for _ in {1..600}; do stty -g > after; cmp -s before after && break; sleep 0.1; done'
        shell = ["bash", "-c", f"stty -g > before; {command}; {given_back}; echo END; read"]
        with TerminalRun(shell, env=env, cwd=tmp_path) as run:
            run.wait_for("ready")
            run.wait_for("── gml-run")
            (launcher,) = [int(pid) for pid in Path(f"/proc/{run.pid}/task/{run.pid}/children").read_text().split()]
            os.kill(launcher, signal.SIGKILL)
            run.wait_for("END")
            run.until(lambda: run.raw.rindex(b"\x1b[r") > run.raw.rindex(b"\x1b[1;19r"))
        assert (tmp_path / "before").read_text() == (tmp_path / "after").read_text()

    @pytest.mark.parametrize("to_group", [False, True])
    def test_signals_from_outside_come_once(self, env, tmp_path, to_group):
        code = (
            "import signal, sys\nseen = []\n"
            "signal.signal(signal.SIGUSR1, lambda *_: seen.append(1))\n"
            "print('ready', flush=True)\n"
            "while not seen: time.sleep(0.02)\n"
            "time.sleep(0.4); print('seen', len(seen)); sys.exit(5)\n"
        )
        with TerminalRun(program(tmp_path, code), env=env, cwd=tmp_path) as run:
            run.wait_for("ready")
            time.sleep(0.2)
            (os.killpg if to_group else os.kill)(run.pid, signal.SIGUSR1)
            assert run.finish() == 5
            assert "seen 1" in run.history()


class TestRegionsOfTheChild:
    def test_a_bar_below_a_scroll_region(self, env, tmp_path):
        """As package managers draw it: lines scroll in a region, a bar stands still on the last row."""
        code = (
            "import os, shutil\n"
            "rows = shutil.get_terminal_size().lines\n"
            "out = lambda text: os.write(1, text.encode())\n"
            "out('\\n' * 3 + f'\\x1b7\\x1b[1;{rows - 1}r\\x1b8\\x1b[1A')\n"
            "for n in range(30):\n"
            "    out(f'line {n}\\r\\n')\n"
            "    out(f'\\x1b7\\x1b[{rows};1Hbar {n}\\x1b8')\n"
            "    time.sleep(0.03), n == 15 and until(lambda: os.path.exists('seen'))\n"
            "out(f'\\x1b7\\x1b[r\\x1b[{rows};1H\\x1b[K\\x1b8')\n"
            "until(stopped)\n"
        )
        with TerminalRun(program(tmp_path, code), env=env, cwd=tmp_path) as run:
            run.wait_for("bar 15")
            run.until(lambda: dock_top(run) is None)
            (tmp_path / "seen").touch()
            run.wait_for("line 29")
            run.until(lambda: dock_top(run) == 19)  # and back again
            found = [line for line in run.history() if line.startswith("line ")]
            assert found == [f"line {n}" for n in range(30)]
            (tmp_path / "stop").touch()
            assert run.finish() == 0

    def test_what_clears_resizes_and_is_no_text(self, env, tmp_path):
        """Clearing, other bytes than UTF-8, half sequences and a change of size, all at once."""
        code = (
            "import os\n"
            "for n in range(40):\n"
            "    os.write(1, b'\\x1b[2J\\x1b[H' if n % 7 == 0 else b'\\xff\\xfe\\x1b[')\n"
            "    time.sleep(0.05)\n"
            "    os.write(1, b'32m' + '漢字'.encode() + b' %d\\x1b[0m\\r\\n' % n)\n"
            "until(stopped)\n"
        )
        with TerminalRun(program(tmp_path, code), env=env, cwd=tmp_path) as run:
            run.wait_for("── gml-run")
            run.resize(30, 100)
            run.wait_for(r"字 \d")
            run.resize(20, 70)
            run.wait_for(r"字 39")
            # Half a sequence that stood before our lines is ended by them on terminals, not on this screen.
            run.resize(22, 70)
            run.wait_for("no GPU memory call for")  # long lines at the right shorten the title, and leave the name
            run.until(lambda: dock_top(run) == 17)
            assert all("漢" not in line for line in run.lines()[17:])
            (tmp_path / "stop").touch()
            assert run.finish() == 0
