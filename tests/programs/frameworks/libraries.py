# SPDX-License-Identifier: Apache-2.0
"""Real training libraries on tiny models with random weights; prints a line for each part that ran."""

import logging
import sys
import tempfile
import warnings

import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, TensorDataset

warnings.filterwarnings("ignore")


def data(batch_size: int = 8) -> DataLoader:
    rows = TensorDataset(torch.randn(64, 32), torch.zeros(64, dtype=torch.long))
    return DataLoader(rows, batch_size=batch_size, shuffle=True)


def peft() -> str:
    """LoRA in full and half precision, with and without gradient checkpointing; saved, loaded and merged."""
    from peft import LoraConfig, PeftModel, get_peft_model
    from transformers import LlamaConfig, LlamaForCausalLM

    config = LlamaConfig(
        hidden_size=128, intermediate_size=256, num_hidden_layers=2, num_attention_heads=4, vocab_size=1000
    )
    lora = LoraConfig(r=8, target_modules=["q_proj", "v_proj"], lora_dropout=0.1, task_type="CAUSAL_LM")
    trained = 0
    for dtype in (torch.float32, torch.bfloat16):
        base = LlamaForCausalLM(config).to("cuda", dtype)
        if dtype is torch.bfloat16:
            base.gradient_checkpointing_enable(gradient_checkpointing_kwargs={"use_reentrant": False})
            base.enable_input_require_grads()
        model = get_peft_model(base, lora)
        chosen = [p for p in model.parameters() if p.requires_grad]
        optimizer = torch.optim.AdamW(chosen)
        for length in (64, 48):
            ids = torch.zeros(2, length, dtype=torch.long, device="cuda")
            model(input_ids=ids, labels=ids, use_cache=False).loss.backward()
            optimizer.step()
            optimizer.zero_grad()
        trained = sum(p.numel() for p in chosen)
        with tempfile.TemporaryDirectory() as folder:
            model.save_pretrained(folder)
            PeftModel.from_pretrained(LlamaForCausalLM(config).to("cuda", dtype), folder).merge_and_unload()
    return f"{trained} parameters"


def accelerate() -> str:
    """Accelerator with accumulation, clipping, mixed precision, gathered metrics and a saved state."""
    from accelerate import Accelerator

    accelerator = Accelerator(mixed_precision="bf16", gradient_accumulation_steps=2)
    model = nn.Sequential(nn.Linear(32, 256), nn.GELU(), nn.Linear(256, 8))
    optimizer = torch.optim.AdamW(model.parameters())
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 10)
    model, optimizer, rows, schedule = accelerator.prepare(model, optimizer, data(), schedule)
    seen = 0
    for x, y in rows:
        with accelerator.accumulate(model):
            loss = F.cross_entropy(model(x), y)
            accelerator.backward(loss)
            if accelerator.sync_gradients:
                accelerator.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            schedule.step()
            optimizer.zero_grad()
        seen += accelerator.gather_for_metrics(y).numel()
    longest = accelerator.pad_across_processes(torch.zeros(3 + accelerator.process_index, device="cuda"))
    with tempfile.TemporaryDirectory() as folder:
        accelerator.save_state(folder)
        if accelerator.num_processes == 1:  # the main process saves the model, into a folder of its own here
            accelerator.load_state(folder)
    accelerator.wait_for_everyone()
    accelerator.end_training()
    return f"{seen} rows, padded to {len(longest)} on {accelerator.num_processes}"


