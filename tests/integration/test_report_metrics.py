# SPDX-License-Identifier: Apache-2.0
"""Figures for other programs: Prometheus text and JSON lines."""

import json
import re
import sys

from launcher import PROGRAMS
from prometheus_client.parser import text_string_to_metric_families

PY = sys.executable
FAKE = str(PROGRAMS / "fake_gpu.py")


def test_prometheus_file(gml, tmp_path):
    assert gml("-q", "--simulate", "h100", "--metrics", "gml.prom", PY, FAKE, "0.5").returncode == 0
    families = {family.name: family for family in text_string_to_metric_families((tmp_path / "gml.prom").read_text())}
    (sample,) = families["gml_peak_reserved_bytes"].samples
    assert sample.value == 22 << 30 and set(sample.labels) == {"pid", "rank", "device"}
    for name in ("gml_largest_servable_bytes", "gml_waste_ratio", "gml_headroom_bytes"):
        assert families[name].type == "gauge" and families[name].documentation
    assert families["gml_retries"].samples[0].name == "gml_retries_total"
    assert families["gml_driver_seconds"].samples[0].name == "gml_driver_seconds_total"
    assert all(re.fullmatch(r"gml_[a-z_]+", name) for name in families)


def test_status_file(gml, tmp_path):
    assert gml("-q", "--simulate", "h100", "--status-file", "status", PY, FAKE, "0.5").returncode == 0
    lines = [json.loads(line) for line in (tmp_path / "status").read_text().splitlines()]
    assert len(lines) >= 2 and lines[-1]["places"][0]["peak_reserved_bytes"] == 22 << 30
    assert lines[-1]["elapsed_s"] > 0


def test_what_cannot_be_written_is_refused_at_once(gml):
    for option in ("--metrics", "--status-file"):
        done = gml("--simulate", "h100", option, "/no/such/folder/x", "true")
        assert done.returncode == 125 and done.stderr.count(b"\n") == 1
