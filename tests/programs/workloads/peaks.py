# SPDX-License-Identifier: Apache-2.0
"""The last line of every workload: PyTorch's own peaks, as JSON."""

import json
import warnings

import torch

warnings.filterwarnings("ignore")


def print_peaks(steps: int) -> None:
    torch.cuda.synchronize()
    print(
        json.dumps(
            {
                "steps": steps,
                "backend": torch.cuda.get_allocator_backend(),
                "peak_allocated": torch.cuda.max_memory_allocated(),
                "peak_reserved": torch.cuda.max_memory_reserved(),
                "retries": torch.cuda.memory_stats().get("num_alloc_retries", 0),
            }
        ),
        flush=True,
    )
