# SPDX-License-Identifier: Apache-2.0
# The same GPT-2 step in PyTorch: bf16 autocast, compiled, fused attention, fused AdamW, clipping.  Prints the median step
# in ms.
#   torch_gpt2.py LAYERS WIDTH TOKENS BATCH MICRO
import statistics
import sys
import time
import torch
import torch.nn.functional as F
from torch import nn

layers, width, tokens, batch, micro = map(int, sys.argv[1:])
vocabulary = 50304


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
        x = self.wte(ids) + self.wpe.weight
        for block in self.h:
            x = block(x)
        logits = F.linear(self.ln_f(x), self.wte.weight)
        return F.cross_entropy(logits.view(-1, vocabulary).float(), targets.view(-1))


torch.manual_seed(1)
torch.backends.cuda.matmul.allow_tf32 = True
model = Gpt().cuda()
compiled = torch.compile(model)
optimizer = torch.optim.AdamW(model.parameters(), lr=6e-4, betas=(0.9, 0.95), weight_decay=0.1, fused=True)
data = torch.randint(0, 50257, (micro, batch, tokens + 1), device="cuda")


def step():
    for i in range(micro):
        with torch.autocast("cuda", dtype=torch.bfloat16):
            loss = compiled(data[i, :, :-1], data[i, :, 1:]) / micro
        loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    optimizer.zero_grad(set_to_none=True)
    torch.cuda.synchronize()


times = []
for i in range(25):
    begun = time.perf_counter()
    step()
    times.append(1e3 * (time.perf_counter() - begun))
print(statistics.median(times[5:]))
