#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""step.py: training steps in PyTorch of the models of run.sh, in f32, a line of milliseconds each.

    step.py gpt2|llama|lstm THREADS STEPS eager|compiled [TOKENS]

The first steps of a compiled model pay for the compiler; run.sh drops the first, and this warms up before it prints.
"""
import sys
import time

import torch
from torch import nn
from torch.nn import functional as F

BATCH, TOKENS, WIDTH, HEADS, INNER, LAYERS, WORDS = 4, 256, 768, 12, 2048, 12, 52000


class Norm(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(WIDTH))

    def forward(self, x):
        return x * torch.rsqrt(x.square().mean(-1, keepdim=True) + 1e-5) * self.weight


def turned(x, cos, sin):
    half = x.chunk(2, -1)
    return x * cos + torch.cat((-half[1], half[0]), -1) * sin


class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.one, self.two = Norm(), Norm()
        self.q, self.k, self.v, self.o = (nn.Linear(WIDTH, WIDTH, bias=False) for _ in range(4))
        self.gate, self.up = (nn.Linear(WIDTH, INNER, bias=False) for _ in range(2))
        self.down = nn.Linear(INNER, WIDTH, bias=False)

    def forward(self, x, cos, sin):
        n = self.one(x)
        q, k, v = (f(n).view(BATCH, TOKENS, HEADS, -1).transpose(1, 2) for f in (self.q, self.k, self.v))
        y = F.scaled_dot_product_attention(turned(q, cos, sin), turned(k, cos, sin), v, is_causal=True)
        x = x + self.o(y.transpose(1, 2).reshape(BATCH, TOKENS, WIDTH))
        n = self.two(x)
        return x + self.down(F.silu(self.gate(n)) * self.up(n))


class Llama(nn.Module):
    """125 million parameters: the head is the table."""
    def __init__(self):
        super().__init__()
        self.table = nn.Embedding(WORDS, WIDTH)
        self.layers = nn.ModuleList(Layer() for _ in range(LAYERS))
        self.norm = Norm()
        width = WIDTH // HEADS
        angle = torch.arange(TOKENS)[:, None] * 1e4 ** (-torch.arange(0, width, 2) / width)
        self.register_buffer("cos", angle.cos().repeat(1, 2))
        self.register_buffer("sin", angle.sin().repeat(1, 2))

    def forward(self, tokens, targets):
        x = self.table(tokens)
        for layer in self.layers:
            x = layer(x, self.cos, self.sin)
        return F.cross_entropy(F.linear(self.norm(x), self.table.weight).view(-1, WORDS), targets.view(-1))


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.one, self.two = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.qkv, self.o = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.up, self.down = nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)

    def forward(self, x):
        q, k, v = (t.view(*x.shape[:2], HEADS, -1).transpose(1, 2) for t in self.qkv(self.one(x)).chunk(3, -1))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.o(y.transpose(1, 2).reshape(x.shape))
        return x + self.down(F.gelu(self.up(self.two(x)), approximate="tanh"))


class Gpt2(nn.Module):
    """124 million parameters: the head is the table."""
    def __init__(self, words=50257, positions=1024):
        super().__init__()
        self.words, self.table, self.place = words, nn.Embedding(words, WIDTH), nn.Embedding(positions, WIDTH)
        self.layers = nn.Sequential(*(Block() for _ in range(LAYERS)))
        self.norm = nn.LayerNorm(WIDTH)

    def forward(self, tokens, targets):
        x = self.layers(self.table(tokens) + self.place.weight[:tokens.shape[1]])
        return F.cross_entropy(F.linear(self.norm(x), self.table.weight).view(-1, self.words), targets.view(-1))


class Recurrent(nn.Module):
    """One LSTM layer, 64 samples, 50 steps, 1024 wide."""
    def __init__(self):
        super().__init__()
        self.rnn = nn.LSTM(1024, 1024, batch_first=True)

    def forward(self, x, wanted):
        return F.mse_loss(self.rnn(x)[0], wanted)


def main():
    global TOKENS
    name, threads, steps, how, *more = sys.argv[1:]
    TOKENS = int(more[0]) if more else TOKENS
    torch.set_num_threads(int(threads))
    torch.manual_seed(1)
    if name != "lstm":
        model = Llama() if name == "llama" else Gpt2()
        data = [torch.randint(50257, (BATCH, TOKENS)) for _ in range(2)]
        update = torch.optim.AdamW(model.parameters(), lr=1e-3, fused=True)
    else:
        model, data = Recurrent(), [torch.rand(64, 50, 1024) for _ in range(2)]
        update = torch.optim.SGD(model.parameters(), lr=0.01)
    loss_of = torch.compile(model) if how == "compiled" else model
    for step in range(int(steps) + 2):
        start = time.perf_counter()
        update.zero_grad()
        loss_of(*data).backward()
        if name != "lstm":
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        update.step()
        if step > 1:
            print(f"{1000 * (time.perf_counter() - start):.1f}", flush=True)


if __name__ == "__main__":
    main()
