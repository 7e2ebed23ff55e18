/* SPDX-License-Identifier: Apache-2.0
 *
 * unit_divide: the layout that divide finds, against that of Megatron-LM (Shoeybi et al., 2019, figure 3), written by hand: the
 * first product of a pair by columns, heads or elements between, the second by rows, all else whole.  Convolutions alike, with
 * channels between.
 */
#include "plan.h"
#include "rewrite/divide.h"
#include <string.h>

static int passed, failed;
static const PlanSpec plain, *plan = &plain;

static void check(bool ok, const char *what, const char *want, const char *got)
{
    passed += ok;
    failed += !ok;
    if (!ok)
        fprintf(stderr, "unit_divide: %s\n  want %s\n  got  %s\n", what, want, got);
}

/* In as many blocks as devices. */
static const Graph *graph_of(const char *file, int devices)
{
    static const char *const kernels = "devices.0.kernels=portable";
    Overrides over = {0};
    *PUSH(&over.set) = strf("train.blocks=%d", devices);
    *PUSH(&over.set) = kernels;
    const Model *m = model(load(file), file, &over);
    Graph *g = build(m);
    shape(g, m);
    return g;
}

/* NAME AXIS of each divided operator below `layer`. */
static const char *layout(const Graph *g, const Divide *d, const char *layer)
{
    const char *text = "";
    for (int i = 0; i < g->nf; i++) {
        const Op *o = &g->op.at[i];
        RowAxes a;
        if (d->axis[i] < 0 || strncmp(o->name, layer, strlen(layer)))
            continue;
        a = row_axes(row(o->row));
        text = strf("%s%s%s %s", text, *text ? ", " : "", o->name + strlen(layer), a.axis[d->axis[i]].name);
    }
    return text;
}

/* Of MobileNetV2 (M. Sandler et al., 2018, table 2), 16 images in f32: a block makes 6 c channels of c by columns, so that the
 * gradient of c is a sum, and c of 6 c by rows, which is one; between them each channel is on its own.  Then 1280 channels, and
 * 1000 kinds. */
static void mobilenet_sums(Bytes *forward, Bytes *backward)
{
    static const struct { int c, n, s; } table[] = {{24, 2, 2}, {32, 3, 2}, {64, 4, 2}, {96, 3, 1}, {160, 3, 2}, {320, 1, 1}};
    Bytes y = 112 * 112 * 16 + 1000, x = 0, side = 112, c = 16;
    for (size_t i = 0; i < sizeof table / sizeof *table; i++)
        for (int k = 0; k < table[i].n; k++) {
            x += side * side * c;
            side = k == 0 ? side / table[i].s : side;
            c = table[i].c;
            y += side * side * c;
        }
    *forward = 16 * 4 * y;
    *backward = 16 * 4 * (x + side * side * c);
}

typedef struct {                /* sums: bytes of one [rows, width] result, and how many; -1: not looked at */
    const char *file, *layer, *want;
    int devices;
    Bytes forward, backward;
} Case;

/* NAME of each operator below `layer` that has a part of the rows: in Megatron-LM's sequence parallelism (V. Korthikanti et
 * al., 2022, figure 5) the norms, Dropout and the residual. */
static void check_rows(const char *file, int devices, const char *layer, const char *want)
{
    const Graph *g = graph_of(file, devices);
    Divide d;
    divide_find(g, devices, plan, &d);
    const RowCut *cut = positions_find(g, &d);
    const char *text = "";
    for (int i = 0; i < g->nf; i++)
        if (cut[i].axis >= 0 && !strncmp(g->op.at[i].name, layer, strlen(layer)))
            text = strf("%s%s%s", text, *text ? ", " : "", g->op.at[i].name + strlen(layer));
    check(!strcmp(text, want), strf("rows of %s on %d devices", file, devices), want, text);
}

/* Of a divided loss: the loss, and a number a row. */
#define TELLS(rows) (4 + (rows) * 4)

