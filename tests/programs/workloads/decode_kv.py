# SPDX-License-Identifier: Apache-2.0
"""Serving: each request keeps its own key and value cache, grown by concatenation; requests of different
lengths come and go, so caches of all sizes live beside each other."""

import random

import torch
import torch.nn.functional as F
from peaks import print_peaks
from torch import nn

WIDTH, HEADS, LAYERS, VOCABULARY = 2048, 16, 8, 64000


class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm, self.qkv, self.out = nn.RMSNorm(WIDTH), nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.up, self.down = nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)

    def forward(self, x, cache):
        q, k, v = self.qkv(self.norm(x)).unflatten(-1, (3, HEADS, -1)).permute(2, 0, 3, 1, 4)
        if cache is not None:
            k, v = torch.cat([cache[0], k], 2), torch.cat([cache[1], v], 2)
        x = x + self.out(F.scaled_dot_product_attention(q, k, v).transpose(1, 2).flatten(2))
        return x + self.down(F.silu(self.up(x))), (k, v)


class Request:
    def __init__(self, rng):
        self.ids = torch.randint(0, VOCABULARY, (rng.choice((1, 2, 4, 8)), rng.randint(100, 4000)), device="cuda")
        self.left, self.caches = rng.randint(4, 24), [None] * LAYERS


def main():
    rng = random.Random(4)
    torch.manual_seed(0)
    torch.set_default_dtype(torch.bfloat16)
    with torch.device("cuda"):
        embed, head = nn.Embedding(VOCABULARY, WIDTH), nn.Linear(WIDTH, VOCABULARY)
        layers = nn.ModuleList(Layer() for _ in range(LAYERS))
    waiting, active, steps = [Request(rng) for _ in range(40)], [], 0
    with torch.inference_mode():
        while waiting or active:
            while waiting and len(active) < 8:
                active.append(waiting.pop())
            for request in active:
                x = embed(request.ids)
                for index, layer in enumerate(layers):
                    x, request.caches[index] = layer(x, request.caches[index])
                request.ids = head(x[:, -1]).float().argmax(-1, keepdim=True)
                request.left -= 1
                steps += 1
            active = [request for request in active if request.left]
    print_peaks(steps)


if __name__ == "__main__":
    main()
