/* SPDX-License-Identifier: Apache-2.0
 *
 * shape_attention.c: the shape rules of attention: its heads, what a query sees, and its scratch.
 *
 * A line becomes the plainest row that does what it asks for: Attention, or AttentionShared where heads share keys, or
 * AttentionWindow where a window or a cap changes scores, or AttentionGeneral.  With documents or sinks build has chosen that.
 */
#include "build.h"
#include <math.h>

static int64_t up(int64_t n) { return (n + 63) / 64 * 64; }

static Bytes graph_scratch(int64_t batch, int64_t heads, int64_t query, int64_t key, Bytes each)
{
    Bytes scores = 2 * batch * heads * up(query) * ((key + 127) / 128 * 128);
    return up(4 * batch * heads * query) + 2 * up(each) + 192 + scores + 256;
}

/* With heads among devices: `whole` had all of them. */
void attention_room(Op *o, Bytes whole, int64_t heads)
{
    const int64_t batch = attr_int(o, "batch"), query = attr_int(o, "query"), here = attr_int(o, "heads");
    const int64_t key = attr_find(o, "key") ? attr_int(o, "key") : query;
    bool graph = whole > 4 * batch * heads * query, shared = attr_find(o, "kv_heads") && attr_int(o, "kv_heads") < here;
    Bytes each = shared ? 2 * batch * here * key * attr_int(o, "width") : 0;
    attr_set(o, "tmp.I", graph ? graph_scratch(batch, here, query, key, each) : 4 * batch * here * query);
}

/* Scratch of backward: a f32 for each row of scores, the sum of dy times y.  Where cuda kernels leave it to cuDNN, that is the
 * plain case in bf16, dk and dv of each query head that shares its keys follow, and dS: rt/op/cuda/attention.c has the same
 * formula.  -1: too large. */
static int64_t attention_scratch(const Sizer *z, const Shape *scores, bool plain)
{
    const Device *d = &z->m->devices.at[0];
    const Shape rows = {3, {scores->d[0], scores->d[1], scores->d[2]}};
    const Shape ds = {4, {scores->d[0], scores->d[1], (scores->d[2] + 63) / 64 * 64, (scores->d[3] + 127) / 128 * 128}};
    int64_t sums = shape_size(&rows, 0, rows.n) * 4, wide = attr_int(z->o, "width"), query = scores->d[2], key = scores->d[3];
    bool graph = library_of(d)->graphs && z->g->compute == BF16 && plain && wide % 8 == 0 && wide <= widest_head(d);
    const Shape keys = {4, {scores->d[0], scores->d[1], scores->d[3], wide}};
    bool shared = attr_find(z->o, "kv_heads") && attr_int(z->o, "kv_heads") < scores->d[1];
    int64_t each = shared ? shape_elements(&keys) * 2 : 0;
    if (shape_size(&rows, 0, rows.n) == MAX_BYTES || (graph && shape_size(&ds, 0, ds.n) == MAX_BYTES) || each == 2 * MAX_BYTES)
        return -1;
    return graph ? graph_scratch(scores->d[0], scores->d[1], query, key, each) : sums;
}

/* What both forms of attention share: q is [batch query heads*width], keys count `key`; operands bias and mask begin
 * at i. */
static bool attention(Sizer *z, int64_t batch, int64_t query, int64_t key, int64_t wide, int i)
{
    int64_t heads = attr_int(z->o, "heads");
    const Shape bias = {3, {heads, query, key}}, mask = {2, {batch, key}}, lse = {3, {batch, heads, query}};
    bool packed = i == 1;
    const Ints *in = &z->o->in;
    int documents = in->n > i + 2 && in->at[in->n - 1] >= 0 ? in->n - 1 : 0, sinks = !packed && in->n > i + 2 ? i + 2 : 0;
    if (wide % heads)
        return refuse(z, NULL, "width %lld is not divisible by %lld heads", (Num)wide, (Num)heads);
    if (z->o->in.at[i] >= 0 && !shape_same(in_shape(z, i), &bias))
        return refuse(z, NULL, "bias must be [heads, query, key] = %s, not %s", shape_text(&bias),
                      shape_text(in_shape(z, i)));
    if (z->o->in.at[i + 1] >= 0 && !shape_same(in_shape(z, i + 1), &mask))
        return refuse(z, NULL, "mask must be [batch, key] = %s, not %s", shape_text(&mask),
                      shape_text(in_shape(z, i + 1)));
    if (sinks && in->at[sinks] >= 0 && !shape_same(in_shape(z, sinks), &(Shape){2, {batch, heads}}))
        return refuse(z, NULL, "sinks must be [batch, heads] = [%lld, %lld], not %s", (Num)batch, (Num)heads,
                      shape_text(in_shape(z, sinks)));
    if (documents && (query != key || !shape_same(in_shape(z, documents), &mask)))
        return refuse(z, NULL, "documents must be [batch, key] = %s with as many queries, not %s with %lld queries",
                      shape_text(&mask), shape_text(in_shape(z, documents)), (Num)query);
    ATTRS(z->o, {"batch", batch}, {"query", query}, {"key", key}, {"width", wide / heads});
    const Shape scores = {4, {batch, heads, query, key}};
    bool plain = z->o->in.at[i] < 0 && z->o->in.at[i + 1] < 0 && (float)attr_find(z->o, "drop")->f == 0 &&
        z->o->row != row_find("AttentionWindow") && z->o->row != row_find("AttentionGeneral") && !documents;
    int64_t scratch = attention_scratch(z, &scores, plain);
    if (shape_size(&bias, 0, 3) == MAX_BYTES || scratch < 0)
        return refuse(z, NULL, "%lld queries and %lld keys are too many", (Num)query, (Num)key);
    attr_set(z->o, "tmp.I", scratch);
    if (!attr_find(z->o, "scale"))
        attr_set_float(z->o, "scale", 1 / sqrt((double)(wide / heads)));
    shape_site(z);
    return shape_drop(z, heads * query * key) && out_shape(z, 0, (Shape){3, {batch, query, wide}}) &&
           out_shape(z, 1, lse);
}

