# SPDX-License-Identifier: Apache-2.0
"""Finds what the same command held under other allocators, in runs that were really made."""

from __future__ import annotations

import os
from typing import Any

from gml_run.report.files import read_json
from gml_run.report.verdict import peak_device

_MOST_RUNS = 60  # the newest ones; reading them all could take long


def find_baselines(report: dict[str, Any], directory: str) -> list[dict[str, Any]]:
    """For each other allocator the newest finished run of the same command beside `directory`."""
    parent = os.path.dirname(directory)
    try:
        names = sorted(os.listdir(parent), reverse=True)[:_MOST_RUNS]
    except OSError:
        return []
    found: dict[str, dict[str, Any]] = {}
    for name in names:
        path = os.path.join(parent, name)
        if name.startswith(".") or os.path.islink(path) or path == directory:
            continue
        try:
            other = read_json(os.path.join(path, "report.json"))
            entry = _baseline(report, other)
        except (OSError, ValueError, KeyError, TypeError):
            continue  # still running, damaged, or of another version
        if entry is not None:
            found.setdefault(entry["allocator"], entry)
    return sorted(found.values(), key=lambda entry: str(entry["allocator"]))


def _baseline(report: dict[str, Any], other: dict[str, Any]) -> dict[str, Any] | None:
    mine, theirs = report["run"], other["run"]
    same = all(mine[key] == theirs[key] for key in ("command", "simulate", "limit_bytes"))
    if not same or theirs["allocator"] == mine["allocator"] or theirs["exit_code"] != 0 or other["not_served"]:
        return None
    return {
        "allocator": theirs["allocator"],
        "peak_reserved_bytes": peak_device(other)["peak_reserved_bytes"],
        "source": "measured",
        "run": theirs["id"],
    }
