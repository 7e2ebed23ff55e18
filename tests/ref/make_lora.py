#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The outside reference of adapters: the llama of make_language.py with PEFT's LoRA beside its queries and values, 20 steps by
torch.optim.AdamW in double precision.

    python3 make_lora.py DIR

Start values follow from the names of the tensors, also those of the adapters, whose B is then not zero.  What is written:
llama.lora.tensors, losses, gradients, the adapters at the end as PEFT saves them, and the weights that PEFT merges them into.
Needs torch, transformers 4.57, peft and numpy.
"""
import sys

import numpy as np
import torch
from make_hf import weights
from make_language import Model
from make_ref import STEPS, write_losses, write_safetensors
from make_tuned import train
from peft import LoraConfig, get_peft_model, get_peft_model_state_dict

ADAPT = LoraConfig(r=3, lora_alpha=6, target_modules=["q_proj", "v_proj"], lora_dropout=0.0)


class Adapted(Model):
    def __init__(self):
        super().__init__("llama")
        self.peft = get_peft_model(self.module, ADAPT).double()
        self.places = []
        for where, module in self.peft.named_modules():
            for key, p in module._parameters.items():
                if p is not None:
                    name = f"{where}.{key}".replace("base_model.model.", "", 1)
                    name = name.replace(".default", "").replace(".base_layer", "")
                    self.places.append((module, key, name))
        self.named = {name: module._parameters[key] for module, key, name in self.places}


def main(to):
    model = Adapted()
    start = {name: weights(name, p.shape).numpy().astype(np.float32) for name, p in model.named.items()}
    with open(f"{to}/llama.lora.tensors", "w") as f:
        for name, value in start.items():
            f.write("%s F32 %s\n" % (name, "x".join(str(d) for d in value.shape)))
    data = {name: np.load(f"{to}/language.{name}.npy") for name in ("tokens", "targets")}
    rows, gradients, end = train(model, start, data, freeze=[name for name in start if ".lora_" not in name])
    write_losses(f"{to}/llama.lora.losses.txt", rows)
    for step in (1, STEPS):
        write_safetensors(f"{to}/llama.lora.grad{step}.safetensors", gradients[step])
    write_safetensors(f"{to}/llama.lora.end.safetensors", {k: v for k, v in end.items() if ".lora_" in k})
    end = {name: value.astype(np.float32) for name, value in end.items()}
    rows, _, _ = train(model, end, data, freeze=[name for name in start if ".lora_" not in name])
    write_losses(f"{to}/llama.lora.again.txt", rows[:1])        # of the first batch, with the adapters at the end
    for module, key, name in model.places:      # as 32-bit floats, which is how a checkpoint holds them
        module._parameters[key] = torch.nn.Parameter(torch.tensor(end[name]))
    model.peft.float()
    saved = get_peft_model_state_dict(model.peft)
    write_safetensors(f"{to}/llama.lora.adapter.safetensors", {k: v.detach().numpy() for k, v in saved.items()})
    merged = model.peft.merge_and_unload().state_dict()
    write_safetensors(f"{to}/llama.lora.merged.safetensors", {k: v.numpy() for k, v in merged.items()})


if __name__ == "__main__":
    torch.set_num_threads(1)
    main(sys.argv[1])
