/* SPDX-License-Identifier: Apache-2.0
 *
 * Checks of images: Conv, MaxPool, AvgPool, BatchNorm.  See opcheck.h.
 */
#include <math.h>
#include <string.h>
#include "opcheck.h"

#ifdef FOLDS        /* the kernels of GPUs lack these operators: gen/targets.def */
static void nothing(void) {}
const Check image_checks[] = {
    {" conv_forward conv_backward_x conv_backward_w ", nothing},
    {" pool_max_forward pool_max_backward pool_avg_forward pool_avg_backward ", nothing},
    {" batchstat_forward batchstat_track batch_track batchnorm_forward batchnorm_backward ", nothing},
    {NULL, NULL},
};
#else

/* batch height width in; yheight ywidth out; kheight kwidth; stride top left dilate groups */
enum { B, H, W, C, Y, X, O, KH, KW, S, TOP, LEFT, D, G, SIZES };
#define CONV(d) d[B], d[H], d[W], d[C], d[Y], d[X], d[O], d[KH], d[KW], d[S], d[TOP], d[LEFT], d[D], d[G]
#define POOL(d) d[B], d[H], d[W], d[C], d[Y], d[X], d[KH], d[KW], d[S], d[TOP], d[LEFT]

static const long shapes[][SIZES] = {
    {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 0, 0, 1, 1},
    {2, 7, 5, 3, 7, 5, 4, 3, 3, 1, 1, 1, 1, 1},
    {1, 9, 8, 5, 5, 4, 33, 3, 2, 2, 1, 0, 1, 1},
    {2, 8, 11, 6, 3, 4, 9, 3, 3, 3, 1, 2, 1, 3},            /* groups, a stride as large as the kernel */
    {1, 12, 10, 4, 8, 6, 8, 3, 3, 1, 0, 0, 2, 4},           /* dilated, depthwise */
    {2, 6, 6, 130, 3, 3, 35, 1, 1, 2, 0, 0, 1, 1},          /* a block of channels is not the last */
    {2, 6, 6, 7, 3, 3, 5, 1, 1, 2, -1, -1, 1, 1},           /* begins one pixel further */
    {1, 40, 9, 3, 20, 9, 2, 5, 1, 2, 2, 0, 1, 1},
    {1, 3, 300, 2, 2, 149, 3, 2, 5, 2, 0, 1, 1, 1},         /* a line longer than a block */
    {1, 9, 10, 4, 9, 10, 20, 7, 7, 1, 3, 3, 1, 1},
};
enum { SHAPES = sizeof shapes / sizeof *shapes };

static void ref_conv(const Case *c, double *y)
{
    const long *d = c->d, in = d[C] / d[G], out = d[O] / d[G];
    for (long i = 0; i < d[B] * d[Y] * d[X] * d[O]; i++) {
        long o = i % d[O], column = i / d[O] % d[X], row = i / d[O] / d[X] % d[Y], sample = i / d[O] / d[X] / d[Y];
        y[i] = c->in[2] ? c->in[2]->v[o] : 0;
        for (long k = 0; k < in * d[KH] * d[KW]; k++) {
            long h = row * d[S] - d[TOP] + k / d[KW] % d[KH] * d[D], w = column * d[S] - d[LEFT] + k % d[KW] * d[D];
            long channel = o / out * in + k / d[KW] / d[KH];
            if (h >= 0 && h < d[H] && w >= 0 && w < d[W])
                y[i] += c->in[0]->v[((sample * d[H] + h) * d[W] + w) * d[C] + channel] *
                        c->in[1]->v[o * in * d[KH] * d[KW] + k];
        }
    }
}

static void conv(void)
{
    for (int s = 0; s < SHAPES; s++) {
        const long *d = shapes[s];
        Tensor *x = operand(REAL, d[B] * d[H] * d[W] * d[C], -1, 1);
        Tensor *w = operand(REAL, d[O] * d[C] / d[G] * d[KH] * d[KW], -1, 1), *b = s % 2 ? operand(REAL, d[O], -1, 1) : NULL;
        Tensor *y = result(REAL, d[B] * d[Y] * d[X] * d[O]), *dy = operand(REAL, y->n, -1, 1), *dx = result(REAL, x->n);
        Tensor *dw = result(FLOAT, w->n), *db = result(FLOAT, d[O]), *dw2 = filled(FLOAT, w->n, 0);
        Tensor *db2 = filled(FLOAT, d[O], 0);
        Case c = {.in = {x, w, b}};
        memcpy(c.d, d, sizeof *shapes);
        conv_forward(stage, y->k, x->k, w->k, b ? b->k : 0, CONV(d));
        check_value("conv_forward", y, ref_conv, &c);
        conv_backward_x(stage, dx->k, dy->k, w->k, CONV(d));
        check_gradient("conv_backward_x", dx, ref_conv, &c, 0, dy);
        conv_backward_w(stage, dw->k, b ? db->k : 0, dy->k, x->k, 0, CONV(d));
        check_gradient("conv_backward_w", dw, ref_conv, &c, 1, dy);
        memcpy(dw2->k, dw->k, (size_t)w->n * sizeof(float));
        memcpy(db2->k, db->k, (size_t)d[O] * sizeof(float));
        conv_backward_w(stage, dw2->k, b ? db2->k : 0, dy->k, x->k, 1, CONV(d));
        check_accumulated("conv_backward_w acc", dw, dw2);
        if (b) {
            check_gradient("conv_backward_w", db, ref_conv, &c, 2, dy);
            check_accumulated("conv_backward_w acc", db, db2);
        }
        case_end();
    }
}

