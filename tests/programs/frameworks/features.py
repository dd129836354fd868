# SPDX-License-Identifier: Apache-2.0
"""Parts of PyTorch that training scripts use, on small data; prints the name of each part that ran."""

import sys
import tempfile
import warnings

import torch
from torch import nn
from torch.nn import functional as F
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.profiler import ProfilerActivity, profile
from torch.utils.data import DataLoader, TensorDataset

warnings.filterwarnings("ignore")


def new(*size: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    return torch.randn(*size, device="cuda", dtype=dtype, requires_grad=True)


def optimizers() -> None:
    made = [
        lambda p: torch.optim.Adam(p, foreach=True),
        lambda p: torch.optim.Adam(p, fused=True),
        lambda p: torch.optim.AdamW(p, amsgrad=True, capturable=True),
        lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.9, nesterov=True, fused=True),
        torch.optim.RMSprop,
        torch.optim.Adagrad,
        torch.optim.NAdam,
        torch.optim.RAdam,
    ]
    for make in made:
        model = nn.Linear(64, 64).cuda()
        optimizer = make(model.parameters())
        scaler = torch.amp.GradScaler()
        for rows in (8, 16):
            with torch.autocast("cuda", dtype=torch.float16):
                loss = model(new(rows, 64)).float().sum()
            scaler.scale(loss).backward()
            scaler.step(optimizer)
            scaler.update()
            optimizer.zero_grad()
        optimizer.load_state_dict(optimizer.state_dict())


def lbfgs() -> None:
    model = nn.Linear(64, 64).cuda()
    optimizer = torch.optim.LBFGS(model.parameters(), max_iter=3)

    def closure() -> torch.Tensor:
        optimizer.zero_grad()
        loss = model(new(4, 64)).sum()
        loss.backward()
        return loss

    optimizer.step(closure)


def loaders() -> None:
    rows = TensorDataset(torch.randn(32, 64), torch.arange(32))
    model = nn.Linear(64, 64).cuda()
    for workers in (0, 2):
        loader = DataLoader(
            rows, batch_size=8, num_workers=workers, pin_memory=True, persistent_workers=bool(workers)
        )
        for x, _ in loader:
            assert x.is_pinned()
            model(x.to("cuda", non_blocking=True)).sum().backward()


def profiler() -> None:
    model = nn.Linear(64, 64).cuda()
    activities = [ProfilerActivity.CPU, ProfilerActivity.CUDA]
    with profile(activities=activities, profile_memory=True) as seen, tempfile.TemporaryDirectory() as folder:
        model(new(32, 64)).sum().backward()
        seen.step()
    with tempfile.TemporaryDirectory() as folder:
        seen.export_chrome_trace(f"{folder}/trace.json")
    assert seen.key_averages().table()


def layouts() -> None:
    for dtype in (torch.float32, torch.bfloat16):
        for benchmark in (False, True):
            torch.backends.cudnn.benchmark = benchmark
            model = nn.Sequential(
                nn.Conv2d(3, 16, 3, padding=1),
                nn.BatchNorm2d(16),
                nn.ReLU(),
                nn.ConvTranspose2d(16, 8, 4, 2, 1),
                nn.Conv2d(8, 8, 3, groups=8),
                nn.MaxPool2d(2),
                nn.GroupNorm(2, 8),
            ).to("cuda", dtype, memory_format=torch.channels_last)
            model(new(2, 3, 32, 32, dtype=dtype).to(memory_format=torch.channels_last)).sum().backward()
            nn.Conv1d(2, 4, 3).to("cuda", dtype)(new(1, 2, 80, dtype=dtype)).sum().backward()


