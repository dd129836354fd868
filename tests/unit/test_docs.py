# SPDX-License-Identifier: Apache-2.0
"""What the documents say about the program is so: options, links, commands."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from gml_run.cli.specs import RUN_SPECS
from gml_run.cli.words import COMMANDS

ROOT = Path(__file__).resolve().parents[2]
DOCUMENTS = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])
OTHERS = {"--help", "--version", "-h", "--", "--install-completion"}
FLAGS = {flag for spec in RUN_SPECS for flag in spec.flags} | OTHERS


def name(path):
    return str(path.relative_to(ROOT))


def run_commands(text):
    """Every `gml-run ...` in code: the words after it."""
    fenced = re.findall(r"^```\w*\n(.*?)^```", text, re.DOTALL | re.MULTILINE)
    indented = re.findall(r"^    .*$", text, re.MULTILINE)
    inline = re.findall(r"`(gml-run [^`]+)`", text)
    for line in "\n".join([*fenced, *indented, *inline]).splitlines():
        for command in re.findall(r"\bgml-run( [^|;&#]*)", line):
            yield command.split()


def own_flags(words):
    """The options before the program or command; the names of gml-run's own commands end them too."""
    values = {flag for spec in RUN_SPECS if spec.metavar for flag in spec.flags}
    flags, words = [], iter(words)
    for word in words:
        if not word.startswith("-"):
            break
        flags.append(word.split("=")[0])
        if word in values:
            next(words, None)
        if word == "--":
            break
    return flags


def test_reference_of_options_is_fresh():
    script = ROOT / "docs" / "reference" / "make_options.py"
    made = subprocess.run([sys.executable, script], capture_output=True, text=True, check=True).stdout
    assert (ROOT / "docs" / "reference" / "options.md").read_text() == made, "run `make gen`"


def test_help_shows_every_option():
    command = [sys.executable, "-m", "gml_run", "--help"]
    shown = subprocess.run(command, capture_output=True, text=True, check=True, cwd=ROOT).stdout
    assert [flag for flag in FLAGS - {"--"} if flag not in shown] == []
    assert [word for word in COMMANDS if not re.search(rf"│ {word}\s", shown)] == []


@pytest.mark.parametrize("path", DOCUMENTS, ids=name)
def test_links_lead_somewhere(path):
    text = path.read_text()
    targets = re.findall(r"\]\(([^)#\s]+)(?:#[^)]*)?\)|src=\"([^\"]+)\"", text)
    targets = [first or second for first, second in targets]
    missing = [each for each in targets if "://" not in each and not (path.parent / each).exists()]
    assert missing == []


@pytest.mark.parametrize("path", DOCUMENTS, ids=name)
def test_options_in_commands_exist(path):
    unknown = [flag for words in run_commands(path.read_text()) for flag in own_flags(words) if flag not in FLAGS]
    assert unknown == []


def test_commands_are_found_in_documents():
    """The test above looks at something."""
    text = (ROOT / "README.md").read_text()
    assert len([words for words in run_commands(text) if own_flags(words)]) >= 3
    assert own_flags(["--goal", "memory", "-q", "python", "--bad"]) == ["--goal", "-q"]


@pytest.mark.parametrize("path", DOCUMENTS, ids=name)
def test_make_targets_in_documents_exist(path):
    targets = set(re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    named = re.findall(r"(?:^    |`|^)make ([a-z][\w-]*)(?=`|\s*$|\s+#|\s{2})", path.read_text(), re.MULTILINE)
    assert [target for target in named if target not in targets] == []
