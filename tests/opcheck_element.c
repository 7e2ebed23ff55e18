/* SPDX-License-Identifier: Apache-2.0
 *
 * Checks of norms, softmax, element-wise operators, and those that move elements.  See opcheck.h.
 */
#include <float.h>
#include <math.h>
#include <string.h>
#include "opcheck.h"
#include "rt/philox.h"

/* ---- norms: d rows width; f eps; in x weight bias ---------------------------------------------------------------- */

static void ref_layernorm(const Case *c, double *y)
{
    long width = c->d[1];
    for (long r = 0; r < c->d[0]; r++) {
        const double *x = c->in[0]->v + r * width;
        double mean = 0, square = 0;
        for (long i = 0; i < width; i++)
            mean += x[i] / (double)width;
        for (long i = 0; i < width; i++)
            square += (x[i] - mean) * (x[i] - mean) / (double)width;
        for (long i = 0; i < width; i++)
            y[r * width + i] = (x[i] - mean) / sqrt(square + c->f[0]) * c->in[1]->v[i] +
                               (c->in[2] ? c->in[2]->v[i] : 0);
    }
}

static void ref_rmsnorm(const Case *c, double *y)
{
    long width = c->d[1];
    for (long r = 0; r < c->d[0]; r++) {
        const double *x = c->in[0]->v + r * width;
        double square = 0;
        for (long i = 0; i < width; i++)
            square += x[i] * x[i] / (double)width;
        for (long i = 0; i < width; i++)
            y[r * width + i] = x[i] / sqrt(square + c->f[0]) * c->in[1]->v[i];
    }
}

static const long norm_shapes[][2] = {
    {1, 2}, {3, 7}, {5, 16}, {70, 33}, {2, 1031}, {9, 264}, {70, 264}, {3, 768}, {2, 1000}, {75, 1040},
    {9, 2056}, {5, 4104}, {3, 6200}, {2, 8200},
};
enum { NORM_SHAPES = sizeof norm_shapes / sizeof *norm_shapes };

static Tensor *same_bytes(const Tensor *t)
{
    Tensor *copy = filled(t->type, t->n, 0);
    memcpy(copy->k, t->k, (size_t)t->n * (t->type == REAL ? sizeof(real) : sizeof(float)));
    return copy;
}

/* A call that adds its result to `onto` has the bits of the call alone, which made `term`, and an addition behind it. */
static void check_onto(const char *call, Tensor *got, const Tensor *term, const Tensor *onto)
{
    Tensor *want = result(REAL, got->n);
    grad_add(stage, want->k, onto->k, term->k, got->n);
    read_back(got);
    expect(!memcmp(got->k, want->k, (size_t)got->n * sizeof(real)), "%s of %ld: not the bits of two calls", call, got->n);
}

/* One call has the bits of two: the gradient of a norm, and that of the weight and bias of a Linear with `in` factors a row. */
static void layernorm_linear(long rows, long width, Tensor *dy, Tensor *x, Tensor *w, Tensor *mean, Tensor *rstd, Tensor *onto)
{
    enum { IN = 3 };
    Tensor *factor = operand(REAL, rows * IN, -1, 1), *dx[2], *to[2][4];
    for (int acc = 0; acc < 2; acc++) {
        for (int k = 0; k < 2; k++) {
            dx[k] = result(REAL, rows * width);
            for (int i = 0; i < 4; i++)
                to[k][i] = filled(FLOAT, i == 2 ? width * IN : width, 0.25);
        }
        layernorm_linear_backward(stage, dx[0]->k, to[0][0]->k, to[0][1]->k, to[0][2]->k, to[0][3]->k, dy->k, x->k, factor->k,
                                  w->k, mean->k, rstd->k, acc ? onto->k : 0, 0, acc, rows, IN, width);
        layernorm_backward(stage, dx[1]->k, to[1][0]->k, to[1][1]->k, dy->k, x->k, w->k, mean->k, rstd->k,
                           acc ? onto->k : 0, acc, rows, width);
        linear_backward_w(stage, to[1][2]->k, to[1][3]->k, dx[1]->k, factor->k, 0, acc, rows, IN, width);
        same_bits("layernorm_linear_backward dx", width, dx[0], dx[1]);
        for (int i = 0; i < 4; i++)
            same_bits("layernorm_linear_backward", width, to[0][i], to[1][i]);
    }
}

