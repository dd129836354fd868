# SPDX-License-Identifier: Apache-2.0
"""A small GPT with batches of one shape, with evaluation of another shape in between; prints how many
driver memory calls the simulated device saw in the warm-up and afterwards."""

import ctypes
import json

import torch
from transformers import GPT2Config, GPT2LMHeadModel

CALLS = ("cuMemCreate", "cuMemRelease", "cuMemMap", "cuMemUnmap", "cuMemSetAccess", "cuMemAddressReserve")


def driver_calls() -> int:
    count = ctypes.CDLL(None).gml_sim_calls
    count.restype, count.argtypes = ctypes.c_uint64, [ctypes.c_char_p]
    return sum(count(name.encode()) for name in CALLS)


def main() -> None:
    with torch.device("cuda"):
        model = GPT2LMHeadModel(GPT2Config(n_embd=768, n_head=12, n_layer=12, use_cache=False))
    optimizer = torch.optim.AdamW(model.parameters())
    marks = []
    for step in range(40):
        ids = torch.zeros(8, 512, dtype=torch.long, device="cuda")
        with torch.autocast("cuda", dtype=torch.bfloat16):
            loss = model(input_ids=ids, labels=ids).loss
        loss.backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        if step % 4 == 3:
            with torch.no_grad():
                model(input_ids=torch.zeros(16, 384, dtype=torch.long, device="cuda"))
        if step in (9, 39):
            marks.append(driver_calls())
    print(json.dumps({"steps": 40, "warm_up_calls": marks[0], "later_calls": marks[1] - marks[0]}))


if __name__ == "__main__":
    main()
