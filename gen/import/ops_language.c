/* SPDX-License-Identifier: Apache-2.0
 *
 * ops_language.c: attention, recurrent layers and tables of positions as lines of a model file.
 *
 * Graphs cut sequences into heads, [samples, heads, positions, width], by a Reshape and a Transpose.  An Attention of dpgen
 * reads the sequence itself, so both are taken back, before it and behind it.
 */
#include "net.h"
#include <math.h>

NORETURN void net_refuse_attention(const Net *g, const char *what)
{
    net_advise(g, "it stays whole in a .pt2 of torch.export, as F.scaled_dot_product_attention, and models of transformers are "
               "imported from their config.json, dpgen import DIR", "%s: attention in parts is not put together again", what);
}

/* q, k and v are thirds of one sequence: -1, or that. */
static int packed(const Net *g, const int part[3])
{
    int64_t width = value_of(g, part[0])->dims.d[2];
    int whole = -1;
    for (int i = 0; i < 3; i++) {
        const Made *l = net_made(g, part[i]);
        const char *want = strf(", axis: 2, from: %lld, count: %lld", (long long)(i * width), (long long)width);
        if (!l || strcmp(l->op, "Slice") || strcmp(l->attributes, want) || (i && l->in.at[0] != whole))
            return -1;
        whole = l->in.at[0];
    }
    return value_of(g, whole)->dims.d[2] == 3 * width ? whole : -1;
}

int ops_attention(Net *g, const int heads[3], bool causal, double drop, double scale)
{
    static const int64_t cut[] = {0, 2, 1, 3};
    int part[3];
    for (int i = 0; i < 3; i++) {
        /* The sequence that these heads are cut from */
        static const int64_t back[] = {0, 2, 1, 3};
        if (heads[i] < 0 || value_of(g, heads[i])->kind != VALUE_ACT || value_of(g, heads[i])->dims.n != 4 ||
            value_of(g, heads[i])->last || value_of(g, heads[i])->view)
            net_refuse(g, "its operands are no heads of a sequence, [samples, heads, positions, width]");
        const Dims *d = &value_of(g, heads[i])->dims;
        Dims flat = {3, {d->d[0], d->d[2], d->d[1] * d->d[3]}};
        part[i] = ops_reshape(g, ops_transpose(g, heads[i], back), flat);
    }
    const Dims q = value_of(g, heads[0])->dims, k = value_of(g, heads[1])->dims, v = value_of(g, heads[2])->dims;
    if (!dims_same(&k, &v) || q.d[3] != k.d[3] || q.d[1] % k.d[1])
        net_refuse(g, "its heads have several widths, or their numbers do not divide each other");
    if (causal && q.d[2] != k.d[2])
        net_refuse(g, "it is causal, with %lld queries and %lld keys", (long long)q.d[2], (long long)k.d[2]);
    int whole = packed(g, part);
    const char *text = strf(", heads: %lld%s%s%s", (long long)q.d[1], whole >= 0 ? ", packed: qkv" : "",
                            q.d[1] == k.d[1] ? "" : strf(", kv_heads: %lld", (long long)k.d[1]),
                            causal ? ", causal: true" : "");
    if (scale > 0 && fabs(scale * sqrt((double)q.d[3]) - 1) > 1e-6)
        text = strf("%s, scale: %s", text, net_real(scale));
    if (drop > 0)
        text = strf("%s, dropout: %s", text, net_real(drop));
    int y = net_line(g, "Attention", text, whole >= 0 ? whole : part[0], (Dims){3, {q.d[0], q.d[2], q.d[1] * q.d[3]}}, false);
    for (int i = 1; i < 3 && whole < 0; i++)
        net_also(g, y, part[i]);
    return ops_transpose(g, ops_reshape(g, y, (Dims){4, {q.d[0], q.d[2], q.d[1], q.d[3]}}), cut);
}

