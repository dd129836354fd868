# SPDX-License-Identifier: Apache-2.0
"""`gml-run report RUN`: shows what a run left."""

from __future__ import annotations

from typing import Annotated

import typer


def report(
    run: Annotated[str, typer.Argument(metavar="RUN", help="A run directory, its name, or latest.")] = "latest",
    as_json: Annotated[bool, typer.Option("--json", help="Print the whole report as JSON.")] = False,
    as_markdown: Annotated[bool, typer.Option("--md", help="Print it as Markdown.")] = False,
    ranks: Annotated[
        bool, typer.Option("--ranks", help="Print the table of processes and ranks, all of them.")
    ] = False,
    html: Annotated[
        str | None, typer.Option("--html", metavar="FILE", help="Write it as one HTML file with charts.")
    ] = None,
) -> None:
    """Show the report of a run, also of one that still runs.

    [bold]Examples[/bold]

    gml-run report latest

    gml-run report latest --json

    gml-run report latest --html report.html

    gml-run report latest --ranks
    """
    import json

    from gml_run.cli.screen import error_width
    from gml_run.errors import GmlError
    from gml_run.report.recover import load_report
    from gml_run.report.runs import find_run, short_path

    if as_json + as_markdown + ranks + bool(html) > 1:
        raise GmlError("--json, --md, --html and --ranks exclude each other")
    directory = find_run(run)
    content = load_report(directory)
    shown = short_path(directory)
    if as_json:
        typer.echo(json.dumps(content, indent=1, ensure_ascii=False))
    elif ranks:
        from gml_run.report.tables import rank_lines

        typer.echo("\n".join(rank_lines(content)))
    elif as_markdown:
        from gml_run.report.markdown import format_markdown

        typer.echo(format_markdown(content, shown), nl=False)
    elif html:
        from gml_run.report.html import format_html

        try:
            with open(html, "w", encoding="utf-8", errors="backslashreplace") as file:
                file.write(format_html(content, shown))
        except OSError as error:
            raise GmlError(error.strerror or str(error), html) from None
        typer.echo(html)
    else:
        from gml_run.report.summary import format_summary

        typer.echo("\n".join(format_summary(content, shown, error_width())))
