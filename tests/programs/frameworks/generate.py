# SPDX-License-Identifier: Apache-2.0
"""transformers' generate() of small models, which asks the device after every token whether all is done; a loop on a
flag that nobody computes, and a training loop that asks as often whether its loss is a number. Prints how many
tokens, rounds and steps there were, what checks of parameters say, and what a mask finds."""

import torch
from torch.distributions import Categorical, Normal
from transformers import GPT2Config, GPT2LMHeadModel, LlamaConfig, LlamaForCausalLM

gpt2 = GPT2LMHeadModel(GPT2Config(n_embd=64, n_head=2, n_layer=1, vocab_size=100)).cuda().eval()
shape = {"hidden_size": 64, "intermediate_size": 64, "num_attention_heads": 2}
llama = LlamaForCausalLM(LlamaConfig(**shape, num_hidden_layers=1, vocab_size=100)).cuda().eval()
for model, batch, settings in (
    (gpt2, 1, {}),
    (gpt2, 2, {"do_sample": True, "top_k": 50, "top_p": 0.9}),
    (llama, 2, {"eos_token_id": [0, 5]}),
    (llama, 1, {"do_sample": True, "eos_token_id": 0}),
    (llama, 3, {"eos_token_id": 5, "repetition_penalty": 1.2}),
):
    prompt = torch.ones(batch, 8, dtype=torch.long, device="cuda")
    mask = torch.ones_like(prompt)
    tokens = model.generate(prompt, attention_mask=mask, max_new_tokens=9, pad_token_id=0, **settings)
    print("tokens", tokens.shape[1] - prompt.shape[1])

rounds = 1
while not torch.rand(1, device="cuda") > 2:
    rounds += 1
print("rounds", rounds)

layer = torch.nn.Linear(64, 64).cuda()
optimizer = torch.optim.SGD(layer.parameters())
steps = 0
for _ in range(60):
    loss = layer(torch.randn(8, 64, device="cuda")).sum()
    if torch.isnan(loss) or not torch.isfinite(layer.weight).all() or (layer.weight != layer.weight).any():
        break
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    steps += 1
print("steps", steps)

scores = torch.randn(4, 8, device="cuda")
Normal(scores, scores.exp())
Normal(scores.half(), 0.5)
Categorical(logits=scores), Categorical(scores.softmax(-1), validate_args=False)
choices = Categorical(logits=scores).sample()
Categorical(logits=scores).log_prob(choices)
assert set(choices.tolist()) <= set(range(8))
print("checks", torch.allclose(scores, scores + 1), bool((choices < 8).all()), bool((choices == 7).all()))
try:
    Normal(torch.zeros(2, device="cuda"), torch.tensor([1.0, -1.0]).cuda())
except ValueError:
    print("refused")  # both numbers are known

mask = torch.zeros(1000, dtype=torch.bool, device="cuda")
print("found", len(mask.nonzero()), len(torch.arange(1000, device="cuda")[mask]))
