# SPDX-License-Identifier: Apache-2.0
"""Figures of two runs side by side, and rules about them."""

import pytest
from telemetry_files import device, write_process
from test_report import GIB, HEAP, report_of

from gml_run.analysis.diff import METRICS, TROUBLE, check_rule, compare
from gml_run.errors import GmlError


@pytest.fixture
def changes(tmp_path):
    reports = []
    for number, fields in enumerate((HEAP, {**HEAP, "peak_reserved_bytes": 27 * GIB, "place_stitch": 0, "ooms": 2})):
        folder = tmp_path / str(number)
        write_process(folder, counters={"served_calls": 1}, devices={0: device(**fields)})
        reports.append(report_of(folder))
    return compare(*reports)


def test_every_figure_is_there(changes):
    found = {change.name: (change.before, change.after) for change in changes}
    assert set(found) == set(METRICS)
    assert found["peak_reserved"] == (26 * GIB, 27 * GIB)
    assert found["stitches"] == (112, 0) and found["ooms"] == (0, 2)


@pytest.mark.parametrize(
    ("rule", "broken"),
    [
        ("peak_reserved>+2%", True),
        ("peak_reserved>+5%", False),
        ("peak_reserved > +512M", True),
        ("peak_reserved>+2G", False),
        ("peak_reserved>26.5G", True),
        ("peak_reserved<20G", False),
        ("peak_live>+0%", False),
        ("ooms>0", True),
        ("ooms>+50%", True),
        ("stitches<-50%", True),
        ("waste_ratio>7%", True),
        ("waste_ratio>0.1", False),
        ("driver_time>=0.42", True),
    ],
)
def test_rules(changes, rule, broken):
    assert (check_rule(rule, changes) is not None) is broken


@pytest.mark.parametrize(
    "rule", ["", "peak_reserved", "nothing>1", "peak_reserved>+2Q", "peak_reserved=1", "ooms>1.2.3"]
)
def test_bad_rules_are_trouble(changes, rule):
    with pytest.raises(GmlError) as caught:
        check_rule(rule, changes)
    assert caught.value.exit_code == TROUBLE
