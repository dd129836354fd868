# SPDX-License-Identifier: Apache-2.0
"""Two ranks that exchange Python objects and messages over plain NCCL, as they are and through libraries; each rank
prints what it was told, a line for each way."""

import logging
import sys
import tempfile
import warnings

import torch
import torch.distributed as dist
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, TensorDataset

warnings.filterwarnings("ignore")


def gathered() -> object:
    found = [None] * 2
    dist.all_gather_object(found, {"rank": rank, "text": "x" * (5 * (2 - rank))})
    return [len(part["text"]) + part["rank"] for part in found]


def large() -> object:
    found = [None] * 2
    dist.all_gather_object(found, "x" * 100_000 * (rank + 1))
    return [len(text) for text in found]


def told() -> object:
    words = [{"rank": rank}, "x" * 30] if rank == 0 else [None, None]
    dist.broadcast_object_list(words, src=0)
    return [words[0]["rank"], len(words[1])]


def collected() -> object:
    found = [None] * 2 if rank == 0 else None
    dist.gather_object(("rank", rank), found, dst=0)
    return found


def handed_out() -> object:
    found = [None]
    dist.scatter_object_list(found, [("for", 0), ("for", 1, "x" * 30)] if rank == 0 else None, src=0)
    return len(found[0])


def sent() -> object:
    numbers = torch.tensor([1.5, 2.5]).cuda() if rank == 0 else torch.zeros(2, device="cuda")
    words = [{"three": 3}] if rank == 0 else [None]
    (dist.send if rank == 0 else dist.recv)(numbers, 1 - rank)
    (dist.send_object_list if rank == 0 else dist.recv_object_list)(words, 1 - rank)
    return [numbers.tolist(), words]


def swapped() -> object:
    mine, other = torch.full((3,), float(rank)).cuda(), torch.zeros(3, device="cuda")
    ways = [dist.P2POp(dist.isend, mine, 1 - rank), dist.P2POp(dist.irecv, other, 1 - rank)]
    for work in dist.batch_isend_irecv(ways):
        work.wait()
    return other.tolist()


def agreed() -> object:
    loss = torch.randn(4, device="cuda").sum()
    flag = torch.tensor(rank, device="cuda")
    dist.all_reduce(loss)
    dist.all_reduce(flag, op=dist.ReduceOp.MAX)
    return [bool(flag > 0), loss.item()]


def accelerate() -> object:
    from accelerate import Accelerator
    from accelerate.utils import broadcast_object_list, gather_object

    accelerator = Accelerator()
    rows = accelerator.prepare(DataLoader(torch.arange(10), batch_size=4))
    seen = [accelerator.gather_for_metrics(batch).tolist() for batch in rows]
    words = broadcast_object_list([rank, "word"])
    return [seen, words, gather_object([{"rank": rank}])]


def lightning(strategy: str) -> object:
    import lightning as lt

    logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)

    class Module(lt.LightningModule):
        def __init__(self) -> None:
            super().__init__()
            self.net = nn.Sequential(nn.Linear(32, 64), nn.ReLU(), nn.Linear(64, 4))

        def training_step(self, batch, index):
            loss = F.cross_entropy(self.net(batch[0]), batch[1])
            self.log("loss", loss, sync_dist=True)
            return loss

        def validation_step(self, batch, index):
            self.log("checked", F.cross_entropy(self.net(batch[0]), batch[1]), sync_dist=True)

        def configure_optimizers(self):
            return torch.optim.Adam(self.parameters())

    rows = DataLoader(TensorDataset(torch.randn(64, 32), torch.zeros(64, dtype=torch.long)), batch_size=8)
    with tempfile.TemporaryDirectory() as folder:
        quiet = {"logger": False, "enable_progress_bar": False, "enable_model_summary": False}
        trainer = lt.Trainer(
            max_epochs=2, devices=2, accelerator="gpu", strategy=strategy, default_root_dir=folder, **quiet
        )
        trainer.fit(Module(), rows, rows)
        return [strategy, trainer.global_step, trainer.checkpoint_callback.best_model_path[-17:]]


WAYS = [gathered, large, told, collected, handed_out, sent, swapped, agreed, accelerate]
STRATEGIES = ("ddp", "fsdp")

if __name__ == "__main__":
    dist.init_process_group("nccl")
    rank = dist.get_rank()
    torch.cuda.set_device(rank)
    lines = [f"{rank} {way.__name__}: {way()}" for way in WAYS]
    lines += [f"{rank} lightning: {lightning(strategy)}" for strategy in STRATEGIES]
    torch.cuda.synchronize()
    sys.stdout.write("\n".join(lines) + "\n")  # one write under -u
    sys.stdout.flush()
    if dist.is_initialized():
        dist.destroy_process_group()
