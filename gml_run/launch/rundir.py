# SPDX-License-Identifier: Apache-2.0
"""The run directory: where it lies, what it is called, and who may write there."""

from __future__ import annotations

import errno
import os
import re
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from gml_run.errors import GmlError

DEFAULT_PARENT = "gml-runs"
_RANK_VARIABLES = ("RANK", "LOCAL_RANK", "SLURM_PROCID", "OMPI_COMM_WORLD_RANK", "PMI_RANK")
_LOCAL_RANK_VARIABLES = ("LOCAL_RANK", "SLURM_LOCALID", "OMPI_COMM_WORLD_LOCAL_RANK", "MPI_LOCALRANKID")
_FIELD = re.compile(r"%(?:q\{([^}]*)\}|(.?))")


@dataclass(frozen=True, slots=True)
class RunDirectory:
    """`path` is absolute, or None when nothing could be written; `notice` says so in one line."""

    id: str
    path: str | None
    notice: str = ""


def make_run_directory(output: str | None, command: Sequence[str], environ: Mapping[str, str]) -> RunDirectory:
    """Makes the directory of a run. Raises GmlError only for an explicit `output` that cannot be had."""
    rank = rank_of(environ)
    suffix = f"r{rank}-{os.urandom(2).hex()}" if rank else os.urandom(2).hex()
    run_id = f"{time.strftime('%Y%m%d-%H%M%S')}-{command_name(command)}-{suffix}"
    if output is not None:
        return RunDirectory(run_id, _make_named(expand_template(output, environ)))
    try:
        return RunDirectory(run_id, _make_default(os.path.abspath(DEFAULT_PARENT), run_id))
    except OSError as error:
        why = error.strerror or str(error)
    try:
        # The user's number in the name: others' runs are not ours to touch.
        path = _make_default(os.path.join(environ.get("TMPDIR") or "/tmp", f"{DEFAULT_PARENT}-{os.getuid()}"), run_id)
    except OSError:
        return RunDirectory(run_id, None, f"no run directory can be made ({why}): no files are kept")
    return RunDirectory(run_id, path, f"cannot write here ({why}): the run directory is {path}")


def command_name(command: Sequence[str]) -> str:
    """A short name for a command: the script for interpreters, else the program."""
    words = [os.path.basename(command[0])]
    if re.fullmatch(r"(python|pypy|bash|sh|torchrun|accelerate)[\d.]*", words[0]):
        rest = [word for word in command[1:] if not word.startswith("-")]
        scripts = [word for word in rest if word.endswith((".py", ".sh"))]
        if scripts:
            words = [os.path.splitext(os.path.basename(scripts[0]))[0]]
        elif len(command) > 2 and command[1] == "-m":
            words = [command[2]]
    name = re.sub(r"[^A-Za-z0-9._]+", "_", words[0]).strip("._")
    return name[:40] or "run"


def expand_template(template: str, environ: Mapping[str, str]) -> str:
    """%h host, %p process id, %r rank, %t time, %q{VAR} a variable, %% a percent sign."""

    def field(match: re.Match[str]) -> str:
        if match[1] is not None:
            if match[1] not in environ:
                raise GmlError(f"the variable {match[1]!r} is not set", f"-o {template}")
            return environ[match[1]].replace("/", "_")
        values = {
            "h": os.uname().nodename,
            "p": str(os.getpid()),
            "r": rank_of(environ) or "0",
            "t": time.strftime("%Y%m%d-%H%M%S"),
            "%": "%",
        }
        if match[2] not in values:
            raise GmlError(f"%{match[2]} means nothing", f"-o {template}", "known: %h %p %r %t %q{VAR} %%")
        return values[match[2]]

    return _FIELD.sub(field, template)


def rank_of(environ: Mapping[str, str]) -> str | None:
    """The rank that a launcher such as torchrun, srun or mpirun gave us."""
    for name in _RANK_VARIABLES:
        if environ.get(name, "").isdigit():
            return environ[name]
    return None


def local_rank_of(environ: Mapping[str, str]) -> int:
    """The rank within this machine; 0 when nobody gave us one."""
    for name in _LOCAL_RANK_VARIABLES:
        if environ.get(name, "").isdigit():
            return int(environ[name])
    return 0


def _make_named(path: str) -> str:
    path = os.path.abspath(path)
    where = f"-o {path}"
    try:
        os.makedirs(path, exist_ok=True)
        if os.path.exists(os.path.join(path, "run.json")):
            raise GmlError("holds a run already", where, "choose another, or use %t for the time")
        os.makedirs(os.path.join(path, "telemetry"), exist_ok=True)
        if not os.access(path, os.W_OK):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
    except OSError as error:
        raise GmlError(error.strerror or str(error), where, "choose a folder that can be written") from None
    return path


def _make_default(parent: str, run_id: str) -> str:
    os.makedirs(parent, exist_ok=True)
    ignore = os.path.join(parent, ".gitignore")
    if not os.path.exists(ignore):
        with open(ignore, "w", encoding="ascii") as file:
            file.write("*\n")
    path = os.path.join(parent, run_id)
    os.mkdir(path)
    os.mkdir(os.path.join(path, "telemetry"))
    _point_latest(parent, run_id)
    return path


def _point_latest(parent: str, run_id: str) -> None:
    """Makes `latest` name the newest run, in one step; two runs at once must not trip each other."""
    fresh = os.path.join(parent, f".latest-{run_id}")
    try:
        os.symlink(run_id, fresh)
        os.replace(fresh, os.path.join(parent, "latest"))
    except OSError:
        pass  # a file system without links: the run is found by its name
