# SPDX-License-Identifier: Apache-2.0
"""The committed mirrors of the C lists are what the generator prints now."""

import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def generator(tmp_path_factory):
    compiler = shutil.which("cc") or shutil.which("gcc")
    assert compiler, "a C compiler is needed to build this project"
    program = tmp_path_factory.mktemp("gen") / "gen_abi"
    source = ROOT / "preload" / "tools" / "gen_abi.c"
    subprocess.run([compiler, "-std=c11", f"-I{ROOT / 'preload'}", source, "-o", program], check=True)
    return program


@pytest.mark.parametrize(
    ("what", "file"),
    [
        ("abi", "gml_run/_abi.py"),
        ("profiles", "gml_run/_profiles.py"),
        ("hooks", "docs/reference/hooked-symbols.md"),
    ],
)
def test_mirror_is_fresh(generator, what, file):
    printed = subprocess.run([generator, what], check=True, capture_output=True, text=True).stdout
    assert printed == (ROOT / file).read_text(), "stale: run make gen"
