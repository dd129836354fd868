# SPDX-License-Identifier: Apache-2.0
"""The last line of every workload: PyTorch's own peaks, as JSON."""

import json
import time
import warnings

import torch

warnings.filterwarnings("ignore")


def print_peaks(steps: int) -> None:
    torch.cuda.synchronize()
    line = json.dumps(
        {
            "steps": steps,
            "backend": torch.cuda.get_allocator_backend(),
            "peak_allocated": torch.cuda.max_memory_allocated(),
            "peak_reserved": torch.cuda.max_memory_reserved(),
            "retries": torch.cuda.memory_stats().get("num_alloc_retries", 0),
        }
    )
    print(line + "\n", end="", flush=True)  # one write: under torchrun other ranks write to the same place
    # PyTorch's autograd threads drop their last task with the interpreter's lock; one that comes for it while
    # the interpreter ends is fatal (PyTorch's own race, see docs/design/simulated-gpu.md).
    time.sleep(0.2)
