# SPDX-License-Identifier: Apache-2.0
"""Work of convolutions and attention by the simulator's virtual clock; prints it as a multiple of what it must be."""

import ctypes
import json
import sys
from collections.abc import Callable

import torch
from torch import nn

PER_NS = float(sys.argv[1]) * 1e3  # operations: 40 % of the device's rate in teraflops
clock = ctypes.CDLL("libcuda.so.1").gml_sim_now_ns
clock.restype = ctypes.c_uint64


def spent(work: Callable[[], torch.Tensor]) -> tuple[torch.Tensor, float]:
    start = clock()
    result = work()
    torch.cuda.synchronize()
    return result, (clock() - start) * PER_NS


def both(work: Callable[[], torch.Tensor], needed: Callable[[torch.Tensor], float]) -> list[float]:
    """Forward and backward; the first rounds take memory, which costs time as well."""
    for _ in range(3):
        result, forward = spent(work)
        loss = result.sum()
        _, backward = spent(loss.backward)
        ratios = [forward / needed(result), backward / needed(result)]
        del result, loss
    return [round(ratio, 2) for ratio in ratios]


def convolution(layer: nn.Module, *size: int) -> list[float]:
    layer.cuda()
    x = torch.randn(*size, device="cuda", requires_grad=True)
    one = 2 * layer.weight.numel() / layer.weight.shape[0]
    transposed = isinstance(layer, nn.ConvTranspose2d)
    return both(lambda: layer(x), lambda y: one * (x if transposed else y).numel())


query = torch.randn(2, 8, 512, 64, device="cuda", dtype=torch.float16, requires_grad=True)
found = {
    "conv2d": convolution(nn.Conv2d(64, 128, 3, padding=1), 8, 64, 56, 56),
    "groups": convolution(nn.Conv2d(64, 128, 3, stride=2, groups=4), 8, 64, 56, 56),
    "transposed": convolution(nn.ConvTranspose2d(64, 32, 4, stride=2), 8, 64, 28, 28),
    "conv1d": convolution(nn.Conv1d(64, 128, 5), 8, 64, 4096),
    "conv3d": convolution(nn.Conv3d(16, 32, 3), 2, 16, 16, 32, 32),
    "attention": both(
        lambda: nn.functional.scaled_dot_product_attention(query, query, query),
        lambda _: 4.0 * 2 * 8 * 512 * 512 * 64,
    ),
}
print(json.dumps(found))
