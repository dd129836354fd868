# SPDX-License-Identifier: Apache-2.0
"""A small training script over many parts of PyTorch; prints one JSON line of what it saw."""

import json
import time

import torch
from torch import nn
from torch.nn.functional import scaled_dot_product_attention
from torch.utils.checkpoint import checkpoint

MIB = 1 << 20


class Block(nn.Module):
    """Attention, convolution and normalisation in one."""

    def __init__(self, width):
        super().__init__()
        self.qkv = nn.Linear(width, 3 * width)
        self.conv = nn.Conv2d(4, 4, 3, padding=1)
        self.norm = nn.BatchNorm2d(4)

    def forward(self, x):
        q, k, v = self.qkv(x).chunk(3, -1)
        x = x + scaled_dot_product_attention(q, k, v)
        return x + self.norm(self.conv(x))


def train(steps):
    torch.manual_seed(0)
    model = nn.Sequential(*[Block(128) for _ in range(4)]).cuda()
    optimizer = torch.optim.AdamW(model.parameters())
    scaler = torch.amp.GradScaler()
    side = torch.cuda.Stream()
    for step in range(steps):
        x = torch.randn(8, 4, 64 + 16 * (step % 5), 128).pin_memory().cuda(non_blocking=True)
        with torch.autocast("cuda", torch.bfloat16):
            y = checkpoint(model, x, use_reentrant=False)
        with torch.cuda.stream(side):
            side.wait_stream(torch.cuda.default_stream())
            kept = y * 2
            kept.record_stream(side)
        scaler.scale(y.float().mean()).backward()
        scaler.unscale_(optimizer)
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        scaler.step(optimizer)
        scaler.update()
        optimizer.zero_grad()
    return model


def replay_graph():
    x = torch.zeros(64, 64, device="cuda")
    for _ in range(2):
        x @ x
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        y = x @ x + 1
    graph.replay()
    return list(y.shape)


def out_of_memory():
    try:
        torch.empty(200 << 30, dtype=torch.uint8, device="cuda")
    except torch.cuda.OutOfMemoryError as error:
        return str(error)
    return "no error"


def main():
    model = train(10)
    data = torch.randn(1000)
    free, total = torch.cuda.mem_get_info()
    state = {name: tensor.cpu() for name, tensor in model.state_dict().items()}
    seen = {
        "device": torch.cuda.get_device_name(0),
        "free_mib": free // MIB,
        "total_mib": total // MIB,
        "allocated_mib": torch.cuda.max_memory_allocated() / MIB,
        "reserved_mib": torch.cuda.max_memory_reserved() / MIB,
        "round_trip": bool(torch.equal(data.cuda().cpu(), data)),
        "optimizer_states": len(state),
        "nonzero": list(torch.randn(100, device="cuda").nonzero().shape),
        "item": torch.randn(10, device="cuda").sum().item(),
        "graph": replay_graph(),
        "error": out_of_memory(),
    }
    # PyTorch's autograd thread may still be dropping its last task; CPython 3.11 aborts a program that
    # ends at that moment, with a real device as well.
    torch.cuda.synchronize()
    time.sleep(0.1)
    print(json.dumps(seen))


main()
