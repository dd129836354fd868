# SPDX-License-Identifier: Apache-2.0
"""Steps of real training loops: as many as their optimizers made, or a report that says that it does not know."""

import pytest
from runs import PROGRAMS, python, run

UNSURE = {
    "gradients_kept": ("backward passes", 16),  # two batches to each of eight steps
    "serving": ("rounds", 8),
}


@pytest.mark.parametrize("allocator", ["vms", "observe"])
def test_loops_as_people_write_them(allocator, tmp_path):
    options = ["-q", "--simulate", "h100", "--allocator", allocator]
    ended = run(options, python(PROGRAMS / "step_loops.py"), tmp_path / "run", variables={"GML_SIM_DEVICES": "10"})
    true = ended.said
    steps = {name: device["steps"] for name, device in zip(true, ended.process["devices"], strict=True)}
    sure = {name: count for name, count in true.items() if name not in UNSURE}
    assert {name: (each["count"], each["doubt"]) for name, each in steps.items() if name in sure} == {
        name: (count, "") for name, count in sure.items()
    }
    assert all(each["unit"] == "steps" and each["p50_s"] > 0 for name, each in steps.items() if name in sure)
    for name, (unit, most) in UNSURE.items():
        assert steps[name]["unit"] == unit and steps[name]["doubt"] and 0 < steps[name]["count"] <= most
