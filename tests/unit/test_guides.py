# SPDX-License-Identifier: Apache-2.0
"""The guides name what exists: words, options, figures and keys."""

import re
from pathlib import Path

import pytest
from telemetry_files import device, write_process
from test_report import HEAP, report_of

from gml_run.analysis.diff import METRICS
from gml_run.cli.specs import RUN_SPECS
from gml_run.cli.words import COMMANDS, RESERVED
from gml_run.report.metrics import COUNTERS, GAUGES

GUIDE = Path(__file__).resolve().parents[2] / "docs" / "guide"


def text_of(name):
    return (GUIDE / name).read_text()


def test_every_word_of_ours_is_named():
    text = text_of("launcher.md")
    assert set(re.search(r"words `([^`]+)` are commands", text)[1].split()) == set(COMMANDS)
    assert set(re.search(r"`([^`]+)` are\s+kept for later", text)[1].split()) == set(RESERVED)


def test_every_metric_is_named_and_no_other():
    text = text_of("monitoring.md")
    known = {*GAUGES, *(f"{name}_total" for name in COUNTERS)}
    assert set(re.findall(r"\bgml_[a-z_]+\b", text)) == known


def test_every_key_of_a_report_is_named(tmp_path):
    write_process(tmp_path, counters={"served_calls": 1}, devices={0: device(**HEAP)})
    report = report_of(tmp_path)
    text = text_of("report.md")
    keys = [*report, *report["run"], *report["processes"][0], *report["processes"][0]["devices"][0]]
    keys = [key.removeprefix("peak_") for key in keys if key not in ("schema_version", "steps", "captures")]
    missing = [key for key in keys if f"{key}`" not in text and f"{key}[" not in text]
    assert set(missing) <= {"metadata_bytes", "forwarded_bytes", "torn", "driver_live_bytes"}


@pytest.mark.parametrize("name", sorted(path.name for path in GUIDE.glob("*.md")))
def test_options_exist(name):
    known = {flag for spec in RUN_SPECS for flag in spec.flags} | {
        "--", "--json", "--md", "--html", "--once", "--fail-on", "--no-python", "--help", "--version",
    }  # fmt: skip
    used = set(re.findall(r"(?<![\w-])--[a-z][a-z-]*", text_of(name)))
    assert used <= known, used - known


def test_rules_in_the_guide_can_be_read():
    for rule in re.findall(r"--fail-on '([^']+)'", text_of("ci.md")):
        assert re.match(r"\w+", rule)[0] in METRICS
