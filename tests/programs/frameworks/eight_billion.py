# SPDX-License-Identifier: Apache-2.0
"""One training step of a Llama with eight billion parameters; the last line is JSON with the host's memory."""

import json
import resource
import time

import torch
from transformers import LlamaConfig, LlamaForCausalLM

config = LlamaConfig(
    vocab_size=128256,
    hidden_size=4096,
    intermediate_size=14336,
    num_hidden_layers=32,
    num_attention_heads=32,
    num_key_value_heads=8,
    use_cache=False,
)
torch.set_default_dtype(torch.bfloat16)
with torch.device("cuda"):
    model = LlamaForCausalLM(config)
model.gradient_checkpointing_enable()
optimizer = torch.optim.AdamW(model.parameters(), fused=True)
ids = torch.randint(0, 1000, (1, 2048)).cuda()
model(input_ids=ids, labels=ids).loss.backward()
optimizer.step()
print(
    json.dumps(
        {
            "parameters": sum(parameter.numel() for parameter in model.parameters()),
            "host_bytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10,
            "device_bytes": torch.cuda.max_memory_allocated(),
        }
    )
)
time.sleep(0.2)  # see "Known limits" in docs/design/simulated-gpu.md: the end of PyTorch's autograd thread
