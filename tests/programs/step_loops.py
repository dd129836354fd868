# SPDX-License-Identifier: Apache-2.0
"""Training loops as people write them, each on a device of its own; prints their names and true numbers of steps, in
the order of devices."""

import json
import threading
import time

import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

WIDTH, LAYERS, STEPS = 64, 5, 8
KEPT = []


class Net(nn.Module):
    def __init__(self, recompute=False):
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(WIDTH, WIDTH) for _ in range(LAYERS))
        self.recompute = recompute

    def forward(self, x):
        for layer in self.layers:
            x = checkpoint(layer, x, use_reentrant=False) if self.recompute else layer(x)
            x = torch.relu(x)
        return x


def setup(device, **arguments):
    net = Net(**arguments).to(device)
    return net, torch.optim.AdamW(net.parameters())


def batch(device, step):
    return torch.randn(1 + step * 37 % 101, WIDTH, device=device)


def plain(device):
    net, optimizer = setup(device)
    for step in range(STEPS):
        net(batch(device, step)).sum().backward()
        optimizer.step()
        optimizer.zero_grad()
    return STEPS


def zero_grad_first(device):
    net, optimizer = setup(device)
    for step in range(STEPS):
        optimizer.zero_grad()
        net(batch(device, step)).sum().backward()
        nn.utils.clip_grad_norm_(net.parameters(), 1.0)
        optimizer.step()
    KEPT.append(net)  # the last gradients are never dropped
    return STEPS


def zero_grad_after_forward(device):
    """As Lightning does; gradients of three batches are summed."""
    net, optimizer = setup(device)
    for step in range(3 * STEPS):
        loss = net(batch(device, step)).sum()
        if step % 3 == 0:
            optimizer.zero_grad()
        loss.backward()
        if step % 3 == 2:
            optimizer.step()
    optimizer.zero_grad()
    return STEPS


def accumulate(device):
    """With recomputed activations, and the backward pass inside of autocast."""
    net, optimizer = setup(device, recompute=True)
    for _ in range(STEPS):
        for part in range(6):
            with torch.autocast("cuda", dtype=torch.bfloat16):
                net(batch(device, part)).sum().backward()
        optimizer.step()
        optimizer.zero_grad()
    return STEPS


def evaluations(device):
    net, optimizer = setup(device)
    kept = []
    for step in range(STEPS):
        loss = net(batch(device, step)).sum()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        kept.append(loss.detach())
        with torch.no_grad(), torch.autocast("cuda", dtype=torch.bfloat16):
            for part in range(step % 4):
                kept.append(net(batch(device, part)).sum())
    return STEPS


def two_optimizers(device):
    """A generator and its critic."""
    (one, first), (other, second) = setup(device), setup(device)
    for step in range(STEPS):
        other(one(batch(device, step)).detach()).sum().backward()
        second.step()
        second.zero_grad()
        other(one(batch(device, step))).sum().backward()
        first.step()
        first.zero_grad()
        second.zero_grad()
    return 2 * STEPS


def adapters(device):
    """Most weights are frozen; new models come and go."""
    for _ in range(3):
        net, _ = setup(device)
        net.requires_grad_(False)
        net.layers[1].requires_grad_(True)
        net.layers[4].requires_grad_(True)
        optimizer = torch.optim.AdamW([each for each in net.parameters() if each.requires_grad], fused=True)
        for step in range(STEPS):
            net(batch(device, step)).sum().backward()
            optimizer.step()
            optimizer.zero_grad()
        del net, optimizer
    return 3 * STEPS


def other_threads(device):
    """Trains on a thread of its own while another one uploads batches."""
    done = threading.Event()

    def upload():
        while not done.is_set():
            batch(device, 3)
            time.sleep(0.0005)

    uploader = threading.Thread(target=upload)
    trainer = threading.Thread(target=plain, args=(device,))
    uploader.start()
    trainer.start()
    trainer.join()
    done.set()
    uploader.join()
    return STEPS


def gradients_kept(device):
    net, optimizer = setup(device)
    for step in range(STEPS):
        for part in range(2):
            net(batch(device, step + part)).sum().backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=False)
    return STEPS


def serving(device):
    net, _ = setup(device)
    with torch.no_grad():
        for step in range(STEPS):
            kept = [net(batch(device, step)) for _ in range(40)]
            del kept
    return 0


LOOPS = (
    plain,
    zero_grad_first,
    zero_grad_after_forward,
    accumulate,
    evaluations,
    two_optimizers,
    adapters,
    other_threads,
    gradients_kept,
    serving,
)


def main():
    torch.manual_seed(0)
    true = {}
    for number, loop in enumerate(LOOPS):
        device = torch.device("cuda", number)
        true[loop.__name__] = loop(device)
        torch.cuda.synchronize(device)
    print(json.dumps(true), flush=True)


if __name__ == "__main__":
    main()
