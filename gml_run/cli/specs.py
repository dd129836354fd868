# SPDX-License-Identifier: Apache-2.0
"""The options of a run, each defined once; the fast parser and Typer both work from here."""

from __future__ import annotations

from dataclasses import dataclass

MEMORY = "GPU memory"
VIEW = "View and report"


@dataclass(frozen=True, slots=True)
class Spec:
    """One option. `metavar` is empty for a switch; `variable` is the GML_* variable it falls back to (1 or 0 for a
    switch)."""

    name: str
    flags: tuple[str, ...]
    help: str
    panel: str
    metavar: str = ""
    variable: str = ""
    default: str = ""


ALLOCATOR = Spec(
    "allocator",
    ("--allocator",),
    "Who serves the memory: vms stitches free memory; native, expandable and cuda-async are PyTorch's own; "
    "raw is the driver's plain calls; observe leaves everything as it is.",
    MEMORY,
    "NAME",
    "GML_ALLOCATOR",
    "vms",
)
OBSERVE = Spec("observe", ("--observe",), "Change nothing, only watch (the same as --allocator observe).", MEMORY)
INTERCEPT = Spec(
    "intercept",
    ("--intercept",),
    "What of PyTorch reaches the allocator: tensors, its cache's segments, or uncached: tensors with the cache off.",
    MEMORY,
    "WHAT",
    "GML_INTERCEPT",
    "tensors",
)
GOAL = Spec(
    "goal",
    ("--goal",),
    "What to favour: memory holds least, throughput spends least driver time, balanced is between them.",
    MEMORY,
    "GOAL",
    "GML_GOAL",
    "balanced",
)
LIMIT = Spec(
    "limit", ("--limit",), "Most memory to hold per device, such as 24G; 0 is no limit.", MEMORY, "SIZE", "GML_LIMIT"
)
MAX_DRIVER_TIME = Spec(
    "max_driver_time",
    ("--max-driver-time",),
    "Percent of elapsed time that stitching may cost (1 when not given).",
    MEMORY,
    "PCT",
    "GML_MAX_DRIVER_TIME",
)
DRIVER_COSTS = Spec(
    "driver_costs",
    ("--driver-costs",),
    "What the driver's memory calls cost per 2 MiB, instead of what is measured, such as "
    "create=193us,map=1.5us,set_access=36us,unmap=26us or some of these; a simulated device takes as long.",
    MEMORY,
    "COSTS",
    "GML_DRIVER_COSTS",
)
RELEASE_IDLE = Spec(
    "release_idle",
    ("--release-idle",),
    "Give memory back to the device that was idle for so many seconds; without it, idle memory is kept for reuse.",
    MEMORY,
    "SECONDS",
    "GML_RELEASE_IDLE",
)
SIMULATE = Spec(
    "simulate",
    ("--simulate",),
    "Run without a GPU on a simulated one, such as h100 or h100:24G: memory behaves as on the device, computed "
    "values mean nothing.",
    MEMORY,
    "NAME[:SIZE]",
    "GML_SIMULATE",
)
STACKS = Spec(
    "stacks",
    ("--stacks",),
    "Charge live memory to the Python lines that asked for it: the report and an out-of-memory failure name those "
    "that held most (costs about 0.2 microseconds a block).",
    VIEW,
    variable="GML_STACKS",
)
LIVE = Spec(
    "live",
    ("--live",),
    "Live view: dock keeps lines at the bottom of the terminal, screen fills it, line prints one now and then, off "
    "shows nothing; auto takes the dock on a terminal, else lines.",
    VIEW,
    "VIEW",
    "GML_LIVE",
    "auto",
)
STEP = Spec(
    "step",
    ("--step",),
    "A line of the program's output that matches ends a step (under dock and screen); without it, steps are "
    "found in the allocations.",
    VIEW,
    "REGEX",
    "GML_STEP",
)
OUTPUT = Spec(
    "output",
    ("--output", "-o"),
    "Run directory, instead of gml-runs/<time>-<command>-<id>; may hold %h host, %p process, %r rank, %t time, "
    "%q{VAR}.",
    VIEW,
    "DIR",
    "GML_OUTPUT",
)
METRICS = Spec(
    "metrics",
    ("--metrics",),
    "Keep FILE up to date with the figures in Prometheus' text format (needs gml-run[metrics]).",
    VIEW,
    "FILE",
    "GML_METRICS",
)
STATUS_FILE = Spec(
    "status_file",
    ("--status-file",),
    "Append the figures to FILE every five seconds, one JSON object a line.",
    VIEW,
    "FILE",
    "GML_STATUS_FILE",
)
QUIET = Spec(
    "quiet", ("--quiet", "-q"), "No live view, no notices, no summary; report.json is written all the same.", VIEW
)
STRICT = Spec("strict", ("--strict",), "End with 125 when the run could not be measured or reported.", VIEW)

RUN_SPECS = (
    ALLOCATOR,
    OBSERVE,
    INTERCEPT,
    GOAL,
    LIMIT,
    MAX_DRIVER_TIME,
    DRIVER_COSTS,
    RELEASE_IDLE,
    SIMULATE,
    STACKS,
    LIVE,
    STEP,
    OUTPUT,
    METRICS,
    STATUS_FILE,
    QUIET,
    STRICT,
)
