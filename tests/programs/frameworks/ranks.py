# SPDX-License-Identifier: Apache-2.0
"""Collectives on two ranks with what they yield, a group of its own, and fully sharded training; rank 0 prints."""

import sys

import torch
import torch.cuda.comm
import torch.cuda.nccl
import torch.distributed as dist
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard


def on_device(*values: float) -> torch.Tensor:
    return torch.tensor(values, dtype=torch.float32).cuda()


def collectives(rank: int) -> list[list[float]]:
    total, gathered, swapped = on_device(rank + 1, 2), torch.empty(4, device="cuda"), torch.empty(2, device="cuda")
    dist.all_reduce(total)
    dist.all_gather_into_tensor(gathered, on_device(rank, rank + 0.5))
    dist.all_to_all_single(swapped, on_device(10 * rank, 10 * rank + 1))
    told = on_device(rank, rank)
    dist.broadcast(told, src=1)
    results = [tensor.tolist() for tensor in (total, gathered, swapped, told)]
    alone = dist.new_group([rank]) if rank == 0 else dist.new_group([0])
    if rank == 0:
        dist.all_reduce(told, group=alone)
    dist.barrier()
    return results


def fully_sharded() -> int:
    mesh = init_device_mesh("cuda", (2,))
    model = nn.Sequential(*(nn.Sequential(nn.Linear(512, 512), nn.ReLU()) for _ in range(4))).cuda()
    for layer in model:
        fully_shard(layer, mesh=mesh, mp_policy=MixedPrecisionPolicy(param_dtype=torch.bfloat16))
    fully_shard(model, mesh=mesh)
    optimizer = torch.optim.AdamW(model.parameters())
    for length in (8, 24, 16):
        model(torch.randn(length, 512, device="cuda")).sum().backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()
    return sum(p.to_local().numel() for p in model.parameters())


def replicas() -> list[float]:
    """Several devices in one process."""
    devices = list(range(torch.cuda.device_count()))
    model = nn.DataParallel(nn.Sequential(nn.Linear(64, 128), nn.BatchNorm1d(128), nn.Linear(128, 8)).cuda())
    optimizer = torch.optim.Adam(model.parameters())
    for rows in (16, 24):
        model(torch.randn(rows, 64, device="cuda")).sum().backward()
        optimizer.step()
        optimizer.zero_grad()
    copies = torch.cuda.comm.broadcast(torch.arange(3.0).cuda(), devices)
    torch.cuda.nccl.all_reduce(copies)
    whole = torch.cuda.comm.gather(torch.cuda.comm.scatter(torch.arange(8.0).cuda(), devices))
    return copies[-1].tolist() + whole.tolist()


if __name__ == "__main__":
    if sys.argv[1:] == ["replicas"]:
        print(replicas())
    else:
        dist.init_process_group("nccl")
        torch.cuda.set_device(dist.get_rank())
        seen = [collectives(dist.get_rank()), fully_sharded()]
        if dist.get_rank() == 0:
            print(seen)
        dist.destroy_process_group()
