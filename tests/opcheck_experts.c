/* SPDX-License-Identifier: Apache-2.0
 *
 * opcheck_experts.c: choice of experts, rows there and back, and their products, written down from their definitions.
 */
#include <math.h>
#include <string.h>
#include "opcheck.h"

enum { ROWS, EXPERTS, TOP, NORMALIZE, SCORES, WIDTH, KINDS, KEPT, BEST };
enum { MOST_EXPERTS = 128 };

static double odds(const Case *c, const double *x, long e)
{
    double sum = 0;
    if (c->d[SCORES])
        return 1 / (1 + exp(-x[e]));
    for (long i = 0; i < c->d[EXPERTS]; i++)
        sum += exp(x[i] - x[e]);
    return 1 / sum;
}

/* What expert e of a row is chosen by: its logit, or its probability and what corrects it. */
static double merit_of(const Case *c, const double *x, long e)
{
    return c->in[1] ? odds(c, x, e) + c->in[1]->v[e] : c->d[BEST] > 1 ? odds(c, x, e) : x[e];
}

/* How many of x[from .. until-1] are better than x[e]. */
static long rank(const double *x, long e, long from, long until)
{
    long before = 0;
    for (long i = from; i < until; i++)
        before += x[i] > x[e] || (x[i] == x[e] && i < e);
    return before;
}

/* By expert of a row: how many come before it.  The groups whose best have the largest sums are kept; experts of others are
 * behind all. */
static void places(const Case *c, const double *x, long *place)
{
    long experts = c->d[EXPERTS], groups = c->d[KINDS], size = experts / groups;
    double merit[MOST_EXPERTS], sum[MOST_EXPERTS] = {0};
    for (long e = 0; e < experts; e++)
        merit[e] = merit_of(c, x, e);
    for (long e = 0; e < experts; e++)
        sum[e / size] += rank(merit, e, e / size * size, (e / size + 1) * size) < c->d[BEST] ? merit[e] : 0;
    for (long e = 0; e < experts; e++)
        merit[e] = rank(sum, e / size, 0, groups) < c->d[KEPT] ? merit[e] : -INFINITY;
    for (long e = 0; e < experts; e++)
        place[e] = merit[e] == -INFINITY ? experts : rank(merit, e, 0, experts);
}

static void ref_route(const Case *c, double *share)
{
    long experts = c->d[EXPERTS], top = c->d[TOP];
    for (long r = 0; r < c->d[ROWS]; r++) {
        const double *x = c->in[0]->v + r * experts;
        long place[MOST_EXPERTS];
        double sum = 0;
        places(c, x, place);
        for (long e = 0; e < experts; e++)
            if (place[e] < top)
                sum += share[r * top + place[e]] = odds(c, x, e);
        for (long j = 0; j < top && c->d[NORMALIZE]; j++)
            share[r * top + j] /= sum;
    }
}

/* By the rules: sorted by expert and then by token. */
static void check_layout(const Case *c, const int32_t *expert, const int32_t *slot, const int32_t *offset)
{
    long n = c->d[ROWS] * c->d[TOP], wrong = 0;
    for (long i = 0; i < n; i++) {
        long at = 0, place[MOST_EXPERTS];
        places(c, c->in[0]->v + i / c->d[TOP] * c->d[EXPERTS], place);
        wrong += expert[i] < 0 || expert[i] >= c->d[EXPERTS] || place[expert[i]] != i % c->d[TOP];
        for (long k = 0; k < n; k++)
            at += expert[k] < expert[i] || (expert[k] == expert[i] && k < i);
        wrong += slot[i] != at;
    }
    for (long e = 0; e <= c->d[EXPERTS]; e++) {
        long at = 0;
        for (long k = 0; k < n; k++)
            at += expert[k] < e;
        wrong += offset[e] != at;
    }
    hash(expert, n, 4), hash(slot, n, 4), hash(offset, c->d[EXPERTS] + 1, 4);
    expect(wrong == 0 || hashing(), "route_forward: %ld of %ld choices, slots or offsets are wrong", wrong, n);
}

