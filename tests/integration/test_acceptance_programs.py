# SPDX-License-Identifier: Apache-2.0
"""Everyday programs under gml-run, with the real libraries: the same output, status and files as without."""

import os
import shutil
import subprocess
import sys

import pytest
from runs import GML_RUN, environment, run

from gml_run.native import driver_present

SCRIPTS = {
    "bash": """
        set -u
        words=(one "two words" three)
        printf '%s\\n' "${words[@]}" | sort -r | tee sorted.txt
        (exit 3) || echo "status $?"
        diff <(seq 3) <(seq 4) > changes.txt; echo "differ $?"
        trap 'echo leaving' EXIT
        exit 6
    """,
    "git": """
        export GIT_CONFIG_GLOBAL=/dev/null GIT_AUTHOR_DATE='@1700000000 +0000' GIT_COMMITTER_DATE='@1700000000 +0000'
        git init -q -b main tree && cd tree
        git config user.name Ada && git config user.email ada@example.org
        for number in 1 2 3; do echo $number >> file; git add file; git commit -q -m "change $number"; done
        git log --format='%H %s' --stat
        git -c gc.auto=0 gc -q && git fsck --strict && git clone -q . ../copy && git -C ../copy rev-parse HEAD
    """,
    "gcc": """
        printf '#include <stdio.h>\\nint main(void) { printf("%%d\\\\n", 6 * 7); return 5; }\\n' > answer.c
        gcc -O2 -Wall -flto -o answer answer.c && ./answer; echo "status $?"
        gcc -c -o wrong.o -x c - <<< 'int f( {' 2> errors.txt; echo "status $?"; wc -l < errors.txt
        gcc -E answer.c | cksum
    """,
    "python": f"""
        {sys.executable} -c 'import multiprocessing as m; print(m.get_context("fork").Pool(2).map(abs, [-1, -2]))'
        {sys.executable} -m venv --without-pip env
        env/bin/python -c 'import sys; print(sys.prefix != sys.base_prefix)'
        env -i /bin/echo empty environment
    """,
}


def outcome(prefix, script, folder):
    """Status and output of a script, and the files that it leaves."""
    folder.mkdir()
    done = subprocess.run(
        [*prefix, "bash", "-c", script], cwd=folder, env=environment(), capture_output=True, timeout=120
    )
    left = sorted(
        os.path.relpath(os.path.join(place, name), folder)
        for place, _, names in os.walk(folder)
        for name in names
        if not place.endswith("/objects/pack")  # names of packs hold more than their contents
    )
    return done.returncode, done.stdout, done.stderr, left


@pytest.mark.parametrize("name", SCRIPTS)
def test_behaves_as_without(name, tmp_path):
    assert name == "python" or shutil.which(name), f"{name} is not installed"
    plain = outcome([], SCRIPTS[name], tmp_path / "plain")
    run = [*GML_RUN, "-q", "--simulate", "h100", "-o", str(tmp_path / "run")]
    assert outcome(run, SCRIPTS[name], tmp_path / "under") == plain
    assert plain[1]
    assert not any((tmp_path / "run" / "telemetry").glob("*"))  # nobody called CUDA


def test_nothing_is_simulated_unless_asked(tmp_path):
    program = [sys.executable, "-c", "import torch; print(torch.cuda.is_available(), torch.cuda.device_count())"]
    plain = subprocess.run(program, env=environment(), capture_output=True, check=True).stdout
    under = run([], program, tmp_path / "run")
    assert (under.code, under.stdout) == (0, plain)
    assert under.report["run"]["simulated"] is False
    assert "computed values mean nothing" not in under.stderr
    if not driver_present():
        assert plain == b"False 0\n"
        first, _, _ = under.stderr.partition("\n")
        assert first.startswith("gml-run: no NVIDIA driver here") and "as without gml-run" in first
