# SPDX-License-Identifier: Apache-2.0
"""The Typer app: which words are commands of ours, and that every other word is the user's program."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import typer
from typer.core import TyperGroup

from gml_run.cli.diff import diff
from gml_run.cli.doctor import doctor
from gml_run.cli.fit import fit
from gml_run.cli.print_env import print_env
from gml_run.cli.report import report
from gml_run.cli.run import run
from gml_run.cli.runs import runs
from gml_run.cli.top import top
from gml_run.cli.typed import given
from gml_run.cli.words import RESERVED
from gml_run.errors import GmlError

_COMMANDS: dict[str, Callable[..., None]] = {
    "report": report,
    "runs": runs,
    "top": top,
    "diff": diff,
    "doctor": doctor,
    "fit": fit,
    "print-env": print_env,
}
_WORDS = "gml_run.words"


class DefaultRunGroup(TyperGroup):
    """A group that hands a command line which names none of its commands to its own callback.

    `gml-run report` is our command, `gml-run python x.py` runs python, `gml-run -- report` runs a
    program called report. Everything after the first word belongs to that word, verbatim.
    """

    def parse_args(self, ctx: typer.Context, args: list[str]) -> list[str]:  # type: ignore[override]
        given = list(args)
        words = super(TyperGroup, self).parse_args(ctx, args)
        before = len(given) - len(words) - 1
        verbatim = before >= 0 and given[before] == "--"
        ctx.meta[_WORDS] = (words, verbatim)
        ctx.args = words
        return words

    def invoke(self, ctx: typer.Context) -> Any:  # type: ignore[override]
        words, verbatim = ctx.meta[_WORDS]
        if words and not verbatim:
            command = self.get_command(ctx, words[0])
            if command is not None:
                return self._invoke_ours(ctx, command, words)
            if words[0] in RESERVED:
                raise GmlError(
                    "this word is reserved for a command that this version does not have",
                    words[0],
                    f"to run a program of that name: gml-run -- {words[0]}",
                )
        return super(TyperGroup, self).invoke(ctx)

    def _invoke_ours(self, ctx: typer.Context, command: Any, words: list[str]) -> Any:
        name = words[0]
        for parameter in self.params:
            if given(ctx, parameter.name or ""):
                raise GmlError(
                    f"{parameter.opts[-1]} is an option for running a program, not for {name!r}",
                    "",
                    f"see gml-run {name} --help",
                )
        ctx.invoked_subcommand = name
        with ctx:
            inner = command.make_context(name, words[1:], parent=ctx)
            with inner:
                return inner.command.invoke(inner)


def make_app() -> typer.Typer:
    """The whole command line."""
    app = typer.Typer(
        cls=DefaultRunGroup,
        name="gml-run",
        invoke_without_command=True,
        rich_markup_mode="rich",
        context_settings={"allow_interspersed_args": False, "help_option_names": ["--help", "-h"]},
        subcommand_metavar="[--] COMMAND [ARGS]...",
        pretty_exceptions_enable=False,
    )
    app.callback()(run)
    for name, function in _COMMANDS.items():
        # The words of a program that is run stay its own, options included.
        app.command(name, context_settings={"allow_interspersed_args": function is not fit})(function)
    return app
