#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The outside reference of packed documents: the gpt of make_ref.py, and the llama and mistral of make_language.py, trained on
documents one by one, each in a call of its own, in double precision.

    python3 make_packed.py DIR

gpt.documents.npy and language.documents.npy are numbers of documents.  gpt.packed.npy and language.packed.npy are targets; the
last token of a document has none.  Tokens and start values are those of the model.  What is written besides:
MODEL.packed.losses.txt, .grad1, .grad20.
Needs torch, transformers 4.57 and numpy.
"""
import sys

import numpy as np
import torch
from make_language import Model
from make_ref import Gpt, STEPS, train, write_losses, write_safetensors


def cut(tokens):
    """Numbers of documents: of 1 to 7 tokens; all of a sample differ, in no order."""
    draw, out = np.random.RandomState(47), np.zeros_like(tokens)
    for row in out:
        at, numbers = 0, list(draw.permutation(len(row)))
        while at < len(row):
            n = 1 + draw.randint(7)
            row[at:at + n] = numbers.pop()
            at += n
    return out


def runs(row):
    ends = [i + 1 for i in range(len(row) - 1) if row[i] != row[i + 1]] + [len(row)]
    return list(zip([0] + ends[:-1], ends))


class Apart:
    def __init__(self, model):
        self.model, self.targets = model, ["targets"]
        self.peak, self.final, self.eps = model.peak, model.final, model.eps

    def losses(self, p, x):
        total = 0
        for ids, targets, numbers in zip(x["tokens"], x["targets"], x["documents"].tolist()):
            for a, b in runs(numbers):
                own = {**p, "wpe.weight": p["wpe.weight"][:b - a]} if "wpe.weight" in p else p
                one = {"tokens": ids[None, a:b], "targets": targets[None, a:b]}
                if (one["targets"] != -100).any():
                    total = total + self.model.losses(own, one)[0]
        return [total]


def main(to):
    for name in ("gpt", "llama", "mistral"):
        shared = "gpt" if name == "gpt" else "language"
        model = Gpt() if name == "gpt" else Model(name)
        start = model.weights() if name == "gpt" else model.start()
        data = {key: np.load(f"{to}/{shared}.{key}.npy") for key in ("tokens", "targets")}
        data["documents"] = cut(data["tokens"])
        inside = data["documents"][:, 1:] == data["documents"][:, :-1]
        data["targets"][:, :-1][~inside] = -100
        data["targets"][:, -1] = -100
        if name != "mistral":
            np.save(f"{to}/{shared}.documents.npy", data["documents"].astype("<i4"))
            np.save(f"{to}/{shared}.packed.npy", data["targets"].astype("<i4"))
        rows, gradients, _ = train(Apart(model), start, data, torch.float64)
        write_losses(f"{to}/{name}.packed.losses.txt", rows)
        for step in (1, STEPS):
            write_safetensors(f"{to}/{name}.packed.grad{step}.safetensors", gradients[step])
        print(name, rows[0], rows[-1])


if __name__ == "__main__":
    torch.set_num_threads(1)
    main(sys.argv[1])
