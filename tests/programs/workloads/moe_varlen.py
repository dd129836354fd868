# SPDX-License-Identifier: Apache-2.0
"""Training of a mixture of experts: the router's choice is made on the host (seeded, skewed, another one for every
layer and step), so each expert gets another number of tokens each time; documents of varying length."""

import random

import torch
import torch.nn.functional as F
from peaks import print_peaks
from torch import nn
from torch.utils.checkpoint import checkpoint

WIDTH, HEADS, LAYERS, EXPERTS, HIDDEN, CHOSEN, VOCABULARY = 1024, 16, 8, 16, 2048, 2, 50304
TOKENS, STEPS = 24576, 24


class Expert(nn.Module):
    def __init__(self):
        super().__init__()
        self.gate, self.up = (nn.Linear(WIDTH, HIDDEN, bias=False) for _ in range(2))
        self.down = nn.Linear(HIDDEN, WIDTH, bias=False)

    def forward(self, x):
        return self.down(F.silu(self.gate(x)) * self.up(x))


class Experts(nn.Module):
    """Tokens sorted by expert, each expert's share computed on its own, then put back in their places."""

    def __init__(self):
        super().__init__()
        self.router = nn.Linear(WIDTH, EXPERTS, bias=False)
        self.experts = nn.ModuleList(Expert() for _ in range(EXPERTS))

    def forward(self, x, counts):
        flat = x.flatten(0, 1)
        weights, choices = self.router(flat).float().softmax(-1).topk(CHOSEN)
        order = choices.flatten().argsort()
        rows = order // CHOSEN
        shares = flat[rows].split(counts)
        out = [expert(share) for expert, share in zip(self.experts, shares, strict=True) if len(share)]
        scaled = torch.cat(out) * weights.flatten()[order, None].to(x.dtype)
        return torch.zeros_like(flat).index_add(0, rows, scaled.to(flat.dtype)).view_as(x)


class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm1, self.norm2 = nn.RMSNorm(WIDTH), nn.RMSNorm(WIDTH)
        self.qkv, self.out = nn.Linear(WIDTH, 3 * WIDTH, bias=False), nn.Linear(WIDTH, WIDTH, bias=False)
        self.experts = Experts()

    def attend(self, x):
        parts = self.qkv(self.norm1(x)).unflatten(-1, (3, HEADS, -1)).permute(2, 0, 3, 1, 4)
        return x + self.out(F.scaled_dot_product_attention(*parts, is_causal=True).transpose(1, 2).flatten(2))

    def forward(self, x, counts):
        x = checkpoint(self.attend, x, use_reentrant=False)
        return x + self.experts(self.norm2(x), counts)


def counts_of(rng, tokens):
    """How many of the choices each expert gets: skewed, some experts nearly idle."""
    shares = [rng.gammavariate(1.2, 1.0) for _ in range(EXPERTS)]
    counts = [int(CHOSEN * tokens * share / sum(shares)) for share in shares]
    counts[0] += CHOSEN * tokens - sum(counts)
    return counts


def main():
    rng = random.Random(12)
    torch.manual_seed(0)
    with torch.device("cuda"):
        embed, layers = nn.Embedding(VOCABULARY, WIDTH), nn.ModuleList(Layer() for _ in range(LAYERS))
        norm = nn.RMSNorm(WIDTH)
    model = nn.ModuleList([embed, layers, norm])
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-4)
    for _ in range(STEPS):
        length = max(128, min(4096, int(rng.lognormvariate(6.5, 0.8))))
        ids = torch.randint(0, VOCABULARY, (TOKENS // length, length)).pin_memory().cuda(non_blocking=True)
        with torch.autocast("cuda", dtype=torch.bfloat16):
            x = embed(ids)
            for layer in layers:
                x = layer(x, counts_of(rng, ids.numel()))
            logits = F.linear(norm(x), embed.weight)
            loss = F.cross_entropy(logits.flatten(0, 1).float(), ids.flatten())
        loss.backward()
        del logits, loss, x
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
    print_peaks(STEPS)


if __name__ == "__main__":
    main()
