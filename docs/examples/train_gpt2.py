# SPDX-License-Identifier: Apache-2.0
"""Trains a GPT-2 of 355 M parameters on bytes of Python's own standard library, in padded batches of
varying length: the everyday training loop whose memory fragments. No downloads, no arguments.

    gml-run --simulate h100 python docs/examples/train_gpt2.py
"""

import random
import sysconfig
from pathlib import Path

import torch
from torch.utils.data import DataLoader, Dataset
from transformers import GPT2Config, GPT2LMHeadModel


class Modules(Dataset):
    """Pieces of source files; how long a piece is follows from where the file ends."""

    def __init__(self, seed: int, count: int) -> None:
        files = sorted(Path(sysconfig.get_path("stdlib")).glob("*.py"))
        rng = random.Random(seed)
        self.pieces = []
        while len(self.pieces) < count:
            text = rng.choice(files).read_bytes()
            start = rng.randrange(max(1, len(text) - 32))
            self.pieces.append(text[start : start + rng.choice((128, 256, 512, 768, 1024))])

    def __len__(self) -> int:
        return len(self.pieces)

    def __getitem__(self, index: int) -> torch.Tensor:
        return torch.tensor(list(self.pieces[index]), dtype=torch.long)


def pad(pieces: list[torch.Tensor]) -> tuple[torch.Tensor, torch.Tensor]:
    ids = torch.nn.utils.rnn.pad_sequence(pieces, batch_first=True, padding_value=0)
    labels = torch.nn.utils.rnn.pad_sequence(pieces, batch_first=True, padding_value=-100)
    return ids, labels


def main() -> None:
    random.seed(0)
    torch.manual_seed(0)
    config = GPT2Config(vocab_size=50257, n_embd=1024, n_layer=24, n_head=16, use_cache=False)
    with torch.device("cuda"):
        model = GPT2LMHeadModel(config)
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4)
    loader = DataLoader(Modules(1, 320), batch_size=8, collate_fn=pad, num_workers=2, pin_memory=True)
    for step, (ids, labels) in enumerate(loader, 1):
        ids, labels = ids.cuda(non_blocking=True), labels.cuda(non_blocking=True)
        with torch.autocast("cuda", dtype=torch.bfloat16):
            loss = model(input_ids=ids, labels=labels).loss
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        if step % 10 == 0:
            print(f"step {step}: batch of {tuple(ids.shape)}, loss {loss.item():.3f}", flush=True)


if __name__ == "__main__":
    main()
