#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The outside reference for images: eight tiny models of torchvision's and torchgpipe's own classes, trained for 20 steps by
PyTorch in double precision.

    python3 make_images.py DIR TORCHGPIPE       write the reference into DIR; TORCHGPIPE: a checkout of its repository

Needs torch, torchvision and numpy.  Nothing else in the project does: the results are stored beside this file.  Start values
are numbers that float32 holds exactly.  No model draws random numbers: dropout and stochastic depth have probability 0.
Running statistics are PyTorch's own, once a micro-batch; those of densenet are once a step, from their definition: the
variance of all rows of the step, with n/(n - 1).
"""
import os
import sys
from collections import OrderedDict

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn
from torchvision.models import convnext, densenet, efficientnet, mobilenetv2, resnet, vision_transformer

from make_ref import BATCH, CLIP, MICRO, STEPS, rate, write_losses, write_safetensors

SAMPLES, SIZE, CLASSES, PEAK, FINAL = 24, 16, 5, 0.05, 0.1


def pooled():
    return [("pool", nn.AdaptiveAvgPool2d(1)), ("flat", nn.Flatten())]


def stem(channels, stride=1):
    return [("conv1", nn.Conv2d(3, channels, 3, stride, 1, bias=False)), ("bn1", nn.BatchNorm2d(channels)),
            ("relu", nn.ReLU())]


def make_resnet():
    down = nn.Sequential(nn.Conv2d(8, 12, 1, 2, bias=False), nn.BatchNorm2d(12))
    return nn.Sequential(OrderedDict(stem(8) + [
        ("maxpool", nn.MaxPool2d(3, 2, 1)),
        ("layer1", nn.Sequential(resnet.Bottleneck(8, 3, 2, down), resnet.Bottleneck(12, 3))),
        *pooled(), ("fc", nn.Linear(12, CLASSES))]))


def make_densenet():
    return densenet.DenseNet(growth_rate=4, block_config=(2, 2), num_init_features=8, bn_size=2, num_classes=CLASSES)


def make_mobilenet():
    return nn.Sequential(OrderedDict(stem(6, 2) + [
        ("features", nn.Sequential(mobilenetv2.InvertedResidual(6, 8, 1, 1), mobilenetv2.InvertedResidual(8, 10, 2, 2),
                                   mobilenetv2.InvertedResidual(10, 10, 1, 2))),
        *pooled(), ("classifier", nn.Linear(10, CLASSES))]))


def make_efficientnet():
    def block(*config):
        return efficientnet.MBConv(efficientnet.MBConvConfig(*config, 1), 0.0, nn.BatchNorm2d)
    return nn.Sequential(OrderedDict(stem(8, 2) + [
        ("features", nn.Sequential(block(2, 3, 1, 8, 8), block(2, 5, 2, 8, 16), block(1, 3, 1, 16, 16))),
        *pooled(), ("classifier", nn.Linear(16, CLASSES))]))


def make_convnext():
    settings = [convnext.CNBlockConfig(8, 12, 2), convnext.CNBlockConfig(12, None, 1)]
    return convnext.ConvNeXt(settings, 0.0, 0.5, CLASSES)


def make_vit():
    return vision_transformer.VisionTransformer(SIZE, 4, 2, 2, 10, 18, num_classes=CLASSES)


def make_amoebanet():
    from amoebanet import Cell, Stem

    class Head(nn.Module):
        def __init__(self):
            super().__init__()
            self.fc = nn.Linear(48, CLASSES)

        def forward(self, states):
            return self.fc(states[0].mean((2, 3)))

    return nn.Sequential(OrderedDict([
        ("stem1", Stem(8)), ("stem2", Cell(8, 8, 12, True, False)), ("cell1", Cell(8, 36, 12, False, True)),
        ("classify", Head())]))


def make_unet():
    from unet import unet
    return unet(depth=2, num_convs=2, base_channels=4)


MODELS = {"resnet": make_resnet, "densenet": make_densenet, "mobilenet": make_mobilenet, "efficientnet": make_efficientnet,
          "convnext": make_convnext, "vit": make_vit, "amoebanet": make_amoebanet, "unet": make_unet}

# torchgpipe makes one flat sequence of a U-Net: names of its convolutions, in order
UNET = ["encoder.0.encode.0", "encoder.0.encode.1", "encoder.1.encode.0", "encoder.1.encode.1", "bottleneck.0", "bottleneck.1",
        "decoder.0.decode.0", "decoder.0.decode.1", "decoder.1.decode.0", "decoder.1.decode.1", "segment"]


def start_values(model, seed):
    """Every parameter is drawn, so that none is 0 or 1 by chance of the initialisation."""
    draw = np.random.RandomState(seed)
    with torch.no_grad():
        for name, p in model.named_parameters():
            fan = p.numel() / p.shape[0] if p.dim() > 1 and p.shape[0] > 1 else p.numel()
            one = p.dim() == 1 and name.endswith("weight") or name.endswith("layer_scale")
            value = (1 if one else 0) + draw.standard_normal(p.shape) * (0.1 if p.dim() == 1 or one else (1.5 / fan) ** 0.5)
            p.copy_(torch.tensor(value.astype(np.float32).astype(np.float64)))
        for m in model.modules():
            if isinstance(m, nn.Dropout2d):
                m.p = 0.0


class OnceAStep:
    """Running statistics of the whole step: the definition, for BatchNorms that do not track by themselves."""

    def __init__(self, model):
        self.seen = {}
        for m in model.modules():
            if isinstance(m, nn.BatchNorm2d):
                m.momentum, self.seen[m] = 0.0, []
                m.register_forward_pre_hook(lambda m, x: self.seen[m].append(x[0].detach()))

    def step(self):
        for m, parts in self.seen.items():
            x = torch.cat(parts)
            m.running_mean.mul_(0.9).add_(0.1 * x.mean((0, 2, 3)))
            m.running_var.mul_(0.9).add_(0.1 * x.transpose(0, 1).flatten(1).var(1))
            m.num_batches_tracked += 1 - len(parts)
            parts.clear()


def state(model, name):
    values = {k: v.detach().double().numpy().reshape(v.shape or (1,)).copy() for k, v in model.state_dict().items()}
    return {UNET[i] + ".weight": v for i, v in enumerate(values.values())} if name == "unet" else values


def gradients_of(model, name):
    values = {k: p.grad.double().numpy().copy() for k, p in model.named_parameters()}
    return {UNET[i] + ".weight": v for i, v in enumerate(values.values())} if name == "unet" else values


def train(model, name, data):
    tuner = torch.optim.SGD(model.parameters(), lr=0, momentum=0.9)
    tracker = OnceAStep(model) if name == "densenet" else None
    rows, gradients = [], {}
    model.double().train()
    for step in range(STEPS):
        at = step * MICRO * BATCH % SAMPLES
        tuner.zero_grad()
        total = 0.0
        for mb in range(MICRO):
            part = slice(at + mb * BATCH, at + (mb + 1) * BATCH)
            y = model(torch.tensor(data["image"][part]).double().permute(0, 3, 1, 2))
            if name == "unet":
                want = torch.tensor(data["mask"][part]).double().permute(0, 3, 1, 2)
                loss = F.binary_cross_entropy_with_logits(y, want) / MICRO
            else:
                smooth = 0.1 if name == "convnext" else 0.0
                want = torch.tensor(data["labels"][part]).long()
                loss = F.cross_entropy(y, want, label_smoothing=smooth) / MICRO
            loss.backward()
            total += float(loss.detach())
        if tracker:
            tracker.step()
        gradients[step + 1] = gradients_of(model, name)
        norm = float(nn.utils.clip_grad_norm_(model.parameters(), float("inf")))
        for p in model.parameters():
            p.grad *= min(1.0, CLIP / norm)
        lr = tuner.param_groups[0]["lr"] = rate(step, PEAK, FINAL)
        tuner.step()
        rows.append((total, norm, lr))
    return rows, gradients


def pictures():
    """A label is where a bright bar lies, and how; a mask is the bar."""
    draw = np.random.RandomState(7)
    image = draw.standard_normal((SAMPLES, SIZE, SIZE, 3)) * 0.5
    labels = draw.randint(0, CLASSES, SAMPLES)
    mask = np.zeros((SAMPLES, SIZE, SIZE, 1))
    for i, label in enumerate(labels):
        at = 2 + 3 * label
        (mask[i, at:at + 2] if label % 2 else mask[i, :, at:at + 2])[:] = 1
        image[i] += 1.5 * mask[i] * (1 + np.arange(3)) / 3
    return {"image": image.astype("<f4"), "labels": labels.astype("<i4"), "mask": mask.astype("<f4")}


def write(folder):
    data = pictures()
    for key, value in data.items():
        np.save(os.path.join(folder, f"images.{key}.npy"), value)
    for seed, (name, make) in enumerate(MODELS.items()):
        model, base = make(), os.path.join(folder, name)
        start_values(model, 50 + seed)
        model.double()
        write_safetensors(base + ".start.safetensors", state(model, name))
        rows, gradients = train(model, name, data)
        write_losses(base + ".losses.txt", rows)
        write_safetensors(base + ".end.safetensors", state(model, name))
        write_safetensors(base + ".grad1.safetensors", gradients[1])
        write_safetensors(base + f".grad{STEPS}.safetensors", gradients[STEPS])
        print("%s: %d parameters, loss %.4f .. %.4f, norm %.3f" % (
            name, sum(p.numel() for p in model.parameters()), rows[0][0], rows[-1][0], rows[0][1]))


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit("usage: make_images.py DIR TORCHGPIPE")
    sys.path[:0] = [sys.argv[2], os.path.join(sys.argv[2], "benchmarks", "models")]
    torch.set_num_threads(1)
    write(sys.argv[1])
