# SPDX-License-Identifier: Apache-2.0
"""Fully sharded training (FSDP2) of a Llama-like model on two ranks with texts of different lengths: parameters are
gathered layer by layer on the streams of FSDP, gradients scattered, activations recomputed. Starts its own ranks."""

import os
import random
import sys

import torch
import torch.distributed as dist
import torch.nn.functional as F
from peaks import print_peaks
from torch import nn
from torch.distributed.algorithms._checkpoint.checkpoint_wrapper import checkpoint_wrapper
from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard

DEVICES = 2  # one rank on each
WIDTH, HEADS, HIDDEN, LAYERS, VOCABULARY, STEPS = 2048, 16, 5632, 20, 64000, 8


class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm1, self.norm2 = nn.RMSNorm(WIDTH), nn.RMSNorm(WIDTH)
        self.qkv, self.out = nn.Linear(WIDTH, 3 * WIDTH, bias=False), nn.Linear(WIDTH, WIDTH, bias=False)
        self.gate, self.up = (nn.Linear(WIDTH, HIDDEN, bias=False) for _ in range(2))
        self.down = nn.Linear(HIDDEN, WIDTH, bias=False)

    def forward(self, x):
        parts = self.qkv(self.norm1(x)).unflatten(-1, (3, HEADS, -1)).permute(2, 0, 3, 1, 4)
        x = x + self.out(F.scaled_dot_product_attention(*parts, is_causal=True).transpose(1, 2).flatten(2))
        y = self.norm2(x)
        return x + self.down(F.silu(self.gate(y)) * self.up(y))


class Llama(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed, self.head = nn.Embedding(VOCABULARY, WIDTH), nn.Linear(WIDTH, VOCABULARY, bias=False)
        self.layers, self.norm = nn.ModuleList(checkpoint_wrapper(Layer()) for _ in range(LAYERS)), nn.RMSNorm(WIDTH)

    def forward(self, ids):
        x = self.embed(ids)
        for layer in self.layers:
            x = layer(x)
        return self.head(self.norm(x))


def sharded():
    """The model of this rank, made in shards: no rank ever holds all of it."""
    with torch.device("meta"):
        model = Llama()
    policy = MixedPrecisionPolicy(param_dtype=torch.bfloat16, reduce_dtype=torch.float32)
    for layer in model.layers:
        fully_shard(layer, mp_policy=policy)
    fully_shard(model, mp_policy=policy)
    model.to_empty(device="cuda")
    for parameter in model.parameters():
        nn.init.normal_(parameter.to_local(), std=0.02)
    return model


def train(rank):
    rng = random.Random(15 + rank)
    torch.manual_seed(0)
    model = sharded()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
    for _ in range(STEPS):
        for micro in range(2):
            length = max(128, min(8192, int(rng.lognormvariate(7.2, 0.8))))
            ids = torch.randint(0, VOCABULARY, (max(1, 8192 // length), length)).pin_memory().cuda(non_blocking=True)
            model.set_requires_gradient_sync(micro == 1)
            loss = F.cross_entropy(model(ids).flatten(0, 1).float(), ids.flatten()) / 2
            loss.backward()
            del loss
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)


def main():
    if "RANK" not in os.environ:
        ranks = ["--standalone", "--nproc-per-node", str(DEVICES)]
        os.execv(sys.executable, [sys.executable, "-m", "torch.distributed.run", *ranks, __file__])
    rank = int(os.environ["RANK"])
    torch.cuda.set_device(rank)
    dist.init_process_group("nccl")
    train(rank)
    print_peaks(STEPS)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
