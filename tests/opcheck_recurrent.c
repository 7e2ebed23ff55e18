/* SPDX-License-Identifier: Apache-2.0
 *
 * opcheck_recurrent.c: an LSTM's steps, and additive scores, written down from their definitions.
 */
#include <math.h>
#include <string.h>
#include "opcheck.h"
#include "rt/philox.h"

/* ---- LSTM: operands x, weight, bias ---------------------------------------------------------------------------------- */

enum { BATCH, TIME, HIDDEN, REVERSE, MOST = 20 };

static double bent(double x) { return 1 / (1 + exp(-x)); }

/* What is left of element i of the weight, of a case with f[0] dropped. */
static double factor(const Case *c, long i)
{
    Philox r = philox((Philox){{(uint32_t)(i / 4), (uint32_t)c->mb, (uint32_t)c->vals.step, 0}}, (uint32_t)c->vals.seed,
                      (uint32_t)c->site);
    return c->f[0] == 0 || c->vals.eval ? 1 : (double)r.v[i % 4] / 4294967296.0 >= c->f[0] ? 1 / (1 - c->f[0]) : 0;
}

/* One sample: the state of one unit needs those of all units a step before. */
static void ref_sample(const Case *c, long b, double *y)
{
    long time = c->d[TIME], hidden = c->d[HIDDEN];
    double h[MOST] = {0}, cell[MOST] = {0}, next[MOST], w[4 * MOST * MOST];
    for (long i = 0; i < 4 * hidden * hidden; i++)
        w[i] = c->in[1]->v[i] * factor(c, i);
    for (long n = 0; n < time; n++) {
        long at = b * time + (c->d[REVERSE] ? time - 1 - n : n);
        memset(y + at * hidden, 0, (size_t)hidden * sizeof *y);
        if (c->ids && !c->ids[at])
            continue;
        for (long u = 0; u < hidden; u++) {
            double z[4];
            for (long k = 0; k < 4; k++) {
                z[k] = c->in[0]->v[(at * 4 + k) * hidden + u] + (c->in[2] ? c->in[2]->v[k * hidden + u] : 0);
                for (long j = 0; j < hidden; j++)
                    z[k] += w[(k * hidden + u) * hidden + j] * h[j];
            }
            cell[u] = bent(z[1]) * cell[u] + bent(z[0]) * tanh(z[2]);
            next[u] = y[at * hidden + u] = bent(z[3]) * tanh(cell[u]);
        }
        memcpy(h, next, sizeof h);
    }
}

static void ref_recur(const Case *c, double *y)
{
    for (long b = 0; b < c->d[BATCH]; b++)
        ref_sample(c, b, y);
}

/* The gradient of the weight (hidden columns), or of the bias (0), from the dx and y that were computed: in bf16 these are
 * rounded, so that differences of the definition are too far away. */
static const double *of_rows(const Case *c, const Tensor *dx, const Tensor *y, long columns)
{
    long time = c->d[TIME], hidden = c->d[HIDDEN], wide = columns ? columns : 1;
    double *want = numbers(4 * hidden * wide);
    memset(want, 0, (size_t)(4 * hidden * wide) * sizeof *want);
    for (long b = 0; b < c->d[BATCH]; b++) {
        const double *h = NULL;
        for (long n = 0; n < time; n++) {
            long at = b * time + (c->d[REVERSE] ? time - 1 - n : n);
            for (long i = 0; i < 4 * hidden * wide; i++)
                want[i] += dx->v[at * 4 * hidden + i / wide] * (!columns ? 1 : h ? h[i % wide] : 0);
            h = c->ids && !c->ids[at] ? h : y->v + at * hidden;
        }
    }
    for (long i = 0; columns && i < 4 * hidden * hidden; i++)
        want[i] *= factor(c, i);
    return want;
}

