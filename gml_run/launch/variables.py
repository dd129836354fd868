# SPDX-License-Identifier: Apache-2.0
"""The GML_* variables that no option stands for: checked before the program starts, as the libraries take what they
cannot read for the default."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping

from gml_run._abi import OPTIONS
from gml_run.config import LARGEST_DEVICE, SMALLEST_DEVICE
from gml_run.errors import GmlError
from gml_run.units import parse_size

_MOST_DEVICES = 16
_MOST_FAULTS = 32
_LARGEST_SPACE = 1 << 56
_OTHERS = ("GML_LIB_DIR", "GML_DEBUG", "GML_SIM_VA")  # that are in no list

_FAULT = re.compile(r"(?:foreign:\d+\+?=(?P<size>.+)|(?P<call>\w{1,47}):\d+\+?(?P<half>/?)(?:=\d+|~\d+))", re.ASCII)
_HALFWAY = ("cuMemUnmap", "cuMemSetAccess")


def _switch(text: str) -> str:
    return text if text in ("0", "1") else ""


def _number(text: str) -> str:
    return text if text.isascii() and text.isdigit() and len(text) < 19 else ""


def _devices(text: str) -> str:
    return text if _number(text) and 1 <= int(text) <= _MOST_DEVICES else ""


def _bytes(least: int, most: int) -> Callable[[str], str]:
    def check(text: str) -> str:
        try:
            size = parse_size(text)
        except ValueError:
            return ""
        return str(size) if least <= size <= most else ""

    return check


def _time(text: str) -> str:
    return text if re.fullmatch(r"fast|adversarial(:\d{1,18})?", text, re.ASCII) else ""


def _faults(text: str) -> str:
    entries = text.split(",")
    for entry in entries:
        found = _FAULT.fullmatch(entry)
        if found is None or (found["half"] and found["call"] not in _HALFWAY):
            return ""
        if found["size"] is not None and not _bytes(1, LARGEST_DEVICE)(found["size"]):
            return ""
    return text if len(entries) <= _MOST_FAULTS else ""


_ON = "write 1 or 0"
_SIZE = "write a size from 256M to 512G"

# Name -> (the value as the libraries read it, or "" for one that they cannot; how to write it).
_RULES: Mapping[str, tuple[Callable[[str], str], str]] = {
    "GML_CHECK": (_switch, _ON),
    "GML_SIM_STRICT": (_switch, _ON),
    "GML_SIM_ORACLE": (_switch, _ON),
    "GML_SIM_SIZE": (_bytes(SMALLEST_DEVICE, LARGEST_DEVICE), _SIZE),
    "GML_SIM_MEMORY": (_bytes(SMALLEST_DEVICE, LARGEST_DEVICE), _SIZE),
    "GML_SIM_VA": (_bytes(SMALLEST_DEVICE, _LARGEST_SPACE), "write a size such as 128T"),
    "GML_SIM_DEVICES": (_devices, f"write a number from 1 to {_MOST_DEVICES}"),
    "GML_SIM_TIME": (_time, "write fast, adversarial or adversarial:SEED with a number"),
    "GML_SIM_FLAG_AFTER": (_number, "write a whole number, such as 1024; 0: never"),
    "GML_SIM_FAULTS": (_faults, "write CALL:NUMBER=ERROR, such as cuMemMap:3=2, or foreign:NUMBER=SIZE, by commas"),
}


def checked_variables(environ: Mapping[str, str]) -> dict[str, str]:
    """The variables of the environment that have a rule, as the libraries read them.

    Raises GmlError for the first that cannot be read.
    """
    found = {}
    for name, (read, fix) in _RULES.items():
        text = environ.get(name, "")
        if not text:
            continue
        found[name] = read(text)
        if not found[name]:
            raise GmlError(f"{text!r} cannot be read", name, fix)
    return found


def unknown_variables(environ: Mapping[str, str], of_options: Iterable[str]) -> list[str]:
    """One sentence for each GML_* variable that is nearly one of ours; others belong to somebody else.

    `of_options`: the variables that options fall back to.
    """
    known = {name for name, _, _ in OPTIONS} | {*of_options} | {*_RULES, *_OTHERS}
    strangers = [name for name in environ if name.startswith("GML_") and name not in known]
    if not strangers:
        return []
    import difflib

    sentences = []
    for name in sorted(strangers):
        near = difflib.get_close_matches(name, known - {""}, 1, 0.75)
        if near:
            sentences.append(f"{name} is no variable of gml-run and does nothing: {near[0]} is one")
    return sentences
