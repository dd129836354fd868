# SPDX-License-Identifier: Apache-2.0
"""One cell of GMLake's evaluation as a training script: paper_model.py MODEL STRATEGY [STEPS].

MODEL      gpt2 (1.5 B), opt-1.3b to opt-30b, gpt-neox-20b; random weights, text of random length
STRATEGY   N: AdamW on everything. Letters of the others: L: LoRA on frozen 16-bit weights; R: recompute every layer
           in the backward pass; O: offload: layer weights wait in pinned host memory and stream in one layer ahead
           on a stream of their own, their gradients stream out, LoRA's optimizer states leave between the steps
Started by torchrun, each rank keeps its share of everything (FSDP2; with O its share of the weights on the host) and
has texts of its own.
The last line of stdout has PyTorch's own peaks, as JSON.
"""

import math
import os
import random
import sys
from pathlib import Path

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import nn
from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard
from torch.func import functional_call
from torch.utils.checkpoint import checkpoint
from transformers import AutoModelForCausalLM, GPT2Config, GPTNeoXConfig, OPTConfig

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "programs" / "workloads"))

from peaks import print_peaks


def opt(width: int, layers: int, heads: int) -> OPTConfig:
    sizes = {"hidden_size": width, "word_embed_proj_dim": width, "ffn_dim": 4 * width}
    return OPTConfig(num_hidden_layers=layers, num_attention_heads=heads, use_cache=False, **sizes)


def neox(width: int, layers: int, heads: int) -> GPTNeoXConfig:
    sizes = {"hidden_size": width, "intermediate_size": 4 * width}
    return GPTNeoXConfig(num_hidden_layers=layers, num_attention_heads=heads, use_cache=False, **sizes)


# Configuration, longest text, tokens a step without and with anything that saves memory.
MODELS = {
    "gpt2": (GPT2Config(n_embd=1600, n_layer=48, n_head=25, use_cache=False), 1024, 3072, 24576),
    "opt-1.3b": (opt(2048, 24, 32), 2048, 8192, 24576),
    "opt-2.7b": (opt(2560, 32, 32), 2048, 8192, 8192),
    "opt-6.7b": (opt(4096, 32, 32), 2048, 8192, 8192),
    "opt-13b": (opt(5120, 40, 40), 2048, 8192, 8192),
    "opt-30b": (opt(7168, 48, 56), 2048, 8192, 8192),
    "gpt-neox-20b": (neox(6144, 44, 64), 2048, 4096, 4096),
}
RANK, RANKS = int(os.environ.get("RANK", "0")), int(os.environ.get("WORLD_SIZE", "1"))


class Adapter(nn.Module):
    """A frozen linear layer with a trained low-rank detour."""

    def __init__(self, base: nn.Module, rank: int = 32):
        super().__init__()
        outputs, inputs = base.weight.shape
        if not isinstance(base, nn.Linear):  # GPT-2's layers keep the transpose
            outputs, inputs = inputs, outputs
        device = base.weight.device
        self.base = base
        self.down = nn.Parameter(torch.randn(rank, inputs, device=device) / math.sqrt(inputs))
        self.up = nn.Parameter(torch.zeros(outputs, rank, device=device))

    def forward(self, x):
        return self.base(x) + F.linear(F.linear(F.dropout(x, 0.05), self.down), self.up)


def add_adapters(layer: nn.Module) -> None:
    for parent in list(layer.modules()):
        for name, child in list(parent.named_children()):
            if isinstance(child, nn.Linear) or type(child).__name__ == "Conv1D":
                setattr(parent, name, Adapter(child))


class Borrow(torch.autograd.Function):
    """A weight on the device for as long as it is used; its gradient goes to the host and is dropped here."""

    @staticmethod
    def forward(ctx, anchor, weight, sink):
        ctx.sink = sink
        return weight.view_as(weight)

    @staticmethod
    def backward(ctx, gradient):
        ctx.sink(gradient)
        return torch.zeros(1, device=gradient.device), None, None


