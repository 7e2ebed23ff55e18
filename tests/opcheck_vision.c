/* SPDX-License-Identifier: Apache-2.0
 *
 * Checks of images, continued: GroupNorm, Pad, Upsample, ConvTranspose, losses of classes, lines
 * with corners.  See opcheck.h.
 */
#include <math.h>
#include <stdbool.h>
#include <string.h>
#include "opcheck.h"

/* ---- GroupNorm over x[batch pixels groups width] --------------------------------------------------------------------- */

enum { BATCH, PIXELS, GROUPS, WIDTH };
static const double eps = 1e-3;

static void moments(const Case *c, double *mean, double *rstd)
{
    const long *d = c->d, channels = d[GROUPS] * d[WIDTH], n = d[PIXELS] * d[WIDTH];
    for (long g = 0; g < d[BATCH] * d[GROUPS]; g++) {
        double sum = 0, squares = 0;
        for (int pass = 0; pass < 2; pass++)
            for (long p = 0; p < d[PIXELS]; p++)
                for (long k = 0; k < d[WIDTH]; k++) {
                    double x = c->in[0]->v[(g / d[GROUPS] * d[PIXELS] + p) * channels + g % d[GROUPS] * d[WIDTH] + k];
                    sum += pass ? 0 : x / (double)n;
                    squares += pass ? (x - sum) * (x - sum) / (double)n : 0;
                }
        mean[g] = sum;
        rstd[g] = 1 / sqrt(squares + eps);
    }
}

/* in: x weight? bias? */
static void ref_group_norm(const Case *c, double *y)
{
    const long *d = c->d, channels = d[GROUPS] * d[WIDTH];
    double *mean = c->row, *rstd = c->row + d[BATCH] * d[GROUPS];
    moments(c, mean, rstd);
    for (long i = 0; i < d[BATCH] * d[PIXELS] * channels; i++) {
        long channel = i % channels, group = i / channels / d[PIXELS] * d[GROUPS] + channel / d[WIDTH];
        double u = (c->in[0]->v[i] - mean[group]) * rstd[group];
        y[i] = u * (c->in[1] ? c->in[1]->v[channel] : 1) + (c->in[2] ? c->in[2]->v[channel] : 0);
    }
}

static void group_norm_case(const long *d, int affine)
{
    long channels = d[GROUPS] * d[WIDTH], n = d[BATCH] * d[PIXELS] * channels, groups = d[BATCH] * d[GROUPS];
    Tensor *x = operand(REAL, n, -1, 2), *w = affine ? operand(FLOAT, channels, 0.5, 1.5) : NULL;
    Tensor *b = affine ? operand(FLOAT, channels, -1, 1) : NULL, *y = result(REAL, n), *dx = result(REAL, n);
    Tensor *mean = result(FLOAT, groups), *rstd = result(FLOAT, groups), *dy = operand(REAL, n, -1, 1);
    Case c = {.d = {d[0], d[1], d[2], d[3]}, .in = {x, w, b}, .row = numbers(2 * groups)};
    groupnorm_forward(stage, y->k, mean->k, rstd->k, x->k, w ? w->k : 0, b ? b->k : 0, d[0], d[1], d[2], d[3], (float)eps);
    check_value("groupnorm_forward", y, ref_group_norm, &c);
    moments(&c, c.row, c.row + groups);
    check_values("groupnorm_forward", mean, c.row);
    check_values("groupnorm_forward", rstd, c.row + groups);
    groupnorm_backward_x(stage, dx->k, dy->k, x->k, w ? w->k : 0, mean->k, rstd->k, d[0], d[1], d[2], d[3]);
    check_gradient("groupnorm_backward_x", dx, ref_group_norm, &c, 0, dy);
    if (affine) {
        Tensor *dw = result(FLOAT, channels), *db = result(FLOAT, channels);
        Tensor *dw2 = filled(FLOAT, channels, 0), *db2 = filled(FLOAT, channels, 0);
        groupnorm_backward_w(stage, dw->k, db->k, dy->k, x->k, mean->k, rstd->k, 0, d[0], d[1], d[2], d[3]);
        check_gradient("groupnorm_backward_w", dw, ref_group_norm, &c, 1, dy);
        check_gradient("groupnorm_backward_w", db, ref_group_norm, &c, 2, dy);
        memcpy(dw2->k, dw->k, (size_t)channels * sizeof(float));
        memcpy(db2->k, db->k, (size_t)channels * sizeof(float));
        groupnorm_backward_w(stage, dw2->k, db2->k, dy->k, x->k, mean->k, rstd->k, 1, d[0], d[1], d[2], d[3]);
        check_accumulated("groupnorm_backward_w acc", dw, dw2);
        check_accumulated("groupnorm_backward_w acc", db, db2);
    }
    case_end();
}

