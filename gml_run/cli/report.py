# SPDX-License-Identifier: Apache-2.0
"""`gml-run report RUN`: shows what a run left."""

from __future__ import annotations

from typing import Annotated

import typer


def report(
    run: Annotated[str, typer.Argument(metavar="RUN", help="A run directory, its name, or latest.")] = "latest",
    as_json: Annotated[bool, typer.Option("--json", help="Print the whole report as JSON.")] = False,
) -> None:
    """Show the report of a run.

    [bold]Examples[/bold]

    gml-run report latest

    gml-run report latest --json
    """
    import json
    import os

    from gml_run.cli.screen import error_width
    from gml_run.report.recover import load_report
    from gml_run.report.runs import find_run
    from gml_run.report.summary import format_summary

    directory = find_run(run)
    content = load_report(directory)
    if as_json:
        typer.echo(json.dumps(content, indent=1, ensure_ascii=False))
    else:
        typer.echo("\n".join(format_summary(content, os.path.relpath(directory), error_width())))
