# SPDX-License-Identifier: Apache-2.0
"""Plants each bug of mutants.toml in the allocator, one at a time, and demands that its test fails.

The working tree is never touched: the changed source file is written into a temporary folder and compiled
there, and what depends on it (a test program, libgml.so) is linked anew with the other objects of a build
that exists. Every test must pass without the bug, and every text that a bug replaces must still be there.

    python tests/mutants/run.py --build build/dev [NAME ...]     run all, or those named
    python tests/mutants/run.py --write                          write the list of README.md anew
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shlex
import subprocess
import sys
import tempfile
import time
import tomllib
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
PRELOAD = ROOT / "preload"
LIST = HERE / "mutants.toml"
README = HERE / "README.md"
PURE = "libgml_pure.a"
SHIM = "libgml.so"
C_SECONDS, PYTHON_SECONDS = 300, 600  # to tell a hang; a busy machine takes its time
# Mutants are compiled for speed of compiling; warnings about them say nothing.
COMPILE_FLAGS = ["-O1", "-g0", "-w"]


class Broken(Exception):
    """The list or the build is wrong, so that nothing is known about the allocator."""


@dataclass(frozen=True, slots=True)
class Mutant:
    """One planted bug: `before` stands once in `file` and becomes `after`; each of `tests` must fail."""

    name: str
    bug: str
    file: str
    before: str
    after: str
    tests: tuple[str, ...]

    def source(self) -> str:
        """The text of the file with the bug in it."""
        text = (PRELOAD / self.file).read_text()
        found = text.count(self.before)
        if found != 1:
            raise Broken(f"{self.name}: the text to replace stands {found} times in preload/{self.file}, not once")
        return text.replace(self.before, self.after)


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a test said."""

    passed: bool
    message: str


def read_list() -> list[Mutant]:
    """Every mutant, in the order of the list."""
    mutants = []
    for name, fields in tomllib.loads(LIST.read_text()).items():
        if set(fields) != {"bug", "file", "before", "after", "tests"}:
            raise Broken(f"{name}: wants bug, file, before, after, tests; has {', '.join(sorted(fields))}")
        mutant = Mutant(name, **(fields | {"tests": tuple(fields["tests"])}))
        if not mutant.tests or mutant.before == mutant.after:
            raise Broken(f"{name}: no test is named, or nothing is changed")
        mutant.source()
        mutants.append(mutant)
    return mutants


