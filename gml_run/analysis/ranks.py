# SPDX-License-Identifier: Apache-2.0
"""The processes of a run side by side: what each rank holds, and how unequal they are."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from gml_run.analysis.oom import failure_count
from gml_run.analysis.steps import Steps, steps_of
from gml_run.analysis.usage import usage_of
from gml_run.telemetry.reader import ProcessSnapshot
from gml_run.units import format_percent, format_size


@dataclass(frozen=True, slots=True)
class RankRow:
    """One process on one device."""

    name: str
    device: int
    live: int
    reserved: int
    peak_reserved: int
    waste_ratio: float
    steps: Steps
    ooms: int


def rank_rows(processes: Sequence[ProcessSnapshot]) -> list[RankRow]:
    """Every place that holds or held memory, in the order of ranks, then of process ids."""
    rows = []
    order = sorted(processes, key=lambda process: (process.rank is None, process.rank or 0, process.pid))
    for process in order:
        for device in process.devices:
            usage = usage_of(process, device)
            if not usage.peak_reserved:
                continue
            name = f"rank {process.rank}" if process.rank is not None else f"pid {process.pid}"
            ooms = failure_count(process, device.index)
            rows.append(
                RankRow(
                    name,
                    device.index,
                    usage.live,
                    usage.reserved,
                    usage.peak_reserved,
                    usage.waste_ratio,
                    steps_of(device),
                    ooms,
                )
            )
    return rows


def imbalance_text(rows: Sequence[RankRow]) -> str:
    """How far the fullest and the slowest lie from the mean; empty for fewer than two."""
    if len(rows) < 2:
        return ""
    fullest = max(rows, key=lambda row: row.peak_reserved)
    mean = sum(row.peak_reserved for row in rows) / len(rows)
    text = (
        f"fullest: {fullest.name}, {format_size(fullest.peak_reserved)}, "
        f"{format_percent(fullest.peak_reserved / mean - 1)} above the mean"
    )
    timed = [row for row in rows if row.steps.per_s]
    if len(timed) == len(rows):
        slowest = max(timed, key=lambda row: row.steps.p50_s)
        quickest = min(timed, key=lambda row: row.steps.p50_s)
        text += f" · slowest: {slowest.name}, {format_percent(slowest.steps.p50_s / quickest.steps.p50_s - 1)} slower"
        text += f" than {quickest.name}"
    return text