/* The written order of a chain: kernel rows, kernel columns, channels; bias to the finished chain.  Bits, in float. */
static void conv_chain(void)
{
    const long *d = shapes[1];
    Tensor *x = operand(REAL, d[B] * d[H] * d[W] * d[C], -1, 1), *w = operand(REAL, d[O] * d[C] * d[KH] * d[KW], -1, 1);
    Tensor *b = operand(REAL, d[O], -1, 1), *y = result(REAL, d[B] * d[Y] * d[X] * d[O]);
    conv_forward(stage, y->k, x->k, w->k, b->k, CONV(d));
    read_back(y);
    for (long i = 0; i < y->n && !hashing(); i++) {
        long o = i % d[O], column = i / d[O] % d[X], row = i / d[O] / d[X] % d[Y], sample = i / d[O] / d[X] / d[Y];
        volatile float sum = 0, term;
        for (long k = 0; k < 9 * d[C]; k++) {
            long h = row + k / d[C] / 3 - 1, v = column + k / d[C] % 3 - 1, channel = k % d[C];
            if (h < 0 || h >= d[H] || v < 0 || v >= d[W])
                continue;
            term = (float)x->v[((sample * d[H] + h) * d[W] + v) * d[C] + channel] *
                   (float)w->v[(o * d[C] + channel) * 9 + k / d[C]];
            sum = sum + term;
        }
        sum = sum + (float)b->v[o];
        real want[1];
        put(want, 0, sum);
        double chain = get(want, 0);
        expect(chain == y->v[i], "conv_forward: [%ld] is %.9g, the chain is %.9g", i, y->v[i], chain);
    }
    case_end();
}

/* One pixel of a window, or false outside. */
static int in_window(const Case *c, long i, long k, long *at)
{
    const long *d = c->d;
    long channel = i % d[C], column = i / d[C] % d[X], row = i / d[C] / d[X] % d[Y], sample = i / d[C] / d[X] / d[Y];
    long h = row * d[S] - d[TOP] + k / d[KW], w = column * d[S] - d[LEFT] + k % d[KW];
    *at = ((sample * d[H] + h) * d[W] + w) * d[C] + channel;
    return h >= 0 && h < d[H] && w >= 0 && w < d[W];
}

static void ref_avg(const Case *c, double *y)
{
    const long *d = c->d;
    for (long i = 0, at; i < d[B] * d[Y] * d[X] * d[C]; i++) {
        double sum = 0, n = 0;
        for (long k = 0; k < d[KH] * d[KW]; k++)
            if (in_window(c, i, k, &at))
                sum += c->in[0]->v[at], n++;
        y[i] = sum / (d[SIZES] ? (double)(d[KH] * d[KW]) : n);
    }
}

static const long pools[][SIZES] = {
    {1, 1, 1, 1, 1, 1, 0, 1, 1, 1, 0, 0, 1, 1}, {2, 8, 6, 5, 4, 3, 0, 2, 2, 2, 0, 0, 1, 1},
    {2, 9, 7, 70, 5, 4, 0, 3, 3, 2, 1, 1, 1, 1}, {1, 6, 9, 3, 6, 9, 0, 3, 3, 1, 1, 1, 1, 1},
    {1, 7, 7, 4, 4, 4, 0, 2, 2, 2, 0, 0, 1, 1},             /* ceil: the last windows are half outside */
    {1, 10, 10, 4, 3, 3, 0, 2, 2, 4, 0, 0, 1, 1},           /* pixels that no window has */
};
enum { POOLS = sizeof pools / sizeof *pools };

