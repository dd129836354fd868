# SPDX-License-Identifier: Apache-2.0
"""Lengths that the host gave are read back behind a forward pass, as recurrent networks pack their batches."""

import torch

convolution = torch.nn.Conv1d(64, 64, 3, padding=1).cuda()
lstm = torch.nn.LSTM(64, 64, batch_first=True).cuda()
for step in range(3):
    lengths = torch.tensor([40, 30, 22, 11, 9, 8, 7, 5 - step], device="cuda")
    hidden = convolution(torch.randn(8, 64, 40, device="cuda")).transpose(1, 2)
    packed = torch.nn.utils.rnn.pack_padded_sequence(hidden, lengths.cpu(), batch_first=True)
    lstm(packed)[0].data.sum().backward()
    print(lengths.tolist()[-2:], hidden.argsort(-1)[0, 0, :3].tolist())
