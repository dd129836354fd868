# SPDX-License-Identifier: Apache-2.0
"""Training of a T5-like translation model with attention weights in full: source and target lengths that are loosely
related, batches under a budget of tokens, and now and then greedy decoding of a batch."""

import random

import torch
from peaks import print_peaks
from transformers import T5Config, T5ForConditionalGeneration

VOCABULARY, TOKENS, STEPS = 32128, 12288, 20
CONFIG = T5Config(
    vocab_size=VOCABULARY,
    d_model=1024,
    d_kv=64,
    d_ff=2816,
    num_layers=12,
    num_decoder_layers=12,
    num_heads=16,
    feed_forward_proj="gated-gelu",
    decoder_start_token_id=0,
    attn_implementation="eager",
)


def batch(rng):
    """Ids and masks of a bucket: the budget of tokens counts padding on both sides."""
    source = max(24, min(1024, int(rng.lognormvariate(5.6, 0.7))))
    target = max(16, min(512, int(source * rng.uniform(0.3, 1.2))))
    rows = max(1, min(96, TOKENS // (source + target)))
    kept = torch.arange(source)[None] < torch.randint(source // 2, source + 1, (rows, 1))
    ids = torch.randint(1, VOCABULARY, (rows, source)), kept.long(), torch.randint(1, VOCABULARY, (rows, target))
    names = ("input_ids", "attention_mask", "labels")
    return {name: part.pin_memory().cuda(non_blocking=True) for name, part in zip(names, ids, strict=True)}


@torch.no_grad()
def translate(model, inputs, tokens):
    """Greedy decoding with the model's own cache."""
    memory = model.get_encoder()(input_ids=inputs["input_ids"], attention_mask=inputs["attention_mask"])
    last, past = torch.zeros(len(inputs["input_ids"]), 1, dtype=torch.long, device="cuda"), None
    for _ in range(tokens):
        out = model(
            encoder_outputs=memory,
            attention_mask=inputs["attention_mask"],
            decoder_input_ids=last,
            past_key_values=past,
            use_cache=True,
        )
        last, past = out.logits[:, -1:].argmax(-1), out.past_key_values


def main():
    rng = random.Random(11)
    torch.manual_seed(0)
    with torch.device("cuda"):
        model = T5ForConditionalGeneration(CONFIG)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
    for step in range(STEPS):
        model.train()
        with torch.autocast("cuda", dtype=torch.bfloat16):
            loss = model(**batch(rng), use_cache=False).loss
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        del loss
        if step % 10 == 9:
            model.eval()
            with torch.autocast("cuda", dtype=torch.bfloat16):
                translate(model, batch(rng), 16)
    print_peaks(STEPS)


if __name__ == "__main__":
    main()