/* Groups of one channel, narrow ones that are taken together, with a rest, and ones wider than is read at once. */
static void group_norm(void)
{
    static const long sizes[][4] = {{1, 4, 1, 1}, {2, 9, 3, 5}, {3, 30, 19, 1}, {2, 7, 7, 6}, {2, 300, 2, 20}, {1, 12, 3, 40},
                                    {3, 1, 4, 8}, {2, 5, 1, 33}, {2, 9, 4, 6}};
    for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++) {
        group_norm_case(sizes[s], 1);
        group_norm_case(sizes[s], 0);
    }
}

/* ---- pixels that become more, or fewer ------------------------------------------------------------------------------- */

/* batch height width channels; of Pad then yheight ywidth top left, of Upsample factors and `align` */
enum { B, H, W, C, YH, YW, TOP, LEFT, FH = YH, FW = YW, ALIGN = TOP };
#define IMAGE(d) d[B], d[H], d[W], d[C]

static void ref_pad(const Case *c, double *y)
{
    const long *d = c->d;
    for (long i = 0; i < d[B] * d[YH] * d[YW] * d[C]; i++) {
        long sample = i / d[C] / d[YW] / d[YH], row = i / d[C] / d[YW] % d[YH] - d[TOP], column = i / d[C] % d[YW] - d[LEFT];
        bool inside = row >= 0 && row < d[H] && column >= 0 && column < d[W];
        y[i] = inside ? c->in[0]->v[((sample * d[H] + row) * d[W] + column) * d[C] + i % d[C]] : c->f[0];
    }
}

static void pad(void)
{
    static const long sizes[][8] = {{1, 1, 1, 1, 3, 2, 1, 0}, {2, 5, 4, 3, 7, 9, 0, 2}, {2, 6, 7, 16, 4, 5, -1, -2},
                                    {3, 4, 5, 8, 6, 3, 2, -2}, {1, 70, 80, 8, 75, 90, 5, 3}};
    for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++) {
        const long *d = sizes[s];
        Tensor *x = operand(REAL, d[B] * d[H] * d[W] * d[C], -1, 1), *y = result(REAL, d[B] * d[YH] * d[YW] * d[C]);
        Tensor *dy = operand(REAL, y->n, -1, 1), *dx = result(REAL, x->n);
        Case c = {.f = {-1.5}, .in = {x}};
        memcpy(c.d, d, sizeof *sizes);
        pad_forward(stage, y->k, x->k, IMAGE(d), d[YH], d[YW], d[TOP], d[LEFT], -1.5f);
        check_value("pad_forward", y, ref_pad, &c);
        pad_forward(stage, dx->k, dy->k, d[B], d[YH], d[YW], d[C], d[H], d[W], -d[TOP], -d[LEFT], 0);
        check_gradient("pad_forward", dx, ref_pad, &c, 0, dy);
        case_end();
    }
}

/* The pixels before and behind position r of n*by, and how far it is between them: docs/operators.md. */
static double between(const Case *c, long r, long n, long by, long pixel[2])
{
    double at = c->d[ALIGN] < 0 ? (double)(r / by)
        : c->d[ALIGN] ? n * by > 1 ? (double)r * (double)(n - 1) / (double)(n * by - 1) : 0
        : fmax(((double)r + 0.5) / (double)by - 0.5, 0);
    pixel[0] = (long)floor(at);
    pixel[1] = pixel[0] + 1 < n ? pixel[0] + 1 : n - 1;
    return at - (double)pixel[0];
}

