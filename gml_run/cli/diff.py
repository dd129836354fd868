# SPDX-License-Identifier: Apache-2.0
"""`gml-run diff A B`: compares two finished runs; with --fail-on a gate for CI."""

from __future__ import annotations

from typing import Annotated

import typer


def diff(
    before: Annotated[str, typer.Argument(metavar="A", help="The run to compare with.")],
    after: Annotated[str, typer.Argument(metavar="B", help="The run to look at.")],
    fail_on: Annotated[
        list[str] | None,
        typer.Option("--fail-on", metavar="RULE", help="End with 1 when it is true; may be given several times."),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the figures as JSON.")] = False,
) -> None:
    """Compare two finished runs. Ends with 0; with 1 when a rule is broken; with 2 in case of trouble.

    A rule names a figure and a bound: +2% or +100M is a change, a plain
    number the figure itself.

    [bold]Examples[/bold]

    gml-run diff gml-runs/20260101-101500-train-1f2e latest

    gml-run diff main latest --fail-on 'peak_reserved>+2%' --fail-on 'ooms>0'
    """
    import json

    from gml_run.analysis.diff import TROUBLE, check_rule, compare
    from gml_run.cli.screen import complain
    from gml_run.errors import GmlError
    from gml_run.report.runs import find_run, read_report

    reports = []
    for name in (before, after):
        try:
            directory = find_run(name)
            report = read_report(directory)
        except GmlError as error:
            raise GmlError(error.what, error.where, error.hint, TROUBLE) from None
        if report is None:
            raise GmlError("has no report yet", directory, "wait for its end", TROUBLE)
        reports.append(report)
    changes = compare(*reports)
    broken = [text for text in (check_rule(rule, changes) for rule in fail_on or ()) if text]
    if as_json:
        figures = {change.name: {"before": change.before, "after": change.after} for change in changes}
        typer.echo(json.dumps({"figures": figures, "broken": broken}, indent=1))
    else:
        for change in changes:
            moved = "" if change.ratio in (0.0, None) else f"{100 * change.ratio:+.1f} %"
            typer.echo(f"{change.name:<17} {change.texts[0]:>12} {change.texts[1]:>12} {moved:>10}".rstrip())
        for text in broken:
            complain(text)
    if broken:
        raise typer.Exit(1)
