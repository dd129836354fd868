# SPDX-License-Identifier: Apache-2.0
"""The wheel: its tag and contents, that it replaces nothing beside PyTorch, and that it works from an
environment of its own."""

import importlib.metadata
import json
import re
import subprocess
import sys
import zipfile

import pytest
from runs import PROGRAMS, ROOT, environment

TORCH_28 = ROOT / "tests" / "data" / "torch-2.8.0-cuda.json"
LIBRARIES = ["libgml.so", "sim/libgmlsim.so", "sim/libcuda.so.1", "sim/libnvidia-ml.so.1"]


def pip(*words):
    command = [sys.executable, "-m", "pip", "--disable-pip-version-check", *map(str, words)]
    done = subprocess.run(command, cwd=ROOT, env=environment(), capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr
    return done.stdout


def key(name):
    """A distribution's name as packaging tools compare it."""
    return re.sub(r"[-_.]+", "-", name).lower()


@pytest.fixture(scope="session")
def wheel(tmp_path_factory):
    folder = tmp_path_factory.mktemp("wheel")
    pip("wheel", "--quiet", "--no-deps", "--no-build-isolation", "-w", folder, "-C", "build-dir=build/wheel", ROOT)
    (path,) = folder.glob("*.whl")
    return path


@pytest.fixture
def empty_environment(tmp_path):
    """An environment of its own, with nothing installed."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", tmp_path / "env"], check=True)
    return tmp_path / "env"


def would_install(wheel, folder, *options):
    """Name and version of all that pip would install for this wheel."""
    pip(*options, "install", "--dry-run", "--quiet", "--report", folder / "report.json", wheel)
    entries = json.loads((folder / "report.json").read_text())["install"]
    return {key(entry["metadata"]["name"]): entry["metadata"]["version"] for entry in entries}


def add_metadata(environment_folder, distribution):
    """Makes a distribution known to pip: name, version and requirements, no files."""
    (site,) = (environment_folder / "lib").glob("python*/site-packages")
    info = site / f"{distribution['name'].replace('-', '_')}-{distribution['version']}.dist-info"
    info.mkdir()
    lines = ["Metadata-Version: 2.1", f"Name: {distribution['name']}", f"Version: {distribution['version']}"]
    lines += [f"Requires-Dist: {requirement}" for requirement in distribution["requires"]]
    (info / "METADATA").write_text("\n".join(lines) + "\n")
    (info / "INSTALLER").write_text("pip\n")
    (info / "RECORD").write_text("")


def test_one_wheel_for_every_python(wheel):
    assert re.fullmatch(r"gml_run-[\d.]+-py3-none-(many)?linux\w+\.whl", wheel.name)
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
    assert {f"gml_run/lib/{name}" for name in LIBRARIES} <= names
    modules = {str(path.relative_to(ROOT)) for path in (ROOT / "gml_run").rglob("*.py")}
    assert {name for name in names if name.startswith("gml_run/") and name.endswith(".py")} == modules
    assert {name.split("/")[0].split("-")[0] for name in names} == {"gml_run"}


def test_beside_torch_2_14_nothing_is_replaced(wheel, tmp_path):
    installed = {key(each.metadata["Name"]): each.version for each in importlib.metadata.distributions()}
    assert "torch" in installed
    planned = would_install(wheel, tmp_path)
    planned.pop("gml-run", None)
    assert {name for name in planned if name in installed} == set()


def test_beside_torch_2_8_nothing_is_replaced(wheel, empty_environment, tmp_path):
    distributions = json.loads(TORCH_28.read_text())["distributions"]
    for distribution in distributions:
        add_metadata(empty_environment, distribution)
    python = empty_environment / "bin" / "python"
    found = json.loads(pip("--python", python, "list", "--format=json"))
    listed = {key(each["name"]): each["version"] for each in found}
    assert listed == {key(each["name"]): each["version"] for each in distributions}
    assert listed["torch"] == "2.8.0"
    planned = would_install(wheel, tmp_path, "--python", python)
    assert {"gml-run", "typer", "rich", "psutil", "cuda-bindings"} <= set(planned)
    assert {name for name in planned if name in listed} == set()


def test_a_replacement_would_be_seen(empty_environment, tmp_path, wheel):
    """The test above can fail: beside an old rich, pip plans another one."""
    add_metadata(empty_environment, {"name": "rich", "version": "1.0", "requires": []})
    planned = would_install(wheel, tmp_path, "--python", empty_environment / "bin" / "python")
    assert planned["rich"] != "1.0"


def test_from_an_environment_of_its_own(wheel, empty_environment, tmp_path):
    """The launcher has its own environment, the program another Python: what `pipx install` makes."""
    pip("--python", empty_environment / "bin" / "python", "install", "--quiet", wheel)
    launcher = empty_environment / "bin" / "gml-run"
    program = [sys.executable, PROGRAMS / "endings.py", "normal"]
    command = [launcher, "-o", tmp_path / "run", "--simulate", "h100", *program]
    environ = {name: value for name, value in environment().items() if name != "GML_LIB_DIR"}
    done = subprocess.run(command, env=environ, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    report = json.loads((tmp_path / "run" / "report.json").read_text())
    assert report["processes"][0]["devices"][0]["allocs"] == 100