class Build:
    """A finished build folder, and how its parts were made."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder.resolve()
        if not (self.folder / "build.ninja").is_file():
            raise Broken(f"{folder} holds no build: cmake -S preload -B {folder} -G Ninja -DGML_TESTS=ON")
        done = subprocess.run(["ninja", "-C", str(self.folder)], capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise Broken(f"{folder} does not build:\n{done.stdout[-2000:]}")

    @cached_property
    def commands(self) -> list[list[str]]:
        """Every command of the build, without the shell around it."""
        done = subprocess.run(
            ["ninja", "-C", str(self.folder), "-t", "commands"], capture_output=True, text=True, check=True
        )
        lines = (line.removeprefix(": && ").removesuffix(" && :") for line in done.stdout.splitlines())
        return [shlex.split(line) for line in lines]

    @cached_property
    def tests(self) -> dict[str, dict]:
        """The C tests by their names in ctest."""
        done = subprocess.run(
            ["ctest", "--test-dir", str(self.folder), "--show-only=json-v1"],
            capture_output=True, text=True, check=True,
        )  # fmt: skip
        return {test["name"]: test for test in json.loads(done.stdout)["tests"]}

    def compilations(self, source: Path) -> dict[str, list[str]]:
        """Objects that are made from a source file, each with its command."""
        name = str(source)
        return {c[c.index("-o") + 1]: c for c in self.commands if "-c" in c and c[c.index("-c") + 1] == name}

    def link(self, target: str) -> list[str] | None:
        """The command that links a target; None when it is not a linked one."""
        for command in self.commands:
            if "-c" not in command and "-o" in command and command[command.index("-o") + 1] == target:
                return command
        return None


class Bench:
    """The parts that one changed source file gives, in a folder of their own; or the build as it is."""

    def __init__(self, build: Build, folder: Path, mutant: Mutant | None = None) -> None:
        self.build, self.folder, self.mutant = build, folder, mutant
        self.made: dict[str, Path] = {}
        if mutant is not None:
            self.source = folder / Path(mutant.file).name
            self.source.write_text(mutant.source())

    def part(self, target: str) -> Path:
        """The target with the bug in it; the build's own where the changed file is no part of it."""
        if self.mutant is None:
            return self.build.folder / target
        if target not in self.made:
            self.made[target] = self._linked(target)
        return self.made[target]

    def _linked(self, target: str) -> Path:
        objects = self.build.compilations(PRELOAD / self.mutant.file)
        if not objects:
            raise Broken(f"{self.mutant.name}: the build makes nothing from preload/{self.mutant.file}")
        command = self.build.link(target) or []
        own = {name: self._compiled(objects[name]) for name in objects if name in command}
        pure = [name for name in objects if "gml_pure.dir" in name]
        if not own and not (pure and PURE in command):
            return self.build.folder / target
        out = self.folder / Path(target).name
        changed = [str(own.get(word, out if word == target else word)) for word in command]
        if not own:
            # An object that stands before the archive keeps its counterpart inside from being linked.
            changed.insert(changed.index(PURE), str(self._compiled(objects[pure[0]])))
        self._run(changed)
        return out

    def _compiled(self, command: list[str]) -> Path:
        out = self.folder / f"{Path(command[command.index('-o') + 1]).name}.{len(self.made)}"
        words = [w for i, w in enumerate(command) if w != "-MD" and not {"-MT", "-MF"} & {w, command[i - 1]}]
        words[words.index("-o") + 1] = str(out)
        words[words.index("-c") + 1] = str(self.source)
        self._run([*words, *COMPILE_FLAGS])
        return out

    def _run(self, command: list[str]) -> None:
        done = subprocess.run(command, cwd=self.build.folder, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise Broken(f"{self.mutant.name} does not compile:\n{done.stderr[-2000:]}")

    def run(self, test: str) -> Outcome:
        """One test: a name in ctest with settings behind it, or a test of pytest."""
        return self.run_pytest(test) if of_pytest(test) else self._run_ctest(test)

    def _run_ctest(self, test: str) -> Outcome:
        name, *settings = test.split()
        known = self.build.tests.get(name)
        if known is None:
            raise Broken(f"there is no C test {name}")
        program, *arguments = known["command"]
        target = str(Path(program).relative_to(self.build.folder))
        environ = dict(os.environ)
        for item in [e for p in known.get("properties", []) if p["name"] == "ENVIRONMENT" for e in p["value"]]:
            key, _, value = item.partition("=")
            environ[key] = str(self.part(SHIM)) if key == "LD_PRELOAD" else value
        environ |= dict(item.split("=", 1) for item in settings)
        outcome, stdout = execute([str(self.part(target)), *arguments], self.folder, environ, C_SECONDS)
        only = environ.get("TEST")
        if only and only not in stdout.splitlines():
            raise Broken(f"{name} has no test function {only}")
        return outcome

    def run_pytest(self, *tests: str) -> Outcome:
        """Tests of pytest, in one process; it ends with the first that fails."""
        library = self.folder / "lib"
        library.mkdir(exist_ok=True)
        for name, target in ((SHIM, self.part(SHIM)), ("sim", self.build.folder / "sim")):
            link = library / name
            if not link.is_symlink():
                link.symlink_to(target)
        command = [sys.executable, "-m", "pytest", "-q", "-x", "--tb=short", "-p", "no:cacheprovider", *tests]
        environ = os.environ | {"GML_LIB_DIR": str(library), "PYTHONDONTWRITEBYTECODE": "1"}
        outcome, stdout = execute(command, ROOT, environ, PYTHON_SECONDS)
        if not outcome.passed and not re.search(r"\b\d+ failed", stdout):
            raise Broken(f"{' '.join(tests)} did not run:\n{stdout[-2000:]}")
        said = [line.strip() for line in re.findall(r"^E +(.*)$", stdout, re.M)]
        # The statement in the program that failed, or the simulated device's complaint, says most.
        telling = [line for line in said if line.startswith(("assert ", "AssertionError: gml-sim", "check("))]
        return Outcome(outcome.passed, (telling or said or [outcome.message])[0])


def execute(command: list[str], folder: Path, environ: dict[str, str], seconds: int) -> tuple[Outcome, str]:
    """Runs a test program; the message is the last line of what it complained about."""
    try:
        done = subprocess.run(
            command, cwd=folder, env=environ, capture_output=True, text=True, timeout=seconds, check=False
        )
    except subprocess.TimeoutExpired:
        return Outcome(False, f"no end after {seconds} s"), ""
    lines = [line for line in done.stderr.splitlines() if line.strip()]
    how = f"signal {-done.returncode}" if done.returncode < 0 else f"exit {done.returncode}"
    return Outcome(done.returncode == 0, lines[-1].strip() if lines else how), done.stdout


def short(message: str) -> str:
    """A message without the place in the file that says it."""
    text = re.sub(r"^(\S+\.[ch]:\d+|AssertionError): ", "", " ".join(message.split()))
    return text if len(text) <= 110 else text[:107] + "..."


def try_mutant(build: Build, mutant: Mutant) -> list[str]:
    """Runs the tests of one mutant; what is wrong, empty when each of them failed as it must."""
    wrong = []
    with tempfile.TemporaryDirectory(prefix="mutant-") as folder:
        bench = Bench(build, Path(folder), mutant)
        for test in mutant.tests:
            outcome = bench.run(test)
            print(
                f"{'SURVIVED' if outcome.passed else 'caught'}  {mutant.name}: {mutant.bug}\n"
                f"        {test}" + ("" if outcome.passed else f": {short(outcome.message)}"),
                flush=True,
            )
            if outcome.passed:
                wrong.append(f"{mutant.name} survives {test}")
    return wrong


def of_pytest(test: str) -> bool:
    """Whether a name is a test of pytest, not of ctest."""
    return ".py::" in test


def try_unchanged(build: Build, *tests: str) -> list[str]:
    """A test proves something only when it passes without the bug; several must be of pytest."""
    with tempfile.TemporaryDirectory(prefix="mutant-") as folder:
        bench = Bench(build, Path(folder))
        outcome = bench.run_pytest(*tests) if len(tests) > 1 else bench.run(*tests)
    return [] if outcome.passed else [f"{' or '.join(tests)} fails without any bug: {short(outcome.message)}"]


# ---- the list in README.md ----

MARKS = "<!-- the list: run.py --write -->", "<!-- end of the list -->"


def listed(mutants: Iterable[Mutant]) -> str:
    """The list as Markdown."""
    rows = ["", "| planted bug | what it breaks | where | caught by |", "|---|---|---|---|"]
    for mutant in mutants:
        tests = "<br>".join(f"`{test}`" for test in mutant.tests)
        rows.append(f"| {mutant.name} | {mutant.bug} | `{mutant.file}` | {tests} |")
    return "\n".join([*rows, "", ""])


def readme_with(mutants: Iterable[Mutant]) -> str:
    """README.md with the list brought up to date."""
    head, _, rest = README.read_text().partition(MARKS[0])
    _, _, tail = rest.partition(MARKS[1])
    return f"{head}{MARKS[0]}\n{listed(mutants)}{MARKS[1]}{tail}"


def run_all(build: Build, mutants: list[Mutant], jobs: int) -> list[str]:
    """Every mutant and every test without one; what is wrong."""
    tests = sorted({test for mutant in mutants for test in mutant.tests})
    with ThreadPoolExecutor(jobs) as pool:
        in_pytest = [test for test in tests if of_pytest(test)]
        unchanged = [pool.submit(try_unchanged, build, *in_pytest)] if in_pytest else []
        unchanged += [pool.submit(try_unchanged, build, test) for test in tests if not of_pytest(test)]
        broken = [pool.submit(try_mutant, build, mutant) for mutant in mutants]
        wrong = []
        for future in [*unchanged, *broken]:
            try:
                wrong += future.result()
            except Broken as error:
                wrong.append(str(error))
    return wrong


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", type=Path, default=ROOT / "build" / "dev", help="a build folder with GML_TESTS=ON")
    parser.add_argument("--jobs", type=int, default=min(4, os.cpu_count() or 1))
    parser.add_argument("--write", action="store_true", help="write the list in README.md and end")
    parser.add_argument("names", nargs="*", help="mutants to run; all when none is named")
    options = parser.parse_args()
    start = time.monotonic()
    try:
        mutants = read_list()
        if options.write:
            README.write_text(readme_with(mutants))
            return 0
        wrong = [] if README.read_text() == readme_with(mutants) else ["README.md is stale: run.py --write"]
        unknown = set(options.names) - {mutant.name for mutant in mutants}
        if unknown:
            raise Broken(f"no mutant is called {', '.join(sorted(unknown))}")
        chosen = [mutant for mutant in mutants if not options.names or mutant.name in options.names]
        wrong += run_all(Build(options.build), chosen, options.jobs)
    except Broken as error:
        print(f"mutants: {error}", file=sys.stderr)
        return 2
    for line in wrong:
        print(f"mutants: {line}", file=sys.stderr)
    print(f"{len(chosen)} planted bugs, {len(wrong)} complaints, {time.monotonic() - start:.0f} s")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
