/* SPDX-License-Identifier: Apache-2.0
 *
 * ops_axes.c: lines of a model file that move, cut, join and sum axes.
 *
 * Files have channels behind the batch, and here they are the last axis.  So axes of images move, and where a graph looks at
 * the elements of an image in their order, such as a Reshape of more than one pixel, a Transpose stands before it.
 */
#include "net.h"

void net_want_act(Net *g, int x)
{
    if (x < 0 || value_of(g, x)->kind != VALUE_ACT)
        net_refuse(g, "its first operand is no activation");
}

/* Of the file: which one it is here */
static int64_t net_axis(Net *g, int x, int64_t axis)
{
    const NetValue *v = value_of(g, x);
    axis += axis < 0 ? v->dims.n : 0;
    if (axis < 1 || axis >= v->dims.n)
        net_refuse(g, "axis %lld: it is that of the samples, or there is none", (long long)axis);
    return !v->last ? axis : axis == 1 ? v->dims.n - 1 : axis - 1;
}

int net_channels_last(Net *g, int x)
{
    net_want_act(g, x);
    const NetValue *v = value_of(g, x);
    if (v->last)
        return x;
    if (v->dims.n != 4 && v->dims.n != 3)
        net_refuse(g, "it is of images or sequences, and its operand has %d axes", v->dims.n);
    return net_line(g, "Transpose", v->dims.n == 4 ? ", perm: [0, 2, 3, 1]" : ", perm: [0, 2, 1]", x, v->dims, true);
}

static int64_t pixels(const NetValue *v)
{
    int64_t n = 1;
    for (int i = 2; i < v->dims.n; i++)
        n *= v->dims.d[i];
    return n;
}

/* Elements in the order of the file */
int net_plain(Net *g, int x)
{
    const NetValue *v = value_of(g, x);
    if (!v->last)
        return x;
    return net_line(g, "Transpose", v->dims.n == 4 ? ", perm: [0, 3, 1, 2]" : ", perm: [0, 2, 1]", x, v->dims, false);
}

int ops_transpose(Net *g, int x, const int64_t *perm)
{
    static const int64_t to_last[] = {0, 2, 3, 1}, to_first[] = {0, 3, 1, 2};
    net_want_act(g, x);
    Dims d = value_of(g, x)->dims, to = d;
    const char *text = "";
    bool moves = false;
    for (int i = 0, seen = 0; i < d.n; i++) {
        if (perm[i] < 0 || perm[i] >= d.n || seen >> perm[i] & 1)
            net_refuse(g, "it has no order for each axis");
        seen |= 1 << perm[i];
        moves |= perm[i] != i;
    }
    if (!moves)
        return x;
    if (g->views && (perm[0] || value_of(g, x)->view))
        return view_transpose(g, x, perm);
    for (int i = 0; i < d.n; i++) {
        if ((i == 0) != (perm[i] == 0))
            net_advise(g, "recurrent layers are read from a .pt2 of torch.export, made with batch_first=True, and attention "
                       "too", "it moves the axis of the samples");
        to.d[i] = d.d[perm[i]];
        text = strf("%s%s%lld", text, i ? ", " : "", (long long)perm[i]);
    }
    bool last = value_of(g, x)->last, away = d.n == 4 && !memcmp(perm, to_last, sizeof to_last);
    bool back = d.n == 4 && !memcmp(perm, to_first, sizeof to_first);
    if (d.n == 3)
        away = back = true;         /* the only order that leaves the samples */
    if ((last && away) || (!last && back)) {        /* only the names of axes change */
        NetValue same = *value_of(g, x);
        same.dims = to;
        same.last = !last;
        *PUSH(&g->value) = same;
        return g->value.n - 1;
    }
    const Made *before = net_made(g, x);
    bool undone = before && !last && !strcmp(before->op, "Transpose");
    for (int i = 0; i < d.n && undone; i++)
        undone = perm[perm[i]] == i;            /* twice the same exchange is none */
    if (undone && !strcmp(before->attributes, strf(", perm: [%s]", text)) && !value_of(g, before->in.at[0])->last)
        return before->in.at[0];
    return net_line(g, "Transpose", strf(", perm: [%s]", text), net_plain(g, x), to, false);
}

/* The same line without pixels behind a mean over them, which are what `keep` leaves; -1: it is no such line */
static int flatter(Net *g, const Made *l, Dims to)
{
    static const char *const rows[] = {"LayerNorm", "Relu", "Gelu", "Silu", "HardSwish", "Sigmoid", "Tanh"};
    bool row = false;
    if (l && !strcmp(l->op, "GlobalAvgPool"))
        return net_line(g, "GlobalAvgPool", "", l->in.at[0], to, false);
    for (size_t i = 0; l && i < sizeof rows / sizeof *rows; i++)
        row |= !strcmp(l->op, rows[i]);
    Made same = row ? *l : (Made){0};
    int of = row ? flatter(g, net_made(g, same.in.at[0]), to) : -1;
    if (of < 0)
        return -1;
    int y = net_line(g, same.op, same.attributes, of, to, false);
    Made *new = &g->line.at[value_of(g, y)->line];
    memcpy(new->role, same.role, sizeof new->role);
    new->roles = same.roles;
    new->module = same.module;
    return y;
}

