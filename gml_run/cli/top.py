# SPDX-License-Identifier: Apache-2.0
"""`gml-run top [RUN]`: watches a run from another terminal."""

from __future__ import annotations

from typing import Annotated

import typer


def top(
    run: Annotated[str, typer.Argument(metavar="RUN", help="A run directory, its name, or latest.")] = "latest",
    once: Annotated[bool, typer.Option("--once", help="Print the state once, and end.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the state once, as JSON.")] = False,
) -> None:
    """Watch a run from another terminal: pool, arena map, course, driver calls. Needs no rights but to read.

    Keys: q quits, space pauses, ? shows them.

    [bold]Examples[/bold]

    gml-run top

    gml-run top latest --once

    gml-run top gml-runs/20260101-101500-train-1f2e --json
    """
    import json
    import os

    from gml_run.errors import GmlError
    from gml_run.report.recover import load_report
    from gml_run.report.runs import find_run, is_alive, read_opening, read_report
    from gml_run.report.summary import command_text

    directory = find_run(run)
    if as_json:
        typer.echo(json.dumps(load_report(directory), indent=1, ensure_ascii=False))
        return
    from gml_run.live.viewer import Viewer

    opening = read_opening(directory)
    title = f"gml-run · {opening['run']['allocator']} · {command_text(opening['run']['command'])}"
    report = read_report(directory)
    viewer = Viewer(directory, title, opening["started_s"], lambda: is_alive(opening), report)
    if once:
        from rich.console import Console

        console = Console(highlight=False)
        for line in viewer.lines(1000, console.width - 1):
            line.truncate(console.width - 1, overflow="ellipsis")
            console.print(line, soft_wrap=True)
        return
    if not (os.isatty(0) and os.isatty(1)):
        raise GmlError("this is no terminal", "", "use gml-run top --once, or --json")
    viewer.run()
