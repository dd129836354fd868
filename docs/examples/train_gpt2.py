# SPDX-License-Identifier: Apache-2.0
"""Trains a GPT-2 of 355 M parameters on bytes of Python's own standard library, in batches padded to their
longest document: the everyday training loop whose memory fragments. No downloads, no arguments.

    gml-run --simulate h100 python docs/examples/train_gpt2.py
"""

import random
import sysconfig
from pathlib import Path

import torch
from torch.utils.data import DataLoader, Dataset
from transformers import GPT2Config, GPT2LMHeadModel, logging


class Modules(Dataset):
    """Pieces of source files, most of them short and a few long, as documents are."""

    def __init__(self, seed: int, count: int) -> None:
        files = sorted(Path(sysconfig.get_path("stdlib")).glob("*.py"))
        rng = random.Random(seed)
        self.pieces = []
        while len(self.pieces) < count:
            text = rng.choice(files).read_bytes()
            start = rng.randrange(max(1, len(text) - 32))
            self.pieces.append(text[start : start + min(1024, int(rng.lognormvariate(6.0, 0.7)))])

    def __len__(self) -> int:
        return len(self.pieces)

    def __getitem__(self, index: int) -> torch.Tensor:
        return torch.tensor(list(self.pieces[index]), dtype=torch.long)


def pad(pieces: list[torch.Tensor]) -> tuple[torch.Tensor, torch.Tensor]:
    ids = torch.nn.utils.rnn.pad_sequence(pieces, batch_first=True, padding_value=0)
    labels = torch.nn.utils.rnn.pad_sequence(pieces, batch_first=True, padding_value=-100)
    return ids, labels


def compute_loss(model: GPT2LMHeadModel, ids: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
    ids, labels = ids.cuda(non_blocking=True), labels.cuda(non_blocking=True)
    with torch.autocast("cuda", dtype=torch.bfloat16):
        return model(input_ids=ids, labels=labels).loss


def main() -> None:
    logging.set_verbosity_error()
    torch.manual_seed(0)
    config = GPT2Config(vocab_size=50257, n_embd=1024, n_layer=24, n_head=16, use_cache=False)
    with torch.device("cuda"):
        model = GPT2LMHeadModel(config)
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4)
    loader = DataLoader(Modules(1, 240), batch_size=8, collate_fn=pad, num_workers=2, pin_memory=True)
    held_out = DataLoader(Modules(2, 48), batch_size=16, collate_fn=pad, pin_memory=True)
    for step, (ids, labels) in enumerate(loader, 1):
        loss = compute_loss(model, ids, labels)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        if step % 10 == 0:
            with torch.no_grad():
                check = torch.stack([compute_loss(model, *batch) for batch in held_out]).mean()
            print(f"step {step}: batch of {tuple(ids.shape)}, loss {loss:.3f}, held out {check:.3f}", flush=True)


if __name__ == "__main__":
    main()
