# SPDX-License-Identifier: Apache-2.0
"""Parses the usual command line of a run without Typer, whose import costs more than all the rest.

Whatever is not plain (help, errors, our other commands, shell completion) is left to Typer, which works
from the same definitions.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from gml_run.cli.config_file import read_config
from gml_run.cli.specs import RUN_SPECS, Spec
from gml_run.config import Told
from gml_run.errors import GmlError

Values = dict[str, str | bool | None]

_BY_FLAG = {flag: spec for spec in RUN_SPECS for flag in spec.flags}


def parse_run(
    words: Sequence[str], environ: Mapping[str, str], ours: frozenset[str]
) -> tuple[Values, list[str]] | None:
    """Option values and the user's command; None when Typer has to look at it. `ours`: our own commands."""
    if any(name.startswith("_GML_RUN_COMPLETE") for name in environ):
        return None
    given: Values = {}
    position = 0
    while position < len(words):
        word = words[position]
        position += 1
        if word == "--":
            command = list(words[position:])
            return (_merged(given, environ), command) if command else None
        if not word.startswith("-") or word == "-":
            return None if word in ours else (_merged(given, environ), list(words[position - 1 :]))
        flag, equals, value = word.partition("=")
        spec = _BY_FLAG.get(flag)
        if spec is None or (not spec.metavar and equals):
            return None
        if not spec.metavar:
            given[spec.name] = True
        elif equals and flag.startswith("--"):
            given[spec.name] = value
        elif not equals and position < len(words) and not words[position].startswith("-"):
            given[spec.name] = words[position]
            position += 1
        else:
            return None
    return None


def _merged(given: Values, environ: Mapping[str, str]) -> Values:
    check_given(given)
    return {**default_values(environ), **given}


def check_given(given: Mapping[str, str | bool | None]) -> None:
    """Raises GmlError when options of one command line contradict each other, or one has nothing for a value."""
    for spec in RUN_SPECS:
        if given.get(spec.name) == "":
            raise GmlError("its value is empty", spec.flags[0], "is a variable in it not set?")
    allocator = given.get("allocator")
    if given.get("observe") and allocator not in (None, "observe"):
        raise GmlError(
            f"--observe and --allocator {allocator} contradict each other", "", "give the one that is meant"
        )


def default_values(environ: Mapping[str, str]) -> Values:
    """What holds when the command line says nothing: the GML_* variables, the file, the defaults."""
    file = read_config()
    return {spec.name: _default(spec, environ, file) for spec in RUN_SPECS}


def _default(spec: Spec, environ: Mapping[str, str], file: Mapping[str, str | bool]) -> str | bool | None:
    variable = environ.get(spec.variable, "") if spec.variable else ""
    if not spec.metavar:
        return variable or file.get(spec.name, False)
    return (Told(variable, spec.variable) if variable else file.get(spec.name)) or spec.default or None
