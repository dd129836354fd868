# SPDX-License-Identifier: Apache-2.0
"""`gml-run fit`: the smallest device, or the largest value of an argument, with which a command fits."""

from __future__ import annotations

import json
import os
import re
import tempfile
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from gml_run.cli.screen import complain
from gml_run.errors import GmlError

if TYPE_CHECKING:
    from gml_run.launch.probe import Outcome

ALLOCATORS = ("vms", "expandable", "native")
_VARY = re.compile(r"([A-Za-z_]\w*)=(\d+)\.\.(\d+)", re.ASCII)
STEP = 64 << 20  # devices are tried in steps of 64 MiB, or 1 % where that is more


def fit(
    command: Annotated[list[str], typer.Argument(metavar="COMMAND", help="The program and its arguments.")],
    simulate: Annotated[
        str | None, typer.Option("--simulate", metavar="NAME[:SIZE]", help="The simulated device to try it on.")
    ] = None,
    vary: Annotated[
        str | None,
        typer.Option("--vary", metavar="NAME=LOW..HIGH", help="Look for the largest value of {NAME} in the command."),
    ] = None,
    allocators: Annotated[
        str, typer.Option("--allocators", metavar="A,B,...", help="Which allocators to compare.")
    ] = ",".join(ALLOCATORS),
    goal: Annotated[str, typer.Option("--goal", help="The goal of the stitching allocator.")] = "memory",
    as_json: Annotated[bool, typer.Option("--json", help="Print the results as JSON.")] = False,
) -> None:
    """Find the smallest device on which a command finishes, with each allocator; or the largest value that fits.

    The command is run several times. Without --vary the device is simulated;
    with it, a real GPU serves as well (leave --simulate out). The program has
    to end by itself and to fail when memory runs out.

    [bold]Examples[/bold]

    gml-run fit -- python train.py

    gml-run fit --simulate a100-40g --vary batch=1..512 -- python train.py --batch {batch}
    """
    chosen = [name.strip() for name in allocators.split(",") if name.strip()]
    unknown = [name for name in chosen if name not in ALLOCATORS]
    if unknown or not chosen:
        raise GmlError(
            f"{unknown[0] if unknown else 'none'!r} cannot be compared", "--allocators", "use vms, expandable, native"
        )
    with tempfile.TemporaryDirectory(prefix="gml-fit-") as folder:
        results = (
            _largest_values(command, simulate, vary, chosen, goal, folder)
            if vary is not None
            else _smallest_devices(command, simulate or "h100", chosen, goal, folder)
        )
    if as_json:
        typer.echo(json.dumps(results, indent=1, ensure_ascii=False))
        return
    for line in _table(results):
        typer.echo(line)


class _Tries:
    """Runs the command and says each try on stderr; keeps nothing but the counts."""

    def __init__(self, command: Sequence[str], goal: str, folder: str) -> None:
        self.command, self.goal, self.folder, self.count = list(command), goal, folder, 0

    def run(self, simulation: str | None, allocator: str, **values: int) -> Outcome:
        from gml_run.launch.probe import probe
        from gml_run.units import format_size

        self.count += 1
        words = self.command
        for name, value in values.items():
            words = [word.replace("{" + name + "}", str(value)) for word in words]
        directory = os.path.join(self.folder, str(self.count))
        outcome = probe(words, directory, simulation, ["--goal", self.goal], allocator)
        where = [f"{name}={value}" for name, value in values.items()] or [simulation or "this GPU"]
        held = f", held {format_size(outcome.peak_reserved)}" if outcome.fitted else ""
        complain(f"fit: {allocator:<10} {' '.join(where):<18} {'fits' if outcome.fitted else 'does not fit'}{held}")
        return outcome


def _smallest_devices(
    command: Sequence[str], simulate: str, allocators: Sequence[str], goal: str, folder: str
) -> dict[str, Any]:
    from gml_run.analysis.search import smallest_that_fits
    from gml_run.config import parse_simulation

    simulation = parse_simulation(simulate)
    tries = _Tries(command, goal, folder)
    rows: list[dict[str, Any]] = []
    for allocator in allocators:
        first = tries.run(simulation.text, allocator)
        if not first.fitted:
            rows.append({"allocator": allocator, "smallest_device_bytes": None, "held_bytes": None, "retries": None})
            continue
        if first.peak_reserved == 0:
            raise GmlError("the command used no GPU memory that could be seen", " ".join(command))
        floor = first.peak_live + first.outside
        high = first.peak_reserved + first.outside + STEP
        step = max(STEP, high // 100 // STEP * STEP)
        last: dict[str, int] = {}

        def fits(size: int, allocator: str = allocator, last: dict[str, int] = last) -> bool:
            outcome = tries.run(f"{simulation.profile}:{size >> 20}M", allocator)
            if outcome.fitted:
                last.update(held_bytes=outcome.peak_reserved, retries=outcome.retries)
            return outcome.fitted

        size = smallest_that_fits(floor - step, high, step, fits)
        if not last:
            last = {"held_bytes": first.peak_reserved, "retries": first.retries}
        rows.append({"allocator": allocator, "smallest_device_bytes": size, "step_bytes": step, **last})
    return {"command": list(command), "device": simulation.text, "tries": tries.count, "rows": rows}


def _largest_values(
    command: Sequence[str], simulate: str | None, vary: str, allocators: Sequence[str], goal: str, folder: str
) -> dict[str, Any]:
    from gml_run.analysis.search import largest_that_fits

    match = _VARY.fullmatch(vary)
    if match is None or int(match[2]) > int(match[3]):
        raise GmlError("not of the form NAME=LOW..HIGH", f"--vary {vary}", "write, for example, --vary batch=1..512")
    name, low, high = match[1], int(match[2]), int(match[3])
    if not any("{" + name + "}" in word for word in command):
        raise GmlError(
            f"the command does not contain {{{name}}}", f"--vary {vary}", f"write {{{name}}} where the value goes"
        )
    tries = _Tries(command, goal, folder)
    rows: list[dict[str, Any]] = []
    for allocator in allocators:

        def fits(value: int, allocator: str = allocator) -> bool:
            return tries.run(simulate, allocator, **{name: value}).fitted

        rows.append({"allocator": allocator, "largest": largest_that_fits(low, high, fits)})
    return {
        "command": list(command),
        "device": simulate or "this GPU",
        "name": name,
        "tries": tries.count,
        "rows": rows,
    }


def _table(results: dict[str, Any]) -> list[str]:
    from gml_run.units import format_size

    lines = []
    for row in results["rows"]:
        if "largest" in row:
            value = "does not fit at all" if row["largest"] is None else f"{results['name']} up to {row['largest']}"
            lines.append(f"{row['allocator']:<11} {value}")
        elif row["smallest_device_bytes"] is None:
            lines.append(f"{row['allocator']:<11} does not fit on {results['device']}")
        else:
            lines.append(
                f"{row['allocator']:<11} fits on {format_size(row['smallest_device_bytes'])} "
                f"(to {format_size(row['step_bytes'])}), holding {format_size(row['held_bytes'])} there"
            )
    return lines
