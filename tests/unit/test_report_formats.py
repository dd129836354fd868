# SPDX-License-Identifier: Apache-2.0
"""Markdown and HTML of a report: complete, escaped, and without anything from elsewhere."""

import re
import xml.etree.ElementTree as ElementTree

import pytest
from html_text import Checker
from telemetry_files import device, oom, write_process
from test_report import GIB, HEAP, report_of

from gml_run.analysis.history import Point
from gml_run.report.html import format_html
from gml_run.report.markdown import format_markdown

HOSTILE = ("python", "x.py", "<script>alert(1)</script>", "a|b", "`c`")


@pytest.fixture
def report(tmp_path):
    sizes = {5: 10, 9: 5, 21: 7, 30: 2}
    write_process(
        tmp_path,
        counters={"served_calls": 9},
        devices={0: device(sizes=sizes, **HEAP)},
        ooms=[oom(request_bytes=GIB, total_bytes=80 * GIB, live_bytes=79 * GIB, reserved_bytes=79 * GIB)],
    )
    made = report_of(tmp_path, command=HOSTILE)
    made["timeline"] = {
        "fields": list(Point._fields),
        "points": [[number / 4, number * GIB, 26 * GIB, 0, 0, 0] for number in range(20)],
    }
    return made


def test_html_is_well_formed_offline_and_escaped(report):
    page = format_html(report, "gml-runs/x")
    checker = Checker()
    checker.feed(page)
    assert checker.open == [] and checker.links == []
    assert "script" not in checker.seen
    assert "url(" not in page and "@import" not in page and "://" not in page
    assert "<script>alert(1)</script>" in "".join(checker.text)


def test_html_shows_every_figure_and_chart(report):
    page = format_html(report, "gml-runs/x")
    charts = re.findall(r"<svg.*?</svg>", page)
    assert len(charts) == 4
    for chart in charts:
        root = ElementTree.fromstring(chart)
        _, _, width, height = map(float, root.get("viewBox").split())
        for element in root.iter():
            for name, most in (("x", width), ("y", height)):
                assert 0 <= float(element.get(name) or 0) <= most
            if element.tag == "polygon":
                for pair in element.get("points").split():
                    x, y = map(float, pair.split(","))
                    assert 0 <= x <= width and 0 <= y <= height
    for text in ("26 GiB", "96.2 %", "1,000,000", "genuinely full", "up to 512 B", "rounding"):
        assert text in page


def test_small_classes_are_one_row(report):
    page = format_html(report, None)
    assert "<td>up to 512 B</td><td>15</td>" in page and "up to 32 B" not in page


def test_markdown_tables_have_as_many_cells_as_heads(report):
    text = format_markdown(report, "gml-runs/x")
    assert "\\<script\\>" in text and "a\\|b" in text
    tables = [block.splitlines() for block in text.split("\n\n") if block.startswith("| ")]
    assert len(tables) >= 7
    for lines in tables:
        counts = {len(re.findall(r"(?<!\\)\|", line)) for line in lines}
        assert len(counts) == 1, lines


def test_a_run_that_measured_nothing_still_gives_a_page(tmp_path):
    made = report_of(tmp_path)
    checker = Checker()
    checker.feed(format_html(made, None))
    assert checker.open == [] and "nothing was measured" in "".join(checker.text)
    assert "nothing was measured" in format_markdown(made, None)
