# SPDX-License-Identifier: Apache-2.0
"""Options from a file: gml.toml, or [tool.gml] in pyproject.toml, in the working directory."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from typing import Any

from gml_run.cli.specs import RUN_SPECS
from gml_run.config import Told
from gml_run.errors import GmlError

# A line that may begin our table, or a value in it. Without one, others' files are not looked into: they may be as
# broken as they like.
_OURS = re.compile(rb"^[\s\[]*[\"']?tool[\"']?\s*\.\s*[\"']?gml[\"']?\s*[\].=]", re.MULTILINE)


def read_config() -> dict[str, str | bool]:
    """Option name -> value; {} without a file. Raises GmlError for a file that cannot be meant.

    The file is looked for in the working directory only, so that nobody's options come from afar.
    """
    for name, table in (("gml.toml", ()), ("pyproject.toml", ("tool", "gml"))):
        data = _content(name)
        if data is None or (table and not _OURS.search(data)):
            continue
        return _options(name, _table(name, data, table))
    return {}


def _content(name: str) -> bytes | None:
    try:
        if not os.path.isfile(name):
            return None  # a pipe of that name would be waited for
        with open(name, "rb") as file:
            return file.read()
    except OSError:
        return None


def _table(name: str, data: bytes, path: tuple[str, ...]) -> Mapping[str, Any]:
    import tomllib

    try:
        content: Any = tomllib.loads(data.decode())
    except (ValueError, UnicodeDecodeError) as error:
        raise GmlError(f"is no TOML: {error}", os.path.abspath(name)) from None
    for key in path:
        content = content.get(key, {}) if isinstance(content, dict) else {}
    return content if isinstance(content, dict) else {}


def _options(name: str, table: Mapping[str, Any]) -> dict[str, str | bool]:
    specs = {spec.name: spec for spec in RUN_SPECS}
    options: dict[str, str | bool] = {}
    for key, value in table.items():
        spec = specs.get(key.replace("-", "_"))
        if spec is None:
            known = ", ".join(known.replace("_", "-") for known in specs)
            raise GmlError(f"no option is called {key!r}", os.path.abspath(name), f"known: {known}")
        if spec.metavar:
            good = isinstance(value, str | int | float) and not isinstance(value, bool)
        else:
            good = isinstance(value, bool)
        if not good:
            wanted = "a text or a number" if spec.metavar else "true or false"
            raise GmlError(f"{key} = {value!r}: it must be {wanted}", os.path.abspath(name))
        told = f"{os.path.abspath(name)}: {key}"
        options[spec.name] = Told(str(value), told) if spec.metavar else value
    return options
