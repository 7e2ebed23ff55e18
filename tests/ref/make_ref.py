#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The outside reference: three tiny models trained for 20 steps by PyTorch, in double precision.

    python3 make_ref.py DIR             write the reference into DIR
    python3 make_ref.py --margin        train again in single precision; how far does rounding alone carry?

The models are written from their papers (Radford et al. 2019; Devlin et al. 2018; Raffel et al. 2019), not from
gpt.yaml, bert.yaml and t5.yaml beside this file: if the generator reads a model wrongly, the two disagree.  Parameters
start as numbers that float32 holds exactly; everything after that is float64, so what is stored is right to the last
bit of float32, and whoever compares measures their own rounding, not ours.

Needs torch and numpy.  Nothing else in the project does: the results are stored beside this file.
"""
import json
import math
import os
import struct
import sys

import numpy as np
import torch
import torch.nn.functional as F

STEPS, MICRO, BATCH, WARMUP = 20, 3, 2, 4          # BATCH samples in a micro-batch, MICRO micro-batches in a step
SAMPLES = 10 * MICRO * BATCH                       # so that the data are read twice, in file order
BETA1, BETA2, DECAY, CLIP = 0.9, 0.95, 0.1, 1.0
IGNORE = -100


# ---- helpers ---------------------------------------------------------------------------------------------

def rate(step, peak, final):
    """Linear warm-up, then a half cosine down to final * peak."""
    if step < WARMUP:
        return peak * (step + 1) / WARMUP
    share = (step - WARMUP) / (STEPS - WARMUP)
    return final * peak + (peak - final * peak) * 0.5 * (1 + math.cos(math.pi * share))


def heads_of(x, heads):
    """[batch seq heads*width] -> [batch heads seq width]"""
    batch, seq, width = x.shape
    return x.view(batch, seq, heads, width // heads).transpose(1, 2)


def attention(q, k, v, heads, scale=None, causal=False, mask=None, bias=None):
    """Softmax attention; mask [batch key] is 0 where a key is hidden, bias [heads query key] is added to the scores."""
    q, k, v = (heads_of(t, heads) for t in (q, k, v))
    scores = q @ k.transpose(2, 3) * (q.shape[-1] ** -0.5 if scale is None else scale)
    if bias is not None:
        scores = scores + bias
    if causal:
        future = torch.ones(scores.shape[-2:], dtype=torch.bool).triu(1)
        scores = scores.masked_fill(future, -math.inf)
    if mask is not None:
        scores = scores.masked_fill(mask[:, None, None, :] == 0, -math.inf)
    y = scores.softmax(-1) @ v
    return y.transpose(1, 2).flatten(2)


def linear(p, name, x):
    return F.linear(x, p[name + ".weight"], p.get(name + ".bias"))


def layer_norm(p, name, x, eps):
    return F.layer_norm(x, x.shape[-1:], p[name + ".weight"], p[name + ".bias"], eps)


def rms_norm(p, name, x, eps=1e-6):
    return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + eps) * p[name + ".weight"]


def loss_sum(logits, targets):
    return F.cross_entropy(logits.flatten(0, -2), targets.flatten(), ignore_index=IGNORE, reduction="sum")


class Weights(dict):
    """Start values, drawn in the order of declaration, rounded to float32."""

    def __init__(self, seed):
        super().__init__()
        self.draw = np.random.RandomState(seed)

    def put(self, name, *shape, mean=0.0, deviation=0.05):
        self[name] = (mean + deviation * self.draw.standard_normal(shape)).astype(np.float32)

    def linear(self, name, rows, width, bias=True):
        self.put(name + ".weight", rows, width, deviation=0.8 / math.sqrt(width))
        if bias:
            self.put(name + ".bias", rows)

    def norm(self, name, width, bias=True):
        self.put(name + ".weight", width, mean=1.0, deviation=0.1)
        if bias:
            self.put(name + ".bias", width)


def walk(draw, rows, width, limit):
    """Ids that can be learned: each is the one before, times three, plus one, and now and then a surprise."""
    ids = np.zeros((rows, width), np.int64)
    ids[:, 0] = draw.randint(0, limit, rows)
    for i in range(1, width):
        ids[:, i] = (3 * ids[:, i - 1] + 1 + (draw.random_sample(rows) < 0.2) * draw.randint(0, limit, rows)) % limit
    return ids


# ---- GPT: pre-norm decoder, packed q k v, tied head ------------------------------------------------------

class Gpt:
    V, T, D, H, L = 61, 16, 9, 3, 2
    seed, peak, final, eps = 1, 1e-2, 0.1, 1e-3           # see README: bias of a key

    def weights(self):
        w, d = Weights(self.seed), self.D
        w.put("wte.weight", self.V, d, deviation=0.3)
        w.put("wpe.weight", self.T, d, deviation=0.1)
        for i in range(self.L):
            h = f"h.{i}."
            w.norm(h + "ln_1", d)
            w.linear(h + "attn.c_attn", 3 * d, d)
            w.linear(h + "attn.c_proj", d, d)
            w.norm(h + "ln_2", d)
            w.linear(h + "mlp.c_fc", 4 * d, d)
            w.linear(h + "mlp.c_proj", d, 4 * d)
        w.norm("ln_f", d)
        return w

    def data(self, draw):
        ids = walk(draw, SAMPLES, self.T + 1, self.V)
        return {"tokens": ids[:, :-1], "targets": ids[:, 1:]}

    targets = ["targets"]

    def losses(self, p, x):
        y = p["wte.weight"][x["tokens"]] + p["wpe.weight"]
        for i in range(self.L):
            h = f"h.{i}."
            q, k, v = linear(p, h + "attn.c_attn", layer_norm(p, h + "ln_1", y, 1e-5)).chunk(3, -1)
            y = y + linear(p, h + "attn.c_proj", attention(q, k, v, self.H, causal=True))
            fc = linear(p, h + "mlp.c_fc", layer_norm(p, h + "ln_2", y, 1e-5))
            y = y + linear(p, h + "mlp.c_proj", F.gelu(fc, approximate="tanh"))
        y = layer_norm(p, "ln_f", y, 1e-5)
        return [loss_sum(F.linear(y, p["wte.weight"]), x["targets"])]


# ---- BERT: post-norm encoder, padding mask, masked words and next sentence -------------------------------

class Bert:
    V, T, D, H, L, FF = 43, 11, 14, 2, 2, 29
    seed, peak, final, eps = 2, 5e-3, 0.0, 1e-8
    root, embed = "bert.encoder.layer.", "bert.embeddings."

    def weights(self):
        w, d = Weights(self.seed), self.D
        w.put(self.embed + "word_embeddings.weight", self.V, d, deviation=0.3)
        w.put(self.embed + "position_embeddings.weight", self.T, d, deviation=0.2)
        w.put(self.embed + "token_type_embeddings.weight", 2, d, deviation=0.2)
        w.norm(self.embed + "LayerNorm", d)
        for i in range(self.L):
            h = f"{self.root}{i}."
            w.linear(h + "attention.self.query", d, d)
            w.linear(h + "attention.self.key", d, d, bias=False)    # see README: its gradient is nothing but rounding
            w.linear(h + "attention.self.value", d, d)
            w.linear(h + "attention.output.dense", d, d)
            w.norm(h + "attention.output.LayerNorm", d)
            w.linear(h + "intermediate.dense", self.FF, d)
            w.linear(h + "output.dense", d, self.FF)
            w.norm(h + "output.LayerNorm", d)
        w.linear("cls.predictions.transform.dense", d, d)
        w.norm("cls.predictions.transform.LayerNorm", d)
        w.put("cls.predictions.decoder.bias", self.V)
        w.linear("bert.pooler.dense", d, d)
        w.linear("cls.seq_relationship", 2, d)
        return w

    def data(self, draw):
        tokens = walk(draw, SAMPLES, self.T, self.V)
        length = draw.randint(5, self.T + 1, SAMPLES)
        real = np.arange(self.T)[None, :] < length[:, None]
        chosen = real & (draw.random_sample(tokens.shape) < 0.3)
        chosen[:, 1] = True                                 # so that every sample has at least one target
        split = draw.randint(2, 5, SAMPLES)
        types = (np.arange(self.T)[None, :] >= split[:, None]) & real
        labels = np.where(chosen, tokens, IGNORE)
        return {"tokens": np.where(chosen, 3, tokens), "types": types, "mask": real, "labels": labels,
                "next": tokens[:, 2] % 2}

    targets = ["labels", "next"]

    def layer(self, p, h, y, mask):
        q, k, v = (linear(p, f"{h}attention.self.{part}", y) for part in ("query", "key", "value"))
        a = linear(p, h + "attention.output.dense", attention(q, k, v, self.H, mask=mask))
        y = layer_norm(p, h + "attention.output.LayerNorm", y + a, 1e-12)
        f = linear(p, h + "output.dense", F.gelu(linear(p, h + "intermediate.dense", y)))
        return layer_norm(p, h + "output.LayerNorm", y + f, 1e-12)

    def losses(self, p, x):
        word = p[self.embed + "word_embeddings.weight"]
        y = (word[x["tokens"]] + p[self.embed + "position_embeddings.weight"]
             + p[self.embed + "token_type_embeddings.weight"][x["types"]])
        y = layer_norm(p, self.embed + "LayerNorm", y, 1e-12)
        for i in range(self.L):
            y = self.layer(p, f"{self.root}{i}.", y, x["mask"])
        t = F.gelu(linear(p, "cls.predictions.transform.dense", y))
        t = layer_norm(p, "cls.predictions.transform.LayerNorm", t, 1e-12)
        words = F.linear(t, word, p["cls.predictions.decoder.bias"])
        pooled = torch.tanh(linear(p, "bert.pooler.dense", y[:, 0]))
        return [loss_sum(words, x["labels"]), loss_sum(linear(p, "cls.seq_relationship", pooled), x["next"])]


# ---- T5: encoder and decoder, relative positions, no biases, no scaling ----------------------------------

class T5:
    V, S, T, D, H, W, FF, L = 37, 9, 8, 8, 3, 3, 13, 2     # H*W is not D: the inner width is the heads' own
    buckets, distance = 8, 16
    seed, peak, final, eps = 3, 1e-2, 0.1, 1e-8

    def weights(self):
        w, d, inner = Weights(self.seed), self.D, self.H * self.W
        w.put("shared.weight", self.V, d, deviation=1.0)
        w.put("encoder.relative_attention_bias.weight", self.buckets, self.H, deviation=0.5)
        w.put("decoder.relative_attention_bias.weight", self.buckets, self.H, deviation=0.5)

        def attend(name, norm):
            for part in "qkv":
                w.linear(name + part, inner, d, bias=False)
            w.linear(name + "o", d, inner, bias=False)
            w.norm(norm, d, bias=False)

        def feed(layer):
            w.linear(layer + "DenseReluDense.wi", self.FF, d, bias=False)
            w.linear(layer + "DenseReluDense.wo", d, self.FF, bias=False)
            w.norm(layer + "layer_norm", d, bias=False)

        for i in range(self.L):
            h = f"encoder.block.{i}.layer."
            attend(h + "0.SelfAttention.", h + "0.layer_norm")
            feed(h + "1.")
        w.norm("encoder.final_layer_norm", d, bias=False)
        for i in range(self.L):
            h = f"decoder.block.{i}.layer."
            attend(h + "0.SelfAttention.", h + "0.layer_norm")
            attend(h + "1.EncDecAttention.", h + "1.layer_norm")
            feed(h + "2.")
        w.norm("decoder.final_layer_norm", d, bias=False)
        return w

    def data(self, draw):
        ids = walk(draw, SAMPLES, self.S, self.V)
        mask = np.arange(self.S)[None, :] < draw.randint(4, self.S + 1, SAMPLES)[:, None]
        answer = (ids[:, :self.T] + 5) % self.V
        real = np.arange(self.T)[None, :] < draw.randint(3, self.T + 1, SAMPLES)[:, None]
        before = np.concatenate([np.zeros((SAMPLES, 1), np.int64), answer[:, :-1]], 1)
        return {"ids": ids, "mask": mask, "decoder_ids": before, "labels": np.where(real, answer, IGNORE)}

    targets = ["labels"]

    def bucket(self, far, both):
        """Half the buckets hold one distance each, the others grow like a logarithm; far = key - query."""
        n, base = self.buckets, 0
        if both:
            n //= 2
            base = n if far > 0 else 0
            far = abs(far)
        else:
            far = max(-far, 0)
        exact = n // 2
        if far < exact:
            return base + far
        grown = exact + int(math.log(far / exact) / math.log(self.distance / exact) * (n - exact))
        return base + min(grown, n - 1)

    def bias(self, table, length, both):
        at = torch.tensor([[self.bucket(k - q, both) for k in range(length)] for q in range(length)])
        return table[at].permute(2, 0, 1)

    def attend(self, p, name, x, memory, **how):
        q, k, v = linear(p, name + "q", x), linear(p, name + "k", memory), linear(p, name + "v", memory)
        return linear(p, name + "o", attention(q, k, v, self.H, scale=1.0, **how))

    def feed(self, p, layer, y):
        x = rms_norm(p, layer + "layer_norm", y)
        return y + linear(p, layer + "DenseReluDense.wo", F.relu(linear(p, layer + "DenseReluDense.wi", x)))

    def losses(self, p, x):
        word, mask = p["shared.weight"], x["mask"]
        bias = self.bias(p["encoder.relative_attention_bias.weight"], self.S, True)
        y = word[x["ids"]]
        for i in range(self.L):
            h = f"encoder.block.{i}.layer."
            a = rms_norm(p, h + "0.layer_norm", y)
            y = y + self.attend(p, h + "0.SelfAttention.", a, a, mask=mask, bias=bias)
            y = self.feed(p, h + "1.", y)
        memory = rms_norm(p, "encoder.final_layer_norm", y)
        bias = self.bias(p["decoder.relative_attention_bias.weight"], self.T, False)
        y = word[x["decoder_ids"]]
        for i in range(self.L):
            h = f"decoder.block.{i}.layer."
            a = rms_norm(p, h + "0.layer_norm", y)
            y = y + self.attend(p, h + "0.SelfAttention.", a, a, causal=True, bias=bias)
            y = y + self.attend(p, h + "1.EncDecAttention.", rms_norm(p, h + "1.layer_norm", y), memory, mask=mask)
            y = self.feed(p, h + "2.", y)
        y = rms_norm(p, "decoder.final_layer_norm", y) * self.D ** -0.5
        return [loss_sum(F.linear(y, word), x["labels"])]


MODELS = {"gpt": Gpt(), "bert": Bert(), "t5": T5()}


# ---- training --------------------------------------------------------------------------------------------

def train(model, start, data, real):
    """-> rows of (loss, gradient norm, rate), gradients by step, parameters at the end.  Gradients are those before
    clipping: of the step's loss, each of whose terms is divided by the valid targets of the whole step."""
    p = {name: torch.tensor(value, dtype=real).requires_grad_() for name, value in start.items()}
    matrices = [t for t in p.values() if t.dim() >= 2]
    vectors = [t for t in p.values() if t.dim() < 2]
    tuner = torch.optim.AdamW([{"params": matrices, "weight_decay": DECAY}, {"params": vectors, "weight_decay": 0.0}],
                              betas=(BETA1, BETA2), eps=model.eps)
    rows, gradients = [], {}
    for step in range(STEPS):
        at = step * MICRO * BATCH % SAMPLES
        whole = {name: torch.tensor(value[at:at + MICRO * BATCH]).long() for name, value in data.items()}
        valid = [int((whole[name] != IGNORE).sum()) for name in model.targets]
        tuner.zero_grad()
        total = 0.0
        for mb in range(MICRO):
            part = {name: value[mb * BATCH:(mb + 1) * BATCH] for name, value in whole.items()}
            loss = sum(term / count for term, count in zip(model.losses(p, part), valid))
            loss.backward()
            total += float(loss.detach())
        norm = math.sqrt(sum(float(t.grad.double().pow(2).sum()) for t in p.values()))
        gradients[step + 1] = {name: t.grad.double().numpy().copy() for name, t in p.items()}
        for t in p.values():
            t.grad *= min(1.0, CLIP / norm)
        lr = rate(step, model.peak, model.final)
        for group in tuner.param_groups:
            group["lr"] = lr
        tuner.step()
        rows.append((total, norm, lr))
    return rows, gradients, {name: t.detach().double().numpy() for name, t in p.items()}


