# SPDX-License-Identifier: Apache-2.0
"""A model through torch.compile, with two batch sizes."""

import torch

model = torch.nn.Sequential(torch.nn.Linear(512, 512), torch.nn.GELU(), torch.nn.Linear(512, 512)).cuda()
compiled = torch.compile(model)
for rows in (64, 64, 80):
    print(tuple(compiled(torch.randn(rows, 512, device="cuda")).shape))
