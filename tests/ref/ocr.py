#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
#
# A step of a convolutional net of ONNX in torch, with BatchNorm as in training: what tests/ocr.sh compares with.
#
#     ocr.py models                                 the folder of rapidocr_onnxruntime's models; status 1: it is not there
#     ocr.py data MODEL.onnx DIR N,C,H,W            writes DIR/x.npy and DIR/labels.npy
#     ocr.py step MODEL.onnx DIR OLD.safetensors NEW.safetensors RATE LOSS
#
# compares LOSS, the mean square of what the net gives less the labels, and (OLD - NEW)/RATE with the gradients of OLD in f64.
# Distances are parts of the largest element of a tensor, or of 1e-3 of the largest of all.  Each is at most 1e-4, or 8 times as
# far as the gradient in f64 itself goes where each weight is another one by half a unit of its last place: of a gradient that
# so small a change moves further, f32 has no more digits.  Those of the detector are sums over all pixels for a single number,
# which nearly cancel.  One wrong operator moves most gradients by parts of 1.
import sys
import numpy as np
import onnx
import torch
from onnx import numpy_helper
from safetensors.numpy import load_file

F = torch.nn.functional


def pads(at):
    p = list(at.get('pads', [0, 0, 0, 0]))
    assert p[:2] == p[2:]
    return p[:2]


def run(model, x, weights):
    kind_of = x.dtype
    value = {t.name: torch.tensor(numpy_helper.to_array(t)) for t in model.graph.initializer}
    value[model.graph.input[0].name] = x
    used, shapes = {}, {}
    for node in model.graph.node:
        at = {a.name: onnx.helper.get_attribute_value(a) for a in node.attribute}
        if node.op_type == 'Constant':
            value[node.output[0]] = torch.tensor(np.array(numpy_helper.to_array(at['value'])))
        for name in node.input:
            if name in weights:
                whole = used.setdefault(name, torch.tensor(weights[name], dtype=kind_of, requires_grad=True))
                shape = shapes.setdefault(name, value[name].shape)
                value[name] = whole.T if whole.dim() == 2 and node.op_type == 'MatMul' else whole.reshape(
                    shape if whole.numel() == np.prod(shape) else (1, -1, 1, 1))          # a number a channel here
            elif name and value[name].is_floating_point():
                value[name] = value[name].to(kind_of)
        i = [value[name] if name else None for name in node.input]
        kind = node.op_type
        if kind == 'Constant':
            continue
        if kind == 'Conv':
            y = F.conv2d(i[0], i[1], i[2] if len(i) > 2 else None, at.get('strides', 1), pads(at), at.get('dilations', 1),
                         at.get('group', 1))
        elif kind == 'ConvTranspose':
            y = F.conv_transpose2d(i[0], i[1], i[2] if len(i) > 2 else None, at.get('strides', 1), pads(at))
        elif kind == 'BatchNormalization':
            y = F.batch_norm(i[0], None, None, i[1], i[2], True, 0, at.get('epsilon', 1e-5))
        elif kind == 'Reshape':
            y = i[0].reshape([int(n) if n else i[0].shape[k] for k, n in enumerate(i[1])])
        elif kind == 'Clip':
            low, high = (i[1], i[2]) if len(i) > 1 else (at['min'], at['max'])
            y = i[0].clamp(float(low), float(high))
        elif kind == 'HardSigmoid':
            y = (i[0] * at.get('alpha', 0.2) + at.get('beta', 0.5)).clamp(0, 1)
        elif kind == 'GlobalAveragePool':
            y = i[0].mean((2, 3), keepdim=True)
        elif kind == 'MaxPool':
            y = F.max_pool2d(i[0], at['kernel_shape'], at['strides'], pads(at), ceil_mode=bool(at.get('ceil_mode', 0)))
        elif kind == 'Resize':
            y = i[0].repeat_interleave(int(i[2][2]), 2).repeat_interleave(int(i[2][3]), 3)
        elif kind == 'Shape':
            y = torch.tensor(i[0].shape)
        elif kind == 'Slice':
            y = i[0][int(i[1]):int(i[2])]
        elif kind == 'Cast':
            y = i[0]
        elif kind == 'Concat':
            y = torch.cat([t.reshape(-1) if t.dim() == 0 else t for t in i], at['axis'])
        else:
            y = {'Add': torch.add, 'Mul': torch.mul, 'Div': torch.div, 'MatMul': torch.matmul, 'Relu': torch.relu,
                 'Sigmoid': torch.sigmoid, 'Identity': lambda t: t,
                 'Softmax': lambda t: torch.softmax(t, at.get('axis', -1))}[kind](*i)
        value[node.output[0]] = y
    return value[model.graph.output[0].name], used


def images(y):                                  # as dpgen has them
    return y.permute(0, 2, 3, 1) if y.dim() == 4 else y


def step(model, folder, weights, kind):
    x = torch.tensor(np.load(folder + '/x.npy'), dtype=kind).permute(0, 3, 1, 2)
    y, used = run(model, x, weights)
    loss = ((images(y) - torch.tensor(np.load(folder + '/labels.npy'), dtype=kind)) ** 2).mean()
    loss.backward()
    return loss.item(), {k: t.grad.double().numpy().reshape(-1) for k, t in used.items() if t.grad is not None}


def main(what, path=None, folder=None, *rest):
    if what == 'models':
        import importlib.util
        found = importlib.util.find_spec('rapidocr_onnxruntime')
        print(found.submodule_search_locations[0] + '/models' if found else '')
        sys.exit(not found)
    model = onnx.load(path)
    if what == 'data':
        draw = np.random.default_rng(1)
        x = draw.uniform(-1, 1, [int(n) for n in rest[0].split(',')]).astype(np.float32)
        y, _ = run(model, torch.tensor(x, dtype=torch.float64), {})
        np.save(folder + '/x.npy', np.ascontiguousarray(x.transpose(0, 2, 3, 1)))
        np.save(folder + '/labels.npy', draw.uniform(0, 1, images(y).shape).astype(np.float32))
        return
    old, new, rate, loss = load_file(rest[0]), load_file(rest[1]), float(rest[2]), float(rest[3])
    right, true = step(model, folder, old, torch.float64)
    most = max(np.abs(g).max() for g in true.values())
    unit = {name: max(np.abs(g).max(), 1e-3 * most) for name, g in true.items()}
    far = lambda other, name: np.abs(other[name].reshape(-1) - true[name]).max() / unit[name]
    draw = np.random.default_rng(2)
    near = [{name: w * (1 + 2. ** -24 * draw.choice([-1, 1], w.shape)) for name, w in old.items()} for _ in range(4)]
    near = [step(model, folder, {k: w.astype(np.float64) for k, w in weights.items()}, torch.float64)[1] for weights in near]
    moved = {name: (old[name].astype(np.float64) - new[name].astype(np.float64)) / rate for name in new.keys()}
    own = {name: far(moved, name) for name in sorted(true.keys() & new.keys())}
    limit = {name: max(1e-4, 8 * max(far(g, name) for g in near)) for name in own}
    worst = max(own, key=lambda name: own[name] / limit[name])
    good = sum(d <= 1e-4 for d in own.values())
    print(f'loss {loss:.9g}, torch {right:.9g}; {good} of {len(own)} gradients within 1e-4, {worst} {own[worst]:.3g} '
          f'of {limit[worst]:.3g}')
    sys.exit(not (len(own) > 20 and own[worst] <= limit[worst] and abs(loss - right) < 1e-4 * right))


main(*sys.argv[1:])
