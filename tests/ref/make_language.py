#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The outside reference for language models of today: eight tiny models of transformers' own classes, and one of torch.nn.LSTM,
trained for 20 steps by PyTorch in double precision.

    python3 make_language.py DIR        write the reference into DIR

Needs torch, transformers 4.57.1 and numpy.  Nothing else in the project does: the results are stored beside this file.  Start
values follow from the names of the tensors, as in make_hf.py, so that only names and shapes are stored.  Losses, gradients
and parameters are f64, but norms, rotary tables and shares of experts are f32 in transformers whatever its type: about 1e-7.
"""
import json
import os
import sys

import numpy as np
import torch
import transformers as hf
from torch import nn

from make_hf import weights
from make_ref import SAMPLES, STEPS, loss_sum, train, walk, write_losses, write_safetensors

V, T, D = 37, 11, 16
base = dict(vocab_size=V, hidden_size=D, num_hidden_layers=2, num_attention_heads=4, intermediate_size=20,
            max_position_embeddings=T)
pairs = dict(num_key_value_heads=2)
llama3 = dict(rope_type="llama3", factor=8., low_freq_factor=1., high_freq_factor=4., original_max_position_embeddings=64)
CONFIGS = {
    "llama": dict(**base, **pairs, rope_theta=500., rope_scaling=llama3),
    "qwen3": dict(**base, **pairs, head_dim=6, tie_word_embeddings=True),
    "mistral": dict(**base, **pairs, sliding_window=4),
    "gemma2": dict(**base, **pairs, head_dim=6, sliding_window=4, query_pre_attn_scalar=10, attn_logit_softcapping=3.),
    "gpt_neox": dict(**base, rotary_pct=0.5),
    "phi": dict(**base, partial_rotary_factor=0.5),
    "mixtral": dict(**base, **pairs, num_local_experts=3, sliding_window=5),
    "olmoe": dict(**base, **pairs, num_experts=4, num_experts_per_tok=3),
}


class Lstm(nn.Module):          # two layers, the first in both directions
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(V, D)
        self.one = nn.LSTM(D, 12, batch_first=True, bidirectional=True)
        self.two = nn.LSTM(24, 10, batch_first=True)
        self.head = nn.Linear(10, V)

    def forward(self, ids):
        return self.head(self.two(self.one(self.embed(ids))[0])[0])


class Model:
    peak, final, eps = 1e-2, 0.1, 1e-3
    targets = ["targets"]

    def __init__(self, name):
        if name == "lstm":
            self.module, self.scores, self.peak, self.eps = Lstm(), lambda y: y, 5e-2, 1e-8
        else:
            config = hf.AutoConfig.for_model(name, **CONFIGS[name], attn_implementation="eager")
            for key in vars(config):
                if "dropout" in key:
                    setattr(config, key, 0.0)
            config.pad_token_id = None          # else the row of this token learns nothing
            self.module, self.scores = hf.AutoModelForCausalLM.from_config(config), lambda y: y.logits
        self.module.train()
        self.named = dict(self.module.named_parameters())
        self.places = [(module, key, next(n for n, q in self.named.items() if q is p))
                       for module in self.module.modules() for key, p in module._parameters.items() if p is not None]

    def start(self):
        return {name: weights(name, p.shape).numpy().astype(np.float32) for name, p in self.named.items()}

    def losses(self, p, x):
        for module, key, name in self.places:           # train()'s variables are the parameters
            module._parameters[key] = p[name]
        for module in self.module.modules():
            if isinstance(module, nn.LSTM):
                module._flat_weights = [module._parameters[key] for key in module._flat_weights_names]
        self.module.to(p[name].dtype)
        return [loss_sum(self.scores(self.module(x["tokens"])), x["targets"])]


def as_here(tensors):
    """Tensors of experts as one parameter; query, key and value of a head, which lie below each other, as three."""
    out, parts = {}, {}
    for name, value in tensors.items():
        head, mark, tail = name.partition(".experts.")
        if mark:
            parts.setdefault(f"{head}.experts.{tail.split('.', 1)[1]}", []).append(value)
        elif ".query_key_value." in name:
            rows = value.reshape(base["num_attention_heads"], 3, -1, *value.shape[1:])
            for i, part in enumerate(["query", "key", "value"]):
                out[name.replace("query_key_value", part)] = rows[:, i].reshape(-1, *value.shape[1:])
        else:
            out[name] = value
    return {**out, **{name: np.stack(values) for name, values in parts.items()}}


def data():
    ids = walk(np.random.RandomState(31), SAMPLES, T + 1, V)
    return {"tokens": ids[:, :-1].astype("<i4"), "targets": ids[:, 1:].astype("<i4")}


def write(folder):
    for key, value in data().items():
        np.save(f"{folder}/language.{key}.npy", value)
    for name in [*CONFIGS, "lstm"]:
        model, path = Model(name), os.path.join(folder, name)
        start = model.start()
        rows, gradients, end = train(model, start, data(), torch.float64)
        if name in CONFIGS:
            with open(path + ".json", "w") as f:
                json.dump({"model_type": name, **CONFIGS[name]}, f, indent=1)
                f.write("\n")
        with open(path + ".tensors", "w") as f:
            for key, value in start.items():
                f.write(f"{key} F32 {'x'.join(map(str, value.shape))}\n")
        write_losses(path + ".losses.txt", rows)
        write_safetensors(path + ".grad1.safetensors", as_here(gradients[1]))
        write_safetensors(path + f".grad{STEPS}.safetensors", as_here(gradients[STEPS]))
        write_safetensors(path + ".end.safetensors", as_here(end))
        print(f"{name}: {sum(v.size for v in start.values())} parameters, loss {rows[0][0]:.4f} .. {rows[-1][0]:.4f}, "
              f"norm {rows[0][1]:.3f}")


if __name__ == "__main__":
    torch.set_num_threads(1)
    if len(sys.argv) == 2 and os.path.isdir(sys.argv[1]):
        write(sys.argv[1])
    else:
        sys.exit("usage: make_language.py DIR")
