# SPDX-License-Identifier: Apache-2.0
"""The report as one offline HTML file: text, tables and SVG charts, nothing from elsewhere."""

from __future__ import annotations

from html import escape
from typing import Any

from gml_run.report.charts import bars_chart, parts_chart, timeline_chart, waste_chart
from gml_run.report.summary import headline, summary_rows
from gml_run.report.tables import PLACEMENTS, Table, report_tables, size_rows
from gml_run.report.verdict import peak_device

_STYLE = """
:root { color-scheme: light dark; --ink: #1b1f24; --soft: #6a737d; --page: #ffffff; --line: #d8dee4;
  --live: #2f9e5b; --held: #e0b341; --outside: #8aa4c8; --rounding: #c77dbb; --waiting: #d9705f; --free: #eceff2; }
@media (prefers-color-scheme: dark) { :root { --ink: #e6edf3; --soft: #9198a1; --page: #0d1117; --line: #30363d;
  --live: #3fb96f; --held: #b58a22; --outside: #4b6a99; --rounding: #9c5791; --waiting: #b25749; --free: #21262d; } }
body { font: 15px/1.5 system-ui, sans-serif; color: var(--ink); background: var(--page); margin: 2rem auto;
  max-width: 46rem; padding: 0 1rem; }
h1 { font-size: 1.25rem; overflow-wrap: anywhere; } h2 { font-size: 1.05rem; margin: 2rem 0 .5rem; }
p.verdict { font-size: 1.05rem; } p.note { color: var(--soft); }
dl { display: grid; grid-template-columns: 9rem 1fr; gap: .15rem .75rem; margin: 0; }
dt { color: var(--soft); } dd { margin: 0; overflow-wrap: anywhere; }
table { border-collapse: collapse; width: 100%; font-variant-numeric: tabular-nums; }
th, td { text-align: right; padding: .2rem .5rem; border-bottom: 1px solid var(--line); vertical-align: top; }
th:first-child, td:first-child { text-align: left; } th { color: var(--soft); font-weight: 600; }
svg { display: block; margin: .5rem 0; } svg text { fill: var(--ink); font: 12px system-ui, sans-serif; }
.live { fill: var(--live); } .held { fill: var(--held); } .outside { fill: var(--outside); }
.rounding { fill: var(--rounding); } .waiting { fill: var(--waiting); } .free { fill: var(--free); }
.grid { stroke: var(--line); stroke-width: 1; }
.peak { stroke: var(--ink); stroke-width: 1; stroke-dasharray: 5 4; }
"""


def format_html(report: dict[str, Any], directory: str | None) -> str:
    """The whole file."""
    title = headline(report, 200)
    rows = "".join(
        f"<dt>{escape(label)}</dt><dd>{escape(text)}</dd>" for label, text in summary_rows(report, directory)
    )
    body = [f"<h1>{escape(title)}</h1>", f'<p class="verdict">{escape(report["verdict"])}</p>', f"<dl>{rows}</dl>"]
    body += [f"<h2>{escape(name)}</h2>{chart}" for name, chart in _charts(report) if chart]
    body += [_table(table) for table in report_tables(report)]
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{escape(title)}</title><style>{_STYLE}</style></head>\n<body>\n"
        + "\n".join(body)
        + "\n</body></html>\n"
    )


def _charts(report: dict[str, Any]) -> list[tuple[str, str]]:
    if report["not_served"]:
        return []
    device = peak_device(report)
    waste = device["waste"]
    used = device["peak_used_bytes"]
    parts = [
        ("asked for", waste["requested_bytes"], "live"),
        ("rounding", waste["internal_bytes"], "rounding"),
        ("free but scattered, or idle", waste["external_bytes"], "held"),
        ("waiting on another stream", waste["stream_held_bytes"], "waiting"),
        ("outside the pool", max(0, used - device["peak_reserved_bytes"]), "outside"),
        ("free", max(0, device["total_bytes"] - max(used, device["peak_reserved_bytes"])), "free"),
    ]
    placed = [(PLACEMENTS[kind], count) for kind, count in device["placements"].items() if count]
    return [
        ("The device when most was held", parts_chart(parts)),
        (
            "Held (light), in use (dark) and its peak (dashed) over time",
            timeline_chart(report["timeline"], device["peak_live_bytes"], device["total_bytes"]),
        ),
        ("Held and not in use, by cause, over time", waste_chart(report["timeline"])),
        ("Placements", bars_chart("Requests by placement", placed)),
        ("Request sizes", bars_chart("Requests by size", size_rows(device["size_counts"]))),
    ]


def _table(table: Table) -> str:
    heads = "".join(f"<th>{escape(head)}</th>" for head in table.heads)
    rows = "".join("<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>" for row in table.rows)
    note = f'<p class="note">{escape(table.note)}</p>' if table.note else ""
    return f"<h2>{escape(table.title)}</h2><table><thead><tr>{heads}</tr></thead><tbody>{rows}</tbody></table>{note}"
