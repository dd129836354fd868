# SPDX-License-Identifier: Apache-2.0
"""`gml-run runs`: lists the runs of this folder."""

from __future__ import annotations

from typing import Annotated

import typer


def runs(
    keep: Annotated[
        int | None,
        typer.Option("--keep", metavar="N", min=0, help="Delete the oldest runs, until N that have ended are left."),
    ] = None,
    clean: Annotated[bool, typer.Option("--clean", help="Delete all runs that have ended.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the list as JSON.")] = False,
) -> None:
    """List the runs below gml-runs/, oldest first, or delete old ones. Runs that still go on are left alone.

    [bold]Examples[/bold]

    gml-run runs

    gml-run runs --json

    gml-run runs --keep 20
    """
    import json
    import os
    import shlex

    from gml_run.errors import GmlError
    from gml_run.launch.rundir import DEFAULT_PARENT
    from gml_run.report.runs import delete_runs, is_alive, list_runs, read_opening, read_report
    from gml_run.units import format_seconds, format_size, shorten

    if keep is not None or clean:
        if keep is not None and clean:
            raise GmlError("--keep and --clean exclude each other")
        gone = delete_runs(DEFAULT_PARENT, keep or 0)
        if as_json:
            typer.echo(json.dumps({"deleted": [os.path.basename(path) for path in gone]}, indent=1))
        else:
            typer.echo(f"{len(gone)} runs deleted")
        return
    rows = []
    for path in list_runs(DEFAULT_PARENT):
        try:
            opening, report = read_opening(path), read_report(path)
            state = "ended" if report else "running" if is_alive(opening) else "lost"
            run = (report or opening)["run"]
        except GmlError:  # one that is damaged does not hide the others
            report, state, run = None, "damaged", {}
        peaks = [
            device["peak_reserved_bytes"]
            for process in (report or {}).get("processes", ())
            for device in process["devices"]
        ]
        rows.append(
            {
                "run": os.path.basename(path),
                "state": state,
                "exit_code": run.get("exit_code"),
                "duration_s": run.get("duration_s"),
                "peak_reserved_bytes": max(peaks, default=0),
                "allocator": run.get("allocator", "-"),
                "command": run.get("command", []),
            }
        )
    if as_json:
        typer.echo(json.dumps(rows, indent=1, ensure_ascii=False))
        return
    if not rows:
        typer.echo("no runs here")
        return
    width = max(len(row["run"]) for row in rows)
    for row in rows:
        end = f"exit {row['exit_code']}" if row["state"] == "ended" else row["state"]
        took = "" if row["duration_s"] is None else format_seconds(row["duration_s"])
        peak = format_size(row["peak_reserved_bytes"]) if row["peak_reserved_bytes"] else "-"
        command = shorten(shlex.join(row["command"]), 40)
        typer.echo(f"{row['run']:<{width}}  {end:<9} {took:>11}  {peak:>9}  {row['allocator']:<10} {command}")