/* Keys that a query sees, and what changes its scores: where one of them changes anything, the row is another. */
static bool seen(Sizer *z, int64_t query, int64_t key)
{
    int64_t window = attr_find(z->o, "window") ? attr_int(z->o, "window") : 0;
    double cap = attr_find(z->o, "cap") ? attr_find(z->o, "cap")->f : 0;
    double alibi = attr_find(z->o, "alibi") ? attr_find(z->o, "alibi")->f : 0;
    bool both = window && !attr_int(z->o, "causal");
    if (window < 0)
        return refuse(z, "window: 0", "a window has at least 1 key, or is 0, which is none; not %lld", (Num)window);
    if (!(cap >= 0 && cap <= 1e6))
        return refuse(z, "softcap: 0", "softcap is above 0, or 0, which is none; not %g", cap);
    if (!(alibi >= 0 && alibi <= 1e6))
        return refuse(z, "alibi: 1", "alibi is above 0, or 0, which is none; not %g", alibi);
    if ((both || alibi > 0) && query != key)
        return refuse(z, NULL, "%s needs as many keys as queries: %lld and %lld", both ? "a window to both sides" : "alibi",
                      (Num)key, (Num)query);
    window = window < key ? window : 0;
    both = both && window;
    bool general = z->o->row == row_find("AttentionGeneral") || both || (float)alibi > 0;
    if (!window && (float)cap == 0 && !general)
        return true;
    int64_t reach = both ? 2 * window - 1 : window;
    ATTRS(z->o, {"window", window}, {"reach", window && reach < key ? reach : key});
    attr_set_float(z->o, "cap", cap);
    z->o->row = row_find(general ? "AttentionGeneral" : "AttentionWindow");
    if (!general)
        return true;
    attr_set_float(z->o, "alibi", alibi);
    attr_set(z->o, "slopes", attr_int(z->o, "heads"));
    while (z->o->in.n < row(z->o->row)->in.n)
        *PUSH(&z->o->in) = -1;
    return true;
}

bool size_attention(Sizer *z)
{
    const Shape *q = in_shape(z, 0), *k = in_shape(z, 1), *v = in_shape(z, 2);
    int64_t heads = attr_int(z->o, "heads"), kv = attr_find(z->o, "kv_heads") ? attr_int(z->o, "kv_heads") : heads;
    if (heads % kv)
        return refuse(z, NULL, "%lld heads cannot share %lld heads of keys", (Num)heads, (Num)kv);
    const int64_t each = heads / kv;
    if (q->n != 3 || k->n != 3 || !shape_same(k, v) || q->d[0] != k->d[0] || q->d[2] / each != k->d[2] || q->d[2] % each)
        return refuse(z, NULL, "q, k, v need one batch and width%s: %s, %s, %s", kv < heads ? " of a head" : "",
                      shape_text(q), shape_text(k), shape_text(v));
    if (kv < heads && z->o->row == row_find("Attention"))
        z->o->row = row_find("AttentionShared");
    if (attr_int(z->o, "causal") && q->d[1] > k->d[1])
        return refuse(z, NULL, "causal attention needs as many keys as queries: %lld and %lld", (Num)k->d[1],
                      (Num)q->d[1]);
    attr_set(z->o, "kv_heads", kv);
    return seen(z, q->d[1], k->d[1]) && shape_by_sample(z, q) && attention(z, q->d[0], q->d[1], k->d[1], q->d[2], 3);
}

bool size_attention_packed(Sizer *z)
{
    const Shape *x = in_shape(z, 0);
    if (attr_find(z->o, "kv_heads"))
        return refuse(z, "give q, k and v", "packed: qkv has as many heads of keys as of queries");
    if (attr_find(z->o, "window") || attr_find(z->o, "cap") || attr_find(z->o, "alibi"))
        return refuse(z, "give q, k and v", "packed: qkv has neither a window nor a soft cap nor alibi");
    if (x->n != 3 || x->d[2] % 3)
        return refuse(z, NULL, "packed: qkv takes [batch, positions, 3*width], not %s", shape_text(x));
    return shape_by_sample(z, x) && attention(z, x->d[0], x->d[1], x->d[1], x->d[2] / 3, 1);
}
