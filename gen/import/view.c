/* SPDX-License-Identifier: Apache-2.0
 *
 * view.c: values whose first axis is not that of the samples.
 *
 * nn.MultiheadAttention puts positions before samples, joins samples and heads, and comes back; others join samples and
 * positions before a Linear.  Such a value is no line here.  It is pieces of the axes of a value that has one, its base, in an
 * order, and each of its axes is some of them.  A Linear and a pick are done on the base, whose samples stay in front.  Where
 * samples are the first axis again, the value is made: a Reshape, a Transpose and a Reshape, and often nothing.
 */
#include "net.h"

enum { MOST_PIECES = 12 };
typedef struct { int axis; int64_t size; } ViewPiece;   /* of the base; pieces of one axis are its factors */
typedef struct View {
    int base, n;
    ViewPiece piece[MOST_PIECES];                       /* in the order of the base; the first is the samples */
    int axis_order[MOST_PIECES];                        /* here */
    int from[MOST_DIMS + 1];                            /* axis i: those of the order behind from[i], before from[i + 1] */
} View;

static View view_of(const Net *g, int x)
{
    const NetValue *v = &g->value.at[x];
    View w = {.base = x, .n = v->dims.n};
    if (v->view)
        return *v->view;
    for (int i = 0; i < w.n; i++) {
        w.piece[i] = (ViewPiece){i, v->dims.d[i]};
        w.axis_order[i] = w.from[i] = i;
    }
    w.from[w.n] = w.n;
    return w;
}

/* The base in this order, a piece or neighbours an axis; then with axes `to` */
static int made(Net *g, const View *w, const int *order, Dims to)
{
    int64_t perm[MOST_PIECES];
    Dims d = {0};
    int start[MOST_PIECES], n = 0, axis_of[MOST_PIECES];
    for (int i = 0; i < w->n; i++)
        if (i < 2 || order[i] != order[i - 1] + 1)
            start[n++] = order[i];
    if (n > MOST_DIMS)
        net_refuse(g, "it cuts axes into more than %d", MOST_DIMS);
    for (int k = 0; k < w->n; k++) {                    /* axes of the base, each from a start to the next */
        for (int i = 0; i < n; i++)
            if (start[i] == k)
                axis_of[i] = d.n, d.d[d.n++] = 1;
        d.d[d.n - 1] *= w->piece[k].size;
    }
    bool moved = false;
    for (int i = 0; i < n; i++) {
        perm[i] = axis_of[i];
        moved |= axis_of[i] != i;
    }
    int y = moved ? ops_transpose(g, ops_reshape(g, w->base, d), perm) : w->base;
    return ops_reshape(g, y, to);
}

/* As a value: made, if its samples are in front */
static int settled(Net *g, const View *w, Dims to)
{
    bool front = w->from[1] > 0 && w->axis_order[0] == 0 && to.d[0] == g->batch;
    if (front)
        return made(g, w, w->axis_order, to);
    View *kept = COPY(w);
    NetValue v = g->value.at[w->base];
    v.dims = to;
    v.view = kept;
    *PUSH(&g->value) = v;
    return g->value.n - 1;
}

int view_transpose(Net *g, int x, const int64_t *perm)
{
    View from = view_of(g, x), to = from;
    Dims d = g->value.at[x].dims, y = d;
    int n = 0;
    for (int i = 0; i < d.n; i++) {
        y.d[i] = d.d[perm[i]];
        to.from[i] = n;
        for (int k = from.from[perm[i]]; k < from.from[perm[i] + 1]; k++)
            to.axis_order[n++] = from.axis_order[k];
    }
    to.from[d.n] = n;
    return settled(g, &to, y);
}

/* Cuts the piece at this place of the order: the first part has so many. */
static void cut(const Net *g, View *w, int place, int64_t size)
{
    int k = w->axis_order[place];
    if (w->n == MOST_PIECES || k == 0 || w->piece[k].size % size)
        net_refuse(g, "it cuts an axis in no whole parts, or that of the samples");
    for (int i = w->n; i > k + 1; i--)
        w->piece[i] = w->piece[i - 1];
    w->piece[k + 1] = (ViewPiece){w->piece[k].axis, w->piece[k].size / size};
    w->piece[k].size = size;
    for (int i = 0; i < w->n; i++)
        w->axis_order[i] += w->axis_order[i] > k;
    for (int i = w->n; i > place + 1; i--)
        w->axis_order[i] = w->axis_order[i - 1];
    w->axis_order[place + 1] = k + 1;
    w->n++;
}

