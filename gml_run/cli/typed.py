# SPDX-License-Identifier: Apache-2.0
"""Makes Typer options from the definitions in specs.py."""

from __future__ import annotations

import os
from typing import Any

import typer

from gml_run.cli.fast import check_given, default_values
from gml_run.cli.specs import Spec


def option(spec: Spec) -> Any:
    """What stands in `Annotated[str | None, option(SPEC)]`."""
    settings: dict[str, Any] = {"help": spec.help, "rich_help_panel": spec.panel}
    if spec.metavar:
        settings.update(metavar=spec.metavar, envvar=spec.variable or None)
    return typer.Option(*spec.flags, **settings)


def merged(ctx: typer.Context) -> dict[str, str | bool | None]:
    """The values of the run's options that a command has: command line, variables, file, defaults."""
    values: dict[str, str | bool | None] = {}
    defaults = default_values(os.environ)  # a switch's variable, too: Typer would only say that its value is bad
    for name, value in ctx.params.items():
        source = ctx.get_parameter_source(name)
        values[name] = value if source is None or source.name == "COMMANDLINE" else defaults.get(name, value)
    check_given({name: value for name, value in values.items() if given(ctx, name)})
    return values


def given(ctx: typer.Context, name: str) -> bool:
    """True when the option stands on the command line."""
    source = ctx.get_parameter_source(name)
    return source is not None and source.name == "COMMANDLINE"
