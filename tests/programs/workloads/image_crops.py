# SPDX-License-Identifier: Apache-2.0
"""Self-supervised training of a ResNet-50 on several crops of each picture (two large, six small) whose sizes change
from batch to batch: channels_last, fp16 with a GradScaler, a teacher of averaged weights that sees the large ones."""

import copy
import random

import torch
import torch.nn.functional as F
from peaks import print_peaks
from torch import nn

STAGES = ((64, 3), (128, 4), (256, 6), (512, 3))
LARGE, SMALL = (224, 256, 288, 320, 384, 448), (96, 112, 128, 144, 160)
PROTOTYPES, STEPS = 8192, 20


class Bottleneck(nn.Module):
    def __init__(self, inputs, width, stride):
        super().__init__()
        self.conv1, self.norm1 = nn.Conv2d(inputs, width, 1, bias=False), nn.BatchNorm2d(width)
        self.conv2, self.norm2 = nn.Conv2d(width, width, 3, stride, 1, bias=False), nn.BatchNorm2d(width)
        self.conv3, self.norm3 = nn.Conv2d(width, 4 * width, 1, bias=False), nn.BatchNorm2d(4 * width)
        self.skip = nn.Identity()
        if stride != 1 or inputs != 4 * width:
            self.skip = nn.Sequential(nn.Conv2d(inputs, 4 * width, 1, stride, bias=False), nn.BatchNorm2d(4 * width))

    def forward(self, x):
        y = F.relu(self.norm1(self.conv1(x)), inplace=True)
        y = F.relu(self.norm2(self.conv2(y)), inplace=True)
        return F.relu(self.norm3(self.conv3(y)) + self.skip(x), inplace=True)


class ResNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem = nn.Sequential(
            nn.Conv2d(3, 64, 7, 2, 3, bias=False), nn.BatchNorm2d(64), nn.ReLU(True), nn.MaxPool2d(3, 2, 1)
        )
        blocks, inputs = [], 64
        for stage, (width, count) in enumerate(STAGES):
            for place in range(count):
                blocks.append(Bottleneck(inputs, width, 2 if stage and not place else 1))
                inputs = 4 * width
        self.blocks = nn.Sequential(*blocks)
        hidden = nn.Linear(inputs, 2048)
        self.project = nn.Sequential(hidden, nn.BatchNorm1d(2048), nn.ReLU(True), nn.Linear(2048, 256))
        self.prototypes = nn.Linear(256, PROTOTYPES, bias=False)

    def forward(self, crops):
        pooled = torch.cat([self.blocks(self.stem(size)).mean((2, 3)) for size in crops])
        return self.prototypes(F.normalize(self.project(pooled), dim=-1))


def crops(rng, pictures):
    """Two large crops and six small ones of each picture, as one batch a size."""
    for count, sizes in ((2, LARGE), (6, SMALL)):
        size = rng.choice(sizes)
        batch = torch.empty(count * pictures, 3, size, size, dtype=torch.uint8).pin_memory()
        batch = batch.cuda(non_blocking=True).to(memory_format=torch.channels_last)
        yield batch.float().div_(255).sub_(0.45).div_(0.22)


def main():
    rng = random.Random(10)
    torch.manual_seed(0)
    with torch.device("cuda"):
        student = ResNet().to(memory_format=torch.channels_last)
    teacher = copy.deepcopy(student).requires_grad_(False)
    optimizer = torch.optim.SGD(student.parameters(), lr=0.1, momentum=0.9, weight_decay=1e-4)
    scaler, pictures = torch.amp.GradScaler("cuda"), 32
    for _ in range(STEPS):
        large, small = crops(rng, pictures)
        with torch.autocast("cuda", dtype=torch.float16):
            with torch.no_grad():
                targets = (teacher([large]).float() / 0.04).softmax(-1).chunk(2)
            seen = (student([large, small]).float() / 0.1).log_softmax(-1).split(pictures)
            loss = -sum((target * view).sum(-1).mean() for target in targets for view in seen) / 16
        scaler.scale(loss).backward()
        scaler.unscale_(optimizer)
        torch.nn.utils.clip_grad_norm_(student.parameters(), 3.0)
        scaler.step(optimizer)
        scaler.update()
        optimizer.zero_grad(set_to_none=True)
        with torch.no_grad():
            torch._foreach_lerp_(list(teacher.parameters()), list(student.parameters()), 0.004)
    print_peaks(STEPS)


if __name__ == "__main__":
    main()
