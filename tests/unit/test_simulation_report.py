# SPDX-License-Identifier: Apache-2.0
"""The report names what a simulated device could not know."""

from __future__ import annotations

import json
from pathlib import Path

from gml_run.report.simulation import read_simulation, unfilled_sentence


def test_calls_of_all_processes_are_summed(tmp_path: Path) -> None:
    for pid, calls in (
        (1, {"cudnnRNNForward": 2}),
        (22, {"cudnnRNNForward": 3, "cufftExecC2C": 1, "cuLogsRegisterCallback": 1}),
    ):
        (tmp_path / f"sim-{pid}.json").write_text(json.dumps({"unfilled": calls}))
    (tmp_path / "sim-3.json").write_text('{"unfilled": {"cut')
    found = read_simulation(str(tmp_path))
    assert found["unfilled_calls"] == {"cudnnRNNForward": 5, "cufftExecC2C": 1}
    assert any("workspaces" in text for text in found["unknown"])
    assert unfilled_sentence(found).endswith("cudnnRNNForward, cufftExecC2C")


def test_nothing_to_name(tmp_path: Path) -> None:
    assert unfilled_sentence(read_simulation(str(tmp_path))) == ""
    assert unfilled_sentence(read_simulation(None)) == ""


def test_a_long_list_is_cut() -> None:
    sentence = unfilled_sentence({"unfilled_calls": {f"call{number}": number for number in range(1, 10)}})
    assert "call9, call8, call7, call6 and 5 more" in sentence
