# SPDX-License-Identifier: Apache-2.0
"""Writes and reads the JSON files of a run directory, whole or not at all."""

from __future__ import annotations

import json
import os
from typing import Any


def write_json(path: str, content: dict[str, Any]) -> None:
    """Replaces `path` in one step, so that a reader never sees half a file."""
    fresh = f"{path}.{os.getpid()}.part"
    # Words that are not UTF-8 stay readable: JSON cannot carry them as they are.
    text = json.dumps(content, indent=1, ensure_ascii=False).encode("utf-8", "backslashreplace")
    with open(fresh, "wb") as file:
        file.write(text + b"\n")
    os.replace(fresh, path)


def read_json(path: str) -> dict[str, Any]:
    """The content of `path`. Raises OSError or ValueError."""
    with open(path, "rb") as file:
        content = json.load(file)
    if not isinstance(content, dict):
        raise ValueError("not an object")
    return content
