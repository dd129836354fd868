# SPDX-License-Identifier: Apache-2.0
"""Finds the runs of this folder and reads what they left."""

from __future__ import annotations

import os
import shutil
from collections.abc import Sequence
from typing import Any

from gml_run.errors import GmlError
from gml_run.launch.rundir import DEFAULT_PARENT
from gml_run.report.files import read_json

# What no version leaves out.
_OPENING = ("run", "program", "not_served", "started_s")
_REPORT = ("run", "verdict", "device", "steps", "processes", "ooms", "events", "problems", "not_served", "timeline")


def find_run(name: str) -> str:
    """The directory of a run: a path, a name below gml-runs/, the start of one, or "latest"."""
    if name.endswith(".json"):
        name = os.path.dirname(name) or "."
    for path in (name, os.path.join(DEFAULT_PARENT, name)):
        if os.path.isfile(os.path.join(path, "run.json")):
            return path
    matches = [run for run in list_runs(DEFAULT_PARENT) if os.path.basename(run).startswith(name)]
    if len(matches) == 1:
        return matches[0]
    if matches:
        raise GmlError(f"{len(matches)} runs begin with {name!r}", "", "give more of the name, see gml-run runs")
    raise GmlError("no such run", name, "see gml-run runs")


def short_path(path: str) -> str:
    """The path from here, when it lies below."""
    try:
        relative = os.path.relpath(path)
        return os.path.abspath(path) if relative.startswith("..") else relative
    except OSError:
        return path  # the working directory is gone: then paths were absolute from the start


def list_runs(parent: str) -> list[str]:
    """The run directories below `parent`, oldest first."""
    try:
        names = sorted(os.listdir(parent))
    except OSError:
        return []
    paths = [os.path.join(parent, name) for name in names if name != "latest"]
    return [path for path in paths if os.path.isfile(os.path.join(path, "run.json"))]


def delete_runs(parent: str, keep: int) -> list[str]:
    """Deletes the oldest runs that have ended, until `keep` of those are left; returns which. Folders that are
    no run of ours, and links, are never touched."""
    ended = [path for path in list_runs(parent) if not os.path.islink(path) and _is_over(path)]
    gone = ended[: max(0, len(ended) - keep)]
    for path in gone:
        shutil.rmtree(path)
    latest = os.path.join(parent, "latest")
    if os.path.islink(latest) and not os.path.exists(latest):
        os.unlink(latest)
    return gone


def _is_over(directory: str) -> bool:
    try:
        return not is_alive(read_opening(directory))
    except GmlError:
        return True  # damaged: a running launcher's is whole


def read_opening(directory: str) -> dict[str, Any]:
    """run.json of a run."""
    return _read(directory, "run.json", _OPENING)


def read_report(directory: str) -> dict[str, Any] | None:
    """report.json of a run; None while it has not ended."""
    if not os.path.exists(os.path.join(directory, "report.json")):
        return None
    report = _read(directory, "report.json", ("schema_version",))
    if report.get("schema_version") != 1:
        raise GmlError(
            f"its report has version {report.get('schema_version')}", directory, "this gml-run reads version 1"
        )
    return _whole(report, os.path.join(directory, "report.json"), _REPORT)


def is_alive(opening: dict[str, Any]) -> bool:
    """True when the launcher of a run still runs (a recycled process id is told by its start time)."""
    pid = opening.get("launcher_pid", 0)
    return bool(pid) and process_start(pid) == opening.get("launcher_start")


def process_start(pid: int) -> int | None:
    """When a process started, in clock ticks since boot; None when there is no such process."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            return int(file.read().rsplit(b")", 1)[1].split()[19])
    except (OSError, IndexError, ValueError):
        return None


def _read(directory: str, name: str, parts: Sequence[str]) -> dict[str, Any]:
    path = os.path.join(directory, name)
    try:
        return _whole(read_json(path), path, parts)
    except OSError as error:
        raise GmlError(error.strerror or str(error), path) from None
    except ValueError as error:
        raise GmlError(f"is damaged: {error}", path) from None


def _whole(content: dict[str, Any], path: str, parts: Sequence[str]) -> dict[str, Any]:
    missing = [part for part in parts if part not in content]
    if missing:
        raise GmlError(f"is damaged: it has no {missing[0]!r}", path)
    return content