def lightning() -> str:
    """Trainer.fit with validation, a checkpoint and its continuation."""
    import lightning as lt

    logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)

    class Module(lt.LightningModule):
        def __init__(self) -> None:
            super().__init__()
            self.net = nn.Sequential(nn.Linear(32, 128), nn.BatchNorm1d(128), nn.ReLU(), nn.Linear(128, 4))

        def training_step(self, batch, index):
            loss = F.cross_entropy(self.net(batch[0]), batch[1])
            self.log("loss", loss)
            return loss

        def validation_step(self, batch, index):
            self.log("checked", F.cross_entropy(self.net(batch[0]), batch[1]))

        def configure_optimizers(self):
            return torch.optim.Adam(self.parameters())

    quiet = {"logger": False, "enable_progress_bar": False, "enable_model_summary": False, "accelerator": "gpu"}
    with tempfile.TemporaryDirectory() as folder:
        for precision in ("16-mixed", "bf16-mixed"):
            trainer = lt.Trainer(
                max_epochs=2, devices=1, precision=precision, default_root_dir=folder, gradient_clip_val=1.0, **quiet
            )
            trainer.fit(Module(), data(), data())
        saved = trainer.checkpoint_callback.best_model_path
        Module.load_from_checkpoint(saved)
        trainer = lt.Trainer(max_epochs=3, devices=1, precision=precision, default_root_dir=folder, **quiet)
        trainer.fit(Module(), data(), data(), ckpt_path=saved)
        return f"{trainer.global_step} steps"


def diffusers() -> str:
    """A conditional UNet, trained and sampled with a DDPM scheduler, and an autoencoder in half precision."""
    from diffusers import AutoencoderKL, DDPMScheduler, UNet2DConditionModel

    unet = UNet2DConditionModel(
        sample_size=16,
        layers_per_block=1,
        block_out_channels=(32, 64),
        down_block_types=("CrossAttnDownBlock2D", "DownBlock2D"),
        up_block_types=("UpBlock2D", "CrossAttnUpBlock2D"),
        cross_attention_dim=32,
        norm_num_groups=8,
    ).to("cuda")
    scheduler = DDPMScheduler(num_train_timesteps=100)
    optimizer = torch.optim.AdamW(unet.parameters())
    text = torch.randn(2, 7, 32, device="cuda")
    for size in (16, 24):
        x = torch.randn(2, 4, size, size, device="cuda")
        noise, when = torch.randn_like(x), torch.randint(0, 100, (2,), device="cuda")
        with torch.autocast("cuda", dtype=torch.bfloat16):
            loss = F.mse_loss(unet(scheduler.add_noise(x, noise, when), when, text).sample.float(), noise)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
    unet.eval()
    scheduler.set_timesteps(5)
    vae = AutoencoderKL(block_out_channels=(16,), norm_num_groups=8, latent_channels=4).to("cuda", torch.float16)
    with torch.no_grad():
        x = torch.randn(1, 4, 16, 16, device="cuda")
        for step in scheduler.timesteps:
            x = scheduler.step(unet(x, step, text[:1]).sample, step, x).prev_sample
        image = vae.decode(x.half()).sample
        latent = vae.encode(image).latent_dist.sample()
    return f"{tuple(image.cpu().shape)} {tuple(latent.shape)}"


def trainer() -> str:
    """transformers.Trainer with a fused optimizer, checkpoints and a resumed run."""
    from transformers import GPT2Config, GPT2LMHeadModel, Trainer, TrainingArguments

    small = GPT2Config(n_embd=64, n_head=4, n_layer=2, vocab_size=1000, bos_token_id=0, eos_token_id=0)
    rows = [{name: torch.zeros(16, dtype=torch.long) for name in ("input_ids", "labels")} for _ in range(16)]
    with tempfile.TemporaryDirectory() as folder:
        settings = {"output_dir": folder, "report_to": [], "disable_tqdm": True, "per_device_train_batch_size": 4}
        first = TrainingArguments(
            max_steps=4, save_steps=2, bf16=True, gradient_checkpointing=True, optim="adamw_torch_fused", **settings
        )
        Trainer(GPT2LMHeadModel(small), first, train_dataset=rows).train()
        again = Trainer(
            GPT2LMHeadModel(small), TrainingArguments(max_steps=6, save_steps=2, **settings), train_dataset=rows
        )
        again.train(resume_from_checkpoint=True)
        return f"{again.state.global_step} steps"


PARTS = [peft, accelerate, lightning, diffusers, trainer]

if __name__ == "__main__":
    wanted = sys.argv[1:] or [part.__name__ for part in PARTS]
    for part in PARTS:
        if part.__name__ in wanted:
            # In one write, as ranks share stdout: under -u print() writes the end of the line apart.
            print(f"{part.__name__}: {part()}\n", end="", flush=True)
    torch.cuda.synchronize()
