# SPDX-License-Identifier: Apache-2.0
"""What happened in a run, in the order of time and in words: for the log pane and the report."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from gml_run._abi import EVENT_KINDS
from gml_run.telemetry.reader import Event, ProcessSnapshot
from gml_run.units import format_count, format_seconds, format_size

_WORDS = dict(EVENT_KINDS)
NOTICE = "NOTICE"  # of the launcher itself


@dataclass(frozen=True, slots=True)
class Row:
    """One event of one process; `pid` is None for the launcher."""

    time_ns: int
    pid: int | None
    rank: int | None
    kind: str
    device: int | None
    count: int
    bytes: int
    text: str  # in words

    @property
    def who(self) -> str:
        """Whose it is, as the table of ranks names it."""
        if self.pid is None:
            return "gml-run"
        return f"rank {self.rank}" if self.rank is not None else f"pid {self.pid}"


def event_rows(processes: Sequence[ProcessSnapshot], notices: Sequence[str] = (), started_ns: int = 0) -> list[Row]:
    """All that is known, the oldest first; notices stand at the start of the run."""
    rows = [Row(started_ns, None, None, NOTICE, None, 1, 0, notice) for notice in notices]
    for process in processes:
        rows += [
            Row(
                event.time_ns,
                process.pid,
                process.rank,
                event.kind,
                event.device,
                event.count,
                event.bytes,
                words_of(event),
            )
            for event in process.events
        ]
    return sorted(rows, key=lambda row: row.time_ns)


def words_of(event: Event) -> str:
    """One event as a phrase."""
    text = event.text or _WORDS[event.kind]
    if event.kind == "OOM" and event.bytes:
        text += f": {format_size(event.bytes)} was asked for"
    elif event.kind == "FLUSH" and event.bytes:
        text = f"cudaMalloc of {format_size(event.bytes)} failed: PyTorch empties its cache or gives up"
    if event.device:
        text += f" (device {event.device})"
    return f"{text}, {format_count(event.count)} times" if event.count > 1 else text


def row_text(row: Row, started_ns: int) -> str:
    """One line: when, who, what."""
    after = format_seconds(round(max(0, row.time_ns - started_ns) / 1e9, 3)) if row.time_ns > started_ns else "0 s"
    return f"{after:>9}  {row.who:<10} {row.text}"
