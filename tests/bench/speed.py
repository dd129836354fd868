# SPDX-License-Identifier: Apache-2.0
"""Time of an allocation and its free on the simulated GPU, against PyTorch's native allocator; prints Markdown.

    python tests/bench/speed.py [--rounds N]        # BENCH_TRACES: a folder of recorded traces

Every round plays a trace on each allocator in turn, one process each, so that a busy machine meets all of them
alike; figures are medians over the rounds, the ratio is the median of the rounds' ratios. Calls that used the
driver's memory functions are left out of the percentiles. Needs torch's C++ library and the headers of a CUDA 13
toolkit (CUDA_HOME).

native    PyTorch's native caching allocator, driven from C++, without the preloaded library
direct    cudaMallocAsync / cudaFreeAsync served by the preloaded library, telemetry on
backend   the same through PyTorch's cudaMallocAsync backend, driven from C++
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from common import BENCH, print_table
from shim import preload
from traces import traces

WAYS = ("native", "direct", "backend")
HOT_PAIRS = (1_000, 101_000)
LOOP_PAIRS = 1_000_000


def torch_folder() -> Path:
    spec = importlib.util.find_spec("torch")
    if spec is None or not spec.submodule_search_locations:
        raise SystemExit("speed: needs a CUDA build of PyTorch (make setup)")
    return Path(spec.submodule_search_locations[0])


def build(folder: Path) -> Path:
    """Compiles speed.cpp against the installed torch."""
    torch = torch_folder()
    toolkit = Path(os.environ.get("CUDA_HOME", "/usr/local/cuda")) / "include"
    if not (toolkit / "crt" / "host_config.h").exists():
        raise SystemExit(f"speed: needs the headers of a CUDA 13 toolkit; none in {toolkit}: set CUDA_HOME")
    compiler = shutil.which("g++") or shutil.which("c++")
    if compiler is None:
        raise SystemExit("speed: needs a C++ compiler")
    runtime, libraries, out = torch.parent / "nvidia" / "cu13" / "lib", torch / "lib", folder / "speed"
    include = [f"-I{torch / 'include'}", "-isystem", str(toolkit)]
    link = [f"-L{libraries}", "-lc10_cuda", "-lc10", f"-L{runtime}", "-l:libcudart.so.13"]
    rpath = f"-Wl,-rpath,{libraries},-rpath,{runtime}"
    source = str(BENCH / "speed.cpp")
    subprocess.run([compiler, "-std=c++20", "-O2", *include, source, "-o", str(out), *link, rpath], check=True)
    return out


def start(command: list[str], *, ours: bool, folder: Path, settings: str = "") -> Any:
    """Runs a program on the simulated GPU; what it said on its last line."""
    environ = {name: value for name, value in os.environ.items() if not name.startswith(("GML_", "PYTORCH_"))}
    libraries = preload() if ours else preload().split(" ", 1)[1]
    folder.mkdir(parents=True)
    environ.update(LD_PRELOAD=libraries, GML_SIM_PROFILE="h100", GML_SIM_ORACLE="0", GML_RUN_DIR=str(folder))
    if ours:
        environ["GML_ALLOCATOR"] = "vms"
    if settings:
        environ["PYTORCH_CUDA_ALLOC_CONF"] = settings
    done = subprocess.run(command, env=environ, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise SystemExit(f"speed: {' '.join(command)}: {done.stderr[-500:]}")
    return json.loads(done.stdout.splitlines()[-1])


def play(program: Path, way: str, trace: Path, folder: Path) -> Any:
    command = [str(program), "direct" if way == "direct" else "torch", str(trace)]
    return start(command, ours=way != "native", folder=folder)


def compare(program: Path, trace: Path, rounds: int, folder: Path):
    """Rows of one trace: each way, and how it compares with native."""
    told: dict[str, list[Any]] = {way: [] for way in WAYS}
    for number in range(rounds):
        for way in WAYS:
            told[way].append(play(program, way, trace, folder / f"{trace.stem}-{way}-{number}"))

    def middle(way: str, call: str, figure: str) -> float:
        return statistics.median(said[call][figure] for said in told[way])

    def pair(said: Any) -> float:
        return said["alloc"]["p50"] + said["free"]["p50"]

    for way in WAYS:
        ratios = [pair(mine) / pair(native) for mine, native in zip(told[way], told["native"], strict=True)]
        figures = [f"{middle(way, call, part):,.0f}" for call in ("alloc", "free") for part in ("p50", "p99", "p999")]
        driver = sum(told[way][0][call]["driver"] for call in ("alloc", "free"))
        yield [trace.stem, way, *figures, f"{statistics.median(ratios):.2f}", f"{driver:,}"]


def calls_of(program: Path, mode: str, folder: Path) -> dict[str, float]:
    """Entry points of driver and runtime reached per pair, by the simulator's counters: all of them."""
    counts = []
    for pairs in HOT_PAIRS:
        place = folder / f"hot-{mode}-{pairs}"
        start([str(program), mode, "--hot", str(pairs)], ours=mode == "direct", folder=place)
        (path,) = place.glob("sim-*.json")
        counts.append(json.loads(path.read_text())["calls"])
    more = HOT_PAIRS[1] - HOT_PAIRS[0]
    rates = {name: (count - counts[0].get(name, 0)) / more for name, count in counts[1].items()}
    return {name: rate for name, rate in rates.items() if rate > 0.0005}