static void layernorm(void)
{
    enum { MANY = 8300, NARROW = 8 };       /* more chunks of rows than norms have */
    layernorm_linear(MANY, NARROW, operand(REAL, MANY * NARROW, -1, 1), operand(REAL, MANY * NARROW, -1, 3),
                     operand(FLOAT, NARROW, -1, 1), operand(FLOAT, MANY, -1, 1), operand(FLOAT, MANY, 0.5, 1),
                     operand(REAL, MANY * NARROW, -1, 1));
    case_end();
    for (int s = 0; s < NORM_SHAPES; s++) {
        long rows = norm_shapes[s][0], width = norm_shapes[s][1];
        Tensor *x = operand(REAL, rows * width, -1, 3), *w = operand(FLOAT, width, -1, 1);
        Tensor *b = s % 2 ? operand(FLOAT, width, -1, 1) : NULL, *y = result(REAL, x->n);
        Tensor *dy = operand(REAL, x->n, -1, 1);
        Tensor *mean = result(FLOAT, rows), *rstd = result(FLOAT, rows), *dx = result(REAL, x->n);
        Tensor *dw = result(FLOAT, width), *db = result(FLOAT, width);
        Case c = {.d = {rows, width}, .f = {1e-2f}, .in = {x, w, b}};
        layernorm_forward(stage, y->k, mean->k, rstd->k, x->k, w->k, b ? b->k : 0, rows, width, 1e-2f);
        check_value("layernorm_forward", y, ref_layernorm, &c);
        Tensor *more = operand(REAL, x->n, -1, 3), *both = result(REAL, x->n), *two = result(REAL, x->n);
        Tensor *y1 = result(REAL, x->n), *y2 = result(REAL, x->n), *m2 = result(FLOAT, rows), *s2 = result(FLOAT, rows);
        add_layernorm_forward(stage, both->k, y1->k, m2->k, s2->k, x->k, more->k, w->k, b ? b->k : 0, rows, width, 1e-2f);
        add_forward(stage, two->k, x->k, more->k, x->n);
        same_bits("add_layernorm_forward: sum", width, both, two);
        layernorm_forward(stage, y2->k, m2->k, s2->k, two->k, w->k, b ? b->k : 0, rows, width, 1e-2f);
        same_bits("add_layernorm_forward: y", width, y1, y2);
        layernorm_backward(stage, dx->k, dw->k, b ? db->k : 0, dy->k, x->k, w->k, mean->k, rstd->k, 0, 0, rows, width);
        check_gradient("layernorm_backward", dx, ref_layernorm, &c, 0, dy);
        check_gradient("layernorm_backward", dw, ref_layernorm, &c, 1, dy);
        if (b)
            check_gradient("layernorm_backward", db, ref_layernorm, &c, 2, dy);
        norm_bits("layernorm_backward", dx, dw, b ? db : NULL, dy, x, w, mean, rstd, rows, width);
        Tensor *dw2 = same_bytes(dw), *db2 = same_bytes(db), *onto = operand(REAL, x->n, -1, 1), *sum = result(REAL, x->n);
        layernorm_backward(stage, sum->k, dw2->k, b ? db2->k : 0, dy->k, x->k, w->k, mean->k, rstd->k, onto->k, 1, rows, width);
        check_accumulated("layernorm_backward acc", dw, dw2);
        if (b)
            check_accumulated("layernorm_backward acc", db, db2);
        check_onto("layernorm_backward onto", sum, dx, onto);
        Tensor *alone = result(FLOAT, width);
        layernorm_backward(stage, 0, alone->k, b ? db2->k : 0, dy->k, x->k, w->k, mean->k, rstd->k, 0, 0, rows, width);
        same_bits("layernorm_backward without dx", width, alone, dw);
        layernorm_linear(rows, width, dy, x, w, mean, rstd, onto);
        case_end();
    }
}

