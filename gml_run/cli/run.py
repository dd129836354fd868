# SPDX-License-Identifier: Apache-2.0
"""`gml-run [OPTIONS] [--] COMMAND [ARGS]...`: runs a program with its GPU memory served or watched."""

from __future__ import annotations

from typing import Annotated

import typer

from gml_run import __version__
from gml_run.cli import specs
from gml_run.cli.start import start
from gml_run.cli.typed import merged, option


def _show_version(value: bool) -> None:
    if value:
        typer.echo(f"gml-run {__version__}")
        raise typer.Exit


def run(
    ctx: typer.Context,
    allocator: Annotated[str | None, option(specs.ALLOCATOR)] = specs.ALLOCATOR.default,
    observe: Annotated[bool, option(specs.OBSERVE)] = False,
    intercept: Annotated[str | None, option(specs.INTERCEPT)] = specs.INTERCEPT.default,
    goal: Annotated[str | None, option(specs.GOAL)] = specs.GOAL.default,
    limit: Annotated[str | None, option(specs.LIMIT)] = None,
    max_driver_time: Annotated[str | None, option(specs.MAX_DRIVER_TIME)] = None,
    driver_costs: Annotated[str | None, option(specs.DRIVER_COSTS)] = None,
    release_idle: Annotated[str | None, option(specs.RELEASE_IDLE)] = None,
    simulate: Annotated[str | None, option(specs.SIMULATE)] = None,
    stacks: Annotated[bool, option(specs.STACKS)] = False,
    live: Annotated[str | None, option(specs.LIVE)] = specs.LIVE.default,
    step: Annotated[str | None, option(specs.STEP)] = None,
    output: Annotated[str | None, option(specs.OUTPUT)] = None,
    metrics: Annotated[str | None, option(specs.METRICS)] = None,
    status_file: Annotated[str | None, option(specs.STATUS_FILE)] = None,
    quiet: Annotated[bool, option(specs.QUIET)] = False,
    strict: Annotated[bool, option(specs.STRICT)] = False,
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    """Run any command with a GPU memory allocator that stitches free memory, and see where the memory goes.

    The first word that is no option starts the program; everything after it is the program's own.

    [bold]Examples[/bold]

    gml-run python train.py --epochs 3

    gml-run --observe python train.py

    gml-run --simulate h100:24G python train.py

    gml-run --limit 20G -o runs/%t -- torchrun --nproc-per-node 2 train.py

    gml-run report latest
    """
    start(merged(ctx), list(ctx.args))
