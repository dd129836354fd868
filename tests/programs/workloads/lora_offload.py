# SPDX-License-Identifier: Apache-2.0
"""LoRA fine-tuning with frozen weights in pinned host memory: a side stream brings each layer in ahead of
its use (record_stream keeps it until then), activations are recomputed, optimizer states live on the host."""

import random

import torch
import torch.nn.functional as F
from peaks import print_peaks
from torch import nn
from torch.utils.checkpoint import checkpoint

WIDTH, LAYERS, RANK = 2048, 10, 32


class Lora(nn.Module):
    """A frozen weight that comes and goes, beside a small trained one."""

    def __init__(self, inputs, outputs):
        super().__init__()
        self.host = torch.empty(outputs, inputs, dtype=torch.bfloat16, pin_memory=True)
        self.frozen = None
        self.a = nn.Parameter(torch.randn(RANK, inputs, device="cuda") * 0.01)
        self.b = nn.Parameter(torch.zeros(outputs, RANK, device="cuda"))

    def forward(self, x):
        return F.linear(x, self.frozen) + F.linear(F.linear(x, self.a), self.b)


class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.LayerNorm(WIDTH, device="cuda")
        self.q, self.k, self.v, self.out = (Lora(WIDTH, WIDTH) for _ in range(4))
        self.up, self.down = Lora(WIDTH, 4 * WIDTH), Lora(4 * WIDTH, WIDTH)

    def adapters(self):
        return [module for module in self.modules() if isinstance(module, Lora)]

    def compute(self, x):
        def heads(y):
            return y.unflatten(-1, (16, -1)).transpose(1, 2)

        y = self.norm(x)
        weights = torch.softmax(heads(self.q(y)) @ heads(self.k(y)).transpose(-1, -2) / 11.3, -1)
        x = x + self.out((weights @ heads(self.v(y))).transpose(1, 2).flatten(2))
        return x + self.down(F.relu(self.up(x)))


class Streamed:
    """Runs the layers; each one's weights arrive on the side stream while the one before computes."""

    def __init__(self, layers):
        self.layers, self.side = layers, torch.cuda.Stream()

    def bring(self, index):
        with torch.cuda.stream(self.side):
            for adapter in self.layers[index].adapters():
                if adapter.frozen is None:
                    adapter.frozen = adapter.host.to("cuda", non_blocking=True)

    def run(self, x, index, towards):
        self.bring(index)
        current = torch.cuda.current_stream()
        current.wait_stream(self.side)
        for adapter in self.layers[index].adapters():
            adapter.frozen.record_stream(current)
        if 0 <= index + towards < len(self.layers):
            self.bring(index + towards)
        y = self.layers[index].compute(x)
        for adapter in self.layers[index].adapters():
            adapter.frozen = None
        return y

    def forward(self, x):
        for index in range(len(self.layers)):
            # The second call of the same layer is its recomputation, on the way back.
            calls = iter((1, -1, -1))

            def step(y, index=index, calls=calls):
                return self.run(y, index, next(calls))

            x = checkpoint(step, x, use_reentrant=False, early_stop=False)
        return x


def move_states(optimizer, device, side):
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for state in optimizer.state.values():
            for name in ("exp_avg", "exp_avg_sq"):
                old, state[name] = state[name], state[name].to(device, non_blocking=True)
                if old.is_cuda:
                    old.record_stream(side)
                else:
                    state[name].record_stream(torch.cuda.default_stream())
    torch.cuda.current_stream().wait_stream(side)


def main():
    lengths = random.Random(2)
    torch.manual_seed(0)
    layers = nn.ModuleList(Layer() for _ in range(LAYERS))
    model, side = Streamed(layers), torch.cuda.Stream()
    optimizer = torch.optim.AdamW(layers.parameters(), lr=1e-4)
    for _ in range(16):
        length = max(64, min(2048, int(lengths.lognormvariate(6.3, 0.7))))
        batch = max(1, min(16, 8192 // length))
        x = torch.randn(batch, length, WIDTH, device="cuda", requires_grad=True)
        with torch.autocast("cuda", dtype=torch.bfloat16):
            loss = model.forward(x).float().square().mean()
        loss.backward()
        move_states(optimizer, "cuda", side)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        move_states(optimizer, "cpu", side)
    print_peaks(16)


if __name__ == "__main__":
    main()
