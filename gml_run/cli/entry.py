# SPDX-License-Identifier: Apache-2.0
"""Where the gml-run command begins: among our own modules, whatever PYTHONPATH and the folder hold for the program.

Nothing but what the interpreter has loaded by itself may be imported at the top of this file.
"""

from __future__ import annotations

import os
import sys


def main() -> None:
    """Entry point of the console script; never returns."""
    put_users_folders_last()
    from gml_run.cli.main import main as begin

    begin()


def put_users_folders_last() -> None:
    """A signal.py of the program's must not stand for that of the standard library, nor its rich/ for ours."""
    theirs = {os.path.abspath(folder) for folder in os.environ.get("PYTHONPATH", "").split(":") if folder}
    if sys.path and sys.path[0] in ("", _here()):  # python -m looks here first
        theirs.add(sys.path[0])
    last = [folder for folder in sys.path if folder in theirs]
    sys.path[:] = [folder for folder in sys.path if folder not in theirs] + last


def _here() -> str:
    try:
        return os.getcwd()
    except OSError:
        return ""  # it was deleted
