# SPDX-License-Identifier: Apache-2.0
"""Data-parallel training of one layer; a rank prints its peak in MiB."""

import torch
import torch.distributed as dist

dist.init_process_group("nccl")
rank = dist.get_rank()
torch.cuda.set_device(rank)
model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(4096, 4096).cuda())
optimizer = torch.optim.AdamW(model.parameters())
for step in range(5):
    model(torch.randn(32 + 8 * step, 4096, device="cuda")).sum().backward()
    optimizer.step()
    optimizer.zero_grad()
# In one write: torchrun starts Python with -u, where print() writes the end of the line apart from the line.
print(f"rank {rank} peak {torch.cuda.max_memory_allocated() >> 20}\n", end="")
dist.destroy_process_group()