static void pool_avg(void)
{
    for (int s = 0; s < POOLS; s++)
        for (long pad = 0; pad < 2; pad++) {
            const long *d = pools[s];
            Tensor *x = operand(REAL, d[B] * d[H] * d[W] * d[C], -1, 1), *y = result(REAL, d[B] * d[Y] * d[X] * d[C]);
            Tensor *dy = operand(REAL, y->n, -1, 1), *dx = result(REAL, x->n);
            Case c = {.in = {x}};
            memcpy(c.d, d, sizeof *pools);
            c.d[SIZES] = pad;
            pool_avg_forward(stage, y->k, x->k, POOL(d), pad);
            check_value("pool_avg_forward", y, ref_avg, &c);
            pool_avg_backward(stage, dx->k, dy->k, POOL(d), pad);
            check_gradient("pool_avg_backward", dx, ref_avg, &c, 0, dy);
            case_end();
        }
}

/* Values with many equal ones: which is the first shows.  The gradient by its definition, window after window. */
static void pool_max(void)
{
    for (int s = 0; s < POOLS; s++) {
        const long *d = pools[s];
        Tensor *x = operand(REAL, d[B] * d[H] * d[W] * d[C], -1, 1), *y = result(REAL, d[B] * d[Y] * d[X] * d[C]);
        Tensor *dy = operand(REAL, y->n, -1, 1), *dx = result(REAL, x->n);
        double *want = numbers(y->n), *back = numbers(x->n);
        Case c = {.in = {x}};
        memcpy(c.d, d, sizeof *pools);
        for (long i = 0; i < x->n; i++) {
            x->v[i] = floor(x->v[i] * 3);
            put(x->k, i, (float)x->v[i]);
        }
        for (long i = 0, at; i < y->n; i++) {
            long first = -1;
            for (long k = 0; k < d[KH] * d[KW]; k++)
                if (in_window(&c, i, k, &at) && (first < 0 || x->v[at] > x->v[first]))
                    first = at;
            want[i] = x->v[first];
            back[first] += dy->v[i];
        }
        pool_max_forward(stage, y->k, x->k, POOL(d));
        check_values("pool_max_forward", y, want);
        pool_max_backward(stage, dx->k, dy->k, x->k, POOL(d));
        check_values("pool_max_backward", dx, back);
        case_end();
    }
}

/* ---- BatchNorm over x[rows width] ---------------------------------------------------------------------------------------- */

enum { ROWS, WIDTH };
static const double eps = 1e-3;

static void statistics(const double *x, long rows, long width, double *mean, double *var)
{
    for (long c = 0; c < width; c++) {
        mean[c] = var[c] = 0;
        for (long r = 0; r < rows; r++)
            mean[c] += x[r * width + c] / (double)rows;
        for (long r = 0; r < rows; r++)
            var[c] += (x[r * width + c] - mean[c]) * (x[r * width + c] - mean[c]) / (double)rows;
    }
}

/* in: x weight bias; the statistics are x's own */
static void ref_batch_norm(const Case *c, double *y)
{
    long rows = c->d[ROWS], width = c->d[WIDTH];
    double *mean = c->row, *var = c->row + width;
    statistics(c->in[0]->v, rows, width, mean, var);
    for (long i = 0; i < rows * width; i++)
        y[i] = (c->in[0]->v[i] - mean[i % width]) / sqrt(var[i % width] + eps) * c->in[1]->v[i % width] +
               c->in[2]->v[i % width];
}

static void batch_norm(void)
{
    static const long sizes[][2] = {{2, 1}, {9, 3}, {37, 16}, {300, 5}, {700, 19}, {24, 40}};
    for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++) {
        long rows = sizes[s][ROWS], width = sizes[s][WIDTH];
        Tensor *x = operand(REAL, rows * width, -1, 2), *w = operand(FLOAT, width, 0.5, 1.5), *b = operand(FLOAT, width, -1, 1);
        Tensor *mean = result(FLOAT, width), *var = result(FLOAT, width), *y = result(REAL, x->n), *dx = result(REAL, x->n);
        Tensor *dy = operand(REAL, x->n, -1, 1), *dw = result(FLOAT, width), *db = result(FLOAT, width);
        Tensor *dw2 = filled(FLOAT, width, 0), *db2 = filled(FLOAT, width, 0);
        double *want = numbers(2 * width);
        Case c = {.d = {rows, width}, .in = {x, w, b}, .row = numbers(2 * width)};
        batchstat_forward(stage, mean->k, var->k, x->k, w->k, b->k, &c.vals, rows, width);
        statistics(x->v, rows, width, want, want + width);
        check_values("batchstat_forward", mean, want);
        check_values("batchstat_forward", var, want + width);
        batchnorm_forward(stage, y->k, x->k, mean->k, var->k, w->k, b->k, rows, width, (float)eps);
        check_value("batchnorm_forward", y, ref_batch_norm, &c);
        batchnorm_backward(stage, dx->k, dw->k, db->k, dy->k, x->k, mean->k, var->k, w->k, 0, rows, width, (float)eps);
        check_gradient("batchnorm_backward", dx, ref_batch_norm, &c, 0, dy);
        check_gradient("batchnorm_backward", dw, ref_batch_norm, &c, 1, dy);
        check_gradient("batchnorm_backward", db, ref_batch_norm, &c, 2, dy);
        memcpy(dw2->k, dw->k, (size_t)width * sizeof(float));
        memcpy(db2->k, db->k, (size_t)width * sizeof(float));
        batchnorm_backward(stage, 0, dw2->k, db2->k, dy->k, x->k, mean->k, var->k, w->k, 1, rows, width, (float)eps);
        check_accumulated("batchnorm_backward acc", dw, dw2);
        check_accumulated("batchnorm_backward acc", db, db2);
        case_end();
    }
}