static void rmsnorm(void)
{
    for (int s = 0; s < NORM_SHAPES; s++) {
        long rows = norm_shapes[s][0], width = norm_shapes[s][1];
        Tensor *x = operand(REAL, rows * width, -1, 3), *w = operand(FLOAT, width, -1, 1), *y = result(REAL, x->n);
        Tensor *dy = operand(REAL, x->n, -1, 1), *rstd = result(FLOAT, rows), *dx = result(REAL, x->n);
        Tensor *dw = result(FLOAT, width);
        Case c = {.d = {rows, width}, .f = {1e-2f}, .in = {x, w}};
        ((float *)w->k)[0] = -0.0f;
        w->v[0] = -0.0;
        rmsnorm_forward(stage, y->k, rstd->k, x->k, w->k, rows, width, 1e-2f);
        check_value("rmsnorm_forward", y, ref_rmsnorm, &c);
        expect(folds() || !signbit(y->v[0]) == !!signbit(x->v[0]), "rmsnorm_forward: a weight of -0 has no sign");
        Tensor *more = operand(REAL, x->n, -1, 3), *both = result(REAL, x->n), *two = result(REAL, x->n);
        Tensor *y1 = result(REAL, x->n), *y2 = result(REAL, x->n), *s2 = result(FLOAT, rows);
        add_rmsnorm_forward(stage, both->k, y1->k, s2->k, x->k, more->k, w->k, rows, width, 1e-2f);
        add_forward(stage, two->k, x->k, more->k, x->n);
        same_bits("add_rmsnorm_forward: sum", width, both, two);
        rmsnorm_forward(stage, y2->k, s2->k, two->k, w->k, rows, width, 1e-2f);
        same_bits("add_rmsnorm_forward: y", width, y1, y2);
        rmsnorm_backward(stage, dx->k, dw->k, dy->k, x->k, w->k, rstd->k, 0, 0, rows, width);
        check_gradient("rmsnorm_backward", dx, ref_rmsnorm, &c, 0, dy);
        check_gradient("rmsnorm_backward", dw, ref_rmsnorm, &c, 1, dy);
        norm_bits("rmsnorm_backward", dx, dw, NULL, dy, x, w, NULL, rstd, rows, width);
        Tensor *dw2 = same_bytes(dw), *onto = operand(REAL, x->n, -1, 1), *sum = result(REAL, x->n);
        rmsnorm_backward(stage, sum->k, dw2->k, dy->k, x->k, w->k, rstd->k, onto->k, 1, rows, width);
        check_accumulated("rmsnorm_backward acc", dw, dw2);
        check_onto("rmsnorm_backward onto", sum, dx, onto);
        Tensor *alone = result(FLOAT, width);
        rmsnorm_backward(stage, 0, alone->k, dy->k, x->k, w->k, rstd->k, 0, 0, rows, width);
        same_bits("rmsnorm_backward without dx", width, alone, dw);
        case_end();
    }
}

static void ref_softmax(const Case *c, double *y)
{
    for (long r = 0; r < c->d[0]; r++) {
        const double *x = c->in[0]->v + r * c->d[1];
        double sum = 0;
        for (long i = 0; i < c->d[1]; i++)
            sum += exp(x[i]);
        for (long i = 0; i < c->d[1]; i++)
            y[r * c->d[1] + i] = exp(x[i]) / sum;
    }
}

static void softmax(void)
{
    for (int s = 0; s < NORM_SHAPES; s++) {
        long rows = norm_shapes[s][0], width = norm_shapes[s][1];
        double far = s ? 6 : 1;
        Tensor *x = operand(REAL, rows * width, -far, far), *y = result(REAL, x->n), *dy = operand(REAL, x->n, -1, 1);
        Tensor *dx = result(REAL, x->n);
        Case c = {.d = {rows, width}, .in = {x}};
        softmax_forward(stage, y->k, x->k, rows, width);
        check_value("softmax_forward", y, ref_softmax, &c);
        softmax_backward(stage, dx->k, dy->k, y->k, rows, width);
        check_gradient("softmax_backward", dx, ref_softmax, &c, 0, dy);
        case_end();
    }
}

/* ---- one in, one out --------------------------------------------------------------------------------------------- */

static double d_relu(double x) { return x > 0 ? x : 0; }
static double d_gelu_erf(double x) { return x * 0.5 * erfc(-x / sqrt(2)); }
static double d_gelu_tanh(double x) { return 0.5 * x * (1 + tanh(sqrt(2 / acos(-1)) * (x + 0.044715 * x * x * x))); }
static double d_silu(double x) { return x / (1 + exp(-x)); }
static double d_elu(double x) { return x > 0 ? x : 0.75 * expm1(x); }
static double d_softplus(double x) { return fmax(x, 0) + log1p(exp(-fabs(x))); }
static double d_sigmoid(double x) { return 1 / (1 + exp(-x)); }

static void gelu_f_tanh(Stage *st, real *y, const real *x, long n) { gelu_forward(st, y, x, n, 1); }
static void gelu_f_erf(Stage *st, real *y, const real *x, long n) { gelu_forward(st, y, x, n, 0); }
static void gelu_b_tanh(Stage *st, real *dx, const real *dy, const real *x, long n)
{
    gelu_backward(st, dx, dy, x, n, 1);
}

static void gelu_b_erf(Stage *st, real *dx, const real *dy, const real *x, long n)
{
    gelu_backward(st, dx, dy, x, n, 0);
}

static void elu_f(Stage *st, real *y, const real *x, long n) { elu_forward(st, y, x, n, 0.75f); }
static void elu_b(Stage *st, real *dx, const real *dy, const real *x, long n) { elu_backward(st, dx, dy, x, n, 0.75f); }

