# SPDX-License-Identifier: Apache-2.0
"""The one error that crosses packages; the command line catches it once and prints one line."""

from __future__ import annotations

# Exit codes of our own, as `env`, `timeout` and `nohup` use them.
OWN_FAILURE = 125
NOT_EXECUTABLE = 126
NOT_FOUND = 127


class GmlError(Exception):
    """What went wrong, where, and what the user can do about it."""

    def __init__(self, what: str, where: str = "", hint: str = "", exit_code: int = OWN_FAILURE) -> None:
        super().__init__(what)
        self.what = what
        self.where = where
        self.hint = hint
        self.exit_code = exit_code

    def line(self) -> str:
        """The error as one line."""
        text = f"{self.where}: {self.what}" if self.where else self.what
        return f"{text}; {self.hint}" if self.hint else text
