#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The outside reference of weights in few bits: the model of make_lora.py, whose projections bitsandbytes has rounded to NF4,
and the rule of docs/bits.md, in numpy, to 8 bits a row.  PEFT trains beside the rounded weights in double precision.

    python3 make_quantized.py DIR

Written are, for nf4 and int8, the model with rounded projections, losses, and the gradients of the adapters in step 1.
Needs torch, transformers 4.57, peft, bitsandbytes 0.49 (on the CPU) and numpy.
"""
import sys

import bitsandbytes.functional as bnb
import numpy as np
import torch
from make_hf import weights
from make_lora import Adapted
from make_ref import write_losses, write_safetensors
from make_tuned import train


def nf4(w):
    codes, state = bnb.quantize_4bit(torch.tensor(w), blocksize=64, quant_type="nf4", compress_statistics=False)
    return bnb.dequantize_4bit(codes, state).numpy()


def int8(w):
    scale = (np.abs(w).max(axis=1, keepdims=True) / np.float32(127)).astype(np.float32)
    scale = ((scale.view(np.uint32) + np.uint32(255)) & np.uint32(0xFFFFFF00)).view(np.float32)    # up to 16 bits
    return (np.rint(w / scale) * scale).astype(np.float32)


def main(to):
    data = {name: np.load(f"{to}/language.{name}.npy") for name in ("tokens", "targets")}
    for kind, narrow in ("nf4", nf4), ("int8", int8):
        model = Adapted()
        start = {name: weights(name, p.shape).numpy().astype(np.float32) for name, p in model.named.items()}
        few = {name: narrow(value) for name, value in start.items() if name.endswith("_proj.weight")}
        start = {**start, **few}
        base = {name: value for name, value in start.items() if ".lora_" not in name}
        rows, gradients, _ = train(model, start, data, freeze=list(base))
        write_safetensors(f"{to}/llama.{kind}.weights.safetensors", base)
        write_losses(f"{to}/llama.{kind}.losses.txt", rows)
        write_safetensors(f"{to}/llama.{kind}.grad1.safetensors", gradients[1])


if __name__ == "__main__":
    torch.set_num_threads(1)
    main(sys.argv[1])
