# SPDX-License-Identifier: Apache-2.0
"""Pre-training of a small GPT: batches padded to log-normal document lengths, AdamW, bf16 autocast."""

import random

import torch
import torch.nn.functional as F
from peaks import print_peaks
from torch import nn

WIDTH, HEADS, LAYERS, VOCABULARY = 1024, 16, 12, 32000


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.qkv, self.out = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.up, self.down = nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)

    def forward(self, x):
        parts = self.qkv(self.norm1(x)).unflatten(-1, (3, HEADS, -1)).permute(2, 0, 3, 1, 4)
        x = x + self.out(F.scaled_dot_product_attention(*parts, is_causal=True).transpose(1, 2).flatten(2))
        return x + self.down(F.gelu(self.up(self.norm2(x))))


class Gpt(nn.Module):
    def __init__(self):
        super().__init__()
        self.tokens, self.places = nn.Embedding(VOCABULARY, WIDTH), nn.Embedding(2048, WIDTH)
        self.blocks = nn.Sequential(*[Block() for _ in range(LAYERS)])
        self.norm, self.head = nn.LayerNorm(WIDTH), nn.Linear(WIDTH, VOCABULARY, bias=False)

    def forward(self, ids):
        x = self.tokens(ids) + self.places(torch.arange(ids.shape[1], device=ids.device))
        return self.head(self.norm(self.blocks(x)))


def main():
    lengths = random.Random(1)
    torch.manual_seed(0)
    with torch.device("cuda"):
        model = Gpt()
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4)
    for _ in range(30):
        length = max(min(2048, int(lengths.lognormvariate(5.8, 0.8))) for _ in range(8))
        ids = torch.randint(0, VOCABULARY, (8, length)).pin_memory().cuda(non_blocking=True)
        with torch.autocast("cuda", dtype=torch.bfloat16):
            logits = model(ids)
            loss = F.cross_entropy(logits[:, :-1].float().flatten(0, 1), ids[:, 1:].flatten())
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
    print_peaks(30)


if __name__ == "__main__":
    main()