static void ref_upsample(const Case *c, double *y)
{
    const long *d = c->d, yh = d[H] * d[FH], yw = d[W] * d[FW];
    for (long i = 0; i < d[B] * yh * yw * d[C]; i++) {
        long sample = i / d[C] / yw / yh, rows[2], columns[2];
        double down = between(c, i / d[C] / yw % yh, d[H], d[FH], rows);
        double across = between(c, i / d[C] % yw, d[W], d[FW], columns);
        y[i] = 0;
        for (int k = 0; k < 4; k++)
            y[i] += (k / 2 ? down : 1 - down) * (k % 2 ? across : 1 - across) *
                    c->in[0]->v[((sample * d[H] + rows[k / 2]) * d[W] + columns[k % 2]) * d[C] + i % d[C]];
    }
}

static void upsample_case(const long *d, long align)
{
    Tensor *x = operand(REAL, d[B] * d[H] * d[W] * d[C], -1, 1), *y = result(REAL, x->n * d[FH] * d[FW]);
    Tensor *dy = operand(REAL, y->n, -1, 1), *dx = result(REAL, x->n);
    Case c = {.d = {IMAGE(d), d[FH], d[FW], align}, .in = {x}};
    if (align < 0) {
        upsample_forward(stage, y->k, x->k, IMAGE(d), d[FH], d[FW]);
        check_value("upsample_forward", y, ref_upsample, &c);
        upsample_backward(stage, dx->k, dy->k, IMAGE(d), d[FH], d[FW]);
        check_gradient("upsample_backward", dx, ref_upsample, &c, 0, dy);
    } else {
        bilinear_forward(stage, y->k, x->k, IMAGE(d), d[FH], d[FW], align);
        check_value("bilinear_forward", y, ref_upsample, &c);
        bilinear_backward(stage, dx->k, dy->k, IMAGE(d), d[FH], d[FW], align);
        check_gradient("bilinear_backward", dx, ref_upsample, &c, 0, dy);
    }
    case_end();
}

static void upsample(void)
{
    static const long sizes[][6] = {{1, 1, 1, 1, 1, 1}, {2, 1, 4, 3, 3, 2}, {2, 5, 3, 4, 2, 2}, {1, 4, 6, 70, 3, 1},
                                    {1, 7, 1, 5, 4, 1}, {1, 9, 11, 8, 5, 4}};
    for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++)
        for (long align = -1; align < 2; align++)
            upsample_case(sizes[s], align);
}

/* ---- ConvTranspose --------------------------------------------------------------------------------------------------- */

/* batch height width in; yheight ywidth out; kheight kwidth; stride top left dilate groups */
enum { TY = 4, TX, TO, KH, KW, S, TT, TL, D, G, SIZES };
#define TRANSPOSE(d) d[B], d[H], d[W], d[C], d[TY], d[TX], d[TO], d[KH], d[KW], d[S], d[TT], d[TL], d[D], d[G]

/* By its definition: each pixel of x is spread over the window of y that it stands for. */
static void ref_transpose(const Case *c, double *y)
{
    const long *d = c->d, in = d[C] / d[G], out = d[TO] / d[G], taps = d[KH] * d[KW];
    for (long i = 0; i < d[B] * d[TY] * d[TX] * d[TO]; i++)
        y[i] = c->in[2] ? c->in[2]->v[i % d[TO]] : 0;
    for (long i = 0; i < d[B] * d[H] * d[W] * d[C]; i++)
        for (long k = 0; k < taps * out; k++) {
            long channel = i % d[C], column = i / d[C] % d[W], row = i / d[C] / d[W] % d[H], sample = i / d[C] / d[W] / d[H];
            long h = row * d[S] - d[TT] + k % taps / d[KW] * d[D], w = column * d[S] - d[TL] + k % d[KW] * d[D];
            if (h >= 0 && h < d[TY] && w >= 0 && w < d[TX])
                y[((sample * d[TY] + h) * d[TX] + w) * d[TO] + channel / in * out + k / taps] +=
                    c->in[0]->v[i] * c->in[1]->v[channel * out * taps + k];
        }
}

