/* SPDX-License-Identifier: Apache-2.0
 *
 * opcheck_eight.c: Linear with factors of 8 bits, by definition.  Operands x, weight, bias, dy.
 */
#include <math.h>
#include <string.h>
#include "eight.h"
#include "opcheck.h"
#include "rt/fp8.h"

enum { OLD = 8 };               /* steps that the history still counts */

/* x as a factor: by the history, a power of two that is `most` at least, or by its own largest where that is 0. */
static double *eight_of(const Tensor *x, double most, int five)
{
    double *v = numbers(x->n), own = 0;
    for (long i = 0; i < x->n; i++)
        own = fmax(own, fabs(x->v[i]));
    for (long i = 0; i < x->n; i++)
        v[i] = eight_rounded(x->v[i], eight_scale(most > 0 ? most : own, five), five);
    return v;
}

static void ref_eight(const Case *c, double *y)
{
    long in = c->d[1], out = c->d[2];
    double *x = eight_of(c->in[0], c->f[0], 0), *w = eight_of(c->in[1], c->f[1], 0);
    for (long i = 0; i < c->d[0] * out; i++) {
        y[i] = c->in[2] ? c->in[2]->v[i % out] : 0;
        for (long k = 0; k < in; k++)
            y[i] += x[i / out * in + k] * w[i % out * in + k];
    }
}

static void ref_eight_dx(const Case *c, double *dx)
{
    long in = c->d[1], out = c->d[2];
    double *dy = eight_of(c->in[3], c->f[2], 1), *w = eight_of(c->in[1], c->f[1], 0);
    for (long i = 0; i < c->d[0] * in; i++) {
        dx[i] = 0;
        for (long k = 0; k < out; k++)
            dx[i] += dy[i / in * out + k] * w[k * in + i % in];
    }
}

static void ref_eight_dw(const Case *c, double *dw)
{
    long in = c->d[1], out = c->d[2];
    double *dy = eight_of(c->in[3], c->f[2], 1), *x = eight_of(c->in[0], c->f[0], 0);
    for (long i = 0; i < out * in; i++) {
        dw[i] = 0;
        for (long k = 0; k < c->d[0]; k++)
            dw[i] += dy[k * out + i / in] * x[k * in + i % in];
    }
}

/* One count a micro-batch in the bin of x and of dy, and one in all in that of the weight. */
static void eight_counts(const Case *c, Tensor *got, int times)
{
    enum { BINS = 128 };
    double *want = numbers(got->n);
    for (int t = 0; t < 3; t++) {
        const Tensor *x = c->in[t == 2 ? 3 : t];
        double most = 0;
        for (long i = 0; i < x->n; i++)
            most = fmax(most, fabs(x->v[i]));
        want[t * BINS + eight_bin(most)] = t == 1 ? 1 : times;
    }
    check_values("linear_fp8_backward_w amax", got, want);
}

/* The gradient of a Gelu in the same call: what the calls apart give, bit for bit. */
static void eight_slope(const long *d, int tanh, int biased, Tensor *x, Tensor *w, Tensor *dy, Tensor *amax, Tensor *tmp)
{
    Tensor *pre = operand(REAL, dy->n, -4, 4), *dpre = result(REAL, dy->n), *to[2][4];
    for (int i = 0; i < 2; i++) {
        to[i][0] = result(REAL, x->n), to[i][1] = filled(FLOAT, w->n, 1), to[i][2] = filled(FLOAT, d[2], 1);
        to[i][3] = filled(FLOAT, 6 * 128, 1);
    }
    gelu_backward(stage, dpre->k, dy->k, pre->k, dy->n, tanh);
    linear_fp8_backward(stage, to[0][0]->k, to[0][1]->k, biased ? to[0][2]->k : 0, to[0][3]->k, dpre->k, x->k, w->k, amax->k,
                        tmp->k, 0, 0, 1, d[0], d[1], d[2]);
    gelu_linear_fp8_backward(stage, to[1][0]->k, to[1][1]->k, biased ? to[1][2]->k : 0, to[1][3]->k, dpre->k, dy->k, pre->k,
                             x->k, w->k, amax->k, tmp->k, tanh, 0, 0, 1, d[0], d[1], d[2]);
    for (int i = 0; i < 4; i++)
        same_bits("gelu_linear_fp8_backward", d[0], to[1][i], to[0][i]);
}

