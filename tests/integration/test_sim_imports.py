# SPDX-License-Identifier: Apache-2.0
"""Nothing that the installed torch imports from a CUDA library is unaccounted for in the simulated GPU."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path

from gml_run.native import find_native

SIM = Path(__file__).resolve().parents[2] / "preload" / "sim"


def names(folder: Path) -> set[str]:
    found = set()
    for listing in folder.glob("*.txt"):
        if listing.name != "outputs.txt":
            found |= {line for line in listing.read_text().splitlines() if line and not line.startswith("#")}
    return found


def exported(library: str) -> set[str]:
    out = subprocess.run(["nm", "-D", "--defined-only", library], capture_output=True, text=True, check=True).stdout
    return {line.split()[-1].split("@")[0] for line in out.splitlines()}


def test_every_import_is_listed_and_defined(tmp_path: Path) -> None:
    spec = importlib.util.find_spec("torch")
    assert spec is not None and spec.origin is not None
    site = Path(spec.origin).parents[1]
    subprocess.run([sys.executable, str(SIM / "tools" / "list_imports.py"), str(site), str(tmp_path)], check=True)
    imported = names(tmp_path)
    assert len(imported) > 700, "torch without CUDA, or the tool sees nothing"
    assert imported <= names(SIM / "symbols"), "run preload/sim/tools/list_imports.py on this torch"
    native = find_native()
    assert native is not None and native.simulated
    defined = set().union(*(exported(library) for library in native.simulated))
    # cuGetProcAddress adds the version to names that torch looks up without it.
    missing = {name for name in names(SIM / "symbols") if name not in defined and f"{name}_v2" not in defined}
    assert not missing, sorted(missing)