def show_calls(program: Path, folder: Path) -> None:
    ours, inner = calls_of(program, "direct", folder), calls_of(program, "context", folder)
    asked = ours.get("cudaGetDevice", 0)
    beyond = {name: rate - asked * inner.get(name, 0) for name, rate in ours.items() if name != "cudaGetDevice"}
    own = asked + sum(rate for rate in beyond.values() if rate > 0.0005)
    seen = ", ".join(f"{name} {rate:.3f}" for name, rate in sorted(ours.items())) or "none"
    causes = ", ".join(f"{name} {rate:.0f}" for name, rate in sorted(inner.items()) if name != "cudaGetDevice")
    print(f"\nReal runtime or driver calls per allocation + free without driver work: **{own:.3f}**")
    print(f"(counted by the simulator: {seen}; one cudaGetDevice causes {causes or 'nothing'} inside the runtime).")


def show_hot_loop(program: Path, rounds: int, folder: Path) -> None:
    told: dict[str, list[float]] = {way: [] for way in WAYS}
    for number in range(rounds):
        for way in WAYS:
            command = [str(program), "direct" if way == "direct" else "torch", "--hot", str(LOOP_PAIRS)]
            told[way].append(start(command, ours=way != "native", folder=folder / f"loop-{way}-{number}")["ns"])
    times = ", ".join(f"{way} {statistics.median(ns):,.0f} ns" for way, ns in told.items())
    print(f"\nThe same eight sizes over and over, from C++, CPU time of an allocation and its free: {times}.")


def show_empty(rounds: int, folder: Path) -> None:
    modes = {
        "native": {"ours": False},
        "expandable_segments": {"ours": False, "settings": "expandable_segments:True"},
        "vms": {"ours": True},
    }
    told: dict[str, list[dict[str, float]]] = {name: [] for name in modes}
    for number in range(rounds):
        for name, how in modes.items():
            command = [sys.executable, str(BENCH / "empty.py")]
            told[name].append(start(command, folder=folder / f"empty-{name}-{number}", **how)["ns"])
    sizes = list(told["native"][0])

    def rows():
        for name, runs in told.items():
            cells = []
            for size in sizes:
                ratios = [mine[size] / native[size] for mine, native in zip(runs, told["native"], strict=True)]
                cells.append(f"{statistics.median(r[size] for r in runs):,.0f} ({statistics.median(ratios):.2f})")
            yield [name, *cells]

    print("\n`torch.empty` + `del`, ns a pair (and as a multiple of native in the same round):\n")
    print_table(["allocator", *(f"{int(size) >> 10:,} KiB" for size in sizes)], rows())


def main() -> None:
    parser = argparse.ArgumentParser(description="Times allocations and frees against PyTorch's allocator.")
    parser.add_argument("--rounds", type=int, default=5)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="gml-speed-") as name:
        folder = Path(name)
        program = build(folder)
        head = ["trace", "way", "alloc p50 (ns)", "p99", "p99.9", "free p50 (ns)", "p99", "p99.9", "× native"]
        rows = (row for trace in traces(folder) for row in compare(program, trace, arguments.rounds, folder))
        print_table([*head, "calls with driver work"], rows)
        show_calls(program, folder)
        show_hot_loop(program, arguments.rounds, folder)
        show_empty(arguments.rounds, folder)


if __name__ == "__main__":
    main()
