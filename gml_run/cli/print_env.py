# SPDX-License-Identifier: Apache-2.0
"""`gml-run print-env`: the environment of a run, for launchers that cannot be wrapped."""

from __future__ import annotations

from typing import Annotated

import typer

from gml_run.cli import specs
from gml_run.cli.typed import merged, option


def print_env(
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
    output: Annotated[str | None, option(specs.OUTPUT)] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the variables as a JSON object.")] = False,
) -> None:
    """Print shell commands that set the environment of a run.

    For programs that a service, a notebook or a scheduler starts.
    A run directory is made; gml-run report shows it at any time.

    [bold]Examples[/bold]

    eval "$(gml-run print-env --observe)"

    gml-run print-env --simulate h100 -o runs/%t

    gml-run print-env --simulate h100 --json
    """
    import json
    import os
    import shlex

    from gml_run.cli.screen import complain
    from gml_run.cli.session import choose_native, prepare_environment
    from gml_run.config import make_options
    from gml_run.errors import GmlError
    from gml_run.launch.environment import user_environment
    from gml_run.launch.rundir import make_run_directory
    from gml_run.launch.variables import checked_variables
    from gml_run.report.files import write_json
    from gml_run.report.record import RunRecord

    options = make_options(merged(ctx))
    native, reason = choose_native(options)
    if native is None:
        raise GmlError(reason, "", "nothing to set")
    environ = user_environment()
    checked_variables(environ)
    directory = make_run_directory(options.output, ["print-env"], environ)
    if directory.notice:
        complain(directory.notice)
    if directory.path is not None:
        record = RunRecord.begin(directory.id, "", ["print-env"], options, "")
        write_json(os.path.join(directory.path, "run.json"), {**record.opening(), "launcher_pid": 0})
    prepared = prepare_environment(options, native, directory.path, environ)
    fresh = {name: value for name, value in sorted(prepared.items()) if environ.get(name) != value}
    if as_json:
        typer.echo(json.dumps(fresh, indent=1))
        return
    for name, value in fresh.items():
        typer.echo(f"export {name}={shlex.quote(value)}")
