# SPDX-License-Identifier: Apache-2.0
"""`gml-run top [RUN]`: watches a run from another terminal."""

from __future__ import annotations

from typing import Annotated

import typer


def top(
    run: Annotated[str, typer.Argument(metavar="RUN", help="A run directory, its name, or latest.")] = "latest",
    once: Annotated[bool, typer.Option("--once", help="Print the state once, and end.")] = False,
    ranks: Annotated[bool, typer.Option("--ranks", help="Begin with the table of ranks.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the state once, as JSON.")] = False,
) -> None:
    """Watch a run from another terminal, also over ssh. Needs no rights but to read its directory.

    Keys: 1 overview, 2 timeline, 3 fragmentation, 4 stitching, 5 arena map,
    6 ranks and log; space pauses, ? explains the words, q quits.

    [bold]Examples[/bold]

    gml-run top

    gml-run top latest --once

    gml-run top gml-runs/20260101-101500-train-1f2e --json
    """
    import json
    import os
    import shutil

    from gml_run.errors import GmlError
    from gml_run.report.recover import load_report
    from gml_run.report.runs import find_run, is_alive, read_opening, read_report
    from gml_run.report.summary import command_text

    directory = find_run(run)
    if as_json:
        typer.echo(json.dumps(load_report(directory), indent=1, ensure_ascii=False))
        return
    from gml_run.config import DEFAULT_DRIVER_TIME
    from gml_run.launch.environment import user_environment
    from gml_run.live.scene import Scene
    from gml_run.live.viewer import Viewer

    opening = read_opening(directory)
    run_record = opening["run"]
    title = f"gml-run · {run_record['allocator']} · {command_text(run_record['command'])}"
    ours = run_record["allocator"] == "vms"
    budget = (run_record.get("max_driver_time") or DEFAULT_DRIVER_TIME) if ours else None
    scene = Scene(
        title,
        budget=budget,
        view=6 if ranks else 1,
        started=opening["started_s"],
        notices=opening.get("notices", ()),
    )
    report = read_report(directory)
    viewer = Viewer(directory, scene, opening["started_s"], lambda: is_alive(opening), report, user_environment())
    if once:
        width = shutil.get_terminal_size().columns - 1
        typer.echo("\n".join(viewer.once(200, width, styled=os.isatty(1))))
        return
    if not (os.isatty(0) and os.isatty(1)):
        raise GmlError("this is no terminal", "", "use gml-run top --once, or --json")
    viewer.run()
