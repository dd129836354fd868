# SPDX-License-Identifier: Apache-2.0
"""Runs the real gml-run for tests: with pipes, or on a pseudo terminal whose screen can be read."""

from __future__ import annotations

import copy
import fcntl
import os
import pty
import re
import select
import shutil
import struct
import subprocess
import sys
import termios
import time
from pathlib import Path

import pyte

ROOT = Path(__file__).resolve().parents[2]
PROGRAMS = ROOT / "tests" / "programs"
GML_RUN = [sys.executable, "-m", "gml_run"]
# Seconds until what must happen is given up. It tells a hang from a busy machine, and says nothing about speed.
PATIENCE = 60.0


def make_libraries(folder: Path) -> Path:
    """Empty libraries under our names: the launcher's part is tested without the native one."""
    compiler = shutil.which("cc") or shutil.which("gcc")
    assert compiler, "a C compiler is needed to build this project"
    (folder / "sim").mkdir(parents=True)
    source = folder / "empty.c"
    source.write_text("extern int gml_test_nothing; int gml_test_nothing = 1;\n")
    for name in ("libgml.so", "sim/libgmlsim.so", "sim/libcuda.so.1", "sim/libnvidia-ml.so.1"):
        subprocess.run([compiler, "-shared", "-fPIC", "-o", folder / name, source], check=True)
    return folder


def environment(libraries: Path, **more: str) -> dict[str, str]:
    """The environment for gml-run under test."""
    environ = {name: value for name, value in os.environ.items() if not name.startswith("GML_")}
    environ.update(
        GML_LIB_DIR=str(libraries),
        PYTHONPATH=f"{ROOT}:{ROOT / 'tests' / 'support'}",
        PYTHONDONTWRITEBYTECODE="1",
        TERM="xterm-256color",
        LANG="C.UTF-8",
    )
    for name in ("NO_COLOR", "COLUMNS", "LINES"):  # the last two come from a parallel run of the tests
        environ.pop(name, None)
    return {**environ, **more}


def shell_code(returncode: int) -> int:
    """What a shell would show."""
    return 128 - returncode if returncode < 0 else returncode


def is_running(pid: int) -> bool:
    """True for a process that exists and is no zombie."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] not in "ZX"
    except OSError:
        return False


def wait_until(condition, seconds: float = PATIENCE) -> bool:
    """Polls; False when it did not become true in time."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if condition():
            return True
        time.sleep(0.02)
    return bool(condition())


class TwoScreens(pyte.HistoryScreen):
    """A terminal with an alternate screen, which pyte's own has not."""

    main = None

    def set_mode(self, *modes, **kwargs):
        super().set_mode(*modes, **kwargs)
        if 1049 in modes and kwargs.get("private") and self.main is None:
            self.main = (copy.deepcopy(dict(self.buffer)), copy.copy(self.cursor), self.margins)
            self.margins = None
            self.buffer.clear()

    def reset_mode(self, *modes, **kwargs):
        super().reset_mode(*modes, **kwargs)
        if 1049 in modes and kwargs.get("private") and self.main is not None:
            buffer, self.cursor, self.margins = self.main
            self.buffer.clear()
            self.buffer.update(buffer)
            self.dirty.update(range(self.lines))
            self.main = None


class TerminalRun:
    """A command as leader of a session on a pseudo terminal, with the screen that a user would see."""

    def __init__(self, command, rows=24, columns=80, env=None, cwd=None):
        self.screen = TwoScreens(columns, rows, history=50_000, ratio=0.1)
        self._stream = pyte.ByteStream(self.screen)
        self.raw = b""
        self.code: int | None = None
        self.pid, self.master = pty.fork()
        if self.pid == 0:
            try:
                if cwd is not None:
                    os.chdir(cwd)
                fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
                os.execvpe(command[0], [str(word) for word in command], env or os.environ)
            finally:
                os._exit(127)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.master >= 0:
            os.close(self.master)
        if self.code is None:
            try:
                os.kill(self.pid, 9)
                os.waitpid(self.pid, 0)
            except OSError:
                pass

    def pump(self, seconds=0.05) -> bool:
        """Reads what comes within the time; False at the end."""
        if not select.select([self.master], [], [], seconds)[0]:
            return True
        try:
            data = os.read(self.master, 65536)
        except OSError:
            return False
        self.raw += data
        self._stream.feed(data)
        return bool(data)

    def send(self, keys: bytes) -> None:
        """Types."""
        os.write(self.master, keys)

    def resize(self, rows: int, columns: int) -> None:
        """Changes the size of the window."""
        fcntl.ioctl(self.master, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
        self.screen.resize(rows, columns)

    def lines(self) -> list[str]:
        """The screen, without trailing blanks."""
        return [line.rstrip() for line in self.screen.display]

    def history(self) -> list[str]:
        """Everything that scrolled off the top, then the screen."""
        columns = range(self.screen.columns)
        above = ["".join(line[column].data for column in columns).rstrip() for line in self.screen.history.top]
        return above + self.lines()

    def wait_for(self, pattern: str, seconds: float = PATIENCE) -> re.Match[str]:
        """Until the screen shows the pattern."""
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            match = re.search(pattern, "\n".join(self.lines()))
            if match:
                return match
            if not self.pump():
                break
        match = re.search(pattern, "\n".join(self.lines()))
        assert match, f"{pattern!r} is not on the screen:\n" + "\n".join(self.lines())
        return match

    def until(self, condition, seconds: float = PATIENCE) -> None:
        """Until something is so on the screen: a look may come in the middle of a picture."""
        deadline = time.monotonic() + seconds
        while not condition():
            going = self.pump() and time.monotonic() < deadline
            assert going or condition(), "this is on the screen:\n" + "\n".join(self.lines())

    def finish(self, seconds: float = PATIENCE) -> int:
        """Until the command has ended; its code as a shell shows it."""
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            going = self.pump()
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                while self.pump(0.05) and select.select([self.master], [], [], 0.05)[0]:
                    pass
                self.code = shell_code(os.waitstatus_to_exitcode(status))
                return self.code
            if not going:
                time.sleep(0.02)
        raise AssertionError("does not end:\n" + "\n".join(self.lines()))