# ---- files -----------------------------------------------------------------------------------------------

def write_safetensors(path, tensors):
    """u64 header length, JSON of name -> type, shape, range of bytes; then the bytes.  Padded to eight."""
    header, at = {}, 0
    for name, value in tensors.items():
        header[name] = {"dtype": "F32", "shape": list(value.shape), "data_offsets": [at, at + 4 * value.size]}
        at += 4 * value.size
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as f:
        f.write(struct.pack("<Q", len(text)) + text)
        for value in tensors.values():
            f.write(np.ascontiguousarray(value, "<f4").tobytes())


def write_losses(path, rows):
    with open(path, "w") as f:
        f.write("# step loss norm lr\n")
        for step, row in enumerate(rows, 1):
            f.write("%d %.9g %.9g %.9g\n" % (step, *row))


def write(folder):
    for name, model in MODELS.items():
        start, data = model.weights(), model.data(np.random.RandomState(100 + model.seed))
        data = {key: value.astype("<i4") for key, value in data.items()}
        rows, gradients, end = train(model, start, data, torch.float64)
        base = os.path.join(folder, name)
        for key, value in data.items():
            np.save(f"{base}.{key}.npy", value)
        write_losses(base + ".losses.txt", rows)
        write_safetensors(base + ".start.safetensors", start)
        write_safetensors(base + ".end.safetensors", end)
        write_safetensors(base + ".grad1.safetensors", gradients[1])
        write_safetensors(base + f".grad{STEPS}.safetensors", gradients[STEPS])