/* 0 .. n-1 in any order. */
static int32_t *shuffled(long n)
{
    int32_t *slot = ids(n, 0, 2);
    for (long i = 0; i < n; i++)
        slot[i] = (int32_t)i;
    for (long i = n - 1; i > 0; i--) {
        long k = (long)uniform(0, (double)i + 1);
        int32_t t = slot[i];
        slot[i] = slot[k], slot[k] = t;
    }
    return slot;
}

/* Logits of a row are 1/16 apart, so that no difference takes one past another. */
static Tensor *apart(long n, long experts)
{
    Tensor *x = operand(REAL, n * experts, -3, 3);
    for (long r = 0; r < n; r++) {
        const int32_t *place = shuffled(experts);
        for (long e = 0; e < experts; e++) {
            x->v[r * experts + e] = (double)(place[e] - experts / 2) / 16;
            put(x->k, r * experts + e, (float)x->v[r * experts + e]);
        }
    }
    return x;
}

/* Further apart than any probabilities, and those of groups than any experts. */
static Tensor *corrections(long experts, long groups)
{
    Tensor *x = operand(FLOAT, experts, -3, 3);
    const int32_t *place = shuffled(experts), *group = shuffled(groups);
    for (long e = 0; e < experts; e++)
        ((float *)x->k)[e] = (float)(x->v[e] = 1000.0 * group[e / (experts / groups)] + 1.5 * place[e]);
    return x;
}

/* Equal logits among them: the second case has every logit twice.  Cases behind the sixth have corrections, or groups. */
static void route(void)
{
    static const long sizes[][8] = {{1, 1, 1, 0, 0, 1, 1, 1}, {9, 6, 2, 1, 0, 1, 1, 1}, {70, 40, 3, 0, 0, 1, 1, 1},
                                    {13, 5, 5, 1, 1, 1, 1, 1}, {90, 8, 2, 1, 0, 1, 1, 1}, {7, 3, 1, 0, 1, 1, 1, 1},
                                    {9, 7, 3, 1, 1, 1, 1, 1}, {40, 12, 3, 1, 1, 4, 2, 2}, {30, 12, 2, 0, 0, 3, 1, 1},
                                    {30, 72, 5, 1, 1, 8, 3, 2}, {8, 8, 4, 0, 0, 2, 1, 2}};
    for (int s = 0; s < 11; s++) {
        const long *d = sizes[s], n = d[ROWS] * d[TOP];
        Tensor *x = apart(d[ROWS], d[EXPERTS]), *share = result(REAL, n), *dy = operand(REAL, n, -1, 1);
        Tensor *dx = result(REAL, x->n);
        int32_t *expert = ids(n, 0, 2), *slot = ids(n, 0, 2), *offset = ids(d[EXPERTS] + 1, 0, 2);
        for (long i = 1; s == 1 && i < x->n; i += 2) {
            x->v[i] = x->v[i - 1];
            put(x->k, i, (float)x->v[i]);
        }
        Tensor *correction = s == 6 || s == 7 || s == 9 ? corrections(d[EXPERTS], d[5]) : NULL;
        Case c = {.d = {d[0], d[1], d[2], d[3], d[4], 0, d[5], d[6], d[7]}, .in = {x, correction}};
        route_forward(stage, share->k, expert, slot, offset, x->k, correction ? correction->k : NULL, d[ROWS], d[EXPERTS],
                      d[TOP], d[NORMALIZE], d[SCORES], d[5], d[6], d[7]);
        check_value("route_forward", share, ref_route, &c);
        check_layout(&c, expert, slot, offset);
        route_backward(stage, dx->k, dy->k, x->k, expert, d[ROWS], d[EXPERTS], d[TOP], d[NORMALIZE], d[SCORES]);
        if (s != 1)         /* where two are equal, there is no slope */
            check_gradient("route_backward", dx, ref_route, &c, 0, dy);
        case_end();
    }
}

