# SPDX-License-Identifier: Apache-2.0
"""The public workloads, memory cases and launcher cases beside this repository, against the figures published
with them. A checkout without that folder has tests/integration/test_workloads.py for the same claims."""

import functools
import json
import re
import shlex
import subprocess
import sys

import pytest
from runs import GML_RUN, ROOT, at_once, environment, python, run

torch = pytest.importorskip("torch", reason="needs a CUDA build of PyTorch (make setup)")
transformers = pytest.importorskip("transformers", reason="the workloads use its models (make setup)")

SHARED = ROOT.parent / "shared"
pytestmark = pytest.mark.skipif(not (SHARED / "workloads").is_dir(), reason="no shared/ folder beside this checkout")
SCRIPTS = "p1_gpt2_varlen p2_llama1b_accum p3_opt13b_lro p4_bert_buckets p5_unet_aspect p6_decode_kvcat".split()
ALLOCATORS = {
    "vms": ["--goal", "memory"],
    "native": ["--allocator", "native"],
    "expandable": ["--allocator", "expandable"],
}
# Launcher cases about terminals, whose own issue comes later, count where they pass.
TERMINAL = {"lp08", "lp09", "lp11", "lp20", "lp21", "lp33"}
MIB = 1 << 20


def published(script):
    """Allocated and reserved bytes of native and expandable, from the table in the folder's README."""
    text = (SHARED / "workloads" / "README.md").read_text()
    row = re.search(rf"^\| {script[:2]} \| (\d+) / (\d+), .*? \| (\d+) / (\d+), ", text, re.MULTILINE)
    assert row, f"no figures for {script}"
    numbers = [int(number) * MIB for number in row.groups()]
    return {"native": numbers[:2], "expandable": numbers[2:]}


@pytest.fixture(scope="module")
def runs_of(tmp_path_factory):
    """One run of a script under each allocator."""

    @functools.cache
    def runs(script):
        folder = tmp_path_factory.mktemp(script)
        command = python(SHARED / "workloads" / f"{script}.py")
        return at_once(
            {
                name: functools.partial(run, ["-q", "--simulate", "h100", *options], command, folder / name)
                for name, options in ALLOCATORS.items()
            }
        )

    return runs


@pytest.mark.parametrize("script", SCRIPTS)
def test_workload_is_served_with_little_waste(script, runs_of):
    ours = runs_of(script)["vms"]
    assert ours.code == 0, ours.stderr
    placements = ours.device["placements"]
    assert placements["extend"] + placements["stitch"] > 0
    floor = min(allocated for allocated, _ in published(script).values())
    assert ours.device["peak_live_bytes"] == pytest.approx(floor, rel=0.01)
    assert 1 - ours.device["peak_live_bytes"] / ours.true_peak_bytes <= 0.03
    assert ours.device["peak_reserved_bytes"] == pytest.approx(ours.true_peak_bytes, rel=0.01)


@pytest.mark.parametrize("allocator", ["native", "expandable"])
@pytest.mark.parametrize("script", SCRIPTS)
def test_pytorchs_allocators_behave_as_published(script, allocator, runs_of):
    theirs = runs_of(script)[allocator]
    assert theirs.code == 0, theirs.stderr
    allocated, reserved = published(script)[allocator]
    assert theirs.said["peak_allocated"] == pytest.approx(allocated, rel=0.02)
    assert theirs.said["peak_reserved"] == pytest.approx(reserved, rel=0.02)
    assert theirs.true_peak_bytes == theirs.said["peak_reserved"]
    assert theirs.device["peak_live_bytes"] == theirs.said["peak_allocated"]
    assert theirs.device["peak_reserved_bytes"] == theirs.said["peak_reserved"]


def run_cases(tmp_path, script, *arguments):
    """Runs a folder of cases behind gml-run; their results by name."""
    launcher = shlex.join([*GML_RUN, "-q", "--simulate", "h100"])
    results = tmp_path / "results.json"
    command = [sys.executable, SHARED / "cases" / script, "--launcher", launcher, "--json", results, *arguments]
    how = {"stdin": subprocess.DEVNULL, "capture_output": True, "text": True, "timeout": 900}
    done = subprocess.run(command, cwd=tmp_path, env=environment(), **how)
    assert results.exists(), done.stderr
    return json.loads(results.read_text()), done.stdout


def test_memory_cases(tmp_path):
    results, said = run_cases(tmp_path, "run_all.py", str(SHARED / "cases" / "public"))
    assert len(results) == 21
    assert all(result["ok"] and result["rc"] == 0 for result in results), said


def test_launcher_cases(tmp_path):
    results, said = run_cases(tmp_path, "run_launcher_cases.py", "--set", "public")
    assert len(results) == 34, said
    failed = {result["case"][:4] for result in results if result["status"] == "FAIL"}
    assert failed <= TERMINAL, said
