# SPDX-License-Identifier: Apache-2.0
"""Models through torch.compile: one called with two batch sizes, one trained."""

import torch
from torch import nn

model = nn.Sequential(nn.Linear(512, 512), nn.GELU(), nn.Linear(512, 512)).cuda()
compiled = torch.compile(model)
with torch.no_grad():
    for rows in (64, 64, 80):
        print(tuple(compiled(torch.randn(rows, 512, device="cuda")).shape))

model = nn.Sequential(nn.Linear(64, 64), nn.GELU(), nn.Linear(64, 64)).cuda()
compiled, optimizer = torch.compile(model), torch.optim.AdamW(model.parameters())
for _ in range(2):
    compiled(torch.randn(8, 64, device="cuda")).sum().backward()
    optimizer.step()
torch.cuda.synchronize()
print("trained 2 steps")
