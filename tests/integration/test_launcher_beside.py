# SPDX-License-Identifier: Apache-2.0
"""gml-run stands beside the program: it holds nothing of it, and where it cannot stand there the program runs."""

import ctypes
import fcntl
import os
import select
import shutil
import signal
import subprocess
import sys

import pytest
from launcher import GML_RUN, PATIENCE, TerminalRun, wait_until

PY = sys.executable
QUIET = [*GML_RUN, "-q", "--simulate", "h100"]
MINE = (b"GML_", b"LD_PRELOAD=", b"TRITON_LIBCUDA_PATH=")


class TestDescriptors:
    @pytest.mark.parametrize(("number", "redirection"), [(0, "<&-"), (1, ">&-"), (9, "9>&-")])
    def test_what_the_program_closes_is_closed(self, env, tmp_path, number, redirection):
        """Whoever waits at the other end of a pipe, for its end or for a reader, waits for the program alone."""
        reader, writer = os.pipe()
        theirs, ours = (reader, writer) if number == 0 else (writer, reader)
        words = ["bash", "-c", f"exec {redirection}; until [ -e stop ]; do sleep 0.05; done"]
        process = subprocess.Popen(
            [*QUIET, *words], env=env, cwd=tmp_path, close_fds=False, stdin=theirs if number == 0 else None,
            preexec_fn=lambda: os.dup2(theirs, number) if number else None,
        )  # fmt: skip
        os.close(theirs)
        poll = select.poll()
        poll.register(ours, 0)
        gone = poll.poll(PATIENCE * 1000)
        ended = process.poll()
        (tmp_path / "stop").touch()
        assert process.wait(timeout=PATIENCE) == 0
        os.close(ours)
        assert gone and ended is None

    def test_a_file_for_figures_may_be_a_descriptor(self, env, tmp_path):
        with open(tmp_path / "figures", "wb") as figures:
            words = ["--status-file", f"/dev/fd/{figures.fileno()}", "true"]
            done = subprocess.run([*QUIET, *words], env=env, cwd=tmp_path, pass_fds=(figures.fileno(),))
        assert done.returncode == 0 and b"elapsed_s" in (tmp_path / "figures").read_bytes()


