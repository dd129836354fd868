# SPDX-License-Identifier: Apache-2.0
"""Scales of a GradScaler over steps, one of which finds an infinite gradient: on the CPU, then on the GPU; and the
sum of numbers that nobody computes, which lie where scales lay before."""

import torch


def train(scaler, device: str, steps: int, overflows: int = -1) -> list[float]:
    model = torch.nn.Linear(64, 64, device=device)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    seen = []
    for step in range(steps):
        optimizer.zero_grad()
        with torch.autocast(device, dtype=torch.float16):
            loss = model(torch.randn(8, 64, device=device)).float().pow(2).mean()
        scaler.scale(loss).backward()
        scaler.unscale_(optimizer)
        for found in scaler._found_inf_per_device(optimizer).values() if step == overflows else ():
            found.fill_(1.0)
        scaler.step(optimizer)
        scaler.update()
        seen.append(scaler.get_scale())
    return seen


def scales(device: str) -> list:
    plain = train(torch.amp.GradScaler(device), device, 3)
    growing = torch.amp.GradScaler(device, init_scale=1024.0, growth_interval=2)
    grown = train(growing, device, 7, overflows=4)
    saved = growing.state_dict()
    resumed = torch.amp.GradScaler(device)
    resumed.load_state_dict(saved)
    after = train(resumed, device, 3)
    resumed.update(512.0)
    return [plain, grown, saved, after, train(resumed, device, 1)]


for device in ("cpu", "cuda"):
    print(*scales(device))
scattered = [torch.rand((), device="cuda") for _ in range(256)]
print(sum(value.item() for value in scattered))
