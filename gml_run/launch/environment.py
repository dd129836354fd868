# SPDX-License-Identifier: Apache-2.0
"""The child's environment: the user's own, plus LD_PRELOAD and our GML_* variables."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping

from gml_run.config import RunOptions
from gml_run.launch.process import given_entries
from gml_run.native import Native

_SANITIZER = re.compile(rb"lib(?:clang_rt\.)?(?:hw)?asan[-\w]*\.so(?:\.\d+)*")
_HEAD_BYTES = 1 << 18  # of a program: the names of its libraries stand near the beginning
_UNSAFE = re.compile(r"[\s:$]")  # separators of LD_PRELOAD, and the loader's own substitutions


def user_environment() -> dict[str, str]:
    """The environment as it was handed to us.

    In the C locale the interpreter sets LC_CTYPE for itself (PEP 538); the child must not see that.
    """
    environ = dict(os.environ)
    if "LC_CTYPE" in environ:
        given = given_entries()
        if given is not None and not any(entry.startswith(b"LC_CTYPE=") for entry in given):
            del environ["LC_CTYPE"]
    return environ


def run_variables(options: RunOptions, run_dir: str | None) -> dict[str, str]:
    """The GML_* variables that carry the options to the libraries in the child."""
    variables = {
        "GML_ALLOCATOR": options.allocator.value,
        "GML_INTERCEPT": options.intercept.value,
        "GML_GOAL": options.goal.value,
        "GML_RUN_DIR": run_dir or "",
    }
    if options.limit_bytes is not None:
        variables["GML_LIMIT"] = str(options.limit_bytes)
    if options.max_driver_time is not None:
        variables["GML_MAX_DRIVER_TIME"] = f"{options.max_driver_time:g}"
    if options.driver_costs is not None:
        variables["GML_DRIVER_COSTS"] = options.driver_costs
    if options.release_idle_s is not None:
        variables["GML_RELEASE_IDLE"] = str(options.release_idle_s)
    if options.stacks:
        variables["GML_STACKS"] = "1"
    if options.simulation is not None:
        variables["GML_SIM_PROFILE"] = options.simulation.profile
        if options.simulation.size_bytes is not None:
            variables["GML_SIM_SIZE"] = str(options.simulation.size_bytes)
    return variables


def simulation_variables(native: Native, user: Mapping[str, str]) -> dict[str, str]:
    """What programs need to find the simulated driver by path: Triton (torch.compile) links against it."""
    if not native.simulated or "TRITON_LIBCUDA_PATH" in user:
        return {}
    driver = next(path for path in native.simulated if os.path.basename(path) == "libcuda.so.1")
    return {"TRITON_LIBCUDA_PATH": os.path.dirname(driver)}


def preload_value(native: Native, simulate: bool, user_value: str, safe: Mapping[str, str]) -> str:
    """LD_PRELOAD: our libraries first, then what the user had. `safe` maps folders to loadable ones.

    A runtime of AddressSanitizer stays before ours: it ends a program in which another library comes first.
    """
    ours = [native.shim, *(native.simulated if simulate else ())]
    paths = [os.path.join(safe[os.path.dirname(path)], os.path.basename(path)) for path in ours]
    # A gml-run inside a gml-run finds our libraries there already: each is named once.
    names = {os.path.basename(path) for path in (native.shim, *native.simulated)}
    kept = [word for word in re.split(r"[\s:]+", user_value) if word and not _is_ours(word, names)]
    first = [word for word in kept if _SANITIZER.fullmatch(os.fsencode(os.path.basename(word)))]
    return ":".join([*first, *paths, *(word for word in kept if word not in first)])


def sanitizer_of(program: str) -> str:
    """The name of the AddressSanitizer runtime that a program is linked with; empty when it is with none."""
    try:
        with open(program, "rb") as file:
            head = file.read(_HEAD_BYTES)
    except OSError:
        return ""
    found = _SANITIZER.search(head) if head.startswith(b"\x7fELF") else None
    return os.fsdecode(found[0]) if found else ""


def safe_folders(native: Native) -> dict[str, str]:
    """Each folder of our libraries, mapped to a path to it that LD_PRELOAD can carry.

    A folder whose name holds a space, a colon or a dollar is reached through a link in $TMPDIR.
    Raises OSError when no such link can be made.
    """
    folders = {os.path.dirname(path) for path in (native.shim, *native.simulated)}
    return {folder: _link(folder) if _UNSAFE.search(folder) else folder for folder in folders}


def _is_ours(word: str, names: set[str]) -> bool:
    base = os.path.basename(word)
    if base not in names:
        return False
    # Someone else's libcuda.so.1 stays; ours lies beside the shim or in its sim/ folder.
    folder = os.path.dirname(os.path.realpath(word))
    if os.path.basename(folder) == "sim":
        folder = os.path.dirname(folder)
    return os.path.isfile(os.path.join(folder, "libgml.so"))


def _link(target: str) -> str:
    """A link to `target` under a plain name; it is left in place for children that outlive us."""
    import hashlib

    name = f"gml-run-{os.getuid()}-{hashlib.sha256(os.fsencode(target)).hexdigest()[:12]}"
    places = [os.environ.get("TMPDIR", ""), "/tmp", "/var/tmp", "/dev/shm"]
    failure: OSError | None = None
    for place in places:
        if not place or not os.path.isabs(place) or _UNSAFE.search(place):
            continue
        link = os.path.join(place, name)
        try:
            try:
                os.symlink(target, link)
            except FileExistsError:
                # Anyone may write there: trust only a link of our own that points where it should.
                if os.lstat(link).st_uid != os.getuid() or os.readlink(link) != target:
                    raise
            return link
        except OSError as error:
            failure = error
    raise failure or OSError("no folder for a link to the libraries")
