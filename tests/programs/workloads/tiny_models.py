# SPDX-License-Identifier: Apache-2.0
"""A hyper-parameter search: thousands of small networks of random width and depth are trained a few steps each; the
best few hundred stay (with their optimizers) until better ones take their place, the others go at once."""

import json
import random

import torch
import torch.nn.functional as F
from peaks import print_peaks
from torch import nn

FEATURES, CLASSES, TRIALS, POPULATION = 784, 10, 1500, 320


class Trial:
    """One choice of hyper-parameters: a network, its optimizer, and a score that the search goes by."""

    def __init__(self, rng):
        width, depth = rng.choice((128, 192, 256, 384, 512, 768, 1024, 1536)), rng.randint(1, 6)
        with torch.device("cuda"):
            parts = [nn.Linear(FEATURES, width), nn.ReLU()]
            for _ in range(depth):
                parts += [nn.Linear(width, width), nn.BatchNorm1d(width), nn.ReLU()]
            self.net = nn.Sequential(*parts, nn.Dropout(rng.random() / 2), nn.Linear(width, CLASSES))
        kind = rng.choice((torch.optim.AdamW, torch.optim.AdamW, torch.optim.SGD))
        more = {"momentum": 0.9} if kind is torch.optim.SGD else {}
        self.optimizer = kind(self.net.parameters(), lr=10 ** rng.uniform(-4, -2), **more)
        self.batch, self.score = rng.choice((64, 128, 256, 512, 1024)), rng.random()

    def train(self, data, steps):
        for step in range(steps):
            start = step * self.batch
            loss = F.cross_entropy(self.net(data[start : start + self.batch]), self.labels(data.device))
            loss.backward()
            self.optimizer.step()
            self.optimizer.zero_grad(set_to_none=True)
        return steps

    def labels(self, device):
        return torch.zeros(self.batch, dtype=torch.long, device=device)


def main():
    rng = random.Random(8)
    torch.manual_seed(0)
    data = torch.randn(60000, FEATURES, device="cuda")
    kept, stepped = [], 0
    for _ in range(TRIALS):
        trial = Trial(rng)
        stepped += trial.train(data, rng.randint(1, 3))
        if len(kept) < POPULATION:
            kept.append(trial)
            continue
        worst = min(range(POPULATION), key=lambda place: kept[place].score)
        if trial.score > kept[worst].score or rng.random() < 0.3:  # now and then a worse one, against stagnation
            kept[worst] = trial
        if rng.random() < 0.2:  # continue one of the kept
            stepped += rng.choice(kept).train(data, 1)
    with torch.inference_mode():
        votes = torch.zeros(4096, CLASSES, device="cuda")
        for trial in kept:
            votes += trial.net.eval()(data[:4096]).softmax(-1)
    print(json.dumps({"optimizer_steps": stepped}))
    print_peaks(TRIALS)


if __name__ == "__main__":
    main()
