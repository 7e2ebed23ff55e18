#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""tests/graphs/mlp.detach.*: the graph of mlp.pt2 with a detach in front of its product b, and the gradient that PyTorch has
for it in double precision, of the first two samples.

    python3 make_detach.py GRAPHS

The node is written into the JSON of the archive, as torch.export writes one.  Needs torch and numpy.
"""
import copy
import json
import sys
import zipfile

import numpy as np
import torch
from make_ref import write_safetensors
from torch.nn import functional as F

MODEL, WEIGHTS = "mlp/models/model.json", "mlp/data/weights/"


def detached(text):
    whole = json.loads(text)
    graph = whole["graph_module"]["graph"]
    like = next(n for n in graph["nodes"] if n["target"].endswith("silu.default"))
    node = copy.deepcopy(like)
    node["target"] = "torch.ops.aten.detach.default"
    node["inputs"][0]["arg"]["as_tensor"]["name"] = "gelu"
    node["outputs"][0]["as_tensor"]["name"] = "detach"
    graph["nodes"][2]["inputs"][0]["arg"]["as_tensor"]["name"] = "detach"
    graph["nodes"].insert(2, node)
    graph["tensor_values"]["detach"] = copy.deepcopy(graph["tensor_values"]["gelu"])
    return json.dumps(whole, separators=(",", ":")).encode()


def parameters(z):
    config = json.loads(z.read(WEIGHTS + "model_weights_config.json"))
    for name, value in config.get("config", config).items():
        shape = [size["as_int"] for size in value["tensor_meta"]["sizes"]]
        numbers = np.frombuffer(z.read(WEIGHTS + value["path_name"]), "<f4").reshape(shape)
        yield name, torch.tensor(numbers.astype("f8"), requires_grad=True)


def main(to):
    z = zipfile.ZipFile(f"{to}/mlp.pt2")
    with zipfile.ZipFile(f"{to}/mlp.detach.pt2", "w", zipfile.ZIP_STORED) as out:
        for name in z.namelist():
            data = z.read(name)
            out.writestr(zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0)), detached(data) if name == MODEL else data)
    p = dict(parameters(z))
    x = torch.tensor(np.load(f"{to}/mlp.image.npy")[:2].astype("f8"))
    labels = torch.tensor(np.load(f"{to}/mlp.labels.npy")[:2]).long()
    h = F.gelu(F.linear(x, p["a.weight"], p["a.bias"]), approximate="tanh")
    y = F.linear(h + F.silu(F.linear(h.detach(), p["b.weight"])), p["c.weight"], p["c.bias"])
    F.cross_entropy(y, labels).backward()
    write_safetensors(f"{to}/mlp.detach.grad.safetensors", {name: t.grad.numpy() for name, t in p.items()})


if __name__ == "__main__":
    main(sys.argv[1])
