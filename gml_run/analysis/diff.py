# SPDX-License-Identifier: Apache-2.0
"""Compares the figures of two finished runs, and checks rules about how they may differ."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from gml_run.errors import GmlError
from gml_run.units import format_count, format_percent, format_seconds, format_size, parse_size

TROUBLE = 2  # exit code, as diff and cmp use it

_RULE = re.compile(r"\s*(\w+)\s*(>=|<=|>|<)\s*([+-]?)\s*([0-9.]+)\s*([A-Za-z%]*)\s*")


@dataclass(frozen=True, slots=True)
class Metric:
    """How one figure is taken from a report and shown."""

    take: Callable[[Mapping[str, Any]], float]
    show: Callable[[Any], str]


@dataclass(frozen=True, slots=True)
class Change:
    """One figure in both runs."""

    name: str
    before: float
    after: float
    texts: tuple[str, str]

    @property
    def ratio(self) -> float | None:
        """Relative change; None where it is from nothing."""
        if self.before == 0:
            return 0.0 if self.after == 0 else None
        return self.after / self.before - 1


def _largest(name: str) -> Callable[[Mapping[str, Any]], float]:
    return lambda report: max((device[name] or 0 for device in _devices(report)), default=0)


def _sum(*names: str) -> Callable[[Mapping[str, Any]], float]:
    def take(report: Mapping[str, Any]) -> float:
        total: float = 0
        for device in _devices(report):
            value: Any = device
            for name in names:
                value = value[name]
            total += value
        return total

    return take


def _devices(report: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    return [device for process in report["processes"] for device in process["devices"]]


def _size(value: float) -> str:
    return format_size(int(value))


METRICS: dict[str, Metric] = {
    "peak_reserved": Metric(_largest("peak_reserved_bytes"), _size),
    "peak_live": Metric(_largest("peak_live_bytes"), _size),
    "peak_used": Metric(lambda report: float(report["device"]["peak_used_bytes"]), _size),
    "waste_ratio": Metric(_largest("waste_ratio"), format_percent),
    "mean_waste_ratio": Metric(_largest("mean_waste_ratio"), format_percent),
    "driver_time": Metric(_sum("driver_time_s"), format_seconds),
    "duration": Metric(lambda report: float(report["run"]["duration_s"] or 0), format_seconds),
    "allocs": Metric(_sum("allocs"), format_count),
    "stitches": Metric(_sum("placements", "stitch"), format_count),
    "extends": Metric(_sum("placements", "extend"), format_count),
    "grows": Metric(_sum("placements", "grow"), format_count),
    "retries": Metric(_sum("retries"), format_count),
    "ooms": Metric(_sum("ooms"), format_count),
}


def compare(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[Change]:
    """Every figure of both reports."""
    changes = []
    for name, metric in METRICS.items():
        one, two = metric.take(before), metric.take(after)
        changes.append(Change(name, one, two, (metric.show(one), metric.show(two))))
    return changes


def check_rule(rule: str, changes: list[Change]) -> str | None:
    """What breaks the rule, in words; None when it holds.

    "peak_reserved>+2%" a change in percent, "peak_reserved>+100M" a change in bytes,
    "ooms>0" the figure of the second run itself.
    """
    match = _RULE.fullmatch(rule)
    if match is None:
        raise GmlError("cannot be read", f"--fail-on {rule}", "write it like 'peak_reserved>+2%'", TROUBLE)
    name, operator, sign, number, unit = match.groups()
    change = next((change for change in changes if change.name == name), None)
    if change is None:
        raise GmlError(f"no figure is called {name!r}", "--fail-on", f"known: {', '.join(METRICS)}", TROUBLE)
    bound = _bound(rule, number, unit) * (-1 if sign == "-" else 1)
    if unit == "%" and sign:
        actual = float("inf") if change.ratio is None else 100 * change.ratio
    elif unit == "%":
        actual = 100 * change.after
    else:
        actual = change.after - change.before if sign else change.after
    broken = {">": actual > bound, "<": actual < bound, ">=": actual >= bound, "<=": actual <= bound}[operator]
    return f"{rule}: {change.texts[0]} became {change.texts[1]}" if broken else None


def _bound(rule: str, number: str, unit: str) -> float:
    try:
        if unit in ("", "%"):
            return float(number)
        return float(parse_size(number + unit))
    except ValueError as bad:
        raise GmlError(str(bad), f"--fail-on {rule}", "", TROUBLE) from None
