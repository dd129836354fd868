# SPDX-License-Identifier: Apache-2.0
"""The list of planted bugs fits the sources and the tests; tests/mutants/run.py plants them."""

import importlib.util
import re
import sys
from pathlib import Path

import pytest

TESTS = Path(__file__).resolve().parents[1]


@pytest.fixture(scope="module")
def runner():
    spec = importlib.util.spec_from_file_location("mutants_run", TESTS / "mutants" / "run.py")
    module = sys.modules["mutants_run"] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_every_text_stands_once_in_its_file(runner):
    assert len(runner.read_list()) >= 16  # reading checks each


def test_a_text_that_is_gone_is_an_error(runner):
    mutant = runner.Mutant("gone", "nothing", "core/heap.c", "no such text", "", ("core/heap",))
    with pytest.raises(runner.Broken, match="stands 0 times"):
        mutant.source()


def test_the_readme_lists_them_all(runner):
    assert runner.README.read_text() == runner.readme_with(runner.read_list())


def test_every_test_function_exists(runner):
    programs = {path.stem: path.read_text() for path in (TESTS / "c" / "core").glob("*.c")}
    for mutant in runner.read_list():
        for test in mutant.tests:
            named = re.fullmatch(r"core/(\w+) TEST=(\w+)", test)
            if named:
                assert f"RUN({named[2]});" in programs[named[1]], f"{mutant.name}: {test}"
            elif ".py::" in test:
                path, function = re.match(r"(.*)::(\w+)", test).groups()
                assert f"def {function}(" in (TESTS.parent / path).read_text(), f"{mutant.name}: {test}"
