# SPDX-License-Identifier: Apache-2.0
"""The preloaded library as a file: what it needs, what it exports, what it costs a process without CUDA."""

import os
import re
import resource
import subprocess
from pathlib import Path

import pytest

from gml_run.native import find_native

ROOT = Path(__file__).resolve().parents[2]
OTHERS = {
    "getenv",
    "secure_getenv",
    "_ZN3c1027reportMemoryUsageToProfilerEPvlmmNS_6DeviceE",
    "_ZN3c1027reportOutOfMemoryToProfilerElmmNS_6DeviceE",
}


@pytest.fixture(scope="module")
def library():
    native = find_native()
    assert native is not None, "the libraries are not built"
    return native.shim


def readelf(*options):
    return subprocess.run(["readelf", "-W", *options], capture_output=True, text=True, check=True).stdout


def test_needs_libc_alone(library):
    assert re.findall(r"\(NEEDED\).*\[(.*)\]", readelf("-d", library)) == ["libc.so.6"]


def test_runs_on_glibc_2_34(library):
    versions = re.findall(r"GLIBC_2\.(\d+)", readelf("-V", library))
    assert max(int(version) for version in versions) <= 34


def test_binds_at_start_and_keeps_no_writable_code(library):
    dynamic = readelf("-d", library)
    assert "NOW" in dynamic and "TEXTREL" not in dynamic


def test_exports_the_hooks_and_nothing_else(library):
    text = (ROOT / "preload" / "interpose" / "hooks.h").read_text()
    listed = text[text.index("#define GML_RETRIED_HOOKS") : text.index("#define GML_RUNTIME_USED")]
    hooks = set(re.findall(r"X\((cuda\w+),", listed))
    table = readelf("--dyn-syms", library).splitlines()
    defined = [line.split() for line in table if re.search(r"(GLOBAL|WEAK)\s+DEFAULT\s+\d+\s", line)]
    exported = {words[7].split("@")[0] for words in defined}
    assert exported == hooks | OTHERS


def processor_seconds(environ):
    """What /bin/true takes of a processor."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(["/bin/true"], env=environ, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def test_costs_a_process_without_cuda_less_than_a_millisecond(library):
    """The least of many, in turn: other work on the machine only adds to it."""
    plain = {name: value for name, value in os.environ.items() if name != "LD_PRELOAD"}
    preloaded = {**plain, "LD_PRELOAD": library, "GML_ALLOCATOR": "vms"}
    least = {"plain": 1.0, "preloaded": 1.0}
    for _ in range(1000):
        least["plain"] = min(least["plain"], processor_seconds(plain))
        least["preloaded"] = min(least["preloaded"], processor_seconds(preloaded))
        if least["preloaded"] - least["plain"] < 0.0008:
            break
    assert least["preloaded"] - least["plain"] < 0.001
