# SPDX-License-Identifier: Apache-2.0
"""Starts a run from parsed option values, whichever parser read them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NoReturn

from gml_run.config import make_options
from gml_run.errors import GmlError


def start(values: Mapping[str, str | bool | None], command: Sequence[str]) -> NoReturn:
    """Checks the options and runs the command; ends this process as the command ended."""
    options = make_options(values)
    if not command:
        raise GmlError("no command given", "", "try: gml-run python train.py, or gml-run --help")

    from gml_run.cli.session import run_session

    run_session(options, command)
