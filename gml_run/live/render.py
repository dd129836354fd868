# SPDX-License-Identifier: Apache-2.0
"""Turns Rich texts into lines with escape sequences, for the terminal that an environment describes."""

from __future__ import annotations

import io
from collections.abc import Mapping

from rich.console import Console
from rich.text import Text

_TO_ASCII = str.maketrans(
    {
        "─": "-",
        "·": "-",
        "…": ".",
        "×": "x",
        "µ": "u",
        "≤": "<",
        "█": "#",
        "▓": "=",
        "▒": "+",
        "░": ".",
        "│": "|",
        "▁": "_",
        "▂": ".",
        "▃": ",",
        "▄": "-",
        "▅": "=",
        "▆": "+",
        "▇": "*",
    }
)


class Renderer:
    """One terminal's way to show text: its colours, and ASCII where its locale is not UTF-8."""

    def __init__(self, environ: Mapping[str, str]) -> None:
        self._buffer = io.StringIO()
        self._console = Console(
            file=self._buffer, force_terminal=True, legacy_windows=False, highlight=False, _environ=environ
        )
        locale = environ.get("LC_ALL") or environ.get("LC_CTYPE") or environ.get("LANG") or ""
        self.ascii = "utf" not in locale.lower()

    @property
    def colours(self) -> bool:
        """False where everything has to be told by characters alone."""
        return self._console.color_system is not None and not self._console.no_color

    def render(self, text: Text, columns: int) -> str:
        """The text as one line of at most `columns` cells."""
        text.no_wrap = True
        text.truncate(columns, overflow="ellipsis")
        self._buffer.seek(0)
        self._buffer.truncate()
        self._console.print(text, end="", width=columns, soft_wrap=True)
        painted = self._buffer.getvalue()
        return painted.translate(_TO_ASCII) if self.ascii else painted
