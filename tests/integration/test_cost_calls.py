# SPDX-License-Identifier: Apache-2.0
"""An allocation and its free without need of new memory reach the real runtime once, for the current device."""

import json

import pytest
from shim import run_program

FEW, MANY = 50, 2050


@pytest.fixture(scope="module")
def calls_a_time(tmp_path_factory):
    """Every entry point of driver and runtime that the simulator saw, per repetition of what a program does."""

    def count(what):
        seen = []
        for number in (FEW, MANY):
            folder = tmp_path_factory.mktemp(f"{what}-{number}")
            ended = run_program("hot_calls.py", what, str(number), folder=folder, GML_SIM_ORACLE="0")
            assert ended.code == 0, ended.stderr
            (path,) = folder.glob("sim-*.json")
            seen.append(json.loads(path.read_text())["calls"])
        rates = {name: (after - seen[0].get(name, 0)) / (MANY - FEW) for name, after in seen[1].items()}
        return {name: rate for name, rate in rates.items() if rate > 0}

    return count


def test_a_hot_pair_asks_for_the_current_device_and_nothing_else(calls_a_time):
    inside = calls_a_time("current")  # the runtime asks the driver in turn
    assert inside["cudaGetDevice"] == 1
    pair = calls_a_time("pairs")
    assert pair["cudaGetDevice"] == 1
    assert pair == inside