static const struct Unary {
    const char *forward_name, *backward_name;
    double (*f)(double);
    void (*forward)(Stage *, real *, const real *, long);
    void (*backward)(Stage *, real *, const real *, const real *, long);
    int by_result;                      /* backward takes y, not x */
} unaries[] = {
    {"relu_forward", "relu_backward", d_relu, relu_forward, relu_backward, 1},
    {"gelu_forward tanh", "gelu_backward tanh", d_gelu_tanh, gelu_f_tanh, gelu_b_tanh, 0},
    {"gelu_forward erf", "gelu_backward erf", d_gelu_erf, gelu_f_erf, gelu_b_erf, 0},
    {"elu_forward", "elu_backward", d_elu, elu_f, elu_b, 0},
    {"softplus_forward", "softplus_backward", d_softplus, softplus_forward, softplus_backward, 0},
    {"silu_forward", "silu_backward", d_silu, silu_forward, silu_backward, 0},
    {"tanh_forward", "tanh_backward", tanh, tanh_forward, tanh_backward, 1},
    {"sigmoid_forward", "sigmoid_backward", d_sigmoid, sigmoid_forward, sigmoid_backward, 1},
};

static void ref_unary(const Case *c, double *y)
{
    for (long i = 0; i < c->in[0]->n; i++)
        y[i] = unaries[c->d[0]].f(c->in[0]->v[i]);
}

static void unary_case(long which, long n)
{
    const struct Unary *u = &unaries[which];
    double far = u->by_result ? 1.5 : 4;    /* a slope made from a result of 8 bits near 1 has none left */
    Tensor *x = operand(REAL, n, -far, far), *y = result(REAL, n), *dy = operand(REAL, n, -1, 1), *dx = result(REAL, n);
    for (long i = 0; i < n; i++)        /* away from the corner of Relu */
        if (fabs(x->v[i]) < 0.01) {
            put(x->k, i, 0.5f);
            x->v[i] = 0.5;
        }
    Case c = {.d = {which}, .in = {x}};
    u->forward(stage, y->k, x->k, n);
    check_value(u->forward_name, y, ref_unary, &c);
    u->backward(stage, dx->k, dy->k, u->by_result ? y->k : x->k, n);
    check_gradient(u->backward_name, dx, ref_unary, &c, 0, dy);
    case_end();
}

/* Far out no function or slope of these is anything but finite. */
static void unary_far(long which)
{
    const struct Unary *u = &unaries[which];
    for (float far = 8; far < 1e30f; far *= 8)
        for (int sign = -1; sign <= 1; sign += 2) {
            Tensor *x = filled(REAL, 1, sign * (double)far), *y = result(REAL, 1), *one = filled(REAL, 1, 1);
            Tensor *dx = result(REAL, 1);
            u->forward(stage, y->k, x->k, 1);
            u->backward(stage, dx->k, one->k, u->by_result ? y->k : x->k, 1);
            read_back(y);
            read_back(dx);
            expect(fabs(y->v[0] - u->f(x->v[0])) <= fabs((double)far) * 1e-2, "%s(%g) is %g", u->forward_name,
                   x->v[0], y->v[0]);
            expect(fabs(dx->v[0]) <= 1.2, "%s at %g is %g", u->backward_name, x->v[0], dx->v[0]);
            case_end();
        }
}

static void unary(void)
{
    const long sizes[] = {1, 17, 1000, 20011};
    for (long which = 0; which < (long)(sizeof unaries / sizeof *unaries); which++) {
        for (int s = 0; s < 4; s++)
            unary_case(which, sizes[s]);
        unary_far(which);
    }
}

static void ref_scale(const Case *c, double *y)
{
    for (long i = 0; i < c->in[0]->n; i++)
        y[i] = c->in[0]->v[i] * c->f[0];
}

/* The gradient call is the forward call: only the value needs a check. */
static void scale(void)
{
    Tensor *x = operand(REAL, 1009, -1, 1), *y = result(REAL, x->n), *z = result(REAL, x->n);
    Case c = {.f = {0.3f}, .in = {x}};
    scale_forward(stage, y->k, x->k, x->n, 0.3f);
    check_value("scale_forward", y, ref_scale, &c);
    c.f[0] = 1;
    copy_forward(stage, z->k, x->k, x->n);
    check_value("copy_forward", z, ref_scale, &c);
    Tensor *wide = operand(FLOAT, 1009, -1, 1), *narrow = result(REAL, wide->n);
    c.in[0] = wide;
    cast_forward(stage, narrow->k, wide->k, wide->n);
    check_value("cast_forward", narrow, ref_scale, &c);
}

