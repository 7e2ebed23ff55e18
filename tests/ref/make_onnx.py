# SPDX-License-Identifier: Apache-2.0
#
# make_onnx.py: tests/graphs/parts.onnx, as Paddle2ONNX and the like write networks: all tensors are constants, a bias is an Add
# of a tensor that is reshaped, single numbers are learnt, HardSwish is in parts.  Its loss is that of the reference
# evaluator of ONNX (onnx 1.22), in f64.  Also graphs of a node or two that are refused: bad.*.onnx.
#
#   python3 tests/ref/make_onnx.py tests/graphs
import sys
import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator

rng = np.random.default_rng(3)
N = helper.make_node


def tensor(*shape):
    return (rng.standard_normal(shape) * 0.4).astype("f4")


def in_fields(array, name):
    return helper.make_tensor(name, helper.np_dtype_to_tensor_dtype(array.dtype), array.shape, array.flatten())


def graph(nodes, tensors, inputs, result="logits", kind=TensorProto.FLOAT, constants=(), form=numpy_helper.from_array):
    made = [N("Constant", [], [k], k, value=numpy_helper.from_array(np.asarray(v), "value")) for k, v in tensors.items()
            if k in constants]
    infos = [helper.make_tensor_value_info(k, kind, shape) for k, shape in inputs.items()]
    g = helper.make_graph(made + nodes, "g", infos, [helper.make_tensor_value_info(result, kind, None)],
                          [form(np.asarray(v), k) for k, v in tensors.items() if k not in constants])
    return helper.make_model(g, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)


def parts():
    t = {"c.w": tensor(6, 3, 3, 3), "c.b": tensor(6), "to": np.array([1, 6, 1, 1]), "lab.scale": tensor(1) + 1,
         "lab.bias": tensor(1), "i.w": tensor(6) + 1, "i.b": tensor(6), "three": np.float32(3), "six": np.float32(6),
         "zero": np.float32(0), "plain.Constant_w": np.ones(6, "f4"), "plain.Constant_b": np.zeros(6, "f4"),
         "onnx::Split_9": np.array([4, 2]), "d.w": tensor(4, 5, 2, 2), "d.b": tensor(5), "five": np.array([1, 5, 1, 1]),
         "f.w": tensor(5, 7), "f.b": tensor(7), "one": np.array([1, 7])}
    nodes = [N("Conv", ["image", "c.w"], ["c"], "conv", pads=[1] * 4), N("Reshape", ["c.b", "to"], ["cb"], "reshape"),
             N("Add", ["c", "cb"], ["a"], "bias"), N("Mul", ["lab.scale", "a"], ["m"], "scale"),
             N("Add", ["m", "lab.bias"], ["s"], "shift"), N("HardSigmoid", ["s"], ["h"], "gate", alpha=0.2, beta=0.5),
             N("InstanceNormalization", ["h", "i.w", "i.b"], ["i"], "affine", epsilon=1e-3),
             N("Add", ["i", "three"], ["p"], "plus"), N("Clip", ["p", "zero", "six"], ["q"], "clip"),
             N("Mul", ["i", "q"], ["r"], "times"), N("Div", ["r", "six"], ["hs"], "sixth"),
             N("InstanceNormalization", ["hs", "plain.Constant_w", "plain.Constant_b"], ["j"], "plain"),
             N("Split", ["j", "onnx::Split_9"], ["k", "l"], "split", axis=1),
             N("ConvTranspose", ["k", "d.w"], ["u"], "up", strides=[2, 2]), N("Reshape", ["d.b", "five"], ["db"], "reshape2"),
             N("Add", ["db", "u"], ["v"], "bias2"), N("GlobalAveragePool", ["v"], ["g"], "mean"),
             N("Flatten", ["g"], ["e"], "flat"),
             N("MatMul", ["e", "f.w"], ["w"], "head"), N("Unsqueeze", ["f.b", "first"], ["fb"], "row"),
             N("Add", ["w", "fb"], ["logits"], "bias3")]
    t["first"] = np.array([0])
    return nodes, t


def wide(nodes, t, inputs):
    return graph(nodes, {k: v.astype("f8") if v.dtype == np.float32 else v for k, v in t.items()}, inputs,
                 kind=TensorProto.DOUBLE)


def positions():        # pads that differ before and behind
    t = {"a.weight": tensor(4, 3, 3), "a.bias": tensor(4), "b.weight": tensor(4, 2, 3), "c.weight": tensor(2, 4, 4),
         "f.w": tensor(12, 7)}
    nodes = [N("Conv", ["image", "a.weight", "a.bias"], ["a"], "a", pads=[2, 0]),
             N("Conv", ["a", "b.weight"], ["b"], "b", pads=[0, 4], dilations=[2], group=2), N("Tanh", ["b"], ["t"], "tanh"),
             N("Conv", ["t", "c.weight"], ["c"], "c", pads=[3, 2], strides=[2]), N("Flatten", ["c"], ["e"], "flat"),
             N("MatMul", ["e", "f.w"], ["logits"], "head")]
    return nodes, t


