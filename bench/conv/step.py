# SPDX-License-Identifier: Apache-2.0
"""step.py: training steps of ResNet-50 or VGG-16 in PyTorch on the CPU, a line of milliseconds each.

    step.py MODEL f32|bf16 THREADS BATCH STEPS contiguous|last
"""
import sys
import time

import torch
from torch import nn


def bottleneck(inside, mid, stride):
    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            conv = lambda i, o, k, s=1: nn.Conv2d(i, o, k, s, k // 2, bias=False)
            norm = nn.BatchNorm2d
            self.main = nn.Sequential(conv(inside, mid, 1), norm(mid), nn.ReLU(inplace=True), conv(mid, mid, 3, stride),
                                      norm(mid), nn.ReLU(inplace=True), conv(mid, 4 * mid, 1), norm(4 * mid))
            short = inside == 4 * mid
            self.side = nn.Identity() if short else nn.Sequential(conv(inside, 4 * mid, 1, stride), norm(4 * mid))
            self.relu = nn.ReLU(inplace=True)

        def forward(self, x):
            return self.relu(self.main(x) + self.side(x))
    return Block()


def resnet50():
    parts = [nn.Conv2d(3, 64, 7, 2, 3, bias=False), nn.BatchNorm2d(64), nn.ReLU(inplace=True), nn.MaxPool2d(3, 2, 1)]
    inside = 64
    for mid, count in ((64, 3), (128, 4), (256, 6), (512, 3)):
        for i in range(count):
            parts.append(bottleneck(inside, mid, 2 if i == 0 and mid > 64 else 1))
            inside = 4 * mid
    return nn.Sequential(*parts, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(2048, 1000))


def vgg16():
    parts, inside = [], 3
    for out, count in ((64, 2), (128, 2), (256, 3), (512, 3), (512, 3)):
        for _ in range(count):
            parts += [nn.Conv2d(inside, out, 3, padding=1), nn.ReLU(inplace=True)]
            inside = out
        parts.append(nn.MaxPool2d(2))
    for i, o in ((25088, 4096), (4096, 4096)):
        parts += [nn.Flatten(), nn.Linear(i, o), nn.ReLU(inplace=True), nn.Dropout()]
    return nn.Sequential(*parts, nn.Linear(4096, 1000))


def main():
    name, kind, threads, batch, steps, layout = sys.argv[1:]
    torch.set_num_threads(int(threads))
    torch.manual_seed(1)
    form = torch.channels_last if layout == "last" else torch.contiguous_format
    model = {"resnet50": resnet50, "vgg16": vgg16}[name]().to(memory_format=form)
    x = torch.rand(int(batch), 3, 224, 224).to(memory_format=form)
    labels = torch.randint(1000, (int(batch),))
    rule = torch.optim.SGD(model.parameters(), 1e-4, momentum=0.9)
    for _ in range(int(steps)):
        begin = time.perf_counter()
        rule.zero_grad()
        with torch.autocast("cpu", torch.bfloat16, enabled=kind == "bf16"):
            loss = nn.functional.cross_entropy(model(x), labels)
        loss.backward()
        rule.step()
        print(1e3 * (time.perf_counter() - begin), flush=True)


main()
