/* SPDX-License-Identifier: Apache-2.0
 *
 * Checks of images: Conv, MaxPool, AvgPool, BatchNorm, operands repeated in the middle.  See opcheck.h.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "opcheck.h"

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
    {1, 5, 4, 35, 5, 4, 37, 1, 1, 1, 0, 0, 1, 1},           /* a product of pixels */
    {1, 26, 25, 21, 26, 25, 52, 1, 1, 1, 0, 0, 1, 1},       /* more pixels than are taken at once: few channels of x */
    {1, 7, 75, 48, 7, 75, 16, 1, 1, 1, 0, 0, 1, 1},         /* ... of y */
    {2, 3, 2, 5, 5, 4, 4, 1, 1, 1, 1, 1, 1, 1},             /* none: pads */
    {2, 9, 11, 37, 9, 11, 37, 3, 3, 1, 1, 1, 1, 37},        /* single channels: a tail of vectors */
    {1, 8, 13, 70, 4, 7, 70, 5, 5, 2, 2, 2, 1, 70},         /* two tasks, a stride, columns of the kernel that are left */
    {1, 9, 13, 34, 5, 7, 34, 3, 3, 2, 1, 1, 1, 34},         /* pixels that read every second column */
    {1, 7, 9, 18, 7, 9, 18, 5, 5, 1, 2, 2, 1, 18},
    {1, 5, 13, 18, 5, 13, 18, 7, 7, 1, 3, 3, 1, 18},
    {2, 5, 12, 16, 5, 12, 16, 2, 7, 1, 1, 6, 2, 16},        /* dilated: the first tap of a line is never inside */
    {1, 7, 19, 65, 3, 7, 65, 3, 4, 3, 0, 2, 1, 65},
    {1, 6, 9, 33, 4, 7, 33, 3, 3, 1, 0, 0, 1, 33},
    {1, 2, 3, 9, 5, 5, 9, 2, 2, 2, 4, 4, 2, 9},             /* windows that are wholly outside */
    {1, 3, 20, 4, 3, 20, 4, 1, 17, 1, 0, 8, 1, 4},          /* too wide a kernel for a reach */
    {1, 4, 5, 8, 4, 5, 16, 3, 3, 1, 1, 1, 1, 8},            /* two results of a channel */
    {1, 2, 3, 1400, 2, 3, 3, 3, 3, 1, 1, 1, 1, 1},          /* weights that are not packed at once */
    {1, 2, 3, 800, 2, 3, 3, 3, 3, 1, 1, 1, 1, 1},           /* weights that are, of more channels than are taken at once */
    {1, 3, 2, 3, 3, 2, 800, 2, 3, 1, 1, 1, 1, 1},           /* ... in the gradient of x */
    {1, 4, 5, 70, 4, 5, 4, 3, 3, 1, 1, 1, 1, 1},            /* blocks of channels, each with its taps */
    {1, 3, 4, 2, 3, 4, 2, 17, 17, 1, 8, 8, 1, 1},           /* some taps of a channel */
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
        conv_forward(stage, y->k, x->k, w->k, b ? b->k : 0, 0, CONV(d));
        check_value("conv_forward", y, ref_conv, &c);
        conv_backward_x(stage, dx->k, dy->k, w->k, 0, CONV(d));
        check_gradient("conv_backward_x", dx, ref_conv, &c, 0, dy);
        conv_backward_w(stage, dw->k, b ? db->k : 0, dy->k, x->k, 0, 0, CONV(d));
        check_gradient("conv_backward_w", dw, ref_conv, &c, 1, dy);
        memcpy(dw2->k, dw->k, (size_t)w->n * sizeof(float));
        memcpy(db2->k, db->k, (size_t)d[O] * sizeof(float));
        conv_backward_w(stage, dw2->k, b ? db2->k : 0, dy->k, x->k, 0, 1, CONV(d));
        check_accumulated("conv_backward_w acc", dw, dw2);
        if (b) {
            check_gradient("conv_backward_w", db, ref_conv, &c, 2, dy);
            check_accumulated("conv_backward_w acc", db, db2);
        }
        case_end();
    }
}