/* ---- rows there and back: d rows, -, top, -, -, width; ids: slots ----------------------------------------------------- */

static void ref_dispatch(const Case *c, double *y)
{
    for (long i = 0; i < c->d[ROWS] * c->d[TOP]; i++)
        memcpy(y + c->ids[i] * c->d[WIDTH], c->in[0]->v + i / c->d[TOP] * c->d[WIDTH], (size_t)c->d[WIDTH] * sizeof *y);
}

static void ref_combine(const Case *c, double *y)
{
    long width = c->d[WIDTH];
    memset(y, 0, (size_t)(c->d[ROWS] * width) * sizeof *y);
    for (long i = 0; i < c->d[ROWS] * c->d[TOP]; i++)
        for (long k = 0; k < width; k++)
            y[i / c->d[TOP] * width + k] += c->in[1]->v[i] * c->in[0]->v[c->ids[i] * width + k];
}

static void rows(void)
{
    static const long sizes[][3] = {{1, 1, 1}, {5, 2, 33}, {40, 3, 300}, {9, 1, 7}, {6, 2, 24}};
    for (int s = 0; s < 5; s++) {
        long n = sizes[s][0], top = sizes[s][1], width = sizes[s][2];
        Case c = {.d = {n, 0, top, 0, 0, width}, .ids = shuffled(n * top)};
        Tensor *x = operand(REAL, n * width, -1, 1), *wide = operand(REAL, n * top * width, -1, 1);
        Tensor *share = operand(REAL, n * top, 0, 1), *y = result(REAL, wide->n), *dx = result(REAL, x->n);
        Tensor *sum = result(REAL, x->n), *dwide = result(REAL, wide->n), *dshare = result(REAL, n * top);
        c.in[0] = x;
        dispatch_forward(stage, y->k, x->k, c.ids, n, top, width);
        check_value("dispatch_forward", y, ref_dispatch, &c);
        dispatch_backward(stage, dx->k, wide->k, c.ids, n, top, width);
        check_gradient("dispatch_backward", dx, ref_dispatch, &c, 0, wide);
        c.in[0] = wide, c.in[1] = share;
        combine_forward(stage, sum->k, wide->k, share->k, c.ids, n, top, width);
        check_value("combine_forward", sum, ref_combine, &c);
        combine_backward(stage, dwide->k, dshare->k, x->k, wide->k, share->k, c.ids, n, top, width);
        check_gradient("combine_backward", dwide, ref_combine, &c, 0, x);
        check_gradient("combine_backward share", dshare, ref_combine, &c, 1, x);
        case_end();
    }
}

/* ---- products of each expert: d experts, in, out; ids: offsets -------------------------------------------------------- */

static void ref_grouped(const Case *c, double *y)
{
    long in = c->d[1], out = c->d[2];
    for (long e = 0; e < c->d[0]; e++)
        for (long r = c->ids[e]; r < c->ids[e + 1]; r++)
            for (long o = 0; o < out; o++) {
                y[r * out + o] = c->in[2] ? c->in[2]->v[e * out + o] : 0;
                for (long i = 0; i < in; i++)
                    y[r * out + o] += c->in[0]->v[r * in + i] * c->in[1]->v[(e * out + o) * in + i];
            }
}

