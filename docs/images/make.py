# SPDX-License-Identifier: Apache-2.0
"""Makes the pictures of this folder: the terminal of a real run, while it goes on and after its end.

python docs/images/make.py        # from the top folder; takes about half a minute
"""

from __future__ import annotations

import io
import re
import sys
import tempfile
from pathlib import Path

from rich.console import Console
from rich.style import Style
from rich.text import Text

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tests" / "support"))

from launcher import ROOT, TerminalRun
from runs import environment

COLUMNS, ROWS = 112, 22
COMMAND = "gml-run --simulate h100 --goal memory python docs/examples/train_gpt2.py"
# Names of the terminal emulator's colours that Rich calls otherwise.
COLOURS = {"brown": "yellow", "brightbrown": "bright_yellow"}


def colour(name: str) -> str | None:
    if name == "default":
        return None
    if re.fullmatch("[0-9a-f]{6}", name):
        return f"#{name}"
    return COLOURS.get(name, re.sub("^bright", "bright_", name))


def screen_text(run: TerminalRun) -> Text:
    """What the terminal shows, with its colours."""
    text = Text()
    for row in range(run.screen.lines):
        line = Text()
        for column in range(run.screen.columns):
            cell = run.screen.buffer[row][column]
            style = Style(color=colour(cell.fg), bgcolor=colour(cell.bg), bold=cell.bold, reverse=cell.reverse)
            line.append(cell.data, style)
        line.rstrip()
        text.append(line)
        text.append("\n")
    text.rstrip()
    return text


def save(text: Text, name: str) -> None:
    console = Console(record=True, width=COLUMNS, file=io.StringIO(), force_terminal=True)
    console.print(Text.assemble(("$ ", "bright_black"), COMMAND))
    console.print(text, soft_wrap=True)
    picture = console.export_svg(title="gml-run", unique_id=name)
    # Without fonts from elsewhere: the picture needs no network.
    picture = re.sub(r"<!--.*?-->\s*", "", picture)
    picture = re.sub(r"@font-face \{.*?\}\s*", "", picture, flags=re.DOTALL)
    picture = picture.replace("Fira Code, monospace", "monospace")
    Path(__file__).with_name(f"{name}.svg").write_text(picture)


def main() -> None:
    python = str(Path(sys.executable))
    words = [word if word != "python" else python for word in COMMAND.split()]
    environ = environment(TERM="xterm-256color", COLORTERM="truecolor", COLUMNS=None, NO_COLOR=None)
    command = [python, "-m", "gml_run", *words[1:]]
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "docs").symlink_to(ROOT / "docs")
        with TerminalRun(command, rows=ROWS - 1, columns=COLUMNS, env=environ, cwd=folder) as run:
            run.wait_for(r"step 10:", 120)
            run.wait_for(r"stitched ([4-9]\.\d+|1\d\.\d) GiB", 60)  # in the middle of a long batch
            save(screen_text(run), "dock")
            code = run.finish(120)
            assert code == 0, "\n".join(run.lines())
            save(screen_text(run), "summary")


main()
