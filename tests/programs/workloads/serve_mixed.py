# SPDX-License-Identifier: Apache-2.0
"""Serving of pictures and text by one process: a vision model takes batches of any resolution on a side stream, a
language model on the default stream reads its features or text alone; inference mode, batch sizes vary with load."""

import random
from collections import deque

import torch
import torch.nn.functional as F
from peaks import print_peaks
from torch import nn

EYE, TEXT, VOCABULARY, PATCH, ROUNDS, ANSWER = 1280, 2560, 64000, 14, 60, 12


class Block(nn.Module):
    def __init__(self, width, heads, causal):
        super().__init__()
        self.heads, self.causal = heads, causal
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x, past=None):
        q, k, v = self.qkv(self.norm1(x)).unflatten(-1, (3, self.heads, -1)).permute(2, 0, 3, 1, 4)
        if past is not None:
            k, v = torch.cat([past[0], k], 2), torch.cat([past[1], v], 2)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=self.causal and past is None)
        x = x + self.out(y.transpose(1, 2).flatten(2))
        return x + self.down(F.gelu(self.up(self.norm2(x)))), (k, v)


class Eye(nn.Module):
    """A vision transformer for any resolution: its places are resized to the picture."""

    def __init__(self):
        super().__init__()
        self.patches, self.places = nn.Conv2d(3, EYE, PATCH, PATCH), nn.Parameter(torch.zeros(1, EYE, 32, 32))
        self.blocks = nn.ModuleList(Block(EYE, 16, False) for _ in range(24))
        self.norm, self.project = nn.LayerNorm(EYE), nn.Linear(EYE, TEXT)

    def forward(self, pictures):
        x = self.patches(pictures)
        x = x + F.interpolate(self.places, size=x.shape[2:], mode="bilinear")
        x = x.flatten(2).transpose(1, 2)
        for block in self.blocks:
            x, _ = block(x)
        return self.project(self.norm(x))


class Reader(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed, self.head = nn.Embedding(VOCABULARY, TEXT), nn.Linear(TEXT, VOCABULARY)
        self.blocks, self.norm = nn.ModuleList(Block(TEXT, 20, True) for _ in range(24)), nn.LayerNorm(TEXT)

    def forward(self, x, past):
        now = []
        for block, before in zip(self.blocks, past or [None] * len(self.blocks), strict=True):
            x, both = block(x, before)
            now.append(both)
        return self.head(self.norm(x[:, -1])).float().argmax(-1, keepdim=True), now

    def answer(self, x, tokens):
        last, past = self(x, None)
        out = [last]
        for _ in range(tokens - 1):
            last, past = self(self.embed(last), past)
            out.append(last)
        return torch.cat(out, 1).to("cpu", non_blocking=True)


class Server:
    def __init__(self):
        with torch.device("cuda"):
            self.eye, self.reader = Eye(), Reader()
        self.side, self.seen = torch.cuda.Stream(), deque()

    def look(self, batch, high, wide):
        """Starts on a batch of pictures; its features are ready when the event is."""
        pictures = torch.empty(batch, 3, high, wide, dtype=torch.uint8).pin_memory()
        with torch.cuda.stream(self.side):
            scaled = pictures.cuda(non_blocking=True).to(torch.bfloat16).div_(255)
            self.seen.append((self.eye(scaled), self.side.record_event()))

    def describe(self):
        features, ready = self.seen.popleft()
        now = torch.cuda.current_stream()
        now.wait_event(ready)
        features.record_stream(now)
        return self.reader.answer(features, ANSWER)

    def read(self, batch, length):
        ids = torch.randint(0, VOCABULARY, (batch, length)).pin_memory().cuda(non_blocking=True)
        return self.reader.answer(self.reader.embed(ids), ANSWER)


def main():
    rng = random.Random(14)
    torch.manual_seed(0)
    torch.set_default_dtype(torch.bfloat16)
    server, answered = Server(), 0
    with torch.inference_mode():
        for _ in range(ROUNDS):
            if rng.random() < 0.7:
                server.look(rng.randint(1, 24), *(PATCH * rng.randint(16, 48) for _ in range(2)))
            if rng.random() < 0.6:
                answered += len(server.read(rng.randint(1, 32), int(min(3000, rng.lognormvariate(6.0, 0.9)))))
            while len(server.seen) > 2 or (server.seen and rng.random() < 0.4):
                answered += len(server.describe())
    print_peaks(ROUNDS)


if __name__ == "__main__":
    main()