/* Holes in the middle, at the end, and a sample without any step. */
static const struct { long d[4]; int mask, bias, eval; float drop; } recurs[] = {
    {{1, 1, 1, 0}, 0, 1, 0, 0}, {{3, 5, 7, 0}, 0, 1, 0, 0}, {{3, 5, 7, 1}, 0, 0, 0, 0}, {{4, 6, 9, 0}, 1, 1, 0, 0},
    {{4, 6, 9, 1}, 1, 1, 0, 0}, {{67, 3, 17, 0}, 1, 0, 0, 0}, {{3, 5, 7, 0}, 0, 1, 0, 0.5f}, {{4, 6, 9, 1}, 1, 1, 0, 0.25f},
    {{2, 3, 17, 0}, 0, 1, 1, 0.5f},
};

static void recur(void)
{
    for (size_t i = 0; i < sizeof recurs / sizeof *recurs; i++) {
        const long *d = recurs[i].d, rows = d[BATCH] * d[TIME], n = rows * d[HIDDEN];
        Tensor *x = operand(REAL, 4 * n, -2, 2), *w = operand(REAL, 4 * d[HIDDEN] * d[HIDDEN], -0.7, 0.7);
        Tensor *bias = recurs[i].bias ? operand(REAL, 4 * d[HIDDEN], -1, 1) : NULL, *dy = operand(REAL, n, -1, 1);
        Tensor *y = result(REAL, n), *cell = result(FLOAT, n), *gates = result(REAL, 4 * n), *dx = result(REAL, 4 * n);
        Tensor *dw = result(FLOAT, w->n), *db = result(FLOAT, 4 * d[HIDDEN]);
        Tensor *tmp = result(FLOAT, 5 * d[BATCH] * d[HIDDEN] + n + w->n);
        Case c = {.d = {d[0], d[1], d[2], d[3]}, .f = {recurs[i].drop}, .mb = (int)i, .site = 1234, .in = {x, w, bias}};
        c.vals = (Values){.seed = 7, .step = 5, .eval = recurs[i].eval};
        int32_t *mask = recurs[i].mask ? ids(rows, 0, 3) : NULL;
        for (long t = 0; mask && t < d[TIME]; t++)
            mask[t] = 0;
        c.ids = mask;
        recur_forward(stage, y->k, cell->k, gates->k, x->k, mask, w->k, bias ? bias->k : 0, tmp->k, &c.vals,
                      c.mb, 0, d[0], d[1], d[2], d[3], recurs[i].drop, c.site);
        check_value("recur_forward", y, ref_recur, &c);
        recur_backward(stage, dx->k, dy->k, cell->k, gates->k, mask, w->k, tmp->k, &c.vals, c.mb, d[0], d[1], d[2],
                       d[3], recurs[i].drop, c.site);
        check_gradient("recur_backward", dx, ref_recur, &c, 0, dy);
        recur_backward_w(stage, dw->k, bias ? db->k : 0, dx->k, y->k, mask, tmp->k, &c.vals, c.mb, 0, d[0], d[1], d[2],
                         d[3], recurs[i].drop, c.site);
        if (sizeof(real) == sizeof(float))
            check_gradient("recur_backward_w", dw, ref_recur, &c, 1, dy);
        check_values("recur_backward_w from dx", dw, of_rows(&c, dx, y, d[HIDDEN]));
        Tensor *dw2 = filled(FLOAT, dw->n, 0), *db2 = filled(FLOAT, db->n, 0);
        memcpy(dw2->k, dw->k, (size_t)dw->n * sizeof(float));
        if (bias) {
            if (sizeof(real) == sizeof(float))
                check_gradient("recur_backward_w bias", db, ref_recur, &c, 2, dy);
            check_values("recur_backward_w bias from dx", db, of_rows(&c, dx, y, 0));
            memcpy(db2->k, db->k, (size_t)db->n * sizeof(float));
        }
        recur_backward_w(stage, dw2->k, bias ? db2->k : 0, dx->k, y->k, mask, tmp->k, &c.vals, c.mb, 1, d[0], d[1],
                         d[2], d[3], recurs[i].drop, c.site);
        check_accumulated("recur_backward_w acc", dw, dw2);
        if (bias)
            check_accumulated("recur_backward_w acc bias", db, db2);
        case_end();
    }
}

/* ---- additive scores: operands q, k, linear_att, normalize_scalar, normalize_bias -------------------------------------- */