static void ref_dropout(const Case *c, double *y)
{
    long per = c->d[1];
    for (long i = 0; i < c->d[0] * per; i++) {
        uint32_t e = (uint32_t)(i % per), sample = (uint32_t)(c->mb * c->d[0] + i / per), step = (uint32_t)c->vals.step;
        Philox r = philox((Philox){{e / 4, sample, step, 0}}, (uint32_t)c->vals.seed, (uint32_t)c->site);
        double factor = c->vals.eval ? 1 : (double)r.v[e % 4] / 4294967296.0 >= c->f[0] ? 1 / (1 - c->f[0]) : 0;
        y[i] = c->in[0]->v[i] * factor;
    }
}

static void dropout(void)
{
    for (int s = 0; s < 12; s++) {
        const long batch = s % 3 + 1, per = s % 2 == 0 ? 13 : s % 4 == 1 ? 2051 : 2048;
        Tensor *x = operand(REAL, batch * per, 1, 2), *y = result(REAL, x->n);
        Case c = {.d = {batch, per}, .f = {s == 4 ? 0 : 0.1f}, .mb = s, .site = 99, .in = {x}};
        c.vals = (Values){.seed = 7, .step = s, .eval = s == 5};
        dropout_forward(stage, y->k, x->k, 0, &c.vals, c.mb, batch, per, (float)c.f[0], c.site);
        check_value("dropout_forward", y, ref_dropout, &c);
        Tensor *onto = operand(REAL, x->n, -1, 1), *sum = result(REAL, x->n);
        dropout_forward(stage, sum->k, x->k, onto->k, &c.vals, c.mb, batch, per, (float)c.f[0], c.site);
        check_onto("dropout_forward onto", sum, y, onto);
        case_end();
    }
}

/* ---- few bits: records, written from docs/bits.md, in double, bit by bit ------------------------------------------- */

/* The scale of a record; NaN: one of its numbers is not finite, or the scale is too large. */
static double scale_in_double(const double *x, long n, int most)
{
    double top = 0;
    int exponent;
    for (long i = 0; i < n; i++)
        if (!isfinite(x[i]))
            return NAN;
        else
            top = fmax(top, fabs(x[i]));
    double s = (float)(top / most);
    frexp(s, &exponent);
    double unit = ldexp(1, exponent - 16 > -141 ? exponent - 16 : -141);
    s = ceil(s / unit) * unit;
    return s > (double)FLT_MAX ? NAN : s;
}

static long code_in_double(double x, double scale, long most, const Case *c, long e)
{
    double at = scale > 0 ? (float)(x / scale) : 0, low = floor(at);
    if (c->f[0] == 0 || c->vals.eval)
        return (long)nearbyint(at);
    long per = c->d[1] * c->d[2] / c->d[0], k = e % per;
    Philox r = philox((Philox){{(uint32_t)(k / 4), (uint32_t)(c->mb * c->d[0] + e / per), (uint32_t)c->vals.step, 0}},
                      (uint32_t)c->vals.seed, (uint32_t)c->site);
    long code = (long)low + ((r.v[k % 4] >> 8) / 16777216.0 < (double)(float)(at - low));
    return code > most ? most : code < -most ? -most : code;
}

/* Rows that are hard to round: all zeros, subnormal numbers, the largest ones, one that is not finite, ties. */
static void hard_row(Tensor *x, long row, long width, int most)
{
    double over = (256.47 * most) * 0x1p-149;       /* the scale is 256 units: codes drawn would be most + 1 */
    for (long i = row * width; i < (row + 1) * width; i++) {
        double v = x->v[i];
        v = row == 1 ? 0 : row == 2 ? (double)(float)(v * 0x1p-133) : row == 3 ? (v < 0 ? -FLT_MAX : FLT_MAX)
            : row == 4 && i % width == width / 2 ? INFINITY : row == 5 && i % width == 0 ? NAN
            : row == 6 ? (double)(i % width - 3) / 2 : row == 7 ? (v < 0 ? -over : over) : v;
        put(x->k, i, (float)v);
        x->v[i] = get(x->k, i);
    }
}

