# SPDX-License-Identifier: Apache-2.0
"""Runs one benchmark, shows its table, and with --write puts it into docs/benchmarks.md.

python tests/bench/publish.py waste|speed|fit|paper|flat [--write] [ARGUMENT ...]
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from datetime import UTC, datetime

from common import BENCH, ROOT

NAMES = ("waste", "speed", "fit", "paper", "flat")
DOCUMENT = ROOT / "docs" / "benchmarks.md"


def spliced(document: str, name: str, table: str) -> str:
    """The document with the text between a benchmark's markers replaced."""
    markers = re.compile(rf"(<!-- {name} -->\n).*?(<!-- end of {name} -->)", re.DOTALL)
    if not markers.search(document):
        raise SystemExit(f"publish: no place for {name} in {DOCUMENT.name}")
    return markers.sub(lambda found: f"{found[1]}\n{table.strip()}\n\n{found[2]}", document)


def revision() -> str:
    command = ["git", "-C", str(ROOT), "rev-parse", "--short", "HEAD"]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


def main() -> None:
    write = "--write" in sys.argv
    arguments = [word for word in sys.argv[1:] if word != "--write"]
    if not arguments or arguments[0] not in NAMES:
        raise SystemExit(f"usage: publish.py {'|'.join(NAMES)} [--write] [ARGUMENT ...]")
    name, *rest = arguments
    command = [sys.executable, str(BENCH / f"{name}.py"), *rest]
    lines = []
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env={**os.environ}) as running:
        assert running.stdout is not None
        for line in running.stdout:
            print(line, end="", flush=True)
            lines.append(line)
    if running.returncode != 0:
        raise SystemExit(running.returncode)
    if write:
        said = f"Measured on {datetime.now(UTC):%Y-%m-%d}, revision {revision()}, {os.cpu_count()} shared cores.\n\n"
        DOCUMENT.write_text(spliced(DOCUMENT.read_text(), name, said + "".join(lines)))


if __name__ == "__main__":
    main()
