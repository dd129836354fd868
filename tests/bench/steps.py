# SPDX-License-Identifier: Apache-2.0
"""How well steps are found: the steps that scripts say they made, beside those in the report.

    python tests/bench/steps.py [--more DIR] [SCRIPT...]

Prints one Markdown row a script; where PyTorch's allocator was kept (`--observe`) in a column of its own. Ends with 1
when a count that the report did not call uncertain is not the true one.
"""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path
from typing import Any

from common import ROOT, chosen_scripts, devices_of, scripts_parser
from runs import Run, python, run

DEMO = ROOT / "docs" / "examples" / "train_gpt2.py"
MODES = (("vms", ()), ("observe", ("--observe",)))


def true_steps(script: Path, ended: Run) -> int:
    """What the script says; 0 when it trains nothing. The demo says it in words."""
    if script == DEMO:
        words = [line.split() for line in ended.stdout.splitlines() if line.startswith(b"step ")]
        return max(int(word[1].strip(b":")) for word in words)
    if "backward(" not in script.read_text():
        return 0
    said = [json.loads(line) for line in ended.stdout.splitlines() if line.startswith(b"{")]
    counts = [int(each[name]) for name in ("optimizer_steps", "steps") for each in said if name in each]
    if not counts:
        raise SystemExit(f"steps: {script} printed no number of steps, and ended with {ended.code}:\n{ended.stderr}")
    return counts[0]


def found(report: dict[str, Any]) -> tuple[str, bool]:
    """The count as a cell, and whether the report stands by it."""
    steps = report["steps"]
    if steps["source"] == "not known":
        return "-", False
    doubt = bool(steps.get("doubt"))
    return f"{steps['count']}{' ?' if doubt else ''}", not doubt


def row(script: Path, folder: Path) -> tuple[str, bool]:
    """One line of the table, and whether it holds no wrong count."""
    cells, good, truth = [], True, 0
    for name, options in MODES:
        variables = {"GML_SIM_DEVICES": str(devices_of(script))}
        place = folder / f"{script.stem}-{name}"
        ended = run(["-q", "--simulate", "h100", *options], python(script), place, timeout=600, variables=variables)
        truth = true_steps(script, ended)
        cell, certain = found(ended.report)
        good = good and (not certain or cell == str(truth))
        cells.append(cell)
    return f"| {script.stem} | {truth or '-'} | {' | '.join(cells)} |", good


def main() -> None:
    parser = scripts_parser(__doc__ or "")
    arguments = parser.parse_args()
    scripts = chosen_scripts(arguments)
    if not arguments.scripts:
        scripts.append(DEMO)
    good = True
    print("| script | real | " + " | ".join(name for name, _ in MODES) + " |", flush=True)
    print("| --- | ---: |" + " ---: |" * len(MODES), flush=True)
    with tempfile.TemporaryDirectory() as folder:
        for script in scripts:
            line, sound = row(script, Path(folder))
            good = good and sound
            print(line, flush=True)
    sys.exit(0 if good else 1)


if __name__ == "__main__":
    main()
