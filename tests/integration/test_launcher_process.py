# SPDX-License-Identifier: Apache-2.0
"""A program under gml-run finds and leaves behind what it would without it."""

import json
import os
import resource
import shlex
import signal
import subprocess
import sys
import time

import pytest
from launcher import GML_RUN, PATIENCE, PROGRAMS, environment, is_running, shell_code, wait_until

PY = sys.executable
SIMULATE = ("--simulate", "h100")
COUNT = """
import os, signal, sys, time
seen = []
for number in (signal.SIGTERM, signal.SIGUSR1, signal.SIGINT):
    signal.signal(number, lambda n, f: seen.append(n))
print("READY", os.getpid(), flush=True)
deadline = time.monotonic() + float(sys.argv[1])
while time.monotonic() < deadline and not seen:
    time.sleep(0.01)
time.sleep(0.4)
print("SEEN", len(seen), flush=True)
sys.exit(42)
"""


def begin(env, cwd, *words, **kw):
    process = subprocess.Popen(
        [*GML_RUN, *words], env=env, cwd=cwd, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **kw
    )
    line = process.stdout.readline().split()
    assert line and line[0] == "READY", (line, process.stderr.read())
    return process, int(line[1])


class TestEnding:
    @pytest.mark.parametrize("code", [0, 1, 3, 125, 255])
    def test_exit_codes_are_mirrored(self, gml, code):
        assert gml("-q", *SIMULATE, "sh", "-c", f"exit {code}").returncode == code

    @pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGSEGV, signal.SIGPIPE, 40])
    def test_death_by_signal_is_raised_again(self, gml, number):
        done = gml("-q", *SIMULATE, "bash", "-c", f"kill -{int(number)} $$")
        assert done.returncode == -number

    def test_no_core_of_our_own(self, env, tmp_path):
        def allow_cores():
            resource.setrlimit(resource.RLIMIT_CORE, (1 << 30, resource.getrlimit(resource.RLIMIT_CORE)[1]))

        if resource.getrlimit(resource.RLIMIT_CORE)[1] == 0:
            pytest.fail("this machine forbids core dumps, so the test could not fail")
        code = "import resource; resource.setrlimit(resource.RLIMIT_CORE, (0, 0)); import os; os.abort()"
        subprocess.run([*GML_RUN, "-q", *SIMULATE, PY, "-c", code], env=env, cwd=tmp_path, preexec_fn=allow_cores)
        assert [path.name for path in tmp_path.iterdir() if "core" in path.name] == []

    @pytest.mark.parametrize(
        ("words", "code"),
        [
            (["no-such-command-here"], 127),
            (["/etc/passwd"], 126),
            (["--goal", "fast", "true"], 125),
            (["--simulate", "h900", "true"], 125),
            (["-o", "/proc/nowhere", "true"], 125),
            (["--no-such-option", "true"], 125),
            (["fit"], 125),
            ([], 125),
        ],
    )
    def test_own_failures_are_one_line(self, gml, words, code):
        done = gml(*words)
        assert done.returncode == code
        assert done.stdout == b""
        assert done.stderr.startswith(b"gml-run: ") and done.stderr.count(b"\n") == 1

    def test_a_missing_interpreter(self, gml, tmp_path):
        script = tmp_path / "script"
        script.write_text("#!/no/such/interpreter\n")
        script.chmod(0o755)
        done = gml("-q", *SIMULATE, str(script))
        assert done.returncode == 127 and b"interpreter" in done.stderr

    def test_a_script_without_a_first_line_runs_as_in_a_shell(self, gml, tmp_path):
        script = tmp_path / "script"
        script.write_text('echo "hello $1"; exit 4\n')
        script.chmod(0o755)
        done = gml("-q", *SIMULATE, "./script", "you")
        assert (done.returncode, done.stdout) == (4, b"hello you\n")

    def test_a_reserved_word_runs_as_a_program_after_two_dashes(self, gml, tmp_path, env):
        (tmp_path / "top").write_text("#!/bin/sh\necho mine\n")
        (tmp_path / "top").chmod(0o755)
        done = gml("-q", *SIMULATE, "--", "top", env={**env, "PATH": f"{tmp_path}:{env['PATH']}"})
        assert (done.returncode, done.stdout) == (0, b"mine\n")


