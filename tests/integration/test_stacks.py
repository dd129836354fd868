# SPDX-License-Identifier: Apache-2.0
"""--stacks: live memory is charged to the lines that asked for it, by every Python that is known."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from runs import PROGRAMS, python, run
from shim import run_shim

from gml_run.report.lines import line_text
from gml_run.telemetry.sites import read_sites

MIB = 1 << 20
SOURCE = (PROGRAMS / "stacks.py").read_text().splitlines()


def interpreters() -> dict[str, str]:
    """The Pythons of this machine that --stacks can read, this one first."""
    found = {f"{sys.version_info.major}.{sys.version_info.minor}": sys.executable}
    places = [shutil.which(f"python3.{minor}") for minor in (11, 12, 13, 14)]
    places += [str(path) for path in Path.home().glob(".pyenv/versions/3.1[1234].*/bin/python3")]
    for path in filter(None, places):
        done = subprocess.run([path, "-c", "import sys; print('%d.%d' % sys.version_info[:2])"], capture_output=True)
        if done.returncode == 0:
            found.setdefault(done.stdout.decode().strip(), path)
    return found


def marked(word: str) -> dict[int, int]:
    """Line number -> MiB, as the program's own comments say."""
    found = {number: re.search(rf"# {word} (\d+)", text) for number, text in enumerate(SOURCE, 1)}
    return {number: int(match[1]) for number, match in found.items() if match and int(match[1])}