static void conv_transpose(void)
{
    static const long sizes[][SIZES] = {
        {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 0, 0, 1, 1}, {2, 4, 3, 5, 8, 6, 3, 2, 2, 2, 0, 0, 1, 1},
        {1, 5, 4, 6, 10, 9, 4, 3, 4, 2, 1, 1, 1, 2},            /* groups; a last row that no window has */
        {2, 3, 5, 33, 7, 9, 35, 3, 3, 1, 0, 1, 2, 1},           /* dilated, a pad */
        {1, 5, 6, 19, 10, 12, 19, 3, 3, 2, 1, 1, 1, 19}, /* single channels, pixels */
        {2, 3, 4, 5, 3, 4, 21, 1, 1, 1, 0, 0, 1, 1},
        {1, 9, 1, 4, 27, 1, 8, 5, 1, 3, 1, 0, 1, 4}, {1, 2, 40, 3, 4, 120, 2, 2, 3, 3, 0, 0, 1, 1},
    };
    for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++) {
        const long *d = sizes[s];
        Tensor *x = operand(REAL, d[B] * d[H] * d[W] * d[C], -1, 1);
        Tensor *w = operand(REAL, d[C] * d[TO] / d[G] * d[KH] * d[KW], -1, 1);
        Tensor *b = s % 2 ? operand(REAL, d[TO], -1, 1) : NULL, *y = result(REAL, d[B] * d[TY] * d[TX] * d[TO]);
        Tensor *dy = operand(REAL, y->n, -1, 1), *dx = result(REAL, x->n), *dw = result(FLOAT, w->n);
        Tensor *db = result(FLOAT, d[TO]), *dw2 = filled(FLOAT, w->n, 0), *db2 = filled(FLOAT, d[TO], 0);
        Case c = {.in = {x, w, b}};
        memcpy(c.d, d, sizeof *sizes);
        conv_transpose_forward(stage, y->k, x->k, w->k, b ? b->k : 0, TRANSPOSE(d));
        check_value("conv_transpose_forward", y, ref_transpose, &c);
        conv_transpose_backward_x(stage, dx->k, dy->k, w->k, TRANSPOSE(d));
        check_gradient("conv_transpose_backward_x", dx, ref_transpose, &c, 0, dy);
        conv_transpose_backward_w(stage, dw->k, b ? db->k : 0, dy->k, x->k, 0, TRANSPOSE(d));
        check_gradient("conv_transpose_backward_w", dw, ref_transpose, &c, 1, dy);
        memcpy(dw2->k, dw->k, (size_t)w->n * sizeof(float));
        memcpy(db2->k, db->k, (size_t)d[TO] * sizeof(float));
        conv_transpose_backward_w(stage, dw2->k, b ? db2->k : 0, dy->k, x->k, 1, TRANSPOSE(d));
        check_accumulated("conv_transpose_backward_w acc", dw, dw2);
        if (b) {
            check_gradient("conv_transpose_backward_w", db, ref_transpose, &c, 2, dy);
            check_accumulated("conv_transpose_backward_w acc", db, db2);
        }
        case_end();
    }
}

/* ---- losses ---------------------------------------------------------------------------------------------------------- */

static void ref_bce(const Case *c, double *y)
{
    *y = 0;
    for (long i = 0; i < c->d[0]; i++) {
        double x = c->in[0]->v[i];
        *y += (log1p(exp(-fabs(x))) + fmax(x, 0) - x * c->in[1]->v[i]) / ((double)c->d[0] * c->vals.micro);
    }
}