int ops_reshape(Net *g, int x, Dims to)
{
    if (value_of(g, x)->kind == VALUE_WEIGHT)
        return net_axes_of(g, x, to);
    net_want_act(g, x);
    Dims from = value_of(g, x)->dims;
    const char *text = "B";
    if (dims_elements(&from) != dims_elements(&to))
        net_refuse(g, "its result has another number of elements");
    if (value_of(g, x)->view || (g->views && (to.n < 1 || to.d[0] != g->batch)))
        return view_reshape(g, x, to);
    if (dims_same(&from, &to))
        return x;
    if (value_of(g, x)->last && from.n == 4 && to.n == 3 && to.d[1] == from.d[1])       /* pixels in a row */
        return net_line(g, "Reshape", strf(", shape: [B, %lld, %lld]", (long long)to.d[2], (long long)to.d[1]), x, to, true);
    if (value_of(g, x)->last && pixels(value_of(g, x)) > 1)
        x = net_plain(g, x);
    const Made *before = net_made(g, x);
    if (before && !strcmp(before->op, "Reshape") && !value_of(g, before->in.at[0])->last)
        return ops_reshape(g, before->in.at[0], to);
    int flat = to.n == 2 ? flatter(g, before, to) : -1;
    if (flat >= 0)
        return flat;
    for (int i = 1; i < to.n; i++)
        text = strf("%s, %lld", text, (long long)to.d[i]);
    return net_line(g, to.n == 2 ? "Flatten" : "Reshape", to.n == 2 ? "" : strf(", shape: [%s]", text), x, to, false);
}

int ops_slice(Net *g, int x, int64_t axis, int64_t from, int64_t count)
{
    net_want_act(g, x);
    Dims d = value_of(g, x)->dims;
    int64_t here = net_axis(g, x, axis);
    axis += axis < 0 ? d.n : 0;
    if (from < 0 || count < 1 || from > d.d[axis] - count)
        net_refuse(g, "it takes what is not there");
    if (count == d.d[axis])
        return x;
    d.d[axis] = count;
    const char *text = strf(", axis: %lld, from: %lld, count: %lld", (long long)here, (long long)from, (long long)count);
    return net_line(g, "Slice", text, x, d, value_of(g, x)->last);
}

int ops_mean(Net *g, int x, const int64_t *axis, int axes, bool keep)
{
    net_want_act(g, x);
    Dims d = value_of(g, x)->dims;
    bool spatial = axes == 2 && d.n == 4 && (axis[0] + 4) % 4 + (axis[1] + 4) % 4 == 5 && axis[0] % 4 && axis[1] % 4 &&
        (axis[0] + 4) % 4 != 1 && (axis[1] + 4) % 4 != 1;
    if (spatial)
        return ops_global_pool(g, x, keep);
    if (axes != 1 || value_of(g, x)->last)
        net_refuse(g, "a mean over these axes is not done");
    int64_t here = net_axis(g, x, axis[0]);
    Dims to = {d.n - 1, {0}};
    for (int i = 0, k = 0; i < d.n; i++)
        if (i != here)
            to.d[k++] = d.d[i];
    int y = net_line(g, "Mean", strf(", axis: %lld", (long long)here), x, to, false);
    d.d[here] = 1;
    return keep ? ops_reshape(g, y, d) : y;
}

/* ---- several operands -------------------------------------------------------------------------------------------------- */

static bool is_concat(const Made *l, const char *attributes)
{
    return l && !strcmp(l->op, "Concat") && !strcmp(l->attributes, attributes);
}

int ops_concat(Net *g, const Ints *in, int64_t axis)
{
    for (int i = 0; i < in->n; i++)
        net_want_act(g, in->at[i]);
    bool last = value_of(g, in->at[0])->last;
    Dims d = value_of(g, in->at[0])->dims;
    int64_t here = net_axis(g, in->at[0], axis);
    axis += axis < 0 ? d.n : 0;
    int64_t sum = 0;
    for (int i = 0; i < in->n; i++) {
        const NetValue *v = value_of(g, in->at[i]);
        Dims e = v->dims;
        sum += e.n == d.n ? e.d[axis] : 0;
        e.d[axis] = d.d[axis];
        if (!dims_same(&d, &e) || v->last != last)
            net_refuse(g, "its operands do not fit");
    }
    d.d[axis] = sum;
    const char *text = strf(", axis: %lld", (long long)here);
    const Made *open = net_made(g, in->at[0]);
    Ints all = {0};
    for (int i = 0; is_concat(open, text) && i < open->joins.n; i++)
        *PUSH(&all) = open->joins.at[i];
    for (int i = is_concat(open, text); i < in->n; i++)
        *PUSH(&all) = in->at[i];
    /* The result that joins the first of these, most of them, for DenseNet joins all before each layer. -1: there is none. */
    const Made *best = NULL;
    for (EACH(const Made, l, g->line)) {
        bool more = is_concat(l, text) && l->joins.n < all.n && (!best || l->joins.n > best->joins.n);
        if (more && !memcmp(l->joins.at, all.at, (size_t)l->joins.n * sizeof *all.at))
            best = l;
    }
    int first = best ? best->out : -1;
    int y = net_line(g, "Concat", text, first < 0 ? all.at[0] : first, d, last);
    for (int i = first < 0 ? 1 : net_made(g, first)->joins.n; i < all.n; i++)
        net_also(g, y, all.at[i]);
    g->line.at[value_of(g, y)->line].joins = all;
    return y;
}
