#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The outside reference of fine-tuning: the gpt of make_ref.py, 20 steps by torch.optim.AdamW in double precision, with
parameters that do not learn (requires_grad) and with parameter groups of their own rates, betas, eps and decay.

    python3 make_tuned.py DIR

Data and start values are gpt.*.npy and gpt.start.safetensors.  What is written: gpt.NAME.losses.txt, .grad1, .grad20, .end
for each NAME of CASES.  Needs torch and numpy.
"""
import math
import sys
from fnmatch import fnmatchcase

import numpy as np
import torch
from make_ref import (BATCH, BETA1, BETA2, CLIP, DECAY, Gpt, MICRO, SAMPLES, STEPS, rate, write_losses,
                      write_safetensors)

CASES = {
    # gradients pass through what does not learn, and some of one operator learns
    "through": {"freeze": ["wpe.*", "h.0.*", "h.1.ln_2.weight", "h.1.attn.c_attn.weight"]},
    # backward ends in front of the last block
    "prefix": {"freeze": ["wte.*", "wpe.*", "h.0.*"]},
    # the first that matches takes a parameter; lr in parts of that of all others
    "groups": {"groups": [(["h.1.*", "wpe.*"], {"times": 0.3, "weight_decay": 0.0}),
                          (["*.ln_*", "ln_f.*"], {"times": 2.0, "betas": (0.7, 0.9), "eps": 1e-4})]},
}


def takes(patterns, name):
    return any(fnmatchcase(name, p) for p in patterns)


def train(model, start, data, freeze=(), groups=()):
    p = {name: torch.tensor(value, dtype=torch.float64) for name, value in start.items()}
    learn = {name: t.requires_grad_() for name, t in p.items() if not takes(freeze, name)}
    lists = []
    for name, t in learn.items():
        own = next((k for patterns, k in groups if takes(patterns, name)), {})
        one = {"params": [t], "times": 1.0, "weight_decay": DECAY, "betas": (BETA1, BETA2), "eps": model.eps, **own}
        lists.append({**one, "weight_decay": one["weight_decay"] if t.dim() >= 2 else 0.0})
    tuner = torch.optim.AdamW(lists)
    rows, gradients = [], {}
    for step in range(STEPS):
        at = step * MICRO * BATCH % SAMPLES
        whole = {name: torch.tensor(value[at:at + MICRO * BATCH]).long() for name, value in data.items()}
        loss = model.losses(p, whole)[0] / whole["targets"].numel()
        tuner.zero_grad()
        loss.backward()
        norm = math.sqrt(sum(float(t.grad.pow(2).sum()) for t in learn.values()))
        gradients[step + 1] = {name: t.grad.numpy().copy() for name, t in learn.items()}
        for t in learn.values():
            t.grad *= min(1.0, CLIP / norm)
        lr = rate(step, model.peak, model.final)
        for group in tuner.param_groups:
            group["lr"] = lr * group["times"]
        tuner.step()
        rows.append((float(loss.detach()), norm, lr))
    return rows, gradients, {name: t.detach().numpy() for name, t in p.items()}


def main(to):
    model = Gpt()
    data = {name: np.load(f"{to}/gpt.{name}.npy") for name in ("tokens", "targets")}
    for name, case in CASES.items():
        rows, gradients, end = train(model, model.weights(), data, **case)
        base = f"{to}/gpt.{name}"
        write_losses(base + ".losses.txt", rows)
        write_safetensors(base + ".grad1.safetensors", gradients[1])
        write_safetensors(base + f".grad{STEPS}.safetensors", gradients[STEPS])
        write_safetensors(base + ".end.safetensors", end)


if __name__ == "__main__":
    torch.set_num_threads(1)
    main(sys.argv[1])