static void linear_eight(void)
{
    enum { BINS = 128 };
    /* The last one: its weight is larger than the others, which decides no order; rows of dy differ so much in size that sums
     * over them are rounded in bf16 too. */
    const long shapes[][3] = {{16, 16, 16}, {48, 32, 80}, {16, 208, 64}, {144, 16, 32}, {80, 112, 128}};
    const double sizes[][4] = {{0, 0, 0, 1}, {2, 1, 4e-3, 3e-3}, {0.5, 0, 0x1p-30, 1e-9}, {1, 0x1p-4, 8, 0x1p-20},
                               {2, 1, 1, 1}};
    for (int s = 0; s < 5; s++) {
        const long *d = shapes[s], scratch = d[0] * d[1] + 2 * d[0] * d[2] + d[1] * d[2] + FP8_ROOM;
        Tensor *x = operand(REAL, d[0] * d[1], -1, 1), *w = operand(REAL, d[2] * d[1], -0.1, 0.1);
        Tensor *b = s % 2 || s == 4 ? operand(REAL, d[2], -1, 1) : NULL;
        Tensor *dy = operand(REAL, d[0] * d[2], -sizes[s][3], sizes[s][3]);
        for (long i = 0; i < dy->n && s == 4; i++) {
            put(dy->k, i, ldexpf(get(dy->k, i), -(int)(i / d[2] % 13)));
            dy->v[i] = get(dy->k, i);
        }
        Tensor *y = result(REAL, dy->n), *dx = result(REAL, x->n), *dw = result(FLOAT, w->n), *again = filled(FLOAT, w->n, 0);
        Tensor *db = result(FLOAT, d[2]), *tmp = result(FLOAT, scratch / 4), *amax = filled(FLOAT, 3 * BINS, 0);
        Tensor *seen = result(FLOAT, 6 * BINS), *dx2 = result(REAL, x->n), *dw2 = result(FLOAT, w->n);
        Tensor *seen2 = result(FLOAT, 6 * BINS), *db2 = result(FLOAT, d[2]);
        Case c = {.d = {d[0], d[1], d[2]}, .f = {sizes[s][0], sizes[s][1], sizes[s][2]}, .in = {x, w, b, dy}};
        for (int t = 0; t < 3; t++)
            if (sizes[s][t] > 0)            /* and a smaller bin, which does not count */
                for (int less = 0; less < 2; less++)
                    ((float *)amax->k)[t * BINS + eight_bin(sizes[s][t]) - 5 * less] = OLD + (float)less;
        linear_fp8_forward(stage, y->k, x->k, w->k, b ? b->k : 0, amax->k, tmp->k, 0, d[0], d[1], d[2]);
        check_value("linear_fp8_forward", y, ref_eight, &c);
        linear_fp8_backward_x(stage, dx->k, dy->k, w->k, amax->k, tmp->k, 0, d[0], d[1], d[2]);
        check_value("linear_fp8_backward_x", dx, ref_eight_dx, &c);
        linear_fp8_backward_w(stage, dw->k, b ? db->k : 0, seen->k, dy->k, x->k, w->k, amax->k, tmp->k, 0, 0, d[0], d[1], d[2]);
        check_value("linear_fp8_backward_w", dw, ref_eight_dw, &c);
        if (b)
            check_gradient("linear_fp8_backward_w", db, ref_linear, &c, 2, dy);
        eight_counts(&c, seen, 1);
        linear_fp8_backward(stage, dx2->k, dw2->k, b ? db2->k : 0, seen2->k, dy->k, x->k, w->k, amax->k, tmp->k, 0, 0, 0, d[0],
                            d[1], d[2]);
        same_bits("linear_fp8_backward dx", d[0], dx2, dx);
        same_bits("linear_fp8_backward dweight", d[0], dw2, dw);
        if (b)
            same_bits("linear_fp8_backward dbias", d[0], db2, db);
        eight_counts(&c, seen2, 1);
        memcpy(again->k, dw->k, (size_t)w->n * sizeof(float));
        linear_fp8_backward_w(stage, again->k, 0, seen->k, dy->k, x->k, w->k, amax->k, tmp->k, 0, 1, d[0], d[1], d[2]);
        check_accumulated("linear_fp8_backward_w acc", dw, again);
        eight_counts(&c, seen, 2);
        linear_fp8_backward(stage, 0, 0, 0, seen2->k, dy->k, x->k, w->k, amax->k, tmp->k, 0, 0, 1, d[0], d[1], d[2]);
        eight_counts(&c, seen2, 2);
        eight_slope(d, s % 2, s != 1, x, w, dy, amax, tmp);
        case_end();
    }
}

const Check eight_checks[] = {
    {" linear_fp8_forward linear_fp8_backward_x linear_fp8_backward_w linear_fp8_backward "
     "gelu_linear_fp8_backward ", linear_eight},
    {0, 0},
};
