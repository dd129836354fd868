# SPDX-License-Identifier: Apache-2.0
"""The Python lines that hold memory, as entries of report.json and as words (`--stacks`)."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from gml_run.telemetry.reader import ProcessSnapshot
    from gml_run.telemetry.sites import Site, Sites

MOST = 20  # lines of a device in report.json; the rest is summed up


def sites_of(processes: Sequence[ProcessSnapshot], sites: Mapping[int, Sequence[Sites]]) -> list[Sites | None]:
    """What belongs to each process: with exec one id has several images, the oldest first."""
    seen: dict[int, int] = {}
    found: list[Sites | None] = []
    for process in processes:
        image = seen.get(process.pid, 0)
        seen[process.pid] = image + 1
        images = sites.get(process.pid, ())
        found.append(images[image] if image < len(images) else None)
    return found


def device_lines(sites: Sites | None, device: int) -> dict[str, Any]:
    """What a device's entry says about lines when most was live; nothing without --stacks."""
    if sites is None:
        return {}
    lines = sites.at_peak.get(device, ())
    return {
        "lines": [_entry(site) for site in lines[:MOST]],
        "lines_bytes": sum(site.bytes for site in lines),  # of all, also of those not listed
    }


def oom_lines(sites: Sites | None, number: int) -> dict[str, Any]:
    """The same for failure `number` of a process, and which line asked."""
    if sites is None or number not in sites.ooms:
        return {}
    oom = sites.ooms[number]
    return {"lines": [_entry(site) for site in oom.held], "asked_by": _entry(oom.asked) if oom.asked else None}


def _entry(site: Site) -> dict[str, Any]:
    return {
        "file": site.file,
        "line": site.line,
        "function": site.function,
        "bytes": site.bytes,
        "count": site.count,
    }


def line_text(entry: Mapping[str, Any], directory: str | None) -> str:
    """A line as people say it: where it is, below the working directory if it is there."""
    function = entry["function"]
    if not entry["line"]:
        if function.startswith("pt_autograd"):
            return "backward pass (in autograd's own thread, no Python line)"
        return function if not function or " " in function else f"thread {function}, no Python line"
    file = entry["file"]
    if directory and file.startswith(directory.rstrip("/") + "/"):
        file = os.path.relpath(file, directory)
    elif "-packages/" in file:
        file = file.rpartition("-packages/")[2]
    where = f"{file}:{entry['line']}"
    return where if function in ("", "?", "<module>") else f"{where} in {function}"


def unread_lines(processes: Sequence[Mapping[str, Any]]) -> list[str]:
    """Says whose Python could not be read."""
    return [
        f"process {process['pid']}: --stacks names no lines: {process['lines_read_from']}"
        for process in processes
        if "not" in process.get("lines_read_from", "")
    ]
