# SPDX-License-Identifier: Apache-2.0
"""Records what a script asks of PyTorch's cudaMallocAsync backend, as a trace for replay_trace and the benchmarks.

    python tests/bench/record.py SCRIPT OUT.tr
    build/dev/tools/replay_trace < OUT.tr

One device of the simulated H100 under the stitching allocator; a script of several ranks leaves OUT.0.tr, OUT.1.tr
and so on, in the order of the process numbers. `xz` the file to keep it: BENCH_TRACES takes *.tr.xz too.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path

from common import BENCH, compiler, devices_of
from runs import GML_RUN, environment


def build(folder: Path) -> Path:
    """The recorder as a library to preload."""
    library = folder / "record.so"
    options = ["-std=c11", "-O2", "-shared", "-fPIC", "-Wall", "-Wextra", "-Werror"]
    subprocess.run([compiler(), *options, str(BENCH / "record.c"), "-o", str(library), "-ldl"], check=True)
    return library


def record(script: Path, folder: Path) -> list[Path]:
    """The traces of a script's processes, by process number."""
    told = subprocess.run(
        [*GML_RUN, "print-env", "--json", "--simulate", "h100", "--goal", "memory", "-o", str(folder / "run")],
        env=environment(),
        capture_output=True,
        text=True,
        check=True,
    )
    variables = environment(**json.loads(told.stdout))
    variables["LD_PRELOAD"] = f"{build(folder)}:{variables['LD_PRELOAD']}"
    variables["PYTORCH_CUDA_ALLOC_CONF"] = "backend:cudaMallocAsync"
    variables["GML_SIM_DEVICES"] = str(devices_of(script))
    variables["RECORD_TO"] = str(folder / "trace")
    subprocess.run([sys.executable, str(script)], env=variables, check=True)
    return sorted(folder.glob("trace.*"), key=lambda path: int(path.suffix[1:]))


def main() -> None:
    parser = argparse.ArgumentParser(description="Records the allocations of a script on the simulated GPU.")
    parser.add_argument("script", type=Path)
    parser.add_argument("out", type=Path)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="gml-record-") as name:
        traces = record(arguments.script.resolve(), Path(name))
        for number, trace in enumerate(traces):
            out = arguments.out if len(traces) == 1 else arguments.out.with_suffix(f".{number}.tr")
            out.write_bytes(trace.read_bytes())
            print(f"{out}: {out.stat().st_size:,} bytes", file=sys.stderr)
    if not traces:
        raise SystemExit(f"record: {arguments.script} allocated nothing through cudaMallocAsync")


if __name__ == "__main__":
    main()
