# SPDX-License-Identifier: Apache-2.0
"""Training of a Llama-like model: recomputed activations, and gradients summed over microbatches that are one
long document or several short ones; fused AdamW over fp32 weights."""

import random

import torch
import torch.nn.functional as F
from peaks import print_peaks
from torch import nn
from torch.utils.checkpoint import checkpoint

WIDTH, HEADS, LAYERS, VOCABULARY = 1536, 12, 12, 64000


class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm1, self.norm2 = nn.RMSNorm(WIDTH), nn.RMSNorm(WIDTH)
        self.qkv, self.out = nn.Linear(WIDTH, 3 * WIDTH, bias=False), nn.Linear(WIDTH, WIDTH, bias=False)
        self.gate, self.up = (nn.Linear(WIDTH, 4 * WIDTH, bias=False) for _ in range(2))
        self.down = nn.Linear(4 * WIDTH, WIDTH, bias=False)

    def forward(self, x):
        parts = self.qkv(self.norm1(x)).unflatten(-1, (3, HEADS, -1)).permute(2, 0, 3, 1, 4)
        x = x + self.out(F.scaled_dot_product_attention(*parts, is_causal=True).transpose(1, 2).flatten(2))
        y = self.norm2(x)
        return x + self.down(F.silu(self.gate(y)) * self.up(y))


def microbatch(rng):
    """Rows and length: a long document alone, or some short ones together."""
    if rng.random() < 0.3:
        return 1, rng.randint(2048, 8192)
    length = rng.randint(128, 1024)
    return max(1, 6144 // length), length


def main():
    rng = random.Random(5)
    torch.manual_seed(0)
    with torch.device("cuda"):
        embed, layers = nn.Embedding(VOCABULARY, WIDTH), nn.ModuleList(Layer() for _ in range(LAYERS))
        norm = nn.RMSNorm(WIDTH)
    model = nn.ModuleList([embed, layers, norm])
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=True)
    for _ in range(16):
        for _ in range(4):
            ids = torch.randint(0, VOCABULARY, microbatch(rng)).pin_memory().cuda(non_blocking=True)
            with torch.autocast("cuda", dtype=torch.bfloat16):
                x = embed(ids)
                for layer in layers:
                    x = checkpoint(layer, x, use_reentrant=False)
                logits = F.linear(norm(x), embed.weight)
                loss = F.cross_entropy(logits[:, :-1].float().flatten(0, 1), ids[:, 1:].flatten()) / 4
            loss.backward()
            del logits, loss, x
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
    print_peaks(16)


if __name__ == "__main__":
    main()