/* In an evaluation: the running statistics, whatever x is. */
static void evaluation(void)
{
    Tensor *x = operand(REAL, 60, -1, 1), *m = operand(FLOAT, 6, -1, 1), *v = operand(FLOAT, 6, 0, 1);
    Tensor *mean = result(FLOAT, 6), *var = result(FLOAT, 6);
    Values vals = {.eval = 1};
    batchstat_forward(stage, mean->k, var->k, x->k, m->k, v->k, &vals, 10, 6);
    check_values("batchstat_forward", mean, m->v);
    check_values("batchstat_forward", var, v->v);
    case_end();
}

/* Six micro-batches in two groups.  The definition of `step` is one batch of all rows, that of `micro` a moving average over
 * micro-batches; both take the variance with n/(n-1).  `far` is the mean, against a deviation near 1. */
static void follow(long each, double far)
{
    enum { MICRO = 6, N = 50, C = 18 };
    Tensor *x = operand(FLOAT, MICRO * N * C, far - 2, far + 2), *m = operand(FLOAT, C, -1, 1), *v = operand(FLOAT, C, 0, 1);
    Tensor *mean = result(FLOAT, C), *var = result(FLOAT, C), *count = filled(FLOAT, 1, 7), *sum[2][3];
    double *all = numbers(2 * C), *want = numbers(2 * C), momentum = 0.25, seven = each ? 13 : 8;
    Values vals = {.micro = MICRO};
    for (int k = 0; k < 6; k++)
        sum[k / 3][k % 3] = result(FLOAT, k % 3 == 2 ? 2 : 2 * C);
    memcpy(want, m->v, C * sizeof *want);
    memcpy(want + C, v->v, C * sizeof *want);
    for (int mb = 0; mb < MICRO; mb++) {
        Tensor **to = sum[mb / 3];
        double *now = numbers(2 * C);
        statistics(x->v + mb * N * C, N, C, now, now + C);
        for (int i = 0; i < C; i++) {
            ((float *)mean->k)[i] = (float)now[i];
            ((float *)var->k)[i] = (float)now[C + i];
            want[i] += each ? momentum * (now[i] - want[i]) : 0;
            want[C + i] += each ? momentum * (now[C + i] * N / (N - 1) - want[C + i]) : 0;
        }
        batchstat_track(stage, to[0]->k, to[1]->k, to[2]->k, mean->k, var->k, &vals, mb, mb % 3 > 0, N, C, (float)momentum,
                        each);
    }
    statistics(x->v, MICRO * N, C, all, all + C);
    for (int i = 0; i < C && !each; i++) {
        want[i] += momentum * (all[i] - want[i]);
        want[C + i] += momentum * (all[C + i] * MICRO * N / (MICRO * N - 1) - want[C + i]);
    }
    for (int k = 0; k < 3; k++)
        group_fold(stage, sum[0][k]->k, sum[1][k]->k, sum[0][k]->n);
    batch_track(stage, m->k, v->k, count->k, sum[0][0]->k, sum[0][1]->k, sum[0][2]->k, N, C, (float)momentum, each);
    check_values("batch_track", m, want);
    check_values("batch_track", v, want + C);
    check_values("batch_track", count, &seven);
    case_end();
}

static void running(void)
{
    for (long each = 0; each < 2; each++) {
        follow(each, 0);
        follow(each, 300);
    }
}

const Check image_checks[] = {
    {" batchstat_forward batchnorm_forward batchnorm_backward ", batch_norm},
    {" batchstat_track batch_track ", running},
    {" batchstat_forward ", evaluation},
    {" conv_forward conv_backward_x conv_backward_w ", conv},
    {" conv_forward ", conv_chain},
    {" pool_avg_forward pool_avg_backward ", pool_avg},
    {" pool_max_forward pool_max_backward ", pool_max},
    {NULL, NULL},
};
#endif