/* Rows 0, 1, ... of a table, for every sample: [1, n, width] */
int ops_positions(Net *g, int ids, int weight)
{
    const double *at = net_known(g, ids);
    const NetValue *w = value_of(g, weight);
    int64_t n = dims_elements(&value_of(g, ids)->dims);
    bool rows = at && w->kind == VALUE_WEIGHT && w->dims.n == 2 && n >= 1 && n <= w->dims.d[0];
    for (int64_t i = 0; i < n && rows; i++)
        rows = at[i] == (double)i;
    if (!rows)
        net_refuse(g, "it looks up other rows than 0, 1, ... by numbers of the file");
    Dims all = {3, {g->batch, w->dims.d[0], w->dims.d[1]}}, of = {3, {1, w->dims.d[0], w->dims.d[1]}};
    const char *shape = strf(", shape: [1, %lld, %lld], stored: [%lld, %lld]", (long long)of.d[1], (long long)of.d[2],
                             (long long)of.d[1], (long long)of.d[2]);
    int y = net_line(g, "Parameter", shape, -1, all, false);
    net_role(g, y, "weight", weight, false, w->dims);
    return n < of.d[1] ? ops_slice(g, y, 1, 0, n) : y;
}

/* Layer k of rnn is a line of its own, rnn_lk, whose parameters are those of a first layer. */
static int as_first(Net *g, int weight, int64_t layer, const char *role)
{
    NetValue v = *value_of(g, weight);
    const char *dot = strrchr(v.name, '.');
    if (layer == 0)
        return weight;
    v.here = strf("%.*s_l%lld.%s", dot ? (int)(dot - v.name) : 3, dot ? v.name : "rnn", (long long)layer, role);
    *PUSH(&g->value) = v;
    return g->value.n - 1;
}

/* Parameters of one layer, in the order of PyTorch */
static int one_layer(Net *g, int x, const int *weight, int64_t layer, bool two, bool biases)
{
    static const char *const role[] = {"weight_ih_l0", "weight_hh_l0", "bias_ih_l0", "bias_hh_l0", "weight_ih_l0_reverse",
                                       "weight_hh_l0_reverse", "bias_ih_l0_reverse", "bias_hh_l0_reverse"};
    Dims d = value_of(g, x)->dims;
    const NetValue *hidden = value_of(g, weight[1]);
    if (hidden->kind != VALUE_WEIGHT || hidden->dims.n != 2 || hidden->dims.d[0] != 4 * hidden->dims.d[1])
        net_refuse(g, "its matrix of the states is no parameter, or has another shape: projections are not done");
    d.d[2] = hidden->dims.d[1] * (1 + two);
    const char *text = strf(", hidden: %lld%s%s", (long long)hidden->dims.d[1], two ? ", bidirectional: true" : "",
                            biases ? "" : ", bias: false");
    int y = net_line(g, "LSTM", text, x, d, false);
    for (int i = 0; i < (two ? 8 : 4); i += i % 4 == 1 && !biases ? 3 : 1) {
        if (value_of(g, *weight)->kind != VALUE_WEIGHT)
            net_refuse(g, "its %s is no parameter", role[i]);
        Dims of = value_of(g, *weight)->dims;
        net_role(g, y, role[i], as_first(g, *weight++, layer, role[i]), false, of);
    }
    return y;
}

int ops_lstm(Net *g, int x, const Ints *weight, int64_t layers, bool two, bool biases, double drop)
{
    int n = (two ? 2 : 1) * (biases ? 4 : 2);
    if (x < 0 || value_of(g, x)->kind != VALUE_ACT || value_of(g, x)->dims.n != 3 || layers < 1 || weight->n != layers * n)
        net_refuse(g, "it is of no sequence [samples, steps, width], or its parameters are not %d a layer", n);
    for (int i = 0; i < layers; i++) {
        x = one_layer(g, x, weight->at + (ptrdiff_t)i * n, i, two, biases);
        if (drop > 0 && i + 1 < layers)
            x = ops_unary(g, "Dropout", strf(", p: %s", net_real(drop)), x);
    }
    return x;
}
