# SPDX-License-Identifier: Apache-2.0
"""What only a real GPU can prove: runs every check there is for one, and writes one JSON result file.

    make check-gpu                                        # on a machine with an NVIDIA GPU, under 8 minutes
    python tests/gpu/check_gpu.py --simulate h100 -o FILE # rehearsal of the checks themselves, proves nothing

Nothing is skipped silently: a check that could not run is in the file with the reason, and makes the exit code 1.
The file goes to docs/gpu-results/, named after the day and the GPU; docs/gpu-verification.md says which claim each
check stands for.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import re
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from find_gpu import find_gpu

ROOT = Path(__file__).resolve().parents[2]
HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(ROOT / "tests" / "support"))

from runs import PROGRAMS, Run, environment, python, run  # noqa: E402

BUDGET_S = 460  # of the 8 minutes; what is left then is reported as not run
WORKLOADS = ("gpt_varlen", "lora_offload")  # the like of p1 and p3, in short form
MODES = {
    "native": ["--allocator", "native"],
    "expandable": ["--allocator", "expandable"],
    "vms": ["--goal", "balanced"],
    "vms_memory": ["--goal", "memory"],
}
SLOWER_LIMIT = 1.05  # steps under vms, and kernels on stitched memory, may take this much of the other's time


class Failed(Exception):
    """A check that ran and did not hold, or could not run; the text says why."""


@dataclass(frozen=True, slots=True)
class Setting:
    """Where the checks run."""

    simulate: str | None
    build: Path
    folder: Path

    def options(self) -> list[str]:
        return ["-q", *(["--simulate", self.simulate] if self.simulate else [])]


def program(setting: Setting, name: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Runs a native check program on the device."""
    path = setting.build / "tests" / "contract" / name
    if not path.exists():
        raise Failed(f"{path} is not built (make setup)")
    environ = environment()
    if setting.simulate:
        environ.update(LD_LIBRARY_PATH=str(setting.build / "sim"), GML_SIM_PROFILE=setting.simulate)
    return output_of([str(path), *arguments], env=environ)