/* Results have the bits of their chains, and 0 is added where no bias is.  `apart`: those that they may have instead. */
static void chain_bits(const char *name, const Tensor *t, const float *chain, const float *apart, const Tensor *bias)
{
    for (long i = 0; i < t->n && !hashing(); i++) {
        float add = bias ? (float)bias->v[i % bias->n] : 0, got = (float)t->v[i], want[2] = {chain[i], apart[i]};
        int same = 0;
        for (int k = 0; k < 2; k++) {
            real rounded[1];
            put(rounded, 0, want[k] + add);
            if (t->type == REAL)
                want[k] = get(rounded, 0);
            same |= got == want[k] && !signbit(got) == !signbit(want[k]);
        }
        expect(same, "%s: [%ld] is %.9g, the chain is %.9g", name, i, got, want[0]);
    }
}

/* The chains of a shape, as docs/bits.md has them, in bits.  With numbers up to `most` whose products vanish a chain may end at
 * -0: that of y and of dx then gets 0, that of dweight stays.  A compiler may leave steps of kernels of GPUs apart. */
static void conv_bits(const long *d, double most)
{
    long in = d[C] / d[G], out = d[O] / d[G], taps = d[KH] * d[KW], pixels = d[Y] * d[X];
    Tensor *x = operand(REAL, d[B] * d[H] * d[W] * d[C], -most, most), *w = operand(REAL, d[O] * in * taps, -most, most);
    Tensor *b = most < 1 ? NULL : operand(REAL, d[O], -1, 1), *y = result(REAL, d[B] * pixels * d[O]);
    Tensor *dy = operand(REAL, y->n, -most, most), *dx = result(REAL, x->n), *dw = result(FLOAT, w->n);
    float *sum = calloc((size_t)(2 * y->n + x->n + w->n), sizeof *sum), *sumx = sum + y->n, *sumw = sumx + x->n;
    float *apart = sumw + w->n;
    conv_forward(stage, y->k, x->k, w->k, b ? b->k : 0, 0, CONV(d));
    conv_backward_x(stage, dx->k, dy->k, w->k, 0, CONV(d));
    conv_backward_w(stage, dw->k, 0, dy->k, x->k, 0, 0, CONV(d));
    read_back(y), read_back(dx), read_back(dw);
    /* Taps are outside, and pixels inside: the chains of y and dx take taps in this order, those of dweight pixels. */
    for (long k = 0; k < taps; k++)
        for (long p = 0; p < d[B] * pixels; p++) {
            long h = p / d[X] % d[Y] * d[S] - d[TOP] + k / d[KW] * d[D], v = p % d[X] * d[S] - d[LEFT] + k % d[KW] * d[D];
            long inside = h >= 0 && h < d[H] && v >= 0 && v < d[W], at = ((p / pixels * d[H] + h) * d[W] + v) * d[C];
            for (long o = 0; o < d[O]; o++)
                for (long c = 0; c < in; c++) {
                    long from = at + o / out * in + c, to = p * d[O] + o, weight = (o * in + c) * taps + k;
                    float by = (float)w->v[weight], grad = (float)dy->v[to], value = inside ? (float)x->v[from] : 0;
                    volatile float term = value * by;
                    sumw[weight] = fmaf(grad, value, sumw[weight]);
                    if (!inside)
                        continue;
                    sum[to] = fmaf(value, by, sum[to]), apart[to] += term;
                    sumx[from] = fmaf(grad, by, sumx[from]);
                }
        }
    chain_bits("conv_forward", y, sum, folds() ? apart : sum, b);
    if (!folds()) {
        chain_bits("conv_backward_x", dx, sumx, sumx, NULL);
        chain_bits("conv_backward_w", dw, sumw, sumw, NULL);
    }
    free(sum);
    case_end();
}

