# SPDX-License-Identifier: Apache-2.0
"""Makes Typer options from the definitions in specs.py."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

import typer

from gml_run.cli.config_file import read_config
from gml_run.cli.fast import check_given
from gml_run.cli.specs import RUN_SPECS, Spec


def option(spec: Spec) -> Any:
    """What stands in `Annotated[str | None, option(SPEC)]`."""
    settings: dict[str, Any] = {"help": spec.help, "rich_help_panel": spec.panel}
    if spec.metavar:
        settings.update(metavar=spec.metavar, envvar=spec.variable or None)
    return typer.Option(*spec.flags, **settings)


def merged(ctx: typer.Context) -> dict[str, str | bool | None]:
    """The values of the run's options that a command has: command line, variables, file, defaults."""
    values: dict[str, str | bool | None] = {}
    file = read_config()
    for name, value in ctx.params.items():
        source = ctx.get_parameter_source(name)
        values[name] = value if source is None or source.name != "DEFAULT" else _default(name, value, file)
    check_given({name: value for name, value in values.items() if given(ctx, name)})
    return values


def _default(name: str, value: Any, file: Mapping[str, str | bool]) -> str | bool | None:
    """A switch's variable is read here: Typer would say of a bad value no more than that it is bad."""
    spec = next((spec for spec in RUN_SPECS if spec.name == name), None)
    variable = spec.variable if spec is not None and not spec.metavar else ""
    return (variable and os.environ.get(variable)) or file.get(name, value)


def given(ctx: typer.Context, name: str) -> bool:
    """True when the option stands on the command line."""
    source = ctx.get_parameter_source(name)
    return source is not None and source.name == "COMMANDLINE"
