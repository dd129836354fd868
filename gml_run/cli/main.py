# SPDX-License-Identifier: Apache-2.0
"""The gml-run command: one Typer app whose default command runs a program."""

from __future__ import annotations

import errno
import os
import signal
import sys
from typing import NoReturn

from gml_run.cli.screen import complain
from gml_run.errors import OWN_FAILURE, GmlError


def main() -> NoReturn:
    """Entry point of the console script: exactly one line for every failure of our own, no traceback."""
    if signal.getsignal(signal.SIGINT) == signal.default_int_handler:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    from gml_run.launch.descriptors import hold_standard_descriptors

    hold_standard_descriptors()
    code = OWN_FAILURE
    try:
        code = dispatch(sys.argv[1:])
    except GmlError as error:
        complain(error.line())
        code = error.exit_code
    except BrokenPipeError:
        code = 128 + signal.SIGPIPE  # the reader of a report left
    except Exception as error:
        if os.environ.get("GML_DEBUG"):
            raise
        if isinstance(error, OSError) and error.errno == errno.ENOSPC and error.filename is None:
            complain(f"standard output: {error.strerror}")
            os._exit(code)
        complain(f"internal error: {type(error).__name__}: {error}; set GML_DEBUG=1 for details")
    try:
        sys.stdout.flush()
        sys.stderr.flush()
    except (OSError, ValueError, AttributeError):
        pass
    os._exit(code)


def dispatch(words: list[str]) -> int:
    """Runs one command line; returns the exit code of our own commands."""
    from gml_run.cli.fast import parse_run
    from gml_run.cli.words import OURS

    plain = parse_run(words, os.environ, OURS)
    if plain is not None:
        from gml_run.cli.start import start

        start(*plain)

    import typer
    from typer.main import get_command

    from gml_run.cli.app import make_app

    try:
        result = get_command(make_app()).main(args=words, prog_name="gml-run", standalone_mode=False)
    except typer.Abort:
        return 130
    except typer.TyperException as error:
        message = error.format_message().strip().rstrip(".").replace("\n", " ")
        raise GmlError(message, "", "see gml-run --help") from None
    return result if isinstance(result, int) else 0