@pytest.mark.parametrize("version", interpreters())
@pytest.mark.parametrize("allocator", ["vms", "raw"])
def test_lines_survive_a_kill(version, allocator, tmp_path):
    command = [interpreters()[version], str(PROGRAMS / "stacks.py")]
    done = run_shim(command, tmp_path, GML_STACKS="1", GML_ALLOCATOR=allocator)
    assert done.stdout == "ready\n" and done.code == -9, done.stderr
    ((sites,),) = read_sites(str(tmp_path)).values()
    assert sites.status == f"Python {version}"
    many_lined = next(number for number, text in enumerate(SOURCE, 1) if "lambda: lib.cudaMalloc" in text)
    lives, peak = {**marked("lives"), many_lined: 6}, {**marked("peak"), many_lined: 6}
    assert {site.line: site.bytes // MIB for site in sites.now[0]} == lives
    assert {site.line: site.bytes // MIB for site in sites.at_peak[0]} == peak
    by_line = {site.line: site for site in sites.at_peak[0]}
    assert all(site.file == str(PROGRAMS / "stacks.py") for site in by_line.values())
    first, last = min(by_line), max(by_line)
    assert (by_line[first].function, by_line[first].count) == ("take", 2)
    assert by_line[last].function == "work"
    assert by_line[many_lined].function == "Model.one.<locals>.<lambda>"
    failing = next(number for number, text in enumerate(SOURCE, 1) if "# fails" in text)
    assert sorted(sites.ooms) == list(range(done.process.oom_count))
    for oom in sites.ooms.values():
        assert oom.asked.line == failing
        assert {site.line: site.bytes // MIB for site in oom.held} == lives


@pytest.mark.parametrize("options", [["--allocator", "vms"], ["--observe"]])
def test_report_names_the_lines(options, tmp_path):
    """An out-of-memory failure of PyTorch: the post-mortem says who asked and who holds, backward included."""
    script = tmp_path / "train.py"
    script.write_text(
        "import torch\n"
        "def build():\n"
        "    return torch.nn.Linear(1 << 14, 1 << 14).cuda()\n"
        "model = build()\n"
        "loss = model(torch.randn(8, 1 << 14, device='cuda')).sum()\n"
        "loss.backward()\n"
        "huge = torch.empty(40 << 30, dtype=torch.uint8, device='cuda')\n"
    )
    done = run(["--simulate", "h100:24G", "--stacks", *options], python(script), tmp_path / "run")
    oom = done.report["ooms"][-1]
    assert line_text(oom["asked_by"], str(tmp_path)) == "train.py:7"
    held = {line_text(line, str(tmp_path)): line["bytes"] for line in oom["lines"]}
    weight = (1 << 30) + (4 << 14)
    assert held["train.py:3 in build"] == weight
    assert held["backward pass (in autograd's own thread, no Python line)"] >= 1 << 30
    device = done.device
    assert {line_text(line, str(tmp_path)) for line in device["lines"]} >= {"train.py:3 in build"}
    assert sum(line["bytes"] for line in device["lines"]) == device["lines_bytes"] == device["peak_live_bytes"]
    assert "asked for by" in done.stderr and "train.py:7" in done.stderr
    assert "backward pass" in done.stderr
    shown = subprocess.run(
        [sys.executable, "-m", "gml_run", "report", str(tmp_path / "run"), "--md"], capture_output=True, text=True
    ).stdout
    assert "Lines that held most at the last failure" in shown and "train.py:3 in build" in shown


@pytest.mark.parametrize("version", interpreters())
def test_a_thread_whose_state_is_gone(version, tmp_path):
    """The interpreter frees the states of daemon threads before they end: nobody reads them after that."""
    source, library = tmp_path / "loop.c", tmp_path / "libloop.so"
    source.write_text(
        "extern int cudaMalloc(void **, unsigned long), cudaFree(void *);\n"
        "volatile long calls;\n"
        "void loop(void) { for (void *p; cudaMalloc(&p, 4096) == 0 && cudaFree(p) == 0; calls++) {} }\n"
    )
    subprocess.run(["gcc", "-shared", "-fPIC", str(source), "-o", str(library)], check=True)
    command = [interpreters()[version], str(PROGRAMS / "stacks_ending.py"), str(library)]
    done = run_shim(command, tmp_path, GML_STACKS="1")
    assert (done.code, done.stdout) == (0, "asked on\n"), done.stderr


def test_nothing_without_the_option(tmp_path):
    run_shim([sys.executable, str(PROGRAMS / "stacks.py")], tmp_path)
    assert read_sites(str(tmp_path)) == {}
    assert not list(tmp_path.glob("telemetry/*.sites"))


PROCESS_VM_READV, PIPE2 = "310", "293"


@pytest.mark.parametrize(
    ("calls", "named"), [([PROCESS_VM_READV], True), ([PROCESS_VM_READV, PIPE2], False)], ids=["one", "both"]
)
def test_a_sandbox_that_refuses_to_read_memory(calls, named, tmp_path):
    """There is another way; where that is refused too, the report says why there are no lines."""
    refusing = [sys.executable, str(PROGRAMS / "refuse.py"), ",".join(calls)]
    done = run(["--simulate", "h100", "--stacks"], [*refusing, *python(PROGRAMS / "stacks.py")], tmp_path / "run")
    lines = {line["line"] for line in done.device["lines"]}
    problems = [problem for problem in done.report["problems"] if "--stacks" in problem]
    if named:
        assert {*marked("peak")} <= lines and not problems
    else:
        assert lines == {0}
        assert "neither process_vm_readv nor a pipe may be used here" in problems[0] and problems[0] in " ".join(
            done.stderr.replace("\n" + " " * 17, " ").split("\n")
        )


NO_GIL = """
const unsigned long Py_Version = 0x030D00F0;
struct { char cookie[8]; unsigned long version, free_threaded; } _PyRuntime = {"xdebugpy", 0x030D00F0, 1};
"""


@pytest.mark.parametrize(
    ("head", "why"),
    [("", "the program is not Python"), (NO_GIL, "Python 3.13 without a GIL is not known")],
    ids=["other", "no-gil"],
)
def test_a_program_that_is_no_python_that_is_known(head, why, tmp_path):
    """Its memory is charged to its threads, and the report says why there are no lines."""
    source = tmp_path / "take.c"
    source.write_text(
        f"{head}extern int cudaMalloc(void **, unsigned long);\n"
        "int main(void) { void *p; return cudaMalloc(&p, 3 << 20); }\n"
    )
    program = tmp_path / "take"
    built = tmp_path / "lib.c"
    built.write_text("int cudaMalloc(void **p, unsigned long n) { return 1; }\n")
    library = tmp_path / "libcudart.so.13"
    shared = ["gcc", "-shared", "-fPIC", f"-Wl,-soname,{library.name}"]
    subprocess.run([*shared, str(built), "-o", str(library)], check=True)
    subprocess.run(
        ["gcc", "-rdynamic", str(source), "-o", str(program), str(library), f"-Wl,-rpath,{tmp_path}"], check=True
    )
    done = run(["--simulate", "h100", "--stacks"], [str(program)], tmp_path / "run")
    (line,) = done.device["lines"]
    assert (line["line"], line["function"], line["bytes"]) == (0, "take", 3 * MIB)
    assert any(why in problem for problem in done.report["problems"])
