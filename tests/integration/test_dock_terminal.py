# SPDX-License-Identifier: Apache-2.0
"""The terminal that a program has under the dock is as good as the user's own, from before it starts."""

import fcntl
import os
import pty
import sys
import termios
from pathlib import Path

from launcher import GML_RUN, TerminalRun, wait_until

TIOCGPTN = 0x80045430  # the number of a pseudo terminal; Python has no name for it
DOCKED = [*GML_RUN, "--simulate", "h100"]


def under_shell(tmp_path, script, env):
    """A shell on a terminal; `$GML` in its script is gml-run with the dock."""
    words = " ".join(f"'{word}'" for word in DOCKED)
    return TerminalRun(["bash", "-c", script.replace("$GML", words)], env=env, cwd=tmp_path)


class TestBefore:
    def test_lines_and_ends_of_input_that_were_typed_early(self, env, tmp_path):
        """The kernel has taken ^D out of what was typed while lines were its own: it is an end, and no byte."""
        with TerminalRun(["sh", "-c", "sleep 1; exec \"$@\"", "sh", *DOCKED, "sh", "-c", "cat >a; cat >b; cat >c"],
                         env=env, cwd=tmp_path) as run:  # fmt: skip
            run.send(b"one\ntwx\x7fo\n\x04no line\x04\x04three\n\x04")
            assert run.finish() == 0
        assert [(tmp_path / name).read_text() for name in "abc"] == ["one\ntwo\n", "no line", "three\n"]


class TestInputFromElsewhere:
    ASK = "cat >data; echo ready; read line </dev/tty; echo $line >answer"

    def test_the_program_may_still_ask_at_its_terminal(self, env, tmp_path):
        with under_shell(tmp_path, f"$GML sh -c '{self.ASK}; tty <&1 >where' </dev/null; tty <&1 >mine", env) as run:
            run.wait_for("ready")
            run.send(b"yes\n")
            assert run.finish() == 0
        assert (tmp_path / "answer").read_text() == "yes\n"
        assert (tmp_path / "where").read_text() != (tmp_path / "mine").read_text()  # it was under the dock

    def test_in_a_pipeline_the_terminal_stays_with_all_of_it(self, env, tmp_path):
        with under_shell(tmp_path, f"sh -c 'read x; echo $x' | $GML sh -c '{self.ASK}'", env) as run:
            run.send(b"first\n")
            run.wait_for("ready")
            run.send(b"second\n")
            assert run.finish() == 0
        assert [(tmp_path / name).read_text() for name in ("data", "answer")] == ["first\n", "second\n"]


def test_a_program_that_signals_its_parent_reaches_ours(env, tmp_path):
    script = "trap 'touch got' USR1; trap 'touch late' RTMAX; $GML sh -c 'kill -USR1 $PPID; kill -64 $PPID'; true"
    with under_shell(tmp_path, script, env) as run:
        assert run.finish() == 0
    assert (tmp_path / "got").exists() and (tmp_path / "late").exists()


class TestAfter:
    def test_what_the_program_left_behind_goes_on_writing(self, env, tmp_path):
        """Nobody tells it that its terminal went away: it did not."""
        left = 'trap "touch hup" HUP; until [ -e go ]; do sleep 0.05; done; echo LATE; echo $? >status'
        script = f"$GML sh -c '({left}) & exit 3'; echo $? >code; until [ -s status ]; do sleep 0.05; done"
        with under_shell(tmp_path, script, env) as run:
            assert wait_until(lambda: run.pump() and (tmp_path / "code").exists())
            (tmp_path / "go").touch()
            run.wait_for("LATE")
            assert run.finish() == 0
        assert (tmp_path / "code").read_text() == "3\n"
        assert (tmp_path / "status").read_text() == "0\n" and not (tmp_path / "hup").exists()

    def test_nobody_stays_once_that_has_ended(self, env, tmp_path):
        with under_shell(
            tmp_path, "$GML sh -c '(until [ -e go ]; do sleep 0.05; done) & exit 0'; touch ended; cat", env
        ) as run:
            assert wait_until(lambda: run.pump() and (tmp_path / "ended").exists())
            assert wait_until(lambda: "gml-run-keeper" in names_on(run))
            (tmp_path / "go").touch()
            assert wait_until(lambda: "gml-run-keeper" not in names_on(run))

    def test_what_it_did_not_read_is_there_for_the_shell(self, env, tmp_path):
        script = "$GML sh -c 'touch up; until [ -e go ]; do sleep 0.05; done'; read -t 5 x; echo $x >got"
        with under_shell(tmp_path, script, env) as run:
            assert wait_until(lambda: run.pump() and (tmp_path / "up").exists())
            run.send(b"the next command\n")
            run.wait_for("the next command")  # the echo: it stands in the program's terminal
            (tmp_path / "go").touch()
            assert run.finish() == 0
        assert (tmp_path / "got").read_text() == ("the next command\n" if may_type() else "\n")


def names_on(run):
    """What the processes are called that have the test's terminal open."""
    number = int.from_bytes(fcntl.ioctl(run.master, TIOCGPTN, bytes(4)), sys.byteorder)
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            opened = [os.readlink(f"/proc/{pid}/fd/{name}") for name in os.listdir(f"/proc/{pid}/fd")]
            if f"/dev/pts/{number}" in opened:
                found.append(Path(f"/proc/{pid}/comm").read_text().strip())
        except OSError:
            continue
    return found


def may_type():
    """True where the kernel lets a process type into its own terminal: newer ones forbid it to most users."""
    pid, master = pty.fork()
    if pid == 0:
        try:
            fcntl.ioctl(0, termios.TIOCSTI, b"x")
            os._exit(0)
        finally:
            os._exit(1)
    allowed = os.waitpid(pid, 0)[1] == 0
    os.close(master)
    return allowed
