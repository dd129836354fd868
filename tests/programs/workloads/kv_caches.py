# SPDX-License-Identifier: Apache-2.0
"""Continuous batching: requests arrive and leave at any time and decode one token a step together. Each has its own
keys and values, one tensor a layer, that grow by 64 tokens when full; prompts run alone when they arrive."""

import random

import torch
import torch.nn.functional as F
from peaks import print_peaks
from torch import nn

WIDTH, HEADS, KV_HEADS, HEAD, LAYERS, HIDDEN, VOCABULARY = 3072, 24, 8, 128, 16, 8192, 64000
STEP_TOKENS, SLOTS, STEPS = 64, 24, 240


class Cache:
    """Keys and values of one layer of one request."""

    def __init__(self, keys, values):
        self.used = keys.shape[1]
        capacity = -(-self.used // STEP_TOKENS) * STEP_TOKENS
        self.both = torch.empty(2, KV_HEADS, capacity, HEAD, device=keys.device, dtype=keys.dtype)
        self.both[0, :, : self.used], self.both[1, :, : self.used] = keys, values

    def append(self, key, value):
        if self.used == self.both.shape[2]:
            larger = self.both.new_empty(2, KV_HEADS, self.used + STEP_TOKENS, HEAD)
            larger[:, :, : self.used] = self.both
            self.both = larger
        self.both[0, :, self.used], self.both[1, :, self.used] = key, value
        self.used += 1
        return self.both[:, None, :, : self.used]


class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm1, self.norm2 = nn.RMSNorm(WIDTH), nn.RMSNorm(WIDTH)
        self.qkv = nn.Linear(WIDTH, (HEADS + 2 * KV_HEADS) * HEAD, bias=False)
        self.out = nn.Linear(HEADS * HEAD, WIDTH, bias=False)
        self.gate_up, self.down = nn.Linear(WIDTH, 2 * HIDDEN, bias=False), nn.Linear(HIDDEN, WIDTH, bias=False)

    def feed(self, x):
        gate, up = self.gate_up(self.norm2(x)).chunk(2, -1)
        return x + self.down(F.silu(gate) * up)

    def split(self, x):
        return self.qkv(self.norm1(x)).unflatten(-1, (-1, HEAD)).split((HEADS, KV_HEADS, KV_HEADS), -2)

    def prompt(self, x):
        q, k, v = (part.transpose(0, 1)[None] for part in self.split(x))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True)
        return self.feed(x + self.out(y[0].transpose(0, 1).flatten(1))), Cache(k[0], v[0])

    def token(self, x, caches):
        q, k, v = self.split(x)
        seen = []
        for row, cache in enumerate(caches):
            keys, values = cache.append(k[row], v[row])
            seen.append(F.scaled_dot_product_attention(q[row, None, :, None], keys, values, enable_gqa=True))
        return self.feed(x + self.out(torch.cat(seen).flatten(1)))


class Request:
    def __init__(self, rng):
        self.prompt = max(32, min(8000, int(rng.lognormvariate(7.0, 0.9))))
        self.left, self.caches, self.last = rng.randint(20, 160), [], None


class Server:
    def __init__(self):
        with torch.device("cuda"):
            self.embed, self.head = nn.Embedding(VOCABULARY, WIDTH), nn.Linear(WIDTH, VOCABULARY, bias=False)
            self.layers, self.norm = nn.ModuleList(Layer() for _ in range(LAYERS)), nn.RMSNorm(WIDTH)

    def next_of(self, x):
        return self.head(self.norm(x)).float().softmax(-1).argmax(-1)

    def admit(self, request):
        x = self.embed(torch.randint(0, VOCABULARY, (request.prompt,)).pin_memory().cuda(non_blocking=True))
        for layer in self.layers:
            x, cache = layer.prompt(x)
            request.caches.append(cache)
        request.last = self.next_of(x[-1:])

    def decode(self, active):
        x = self.embed(torch.cat([request.last for request in active]))
        for index, layer in enumerate(self.layers):
            x = layer.token(x, [request.caches[index] for request in active])
        for request, last in zip(active, self.next_of(x).split(1), strict=True):
            request.last, request.left = last, request.left - 1


def main():
    rng = random.Random(9)
    torch.manual_seed(0)
    torch.set_default_dtype(torch.bfloat16)
    server, active = Server(), []
    with torch.inference_mode():
        for _ in range(STEPS):
            while len(active) < SLOTS and (not active or rng.random() < 0.4):
                active.append(Request(rng))
                server.admit(active[-1])
            server.decode(active)
            active = [request for request in active if request.left]
    print_peaks(STEPS)


if __name__ == "__main__":
    main()