int main(void)
{
    enum { GPT = 2 * 1024 * 768 * 4, LLAMA = 2048 * 2048 * 2, BERT = 2 * 512 * 768 * 4, POOL = 2 * 768 * 4,
           READ = 2 * 512 * 512 * 4, WRITTEN = 2 * 128 * 512 * 4 };
    Bytes forward, backward;
    mobilenet_sums(&forward, &backward);
    const Case cases[] = {
        {"examples/gpt2-124m.yaml", "h.3.", "attn.c_attn part, attention heads, attn.c_proj in, mlp.c_fc out, gelu n, "
         "mlp.c_proj in", 4, (Bytes)25 * GPT + TELLS(2048), (Bytes)25 * GPT},
        /* 12 heads are not for 8 devices */
        {"examples/gpt2-124m.yaml", "h.3.", "mlp.c_fc out, gelu n, mlp.c_proj in", 8, (Bytes)13 * GPT + TELLS(2048),
         (Bytes)13 * GPT},
        /* the vocabulary, of GPT-2 in blocks that are not all of one size: the result of Embedding, the gradient of what the
         * head reads, a loss and its rows; each reader of a norm's result has a sum: q, k, v; gate, up */
        {"examples/llama-3.2-1b.yaml", "model.layers.5.", "self_attn.q_proj out, rotary heads, self_attn.k_proj out, "
         "rotary_2 heads, self_attn.v_proj out, attention kv_heads, self_attn.o_proj in, mlp.gate_proj out, mlp.up_proj out, "
         "gate n, mlp.down_proj in", 8, (Bytes)33 * LLAMA + TELLS(2048), (Bytes)81 * LLAMA},
        {"examples/bert-base.yaml", "bert.encoder.layer.1.", "attention.self.query out, attention.self.key out, "
         "attention.self.value out, attention heads, attention.output.dense in, intermediate.dense out, gelu n, "
         "output.dense in", 2, (Bytes)25 * BERT + 16 + TELLS(1024), (Bytes)49 * BERT + POOL},
        /* a sum after each wo forward, and before each wi backward; the cross-attention reads keys and values of the encoder */
        {"examples/t5-small.yaml", "decoder.block.0.layer.1.", "EncDecAttention.q out, EncDecAttention.k out, "
         "EncDecAttention.v out, EncDecAttention.o in", 2, (Bytes)13 * READ + 19 * WRITTEN + TELLS(256),
         (Bytes)6 * (4 * READ + 5 * WRITTEN + 2 * READ) + WRITTEN},
        {"examples/mobilenetv2.yaml", "features.3.", "conv.0.0 out, conv.0.1.stat width, conv.0.1 width, clip n, "
         "conv.1.0 groups, conv.1.1.stat width, conv.1.1 width, clip_2 n, conv.2 in", 4, forward, backward},
        /* squeeze-excite is a pair of its own within: rows, then columns */
        {"examples/efficientnet-b0.yaml", "features.3.1.", "block.0.0 out, block.0.1.stat width, block.0.1 width, silu n, "
         "block.1.0 groups, block.1.1.stat width, block.1.1 width, silu_2 n, block.2.globalavgpool inner, block.2.fc1 in, "
         "block.2.fc2 out, block.2.sigmoid n, block.2.mul inner, block.3.0 in", 4, -1, -1},
        {"examples/convnext-tiny.yaml", "features.1.0.", "block.3 out, gelu n, block.5 in", 4, -1, -1},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const Case *c = &cases[i];
        const Graph *g = graph_of(c->file, c->devices);
        Divide d;
        divide_find(g, c->devices, &plain, &d);
        const char *got = layout(g, &d, c->layer), *what = strf("%s on %d devices", c->file, c->devices);
        check(!strcmp(got, c->want), what, c->want, got);
        check(c->forward < 0 || (d.forward == c->forward && d.backward == c->backward), strf("%s: bytes of sums", what),
              strf("%lld %lld", (long long)c->forward, (long long)c->backward),
              strf("%lld %lld", (long long)d.forward, (long long)d.backward));
    }
    /* DeepSpeed Ulysses (S. Jacobs et al., 2023): heads in attention alone, rows in all else of a layer */
    static const PlanSpec everywhere = {.positions = POSITIONS_EVERYWHERE};
    plan = &everywhere;
    check_rows("examples/gpt2-124m.yaml", 4, "h.3.", "ln_1, attn.c_attn, attn.c_proj, add, ln_2, mlp.c_fc, gelu, mlp.c_proj, "
               "add_2");
    check_rows("examples/llama-3.2-1b.yaml", 8, "model.layers.5.", "input_layernorm, self_attn.q_proj, self_attn.k_proj, "
               "self_attn.v_proj, self_attn.o_proj, add, post_attention_layernorm, mlp.gate_proj, mlp.up_proj, gate, "
               "mlp.down_proj, add_2");
    plan = &plain;
    check_rows("examples/gpt2-124m.yaml", 4, "h.3.", "ln_1, add, ln_2, add_2");
    check_rows("examples/llama-3.2-1b.yaml", 8, "model.layers.5.", "input_layernorm, add, post_attention_layernorm, add_2");
    check_rows("examples/bert-base.yaml", 2, "bert.encoder.layer.1.", "dropout, add, attention.output.LayerNorm, dropout_2, "
               "add_2, output.LayerNorm");
    /* the Dropout in front of these two is between divided products */
    check_rows("examples/t5-small.yaml", 2, "decoder.block.0.layer.2.", "layer_norm, dropout_2, add");
    printf("unit_divide: %d passed, %d failed\n", passed, failed);
    return failed != 0;
}