def axes():             # a bias behind a Transpose; a matrix that is turned
    t = {"w": tensor(4, 4), "u": tensor(4, 4), "c.bias": tensor(4, 1), "f.w": tensor(16, 7)}
    nodes = [N("Transpose", ["image"], ["x"], "first", perm=[0, 2, 1]), N("Add", ["x", "image"], ["y"], "self"),
             N("MatMul", ["y", "w"], ["a"], "a"), N("Tanh", ["a"], ["d"], "tanh"),
             N("Transpose", ["u"], ["v"], "turned", perm=[1, 0]), N("MatMul", ["d", "v"], ["e"], "again"),
             N("Transpose", ["e"], ["g"], "back", perm=[0, 2, 1]), N("Add", ["c.bias", "g"], ["h"], "across"),
             N("Flatten", ["h"], ["i"], "flat"), N("MatMul", ["i", "f.w"], ["logits"], "head")]
    return nodes, t


def uneven():           # strides that differ, gaps along one axis, a rim that is reflected, slopes that are learnt, a maximum
    t = {"a.weight": tensor(6, 3, 3, 3), "a.bias": tensor(6), "slope": tensor(6, 1, 1), "c.weight": tensor(6, 6, 1, 2),
         "b.weight": tensor(4, 6, 2, 3),
         "around": np.array([0, 0, 1, 2, 0, 0, 2, 1]), "edges": np.array([0, 0, 0, 1, 0, 0, 1, 0]), "f.w": tensor(4, 7)}
    nodes = [N("Pad", ["image", "around"], ["p"], "reflect", mode="reflect"),
             N("Conv", ["p", "a.weight", "a.bias"], ["a"], "a", strides=[2, 1]), N("PRelu", ["a", "slope"], ["s"], "prelu"),
             N("Elu", ["s"], ["elu"], "elu", alpha=0.5), N("Pad", ["elu", "edges"], ["e"], "edge", mode="edge"),
             N("Conv", ["e", "c.weight"], ["c"], "c", dilations=[3, 2]), N("Softplus", ["c"], ["plus"], "plus"),
             N("Conv", ["plus", "b.weight"], ["b"], "b", pads=[1, 0, 0, 1], strides=[1, 3]),
             N("MaxPool", ["b"], ["m"], "pool", kernel_shape=[1, 2], strides=[2, 1]),
             N("GlobalMaxPool", ["m"], ["g"], "most"), N("Flatten", ["g"], ["e2"], "flat"),
             N("MatMul", ["e2", "f.w"], ["logits"], "head")]
    return nodes, t


def fields():           # numbers in fields of their kind; constants that are no tensors; one place of an axis; a maximum
    t = {"a.weight": tensor(6, 3, 1, 1), "f.w": tensor(6, 7), "third": np.array(3)}
    nodes = [N("Constant", [], ["zero"], "zero", value_int=0), N("Constant", [], ["one"], "one", value_int=1),
             N("Constant", [], ["to"], "to", value_ints=[0, 6, 16]), N("Constant", [], ["end"], "end", value_int=16),
             N("Conv", ["image", "a.weight"], ["a"], "a"), N("Neg", ["a"], ["n"], "less"),
             N("ReduceMax", ["n"], ["g"], "most", axes=[2, -1], keepdims=0), N("Reshape", ["a", "to"], ["r"], "rows"),
             N("Range", ["zero", "end", "one"], ["all"], "all"), N("Gather", ["all", "third"], ["at"], "number", axis=0),
             N("Gather", ["r", "at"], ["p"], "place", axis=-1), N("Add", ["g", "p"], ["s"], "sum"),
             N("Softmax", ["s"], ["h"], "share", axis=-1), N("MatMul", ["h", "f.w"], ["logits"], "head")]
    return nodes, t


def gradients(folder, t):       # of uneven, by PyTorch in f64; the loss is that of onnxruntime too
    import onnxruntime, torch
    from safetensors.numpy import save_file
    F = torch.nn.functional
    image = np.load(folder + "/uneven.image.npy").transpose(0, 3, 1, 2).copy()
    p = {k: torch.tensor(v.astype("f8"), requires_grad=True) for k, v in t.items() if v.dtype == np.float32}
    x = F.pad(torch.tensor(image.astype("f8")), (2, 1, 1, 2), mode="reflect")
    x = F.prelu(F.conv2d(x, p["a.weight"], p["a.bias"], stride=(2, 1)), p["slope"].flatten())
    x = F.conv2d(F.pad(F.elu(x, 0.5), (1, 0, 0, 1), mode="replicate"), p["c.weight"], dilation=2)
    x = F.pad(F.softplus(x), (0, 1, 1, 0))
    x = F.max_pool2d(F.conv2d(x, p["b.weight"], stride=(1, 3)), (1, 2), (2, 1)).amax((2, 3)) @ p["f.w"]
    loss = F.cross_entropy(x, torch.tensor([4, 1]))
    loss.backward()
    out = onnxruntime.InferenceSession(folder + "/uneven.onnx").run(None, {"image": image})[0]
    known = float(open(folder + "/uneven.loss").read())
    other = np.mean(np.log(np.exp(out).sum(1)) - out[range(2), [4, 1]])
    assert abs(loss.item() - known) < 1e-9 and abs(other - known) < 1e-5
    save_file({k: np.ascontiguousarray((v.grad.T if k == "f.w" else v.grad).numpy().astype("f4")) for k, v in p.items()},
              folder + "/uneven.grad.safetensors")