static void few(void)
{
    static const int offered[] = {8, 6, 4, 2};
    static const long sizes[][3] = {{1, 1, 1}, {2, 8, 7}, {3, 9, 16}, {2, 8, 45}, {1, 7, 1100}, {2, 8, 5006}};
    for (int s = 0; s < 48; s++) {
        const long *d = sizes[s / 8], rows = d[1], width = d[2];
        const int bits = offered[s % 4], most = (1 << (bits - 1)) - 1;
        const long words = 1 + (width + 15) / 16 * bits / 2;
        Tensor *x = operand(REAL, rows * width, -2, 2), *y = result(REAL, x->n), *want = result(REAL, x->n);
        int32_t *code = ids(rows * words, 1, 1 << 20);
        Case c = {.d = {d[0], rows, width}, .f = {s / 4 % 2}, .mb = 5, .site = 77};
        c.vals = (Values){.seed = 3, .step = 11, .eval = s == 4};
        long wrong = 0;
        for (long row = 1; row < rows; row++)
            hard_row(x, row, width, most);
        round_forward(stage, code, x->k, &c.vals, c.mb, d[0], rows, width, words, bits, (float)c.f[0], c.site);
        unpack_forward(stage, y->k, code, rows, width, words, bits);
        hash(code, rows * words, sizeof *code);
        for (long i = 0; i < x->n; i++) {
            const int32_t *record = code + i / width * words;
            double scale = scale_in_double(x->v + i / width * width, width, most);
            long at = i % width * bits, got = 0;
            float first;
            memcpy(&first, record, sizeof first);
            for (int b = 0; b < bits; b++)
                got |= (long)((uint32_t)record[1 + (at + b) / 32] >> (at + b) % 32 & 1) << b;
            long to = isnan(scale) ? 0 : code_in_double(x->v[i], scale, most, &c, i);
            wrong += got != to + most || (isnan(scale) ? isfinite(first) : first != scale);
            int none = isnan(scale) && isnan((double)get(y->k, i));
            put(y->k, i, none ? 0 : get(y->k, i));
            put(want->k, i, none ? 0 : (float)((double)to * scale));
        }
        expect(wrong == 0 || hashing(), "round_forward: %ld of %ld codes of %d bits, or scales, are wrong", wrong, x->n, bits);
        same_bits("unpack_forward", s, y, want);
        /* Where the gradient is rounded too: the same there and back, of dy */
        int32_t *same = ids(rows * words, 1, 1 << 20), *dcode = ids(rows * words, 1, 1 << 20);
        Tensor *dx = result(REAL, x->n);
        const float drop = (float)c.f[0];
        round_both_forward(stage, same, x->k, &c.vals, c.mb, d[0], rows, width, words, bits, bits, words, drop, c.site);
        unpack_both_forward(stage, y->k, same, d[0], rows, width, words, bits, bits, words, drop, c.site);
        unpack_both_backward(stage, dcode, x->k, &c.vals, c.mb, d[0], rows, width, words, bits, drop, c.site);
        round_both_backward(stage, dx->k, dcode, rows, width, words, bits);
        expect(!memcmp(same, code, (size_t)(rows * words) * sizeof *code), "round_both_forward: other codes");
        expect(!memcmp(dcode, code, (size_t)(rows * words) * sizeof *code), "unpack_both_backward: other codes");
        for (long i = 0; i < x->n; i++)
            if (isnan(scale_in_double(x->v + i / width * width, width, most))) {
                put(y->k, i, isnan((double)get(y->k, i)) ? 0 : 1);
                put(dx->k, i, isnan((double)get(dx->k, i)) ? 0 : 1);
            }
        same_bits("unpack_both_forward", s, y, want);
        same_bits("round_both_backward", s, dx, want);
        case_end();
    }
}

/* ---- two in: d n nb ---------------------------------------------------------------------------------------------- */

static void ref_add(const Case *c, double *y)
{
    for (long i = 0; i < c->d[0]; i++)
        y[i] = c->in[0]->v[i] + c->in[1]->v[i % c->d[1]];
}

static void ref_mul(const Case *c, double *y)
{
    for (long i = 0; i < c->d[0]; i++)
        y[i] = c->in[0]->v[i] * c->in[1]->v[i % c->d[1]];
}

