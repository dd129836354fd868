# SPDX-License-Identifier: Apache-2.0
"""The report as Markdown, to paste into an issue or a pull request."""

from __future__ import annotations

from typing import Any

from gml_run.report.summary import headline, summary_rows
from gml_run.report.tables import Table, report_tables


def format_markdown(report: dict[str, Any], directory: str | None) -> str:
    """The summary as a list, then the tables."""
    lines = [f"### {_escape(headline(report, 200))}", "", f"**{_escape(report['verdict'])}**", ""]
    for label, text in summary_rows(report, directory):
        lines.append(f"- **{label}**: {_escape(text)}" if label else f"  {_escape(text)}")
    for table in report_tables(report):
        lines += ["", f"#### {table.title}", "", *_table(table)]
        if table.note:
            lines += ["", _escape(table.note)]
    return "\n".join(lines) + "\n"


def _table(table: Table) -> list[str]:
    head = "| " + " | ".join(table.heads) + " |"
    rule = "|" + "|".join(" --- " if number == 0 else " ---: " for number in range(len(table.heads))) + "|"
    rows = ["| " + " | ".join(_escape(cell) for cell in row) + " |" for row in table.rows]
    return [head, rule, *rows]


def _escape(text: str) -> str:
    for mark in "\\`*_|<>":
        text = text.replace(mark, "\\" + mark)
    return text.replace("\n", " ")
