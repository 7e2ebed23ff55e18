/* SPDX-License-Identifier: Apache-2.0
 *
 * Checks of images: Conv, MaxPool, AvgPool.  See opcheck.h.
 */
#include <math.h>
#include <string.h>
#include "opcheck.h"

#ifdef FOLDS        /* the kernels of GPUs lack these operators: gen/targets.def */
static void nothing(void) {}
const Check image_checks[] = {
    {" conv_forward conv_backward_x conv_backward_w ", nothing},
    {" pool_max_forward pool_max_backward pool_avg_forward pool_avg_backward ", nothing},
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

const Check image_checks[] = {
    {" conv_forward conv_backward_x conv_backward_w ", conv},
    {" conv_forward ", conv_chain},
    {" pool_avg_forward pool_avg_backward ", pool_avg},
    {" pool_max_forward pool_max_backward ", pool_max},
    {NULL, NULL},
};
#endif
