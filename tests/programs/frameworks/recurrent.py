# SPDX-License-Identifier: Apache-2.0
"""Recurrent networks of every kind and the CTC loss, in training and inference; prints a line each."""

import warnings

import torch
from torch import nn
from torch.nn import functional as F
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

warnings.filterwarnings("ignore")


def train_and_infer(model: nn.Module, dtype: torch.dtype) -> int:
    optimizer = torch.optim.Adam(model.parameters())
    for length in (12, 7):
        x = torch.randn(4, length, 32, device="cuda", dtype=dtype)
        model(x)[0].sum().backward()
        optimizer.step()
        optimizer.zero_grad()
    packed = pack_padded_sequence(torch.randn(4, 9, 32, device="cuda", dtype=dtype), [9, 6, 6, 1], batch_first=True)
    out, _ = model(packed)
    out.data.sum().backward()
    padded, lengths = pad_packed_sequence(out, batch_first=True)
    assert padded.shape[:2] == (4, 9) and lengths.tolist() == [9, 6, 6, 1]
    assert all(p.grad is not None for p in model.parameters())
    model.eval()
    with torch.inference_mode():
        return model(torch.randn(2, 5, 32, device="cuda", dtype=dtype))[0].shape[-1]


def main() -> None:
    for kind in (nn.LSTM, nn.GRU, nn.RNN):
        for dtype in (torch.float32, torch.float16, torch.bfloat16):
            deep = kind(32, 48, num_layers=3, dropout=0.2, bidirectional=True, batch_first=True).to("cuda", dtype)
            plain = kind(32, 48, bias=False, batch_first=True).to("cuda", dtype)
            widths = (train_and_infer(deep, dtype), train_and_infer(plain, dtype))
            print(kind.__name__, str(dtype).removeprefix("torch."), *widths, flush=True)
    projected = nn.LSTM(32, 48, num_layers=2, proj_size=16, batch_first=True).cuda()
    print("projected", train_and_infer(projected, torch.float32))
    with torch.autocast("cuda", dtype=torch.bfloat16):
        print("autocast", tuple(nn.LSTM(32, 48).cuda()(torch.randn(5, 2, 32, device="cuda"))[0].shape))
    logits = torch.randn(50, 4, 20, device="cuda", requires_grad=True)
    for lengths in (torch.full((4,), 10), torch.full((4,), 10, dtype=torch.int32, device="cuda")):
        targets = torch.ones(40, dtype=lengths.dtype, device=lengths.device if lengths.is_cuda else "cuda")
        steps = torch.full((4,), 50, dtype=lengths.dtype, device=lengths.device)
        loss = F.ctc_loss(logits.log_softmax(2), targets, steps, lengths)
        loss.backward()
    print("ctc", tuple(logits.grad.shape))


if __name__ == "__main__":
    main()
    torch.cuda.synchronize()