class TestInherited:
    def test_a_signal_to_the_programs_own_group_stays_in_it(self, env, tmp_path):
        """`kill 0` is the way of many scripts to end what they started; whoever runs them is not meant."""
        got = []
        previous = signal.signal(signal.SIGUSR2, lambda number, frame: got.append(number))
        try:
            words = ["sh", "-c", "trap 'exit 3' USR2; kill -USR2 0; sleep 60"]
            done = subprocess.run([*QUIET, *words], env=env, cwd=tmp_path, start_new_session=True, timeout=PATIENCE)
        finally:
            signal.signal(signal.SIGUSR2, previous)
        assert (done.returncode, got) == (3, [])

    def test_a_timer_that_was_set_before_is_the_programs(self, env, tmp_path):
        """As by `perl -e 'alarm 60; exec @ARGV' gml-run ...`, or by a shell's own limit of time."""
        code = "import signal; print(*signal.getitimer(signal.ITIMER_REAL))"
        done = subprocess.run(
            [*QUIET, PY, "-c", code], env=env, cwd=tmp_path, capture_output=True,
            preexec_fn=lambda: signal.setitimer(signal.ITIMER_REAL, 10_000, 5),
        )  # fmt: skip
        left, interval = map(float, done.stdout.split())
        assert 5_000 < left <= 10_000 and interval == 5

    def test_a_lock_that_was_taken_before_is_kept(self, env, tmp_path):
        """One by fcntl belongs to the process that became gml-run, and ends with the first descriptor it closes."""
        reader, writer = os.pipe()
        with open(tmp_path / "lock", "w") as lock:
            process = subprocess.Popen(
                [*QUIET, "bash", "-c", f"exec {writer}>&-; until [ -e stop ]; do sleep 0.05; done"],
                env=env, cwd=tmp_path, pass_fds=(lock.fileno(), writer),
                preexec_fn=lambda: fcntl.lockf(lock, fcntl.LOCK_EX),
            )  # fmt: skip
            os.close(writer)
            assert os.read(reader, 1) == b""  # gml-run has let go of what it was started with
            os.close(reader)
            with pytest.raises(BlockingIOError):
                fcntl.lockf(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            (tmp_path / "stop").touch()
            assert process.wait(timeout=PATIENCE) == 0
            fcntl.lockf(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)


def test_a_program_linked_with_a_sanitizer_finds_it_first(gml, env, tmp_path):
    """AddressSanitizer ends a program in which another library was loaded before its own; this one only looks."""
    (tmp_path / "asan.c").write_text("int asan;\n")
    (tmp_path / "main.c").write_text(
        "#define _GNU_SOURCE\n#include <link.h>\n#include <stdio.h>\nextern int asan;\n"
        "static int number;\nstatic int look(struct dl_phdr_info *info, size_t size, void *data)\n"
        "{ if (number++ > 2) return 0; puts(info->dlpi_name); return asan + 0 * (int)size + 0 * (data != 0); }\n"
        "int main(void) { dl_iterate_phdr(look, 0); return asan; }\n"
    )
    library = tmp_path / "libasan.so.8"
    for words in (["-shared", "-fPIC", "-o", library, "asan.c"], ["-o", "main", "main.c", library]):
        subprocess.run([shutil.which("cc") or "gcc", *words], cwd=tmp_path, check=True)
    done = gml("-q", "--simulate", "h100", "./main", env={**env, "LD_LIBRARY_PATH": str(tmp_path)})
    loaded = [os.path.basename(line) for line in done.stdout.decode().split("\n")]
    assert "libasan.so.8" in loaded and not any("gml" in name for name in loaded), loaded


def test_the_environment_is_passed_byte_for_byte(env, tmp_path):
    """Also what is no variable, and a name that stands there twice: other systems leave such things behind."""
    given = [f"{name}={value}".encode() for name, value in env.items()]
    given += [b"=C:=C:\\somewhere", b"NEITHER", b"TWICE=1", b"TWICE=2", b"X=\xff\xfe\n", b"EMPTY=", b"a.b c=1"]

    def dump(name, prefix):
        words = [os.fsencode(word) for word in (*prefix, "cp", "/proc/self/environ", name)]
        child = os.fork()
        if child == 0:
            os.chdir(tmp_path)
            texts = [(ctypes.c_char_p * (len(those) + 1))(*those, None) for those in (words, given)]
            ctypes.CDLL(None).execve(os.fsencode(shutil.which(words[0])), *texts)
            os._exit(1)
        assert os.waitpid(child, 0)[1] == 0
        return (tmp_path / name).read_bytes().split(b"\0")[:-1]

    assert dump("plain", []) == given
    under = [entry for entry in dump("under", QUIET) if not entry.startswith(MINE)]
    assert under == [entry for entry in given if not entry.startswith(MINE)]


# gml-run, where something that it needs cannot be had.
WITHOUT = """
import errno, os, sys
from gml_run.cli import entry

def refuse(*_):
    raise OSError(errno.EAGAIN, os.strerror(errno.EAGAIN))

def refuse_after(number, function):
    def wrapped(*words):
        nonlocal number
        number -= 1
        return function(*words) if number >= 0 else refuse()
    return wrapped

{change}
entry.main()
"""


class TestNoRoom:
    @pytest.mark.parametrize("forks", [0, 1])
    def test_no_process_is_left(self, env, tmp_path, forks):
        code = WITHOUT.format(change=f"os.fork = refuse_after({forks}, os.fork)")
        command = [
            PY,
            "-c",
            code,
            "--simulate",
            "h100",
            "sh",
            "-c",
            "echo $0 $PPID; grep ^Sig /proc/self/status; exit 5",
        ]
        done = subprocess.run(command, env=env, cwd=tmp_path, capture_output=True, timeout=PATIENCE)
        found = done.stdout.split(b"\n")
        assert done.returncode == 5
        assert found[0] == b"sh %d" % os.getpid()  # it took our place
        without = subprocess.run(command[command.index("sh") :], env=env, capture_output=True, timeout=PATIENCE)
        same = (b"SigBlk", b"SigIgn")
        assert [line for line in found if line.startswith(same)] == [
            line for line in without.stdout.split(b"\n") if line.startswith(same)
        ]
        assert done.stderr.splitlines()[-1].startswith(b"gml-run: cannot stay beside the command (Resource temp")

    def test_no_descriptor_is_left(self, env, tmp_path):
        code = WITHOUT.format(change="import gml_run.cli.session; os.pipe2 = refuse")
        done = subprocess.run(
            [PY, "-c", code, "-q", "--simulate", "h100", "nowhere/at/all"], env=env, cwd=tmp_path, capture_output=True
        )
        assert done.returncode == 127
        done = subprocess.run(
            [PY, "-c", code, "-q", "--simulate", "h100", "sh", "-c", "exit 6"], env=env, cwd=tmp_path
        )
        assert done.returncode == 6

    def test_no_pseudo_terminal_is_left(self, env, tmp_path):
        code = WITHOUT.format(change="os.openpty = refuse")
        command = [PY, "-c", code, "--simulate", "h100", "sh", "-c", "tty >t; exit 5"]
        with TerminalRun(command, env=env, cwd=tmp_path) as run:
            assert run.finish() == 5
        assert (tmp_path / "t").read_text().startswith("/dev/")


def test_the_programs_modules_are_not_ours(gml, env, tmp_path):
    theirs = tmp_path / "theirs"
    theirs.mkdir()
    for name in ("select", "struct", "signal", "ctypes", "json", "rich", "typer"):
        (theirs / f"{name}.py").write_text("raise ImportError('not meant for gml-run')\n")
    python_path = {**env, "PYTHONPATH": f"{theirs}:{env['PYTHONPATH']}"}
    for words, cwd in (
        (["sh", "-c", "echo $PYTHONPATH"], tmp_path),
        (["--observe", "-qo", "run", "sh", "-c", ""], theirs),
    ):
        done = gml("--simulate", "h100", *words, env=python_path, cwd=cwd)
        assert done.returncode == 0, done.stderr
    assert wait_until(lambda: (theirs / "run" / "report.json").exists(), 0)