enum { A_BATCH, A_QUERY, A_KEY, A_WIDTH };

static void ref_additive(const Case *c, double *y)
{
    long query = c->d[A_QUERY], key = c->d[A_KEY], width = c->d[A_WIDTH];
    const double *a = c->in[2]->v;
    double square = 0;
    for (long i = 0; i < width; i++)
        square += a[i] * a[i];
    for (long r = 0; r < c->d[A_BATCH] * query * key; r++) {
        long s = r % key, b = r / key / query, row = r / key;
        y[r] = c->ids && !c->ids[b * key + s] ? -65504 : 0;
        for (long i = 0; i < width && y[r] > -65504; i++)
            y[r] += c->in[3]->v[0] * a[i] / sqrt(square) *
                tanh(c->in[0]->v[row * width + i] + c->in[1]->v[(b * key + s) * width + i] + c->in[4]->v[i]);
    }
}

static void additive(void)
{
    static const long sizes[][5] = {{1, 1, 1, 1, 0}, {2, 3, 5, 7, 1}, {3, 4, 2, 33, 1}, {1, 5, 3, 300, 0}};
    for (int s = 0; s < 4; s++) {
        const long *d = sizes[s], width = d[A_WIDTH];
        Tensor *q = operand(REAL, d[0] * d[1] * width, -1, 1), *k = operand(REAL, d[0] * d[2] * width, -1, 1);
        Tensor *a = operand(FLOAT, width, -1, 1), *scale = operand(FLOAT, 1, 0.5, 2), *bias = operand(FLOAT, width, -1, 1);
        Tensor *y = result(REAL, d[0] * d[1] * d[2]), *dy = operand(REAL, y->n, -1, 1), *dq = result(REAL, q->n);
        Tensor *dk = result(REAL, k->n), *da = result(FLOAT, width), *ds = result(FLOAT, 1), *db = result(FLOAT, width);
        Tensor *tmp = result(FLOAT, (2 + 2 * d[0] * d[1] + d[0] * d[2]) * width + 64);
        Case c = {.d = {d[0], d[1], d[2], width}, .in = {q, k, a, scale, bias}, .ids = d[4] ? ids(d[0] * d[2], 0, 3) : NULL};
        additive_forward(stage, y->k, q->k, k->k, c.ids, a->k, scale->k, bias->k, tmp->k, d[0], d[1], d[2], width);
        check_value("additive_forward", y, ref_additive, &c);
        additive_backward(stage, dq->k, dk->k, da->k, ds->k, db->k, dy->k, q->k, k->k, c.ids, a->k, scale->k, bias->k, tmp->k,
                          0, d[0], d[1], d[2], width);
        check_gradient("additive_backward dq", dq, ref_additive, &c, 0, dy);
        check_gradient("additive_backward dk", dk, ref_additive, &c, 1, dy);
        if (width > 1)      /* else a / |a| is its sign: nothing to compare with */
            check_gradient("additive_backward linear_att", da, ref_additive, &c, 2, dy);
        check_gradient("additive_backward scalar", ds, ref_additive, &c, 3, dy);
        check_gradient("additive_backward bias", db, ref_additive, &c, 4, dy);
        Tensor *again[3] = {filled(FLOAT, width, 0), filled(FLOAT, 1, 0), filled(FLOAT, width, 0)}, *first[3] = {da, ds, db};
        for (int i = 0; i < 3; i++)
            memcpy(again[i]->k, first[i]->k, (size_t)first[i]->n * sizeof(float));
        additive_backward(stage, dq->k, dk->k, again[0]->k, again[1]->k, again[2]->k, dy->k, q->k, k->k, c.ids, a->k, scale->k,
                          bias->k, tmp->k, 1, d[0], d[1], d[2], width);
        for (int i = width == 1; i < 3; i++)
            check_accumulated("additive_backward acc", first[i], again[i]);
        case_end();
    }
}

const Check recurrent_checks[] = {
    {" recur_forward recur_backward recur_backward_w ", recur},
    {" additive_forward additive_backward ", additive},
    {NULL, NULL},
};
