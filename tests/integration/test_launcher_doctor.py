# SPDX-License-Identifier: Apache-2.0
"""The look at the machine: every kind of finding, without a GPU."""

import json
import os


def findings(done):
    return {finding["what"]: finding for finding in json.loads(done.stdout)}


def test_a_machine_without_a_driver(gml, libraries):
    done = gml("doctor", "--json")
    found = findings(done)
    assert found["libraries"]["state"] == "good" and str(libraries) in found["libraries"]["text"]
    assert found["C library"]["state"] == "good" and "glibc 2." in found["C library"]["text"]
    assert found["driver"]["state"] in ("good", "note")
    assert found["run directory"]["state"] == "good"
    assert {finding["state"] for finding in found.values()} <= {"good", "note", "bad"}
    assert done.returncode == int(any(finding["state"] == "bad" for finding in found.values()))


def test_missing_libraries_are_bad(gml, env, tmp_path):
    done = gml("doctor", "--json", env={**env, "GML_LIB_DIR": str(tmp_path)})
    assert findings(done)["libraries"]["state"] == "bad" and done.returncode == 1


def test_settings_that_matter_are_named(gml, env):
    conf = "expandable_segments:True"
    found = findings(gml("doctor", "--json", env={**env, "PYTORCH_CUDA_ALLOC_CONF": conf}))
    assert conf in found["PYTORCH_CUDA_ALLOC_CONF"]["text"]


def test_a_python_without_torch(gml, env, tmp_path):
    (tmp_path / "python").write_text("#!/bin/sh\nexit 1\n")
    (tmp_path / "python").chmod(0o755)
    found = findings(gml("doctor", "--json", env={**env, "PATH": f"{tmp_path}:{os.environ['PATH']}"}))
    assert found["PyTorch"]["state"] == "note" and "has none" in found["PyTorch"]["text"]


def test_text(gml):
    lines = gml("doctor").stdout.decode().splitlines()
    assert len(lines) >= 6 and all(line.split()[0] in ("good", "note", "bad") for line in lines)
