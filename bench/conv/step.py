# SPDX-License-Identifier: Apache-2.0
"""step.py: training steps of a model in PyTorch on the CPU, a line of milliseconds each.

ResNet-50 and VGG-16 are written here; the others are those of torchvision.

    step.py MODEL f32|bf16 THREADS BATCH STEPS contiguous|last wall|cpu

cpu: time of the processors, over the threads.
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


SIDE = {"inception-v3": 299}        # pixels of an image; of all others 224
OTHERS = {"resnet18": "resnet18", "vgg16-bn": "vgg16_bn", "densenet121": "densenet121", "inception-v3": "inception_v3",
          "squeezenet": "squeezenet1_1", "mobilenetv2": "mobilenet_v2", "efficientnet-b0": "efficientnet_b0",
          "convnext-tiny": "convnext_tiny"}


def model_of(name):
    own = {"resnet50": resnet50, "vgg16": vgg16}
    if name in own:
        return own[name]()
    from torchvision import models
    extra = {"aux_logits": False, "init_weights": False} if name == "inception-v3" else {}
    return getattr(models, OTHERS[name])(weights=None, **extra)


def main():
    name, kind, threads, batch, steps, layout, clock = sys.argv[1:]
    torch.set_num_threads(int(threads))
    torch.manual_seed(1)
    form = torch.channels_last if layout == "last" else torch.contiguous_format
    model = model_of(name).to(memory_format=form)
    x = torch.rand(int(batch), 3, SIDE.get(name, 224), SIDE.get(name, 224)).to(memory_format=form)
    labels = torch.randint(1000, (int(batch),))
    rule = torch.optim.SGD(model.parameters(), 1e-4, momentum=0.9)
    now = time.perf_counter if clock == "wall" else lambda: time.process_time() / int(threads)
    for _ in range(int(steps)):
        begin = now()
        rule.zero_grad()
        with torch.autocast("cpu", torch.bfloat16, enabled=kind == "bf16"):
            loss = nn.functional.cross_entropy(model(x), labels)
        loss.backward()
        rule.step()
        print(1e3 * (now() - begin), flush=True)


main()