def worst(a, b):
    return max((float(np.abs(a[n] - b[n]).max() / max(np.abs(a[n]).max(), 1e-30)), n) for n in a)


def margin():
    for name, model in MODELS.items():
        start, data = model.weights(), model.data(np.random.RandomState(100 + model.seed))
        data = {key: value.astype("<i4") for key, value in data.items()}
        one, two = (train(model, start, data, real) for real in (torch.float64, torch.float32))
        norms = [row[1] for row in one[0]]
        print("%s: %d parameters, loss %.4f .. %.4f, norm %.3f .. %.3f" % (
            name, sum(v.size for v in start.values()), one[0][0][0], one[0][-1][0], min(norms), max(norms)))
        print("  loss  %.1e" % max(abs(a[0] - b[0]) / a[0] for a, b in zip(one[0], two[0])))
        for what, a, b in (("grad1", one[1][1], two[1][1]), ("grad20", one[1][STEPS], two[1][STEPS]),
                           ("end", one[2], two[2])):
            print("  %-6s %.1e %s" % (what, *worst(a, b)))


if __name__ == "__main__":
    torch.set_num_threads(1)
    if sys.argv[1:] == ["--margin"]:
        margin()
    elif len(sys.argv) == 2 and os.path.isdir(sys.argv[1]):
        write(sys.argv[1])
    else:
        sys.exit("usage: make_ref.py DIR | --margin")