/* The last: scores that are sure of themselves, so that each term is small. */
static void bce(void)
{
    static const long sizes[] = {1, 13, 5003, 40001, 300};
    for (int s = 0; s < 5; s++) {
        long n = sizes[s];
        Tensor *x = operand(REAL, n, s == 4 ? 9 : -4, s == 4 ? 12 : 4);
        Tensor *t = s == 4 ? filled(REAL, n, 1) : operand(REAL, n, 0, 1);
        Tensor *loss = result(FLOAT, 1), *dx = result(REAL, n), *dt = result(REAL, n), *dloss = filled(FLOAT, 1, 2);
        Case c = {.d = {n}, .vals = {.micro = 3}, .in = {x, t}};
        bce_forward(stage, loss->k, x->k, t->k, &c.vals, n);
        check_value("bce_forward", loss, ref_bce, &c);
        bce_backward(stage, dx->k, 0, dloss->k, x->k, t->k, &c.vals, n);
        bce_backward(stage, 0, dt->k, dloss->k, x->k, t->k, &c.vals, n);
        if (s < 4)
            check_gradient("bce_backward dx", dx, ref_bce, &c, 0, dloss);
        check_gradient("bce_backward dtargets", dt, ref_bce, &c, 1, dloss);
        case_end();
    }
}

/* d: rows width ignore */
static void ref_smooth(const Case *c, double *y)
{
    *y = 0;
    for (long r = 0; r < c->d[0]; r++) {
        const double *row = c->in[0]->v + r * c->d[1];
        double sum = 0;
        for (long i = 0; i < c->d[1]; i++)
            sum += exp(row[i]);
        for (long i = 0; i < c->d[1] && c->ids[r] != c->d[2]; i++) {
            double want = c->f[0] / (double)c->d[1] + (c->ids[r] == i ? 1 - c->f[0] : 0);
            *y += want * (log(sum) - row[i]) / (double)c->vals.valid[1];
        }
    }
}

static void smooth(void)
{
    static const long sizes[][2] = {{1, 2}, {9, 5}, {67, 300}, {130, 17}, {5, 2003}};
    for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++) {
        long rows = sizes[s][0], width = sizes[s][1];
        Tensor *x = operand(REAL, rows * width, -2, 2), *loss = result(FLOAT, 1), *lse = result(FLOAT, rows);
        Tensor *dx = result(REAL, x->n), *dloss = filled(FLOAT, 1, 2);
        int32_t *targets = ids(rows, 0, width);
        Case c = {.d = {rows, width, 1}, .f = {s % 2 ? 0.1f : 0.75f}, .ids = targets, .vals = {.valid = {0, rows}}, .in = {x}};
        xent_smooth_forward(stage, loss->k, lse->k, x->k, targets, &c.vals, rows, width, 1, 1, (float)c.f[0]);
        check_value("xent_smooth_forward", loss, ref_smooth, &c);
        xent_smooth_backward(stage, dx->k, dloss->k, x->k, lse->k, targets, &c.vals, rows, width, 1, 1, (float)c.f[0]);
        check_gradient("xent_smooth_backward", dx, ref_smooth, &c, 0, dloss);
        case_end();
    }
}

static int put_seen, put_mb, put_output;
static const void *put_at;

static void note_put(Stage *st, const real *x, const Values *vals, int mb, int output, long n)
{
    (void)st, (void)vals;
    put_seen += (int)n;
    put_at = x, put_mb = mb, put_output = output;
}

static void output(void)
{
    if (folds())                /* GPUs have no inference yet */
        return;
    Values vals = {.step = 5};
    Tensor *a = operand(REAL, 1, 1, 2);
    output_put(stage, a->k, &vals, 3, 2, 1);        /* nobody asked */
    stage->put = note_put;
    output_put(stage, a->k, &vals, 3, 2, 1);
    stage->put = NULL;
    expect(put_seen == 1 && put_mb == 3 && put_output == 2 && put_at == a->k, "output_put hands on another value");
    case_end();
}

/* ---- lines with corners: their slopes there are PyTorch's -------------------------------------------------- */

