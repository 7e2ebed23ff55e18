# SPDX-License-Identifier: Apache-2.0
# The same steps in PyTorch, beside those of visit.sh: compiled, bf16 autocast, fused optimisers, data on the GPU.
#   torch_side.py DIR gpt2 BATCH         GPT-2 124M, 1024 tokens, AdamW, clipping; by the default attention and by cuDNN's
#   torch_side.py DIR resnet50 BATCH     ResNet-50, channels last, SGD with momentum
# All is compiled and tried once; then it makes DIR/ready, waits for DIR/go, and prints `step NAME MS`, the median of 20
# steps.  Status 3: there is no PyTorch, or it sees no GPU.
import contextlib
import os
import statistics
import sys
import time

try:
    import torch
except ImportError as e:
    print(e)
    sys.exit(3)
if not torch.cuda.is_available():
    print("PyTorch sees no GPU")
    sys.exit(3)
import torch.nn.functional as F
from torch import nn

place, which, batch = sys.argv[1], sys.argv[2], int(sys.argv[3])
layers, width, tokens, vocabulary = 12, 768, 1024, 50304


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.heads = width // 64
        self.ln_1, self.ln_2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.c_attn, self.c_proj = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.c_fc, self.c_out = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x):
        q, k, v = (t.view(-1, tokens, self.heads, 64).transpose(1, 2) for t in self.c_attn(self.ln_1(x)).split(width, 2))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).reshape(-1, tokens, width)
        x = x + self.c_proj(y)
        return x + self.c_out(F.gelu(self.c_fc(self.ln_2(x)), approximate="tanh"))


class Gpt(nn.Module):
    def __init__(self):
        super().__init__()
        self.wte, self.wpe = nn.Embedding(vocabulary, width), nn.Embedding(tokens, width)
        self.h = nn.ModuleList(Block() for _ in range(layers))
        self.ln_f = nn.LayerNorm(width)

    def forward(self, ids, targets):
        assert self.way         # another way is another program, although the code is the same
        x = self.wte(ids) + self.wpe.weight
        for block in self.h:
            x = block(x)
        logits = F.linear(self.ln_f(x), self.wte.weight)
        return F.cross_entropy(logits.view(-1, vocabulary).float(), targets.view(-1))


class Bottleneck(nn.Module):
    def __init__(self, into, mid, stride, project):
        super().__init__()
        out = 4 * mid
        self.body = nn.Sequential(
            nn.Conv2d(into, mid, 1, bias=False), nn.BatchNorm2d(mid), nn.ReLU(),
            nn.Conv2d(mid, mid, 3, stride, 1, bias=False), nn.BatchNorm2d(mid), nn.ReLU(),
            nn.Conv2d(mid, out, 1, bias=False), nn.BatchNorm2d(out))
        self.way = nn.Sequential(nn.Conv2d(into, out, 1, stride, bias=False), nn.BatchNorm2d(out)) if project else nn.Identity()

    def forward(self, x):
        return F.relu(self.body(x) + self.way(x))


class ResNet50(nn.Module):
    def __init__(self):
        super().__init__()
        parts = [nn.Conv2d(3, 64, 7, 2, 3, bias=False), nn.BatchNorm2d(64), nn.ReLU(), nn.MaxPool2d(3, 2, 1)]
        into = 64
        for mid, repeat, stride in ((64, 3, 1), (128, 4, 2), (256, 6, 2), (512, 3, 2)):
            for i in range(repeat):
                parts.append(Bottleneck(into, mid, stride if i == 0 else 1, i == 0))
                into = 4 * mid
        self.body, self.fc = nn.Sequential(*parts), nn.Linear(into, 1000)

    def forward(self, image, labels):
        return F.cross_entropy(self.fc(self.body(image).mean((2, 3))).float(), labels)


def cudnn_attention():
    from torch.nn.attention import SDPBackend, sdpa_kernel
    return sdpa_kernel(SDPBackend.CUDNN_ATTENTION)


torch.manual_seed(1)
torch.backends.cuda.matmul.allow_tf32 = True
if which == "gpt2":
    model = Gpt().cuda()
    optimizer = torch.optim.AdamW(model.parameters(), lr=6e-4, betas=(0.9, 0.95), weight_decay=0.1, fused=True)
    ids = torch.randint(0, 50257, (2, batch, tokens), device="cuda")
    data, clip, ways = (ids[0], ids[1]), 1.0, {"default": contextlib.nullcontext, "cudnn": cudnn_attention}
else:
    torch.backends.cudnn.benchmark = True
    model = ResNet50().cuda().to(memory_format=torch.channels_last)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9, fused=True)
    image = torch.randn(batch, 3, 224, 224, device="cuda").to(memory_format=torch.channels_last)
    data, clip, ways = (image, torch.randint(0, 1000, (batch,), device="cuda")), None, {"channels-last": contextlib.nullcontext}


def step(compiled):
    with torch.autocast("cuda", dtype=torch.bfloat16):
        loss = compiled(*data)
    loss.backward()
    if clip:
        nn.utils.clip_grad_norm_(model.parameters(), clip)
    optimizer.step()
    optimizer.zero_grad(set_to_none=True)
    torch.cuda.synchronize()


compiled, there = torch.compile(model), []
for name, way in ways.items():
    try:
        model.way = name
        with way():
            for _ in range(3):
                step(compiled)
        there.append(name)
    except Exception as e:          # the other way may do
        print("step", name, "failed:", str(e).splitlines()[0][:200], flush=True)
open(place + "/ready", "w").close()
begun_by = os.getppid()
while not os.path.exists(place + "/go"):
    time.sleep(0.05)
    if os.getppid() != begun_by:
        sys.exit(1)
for name in there:
    times = []
    model.way = name
    with ways[name]():
        for i in range(25):
            begun = time.perf_counter()
            step(compiled)
            times.append(1e3 * (time.perf_counter() - begun))
    print("step", name, "%.2f ms" % statistics.median(times[5:]), flush=True)
print("PyTorch", torch.__version__, "cuDNN", torch.backends.cudnn.version(), flush=True)
os._exit(0 if there else 1)     # its compiling processes may outlive it by minutes
