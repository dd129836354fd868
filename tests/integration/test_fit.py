# SPDX-License-Identifier: Apache-2.0
"""`gml-run fit` finds the edge that can be computed by hand, and refuses what it cannot answer."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

PROGRAMS = Path(__file__).resolve().parents[1] / "programs"
FILL = [sys.executable, str(PROGRAMS / "fill.py")]
MIB = 1 << 20
CONTEXT = {"h100": 520, "t4": 110}


def fit(*words: str) -> subprocess.CompletedProcess[str]:
    environ = {name: value for name, value in os.environ.items() if not name.startswith("GML_SIM")}
    return subprocess.run(
        [sys.executable, "-m", "gml_run", "fit", *words], env=environ, capture_output=True, text=True, timeout=300
    )


def test_smallest_device() -> None:
    done = fit("--json", "--allocators", "vms", "--", *FILL, "20")
    assert done.returncode == 0, done.stderr
    row = json.loads(done.stdout)["rows"][0]
    need = (20 * 100 + CONTEXT["h100"]) * MIB  # the holes serve the large block: nothing is added
    assert need <= row["smallest_device_bytes"] < need + 2 * row["step_bytes"]
    assert row["held_bytes"] == 2000 * MIB


def test_largest_value() -> None:
    done = fit("--json", "--allocators", "vms", "--simulate", "t4:4000M", "--vary", "n=1..500", "--", *FILL, "{n}")
    assert done.returncode == 0, done.stderr
    # 38 blocks and a context are below 4000 MiB, 39 are not.
    assert json.loads(done.stdout)["rows"] == [{"allocator": "vms", "largest": 38}]
    assert "n=38" in done.stderr and "does not fit" in done.stderr


def test_what_fails_for_another_reason_is_no_answer() -> None:
    done = fit("--", sys.executable, "-c", "raise SystemExit(3)")
    assert done.returncode == 125 and done.stdout == ""
    assert "ended with 3, and not for want of memory" in done.stderr


def test_bad_questions_are_refused_in_one_line() -> None:
    for words in (["--vary", "n=5"], ["--vary", "n=5..2"], ["--vary", "n=1..5"], ["--allocators", "best"]):
        done = fit(*words, "--", *FILL, "3")
        assert done.returncode == 125 and done.stderr.count("\n") == 1, done.stderr


def test_the_program_keeps_its_own_options() -> None:
    done = fit("--simulate", "t4", "--allocators", "vms", "--vary", "n=2..2", "--", *FILL, "{n}", "--json", "--help")
    assert done.returncode == 0 and done.stdout.strip() == "vms         n up to 2"
