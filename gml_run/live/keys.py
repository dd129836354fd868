# SPDX-License-Identifier: Apache-2.0
"""Takes apart what a terminal sends for what was typed."""

from __future__ import annotations

import re

_KEY = re.compile(rb"\x1b(?:\[[0-?]*[ -/]*[@-~]|O.|[^\x1b])?|.", re.DOTALL)


def split_keys(data: bytes) -> list[bytes]:
    """One entry for each key: a byte, or the whole sequence of an arrow key or the like."""
    return _KEY.findall(data)
