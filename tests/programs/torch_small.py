# SPDX-License-Identifier: Apache-2.0
"""A few training steps at changing lengths; the argument names a variation. Prints PyTorch's own peaks."""

import json
import os
import sys
import time

variation = sys.argv[1] if len(sys.argv) > 1 else ""
if variation == "sets-expandable":  # as scripts and libraries do, just before the import
    os.environ["PYTORCH_CUDA_ALLOC_CONF"] = "expandable_segments:True"

import torch  # noqa: E402


def steps() -> None:
    torch.manual_seed(0)
    model = torch.nn.Sequential(*[torch.nn.Linear(2048, 2048, device="cuda") for _ in range(6)])
    optimizer = torch.optim.AdamW(model.parameters())
    side = torch.cuda.Stream()
    for step in range(30):
        rows = 500 + 937 * step % 7001
        x = torch.empty(rows, 2048, device="cuda")
        with torch.cuda.stream(side):
            y = x * 2
            x.record_stream(side)
        torch.cuda.current_stream().wait_stream(side)
        y.record_stream(torch.cuda.current_stream())
        model(y).sum().backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        if step == 20:
            torch.cuda.empty_cache()


def replay_a_graph() -> None:
    weights, x = torch.empty(512, 512, device="cuda"), torch.empty(64, 512, device="cuda")
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        torch.relu(x @ weights)
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        y = torch.relu(x @ weights)
    for _ in range(5):
        graph.replay()
        torch.empty(1 << 20, device="cuda")
    torch.cuda.synchronize()
    assert y.shape == (64, 512)


def out_of_memory() -> str:
    try:
        kept = [torch.empty(1 << 30, dtype=torch.uint8, device="cuda") for _ in range(1000)]
    except RuntimeError as error:  # without PyTorch's cache it is no OutOfMemoryError
        return str(error)
    return f"no error with {len(kept)} blocks"


def plug_in() -> int:
    """An allocator of the program's own (host memory will do). Pinned memory makes PyTorch read settings again."""
    plugged = torch.cuda.memory.CUDAPluggableAllocator("libc.so.6", "malloc", "free")
    torch.cuda.memory.change_current_allocator(plugged)
    kept = torch.zeros(1000, device="cuda")
    return len(kept) + len(torch.empty(24, pin_memory=True))


def empty_the_cache() -> None:
    """A request that PyTorch's cache stands in the way of."""
    count = torch.cuda.mem_get_info()[0] >> 30
    kept = [torch.empty(1 << 30, dtype=torch.uint8, device="cuda") for _ in range(count)]
    kept.clear()
    torch.empty((count - 1) << 30, dtype=torch.uint8, device="cuda")


def profiled_bytes() -> int:
    from torch.profiler import ProfilerActivity, profile

    with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as profiler:
        kept = [torch.empty(4 << 20, dtype=torch.uint8, device="cuda") for _ in range(5)]
    assert len(kept) == 5
    return sum(event.device_memory_usage for event in profiler.key_averages())


def drop_in_a_child() -> int:
    """As a worker of a DataLoader that collects its parent's garbage."""
    kept = [torch.empty(1 << 20, device="cuda") for _ in range(3)]
    child = os.fork()
    if child == 0:
        kept.clear()
        os._exit(7)
    status = os.waitpid(child, 0)[1]
    torch.empty(1 << 20, device="cuda")
    return os.waitstatus_to_exitcode(status)


if variation == "plugged":
    print(json.dumps({"made": plug_in()}), flush=True)
    os._exit(0)
steps()
if variation == "graph":
    replay_a_graph()
if variation == "flush":
    empty_the_cache()
child = drop_in_a_child() if variation == "fork" else 0
profiled = profiled_bytes() if variation == "profile" else 0
message = out_of_memory() if variation == "oom" else ""
print(
    json.dumps(
        {
            "backend": torch.cuda.get_allocator_backend(),
            "peak_allocated": torch.cuda.max_memory_allocated(),
            "peak_reserved": torch.cuda.max_memory_reserved(),
            "allocated": torch.cuda.memory_allocated(),
            "oom": message,
            "child": child,
            "profiled": profiled,
            "free": torch.cuda.mem_get_info()[0],
            "environment": os.environ.get("PYTORCH_CUDA_ALLOC_CONF"),
        }
    )
)
time.sleep(0.2)  # PyTorch's autograd threads must not meet the end of the interpreter, see peaks.py
