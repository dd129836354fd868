# SPDX-License-Identifier: Apache-2.0
"""`gml-run doctor`: says what this machine has and what will not work on it."""

from __future__ import annotations

from typing import Annotated

import typer


def doctor(
    as_json: Annotated[bool, typer.Option("--json", help="Print the findings as JSON.")] = False,
) -> None:
    """Look at this machine: libraries, driver, devices, PyTorch. Ends with 1 when something is missing.

    No context is made on a GPU, so nothing is taken from a program that uses it.

    [bold]Examples[/bold]

    gml-run doctor

    gml-run doctor --json
    """
    import dataclasses
    import json

    from gml_run.launch.diagnosis import findings

    found = findings()
    if as_json:
        typer.echo(json.dumps([dataclasses.asdict(finding) for finding in found], indent=1, ensure_ascii=False))
    else:
        for finding in found:
            typer.echo(f"{finding.state:<5} {finding.what:<14} {finding.text}")
    if any(finding.state == "bad" for finding in found):
        raise typer.Exit(1)