def output_of(command: list[str], env: dict[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, env=env, capture_output=True, text=True, timeout=120, check=False)


# ---- the checks: each returns what it measured, or raises Failed ----


def contract(setting: Setting) -> dict[str, Any]:
    done = program(setting, "contract", "cuda")
    lines = [line.split(" ", 1) for line in done.stdout.splitlines()]
    failed = [text for verdict, text in lines if verdict != "ok"]
    # A driver that allows more than the contract does no harm, but the simulator should learn of it.
    allows = [text for text in failed if text.startswith("refuses_")]
    if done.returncode not in (0, 1) or not lines or len(failed) > len(allows):
        raise Failed(f"{failed or done.stderr.strip()}")
    return {"tests": {text.split(":")[0]: verdict == "ok" for verdict, text in lines}, "allows_more": allows}


def driver_costs(setting: Setting) -> dict[str, Any]:
    done = program(setting, "vmm_cost", "64", "30")
    if done.returncode != 0:
        raise Failed(done.stderr.strip())
    return json.loads(done.stdout)


def workload(setting: Setting, name: str) -> dict[str, Any]:
    """One script under every mode: memory, and time of a step on the device."""
    told: dict[str, Any] = {}
    for mode, options in MODES.items():
        command = python(HERE / "timed.py", str(PROGRAMS / "workloads" / f"{name}.py"))
        ended = run([*setting.options(), *options], command, setting.folder / f"{name}-{mode}", timeout=120)
        told[mode] = figures(ended, mode) if ended.code == 0 else {"failed": ended.stderr[-500:]}
    broken = [mode for mode, said in told.items() if "failed" in said]
    if broken:
        raise Failed(f"under {', '.join(broken)}: {told}")
    for mode in ("vms", "vms_memory"):
        told[mode]["step_time_by_native"] = told[mode]["step_ms_p50"] / told["native"]["step_ms_p50"]
    needs = min(said["peak_allocated"] for said in told.values())
    for said in told.values():
        said["waste"] = 1 - needs / said["peak_reserved"]
    if told["vms_memory"]["waste"] > max(0.03, told["expandable"]["waste"] + 0.001):
        raise Failed(f"waste above 3 % and above expandable_segments: {told}")
    if not setting.simulate and told["vms"]["step_time_by_native"] > SLOWER_LIMIT:
        raise Failed(f"a step takes more than {SLOWER_LIMIT} × native: {told}")
    return told


def figures(ended: Run, mode: str) -> dict[str, Any]:
    said = ended.said
    device = ended.device
    said["device_peak_bytes"] = ended.report["device"].get("peak_used_bytes")
    said["report_peak_reserved"] = device["peak_reserved_bytes"]
    if mode.startswith("vms"):
        said["driver_time_s"] = device["driver_time_s"]
        said["driver_calls"] = device["driver_calls"]
        said["placements"] = device["placements"]
        if device["placements"]["extend"] + device["placements"]["stitch"] == 0:
            raise Failed(f"{mode}: nothing was stitched, so this proves nothing")
    if device["peak_reserved_bytes"] != said["peak_reserved"]:
        raise Failed(f"{mode}: PyTorch and the report disagree on the peak of reserved memory: {said}")
    return said


def kernels(setting: Setting) -> dict[str, Any]:
    command = python(HERE / "kernel_speed.py", *(["--short"] if setting.simulate else []))
    ended = run([*setting.options(), "--goal", "memory"], command, setting.folder / "kernels", timeout=120)
    if ended.code != 0:
        raise Failed(ended.stderr[-500:])
    said = ended.said
    if said["reserved_grew_bytes"] != 0:
        raise Failed(f"the tensor was not stitched: {said}")
    slow = [result for result in said["results"] if result["ratio"] > SLOWER_LIMIT]
    if slow and not setting.simulate:
        raise Failed(f"kernels are slower on stitched memory: {slow}")
    return said


CHECKS: dict[str, Callable[[Setting], dict[str, Any]]] = {
    "contract": contract,
    "driver_costs": driver_costs,
    "kernels_on_stitched_memory": kernels,
    **{f"workload_{name}": (lambda setting, name=name: workload(setting, name)) for name in WORKLOADS},
}


def run_check(check: Callable[[Setting], dict[str, Any]], setting: Setting, left_s: float) -> dict[str, Any]:
    """The result of one check; every failure becomes a part of it."""
    if left_s < 30:
        return {"status": "not run", "why": "the 8 minutes were over"}
    began = time.monotonic()
    try:
        result: dict[str, Any] = {"status": "ok", "result": check(setting)}
    except Failed as failure:
        result = {"status": "failed", "why": str(failure)}
    except (AssertionError, OSError, ValueError, KeyError, subprocess.TimeoutExpired) as failure:
        result = {"status": "failed", "why": f"{type(failure).__name__}: {failure}"}
    return {**result, "seconds": round(time.monotonic() - began, 1)}


def machine(gpu: str) -> dict[str, Any]:
    """Versions that a reader of the result needs."""
    told = {"gpu": gpu, "python": platform.python_version(), "kernel": platform.release()}
    code = "import json, torch; print(json.dumps({'torch': torch.__version__, 'cuda': torch.version.cuda}))"
    done = output_of([sys.executable, "-c", code])
    told |= json.loads(done.stdout) if done.returncode == 0 else {"torch": None}
    query = ["nvidia-smi", "--query-gpu=driver_version,memory.total", "--format=csv,noheader"]
    try:
        done = output_of(query)
        told["driver"] = done.stdout.splitlines()[0] if done.stdout else None
    except OSError:
        told["driver"] = None
    revision = output_of(["git", "-C", str(ROOT), "rev-parse", "HEAD"])
    return {**told, "revision": revision.stdout.strip() or None}


def output_path(given: str | None, gpu: str) -> Path:
    if given:
        return Path(given)
    slug = re.sub(r"[^a-z0-9]+", "-", gpu.lower()).strip("-")
    return ROOT / "docs" / "gpu-results" / f"{datetime.now(UTC):%Y-%m-%d}-{slug}.json"


def main() -> None:
    parser = argparse.ArgumentParser(description="Checks that need a GPU.")
    parser.add_argument("--simulate", metavar="NAME", help="rehearse on a simulated GPU; needs -o")
    parser.add_argument("-o", "--output", metavar="FILE")
    parser.add_argument("--only", metavar="NAME,...", help=f"some of: {', '.join(CHECKS)}")
    arguments = parser.parse_args()
    if arguments.simulate and not arguments.output:
        parser.error("a rehearsal needs -o: its result is none of a GPU")
    gpu, why = (f"simulated {arguments.simulate}", "") if arguments.simulate else find_gpu()
    if gpu is None:
        raise SystemExit(f"check-gpu: no GPU here: {why}. Run it on a machine with an NVIDIA GPU.")
    chosen = arguments.only.split(",") if arguments.only else list(CHECKS)
    build = Path(os.environ.get("GML_LIB_DIR") or ROOT / "build" / "dev")
    began, results = time.monotonic(), {}
    with TemporaryDirectory(prefix="gml-gpu-") as name:
        setting = Setting(arguments.simulate, build, Path(name))
        for check in CHECKS:
            if check in chosen:
                results[check] = run_check(CHECKS[check], setting, BUDGET_S - (time.monotonic() - began))
            else:
                results[check] = {"status": "not run", "why": "left out by --only"}
            print(f"check-gpu: {check}: {results[check]['status']}", flush=True)
    told = {"schema_version": 1, "date": f"{datetime.now(UTC):%Y-%m-%d}", "simulated": bool(arguments.simulate)}
    told |= {"machine": machine(gpu), "seconds": round(time.monotonic() - began, 1), "checks": results}
    path = output_path(arguments.output, gpu)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(told, indent=1) + "\n")
    bad = [f"{check} {result['status']}" for check, result in results.items() if result["status"] != "ok"]
    print(f"check-gpu: {', '.join(bad) or 'all checks hold'}: {path}")
    raise SystemExit(1 if bad else 0)


if __name__ == "__main__":
    main()
