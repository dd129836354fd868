# SPDX-License-Identifier: Apache-2.0
"""A vision transformer trained with accumulation, an exponential average and, late, a plain one of its weights; every
few steps all three are evaluated on larger pictures in other batches. Hundreds of small weights stay for good."""

import copy
import random

import torch
import torch.nn.functional as F
from peaks import print_peaks
from torch import nn

WIDTH, HEADS, DEPTH, PATCH, CLASSES, STEPS, BATCH = 1024, 16, 20, 16, 1000, 24, 48


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.qkv, self.out = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.up, self.down = nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)

    def forward(self, x):
        parts = self.qkv(self.norm1(x)).unflatten(-1, (3, HEADS, -1)).permute(2, 0, 3, 1, 4)
        x = x + self.out(F.scaled_dot_product_attention(*parts).transpose(1, 2).flatten(2))
        return x + self.down(F.gelu(self.up(self.norm2(x))))


class Vision(nn.Module):
    def __init__(self):
        super().__init__()
        self.patches, self.head = nn.Conv2d(3, WIDTH, PATCH, PATCH), nn.Linear(WIDTH, CLASSES)
        self.blocks = nn.Sequential(*[Block() for _ in range(DEPTH)])

    def forward(self, pictures):
        x = self.patches(pictures).flatten(2).transpose(1, 2)
        return self.head(self.blocks(x).mean(1))


def train(model, optimizer, sizes):
    for batch in sizes:
        pictures = torch.randn(batch, 3, 224, 224).pin_memory().cuda(non_blocking=True)
        with torch.autocast("cuda", dtype=torch.bfloat16):
            loss = F.cross_entropy(model(pictures), torch.zeros(batch, dtype=torch.long, device="cuda"))
        (loss / len(sizes)).backward()
    optimizer.step()
    optimizer.zero_grad(set_to_none=True)


@torch.no_grad()
def evaluate(models, last):
    votes = []
    with torch.autocast("cuda", dtype=torch.bfloat16):
        for model in models:
            votes += [model(torch.randn(batch, 3, 256, 256, device="cuda")).float() for batch in (128, 128, last)]
    torch.cat(votes).softmax(-1).mean().item()


def main():
    rng = random.Random(15)
    torch.manual_seed(0)
    with torch.device("cuda"):
        model = Vision()
    exponential, plain = copy.deepcopy(model).requires_grad_(False), None
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
    for step in range(STEPS):
        train(model, optimizer, (BATCH, rng.randint(20, BATCH)))
        with torch.no_grad():
            torch._foreach_lerp_(list(exponential.parameters()), list(model.parameters()), 0.001)
            if step >= STEPS // 2 and step % 4 == 0:
                plain = plain or copy.deepcopy(model).requires_grad_(False)
                torch._foreach_lerp_(list(plain.parameters()), list(model.parameters()), 0.2)
        if step % 6 == 5:
            evaluate([model, exponential] + ([plain] if plain else []), rng.randint(5, 127))
            torch.cuda.empty_cache()
    print_peaks(STEPS)


if __name__ == "__main__":
    main()