static double d_clip(double x) { return x < -0.5 ? -0.5 : x > 2.5 ? 2.5 : x; }
static double d_leaky(double x) { return x < 0 ? 0.125 * x : x; }
static double d_hard_sigmoid(double x) { return fmin(fmax(x + 3, 0), 6) / 6; }
static double d_hard_swish(double x) { return x * d_hard_sigmoid(x); }
static void clip_f(Stage *st, real *y, const real *x, long n) { clip_forward(st, y, x, n, -0.5f, 2.5f); }
static void clip_b(Stage *st, real *dx, const real *dy, const real *x, long n)
{
    clip_backward(st, dx, dy, x, n, -0.5f, 2.5f);
}

static void leaky_f(Stage *st, real *y, const real *x, long n) { leaky_relu_forward(st, y, x, n, 0.125f); }
static void leaky_b(Stage *st, real *dx, const real *dy, const real *x, long n)
{
    leaky_relu_backward(st, dx, dy, x, n, 0.125f);
}

static const struct Bent {
    const char *forward_name, *backward_name;
    double (*f)(double);
    void (*forward)(Stage *, real *, const real *, long);
    void (*backward)(Stage *, real *, const real *, const real *, long);
    double corner[2], slope[2];
} bent[] = {
    {"clip_forward", "clip_backward", d_clip, clip_f, clip_b, {-0.5, 2.5}, {0, 0}},
    {"leaky_relu_forward", "leaky_relu_backward", d_leaky, leaky_f, leaky_b, {0, 0}, {0.125, 0.125}},
    {"hard_sigmoid_forward", "hard_sigmoid_backward", d_hard_sigmoid, hard_sigmoid_forward, hard_sigmoid_backward,
     {-3, 3}, {0, 0}},
    {"hard_swish_forward", "hard_swish_backward", d_hard_swish, hard_swish_forward, hard_swish_backward,
     {-3, 3}, {0, 1}},
};

static void ref_bent(const Case *c, double *y)
{
    for (long i = 0; i < c->in[0]->n; i++)
        y[i] = bent[c->d[0]].f(c->in[0]->v[i]);
}

static void bent_case(long which, long n)
{
    const struct Bent *u = &bent[which];
    Tensor *x = operand(REAL, n, -4, 4), *y = result(REAL, n), *dy = operand(REAL, n, -1, 1), *dx = result(REAL, n);
    Case c = {.d = {which}, .in = {x}};
    for (long i = 0; i < n; i++)        /* away from the corners */
        for (int k = 0; k < 2; k++)
            if (fabs(x->v[i] - u->corner[k]) < 0.02) {
                put(x->k, i, 1);
                x->v[i] = 1;
            }
    u->forward(stage, y->k, x->k, n);
    check_value(u->forward_name, y, ref_bent, &c);
    u->backward(stage, dx->k, dy->k, x->k, n);
    check_gradient(u->backward_name, dx, ref_bent, &c, 0, dy);
    for (int k = 0; k < 2; k++) {
        Tensor *at = filled(REAL, 1, u->corner[k]), *one = filled(REAL, 1, 1), *back = result(REAL, 1);
        u->backward(stage, back->k, one->k, at->k, 1);
        check_values(u->backward_name, back, &u->slope[k]);
    }
    case_end();
}

static void corners(void)
{
    for (long which = 0; which < (long)(sizeof bent / sizeof *bent); which++) {
        bent_case(which, 17);
        bent_case(which, 20011);
    }
}

const Check vision_checks[] = {
    {" clip_forward clip_backward leaky_relu_forward leaky_relu_backward hard_sigmoid_forward hard_sigmoid_backward "
     "hard_swish_forward hard_swish_backward ", corners},
    {" output_put ", output},
    {" conv_transpose_forward conv_transpose_backward_x conv_transpose_backward_w ", conv_transpose},
    {" bce_forward bce_backward ", bce},
    {" xent_smooth_forward xent_smooth_backward ", smooth},
    {" pad_forward ", pad},
    {" upsample_forward upsample_backward bilinear_forward bilinear_backward ", upsample},
    {" groupnorm_forward groupnorm_backward_x groupnorm_backward_w ", group_norm},
    {NULL, NULL},
};
