# SPDX-License-Identifier: Apache-2.0
"""Masks secrets in command lines before they are written anywhere."""

from __future__ import annotations

import re
from collections.abc import Sequence

MASK = "***"
_NAMES = frozenset(
    "token tokens key keys apikey accesskey password passwd passphrase pwd secret secrets credential "
    "credentials authorization auth".split()
)
# Counts and settings about tokens and keys are no secrets: --max-tokens 512, --num-keys=4.
_COUNTS = frozenset("max min num n per batch new total count pad eos bos sort primary".split())
_NAME = re.compile(r"-{0,2}[A-Za-z_][\w.\-]*")
_USER_INFO = re.compile(r"(://[^/\s:@]*):[^/\s@]+@")


def mask_command(words: Sequence[str]) -> list[str]:
    """The words with the values of options and variables that name a secret replaced by `***`."""
    masked = []
    hide_next = False
    for word in words:
        hide, hide_next = hide_next, False
        name, equals, _ = word.partition("=")
        if hide and not word.startswith("-"):
            word = MASK
        elif equals and _names_secret(name):
            word = f"{name}={MASK}"
        elif word.startswith("-") and not equals and _names_secret(word):
            hide_next = True
        masked.append(_USER_INFO.sub(rf"\1:{MASK}@", word))
    return masked


def _names_secret(name: str) -> bool:
    if len(name) > 100 or not _NAME.fullmatch(name):
        return False
    parts = [part for part in re.split(r"[-_.]+", name.lower()) if part]
    return not _COUNTS.intersection(parts) and bool(_NAMES.intersection(parts))