class TestWhatTheProgramFinds:
    DUMP = """
import json, os, resource, signal
status = dict(line.rstrip("\\n").split(":\\t", 1) for line in open("/proc/self/status") if ":\\t" in line)
ours = ("LD_PRELOAD", "TRITON_LIBCUDA_PATH", "_")
print(json.dumps({
    "signals": {name: status[name] for name in ("SigIgn", "SigBlk", "SigCgt")},
    "descriptors": sorted(int(name) for name in os.listdir("/proc/self/fd"))[:-1],
    "environ": {k: v for k, v in os.environ.items() if not k.startswith("GML_") and k not in ours},
    "limits": [resource.getrlimit(number) for number in range(16)],
    "umask": os.umask(0), "cwd": os.getcwd(), "group": os.getpgrp() == os.getpgid(os.getppid()),
    "nice": os.nice(0),
}))
"""

    def found(self, prefix, env, cwd, **kw):
        done = subprocess.run([*prefix, PY, "-c", self.DUMP], env=env, cwd=cwd, capture_output=True, **kw)
        return json.loads(done.stdout)

    @pytest.mark.parametrize(
        "before",
        [
            lambda: None,
            lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN),
            lambda: signal.signal(signal.SIGINT, signal.SIG_IGN),
            lambda: signal.signal(signal.SIGCHLD, signal.SIG_IGN),
            lambda: signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM, signal.SIGUSR2}),
            lambda: os.umask(0o77),
            lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (300, 300)),
            lambda: os.dup2(1, 7),
        ],
        ids=["plain", "nohup", "background", "chld", "blocked", "umask", "limits", "descriptor"],
    )
    def test_process_state(self, env, tmp_path, before):
        kw = {"preexec_fn": before, "stdin": subprocess.DEVNULL, "close_fds": False}
        plain = self.found([], env, tmp_path, **kw)
        under = self.found([*GML_RUN, "-q", *SIMULATE], env, tmp_path, **kw)
        assert under == plain

    def test_the_interpreters_own_locale_does_not_leak(self, libraries, tmp_path):
        env = environment(libraries)
        for name in [name for name in env if name.startswith(("LC_", "LANG"))]:
            del env[name]
        dump = ["env", "-0"]
        plain = subprocess.run(dump, env=env, capture_output=True).stdout
        under = subprocess.run([*GML_RUN, "-q", *SIMULATE, *dump], env=env, cwd=tmp_path, capture_output=True).stdout
        mine = (b"GML_", b"LD_PRELOAD=", b"TRITON_LIBCUDA_PATH=")
        assert sorted(entry for entry in under.split(b"\0") if not entry.startswith(mine)) == sorted(
            entry for entry in plain.split(b"\0") if not entry.startswith(mine)
        )

    @pytest.mark.parametrize("closed", [(0,), (1,), (2,), (0, 1), (0, 1, 2)])
    def test_closed_descriptors_stay_closed(self, env, tmp_path, closed):
        code = "import os, sys; open(sys.argv[1], 'w').write(' '.join(sorted(os.listdir('/proc/self/fd'))))"
        before = lambda: [os.close(number) for number in closed]  # noqa: E731
        for prefix, name in (([*GML_RUN, "-q", *SIMULATE], "under"), ([], "plain")):
            subprocess.run([*prefix, PY, "-c", code, name], env=env, cwd=tmp_path, preexec_fn=before, check=True)
        assert (tmp_path / "under").read_text() == (tmp_path / "plain").read_text()

    def test_libraries_and_variables(self, gml, libraries):
        done = gml(*SIMULATE, "--goal", "memory", "--limit", "2G", "sh", "-c", "env | grep -e ^GML_ -e ^LD_PRELOAD")
        found = dict(line.split("=", 1) for line in done.stdout.decode().splitlines())
        assert found["GML_GOAL"] == "memory" and found["GML_LIMIT"] == str(2 << 30)
        names = [os.path.basename(path) for path in found["LD_PRELOAD"].split(":")]
        assert names == ["libgml.so", "libgmlsim.so", "libcuda.so.1", "libnvidia-ml.so.1"]
        assert os.path.isdir(found["GML_RUN_DIR"])

    def test_without_a_driver_the_command_runs_as_without_us(self, gml):
        done = gml("sh", "-c", 'echo "[$LD_PRELOAD]"; exit 7')
        assert (done.returncode, done.stdout) == (7, b"[]\n")
        notice = done.stderr.split(b"\n")[0]
        assert notice.startswith(b"gml-run: no NVIDIA driver here") and b"as without gml-run" in notice