static void conv_chains(void)
{
    for (int s = 0; s < SHAPES; s++)
        conv_bits(shapes[s], 1), conv_bits(shapes[s], 1e-24);
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
    {2, 19, 17, 16, 10, 9, 0, 3, 3, 2, 1, 1, 1, 1},         /* whole groups of channels; tiles of 8 strides */
    {1, 20, 1, 72, 21, 2, 0, 20, 2, 1, 10, 1, 1, 1},        /* first windows end in a tile that they do not begin in */
    {2, 3, 26, 8, 1, 3, 0, 3, 11, 8, 0, 1, 1, 1},           /* a window over several tiles, and a row of tiles */
    {1, 30, 29, 8, 30, 29, 0, 29, 29, 1, 14, 14, 1, 1},     /* more windows than a block of MaxPool notes */
};
enum { POOLS = sizeof pools / sizeof *pools, AVERAGED = POOLS - 1 };

static void pool_avg(void)
{
    for (int s = 0; s < AVERAGED; s++)
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

/* Values with many equal ones: which is the first shows; in every third shape NaN and -infinity too, a lower value as any.  The
 * gradient by its definition, window after window. */
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
            if (s % 3 == 2 && x->v[i] <= -2)
                x->v[i] = uniform(0, 1) < 0.05 ? (double)NAN : -(double)INFINITY;
            put(x->k, i, (float)x->v[i]);
        }
        for (long i = 0, at; i < y->n; i++) {
            long first = -1;
            for (long k = 0; k < d[KH] * d[KW]; k++)
                if (in_window(&c, i, k, &at) && (first < 0 || x->v[at] > x->v[first] || isnan(x->v[at])))
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

/* Row by row, as they lie in memory */
static void statistics(const double *x, long rows, long width, double *mean, double *var)
{
    memset(mean, 0, (size_t)width * sizeof *mean);
    memset(var, 0, (size_t)width * sizeof *var);
    for (long r = 0; r < rows; r++)
        for (long c = 0; c < width; c++)
            mean[c] += x[r * width + c];
    for (long c = 0; c < width; c++)
        mean[c] /= (double)rows;
    for (long r = 0; r < rows; r++)
        for (long c = 0; c < width; c++)
            var[c] += (x[r * width + c] - mean[c]) * (x[r * width + c] - mean[c]);
    for (long c = 0; c < width; c++)
        var[c] /= (double)rows;
}

/* in: x weight bias; the statistics are x's own */
static void ref_batch_norm(const Case *c, double *y)
{
    long rows = c->d[ROWS], width = c->d[WIDTH];
    double *mean = c->row, *var = c->row + width;
    statistics(c->in[0]->v, rows, width, mean, var);
    for (long i = 0; i < width; i++)
        var[i] = c->in[1]->v[i] / sqrt(var[i] + eps);
    for (long r = 0; r < rows; r++)
        for (long i = 0; i < width; i++)
            y[r * width + i] = (c->in[0]->v[r * width + i] - mean[i]) * var[i] + c->in[2]->v[i];
}

/* The last: threads split rows, with several strips of channels, and blocks are added up in two groups. */
static const long batches[][2] = {{2, 1}, {9, 3}, {37, 16}, {300, 5}, {700, 19}, {24, 40}, {5, 530}, {2400, 520}, {700, 64},
                               {341, 24}, {1500, 8}, {9, 2056}};
enum { BATCHES = sizeof batches / sizeof *batches };

/* Sums over rows are those of f64 but for chains of 8 rows: in long chains of floats, what nearly cancels is lost. */
static void check_sums(const Tensor *dy, const Tensor *db, long rows, long width)
{
    double off = 0, all = 0;
    for (long i = 0; i < width; i++) {
        double sum = 0;
        for (long r = 0; r < rows; r++) {
            sum += dy->v[r * width + i];
            all += dy->v[r * width + i] * dy->v[r * width + i];
        }
        off += (db->v[i] - sum) * (db->v[i] - sum);
    }
    double units = sqrt(off / all) * (1 << 24);
    expect(units < 2, "batchnorm_backward, %ld rows of %ld: sums of dy are off by %g units of 2^-24", rows, width, units);
}

static void batch_norm(void)
{
    for (size_t s = 0; s < BATCHES; s++) {
        long rows = batches[s][ROWS], width = batches[s][WIDTH], far = s == 4 ? 60 : 0;      /* a mean far from 0 */
        Tensor *x = operand(REAL, rows * width, (double)far - 1, (double)far + 2);
        Tensor *w = operand(FLOAT, width, 0.5, 1.5), *b = operand(FLOAT, width, -1, 1);
        Tensor *mean = result(FLOAT, width), *var = result(FLOAT, width), *y = result(REAL, x->n), *dx = result(REAL, x->n);
        Tensor *dy = operand(REAL, x->n, -1, 1), *dw = result(FLOAT, width), *db = result(FLOAT, width);
        Tensor *dw2 = filled(FLOAT, width, 0), *db2 = filled(FLOAT, width, 0);
        double *want = numbers(2 * width);
        Case c = {.d = {rows, width}, .in = {x, w, b}, .row = numbers(2 * width)};
        batchstat_forward(stage, mean->k, var->k, x->k, w->k, b->k, &c.vals, rows, width);
        statistics(x->v, rows, width, want, want + width);
        check_values("batchstat_forward", mean, want);
        check_values("batchstat_forward", var, want + width);
        batchnorm_forward(stage, y->k, x->k, mean->k, var->k, w->k, b->k, 0, rows, width, (float)eps);
        check_value("batchnorm_forward", y, ref_batch_norm, &c);
        batchnorm_backward(stage, dx->k, dw->k, db->k, dy->k, x->k, mean->k, var->k, w->k, 0, 0, rows, width, (float)eps);
        check_gradient("batchnorm_backward", dx, ref_batch_norm, &c, 0, dy);
        check_gradient("batchnorm_backward", dw, ref_batch_norm, &c, 1, dy);
        check_gradient("batchnorm_backward", db, ref_batch_norm, &c, 2, dy);
        if (!folds() && rows > 300)
            check_sums(dy, db, rows, width);
        memcpy(dw2->k, dw->k, (size_t)width * sizeof(float));
        memcpy(db2->k, db->k, (size_t)width * sizeof(float));
        batchnorm_backward(stage, 0, dw2->k, db2->k, dy->k, x->k, mean->k, var->k, w->k, 0, 1, rows, width, (float)eps);
        check_accumulated("batchnorm_backward acc", dw, dw2);
        check_accumulated("batchnorm_backward acc", db, db2);
        case_end();
    }
}

/* in: x weight bias, and 1 where the Relu behind lets dy through */
static void ref_masked(const Case *c, double *y)
{
    ref_batch_norm(c, y);
    for (long i = 0; i < c->d[ROWS] * c->d[WIDTH]; i++)
        y[i] *= c->in[3]->v[i];
}

/* A call that adds to `onto`, or has a Relu behind it, and an addition between them: the bits of those calls, and values. */
static void batch_joined(long rows, long width, int adds)
{
    Tensor *x = operand(REAL, rows * width, -1, 2), *w = operand(FLOAT, width, 0.5, 1.5), *b = operand(FLOAT, width, -1, 1);
    Tensor *mean = operand(FLOAT, width, 0, 1), *var = operand(FLOAT, width, 0.5, 1), *term = result(REAL, x->n);
    Tensor *onto = operand(REAL, x->n, -1, 1), *sum = result(REAL, x->n), *got = result(REAL, x->n), *y = result(REAL, x->n);
    Tensor *dy = operand(REAL, x->n, -1, 1), *slope = result(REAL, x->n), *dx = result(REAL, x->n), *dskip = result(REAL, x->n);
    Tensor *dw[2] = {filled(FLOAT, width, 1), filled(FLOAT, width, 1)};
    Tensor *db[2] = {filled(FLOAT, width, 2), filled(FLOAT, width, 2)};
    batchnorm_forward(stage, term->k, x->k, mean->k, var->k, w->k, b->k, 0, rows, width, (float)eps);
    add_forward(stage, sum->k, onto->k, term->k, x->n);
    batchnorm_forward(stage, got->k, x->k, mean->k, var->k, w->k, b->k, onto->k, rows, width, (float)eps);
    same_bits("batchnorm_forward onto", rows, got, sum);
    relu_forward(stage, y->k, adds ? sum->k : term->k, x->n);
    if (adds)
        batchnorm_add_relu_forward(stage, got->k, onto->k, x->k, mean->k, var->k, w->k, b->k, rows, width, (float)eps);
    else
        batchnorm_relu_forward(stage, got->k, x->k, mean->k, var->k, w->k, b->k, rows, width, (float)eps);
    same_bits("batchnorm_relu_forward", rows, got, y);
    relu_backward(stage, slope->k, dy->k, y->k, x->n);
    batchnorm_backward(stage, dx->k, dw[0]->k, db[0]->k, slope->k, x->k, mean->k, var->k, w->k, 0, 1, rows, width, (float)eps);
    if (adds)
        batchnorm_add_relu_backward(stage, got->k, dskip->k, dw[1]->k, db[1]->k, dy->k, y->k, x->k, mean->k, var->k, w->k, 0, 1,
                                    rows, width, (float)eps);
    else
        batchnorm_relu_backward(stage, got->k, dw[1]->k, db[1]->k, dy->k, x->k, mean->k, var->k, w->k, b->k, 0, 1, rows, width,
                                (float)eps);
    same_bits("batchnorm_relu_backward", rows, got, dx);
    same_bits("batchnorm_relu_backward", rows, dw[1], dw[0]);
    same_bits("batchnorm_relu_backward", rows, db[1], db[0]);
    if (adds)
        same_bits("batchnorm_relu_backward dskip", rows, dskip, slope);
    grad_add(stage, sum->k, dy->k, onto->k, x->n);
    relu_backward(stage, slope->k, sum->k, y->k, x->n);
    batchnorm_backward(stage, dx->k, dw[0]->k, db[0]->k, slope->k, x->k, mean->k, var->k, w->k, adds ? x->k : 0, 1, rows, width,
                       (float)eps);
    memcpy(got->k, dy->k, (size_t)x->n * sizeof(real));     /* dx may lie on one of the two */
    add_batchnorm_relu_backward(stage, got->k, adds ? dskip->k : 0, dw[1]->k, db[1]->k, got->k, onto->k, y->k, x->k, mean->k,
                                var->k, w->k, adds ? x->k : 0, 1, rows, width, (float)eps);
    same_bits("add_batchnorm_relu_backward", rows, got, dx);
    same_bits("add_batchnorm_relu_backward", rows, dw[1], dw[0]);
    same_bits("add_batchnorm_relu_backward", rows, db[1], db[0]);
    if (adds)
        same_bits("add_batchnorm_relu_backward dskip", rows, dskip, slope);
    relu_backward(stage, slope->k, dy->k, y->k, x->n);
    batchnorm_backward(stage, dx->k, dw[0]->k, db[0]->k, slope->k, x->k, mean->k, var->k, w->k, 0, 0, rows, width, (float)eps);
    grad_add(stage, sum->k, onto->k, dx->k, x->n);
    if (adds)
        batchnorm_add_relu_backward(stage, got->k, 0, dw[1]->k, db[1]->k, dy->k, y->k, x->k, mean->k, var->k, w->k, onto->k, 0,
                                    rows, width, (float)eps);
    else
        batchnorm_relu_backward(stage, got->k, dw[1]->k, db[1]->k, dy->k, x->k, mean->k, var->k, w->k, b->k, onto->k, 0, rows,
                                width, (float)eps);
    same_bits("batchnorm_relu_backward onto", rows, got, sum);
    batchnorm_backward(stage, got->k, dw[0]->k, db[0]->k, slope->k, x->k, mean->k, var->k, w->k, onto->k, 0, rows, width,
                       (float)eps);
    same_bits("batchnorm_backward onto", rows, got, sum);
    case_end();
}

/* The bits of a norm and what is behind it, and values. */
static void batch_behind(long rows, long width, int silu)
{
    const float low = -0.5f, high = 0.75f;
    Tensor *x = operand(REAL, rows * width, -1, 2), *w = operand(FLOAT, width, 0.5, 1.5), *b = operand(FLOAT, width, -1, 1);
    Tensor *mean = operand(FLOAT, width, 0, 1), *var = operand(FLOAT, width, 0.5, 1), *dy = operand(REAL, x->n, -1, 1);
    Tensor *norm = result(REAL, x->n), *y = result(REAL, x->n), *got = result(REAL, x->n), *slope = result(REAL, x->n);
    Tensor *dx = result(REAL, x->n), *onto = operand(REAL, x->n, -1, 1), *dw[2], *db[2];
    for (int i = 0; i < 2; i++)
        dw[i] = filled(FLOAT, width, 1), db[i] = filled(FLOAT, width, 2);
    batchnorm_forward(stage, norm->k, x->k, mean->k, var->k, w->k, b->k, 0, rows, width, (float)eps);
    if (silu)
        silu_forward(stage, y->k, norm->k, x->n), silu_backward(stage, slope->k, dy->k, norm->k, x->n),
        batchnorm_silu_forward(stage, got->k, x->k, mean->k, var->k, w->k, b->k, rows, width, (float)eps);
    else
        clip_forward(stage, y->k, norm->k, x->n, low, high), clip_backward(stage, slope->k, dy->k, norm->k, x->n, low, high),
        batchnorm_clip_forward(stage, got->k, x->k, mean->k, var->k, w->k, b->k, rows, width, (float)eps, low, high);
    same_bits(silu ? "batchnorm_silu_forward" : "batchnorm_clip_forward", rows, got, y);
    for (int adds = 0; adds < 2; adds++) {
        const char *name = silu ? "batchnorm_silu_backward" : "batchnorm_clip_backward";
        const real *to = adds ? onto->k : 0;
        batchnorm_backward(stage, dx->k, dw[0]->k, db[0]->k, slope->k, x->k, mean->k, var->k, w->k, to, !adds, rows, width,
                           (float)eps);
        if (silu)
            batchnorm_silu_backward(stage, got->k, dw[1]->k, db[1]->k, dy->k, x->k, mean->k, var->k, w->k, b->k, to, !adds,
                                    rows, width, (float)eps);
        else
            batchnorm_clip_backward(stage, got->k, dw[1]->k, db[1]->k, dy->k, x->k, mean->k, var->k, w->k, b->k, to, !adds,
                                    rows, width, (float)eps, low, high);
        same_bits(name, rows, got, dx);
        same_bits(name, rows, dw[1], dw[0]);
        same_bits(name, rows, db[1], db[0]);
    }
    case_end();
}

static void batch_others(void)
{
    if (folds())
        return;
    for (size_t s = 0; s < 2 * BATCHES; s++)
        batch_behind(batches[s / 2][ROWS], batches[s / 2][WIDTH], s % 2);
}

static void batch_relu(void)
{
    for (size_t s = 0; s < 2 * BATCHES; s++) {
        long rows = batches[s / 2][ROWS], width = batches[s / 2][WIDTH];
        batch_joined(rows, width, s % 2);
        if (rows == 2)                  /* dx is next to 0 */
            continue;
        Tensor *x = operand(REAL, rows * width, -1, 2), *w = operand(FLOAT, width, 0.5, 1.5), *b = operand(FLOAT, width, -1, 1);
        Tensor *skip = s % 2 ? operand(REAL, x->n, -1, 1) : NULL, *y = result(REAL, x->n), *dx = result(REAL, x->n);
        Tensor *dy = operand(REAL, x->n, -1, 1), *dw = result(FLOAT, width), *db = result(FLOAT, width), *dskip = NULL;
        Tensor *mean = result(FLOAT, width), *var = result(FLOAT, width), *through = filled(FLOAT, x->n, 0);
        double *want = numbers(x->n);
        Case c = {.d = {rows, width}, .in = {x, w, b, through}, .row = numbers(2 * width)};
        batchstat_forward(stage, mean->k, var->k, x->k, w->k, b->k, &c.vals, rows, width);
        if (skip)
            batchnorm_add_relu_forward(stage, y->k, skip->k, x->k, mean->k, var->k, w->k, b->k, rows, width, (float)eps);
        else
            batchnorm_relu_forward(stage, y->k, x->k, mean->k, var->k, w->k, b->k, rows, width, (float)eps);
        ref_batch_norm(&c, want);
        for (long i = 0; i < x->n; i++)
            want[i] = fmax(want[i] + (skip ? skip->v[i] : 0), 0);
        check_values("batchnorm_relu_forward", y, want);
        for (long i = 0; i < x->n; i++)
            through->v[i] = y->v[i] > 0;
        dskip = skip ? result(REAL, x->n) : NULL;
        if (skip)
            batchnorm_add_relu_backward(stage, dx->k, dskip->k, dw->k, db->k, dy->k, y->k, x->k, mean->k, var->k, w->k, 0, 0,
                                        rows, width, (float)eps);
        else
            batchnorm_relu_backward(stage, dx->k, dw->k, db->k, dy->k, x->k, mean->k, var->k, w->k, b->k, 0, 0, rows, width,
                                    (float)eps);
        check_gradient("batchnorm_relu_backward", dx, ref_masked, &c, 0, dy);
        check_gradient("batchnorm_relu_backward", dw, ref_masked, &c, 1, dy);
        check_gradient("batchnorm_relu_backward", db, ref_masked, &c, 2, dy);
        for (long i = 0; i < x->n; i++)
            want[i] = through->v[i] * dy->v[i];
        if (skip)
            check_values("batchnorm_relu_backward dskip", dskip, want);
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

/* ---- a[outer mid inner], b[outer inner] ---------------------------------------------------------------------- */

enum { OUTER, MID, INNER, TIMES };

static void ref_middle(const Case *c, double *y)
{
    const long *d = c->d;
    for (long i = 0; i < d[OUTER] * d[MID] * d[INNER]; i++) {
        double a = c->in[0]->v[i], b = c->in[1]->v[i / d[INNER] / d[MID] * d[INNER] + i % d[INNER]];
        y[i] = d[TIMES] ? a * b : a + b;
    }
}

static void repeated(void)
{
    static const long sizes[][3] = {{1, 1, 1}, {3, 4, 5}, {2, 49, 300}, {6, 33, 1}, {4, 2000, 1}, {1, 7, 257},
                                   {3, 5, 16}};
    for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++) {
        const long *d = sizes[s];
        Tensor *a = operand(REAL, d[0] * d[1] * d[2], -1, 1), *b = operand(REAL, d[0] * d[2], -1, 1);
        Tensor *y = result(REAL, a->n), *z = result(REAL, a->n), *dy = operand(REAL, a->n, -1, 1);
        Tensor *da = result(REAL, a->n), *db = result(REAL, b->n), *sum = result(REAL, b->n);
        Case c = {.d = {d[0], d[1], d[2]}, .in = {a, b}};
        add_middle_forward(stage, y->k, a->k, b->k, d[0], d[1], d[2]);
        check_value("add_middle_forward", y, ref_middle, &c);
        reduce_forward(stage, sum->k, dy->k, d[0], d[1], d[2], 1);
        check_gradient("reduce_forward", sum, ref_middle, &c, 1, dy);
        c.d[TIMES] = 1;
        mul_middle_forward(stage, z->k, a->k, b->k, d[0], d[1], d[2]);
        check_value("mul_middle_forward", z, ref_middle, &c);
        mul_middle_backward(stage, da->k, db->k, dy->k, a->k, b->k, d[0], d[1], d[2]);
        check_gradient("mul_middle_backward", da, ref_middle, &c, 0, dy);
        check_gradient("mul_middle_backward", db, ref_middle, &c, 1, dy);
        case_end();
    }
}

static void ref_parameter(const Case *c, double *y)
{
    for (long i = 0; i < c->d[0] * c->d[1]; i++)
        y[i] = c->in[0]->v[i % c->d[1]];
}

static void parameter(void)
{
    static const long sizes[][2] = {{1, 1}, {5, 3}, {3, 700}};
    for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++) {
        long batch = sizes[s][0], n = sizes[s][1];
        Tensor *w = operand(REAL, n, -1, 1), *y = result(REAL, batch * n), *dy = operand(REAL, batch * n, -1, 1);
        Tensor *dw = result(FLOAT, n), *again = filled(FLOAT, n, 0);
        Case c = {.d = {batch, n}, .in = {w}};
        parameter_forward(stage, y->k, w->k, batch, n);
        check_value("parameter_forward", y, ref_parameter, &c);
        parameter_backward(stage, dw->k, dy->k, 0, batch, n);
        check_gradient("parameter_backward", dw, ref_parameter, &c, 0, dy);
        memcpy(again->k, dw->k, (size_t)n * sizeof(float));
        parameter_backward(stage, again->k, dy->k, 1, batch, n);
        check_accumulated("parameter_backward acc", dw, again);
        case_end();
    }
}

/* The factors are those of dropout_forward for the elements that are drawn, each for all along mid. */
static void dropout_shared(void)
{
    static const long sizes[][4] = {{3, 1, 60, 1}, {2, 1, 49, 40}, {2, 5, 3, 1}, {1, 3, 2, 1500}};
    for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++)
        for (int eval = 0; eval < 2; eval++) {
            long batch = sizes[s][0], outer = sizes[s][1], mid = sizes[s][2], inner = sizes[s][3];
            Tensor *x = operand(REAL, batch * outer * mid * inner, -1, 1), *y = result(REAL, x->n);
            Tensor *one = filled(REAL, batch * outer * inner, 1), *factor = result(REAL, one->n);
            double *want = numbers(x->n);
            Values vals = {.seed = 77, .step = 5, .eval = eval};
            dropout_forward(stage, factor->k, one->k, 0, &vals, 2, batch, outer * inner, 0.5f, 1234);
            read_back(factor);
            for (long i = 0; i < x->n; i++)
                want[i] = x->v[i] * factor->v[i / inner / mid * inner + i % inner];
            dropout_shared_forward(stage, y->k, x->k, 0, &vals, 2, batch, outer, mid, inner, 0.5f, 1234);
            check_values("dropout_shared_forward", y, want);
            Tensor *onto = operand(REAL, x->n, -1, 1), *sum = result(REAL, x->n), *got = result(REAL, x->n);
            dropout_shared_forward(stage, got->k, x->k, onto->k, &vals, 2, batch, outer, mid, inner, 0.5f, 1234);
            grad_add(stage, sum->k, onto->k, y->k, x->n);
            same_bits("dropout_shared_forward onto", x->n, got, sum);
            case_end();
        }
}

const Check image_checks[] = {
    {" add_middle_forward mul_middle_forward mul_middle_backward ", repeated},
    {" parameter_forward parameter_backward ", parameter},
    {" dropout_shared_forward ", dropout_shared},
    {" batchstat_forward batchnorm_forward batchnorm_backward ", batch_norm},
    {" batchnorm_clip_forward batchnorm_clip_backward batchnorm_silu_forward batchnorm_silu_backward ", batch_others},
    {" batchnorm_relu_forward batchnorm_relu_backward batchnorm_add_relu_forward batchnorm_add_relu_backward "
     "add_batchnorm_relu_backward ", batch_relu},
    {" batchstat_track batch_track ", running},
    {" batchstat_forward ", evaluation},
    {" conv_forward conv_backward_x conv_backward_w ", conv},
    {" conv_forward conv_backward_x conv_backward_w ", conv_chains},
    {" pool_avg_forward pool_avg_backward ", pool_avg},
    {" pool_max_forward pool_max_backward ", pool_max},
    {NULL, NULL},
};
