# SPDX-License-Identifier: Apache-2.0
"""Training of a small head on cached features: a cache of thousands of sequences of 1 to 9 MB that keeps within a
budget by dropping a random entry, and refills what a batch misses with a frozen encoder."""

import random

import torch
import torch.nn.functional as F
from peaks import print_peaks
from torch import nn

WIDTH, HEADS, LAYERS, SAMPLES, BUDGET_BYTES = 1024, 16, 4, 8000, 12 << 30


class Cache:
    """Features by sample; over its budget it forgets entries at random."""

    def __init__(self, rng):
        self.rng, self.entries, self.order, self.held_bytes = rng, {}, [], 0

    def get(self, sample):
        return self.entries.get(sample)

    def put(self, sample, features):
        self.entries[sample] = features
        self.order.append(sample)
        self.held_bytes += features.nbytes
        while self.held_bytes > BUDGET_BYTES:
            place = self.rng.randrange(len(self.order))
            self.order[place], self.order[-1] = self.order[-1], self.order[place]
            self.held_bytes -= self.entries.pop(self.order.pop()).nbytes


def main():
    rng = random.Random(7)
    torch.manual_seed(0)
    lengths = [rng.randint(512, 4608) for _ in range(SAMPLES)]  # 1 to 9 MB of bf16 features each
    with torch.device("cuda"):
        layer = nn.TransformerEncoderLayer(WIDTH, HEADS, 4 * WIDTH, batch_first=True, dtype=torch.bfloat16)
        encoder = nn.TransformerEncoder(layer, LAYERS, enable_nested_tensor=False).eval().requires_grad_(False)
        embed = nn.Embedding(32000, WIDTH, dtype=torch.bfloat16).requires_grad_(False)
        head = nn.Sequential(nn.Linear(WIDTH, 4 * WIDTH), nn.GELU(), nn.Linear(4 * WIDTH, 512))
    optimizer = torch.optim.AdamW(head.parameters(), lr=1e-3)
    cache, steps = Cache(rng), 600
    for _ in range(steps):
        batch = rng.sample(range(SAMPLES), 8)
        pooled = []
        for sample in batch:
            features = cache.get(sample)
            if features is None:
                ids = torch.randint(0, 32000, (1, lengths[sample])).cuda()
                with torch.no_grad():
                    features = encoder(embed(ids))[0]
                cache.put(sample, features)
            pooled.append(features.float().mean(0))
        loss = F.cross_entropy(head(torch.stack(pooled)), torch.zeros(8, dtype=torch.long, device="cuda"))
        loss.backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
    print_peaks(steps)


if __name__ == "__main__":
    main()
