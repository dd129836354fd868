# SPDX-License-Identifier: Apache-2.0
"""The entries of report.json for out-of-memory failures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from gml_run._abi import OomRecord
from gml_run.analysis.oom import SOURCES, classify, smaller_batch, top_sizes
from gml_run.analysis.steps import unit_of
from gml_run.report.lines import oom_lines
from gml_run.telemetry.reader import ProcessSnapshot

if TYPE_CHECKING:
    from gml_run.telemetry.sites import Sites


def oom_entries(
    processes: Sequence[ProcessSnapshot],
    lines: Sequence[Sites | None],
    limit_bytes: int | None,
    others: Mapping[int, int | None],
) -> list[dict[str, Any]]:
    """All failures in the order of time, each with its kind; `others` as in build_report."""
    entries = []
    for process, sites in zip(processes, lines, strict=True):
        first = process.oom_count - len(process.ooms)
        for number, oom in enumerate(process.ooms, first):
            alone = others.get(process.pid) == 0 or (process.simulated and not others.get(process.pid))
            entries.append({**_oom(oom, process, limit_bytes, alone), **oom_lines(sites, number)})
    return sorted(entries, key=lambda entry: int(entry["time_ns"]))


def _oom(oom: OomRecord, process: ProcessSnapshot, limit_bytes: int | None, alone: bool) -> dict[str, Any]:
    verdict = classify(oom, limit_bytes, alone)
    entry: dict[str, Any] = {name: value for name, value in oom._asdict().items() if not name.startswith("top")}
    entry.update(
        pid=process.pid,
        rank=process.rank,
        stream=None if oom.stream == (1 << 64) - 1 else oom.stream,
        source=SOURCES[min(oom.source, len(SOURCES) - 1)],
        kind=verdict.kind,
        sentence=verdict.sentence,
        advice=verdict.advice,
        top_sizes=[{"bytes": size, "count": count} for size, count in top_sizes(oom)],
        batch=smaller_batch(oom, verdict.kind, limit_bytes),
        step_unit=next((unit_of(device) for device in process.devices if device.index == oom.device), "steps"),
    )
    return entry
