# SPDX-License-Identifier: Apache-2.0
"""The report names what a simulated device could not know."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from gml_run.report.simulation import flags_sentence, read_simulation, simulation_sentences, unfilled_sentence


def leave(directory: Path, pid: int, **seen: Any) -> None:
    content = {"unfilled": {}, "data_dependent": {}, "reads": {}, "flags": {"after": 1024, "answered": 0, "held": 0}}
    (directory / f"sim-{pid}.json").write_text(json.dumps(content | seen))


def test_calls_of_all_processes_are_summed(tmp_path: Path) -> None:
    leave(tmp_path, 1, unfilled={"cudnnRNNForward": 2})
    leave(tmp_path, 22, unfilled={"cudnnRNNForward": 3, "cufftExecC2C": 1, "cuLogsRegisterCallback": 1})
    (tmp_path / "sim-3.json").write_text('{"unfilled": {"cut')
    found = read_simulation(str(tmp_path))
    assert found["unfilled_calls"] == {"cudnnRNNForward": 5, "cufftExecC2C": 1}
    assert any("workspaces" in text for text in found["unknown"])
    assert unfilled_sentence(found).endswith("cudnnRNNForward, cufftExecC2C")


def test_nothing_to_name(tmp_path: Path) -> None:
    assert simulation_sentences(read_simulation(str(tmp_path))) == []
    assert simulation_sentences(read_simulation(None)) == []
    assert not any("depend" in text for text in read_simulation(None)["unknown"])


def test_a_long_list_is_cut() -> None:
    sentence = unfilled_sentence({"unfilled_calls": {f"call{number}": number for number in range(1, 10)}})
    assert "call9, call8, call7, call6 and 5 more" in sentence


def test_shapes_that_depended_on_data_are_named(tmp_path: Path) -> None:
    leave(tmp_path, 1, data_dependent={"nonzero": 11, "unique_by_key": 1}, reads={"4": 11})
    leave(tmp_path, 2, data_dependent={"nonzero": 1}, reads={"4": 1, "1": 2})
    found = read_simulation(str(tmp_path))
    sentence = "shapes that depended on data (nonzero 12 times, unique by key once) were those of all-zero data"
    assert simulation_sentences(found) == [sentence] and sentence in found["unknown"]
    assert found["value_reads"] == {"4": 12, "1": 2}


def test_loops_that_were_ended_are_named(tmp_path: Path) -> None:
    leave(tmp_path, 1, flags={"after": 20, "answered": 1, "held": 0})
    leave(tmp_path, 2, flags={"after": 20, "answered": 2, "held": 0})
    sentence = flags_sentence(read_simulation(str(tmp_path)))
    assert "3 times" in sentence and "20th read" in sentence and "GML_SIM_FLAG_AFTER=N" in sentence


def test_checks_that_were_taken_to_hold_are_counted(tmp_path: Path) -> None:
    leave(tmp_path, 1)
    assert simulation_sentences(read_simulation(str(tmp_path))) == []
    leave(tmp_path, 2, flags={"after": 1024, "answered": 0, "held": 1})
    leave(tmp_path, 3, flags={"after": 1024, "answered": 0, "held": 4})
    found = read_simulation(str(tmp_path))
    assert found["flags"]["held"] == 5
    assert simulation_sentences(found) == ["checks of unknown values were taken to hold 5 times"]