class TestOutput:
    def test_bytes_pass_unchanged_and_apart(self, gml):
        data = bytes(range(256)) * 50
        code = "import os, sys; d = sys.stdin.buffer.read(); os.write(1, d); os.write(2, b'child error')"
        done = gml("-q", *SIMULATE, PY, "-c", code, input=data)
        assert done.stdout == data and done.stderr == b"child error"

    def test_a_child_that_leaves_a_daemon_does_not_hold_us(self, env, tmp_path):
        with open(tmp_path / "out", "wb") as out:
            words = ["sh", "-c", "sleep 600 & echo $! > daemon; exit 0"]
            done = subprocess.run(
                [*GML_RUN, "-q", *SIMULATE, *words], env=env, cwd=tmp_path, stdout=out, stderr=out, timeout=PATIENCE
            )
        os.kill(int((tmp_path / "daemon").read_text()), signal.SIGKILL)  # it is there still
        assert done.returncode == 0

    def test_a_full_stderr_does_not_stop_the_summary_of_a_quiet_run(self, env, tmp_path):
        reader, writer = os.pipe()
        os.set_blocking(writer, False)
        with pytest.raises(BlockingIOError):
            while True:
                os.write(writer, bytes(4096))
        os.set_blocking(writer, True)
        done = subprocess.run(
            [*GML_RUN, "-q", *SIMULATE, "true"],
            env=env,
            cwd=tmp_path,
            stderr=writer,
            stdout=subprocess.PIPE,
            timeout=PATIENCE,
        )
        os.close(reader)
        os.close(writer)
        assert done.returncode == 0

    def test_a_closed_stderr_changes_nothing(self, env, tmp_path):
        done = subprocess.run(
            [*GML_RUN, *SIMULATE, "sh", "-c", "exit 6"], env=env, cwd=tmp_path, preexec_fn=lambda: os.close(2)
        )
        assert done.returncode == 6


class TestSignals:
    @pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGUSR1, signal.SIGINT])
    def test_sent_to_us_alone_it_reaches_the_program_once(self, env, tmp_path, number):
        process, _ = begin(env, tmp_path, "-q", *SIMULATE, PY, "-c", COUNT, "60")
        process.send_signal(number)
        out, _ = process.communicate(timeout=PATIENCE)
        assert out == "SEEN 1\n" and process.returncode == 42

    @pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGUSR1, signal.SIGINT])
    def test_sent_to_the_group_it_reaches_the_program_once(self, env, tmp_path, number):
        process, _ = begin(env, tmp_path, "-q", *SIMULATE, PY, "-c", COUNT, "60", start_new_session=True)
        os.killpg(process.pid, number)
        out, _ = process.communicate(timeout=PATIENCE)
        assert out == "SEEN 1\n" and process.returncode == 42

    @pytest.mark.parametrize("group", [False, True], ids=["alone", "group"])
    def test_a_shells_background_job_may_handle_what_it_was_started_to_ignore(self, env, tmp_path, group):
        process, _ = begin(
            env, tmp_path, "-q", *SIMULATE, PY, "-c", COUNT, "60", start_new_session=True,
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_IGN),
        )  # fmt: skip
        (os.killpg if group else os.kill)(process.pid, signal.SIGINT)
        out, _ = process.communicate(timeout=PATIENCE)
        assert out == "SEEN 1\n" and process.returncode == 42

    def test_what_the_program_ignores_too_ends_nobody(self, env, tmp_path):
        process = subprocess.Popen(
            [*GML_RUN, "-q", *SIMULATE, "sleep", "2"], env=env, cwd=tmp_path,
            preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN),
        )  # fmt: skip
        time.sleep(1)
        process.send_signal(signal.SIGHUP)
        assert process.wait(timeout=PATIENCE) == 0

    def test_sent_to_each_process_as_batch_systems_do(self, env, tmp_path):
        process, _ = begin(env, tmp_path, "-q", *SIMULATE, PY, "-c", COUNT, "60", start_new_session=True)
        for pid in members_of(process.pid):
            os.kill(pid, signal.SIGUSR1)
        out, _ = process.communicate(timeout=PATIENCE)
        assert out == "SEEN 1\n" and process.returncode == 42

    def test_timeout_ends_the_program(self, env, tmp_path):
        done = subprocess.run(
            ["timeout", "1", *GML_RUN, "-q", *SIMULATE, "sleep", "30"], env=env, cwd=tmp_path, timeout=PATIENCE
        )
        assert done.returncode == 124

    def test_a_program_that_signals_its_parent_reaches_ours(self, env, tmp_path):
        got = []
        previous = signal.signal(signal.SIGUSR2, lambda number, frame: got.append(number))
        try:
            code = "import os, signal, time; os.kill(os.getppid(), signal.SIGUSR2); time.sleep(0.3)"
            command = [*GML_RUN, "-q", *SIMULATE, PY, "-c", code]
            done = subprocess.run(command, env=env, cwd=tmp_path, timeout=PATIENCE)
        finally:
            signal.signal(signal.SIGUSR2, previous)
        assert got == [signal.SIGUSR2] and done.returncode == 0

    def test_killed_we_take_the_program_along_and_leave_nobody(self, env, tmp_path):
        process, child = begin(env, tmp_path, "-q", *SIMULATE, PY, "-c", COUNT, "60", start_new_session=True)
        members = [pid for pid in members_of(process.pid) if pid != process.pid]
        assert child in members
        process.kill()
        process.wait()
        assert wait_until(lambda: not any(is_running(pid) for pid in members), 30)

    def test_nobody_is_left_after_an_ordinary_end(self, env, tmp_path):
        process, _ = begin(env, tmp_path, "-q", *SIMULATE, PY, "-c", COUNT, "0", start_new_session=True)
        process.communicate(timeout=PATIENCE)
        assert [pid for pid in members_of(process.pid) if is_running(pid)] == []


