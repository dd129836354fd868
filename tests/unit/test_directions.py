# SPDX-License-Identifier: Apache-2.0
"""Who may include or import whom, in C and in Python; and who may exit or print."""

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]

# Each folder of preload/ and what it may include: folders, or single headers.
C_MAY_INCLUDE = {
    "base": {"base"},
    "os": {"base", "os"},
    "device": {"base", "os", "cuda", "device"},
    "core": {"base", "device/device.h", "core"},
    "telemetry": {"base", "os", "core/stats.h", "telemetry"},
    "trace": {"base", "os", "trace"},
    "cuda": {"cuda"},
    "interpose": {"base", "os", "device", "core/heap.h", "core/stats.h", "telemetry", "trace", "cuda", "interpose"},
    # The simulated GPU stands for NVIDIA's libraries: it shares nothing with the allocator.
    "sim": {"cuda", "sim", "driver_stubs.def"},
    "tools": {"base", "os", "device", "core", "telemetry", "trace", "interpose/hooks.h", "sim/profiles.def"},
}
# What a pure file may include of the system: no clock, no file, no environment, no process.
PURE_SYSTEM = {"stdbool.h", "stddef.h", "stdint.h", "string.h", "limits.h", "assert.h", "stdatomic.h"}
SYSTEM_CALLS = re.compile(r"^(sys/(?!auxv\.h)|unistd\.h|fcntl\.h|time\.h|signal\.h|sched\.h|poll\.h|spawn\.h)")

# Each package of gml_run/, low to high; the modules beside them are below all packages.
PY_MAY_IMPORT = {
    "telemetry": set(),
    "trace": {"telemetry"},
    "analysis": {"telemetry", "trace"},
    "live": {"telemetry", "analysis"},
    "launch": set(),
    "report": {"telemetry", "trace", "analysis", "launch", "live"},
    "cli": {"telemetry", "trace", "analysis", "live", "launch", "report"},
}


def c_files():
    return sorted(path for kind in ("*.c", "*.h") for path in (ROOT / "preload").rglob(kind))


def c_includes(path):
    """Included names, those in quotes and those in angle brackets."""
    text = path.read_text()
    return re.findall(r'^\s*#\s*include "([^"]+)"', text, re.M), re.findall(r"^\s*#\s*include <([^>]+)>", text, re.M)


def c_folder(path):
    return path.relative_to(ROOT / "preload").parts[0]


def py_files():
    return sorted((ROOT / "gml_run").rglob("*.py"))


def py_package(path):
    """The package of a module below gml_run; empty for the modules beside the packages."""
    parts = path.relative_to(ROOT / "gml_run").parts
    return parts[0] if len(parts) > 1 else ""


def py_imports(path):
    """Every module of gml_run that is imported, inside functions too."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name.split(".")[0] == "gml_run")
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: a relative import"
            if node.module == "gml_run":
                yield from (f"gml_run.{alias.name}" for alias in node.names)
            elif node.module and node.module.startswith("gml_run."):
                yield node.module


def called_names(path):
    """Dotted names of everything that is called or raised."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Call):
            yield ast.unparse(node.func)
        elif isinstance(node, ast.Raise) and node.exc is not None:
            yield ast.unparse(node.exc).split("(")[0]


def test_every_folder_has_its_rule():
    folders = {path.name for path in (ROOT / "preload").iterdir() if path.is_dir() and list(path.rglob("*.[ch]"))}
    assert folders <= set(C_MAY_INCLUDE)
    packages = {path.parent.name for path in (ROOT / "gml_run").glob("*/__init__.py")}
    assert packages <= set(PY_MAY_IMPORT)
    assert len(c_files()) > 50 and len(py_files()) > 30  # the tests below look at something