static void binary(void)
{
    const long shapes[][2] = {{1, 1}, {15, 5}, {1003, 1003}, {40 * 301, 301}, {3 * 5000, 5000}, {70 * 64, 64},
                               {341 * 24, 24}};
    for (int s = 0; s < 7; s++) {
        long n = shapes[s][0], nb = shapes[s][1];
        Tensor *a = operand(REAL, n, -1, 1), *b = operand(REAL, nb, -1, 1), *y = result(REAL, n), *z = result(REAL, n);
        Tensor *dy = operand(REAL, n, -1, 1), *da = result(REAL, n), *db = result(REAL, nb), *db2 = result(REAL, nb);
        Case c = {.d = {n, nb}, .in = {a, b}};
        add_broadcast_forward(stage, y->k, a->k, b->k, n, nb);
        check_value("add_broadcast_forward", y, ref_add, &c);
        memcpy(z->k, a->k, (size_t)n * sizeof(real));
        add_broadcast_forward(stage, z->k, z->k, b->k, n, nb);          /* in place, as behind a convolution */
        same_bits("add_broadcast_forward", n, z, y);
        add_broadcast_backward(stage, db->k, dy->k, n, nb);
        check_gradient("add_broadcast_backward", db, ref_add, &c, 1, dy);
        mul_forward(stage, z->k, a->k, b->k, n, nb);
        check_value("mul_forward", z, ref_mul, &c);
        mul_backward(stage, da->k, 0, dy->k, a->k, b->k, n, nb);
        mul_backward(stage, 0, db2->k, dy->k, a->k, b->k, n, nb);
        check_gradient("mul_backward da", da, ref_mul, &c, 0, dy);
        check_gradient("mul_backward db", db2, ref_mul, &c, 1, dy);
        if (n == nb) {
            Tensor *sum = result(REAL, n), *more = result(REAL, n);
            add_forward(stage, sum->k, a->k, b->k, n);
            check_value("add_forward", sum, ref_add, &c);
            grad_add(stage, more->k, a->k, b->k, n);
            check_value("grad_add", more, ref_add, &c);
        }
        case_end();
    }
}

/* ---- shape ------------------------------------------------------------------------------------------------------- */

enum { PARTS = 8 };
#define PARTS_OF(p) p[0], p[1], p[2], p[3], p[4], p[5], p[6], p[7]

static void ref_concat(const Case *c, double *y)
{
    for (long r = 0; r < c->d[0]; r++)
        for (long i = 0; i < PARTS; i++)
            for (long j = 0; j < c->d[i + 1]; j++)
                *y++ = c->in[i]->v[r * c->d[i + 1] + j];
}

static void concat(void)
{
    static const long shapes[][PARTS + 1] = {{1, 1, 1}, {3, 2, 5, 7, 1}, {17, 33, 4}, {5, 8, 9, 10}, {6, 16, 8},
                                             {4, 3, 1, 2, 4, 5, 8, 6, 7}, {3, 8, 8, 8, 16, 8, 24}};
    for (size_t s = 0; s < sizeof shapes / sizeof *shapes; s++) {
        const long *n = shapes[s] + 1, rows = shapes[s][0];
        Tensor *x[PARTS], *dx[PARTS];
        Case c = {.d = {0}};
        void *at[PARTS], *grad[PARTS];
        long whole = 0;
        memcpy(c.d, shapes[s], sizeof *shapes);
        for (int i = 0; i < PARTS; i++) {
            c.in[i] = x[i] = operand(REAL, rows * n[i], -1, 1);
            dx[i] = result(REAL, x[i]->n);
            at[i] = n[i] ? x[i]->k : 0;
            grad[i] = n[i] ? dx[i]->k : 0;
            whole += n[i];
        }
        Tensor *y = result(REAL, rows * whole), *dy = operand(REAL, y->n, -1, 1);
        concat_forward(stage, y->k, PARTS_OF(at), rows, PARTS_OF(n));
        check_value("concat_forward", y, ref_concat, &c);
        void *first = grad[0];
        grad[0] = 0;
        concat_backward(stage, PARTS_OF(grad), dy->k, rows, PARTS_OF(n));
        concat_backward(stage, first, 0, 0, 0, 0, 0, 0, 0, dy->k, rows, PARTS_OF(n));
        grad[0] = first;
        for (int i = 0; i < PARTS; i++)
            if (grad[i])
                check_gradient("concat_backward", dx[i], ref_concat, &c, i, dy);
        case_end();
    }
}

static void ref_slice(const Case *c, double *y)
{
    for (long r = 0; r < c->d[0]; r++)
        for (long j = 0; j < c->d[3]; j++)
            *y++ = c->in[0]->v[r * c->d[1] + c->d[2] + j];
}

static void slice(void)
{
    const long shapes[][4] = {{1, 1, 0, 1}, {7, 13, 5, 8}, {40, 96, 32, 32}, {3, 9, 0, 4}};
    for (int s = 0; s < 4; s++) {
        const long *d = shapes[s];
        Tensor *x = operand(REAL, d[0] * d[1], -1, 1), *y = result(REAL, d[0] * d[3]), *dy = operand(REAL, y->n, -1, 1);
        Tensor *dx = result(REAL, x->n);
        Case c = {.d = {d[0], d[1], d[2], d[3]}, .in = {x}};
        slice_forward(stage, y->k, x->k, d[0], d[1], d[2], d[3]);
        check_value("slice_forward", y, ref_slice, &c);
        slice_backward(stage, dx->k, dy->k, d[0], d[1], d[2], d[3]);
        check_gradient("slice_backward", dx, ref_slice, &c, 0, dy);
        case_end();
    }
}

