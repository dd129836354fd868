# SPDX-License-Identifier: Apache-2.0
"""A UNet that is trained at changing picture sizes, keeps averaged weights, and samples now and then at others."""

import copy
import random

import torch
import torch.nn.functional as F
from peaks import print_peaks
from torch import nn

CHANNELS = (128, 256, 512)


class Pair(nn.Module):
    def __init__(self, inputs, outputs):
        super().__init__()
        self.norm1, self.conv1 = nn.GroupNorm(32, inputs), nn.Conv2d(inputs, outputs, 3, padding=1)
        self.norm2, self.conv2 = nn.GroupNorm(32, outputs), nn.Conv2d(outputs, outputs, 3, padding=1)
        self.skip = nn.Conv2d(inputs, outputs, 1) if inputs != outputs else nn.Identity()

    def forward(self, x):
        y = self.conv1(F.silu(self.norm1(x)))
        return self.skip(x) + self.conv2(F.silu(self.norm2(y)))


class UNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.enter, self.leave = nn.Conv2d(4, CHANNELS[0], 3, padding=1), nn.Conv2d(CHANNELS[0], 4, 3, padding=1)
        self.down = nn.ModuleList(Pair(CHANNELS[max(0, i - 1)], c) for i, c in enumerate(CHANNELS))
        self.middle = nn.Sequential(*[Pair(CHANNELS[-1], CHANNELS[-1]) for _ in range(2)])
        self.up = nn.ModuleList(Pair(2 * c, CHANNELS[max(0, i - 1)]) for i, c in reversed(list(enumerate(CHANNELS))))

    def forward(self, x):
        x, skips = self.enter(x), []
        for pair in self.down:
            x = pair(x)
            skips.append(x)
            x = F.avg_pool2d(x, 2)
        x = self.middle(x)
        for pair in self.up:
            x = pair(torch.cat([F.interpolate(x, scale_factor=2.0), skips.pop()], 1))
        return self.leave(x)


def main():
    sizes = random.Random(3)
    torch.manual_seed(0)
    with torch.device("cuda"):
        model = UNet()
    average = copy.deepcopy(model).requires_grad_(False)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
    for step in range(30):
        high, wide = sizes.choice(((64, 64), (48, 80), (96, 96), (40, 120), (128, 64), (32, 32)))
        x = torch.randn(max(1, 131072 // (high * wide)), 4, high, wide, device="cuda")
        with torch.autocast("cuda", dtype=torch.bfloat16):
            loss = F.mse_loss(model(x).float(), x)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        with torch.no_grad():
            torch._foreach_lerp_(list(average.parameters()), list(model.parameters()), 0.01)
        if step % 10 == 9:
            with torch.inference_mode(), torch.autocast("cuda", dtype=torch.bfloat16):
                for high, wide in ((96, 128), (160, 96)):
                    z = torch.randn(16, 4, high, wide, device="cuda")
                    for _ in range(2):
                        z = z - 0.5 * average(z).float()
    print_peaks(30)


if __name__ == "__main__":
    main()
