# SPDX-License-Identifier: Apache-2.0
#
# make_graphs.py: tests/graphs, by PyTorch 2.15 (onnxscript 0.7): small networks as it exports them, inputs, and the loss of its
# own forward pass in training, in f64.
#
#   python3 tests/ref/make_graphs.py tests/graphs [NAME...]
import json
import logging
import sys
import warnings
import zipfile
import numpy as np
import onnx
import torch
from torch import nn
from torch.nn import functional as F

warnings.filterwarnings("ignore")
logging.disable(logging.WARNING)


class Basic(nn.Module):
    def __init__(self, i, o, stride):
        super().__init__()
        self.conv1 = nn.Conv2d(i, o, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(o)
        self.conv2 = nn.Conv2d(o, o, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(o)
        self.relu = nn.ReLU(inplace=True)
        self.downsample = nn.Sequential(nn.Conv2d(i, o, 1, stride, bias=False), nn.BatchNorm2d(o)) if stride > 1 else None

    def forward(self, x):
        y = self.bn2(self.conv2(self.relu(self.bn1(self.conv1(x)))))
        return self.relu(y + (self.downsample(x) if self.downsample else x))


class Res(nn.Module):           # residual blocks
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(3, 4, 7, 2, 3, bias=False)
        self.bn1 = nn.BatchNorm2d(4, eps=1e-3)
        self.relu = nn.ReLU(inplace=True)
        self.maxpool = nn.MaxPool2d(3, 2, 1)
        self.layer1 = nn.Sequential(Basic(4, 4, 1))
        self.layer2 = nn.Sequential(Basic(4, 6, 2))
        self.avgpool = nn.AdaptiveAvgPool2d((1, 1))
        self.fc = nn.Linear(6, 5)

    def forward(self, x):
        x = self.maxpool(self.relu(self.bn1(self.conv1(x))))
        return self.fc(torch.flatten(self.avgpool(self.layer2(self.layer1(x))), 1))


class Many(nn.Module):          # one of each: groups, Concat, squeeze and excite, pools, activations, Flatten of pixels
    def __init__(self):
        super().__init__()
        self.stem = nn.Conv2d(3, 6, 3, 2, 1)
        self.depth = nn.Conv2d(6, 6, (3, 1), 1, (1, 0), groups=6)
        self.point = nn.Conv2d(6, 4, 1)
        self.norm = nn.BatchNorm2d(10)
        self.fc1, self.fc2 = nn.Conv2d(10, 3, 1), nn.Conv2d(3, 10, 1)
        self.relu6, self.hs, self.act = nn.ReLU6(), nn.Hardswish(), nn.SiLU()
        self.head = nn.Sequential(nn.Linear(40, 12), nn.LayerNorm(12), nn.GELU(), nn.Dropout(0.0), nn.Linear(12, 7))

    def forward(self, x):
        x = self.relu6(self.stem(x))
        y = self.hs(self.depth(x))
        x = self.norm(torch.cat([x, F.leaky_relu(self.point(y), 0.1)], 1))
        x = x * torch.sigmoid(self.fc2(self.act(self.fc1(x.mean((2, 3), keepdim=True)))))
        x = torch.tanh(F.avg_pool2d(x, 2)) * 0.5
        return self.head(torch.flatten(x, 1))


class Mlp(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b, self.c = nn.Linear(9, 8), nn.Linear(8, 8, bias=False), nn.Linear(8, 3)

    def forward(self, x):
        h = F.gelu(self.a(x), approximate="tanh")
        return self.c(h + F.silu(self.b(h)))


class Words(nn.Module):         # ids, a table of positions, a slice, names that begin with digits
    def __init__(self):
        super().__init__()
        self.wte = nn.Embedding(11, 6)
        self.wpe = nn.Parameter(torch.zeros(5, 6))
        self.add_module("0", nn.Linear(6, 8))
        self.add_module("1", nn.Linear(4, 3))

    def forward(self, ids):
        a, b = getattr(self, "0")(self.wte(ids) + self.wpe).chunk(2, -1)
        return getattr(self, "1")((torch.sigmoid(a) - b).mean(1))


class Attention(nn.Module):
    def forward(self, x):
        return torch.softmax(x @ x.transpose(1, 2), -1) @ x


class Scale(nn.Module):         # ConvNeXt's block: channels last for a while, a factor of each channel
    def __init__(self):
        super().__init__()
        self.dwconv = nn.Conv2d(6, 6, 3, padding=1, groups=6)
        self.norm, self.pwconv1, self.pwconv2 = nn.LayerNorm(6, eps=1e-6), nn.Linear(6, 8), nn.Linear(8, 6)
        self.layer_scale = nn.Parameter(torch.ones(6, 1, 1))
        self.head = nn.Linear(6, 4)

    def forward(self, x):
        y = self.norm(self.dwconv(x).permute(0, 2, 3, 1))
        y = self.pwconv2(F.gelu(self.pwconv1(y))).permute(0, 3, 1, 2)
        return self.head((x + self.layer_scale * y).mean((2, 3)))


class Layer(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm, self.up, self.down = nn.LayerNorm(width), nn.Linear(width, 2 * width), nn.Linear(2 * width, width)

    def forward(self, x):
        return x + self.down(F.gelu(self.up(self.norm(x))))


class Deep(nn.Module):          # layers that repeat, in two widths: deep.yaml is what a person would write
    def __init__(self):
        super().__init__()
        self.into, self.mid, self.head = nn.Linear(9, 8), nn.Linear(8, 6), nn.Linear(6, 4)
        self.layers = nn.Sequential(*[Layer(8) for _ in range(3)])
        self.more = nn.Sequential(*[Layer(6) for _ in range(2)])

    def forward(self, x):
        return self.head(self.more(self.mid(self.layers(self.into(x)))))


class Head(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm, self.qkv, self.out = nn.LayerNorm(8), nn.Linear(8, 24), nn.Linear(8, 8)

    def forward(self, x):
        n, t, d = x.size()
        q, k, v = (part.view(n, t, 2, d // 2).transpose(1, 2) for part in self.qkv(self.norm(x)).split(d, dim=2))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True, scale=0.4)
        return x + self.out(y.transpose(1, 2).contiguous().view(n, t, d))


class Gpt(nn.Module):           # attention as one operator, a table of positions, a head that is the table of words
    def __init__(self):
        super().__init__()
        self.wte, self.wpe, self.norm = nn.Embedding(11, 8), nn.Embedding(7, 8), nn.LayerNorm(8)
        self.h = nn.ModuleList([Head() for _ in range(2)])
        self.head = nn.Linear(8, 11, bias=False)
        self.head.weight = self.wte.weight
        self.kind = nn.Linear(11, 4)

    def forward(self, ids):
        x = self.wte(ids) + self.wpe(torch.arange(ids.size(1)))
        for h in self.h:
            x = h(x)
        return self.kind(self.head(self.norm(x)).mean(1))


class Lstm(nn.Module):
    def __init__(self):
        super().__init__()
        self.words = nn.Embedding(11, 5)
        self.rnn = nn.LSTM(5, 4, num_layers=2, batch_first=True, bidirectional=True)
        self.one = nn.LSTM(8, 6, bias=False, batch_first=True)
        self.head = nn.Linear(6, 4)

    def forward(self, ids):
        return self.head(self.one(self.rnn(self.words(ids))[0])[0].mean(1))


class Up(nn.Module):            # images that grow
    def __init__(self):
        super().__init__()
        self.conv, self.up = nn.Conv2d(3, 4, 3, padding=1), nn.ConvTranspose2d(4, 6, 3, 2, 1, output_padding=1, groups=2)
        self.act, self.head = nn.Tanh(), nn.Conv2d(6, 4, 3)

    def forward(self, x):
        x = self.up(F.pad(self.act(self.conv(x)), (1, 0, 2, 1), value=0.5))
        x = F.interpolate(F.interpolate(x, scale_factor=2), scale_factor=3, mode="bilinear")
        return self.act(self.head(x)).mean((2, 3))


class Branch(nn.Module):        # a branch that a sample has or has not, as torchvision's stochastic_depth
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(3, 3, 1)

    def forward(self, x):
        noise = torch.empty([x.shape[0], 1, 1, 1], dtype=x.dtype).bernoulli_(0.8)
        noise.div_(0.8)
        return (x + self.conv(x) * noise).mean((2, 3))


class DenseLayer(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm, self.conv = nn.BatchNorm2d(width), nn.Conv2d(width, 2, 3, padding=1, bias=False)

    def forward(self, parts):
        return self.conv(F.relu(self.norm(torch.cat(parts, 1))))


class Dense(nn.Module):         # each layer joins all before it, as torchvision's DenseNet
    def __init__(self):
        super().__init__()
        self.stem = nn.Conv2d(3, 4, 3, padding=1)
        self.layers = nn.ModuleList([DenseLayer(4 + 2 * i) for i in range(4)])
        self.head = nn.Linear(12, 5)

    def forward(self, x):
        parts = [self.stem(x)]
        for layer in self.layers:
            parts.append(layer(parts))
        return self.head(torch.cat(parts, 1).mean((2, 3)))


class Encoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.ln_1, self.ln_2 = nn.LayerNorm(8), nn.LayerNorm(8)
        self.attend = nn.MultiheadAttention(8, 2, batch_first=True)
        self.mlp = nn.Sequential(nn.Linear(8, 12), nn.GELU(), nn.Linear(12, 8))

    def forward(self, x):
        y = self.ln_1(x)
        x = self.attend(y, y, y, need_weights=False)[0] + x
        y = self.mlp(self.ln_2(x).flatten(0, 1))                # rows of all samples
        return x + y.unflatten(0, x.shape[:2])


class Vit(nn.Module):           # samples behind positions inside of nn.MultiheadAttention, and a token before the patches
    def __init__(self):
        super().__init__()
        self.conv_proj = nn.Conv2d(3, 8, 2, 2)
        self.token, self.places = nn.Parameter(torch.zeros(1, 1, 8)), nn.Parameter(torch.zeros(1, 10, 8))
        self.layers = nn.Sequential(*[Encoder() for _ in range(2)])
        self.norm, self.head = nn.LayerNorm(8), nn.Linear(8, 4)

    def forward(self, x):
        x = self.conv_proj(x).reshape(x.shape[0], 8, -1).permute(0, 2, 1)
        x = torch.cat([self.token.expand(x.shape[0], -1, -1), x], 1) + self.places
        return self.head(self.norm(self.layers(x))[:, 0])


class Drop(nn.Module):
    def __init__(self, p):
        super().__init__()
        self.p = p

    def forward(self, x):
        if self.p == 0:
            return x
        return x * torch.empty([x.shape[0], 1, 1, 1], dtype=x.dtype).bernoulli_(1 - self.p).div_(1 - self.p)


class Part(nn.Module):
    def __init__(self, p):
        super().__init__()
        self.conv, self.drop = nn.Conv2d(6, 6, 1), Drop(p)

    def forward(self, x):
        return x + self.drop(self.conv(x))


class Depth(nn.Module):         # draws have the names of their modules; a norm behind the mean over pixels
    def __init__(self):
        super().__init__()
        self.stem = nn.Conv2d(3, 6, 1)
        self.parts = nn.Sequential(*[Part(0.1 * i / 3) for i in range(4)])
        self.norm, self.end = nn.LayerNorm(6), nn.Sequential(nn.Dropout(0.3), nn.Linear(6, 4), nn.Dropout(0.1))

    def forward(self, x):
        x = self.parts(self.stem(x)).mean((2, 3), keepdim=True)
        return self.end(self.norm(x.permute(0, 2, 3, 1)).permute(0, 3, 1, 2).flatten(1))


def fill(m, seed):
    r = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for p in m.parameters():
            p.copy_(torch.randn(p.shape, generator=r) * 0.3)
        for name, b in m.named_buffers():
            if "mean" in name:
                b.copy_(torch.randn(b.shape, generator=r) * 0.1)
    return m


OLD = dict(dynamo=False, training=torch.onnx.TrainingMode.TRAINING, do_constant_folding=False, opset_version=17)
NEW = dict(dynamo=True, training=torch.onnx.TrainingMode.TRAINING, external_data=False)


def export(m, x, path, **options):
    torch.onnx.export(m, (x,), path, input_names=["image"], output_names=["logits"], **options)
    graph = onnx.load(path, load_external_data=False)           # without where the sources lay
    del graph.metadata_props[:], graph.graph.metadata_props[:]
    for n in list(graph.graph.node) + list(graph.graph.value_info) + list(graph.graph.input) + list(graph.graph.output):
        n.doc_string = ""
        del n.metadata_props[:]
    onnx.save(graph, path)


def program(m, x, path, modules=False):
    torch.export.save(torch.export.export(m, (x,)), path)
    with zipfile.ZipFile(path) as z:
        parts = {n: z.read(n) for n in z.namelist()}
    with zipfile.ZipFile(path, "w", zipfile.ZIP_STORED) as z:   # the same
        for name, data in parts.items():
            if name.endswith("models/model.json"):
                j = json.loads(data)
                j["guards_code"] = []
                for n in j["graph_module"]["graph"]["nodes"]:
                    stack = n["metadata"].get("nn_module_stack") if modules else None
                    n["metadata"] = {"nn_module_stack": stack} if stack else {}
                data = json.dumps(j).encode()
            if not name.endswith("sample_inputs/model.pt"):
                z.writestr(zipfile.ZipInfo(name), data)


def main(folder, *only):
    models = {"res": (Res, (2, 3, 16, 16)), "many": (Many, (2, 3, 8, 8)), "mlp": (Mlp, (2, 9)), "words": (Words, (2, 5)),
              "scale": (Scale, (2, 6, 5, 5)), "deep": (Deep, (2, 9)),
              "gpt": (Gpt, (2, 5)), "lstm": (Lstm, (2, 5)), "up": (Up, (2, 3, 4, 4)), "dense": (Dense, (2, 3, 4, 4)),
              "vit": (Vit, (2, 3, 6, 6))}
    ids, parts = ("words", "gpt", "lstm"), ("gpt", "lstm")      # parts: what ONNX makes of these cannot be put together
    only_pt2 = ("dense", "vit")
    for name, (make, shape) in models.items():
        if only and name not in only:
            continue
        r = torch.Generator().manual_seed(7)
        x = torch.randint(0, 11, shape, generator=r) if name in ids else torch.randn(shape, generator=r)
        y = torch.randint(0, 3, (shape[0],), generator=r)
        with torch.no_grad():
            loss = F.cross_entropy(fill(make(), 3).double().train()(x if name in ids else x.double()), y).item()
        a = x.numpy().transpose(0, 2, 3, 1) if x.dim() == 4 else x.numpy()
        np.save("%s/%s.image.npy" % (folder, name), np.ascontiguousarray(a.astype("<i4") if name in ids else a))
        np.save("%s/%s.labels.npy" % (folder, name), y.numpy().astype("<i4"))
        open("%s/%s.loss" % (folder, name), "w").write("%.17g\n" % loss)
        open("%s/%s.parameters" % (folder, name), "w").writelines(
            sorted("%s %s\n" % (k, "x".join(map(str, p.shape))) for k, p in make().named_parameters()))
        if name not in only_pt2:
            export(fill(make(), 3).train(), x, "%s/%s%s.onnx" % (folder, "bad." if name in parts else "", name), **OLD)
        program(fill(make(), 3).train(), x, "%s/%s.pt2" % (folder, name), modules=name in only_pt2)
        if name == "many":
            export(fill(make(), 3).train(), x, "%s/%s.new.onnx" % (folder, name), **NEW)
        if name == "mlp":
            export(fill(make(), 3).train(), x, "%s/%s.outside.onnx" % (folder, name), **dict(NEW, external_data=True))
            export(fill(make(), 3).train(), x, "%s/%s.batch.onnx" % (folder, name), dynamic_axes={"image": {0: "n"}}, **OLD)
    if not only or "draws" in only:
        program(fill(Depth(), 3).train(), torch.zeros(2, 3, 4, 4), folder + "/branch.depth.pt2", modules=True)
    if only:
        return
    x = torch.zeros(1, 3, 4, 4)
    folded = nn.Sequential(nn.Conv2d(3, 2, 1, bias=False), nn.BatchNorm2d(2)).eval()
    export(folded, x, folder + "/bad.folded.onnx", dynamo=False)
    export(nn.Conv2d(3, 2, 1), x, folder + "/bad.dynamic.onnx", dynamic_axes={"image": {2: "high"}}, **OLD)
    export(Branch().train(), torch.zeros(2, 3, 4, 4), folder + "/branch.onnx", **OLD)
    program(Branch().train(), torch.zeros(2, 3, 4, 4), folder + "/branch.pt2")
    export(Attention(), torch.zeros(1, 4, 6), folder + "/bad.attention.onnx", **OLD)


if __name__ == "__main__":
    main(*sys.argv[1:])