static void ref_transpose(const Case *c, double *y)
{
    const long *d = c->d, *p = c->d + 4;
    long at[4];
    for (at[0] = 0; at[0] < d[0]; at[0]++)
        for (at[1] = 0; at[1] < d[1]; at[1]++)
            for (at[2] = 0; at[2] < d[2]; at[2]++)
                for (at[3] = 0; at[3] < d[3]; at[3]++)
                    y[((at[p[0]] * d[p[1]] + at[p[1]]) * d[p[2]] + at[p[2]]) * d[p[3]] + at[p[3]]] =
                        c->in[0]->v[((at[0] * d[1] + at[1]) * d[2] + at[2]) * d[3] + at[3]];
}

/* All 24 orders; the gradient is the same call with the order turned round. */
static void transpose(void)
{
    const long shapes[][4] = {{3, 5, 2, 7}, {2, 37, 3, 41}, {3, 2, 5, 16}};
    for (long code = 0; code < 3 * 256; code++) {
        const long *d = shapes[code >> 8], p[4] = {code & 3, code >> 2 & 3, code >> 4 & 3, code >> 6 & 3};
        if ((1 << p[0] | 1 << p[1] | 1 << p[2] | 1 << p[3]) != 15)
            continue;
        Tensor *x = operand(REAL, d[0] * d[1] * d[2] * d[3], -1, 1), *y = result(REAL, x->n);
        Case c = {.d = {d[0], d[1], d[2], d[3], p[0], p[1], p[2], p[3]}, .in = {x}};
        transpose_forward(stage, y->k, x->k, d[0], d[1], d[2], d[3], p[0], p[1], p[2], p[3]);
        check_value("transpose_forward", y, ref_transpose, &c);
        case_end();
    }
}

static void ref_reduce(const Case *c, double *y)
{
    memset(y, 0, (size_t)(c->d[0] * c->d[2]) * sizeof *y);
    for (long i = 0; i < c->in[0]->n; i++)
        y[i / (c->d[1] * c->d[2]) * c->d[2] + i % c->d[2]] += c->in[0]->v[i] * c->f[0];
}

static void reduce(void)
{
    const long shapes[][3] = {{1, 1, 1}, {5, 7, 1}, {3, 1201, 1}, {3, 5, 301}, {1, 40, 900}, {6, 1, 5}, {2, 70, 64},
                              {3, 1040, 1}};
    for (int s = 0; s < 8; s++) {
        const long *d = shapes[s];
        Tensor *x = operand(REAL, d[0] * d[1] * d[2], 0, 1), *y = result(REAL, d[0] * d[2]);
        Tensor *dy = operand(REAL, y->n, -1, 1);
        Tensor *dx = result(REAL, x->n);
        float factor = s % 2 ? 1 : 1 / (float)d[1];
        Case c = {.d = {d[0], d[1], d[2]}, .f = {(double)factor}, .in = {x}};
        reduce_forward(stage, y->k, x->k, d[0], d[1], d[2], factor);
        check_value("reduce_forward", y, ref_reduce, &c);
        reduce_backward(stage, dx->k, dy->k, 0, d[0], d[1], d[2], factor);
        check_gradient("reduce_backward", dx, ref_reduce, &c, 0, dy);
        Tensor *onto = operand(REAL, x->n, -1, 1), *sum = result(REAL, x->n);
        reduce_backward(stage, sum->k, dy->k, onto->k, d[0], d[1], d[2], factor);
        check_onto("reduce_backward onto", sum, dx, onto);
        case_end();
    }
}

const Check element_checks[] = {
    {" layernorm_forward layernorm_backward add_layernorm_forward layernorm_linear_backward ", layernorm},
    {" rmsnorm_forward rmsnorm_backward add_rmsnorm_forward ", rmsnorm},
    {" softmax_forward softmax_backward ", softmax},
    {" relu_forward relu_backward gelu_forward gelu_backward silu_forward silu_backward "
     "elu_forward elu_backward softplus_forward softplus_backward ", unary},
    {" tanh_forward tanh_backward sigmoid_forward sigmoid_backward ", unary},
    {" scale_forward copy_forward cast_forward ", scale},
    {" dropout_forward ", dropout},
    {" round_forward unpack_forward round_both_forward round_both_backward unpack_both_forward unpack_both_backward ", few},
    {" add_forward add_broadcast_forward add_broadcast_backward mul_forward mul_backward grad_add ", binary},
    {" concat_forward concat_backward ", concat},
    {" slice_forward slice_backward ", slice},
    {" transpose_forward ", transpose},
    {" reduce_forward reduce_backward ", reduce},
    {0, 0},
};