@pytest.mark.parametrize("folder", C_MAY_INCLUDE)
def test_c_includes(folder):
    allowed = C_MAY_INCLUDE[folder]
    wrong = [
        f"{path.relative_to(ROOT)} includes {name}"
        for path in c_files()
        if c_folder(path) == folder
        for name in c_includes(path)[0]
        if name not in allowed and name.split("/")[0] not in allowed
    ]
    assert wrong == []


def is_pure(path):
    folder = c_folder(path)
    return folder in ("base", "core") or (folder == "device" and path.stem in ("device", "model", "fault", "meter"))


def test_the_pure_parts_see_no_system():
    pure = [path for path in c_files() if is_pure(path)]
    pure = [path for path in pure if path.name != "lock.h"]  # the one lock, over pthread
    wrong = [f"{path.relative_to(ROOT)}: {name}" for path in pure for name in c_includes(path)[1]]
    assert [line for line in wrong if line.split(": ")[1] not in PURE_SYSTEM] == []
    cuda = [path for path in pure for name in c_includes(path)[0] if name.startswith(("cuda/", "os/"))]
    assert cuda == []


def test_system_calls_are_in_os_alone():
    """Of what is preloaded into the user's program; the simulated GPU and the tools are programs of their own."""
    wrong = [
        f"{path.relative_to(ROOT)}: {name}"
        for path in c_files()
        if c_folder(path) not in ("os", "sim", "tools")
        for name in c_includes(path)[1]
        if SYSTEM_CALLS.match(name)
    ]
    assert wrong == []


def test_the_preloaded_library_never_ends_or_prints():
    call = re.compile(r"(?<![\w>.])(exit|_exit|abort|printf|fprintf|vprintf|puts|putchar|perror|assert)\s*\(")
    found = []
    for path in c_files():
        if c_folder(path) in ("sim", "tools"):
            continue
        code = re.sub(r"/\*.*?\*/|//[^\n]*|\"(?:\\.|[^\"\\])*\"", " ", path.read_text(), flags=re.S)
        found += [f"{path.relative_to(ROOT)}: {match[1]}" for match in call.finditer(code)]
    assert found == []


def test_only_interpose_holds_state():
    """No variable of file or function scope that can change, in the parts that are given their state."""
    variable = re.compile(r"^\s*static\s+(?!inline\b)(?!.*\bconst\b)[\w\s*]+?\b(\w+)\s*(\[[^\]]*\])*\s*(=|;)", re.M)
    found = []
    for path in c_files():
        if c_folder(path) in ("base", "os", "device", "core", "telemetry"):
            code = re.sub(r"/\*.*?\*/", " ", path.read_text(), flags=re.S)
            found += [f"{path.relative_to(ROOT)}: {match[1]}" for match in variable.finditer(code)]
    assert found == []


@pytest.mark.parametrize("package", PY_MAY_IMPORT)
def test_python_imports(package):
    allowed = PY_MAY_IMPORT[package] | {package}
    wrong = []
    for path in py_files():
        if py_package(path) != package:
            continue
        for name in py_imports(path):
            target = name.split(".")[1] if "." in name else ""
            if (ROOT / "gml_run" / target).is_dir() and target and target not in allowed:
                wrong.append(f"{path.relative_to(ROOT)} imports {name}")
    assert wrong == []


def test_modules_beside_the_packages_import_none_of_them():
    wrong = [
        f"{path.name} imports {name}"
        for path in py_files()
        if py_package(path) == "" and path.name != "__main__.py"
        for name in py_imports(path)
        if "." in name and (ROOT / "gml_run" / name.split(".")[1]).is_dir()
    ]
    assert wrong == []


def test_only_cli_exits_or_prints():
    found = []
    for path in py_files():
        package = py_package(path)
        if package == "cli" or path.name == "__main__.py":
            continue
        names = {"print", "exit", "quit", "sys.exit", "SystemExit", "typer.echo", "typer.Exit", "input"}
        if package != "launch":  # which ends the processes that it forks
            names.add("os._exit")
        found += [f"{path.relative_to(ROOT)}: {name}" for name in called_names(path) if name in names]
    assert found == []
