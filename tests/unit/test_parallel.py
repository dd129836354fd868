# SPDX-License-Identifier: Apache-2.0
"""How a parallel run of the tests deals them out."""

from pathlib import Path

from parallel import BY_FIRST_PARAMETER, SINGLY, piece_of

INTEGRATION = Path(__file__).resolve().parents[1] / "integration"


def test_the_files_that_are_dealt_in_pieces_exist():
    assert all((INTEGRATION / name).is_file() for name in SINGLY | BY_FIRST_PARAMETER)


def test_files_that_are_dealt_singly_make_nothing_once():
    assert not any('scope="' in (INTEGRATION / name).read_text() for name in SINGLY)


def test_pieces():
    stacks = "tests/integration/test_stacks.py"
    assert piece_of(f"{stacks}::test_one[vms]") == piece_of(f"{stacks}::test_two") == stacks
    frameworks = "tests/integration/test_frameworks.py"
    assert piece_of(f"{frameworks}::test_one") != piece_of(f"{frameworks}::test_two")
    workloads = "tests/integration/test_workloads.py"
    assert piece_of(f"{workloads}::test_one[gpt-native]") == piece_of(f"{workloads}::test_two[gpt]")
    assert piece_of(f"{workloads}::test_one[gpt-native]") != piece_of(f"{workloads}::test_one[unet-native]")
