# SPDX-License-Identifier: Apache-2.0
"""Where options come from: command line, GML_* variables, a file; and both parsers agree."""

import json
import os

import pytest

from gml_run.cli.fast import parse_run
from gml_run.cli.words import OURS

SHOW = ["sh", "-c", 'echo "$GML_GOAL $GML_LIMIT $GML_ALLOCATOR"']


def test_flags_win_over_variables_over_the_file(gml, env, tmp_path):
    (tmp_path / "gml.toml").write_text('simulate = "h100"\ngoal = "memory"\nlimit = "1G"\nquiet = true\n')
    assert gml(*SHOW).stdout.split()[:2] == [b"memory", str(1 << 30).encode()]
    assert gml(*SHOW).stderr == b""
    assert gml(*SHOW, env={**env, "GML_GOAL": "throughput"}).stdout.split()[0] == b"throughput"
    assert gml("--goal", "balanced", *SHOW, env={**env, "GML_GOAL": "throughput"}).stdout.split()[0] == b"balanced"
    # An abbreviation of two switches goes through the other parser.
    assert gml("-qo", "out", *SHOW).stdout.split()[:2] == [b"memory", str(1 << 30).encode()]


def test_the_table_of_a_project(gml, tmp_path):
    (tmp_path / "pyproject.toml").write_text(
        '[project]\nname = "x"\n[tool.gml]\nsimulate = "t4"\nmax-driver-time = 2\n'
    )
    assert gml("-q", "sh", "-c", "echo $GML_SIM_PROFILE $GML_MAX_DRIVER_TIME").stdout == b"t4 2\n"


@pytest.mark.parametrize("text", ["goal = [", 'colour = "red"', "goal = true", "quiet = 1", 'goal = "fast"'])
def test_a_bad_file_is_one_line(gml, tmp_path, text):
    (tmp_path / "gml.toml").write_text(text)
    for words in ((), ("-qo", "out")):  # the other parser, too
        done = gml(*words, "true")
        assert done.returncode == 125 and done.stderr.count(b"\n") == 1
        assert done.stderr.startswith(f"gml-run: {tmp_path / 'gml.toml'}: ".encode()), done.stderr


def test_files_that_are_not_for_us_change_nothing(gml, tmp_path):
    """As broken as they may be; and nobody waits for a pipe."""
    os.mkfifo(tmp_path / "gml.toml")
    for text in (b"[tool.other\n", b"[tool.gmlx\n", b"tool = 1 # tool.gml\n", b"\xff\xfe", b'x = """\n'):
        (tmp_path / "pyproject.toml").write_bytes(text)
        done = gml("-q", "--simulate", "h100", "echo", "ran")
        assert (done.returncode, done.stdout, done.stderr) == (0, b"ran\n", b"")
    (tmp_path / "pyproject.toml").write_text("x = [\n[tool.gml]\n")
    assert gml("true").returncode == 125


def test_what_another_allocator_does_not_obey_is_said(gml):
    words = ("--simulate", "h100", "--limit", "1G", "--release-idle", "5")
    other = gml(*words, "--allocator", "native", "true")
    assert b"--limit and --release-idle have no effect with --allocator native: only vms obeys\n" in other.stderr
    assert b"no effect" not in gml(*words, "true").stderr


@pytest.mark.parametrize("words", [["-q", "--strict"], ["-q", "-o", "run"], ["-qo", "run"]])  # the last: by Typer
def test_bad_variables_and_contradictions_stop_before_the_program(gml, env, tmp_path, words):
    for variables, options, says in (
        ({"GML_SIM_TIME": "soon"}, [], "gml-run: GML_SIM_TIME: 'soon' cannot be read; write fast, "),
        ({"GML_STACKS": "yes"}, [], "gml-run: GML_STACKS: 'yes' is neither 1 nor 0; write "),
        ({"GML_LIMIT": "2X"}, [], "gml-run: GML_LIMIT: '2X' is not a size; write "),
        ({"GML_LIMIT": "2X"}, ["--limit", "2Y"], "gml-run: --limit: '2Y' is not a size; write "),
        ({}, ["--observe", "--allocator", "vms"], "gml-run: --observe and --allocator vms contradict each other; "),
        ({}, ["--limit", ""], "gml-run: --limit: its value is empty; is a variable "),
        ({}, ["--step="], "gml-run: --step: its value is empty; is a variable "),
        ({}, ["--metrics", "99999"], "gml-run: --metrics 99999: is a number, no file; give a file; "),
    ):
        done = gml("--simulate", "h100", *options, *words, "touch", "ran", env={**env, **variables})
        assert (done.returncode, done.stderr.count(b"\n")) == (125, 1), done.stderr
        assert done.stderr.decode().startswith(says)
    assert not (tmp_path / "ran").exists() and not (tmp_path / "run").exists()


def test_checked_values_reach_the_program(gml, env):
    show = ("sh", "-c", 'echo "$GML_SIM_MEMORY $GML_STACKS"')
    done = gml("--simulate", "h100", *show, env={**env, "GML_SIM_MEMORY": "2 GiB", "GML_STAKCS": "1"})
    assert done.stdout.decode().split() == [str(2 << 30)]
    assert b"gml-run: GML_STAKCS is no variable of gml-run and does nothing: GML_STACKS is one\n" in done.stderr
    assert gml("-q", "--simulate", "h100", *show, env={**env, "GML_STACKS": "1"}).stdout.split() == [b"1"]


def test_only_the_first_rank_of_a_machine_tells(gml, env, tmp_path):
    first = gml("--simulate", "h100", "true", env={**env, "RANK": "8", "LOCAL_RANK": "0"})
    second = gml("--simulate", "h100", "true", env={**env, "RANK": "9", "LOCAL_RANK": "1"})
    assert b"gml-run" in first.stderr and second.stderr == b""
    names = [json.loads(path.read_text())["run"]["id"] for path in (tmp_path / "gml-runs").glob("2*/report.json")]
    assert len(names) == 2 and {name.split("-")[-2] for name in names} == {"r8", "r9"}


@pytest.mark.parametrize(
    ("words", "options", "command"),
    [
        (["-q", "ls", "-q"], {"quiet": True}, ["ls", "-q"]),
        (["--goal=memory", "--limit", "2G", "--", "-x"], {"goal": "memory", "limit": "2G"}, ["-x"]),
        (
            ["--observe", "-o", "d", "report.py", "--", "y"],
            {"observe": True, "output": "d"},
            ["report.py", "--", "y"],
        ),
        (["--", "report"], {}, ["report"]),
        (["-"], {}, ["-"]),
    ],
)
def test_the_fast_parser(words, options, command, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    values, found = parse_run(words, {}, OURS)
    assert found == command
    plain, _ = parse_run(["x"], {}, OURS)
    assert values == {**plain, **options}


@pytest.mark.parametrize(
    "words",
    [[], ["--help"], ["--version", "x"], ["report"], ["top"], ["--nope", "x"], ["-oDIR", "x"], ["--limit"], ["--"]],
)
def test_what_the_fast_parser_leaves_to_typer(words, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert parse_run(words, {}, OURS) is None


@pytest.mark.parametrize("live", ["dock", "screen"])
def test_a_view_that_was_asked_for_and_cannot_be_is_told(gml, live):
    done = gml("--simulate", "h100", "--live", live, "true")
    assert (
        f"gml-run: --live {live}: not possible here, it needs a terminal of 12 rows and 40 columns"
        in done.stderr.decode()
    )
    assert b"--live" not in gml("-q", "--simulate", "h100", "--live", live, "true").stderr
    assert b"--live" not in gml("--simulate", "h100", "true").stderr