class Streamer:
    """Layer weights in pinned host memory; one layer ahead of use on the device."""

    def __init__(self, layers):
        self.stream, self.step, self.ready = torch.cuda.Stream(), 1, {}
        self.anchor = torch.zeros(1, device="cuda", requires_grad=True)
        self.host, self.shapes, self.trained = [], [], []
        for layer in layers:
            parts = {name: p for name, p in layer.named_parameters() if not name.endswith((".up", ".down"))}
            self.trained.append(any(p.requires_grad for p in parts.values()))
            self.host.append({name: self.pinned(p.detach()) for name, p in parts.items()})
            self.shapes.append({name: p.shape for name, p in parts.items()})
            for p in parts.values():
                p.requires_grad_(False)
                p.data = torch.empty(0, device="cuda", dtype=p.dtype)

    @staticmethod
    def pinned(weight):
        # Copied by the device: the simulated one leaves pages of the host untouched, torch on the CPU would not.
        if RANKS > 1:
            weight = weight.flatten()[: -(-weight.numel() // RANKS)]
        return torch.empty_like(weight, device="cpu", pin_memory=True).copy_(weight)

    @staticmethod
    def whole(share, shape):
        """A weight out of the shares of all ranks."""
        if RANKS == 1:
            return share
        gathered = share.new_empty(RANKS * share.numel())
        dist.all_gather_into_tensor(gathered, share)
        return gathered[: math.prod(shape)].view(shape)

    def fetch(self, i):
        if 0 <= i < len(self.host) and i not in self.ready:
            with torch.cuda.stream(self.stream):
                shares = {name: h.to("cuda", non_blocking=True) for name, h in self.host[i].items()}
                self.ready[i] = {name: self.whole(share, self.shapes[i][name]) for name, share in shares.items()}

    def take(self, i):
        self.fetch(i)
        now = torch.cuda.current_stream()
        now.wait_stream(self.stream)
        weights = self.ready.pop(i)
        for weight in weights.values():
            weight.record_stream(now)
        self.fetch(i + self.step)
        if self.trained[i]:
            weights = {name: Borrow.apply(self.anchor, w, self.send) for name, w in weights.items()}
        return weights

    def send(self, gradient):
        self.stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(self.stream):
            share = gradient
            if RANKS > 1:
                part = -(-gradient.numel() // RANKS)
                share = gradient.new_empty(part)
                padded = F.pad(gradient.flatten(), (0, RANKS * part - gradient.numel()))
                dist.reduce_scatter_tensor(share, padded)
            share.to("cpu", non_blocking=True)
        gradient.record_stream(self.stream)


class Layer(nn.Module):
    """A transformer layer that is recomputed, and whose weights may be streamed."""

    def __init__(self, layer, streamer, number):
        super().__init__()
        self.layer, self.streamer, self.number = layer, streamer, number

    def run(self, *inputs, named):
        if self.streamer is None:
            return self.layer(*inputs, **named)
        return functional_call(self.layer, self.streamer.take(self.number), inputs, named)

    def forward(self, *inputs, **named):
        return checkpoint(self.run, *inputs, named=named, use_reentrant=False)


def layers_of(model):
    return next(m for m in model.modules() if isinstance(m, nn.ModuleList) and len(m) >= 24)


def move_states(optimizer, device):
    for state in optimizer.state.values():
        for name in ("exp_avg", "exp_avg_sq"):
            if name in state:
                state[name] = state[name].to(device, non_blocking=True)


def shard(model, layers):
    """Every layer's parameters, and the rest, in equal shares over the ranks."""
    policy = MixedPrecisionPolicy(param_dtype=torch.bfloat16, reduce_dtype=torch.float32)
    for layer in layers:
        fully_shard(layer, mp_policy=policy)
    fully_shard(model, mp_policy=policy)
    model.to_empty(device="cuda")


def build(name, strategy):
    config = MODELS[name][0]
    full = not set("LO") & set(strategy)
    sharded = RANKS > 1 and "O" not in strategy
    with torch.device("meta" if sharded else "cuda"):
        dtype = torch.float32 if full else torch.bfloat16
        model = AutoModelForCausalLM.from_config(config, attn_implementation="eager", dtype=dtype)
    layers = layers_of(model)
    if "L" in strategy:
        model.requires_grad_(False)
        for layer in layers:
            add_adapters(layer)
        model.enable_input_require_grads()
    streamer = Streamer(layers) if "O" in strategy else None
    if "R" in strategy:
        for i in range(len(layers)):
            layers[i] = Layer(layers[i], streamer, i)
    if sharded:
        shard(model, layers)
    return model.train(), streamer


def main():
    name, strategy = sys.argv[1], sys.argv[2].replace("N", "")
    steps = int(sys.argv[3]) if len(sys.argv) > 3 else 8
    if "O" in strategy and "R" not in strategy:
        raise SystemExit("paper_model: O needs R")
    lengths = random.Random(5 + RANK)
    if RANKS > 1:
        torch.cuda.set_device(RANK)
        dist.init_process_group("nccl")
    torch.manual_seed(0)
    model, streamer = build(name, strategy)
    config, longest, *tokens_of = MODELS[name]
    tokens = tokens_of[bool(strategy)]
    trained = [p for p in model.parameters() if p.requires_grad]
    optimizer = torch.optim.AdamW(trained, lr=1e-4)
    for _ in range(steps):
        length = max(128, min(longest, int(lengths.lognormvariate(6.6, 0.6))))
        ids = torch.randint(0, config.vocab_size, (max(1, tokens // length), length), device="cuda")
        if streamer is not None:
            streamer.step = 1
        with torch.autocast("cuda", dtype=torch.bfloat16):
            loss = model(input_ids=ids, labels=ids).loss
        if streamer is not None:
            streamer.step = -1
        loss.backward()
        if streamer is not None and RANKS > 1:
            for p in trained:
                dist.all_reduce(p.grad)
        if "O" in strategy:
            move_states(optimizer, "cuda")
        torch.nn.utils.clip_grad_norm_(trained, 1.0)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        if "O" in strategy:
            move_states(optimizer, "cpu")
    print_peaks(steps)
    if RANKS > 1:
        dist.destroy_process_group()


if __name__ == "__main__":
    main()
