# SPDX-License-Identifier: Apache-2.0
"""The guides name what exists: words, options, figures and keys."""

import json
import re
import sys
import types
from pathlib import Path

import pytest
from telemetry_files import device, write_process
from test_report import HEAP, report_of

from gml_run.analysis.diff import METRICS
from gml_run.cli.specs import RUN_SPECS
from gml_run.cli.words import COMMANDS, RESERVED
from gml_run.report.metrics import COUNTERS, GAUGES, status_sink
from gml_run.telemetry.reader import TelemetryReader

GUIDE = Path(__file__).resolve().parents[2] / "docs" / "guide"


def text_of(name):
    return (GUIDE / name).read_text()


def test_every_word_of_ours_is_named():
    text = text_of("launcher.md")
    assert set(re.search(r"words `([^`]+)` are commands", text)[1].split()) == set(COMMANDS)
    assert set(re.search(r"`([^`]+)` are\s+kept for later", text)[1].split()) == set(RESERVED)


def test_every_metric_is_named_and_no_other():
    text = text_of("monitoring.md")
    known = {*GAUGES, *(f"{name}_total" for name in COUNTERS)}
    assert set(re.findall(r"\bgml_[a-z_]+\b", text)) == known


def test_every_key_of_a_report_is_named(tmp_path):
    write_process(tmp_path, counters={"served_calls": 1}, devices={0: device(**HEAP)})
    report = report_of(tmp_path)
    text = text_of("report.md")
    keys = [*report, *report["run"], *report["processes"][0], *report["processes"][0]["devices"][0]]
    keys = [key.removeprefix("peak_") for key in keys if key not in ("schema_version", "captures")]
    missing = [key for key in keys if f"{key}`" not in text and f"{key}[" not in text]
    assert set(missing) <= {"metadata_bytes", "forwarded_bytes", "torn", "driver_live_bytes"}


@pytest.mark.parametrize("name", sorted(path.name for path in GUIDE.glob("*.md")))
def test_options_exist(name):
    known = {flag for spec in RUN_SPECS for flag in spec.flags} | {
        "--", "--json", "--md", "--html", "--once", "--fail-on", "--ranks", "--keep", "--clean",
        "--help", "--version", "--install-completion", "--allocators", "--vary",
        # of other programs
        "--no-python", "--nproc-per-node", "--nnodes", "--num", "--hostfile", "--no", "--signal", "--batch",
    }  # fmt: skip
    used = set(re.findall(r"(?<![\w-])--[a-z][a-z-]*", text_of(name)))
    assert used <= known, used - known


def test_rules_in_the_guide_can_be_read():
    for rule in re.findall(r"--fail-on '([^']+)'", text_of("ci.md")):
        assert re.match(r"\w+", rule)[0] in METRICS


def snippets(language):
    return re.findall(rf"^```{language}\n(.*?)^```", text_of("integrations.md"), re.DOTALL | re.MULTILINE)


def test_curves_go_to_other_tools(tmp_path, monkeypatch):
    """The snippets read what --status-file wrote; the tools themselves are stood in for."""
    write_process(tmp_path, counters={"served_calls": 1}, devices={0: device(**HEAP)})
    status_sink(str(tmp_path / "gml.jsonl"))(TelemetryReader(str(tmp_path)).read(), 5.0)
    monkeypatch.chdir(tmp_path)
    got = {}

    class Writer:
        def __init__(self, *words):
            got["folder"] = words

        def add_scalar(self, name, value, step, time):
            got[name.rsplit("/", 1)[-1]] = value

        def close(self):
            got["closed"] = True

    class Run:
        def __enter__(self):
            return self

        def __exit__(self, *_):
            got["left"] = True

        def log(self, figures):
            got.update({name.rsplit("/", 1)[-1]: value for name, value in figures.items()})

    modules = {
        "torch": types.ModuleType("torch"),
        "torch.utils": types.ModuleType("torch.utils"),
        "torch.utils.tensorboard": types.ModuleType("torch.utils.tensorboard"),
        "wandb": types.ModuleType("wandb"),
    }
    modules["torch.utils.tensorboard"].SummaryWriter = Writer
    modules["wandb"].init = lambda **_: Run()
    for name, module in modules.items():
        monkeypatch.setitem(sys.modules, name, module)
    for text in snippets("python")[1:]:
        exec(compile(text, "integrations.md", "exec"), {})
    assert got["closed"] and got["left"]
    assert got["live_bytes"] == HEAP["live_bytes"] and got["peak_reserved_bytes"] == HEAP["peak_reserved_bytes"]
    assert got["waste_ratio"] > 0 and got["elapsed_s"] == 5.0


def test_every_snippet_is_well_formed():
    for text in snippets("python"):
        compile(text, "integrations.md", "exec")
    (kernel,) = snippets("json")
    assert json.loads(kernel)["argv"][0] == "gml-run"
    assert "command:" in snippets("yaml")[0]
