# SPDX-License-Identifier: Apache-2.0
"""Every example of every --help works as it stands, and every command that prints data prints it as JSON."""

import json
import os
import re
import shutil
import subprocess
import sys

import pytest
from launcher import GML_RUN, PROGRAMS, ROOT, TerminalRun, environment

from gml_run.cli.app import _COMMANDS
from gml_run.cli.run import run
from gml_run.cli.words import COMMANDS

EXAMPLES = {
    name: re.findall(r"^\s*((?:eval \"\$\()?gml-run (?!report shows).*)$", function.__doc__, re.MULTILINE)
    for name, function in {"": run, **_COMMANDS}.items()
}
CASES = [(name, example) for name, examples in EXAMPLES.items() for example in examples]
DATA = COMMANDS
FAKE = PROGRAMS / "fake_gpu.py"


@pytest.fixture(scope="module")
def template(tmp_path_factory, libraries):
    """A folder as the examples assume it: a script and two runs; and the commands on PATH."""
    folder, tools = tmp_path_factory.mktemp("examples"), tmp_path_factory.mktemp("bin")
    scripts = {
        "gml-run": f'exec {sys.executable} -m gml_run "$@"',
        "python": f'exec {sys.executable} "$@"',
        "torchrun": 'shift 2; exec python "$@"',
    }
    for name, line in scripts.items():
        (tools / name).write_text(f"#!/bin/sh\n{line}\n")
        (tools / name).chmod(0o755)
    environ = environment(libraries, PATH=f"{tools}:{os.environ['PATH']}")
    script = f"""import os, runpy, sys
sys.argv = [{str(FAKE)!r}, '0.3']
if 'GML_RUN_DIR' in os.environ:  # not without a driver
    runpy.run_path({str(FAKE)!r}, run_name='__main__')
"""
    (folder / "train.py").write_text(script)
    for name in ("gml-runs/20260101-101500-train-1f2e", "gml-runs/main"):
        done = subprocess.run(
            ["gml-run", "-q", "--simulate", "h100", "-o", name, "python", "train.py"],
            env=environ, cwd=folder, executable=str(tools / "gml-run"), timeout=60, capture_output=True,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
    os.symlink("main", folder / "gml-runs" / "latest")
    return folder, environ


@pytest.fixture
def shell(template, tmp_path):
    """The environment of the examples, with a copy of their folder in tmp_path."""
    folder, environ = template
    shutil.copytree(folder, tmp_path, symlinks=True, dirs_exist_ok=True)
    return environ


def run_in(shell, folder, command):
    return subprocess.run(
        ["bash", "-c", command], env=shell, cwd=folder, capture_output=True, timeout=120, stdin=subprocess.DEVNULL
    )


def test_every_command_has_examples():
    assert {name for name, examples in EXAMPLES.items() if examples} == {"", *COMMANDS}


@pytest.mark.parametrize(("name", "example"), CASES, ids=[example for _, example in CASES])
def test_example(shell, tmp_path, name, example):
    if example == "gml-run top":  # the only one that wants a terminal
        with TerminalRun([*GML_RUN, "top"], env=shell, cwd=tmp_path) as view:
            view.wait_for("of 80 GiB held")
            view.send(b"q")
            assert view.finish() == 0
        return
    if "print-env" in example and "--simulate" not in example:  # observing needs a driver
        example = example.replace("print-env", "print-env --simulate h100")
    done = run_in(shell, tmp_path, example)
    text = done.stderr.decode()
    # doctor says by its code that this machine lacks a GPU; a rule of diff may be true.
    allowed = {"doctor": (0, 1), "diff": (0, 1)}.get(name, (0,))
    assert done.returncode in allowed, text
    assert "Traceback" not in text and "internal error" not in text
    assert done.stdout or done.stderr or name == "print-env"
    if "--json" in example:
        json.loads(done.stdout)


@pytest.mark.parametrize("name", DATA)
def test_data_comes_as_json(name):
    command = [sys.executable, "-m", "gml_run", name, "--help"]
    shown = subprocess.run(command, capture_output=True, text=True, check=True, cwd=ROOT).stdout
    assert "--json" in shown


@pytest.mark.parametrize("kind", ["bash", "zsh", "fish"])
def test_completion_of_commands_and_options(shell, tmp_path, kind):
    script = run_in(shell, tmp_path, f"_GML_RUN_COMPLETE=source_{kind} gml-run")
    assert script.returncode == 0 and b"gml" in script.stdout
    if kind != "bash":
        return
    asks = "COMP_WORDS='gml-run {0}' COMP_CWORD=1 _GML_RUN_COMPLETE=complete_bash gml-run"
    assert run_in(shell, tmp_path, asks.format("rep")).stdout.split() == [b"report"]
    assert b"--simulate" in run_in(shell, tmp_path, asks.format("--si")).stdout


def test_completion_is_installed(shell, tmp_path):
    home = tmp_path / "home"
    home.mkdir()
    done = run_in({**shell, "HOME": str(home)}, tmp_path, "gml-run --install-completion; exit $?")
    assert done.returncode == 0, done.stdout + done.stderr
    script = "source ~/.bashrc; complete -p gml-run"
    assert b"_gml_run_completion gml-run" in run_in({**shell, "HOME": str(home)}, tmp_path, script).stdout