int view_reshape(Net *g, int x, Dims to)
{
    View w = view_of(g, x);
    Dims d = g->value.at[x].dims;
    int at = 0;
    if (dims_elements(&d) != dims_elements(&to))
        net_refuse(g, "its result has another number of elements");
    for (int i = 0; i < to.n; i++) {
        int64_t rest = to.d[i];
        w.from[i] = at;
        for (bool one = rest == 1; at < w.n && (rest > 1 || (one && w.piece[w.axis_order[at]].size == 1)); at++) {
            if (rest % w.piece[w.axis_order[at]].size)
                cut(g, &w, at, rest);
            rest /= w.piece[w.axis_order[at]].size;
            one = false;
        }
    }
    w.from[to.n] = w.n;
    return settled(g, &w, to);
}

/* One of an axis that is the first piece of an axis of the base */
int view_pick(Net *g, int x, int64_t axis, int64_t at)
{
    View w = view_of(g, x);
    Dims d = g->value.at[x].dims, to = {0};
    int place = w.from[axis], n = 0, k = w.from[axis + 1] == place + 1 ? w.axis_order[place] : 0;
    bool first = k > 0 && at >= 0 && at < d.d[axis] && w.piece[k - 1].axis != w.piece[k].axis;
    if (!first)
        net_refuse(g, "it takes one of an axis that is in parts, or of the samples");
    int64_t rest = 1;
    for (int i = k + 1; i < w.n && w.piece[i].axis == w.piece[k].axis; i++)
        rest *= w.piece[i].size;
    w.base = ops_slice(g, w.base, w.piece[k].axis, at * rest, rest);
    for (int i = 0; i < d.n; i++)
        if (i != axis)
            to.d[to.n++] = d.d[i];
    for (int i = k; i + 1 < w.n; i++)
        w.piece[i] = w.piece[i + 1];
    for (int i = 0; i < w.n; i++)
        if (i != place)
            w.axis_order[n++] = w.axis_order[i] - (w.axis_order[i] > k);
    w.n = n;
    for (int i = (int)axis; i < d.n; i++)
        w.from[i] = w.from[i + 1] - 1;
    return settled(g, &w, to);
}

/* Element by element.  Parts of an idiom are looked for without regard to axes, and a Softmax has the last one. */
int view_unary(Net *g, const char *op, const char *attributes, int x)
{
    View w = view_of(g, x);
    if (*op == '?' || !strcmp(op, "Scale") || !strcmp(op, "Softmax"))
        net_refuse(g, "the first axis of its operand is not that of the samples");
    w.base = ops_unary(g, op, attributes, w.base);
    return settled(g, &w, g->value.at[x].dims);
}

/* Of the last axis, with samples in front: [samples, the others, last] */
int view_linear(Net *g, int x, int weight, int bias, bool turned)
{
    View w = view_of(g, x), to = {.n = 1, .piece[0] = {0, g->batch}};
    Dims d = g->value.at[x].dims, rows = {1, {g->batch}};
    int order[MOST_PIECES] = {0}, n = 1, last = w.from[d.n - 1];
    int64_t others = 1;
    for (int i = 0; i < w.n; i++) {
        int k = w.axis_order[i];
        if (k == 0 && i >= last)
            net_refuse(g, "it multiplies the axis of the samples");
        if (k > 0)
            order[n++] = k;
        if (k > 0 && i < last) {
            others *= w.piece[k].size;
            to.piece[to.n] = (ViewPiece){1, w.piece[k].size};
        }
        to.axis_order[i] = k == 0 ? 0 : to.n;
        to.n += k > 0 && i < last;
    }
    if (to.n > 1)
        rows.d[rows.n++] = others;
    rows.d[rows.n++] = d.d[d.n - 1];
    to.base = ops_linear(g, made(g, &w, order, rows), weight, bias, turned);
    const Dims *y = &g->value.at[to.base].dims;
    d.d[d.n - 1] = y->d[y->n - 1];
    to.piece[to.n] = (ViewPiece){rows.n - 1, d.d[d.n - 1]};
    memcpy(to.from, w.from, sizeof to.from);
    to.axis_order[last] = to.n++;
    to.from[d.n] = to.n;
    return settled(g, &to, d);
}
