# SPDX-License-Identifier: Apache-2.0
"""LoRA fine-tuning of a Llama-like model with offload on three streams: one brings frozen weights in, two layers
ahead, one takes saved activations out to pinned memory and a third brings them back; events keep the order."""

import random

import torch
import torch.nn.functional as F
from peaks import print_peaks
from torch import nn

WIDTH, HEADS, HIDDEN, LAYERS, RANK, VOCABULARY = 3072, 24, 8192, 14, 16, 64000
AHEAD, LARGE_BYTES, STEPS = 2, 2 << 20, 10


class Weights:
    """Frozen weights of all layers in pinned host memory, on the device only around their use."""

    def __init__(self):
        self.stream, self.present = torch.cuda.Stream(), {}
        shapes = [(3 * WIDTH, WIDTH), (WIDTH, WIDTH), (2 * HIDDEN, WIDTH), (WIDTH, HIDDEN)]
        one = [torch.empty(shape, dtype=torch.bfloat16, pin_memory=True) for shape in shapes]
        self.host = [one] * LAYERS  # the same bytes for every layer: what they say does not matter

    def prefetch(self, index):
        if not 0 <= index < LAYERS or index in self.present:
            return
        with torch.cuda.stream(self.stream):
            weights = [part.to("cuda", non_blocking=True) for part in self.host[index]]
        self.present[index] = weights, self.stream.record_event()

    def use(self, index, towards):
        for distance in range(AHEAD + 1):
            self.prefetch(index + towards * distance)
        weights, arrived = self.present.pop(index)
        current = torch.cuda.current_stream()
        current.wait_event(arrived)
        for part in weights:
            part.record_stream(current)
        return weights


class Activations:
    """Hooks for what autograd saves: large tensors go out on one stream and come back on another."""

    def __init__(self):
        self.out, self.back, self.pinned = torch.cuda.Stream(), torch.cuda.Stream(), {}

    def borrow(self, tensor):
        size = tensor.numel() * tensor.element_size()
        free = self.pinned.setdefault(size, [])
        return free.pop() if free else torch.empty(size, dtype=torch.uint8, pin_memory=True)

    def pack(self, tensor):
        if not tensor.is_cuda or tensor.nbytes < LARGE_BYTES or isinstance(tensor, nn.Parameter):
            return tensor
        host = self.borrow(tensor)
        self.out.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(self.out):
            host.view(tensor.dtype).view(tensor.shape).copy_(tensor, non_blocking=True)
        tensor.record_stream(self.out)
        return host, tensor.dtype, tensor.shape, self.out.record_event()

    def unpack(self, packed):
        if isinstance(packed, torch.Tensor):
            return packed
        host, dtype, shape, gone = packed
        self.back.wait_event(gone)
        with torch.cuda.stream(self.back):
            tensor = host.to("cuda", non_blocking=True).view(dtype).view(shape)
        torch.cuda.current_stream().wait_event(self.back.record_event())
        tensor.record_stream(torch.cuda.current_stream())
        self.pinned[host.numel()].append(host)
        return tensor


class Linear(torch.autograd.Function):
    """A product with a frozen weight that is fetched again for the backward pass instead of being saved."""

    @staticmethod
    def forward(ctx, x, weight, again):
        ctx.again = again
        return F.linear(x, weight)

    @staticmethod
    def backward(ctx, gradient):
        return gradient @ ctx.again(), None, None


class Layer(nn.Module):
    def __init__(self, index, weights):
        super().__init__()
        self.index, self.weights, self.fetched = index, weights, None
        self.norm1, self.norm2 = nn.RMSNorm(WIDTH), nn.RMSNorm(WIDTH)
        outputs = [(WIDTH, 3 * WIDTH), (WIDTH, WIDTH), (WIDTH, 2 * HIDDEN), (HIDDEN, WIDTH)]
        self.a = nn.ParameterList(torch.randn(RANK, i) * 0.01 for i, _ in outputs)
        self.b = nn.ParameterList(torch.zeros(o, RANK) for _, o in outputs)

    def again(self, part):
        """A weight in the backward pass: the whole layer arrives with its last product, and leaves with its first."""
        if self.fetched is None:
            self.fetched = self.weights.use(self.index, -1)
        weight = self.fetched[part]
        if part == 0:
            self.fetched = None
        return weight

    def linear(self, x, weights, part):
        base = Linear.apply(x, weights[part], lambda: self.again(part))
        return base + F.linear(F.linear(F.dropout(x, 0.05), self.a[part]), self.b[part])

    def forward(self, x):
        weights = self.weights.use(self.index, 1)
        parts = self.linear(self.norm1(x), weights, 0).unflatten(-1, (3, HEADS, -1)).permute(2, 0, 3, 1, 4)
        y = F.scaled_dot_product_attention(*parts, is_causal=True).transpose(1, 2).flatten(2)
        x = x + self.linear(y, weights, 1)
        gate, up = self.linear(self.norm2(x), weights, 2).chunk(2, -1)
        return x + self.linear(F.silu(gate) * up, weights, 3)


def main():
    rng = random.Random(13)
    torch.manual_seed(0)
    torch.set_default_dtype(torch.bfloat16)
    weights, activations = Weights(), Activations()
    with torch.device("cuda"):
        embed, norm = nn.Embedding(VOCABULARY, WIDTH).requires_grad_(False), nn.RMSNorm(WIDTH)
        layers = nn.ModuleList(Layer(index, weights) for index in range(LAYERS))
    optimizer = torch.optim.AdamW([*layers.parameters(), *norm.parameters()], lr=1e-4)
    for _ in range(STEPS):
        length = max(128, min(4096, int(rng.lognormvariate(6.6, 0.7))))
        ids = torch.randint(0, VOCABULARY, (max(1, 8192 // length), length)).pin_memory().cuda(non_blocking=True)
        x = embed(ids).requires_grad_()
        with torch.autograd.graph.saved_tensors_hooks(activations.pack, activations.unpack):
            for layer in layers:
                x = layer(x)
        loss = F.cross_entropy(F.linear(norm(x), embed.weight).flatten(0, 1).float(), ids.flatten())
        loss.backward()
        del x, loss
        torch.nn.utils.clip_grad_norm_(layers.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
    print_peaks(STEPS)


if __name__ == "__main__":
    main()
