# SPDX-License-Identifier: Apache-2.0
"""`gml-run [OPTIONS] [--] COMMAND [ARGS]...`: runs a program with its GPU memory served or watched."""

from __future__ import annotations

from typing import Annotated

import typer

from gml_run import __version__
from gml_run.cli.main import complain
from gml_run.config import (
    Allocator,
    Goal,
    Intercept,
    Live,
    RunOptions,
    parse_option_size,
    parse_simulation,
)
from gml_run.errors import GmlError


def _show_version(value: bool) -> None:
    if value:
        typer.echo(f"gml-run {__version__}")
        raise typer.Exit


_MEMORY = "GPU memory"
_VIEW = "View and report"


def run(
    ctx: typer.Context,
    allocator: Annotated[
        Allocator,
        typer.Option(
            envvar="GML_ALLOCATOR",
            rich_help_panel=_MEMORY,
            help="Who serves the memory: vms stitches free memory; native, expandable and cuda-async are "
            "PyTorch's own; raw is the driver's plain calls; observe leaves everything as it is.",
        ),
    ] = Allocator.VMS,
    observe: Annotated[
        bool,
        typer.Option(
            "--observe",
            rich_help_panel=_MEMORY,
            help="Change nothing, only watch (the same as --allocator observe).",
        ),
    ] = False,
    intercept: Annotated[
        Intercept,
        typer.Option(
            envvar="GML_INTERCEPT",
            rich_help_panel=_MEMORY,
            help="What of PyTorch reaches the allocator: every tensor, its cache's segments, or every "
            "tensor with the cache off.",
        ),
    ] = Intercept.TENSORS,
    goal: Annotated[
        Goal,
        typer.Option(
            envvar="GML_GOAL",
            rich_help_panel=_MEMORY,
            help="What to favour: least memory, a balance, or least driver time.",
        ),
    ] = Goal.BALANCED,
    limit: Annotated[
        str | None,
        typer.Option(
            envvar="GML_LIMIT",
            metavar="SIZE",
            rich_help_panel=_MEMORY,
            help="Most memory to hold per device, such as 24G.",
        ),
    ] = None,
    max_driver_time: Annotated[
        float | None,
        typer.Option(
            envvar="GML_MAX_DRIVER_TIME",
            metavar="PCT",
            min=0,
            max=100,
            rich_help_panel=_MEMORY,
            help="Percent of elapsed time that stitching may cost (default 1).",
        ),
    ] = None,
    simulate: Annotated[
        str | None,
        typer.Option(
            envvar="GML_SIMULATE",
            metavar="NAME[:SIZE]",
            rich_help_panel=_MEMORY,
            help="Run without a GPU on a simulated one, such as h100 or h100:24G: memory behaves as on "
            "the device, computed values mean nothing.",
        ),
    ] = None,
    live: Annotated[
        Live,
        typer.Option(
            envvar="GML_LIVE",
            rich_help_panel=_VIEW,
            help="Live view: dock keeps lines at the bottom of the terminal, line prints one now and then.",
        ),
    ] = Live.AUTO,
    output: Annotated[
        str | None,
        typer.Option(
            "--output",
            "-o",
            envvar="GML_OUTPUT",
            metavar="DIR",
            rich_help_panel=_VIEW,
            help="Run directory, instead of gml-runs/<time>-<command>-<id>. May hold %h host, %p process, "
            "%r rank, %t time, %q{VAR}.",
        ),
    ] = None,
    quiet: Annotated[
        bool,
        typer.Option(
            "--quiet",
            "-q",
            rich_help_panel=_VIEW,
            help="No live view, no notices, no summary; report.json is written.",
        ),
    ] = False,
    strict: Annotated[
        bool,
        typer.Option(
            "--strict",
            rich_help_panel=_VIEW,
            help="Fail with 125 when the run could not be measured or reported.",
        ),
    ] = False,
    version: Annotated[
        bool,
        typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version and exit."),
    ] = False,
) -> None:
    """Run any command with a GPU memory allocator that stitches free memory, and see where the memory goes.

    The first word that is no option starts the program; everything after it is the program's own.

    [bold]Examples[/bold]

    gml-run python train.py --epochs 3

    gml-run --observe python train.py

    gml-run --simulate h100:24G python train.py

    gml-run --limit 20G -o runs/%t -- torchrun --nproc-per-node 2 train.py
    """
    command = list(ctx.args)
    if not command:
        raise GmlError("no command given", "", "try: gml-run python train.py, or gml-run --help")

    def given(name: str) -> bool:
        source = ctx.get_parameter_source(name)
        return source is not None and source.name == "COMMANDLINE"

    if observe and given("allocator") and allocator is not Allocator.OBSERVE:
        raise GmlError(f"--observe and --allocator {allocator} exclude each other")
    options = RunOptions(
        allocator=Allocator.OBSERVE if observe else allocator,
        intercept=intercept,
        goal=goal,
        simulation=parse_simulation(simulate) if simulate else None,
        limit_bytes=parse_option_size("--limit", limit) if limit and limit != "0" else None,
        max_driver_time=max_driver_time,
        live=live,
        output=output,
        quiet=quiet,
        strict=strict,
    )
    from gml_run.cli.session import run_session

    run_session(options, command, complain)
