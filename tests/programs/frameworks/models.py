# SPDX-License-Identifier: Apache-2.0
"""One or two training steps of small models of many kinds; prints a line each."""

import io
import sys
import warnings

import torch
from torch import nn
from torch.nn import functional as F

warnings.filterwarnings("ignore")


def step(model: nn.Module, loss: torch.Tensor) -> int:
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
    loss.backward()
    optimizer.step()
    return sum(p.numel() for p in model.parameters() if p.grad is not None)


def gpt2() -> int:
    from transformers import GPT2Config, GPT2LMHeadModel

    model = GPT2LMHeadModel(GPT2Config(n_embd=128, n_head=4, n_layer=2, vocab_size=1000)).cuda()
    ids = torch.zeros(2, 64, dtype=torch.long, device="cuda")
    return step(model, model(input_ids=ids, labels=ids).loss)


def llama() -> int:
    from transformers import LlamaConfig, LlamaForCausalLM

    model = LlamaForCausalLM(
        LlamaConfig(
            hidden_size=128, intermediate_size=256, num_hidden_layers=2, num_attention_heads=4, vocab_size=1000
        )
    ).cuda()
    model.gradient_checkpointing_enable()
    model.train()
    ids = torch.zeros(2, 64, dtype=torch.long, device="cuda")
    return step(model, model(input_ids=ids, labels=ids, use_cache=False).loss)


def opt() -> int:
    from transformers import OPTConfig, OPTForCausalLM

    model = OPTForCausalLM(
        OPTConfig(
            hidden_size=128,
            ffn_dim=256,
            num_hidden_layers=2,
            num_attention_heads=4,
            vocab_size=1000,
            word_embed_proj_dim=128,
        )
    ).cuda()
    ids = torch.ones(2, 64, dtype=torch.long, device="cuda")
    return step(model, model(input_ids=ids, labels=ids).loss)


def bert() -> int:
    from transformers import BertConfig, BertForSequenceClassification

    model = BertForSequenceClassification(
        BertConfig(
            hidden_size=128, num_hidden_layers=2, num_attention_heads=4, intermediate_size=256, vocab_size=1000
        )
    ).cuda()
    ids = torch.zeros(4, 32, dtype=torch.long, device="cuda")
    return step(model, model(input_ids=ids, labels=torch.zeros(4, dtype=torch.long, device="cuda")).loss)


def vit() -> int:
    from transformers import ViTConfig, ViTForImageClassification

    model = ViTForImageClassification(
        ViTConfig(hidden_size=128, num_hidden_layers=2, num_attention_heads=4, intermediate_size=256, image_size=64)
    ).cuda()
    images = torch.randn(2, 3, 64, 64, device="cuda")
    return step(model, model(pixel_values=images, labels=torch.zeros(2, dtype=torch.long, device="cuda")).loss)


def t5() -> int:
    from transformers import T5Config, T5ForConditionalGeneration

    model = T5ForConditionalGeneration(
        T5Config(d_model=128, d_kv=32, d_ff=256, num_layers=2, num_heads=4, vocab_size=1000, decoder_start_token_id=0)
    ).cuda()
    ids = torch.ones(2, 32, dtype=torch.long, device="cuda")
    return step(model, model(input_ids=ids, labels=ids).loss)


def channels_last() -> int:
    model = nn.Sequential(
        nn.Conv2d(3, 32, 3, 2, 1), nn.BatchNorm2d(32), nn.ReLU(), nn.Conv2d(32, 8, 3), nn.AdaptiveAvgPool2d(1)
    )
    model = model.cuda().to(memory_format=torch.channels_last)
    images = torch.randn(4, 3, 64, 64, device="cuda").to(memory_format=torch.channels_last)
    return step(model, model(images).mean())


def grad_scaler() -> int:
    model = nn.Linear(256, 256).cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3, momentum=0.9)
    scaler = torch.amp.GradScaler("cuda")
    for _ in range(3):
        with torch.autocast("cuda", dtype=torch.float16):
            loss = F.mse_loss(model(torch.randn(32, 256, device="cuda")).float(), torch.zeros(32, 256, device="cuda"))
        scaler.scale(loss).backward()
        scaler.unscale_(optimizer)
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        scaler.step(optimizer)
        scaler.update()
    return sum(p.numel() for p in model.parameters())


def checkpoint_file() -> int:
    model = nn.Linear(512, 512).cuda()
    optimizer = torch.optim.AdamW(model.parameters())
    step(model, model(torch.randn(8, 512, device="cuda")).sum())
    file = io.BytesIO()
    torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict()}, file)
    file.seek(0)
    loaded = torch.load(file, map_location="cuda", weights_only=True)
    model.load_state_dict(loaded["model"])
    return sum(t.numel() for t in loaded["model"].values())


KINDS = [gpt2, llama, opt, bert, vit, t5, channels_last, grad_scaler, checkpoint_file]

if __name__ == "__main__":
    chosen = sys.argv[1:] or [kind.__name__ for kind in KINDS]
    for kind in KINDS:
        if kind.__name__ in chosen:
            print(kind.__name__, kind(), flush=True)
    torch.cuda.synchronize()