def both(folder, name, nodes, t, shape, **options):
    onnx.save(graph(nodes, t, {"image": shape}, **options), "%s/%s.onnx" % (folder, name))
    x, y = tensor(*shape), np.array([4, 1])
    out = ReferenceEvaluator(wide(nodes, t, {"image": shape})).run(None, {"image": x.astype("f8")})[0]
    loss = np.mean(np.log(np.exp(out).sum(1)) - out[range(2), y])
    np.save("%s/%s.image.npy" % (folder, name), np.ascontiguousarray(x.transpose(0, 2, 3, 1) if len(shape) == 4 else x))
    np.save("%s/%s.labels.npy" % (folder, name), y.astype("<i4"))
    open("%s/%s.loss" % (folder, name), "w").write("%.17g\n" % loss)
    names = [k for k, v in t.items() if v.dtype == np.float32 and v.ndim and "Constant" not in k]
    here = {k: t[k].T.shape if k == "f.w" else (t[k].size,) if k.endswith("bias") else t[k].shape for k in names}
    lines = sorted("%s %s\n" % (k, "x".join(map(str, here[k]))) for k in here)
    open("%s/%s.parameters" % (folder, name), "w").writelines(lines)


def main(folder):
    nodes, t = parts()
    both(folder, "parts", nodes, t, [2, 3, 6, 6], constants=set(t) - {"onnx::Split_9", "f.w"})
    both(folder, "positions", *positions(), [2, 3, 9])
    both(folder, "axes", *axes(), [2, 4, 4])

    image = {"image": [2, 3, 4, 4]}
    conv, w = N("Conv", ["image", "w"], ["c"], "conv"), {"w": tensor(2, 3, 1, 1)}
    two, half = {"b": tensor(2), "half": np.float32(0.5)}, {"half": np.float32(0.5)}
    grid = {"grid": np.arange(4, dtype="f4").reshape(1, 1, 4, 1), "size": np.array([1, 2, 4, 4])}
    for name, made, tensors, inputs in (
            ("power", [conv, N("Pow", ["c", "half"], ["logits"], "power")], {**w, **half}, image),
            ("plus", [conv, N("Add", ["c", "half"], ["logits"], "plus")], {**w, **half}, image),
            ("grid", [conv, N("Expand", ["grid", "size"], ["e"], "grid"), N("Add", ["c", "e"], ["logits"], "add")],
             {**w, **grid}, image),
            ("repeat", [conv, N("Expand", ["c", "size"], ["logits"], "repeat")], {**w, "size": np.array([2, 2, 4, 4])}, image),
            ("computed", [N("Mul", ["b", "half"], ["h"], "halve"), N("Conv", ["image", "w", "h"], ["logits"], "conv")],
             {**w, **two}, image),
            ("along", [N("MatMul", ["image", "m"], ["a"], "a"), N("Transpose", ["a"], ["t"], "turn", perm=[0, 2, 1]),
                       N("Add", ["t", "b"], ["logits"], "add")], {"m": tensor(4, 4), "b": tensor(4)}, {"image": [2, 4, 4]}),
            ("apart", [N("MatMul", ["image", "m"], ["a"], "a"), N("Add", ["a", "b"], ["logits"], "add")],
             {"m": tensor(4, 4), "b": tensor(1, 4, 1)}, image),
            ("turned", [N("Transpose", ["m"], ["t"], "turn", perm=[1, 0]), N("Add", ["image", "t"], ["logits"], "add")],
             {"m": tensor(4, 4)}, {"image": [2, 4, 4]}),
            ("dilations", [N("Conv", ["image", "w"], ["logits"], "conv", dilations=[1, 2])],
             {"w": np.ones((2, 3, 2, 2), "f4")}, image),
            ("short", [N("Conv", ["image", "w", "b"], ["logits"], "conv")], {**w, "b": tensor(1)}, image),
            ("samples", [N("Add", ["image", "state"], ["logits"], "add")], {}, {"image": ["n", 4], "state": [2, 4]})):
        onnx.save(graph(made, tensors, inputs), "%s/bad.%s.onnx" % (folder, name))
    nodes, t = uneven()
    both(folder, "uneven", nodes, t, [2, 3, 7, 8])
    gradients(folder, t)
    both(folder, "fields", *fields(), [2, 3, 4, 4], form=in_fields)


if __name__ == "__main__":
    main(*sys.argv[1:])