/* Experts without rows in front, in the middle and at the end; one with all.  Every other case has a bias. */
static void grouped(void)
{
    static const int32_t offsets[][6] = {{0, 1}, {0, 0, 7, 7, 70}, {0, 0, 0, 131, 131, 131}, {0, 3, 9}};
    static const long sizes[][4] = {{1, 1, 1, 1}, {4, 5, 33, 70}, {5, 17, 9, 131}, {2, 130, 3, 9}};
    for (int s = 0; s < 4; s++) {
        long experts = sizes[s][0], in = sizes[s][1], out = sizes[s][2], n = sizes[s][3];
        Tensor *x = operand(REAL, n * in, -1, 1), *w = operand(REAL, experts * out * in, -1, 1), *y = result(REAL, n * out);
        Tensor *dy = operand(REAL, n * out, -1, 1), *dx = result(REAL, x->n), *dw = result(FLOAT, w->n);
        Tensor *again = filled(FLOAT, w->n, 0), *bias = s % 2 ? operand(REAL, experts * out, -1, 1) : NULL;
        Tensor *db = bias ? result(FLOAT, bias->n) : NULL, *more = bias ? filled(FLOAT, bias->n, 0) : NULL;
        int32_t *offset = ids(experts + 1, 0, 2);
        memcpy(offset, offsets[s], (size_t)(experts + 1) * sizeof *offset);
        Case c = {.d = {experts, in, out}, .in = {x, w, bias}, .ids = offset};
        grouped_forward(stage, y->k, x->k, offset, w->k, bias ? bias->k : NULL, n, in, out, experts);
        check_value("grouped_forward", y, ref_grouped, &c);
        grouped_backward_x(stage, dx->k, dy->k, offset, w->k, n, in, out, experts);
        check_gradient("grouped_backward_x", dx, ref_grouped, &c, 0, dy);
        grouped_backward_w(stage, dw->k, bias ? db->k : NULL, dy->k, x->k, offset, 0, n, in, out, experts);
        check_gradient("grouped_backward_w", dw, ref_grouped, &c, 1, dy);
        memcpy(again->k, dw->k, (size_t)w->n * sizeof(float));
        if (bias) {
            check_gradient("grouped_backward_w bias", db, ref_grouped, &c, 2, dy);
            memcpy(more->k, db->k, (size_t)db->n * sizeof(float));
        }
        grouped_backward_w(stage, again->k, bias ? more->k : NULL, dy->k, x->k, offset, 1, n, in, out, experts);
        check_accumulated("grouped_backward_w acc", dw, again);
        if (bias)
            check_accumulated("grouped_backward_w bias acc", db, more);
        case_end();
    }
}

/* ---- the loss that spreads tokens; ids: experts; f: factor, micro-batches -------------------------------------------- */

static void ref_spread(const Case *c, double *loss)
{
    long n = c->d[ROWS], experts = c->d[EXPERTS], top = c->d[TOP];
    *loss = 0;
    for (long e = 0; e < experts; e++) {
        double part = 0, mean = 0;
        for (long i = 0; i < n * top; i++)
            part += c->ids[i] == e;
        for (long r = 0; r < n; r++)
            mean += odds(c, c->in[0]->v + r * experts, e) / (double)n;
        *loss += c->f[0] * (double)experts * part / (double)n * mean / c->f[1];
    }
}

static void spread(void)
{
    static const long sizes[][3] = {{1, 1, 1}, {40, 5, 2}, {3, 70, 4}};
    for (int s = 0; s < 3; s++) {
        const long *d = sizes[s];
        Values vals = {.micro = 4};
        Tensor *x = operand(REAL, d[0] * d[1], -2, 2), *loss = result(FLOAT, 1), *dloss = filled(FLOAT, 1, 0.5);
        Tensor *dx = result(REAL, x->n);
        Case c = {.d = {d[0], d[1], d[2]}, .f = {0.25, 4}, .in = {x}, .ids = ids(d[0] * d[2], 0, d[1])};
        route_loss_forward(stage, loss->k, x->k, c.ids, &vals, d[0], d[1], d[2], 0.25f);
        check_value("route_loss_forward", loss, ref_spread, &c);
        route_loss_backward(stage, dx->k, dloss->k, x->k, c.ids, &vals, d[0], d[1], d[2], 0.25f);
        check_gradient("route_loss_backward", dx, ref_spread, &c, 0, dloss);
        case_end();
    }
}

const Check expert_checks[] = {
    {" route_forward route_backward ", route},
    {" dispatch_forward dispatch_backward combine_forward combine_backward ", rows},
    {" grouped_forward grouped_backward_x grouped_backward_w ", grouped},
    {" route_loss_forward route_loss_backward ", spread},
    {NULL, NULL},
};