def _group(pid):
    try:
        return os.getpgid(pid)
    except OSError:
        return None


def members_of(group):
    """The processes of a process group."""
    return [int(name) for name in os.listdir("/proc") if name.isdigit() and _group(int(name)) == group]


class TestNesting:
    def test_a_run_inside_a_run(self, gml):
        inner = [*GML_RUN, "-q", *SIMULATE, "sh", "-c", 'echo "$LD_PRELOAD"; exit 9']
        done = gml("-q", *SIMULATE, *inner)
        names = [os.path.basename(path) for path in done.stdout.decode().strip().split(":")]
        assert done.returncode == 9
        assert names == ["libgml.so", "libgmlsim.so", "libcuda.so.1", "libnvidia-ml.so.1"]


class TestCost:
    """What starting takes is measured by `make bench-startup`; what it imports decides it."""

    def imported(self, env, *words):
        done = subprocess.run(
            [PY, "-X", "importtime", *words], env=env, capture_output=True, cwd=str(PROGRAMS), text=True
        )
        assert done.returncode == 0, done.stderr
        return {line.rsplit("|", 1)[-1].strip() for line in done.stderr.splitlines() if line.count("|") == 2}

    def test_the_launch_path_imports_little(self, env, tmp_path):
        before = self.imported(env, "-c", "pass")
        added = self.imported(env, "-m", "gml_run", "-q", *SIMULATE, "-o", str(tmp_path / "run"), "true") - before
        added -= {"org", "org.python", "org.python.core"}  # the module copy looks for Jython
        assert {name.split(".")[0] for name in added} - sys.stdlib_module_names == {"gml_run"}
        assert added.isdisjoint({"subprocess", "asyncio", "argparse", "importlib.metadata", "multiprocessing"})


def test_shell_code_reads_signals():
    assert shell_code(-9) == 137 and shell_code(3) == 3


def test_an_empty_command_is_told_as_such(gml):
    done = gml("-q", "")
    assert done.returncode == 127
    assert done.stderr == b"gml-run: the command is empty; is a variable in it not set?\n"


@pytest.mark.parametrize("who", ["before", "the program"])
def test_a_working_directory_that_is_gone(gml, env, tmp_path, who):
    """Removed before the run, or by the program at its end: the report is made all the same."""
    folder = tmp_path / "gone"
    folder.mkdir()
    remove = f"rm -r {folder}"
    run = f"{shlex.join(GML_RUN)} --simulate h100"
    script = f"{remove}; {run} true" if who == "before" else f"{run} sh -c '{remove}'"
    done = subprocess.run(
        ["sh", "-c", script], cwd=folder, env={**env, "TMPDIR": str(tmp_path)}, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert "could not be made" not in done.stderr and " · exit 0\n" in done.stderr, done.stderr
