# SPDX-License-Identifier: Apache-2.0
"""Runs a training script and times its steps on the device: timed.py SCRIPT. Adds one JSON line to its output.

A step lasts from one optimizer step to the next, by events on the device; nothing waits while the script runs.
"""

import itertools
import json
import runpy
import statistics
import sys
from pathlib import Path

import torch
from torch.optim.optimizer import register_optimizer_step_post_hook

WARM_UP = 5


def main():
    script = Path(sys.argv[1]).resolve()
    marks = []

    def mark(*_):
        marks.append(torch.cuda.Event(enable_timing=True))
        marks[-1].record()

    handle = register_optimizer_step_post_hook(mark)
    sys.argv = [str(script)]
    sys.path.insert(0, str(script.parent))
    runpy.run_path(str(script), run_name="__main__")
    handle.remove()
    torch.cuda.synchronize()
    steps = [a.elapsed_time(b) for a, b in itertools.pairwise(marks)][WARM_UP:]
    said = {
        "steps_timed": len(steps),
        "step_ms_p50": statistics.median(steps),
        "step_ms_total": sum(steps),
        "peak_allocated": torch.cuda.max_memory_allocated(),
        "peak_reserved": torch.cuda.max_memory_reserved(),
        "retries": torch.cuda.memory_stats().get("num_alloc_retries", 0),
    }
    print(json.dumps(said), flush=True)


if __name__ == "__main__":
    main()
