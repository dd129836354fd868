# SPDX-License-Identifier: Apache-2.0
"""Variables and options with values that cannot be meant: one line that says what and how to fix it."""

import re
from contextlib import contextmanager

import pytest

from gml_run.cli.fast import default_values, parse_run
from gml_run.config import make_options, without_effect
from gml_run.errors import GmlError
from gml_run.launch.variables import checked_variables, unknown_variables


@contextmanager
def refused(pattern):
    """What is inside fails with one line that matches."""
    with pytest.raises(GmlError) as caught:
        yield
    line = caught.value.line()
    assert re.search(pattern, line) and "\n" not in line, line


@pytest.mark.parametrize(
    ("name", "good", "bad"),
    [
        ("GML_CHECK", ["0", "1"], ["yes", "2", " 1"]),
        ("GML_SIM_STRICT", ["0", "1"], ["on"]),
        ("GML_SIM_ORACLE", ["0", "1"], ["false"]),
        ("GML_SIM_DEVICES", ["1", "16"], ["0", "17", "two", "-1", "1.5", "٣"]),
        (
            "GML_SIM_TIME",
            ["fast", "adversarial", "adversarial:7"],
            ["slow", "adversarial:", "adversarial:x", "fast:1"],
        ),
        ("GML_SIM_FLAG_AFTER", ["0", "1024"], ["-1", "soon", "1e3", "9" * 30]),
        (
            "GML_SIM_FAULTS",
            ["cuMemMap:3=2", "cuMemCreate:10+=2,cuMemFree:5~80", "cuMemUnmap:2/=999", "foreign:40=2G"],
            [
                "cuMemMap",
                "cuMemMap:3",
                "cuMemMap=2",
                "cuMemMap:x=2",
                "cuMemCreate:2/=999",
                "foreign:1=lots",
                "a:1=2,",
            ],
        ),
        ("GML_SIM_VA", ["128T"], ["1", "much"]),
    ],
)
def test_values(name, good, bad):
    for text in good:
        assert checked_variables({name: text}) == {name: text if name != "GML_SIM_VA" else str(1 << 47)}
    for text in bad:
        with refused(rf"^{name}: {re.escape(repr(text))} cannot be read; write "):
            checked_variables({name: text})
    assert checked_variables({name: ""}) == {}


@pytest.mark.parametrize("name", ["GML_SIM_SIZE", "GML_SIM_MEMORY"])
def test_sizes_reach_the_libraries_in_bytes(name):
    assert checked_variables({name: "24 GiB"}) == {name: str(24 << 30)}
    for text in ("24 apples", "1M", "3T", "-1", "0"):
        with refused(f"^{name}: .*from 256M to 512G"):
            checked_variables({name: text})


def test_a_slip_in_a_name_is_told_and_foreign_names_are_not():
    told = unknown_variables({"GML_SIM_FLAGS_AFTER": "1", "GML_SCHEMA": "x", "GML_SIM_TIME": "fast"}, ["GML_LIMIT"])
    assert told == ["GML_SIM_FLAGS_AFTER is no variable of gml-run and does nothing: GML_SIM_FLAG_AFTER is one"]
    assert unknown_variables({"GML_LIMITS": "1G"}, ["GML_LIMIT"])[0].endswith(": GML_LIMIT is one")


def test_stacks_by_its_variable():
    assert make_options(default_values({"GML_STACKS": "1"})).stacks
    assert not make_options(default_values({"GML_STACKS": "0"})).stacks
    with refused("^GML_STACKS: 'yes' is neither 1 nor 0; write 1 or 0"):
        make_options(default_values({"GML_STACKS": "yes"}))


def parsed(*words, **environ):
    plain = parse_run([*words, "true"], environ, frozenset())
    assert plain is not None
    return make_options(plain[0])


@pytest.mark.parametrize("words", [["--observe", "--allocator", "vms"], ["--allocator=native", "--observe"]])
def test_contradictions_are_refused(words):
    with refused("contradict each other; give the one that is meant"):
        parsed(*words)


def test_a_switch_wins_over_a_variable():
    assert parsed("--observe", GML_ALLOCATOR="vms").allocator == "observe"
    assert parsed("--observe", "--allocator", "observe").allocator == "observe"


@pytest.mark.parametrize("option", ["--metrics", "--status-file"])
def test_a_number_is_no_file(option):
    with refused(f"^{option} 99999: is a number, no file; give a file; ./99999 if"):
        parsed(option, "99999")
    assert parsed(option, "./99999")


def test_idle_seconds_have_an_end():
    with refused("not a whole number of seconds"):
        parsed("--release-idle", "99999999999999999999")


def test_all_options_without_effect_are_named():
    options = parsed("--observe", "--goal", "memory", "--intercept", "segments", "--limit", "1G")
    assert without_effect(options) == (
        "--limit, --goal and --intercept have no effect with --allocator observe: only vms obeys"
    )
