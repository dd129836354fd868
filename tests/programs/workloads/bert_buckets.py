# SPDX-License-Identifier: Apache-2.0
"""Fine-tuning of an encoder: batches from length buckets under a token budget, attention masks of full size,
an evaluation with larger batches after every epoch."""

import random

import torch
import torch.nn.functional as F
from peaks import print_peaks
from torch import nn

WIDTH, HEADS, LAYERS, VOCABULARY = 1024, 16, 16, 30522
LENGTHS = (48, 64, 96, 128, 192, 256, 384, 512)


class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.qkv, self.out, self.norm1 = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH), nn.LayerNorm(WIDTH)
        self.up, self.down, self.norm2 = nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH), nn.LayerNorm(WIDTH)
        self.drop = nn.Dropout(0.1)

    def forward(self, x, mask):
        q, k, v = self.qkv(x).unflatten(-1, (3, HEADS, -1)).permute(2, 0, 3, 1, 4)
        weights = self.drop(torch.softmax(q @ k.transpose(-1, -2) / 8 + mask, -1))
        x = self.norm1(x + self.drop(self.out((weights @ v).transpose(1, 2).flatten(2))))
        return self.norm2(x + self.drop(self.down(F.gelu(self.up(x)))))


class Encoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.tokens, self.places = nn.Embedding(VOCABULARY, WIDTH), nn.Embedding(512, WIDTH)
        self.layers, self.head = nn.ModuleList(Layer() for _ in range(LAYERS)), nn.Linear(WIDTH, 3)

    def forward(self, ids, kept):
        mask = torch.zeros(kept.shape, device=ids.device).masked_fill(~kept, -1e9)[:, None, None, :]
        x = self.tokens(ids) + self.places(torch.arange(ids.shape[1], device=ids.device))
        for layer in self.layers:
            x = layer(x, mask)
        return self.head(x[:, 0])


def batch(rng, budget):
    length = rng.choice(LENGTHS)
    rows = max(1, min(128, budget // length))
    kept = torch.arange(length)[None] < torch.randint(length // 2, length + 1, (rows, 1))
    return torch.randint(0, VOCABULARY, (rows, length)).cuda(), kept.cuda()


def main():
    rng = random.Random(6)
    torch.manual_seed(0)
    with torch.device("cuda"):
        model = Encoder()
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-5)
    for _ in range(2):
        model.train()
        for _ in range(14):
            ids, kept = batch(rng, 16384)
            with torch.autocast("cuda", dtype=torch.bfloat16):
                loss = F.cross_entropy(
                    model(ids, kept).float(), torch.zeros(len(ids), dtype=torch.long, device="cuda")
                )
            loss.backward()
            optimizer.step()
            optimizer.zero_grad(set_to_none=True)
        model.eval()
        with torch.no_grad(), torch.autocast("cuda", dtype=torch.bfloat16):
            for _ in range(4):
                model(*batch(rng, 32768))
    print_peaks(28)


if __name__ == "__main__":
    main()
