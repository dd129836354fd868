# SPDX-License-Identifier: Apache-2.0
"""A captured graph that is replayed among ordinary allocations."""

import torch

model = torch.nn.Sequential(torch.nn.Linear(512, 512), torch.nn.ReLU(), torch.nn.Linear(512, 512)).cuda()
x = torch.randn(64, 512, device="cuda")
side = torch.cuda.Stream()
side.wait_stream(torch.cuda.current_stream())
with torch.cuda.stream(side):
    for _ in range(3):
        y = model(x)
torch.cuda.current_stream().wait_stream(side)
graph = torch.cuda.CUDAGraph()
with torch.cuda.graph(graph):
    y = model(x)
    z = y * 2
for _ in range(10):
    graph.replay()
    big = torch.empty(300 << 20, dtype=torch.uint8, device="cuda")
    del big
torch.cuda.empty_cache()
print(tuple(z.shape), torch.cuda.memory_allocated() < torch.cuda.max_memory_allocated())
