#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The outside reference of the optimisers: 20 steps of rules.yaml by torch.optim, in double precision.

    python3 make_rules.py DIR

Parameters start as numbers that float32 holds exactly; everything after that is float64.  Needs torch and numpy.
"""
import sys

import numpy as np
import torch
from make_ref import write_losses, write_safetensors

STEPS, BATCH = 20, 6
RULES = {
    "nesterov": lambda p: torch.optim.SGD(p, 0.05, momentum=0.9, nesterov=True, weight_decay=0.01),
    "rmsprop": lambda p: torch.optim.RMSprop(p, 0.01, alpha=0.9, eps=1e-3),
    "moving": lambda p: torch.optim.RMSprop(p, 0.005, alpha=0.95, eps=1e-2, momentum=0.8, weight_decay=0.02),
    "centred": lambda p: torch.optim.RMSprop(p, 0.005, alpha=0.9, eps=1e-2, momentum=0.5, centered=True),
}


def main(to):
    draw = np.random.RandomState(3)
    x = draw.uniform(-1, 1, (10 * BATCH, 5)).astype(np.float32)
    wanted = np.stack([x[:, 0] * x[:, 1], np.sin(3 * x[:, 2]), x.sum(1)], 1).astype(np.float32)
    start = {name: draw.normal(0, 0.5, shape).astype(np.float32) for name, shape in
             (("inside.weight", (7, 5)), ("inside.bias", (7,)), ("outside.weight", (3, 7)), ("outside.bias", (3,)))}
    np.save(f"{to}/rules.x.npy", x)
    np.save(f"{to}/rules.wanted.npy", wanted)
    write_safetensors(f"{to}/rules.start.safetensors", start)
    for name, rule in RULES.items():
        p = {k: torch.tensor(v, dtype=torch.float64, requires_grad=True) for k, v in start.items()}
        update, rows = rule(list(p.values())), []
        for step in range(STEPS):
            at = step * BATCH % len(x)
            given, target = (torch.tensor(v[at:at + BATCH], dtype=torch.float64) for v in (x, wanted))
            y = torch.tanh(given @ p["inside.weight"].T + p["inside.bias"]) @ p["outside.weight"].T + p["outside.bias"]
            loss = torch.nn.functional.mse_loss(y, target)
            update.zero_grad()
            loss.backward()
            norm = torch.nn.utils.clip_grad_norm_(list(p.values()), 0.5)
            rows.append((loss.item(), norm.item(), update.param_groups[0]["lr"]))
            update.step()
        write_losses(f"{to}/rules.{name}.losses.txt", rows)
        end = {k: v.detach().numpy().astype(np.float32) for k, v in p.items()}
        write_safetensors(f"{to}/rules.{name}.end.safetensors", end)


main(sys.argv[1])