def attention() -> None:
    for name in ("MATH", "EFFICIENT_ATTENTION", "FLASH_ATTENTION", "CUDNN_ATTENTION"):
        backend = getattr(SDPBackend, name)
        q = new(2, 4, 64, 32, dtype=torch.bfloat16)
        with sdpa_kernel(backend):
            F.scaled_dot_product_attention(q, q, q, is_causal=True).sum().backward()
    layer = nn.TransformerEncoderLayer(64, 4, 128, batch_first=True)
    encoder = nn.TransformerEncoder(layer, 2).cuda()
    encoder(new(2, 10, 64)).sum().backward()
    encoder.eval()
    with torch.inference_mode():
        encoder(torch.randn(2, 10, 64, device="cuda"))


def checkpoints() -> None:
    from safetensors.torch import load_file, save_file
    from torch.utils.checkpoint import checkpoint

    model = nn.Linear(64, 64).cuda()
    for reentrant in (True, False):
        checkpoint(model, new(4, 64), use_reentrant=reentrant).sum().backward()
    with tempfile.TemporaryDirectory() as folder:
        torch.save(model.state_dict(), f"{folder}/a.pt")
        for place in ("cpu", "cuda", None):
            model.load_state_dict(torch.load(f"{folder}/a.pt", map_location=place))
        save_file(model.state_dict(), f"{folder}/a.safetensors")
        load_file(f"{folder}/a.safetensors", device="cuda")
    with torch.autograd.graph.save_on_cpu(pin_memory=True):
        loss = model(new(4, 64)).sum()
    loss.backward()


def graphs() -> None:
    model = torch.cuda.make_graphed_callables(nn.Linear(64, 64).cuda(), (new(4, 64),))
    for _ in range(3):
        model(new(4, 64)).sum().backward()


def linear_algebra() -> None:
    for batch in ((), (4,)):
        a = torch.randn(*batch, 8, 8, device="cuda")
        symmetric = a @ a.mT + torch.eye(8, device="cuda")
        for solve in (torch.linalg.svd, torch.linalg.eigh, torch.linalg.qr, torch.linalg.cholesky_ex):
            solve(symmetric)
        for solve in (torch.linalg.inv_ex, torch.linalg.lu, torch.linalg.slogdet, torch.linalg.pinv):
            solve(symmetric)
        torch.linalg.solve_ex(symmetric, a)
        torch.linalg.lstsq(a, a)
        torch.linalg.solve_triangular(symmetric, a, upper=True)
    torch.fft.irfft(torch.fft.rfft(new(4, 128))).sum().backward()
    torch.stft(torch.randn(128, device="cuda"), 32, return_complex=True, window=torch.hann_window(32, device="cuda"))
    rows = torch.sparse_coo_tensor(torch.tensor([[0, 1, 1], [2, 0, 2]]), torch.randn(3), (2, 3), device="cuda")
    torch.sparse.mm(rows, torch.randn(3, 4, device="cuda"))
    torch.sparse.mm(rows, rows.t())
    rows.coalesce().to_sparse_csr() @ torch.randn(3, 4, device="cuda")


def transforms() -> None:
    from torch.func import functional_call, grad, vmap

    model = nn.Linear(4, 4).cuda()
    names = dict(model.named_parameters())
    vmap(grad(lambda p, x: functional_call(model, p, (x,)).sum()), (None, 0))(names, torch.randn(3, 4, device="cuda"))
    scripted = torch.jit.script(nn.Sequential(nn.Linear(4, 4), nn.ReLU())).cuda()
    for rows in (2, 2, 3):
        scripted(torch.randn(rows, 4, device="cuda"))
    torch.nested.nested_tensor([torch.randn(3, 4), torch.randn(2, 4)], device="cuda", layout=torch.jagged)


PARTS = [optimizers, lbfgs, loaders, profiler, layouts, attention, checkpoints, graphs, linear_algebra, transforms]

if __name__ == "__main__":
    wanted = sys.argv[1:] or [part.__name__ for part in PARTS]
    for part in PARTS:
        if part.__name__ in wanted:
            part()
            torch.cuda.synchronize()
            print(part.__name__, flush=True)
