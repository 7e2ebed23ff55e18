/* SPDX-License-Identifier: Apache-2.0
 *
 * unit_onednn.c: the kernels of rt/op/onednn against their definition, computed here in double, one element at a time.
 *
 * Every call is made with no, some and all optional operands, on sizes that divide nothing, twenty times with equal
 * bits at one thread count, and attention at several.  Build once with and once without -DREAL_BF16; where the build
 * asks for an instruction set that this CPU lacks, the test says so and passes nothing.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "../rt/op/onednn/product.h"
#include "../rt/op/steps.h"
#include "../rt/philox.h"
#include "../rt/real.h"

enum { MOST = 1 << 17, REPEATS = 20, F32 = sizeof(real) == sizeof(float) };
static int passed, failed;
static Stage stage = { .threads = 2, .count = 1 };
static Stage *const st = &stage;

static void check(int ok, const char *what, const char *why, double by)
{
    ok ? passed++ : failed++;
    if (!ok)
        fprintf(stderr, "%s: %s (%g)\n", what, why, by);
}

static uint64_t state = 1;
static double uniform(void)
{
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (double)(state >> 40) * 0x1p-24 - 0.5;
}

static real *reals(long n)
{
    real *x = handle_alloc((size_t)n * sizeof *x);
    for (long i = 0; i < n; i++)
        put(x, i, (float)uniform());
    return x;
}

static float *floats(long n)
{
    float *x = handle_alloc((size_t)n * sizeof *x);
    for (long i = 0; i < n; i++)
        x[i] = (float)uniform();
    return x;
}

/* Largest distance relative to the largest expected value.  f32: 2^-24 an addition, and they grow as the root of their
 * number; bf16: results are rounded to 8 bits. */
static void near_real(const char *what, const real *x, const double *want, long n)
{
    double worst = 0, most = 1e-30;
    for (long i = 0; i < n; i++) {
        double by = fabs((double)get(x, i) - want[i]);
        worst = by > worst || by != by ? by : worst;
        most = fabs(want[i]) > most ? fabs(want[i]) : most;
    }
    check(worst <= most * (F32 ? 4e-6 : 8e-3), what, "far from the definition", worst / most);
}

static void near_float(const char *what, const float *x, const double *want, long n)
{
    double worst = 0, most = 1e-30;
    for (long i = 0; i < n; i++) {
        double by = fabs((double)x[i] - want[i]);
        worst = by > worst || by != by ? by : worst;
        most = fabs(want[i]) > most ? fabs(want[i]) : most;
    }
    check(worst <= most * 4e-6, what, "far from the definition", worst / most);
}

/* Do `call` again REPEATS times; what it wrote to `at` must not change. */
#define AGAIN(what, at, bytes, call) \
    do { \
        static unsigned char first_[MOST * 8]; \
        memcpy(first_, at, bytes); \
        int same_ = 1; \
        for (int i_ = 0; i_ < REPEATS; i_++) { \
            call; \
            same_ = same_ && !memcmp(first_, at, bytes); \
        } \
        check(same_, what, "other bits when repeated", 0); \
    } while (0)

/* ---- products ------------------------------------------------------------------------------------------------ */
/* want[m n] = sum over k of a(i, l) b(l, j), from strided operands */
static void define(double *want, const real *a, long ai, long al, const real *b, long bl, long bj,
                   long m, long n, long k)
{
    for (long i = 0; i < m; i++)
        for (long j = 0; j < n; j++) {
            double sum = 0;
            for (long l = 0; l < k; l++)
                sum += (double)get(a, i * ai + l * al) * (double)get(b, l * bl + j * bj);
            want[i * n + j] = sum;
        }
}

static void linear(long rows, long in, long out)
{
    static double want[MOST];
    real *x = reals(rows * in), *w = reals(out * in), *b = reals(out), *dy = reals(rows * out);
    real *y = reals(rows * out), *dx = reals(rows * in);
    float *dw = floats(out * in), *db = floats(out);
    open_linear_forward(st, 0, rows, in, out);
    open_linear_backward_x(st, 1, rows, in, out);
    open_linear_backward_w(st, 2, rows, in, out);

    define(want, x, in, 1, w, 1, in, rows, out, in);
    linear_forward(st, y, x, w, NULL, 0, rows, in, out);
    near_real("linear_forward", y, want, rows * out);
    for (long i = 0; i < rows * out; i++)
        want[i] += (double)get(b, i % out);
    linear_forward(st, y, x, w, b, 0, rows, in, out);
    near_real("linear_forward with bias", y, want, rows * out);
    AGAIN("linear_forward", y, (size_t)(rows * out) * sizeof(real), linear_forward(st, y, x, w, b, 0, rows, in, out));

    define(want, dy, out, 1, w, in, 1, rows, in, out);
    linear_backward_x(st, dx, dy, w, 1, rows, in, out);
    near_real("linear_backward_x", dx, want, rows * in);
    AGAIN("linear_backward_x", dx, (size_t)(rows * in) * sizeof(real),
          linear_backward_x(st, dx, dy, w, 1, rows, in, out));

    for (int acc = 0; acc < 2; acc++) {
        define(want, dy, 1, out, x, in, 1, out, in, rows);
        double bias[4096];
        for (long j = 0; j < out; j++) {
            bias[j] = acc ? (double)db[j] : 0;
            for (long i = 0; i < rows; i++)
                bias[j] += (double)get(dy, i * out + j);
        }
        for (long i = 0; acc && i < out * in; i++)
            want[i] += (double)dw[i];
        linear_backward_w(st, dw, db, dy, x, 2, acc, rows, in, out);
        near_float(acc ? "linear_backward_w adds" : "linear_backward_w writes", dw, want, out * in);
        near_float(acc ? "linear bias gradient adds" : "linear bias gradient writes", db, bias, out);
    }
    linear_backward_w(st, dw, NULL, dy, x, 2, 0, rows, in, out);
    AGAIN("linear_backward_w", dw, (size_t)(out * in) * 4, linear_backward_w(st, dw, NULL, dy, x, 2, 0, rows, in, out));
}

/* A weight gradient is made of narrowed gradients of scores: it is compared as if it were narrowed too. */
static void near_narrowed(const char *what, const float *x, const double *want, long n)
{
    static real to[MOST];
    for (long i = 0; i < n; i++)
        put(to, i, x[i]);
    near_real(what, to, want, n);
}

/* Quarters, so that scores are exact in bf16 too. */
static real *quarters(long n)
{
    real *x = reals(n);
    for (long i = 0; i < n; i++)
        put(x, i, floorf(8 * get(x, i) + 0.5f) / 4);
    return x;
}

/* What the gradients of the scores are, in double, and the loss and the lse of each row. */
static void define_head(double *d, double *loss, double *lse, const real *x, const real *w, const real *b,
                        const int32_t *target, long rows, long in, long out, double share)
{
    *loss = 0;
    for (long r = 0; r < rows; r++, d += out) {
        double sum = 0;
        for (long o = 0; o < out; o++) {
            d[o] = b ? (double)get(b, o) : 0;
            for (long i = 0; i < in; i++)
                d[o] += (double)get(x, r * in + i) * (double)get(w, o * in + i);
            sum += exp(d[o]);
        }
        lse[r] = log(sum);
        int counts = target[r] >= 0;
        *loss += counts ? share * (lse[r] - d[target[r]]) : 0;
        for (long o = 0; o < out; o++)
            d[o] = counts ? share * (exp(d[o] - lse[r]) - (o == target[r])) : 0;
    }
}

/* Quarters make scores exact: which are larger is known, and of equal ones the first is. */
static void head_hits(const real *x, const real *w, const real *b, const int32_t *target, long rows, long in, long out,
                      long chunk)
{
    static double score[4096];
    long hits = 0, top = out > 3 ? 3 : 1;
    Values vals = { .valid = { 0, 3 * rows }, .eval = 1 };
    for (long r = 0; r < rows; r++) {
        long ahead = 0;
        for (long o = 0; o < out; o++) {
            score[o] = b ? (double)get(b, o) : 0;
            for (long i = 0; i < in; i++)
                score[o] += (double)get(x, r * in + i) * (double)get(w, o * in + i);
        }
        for (long o = 0; o < out && target[r] >= 0; o++)
            ahead += score[o] > score[target[r]] || (o < target[r] && score[o] == score[target[r]]);
        hits += target[r] >= 0 && ahead < top;
    }
    float loss, *lse = floats(rows);
    void *tmp = floats(rows * chunk + 4 * rows + 16);
    open_linear_xent_hits_forward(st, 3, rows, in, out, chunk, -1, 1, top);
    linear_xent_hits_forward(st, &loss, lse, x, w, b, target, tmp, &vals, 3, rows, in, out, chunk, -1, 1, top);
    check(vals.hits == hits, "linear_xent_hits_forward", "other hits", vals.hits);
}

static void head(long rows, long in, long out, long chunk, int biased)
{
    static double d[MOST], want[MOST], lse[512];
    real *x = quarters(rows * in), *w = quarters(out * in), *b = biased ? quarters(out) : NULL, *dx = reals(rows * in);
    float *dw = floats(out * in), *db = floats(out), *kept = floats(rows), loss, dloss = 0.5f;
    int32_t target[512];
    void *tmp = floats(rows * chunk + rows * (in > 2 ? in : 2) + 16);
    Values vals = { .valid = { 0, 3 * rows } };
    for (long r = 0; r < rows; r++)
        target[r] = r == 1 ? -1 : (int32_t)((uniform() + 0.5) * (double)out);
    double sum;
    define_head(d, &sum, lse, x, w, b, target, rows, in, out, 1 / (double)(3 * rows));
    open_linear_xent_forward(st, 0, rows, in, out, chunk, -1, 1);
    open_linear_xent_backward(st, 1, rows, in, out, chunk, -1, 1);
    linear_xent_forward(st, &loss, kept, x, w, b, target, tmp, &vals, 0, rows, in, out, chunk, -1, 1);
    near_float("linear_xent_forward", &loss, &sum, 1);
    near_float("linear_xent_forward lse", kept, lse, rows);
    head_hits(x, w, b, target, rows, in, out, chunk);
    for (int acc = 0; acc < 2; acc++) {
        linear_xent_backward(st, dx, dw, b ? db : NULL, &dloss, x, w, b, kept, target, tmp, &vals, 1, acc, rows, in, out, chunk,
                             -1, 1);
        for (long i = 0; i < out * in; i++) {
            want[i] = 0;
            for (long r = 0; r < rows; r++)
                want[i] += 0.5 * (acc + 1) * d[r * out + i / in] * (double)get(x, r * in + i % in);
        }
        near_narrowed(acc ? "linear_xent dweight adds" : "linear_xent dweight writes", dw, want, out * in);
        for (long o = 0; o < out; o++) {
            want[o] = 0;
            for (long r = 0; r < rows; r++)
                want[o] += 0.5 * (acc + 1) * d[r * out + o];
        }
        if (b)
            near_narrowed(acc ? "linear_xent dbias adds" : "linear_xent dbias writes", db, want, out);
    }
    for (long i = 0; i < rows * in; i++) {
        want[i] = 0;
        for (long o = 0; o < out; o++)
            want[i] += 0.5 * d[i / in * out + o] * (double)get(w, o * in + i % in);
    }
    near_real("linear_xent dx", dx, want, rows * in);
    AGAIN("linear_xent_backward", dx, (size_t)(rows * in) * sizeof(real),
          linear_xent_backward(st, dx, dw, NULL, &dloss, x, w, b, kept, target, tmp, &vals, 1, 0, rows, in, out, chunk, -1, 1));
}

static void matmul(long batch, long m, long n, long k, int ta, int tb)
{
    static double want[MOST];
    real *a = reals(batch * m * k), *b = reals(batch * k * n), *dy = reals(batch * m * n), *y = reals(batch * m * n);
    real *da = reals(batch * m * k), *db = reals(batch * k * n);
    long ai = ta ? 1 : k, al = ta ? m : 1, bl = tb ? 1 : n, bj = tb ? k : 1;
    open_matmul_forward(st, 0, batch, m, n, k, ta, tb);
    open_matmul_backward(st, 1, batch, m, n, k, ta, tb);

    for (long s = 0; s < batch; s++)
        define(want + s * m * n, a + s * m * k, ai, al, b + s * k * n, bl, bj, m, n, k);
    matmul_forward(st, y, a, b, 0, batch, m, n, k, ta, tb);
    near_real("matmul_forward", y, want, batch * m * n);
    AGAIN("matmul_forward", y, (size_t)(batch * m * n) * sizeof(real),
          matmul_forward(st, y, a, b, 0, batch, m, n, k, ta, tb));

    matmul_backward(st, da, db, dy, a, b, 1, batch, m, n, k, ta, tb);
    for (long s = 0; s < batch; s++)                    /* as stored: element (row, col) of da is (i, l) or (l, i) */
        if (ta)
            define(want + s * m * k, b + s * k * n, bl, bj, dy + s * m * n, 1, n, k, m, n);
        else
            define(want + s * m * k, dy + s * m * n, n, 1, b + s * k * n, bj, bl, m, k, n);
    near_real("matmul da", da, want, batch * m * k);
    for (long s = 0; s < batch; s++)
        if (tb)
            define(want + s * k * n, dy + s * m * n, 1, n, a + s * m * k, ai, al, n, k, m);
        else
            define(want + s * k * n, a + s * m * k, al, ai, dy + s * m * n, n, 1, k, n, m);
    near_real("matmul db", db, want, batch * k * n);
    AGAIN("matmul_backward", da, (size_t)(batch * m * k) * sizeof(real),
          matmul_backward(st, da, NULL, dy, a, b, 1, batch, m, n, k, ta, tb));
}

/* ---- attention -------------------------------------------------------------------------------------------------- */
typedef struct { long batch, heads, query, key, width; int packed, causal, bias, mask; float drop; } Case;
typedef struct { double *y, *lse, *q, *k, *v, *bias; } Want;

/* Row (sample b, head, query i) by the definition; adds its share to the gradients. */
static void define_row(Want *w, const Case *c, const Values *vals, const real *q, const real *k, const real *v,
                       const real *bias, const int32_t *mask, const real *dy, long row, long b, long head, long i)
{
    double p[512], f[512], dp[512], most = -INFINITY, sum = 0, inner = 0, scale = 0.5;
    long all = c->heads * c->width, kv = c->packed ? 3 * all : all;
    const real *qi = q + (b * c->query + i) * row + head * c->width;
    const real *dyi = dy + (b * c->query + i) * all + head * c->width;
    long at = (b * c->heads + head) * c->query + i, from = b * c->key * kv + head * c->width;
    Drop d = drop_of(vals, 3 * c->batch + b, c->drop, 77);
    for (long j = 0; j < c->key; j++) {
        long e = (head * c->query + i) * c->key + j;
        Philox r = philox((Philox){ { (uint32_t)(e / 4), d.sample, d.step[0], d.step[1] } }, d.key[0], d.key[1]);
        f[j] = c->drop == 0 ? 1 : r.v[e % 4] >= d.threshold ? 1 / (1 - (double)c->drop) : 0;
        p[j] = c->bias ? (double)get(bias, e) : 0;
        for (long n = 0; n < c->width; n++)
            p[j] += scale * (double)get(qi, n) * (double)get(k, from + j * kv + n);
        if ((c->causal && j > i) || (c->mask && !mask[b * c->key + j]))
            p[j] = -INFINITY;
        most = p[j] > most ? p[j] : most;
    }
    for (long j = 0; j < c->key; j++)
        sum += p[j] == -INFINITY ? 0 : exp(p[j] - most);
    w->lse[at] = most + log(sum);
    for (long j = 0; j < c->key; j++) {
        p[j] = p[j] == -INFINITY ? 0 : exp(p[j] - most) / sum;
        dp[j] = 0;
        for (long n = 0; n < c->width; n++) {
            w->y[(b * c->query + i) * all + head * c->width + n] += p[j] * f[j] * (double)get(v, from + j * kv + n);
            w->v[(b * c->key + j) * kv + head * c->width + n] += p[j] * f[j] * (double)get(dyi, n);
            dp[j] += f[j] * (double)get(dyi, n) * (double)get(v, from + j * kv + n);
        }
        inner += p[j] * dp[j];
    }
    for (long j = 0; j < c->key; j++) {
        double ds = p[j] * (dp[j] - inner);
        if (w->bias)
            w->bias[(head * c->query + i) * c->key + j] += ds;
        for (long n = 0; n < c->width; n++) {
            w->q[(b * c->query + i) * row + head * c->width + n] += scale * ds * (double)get(k, from + j * kv + n);
            w->k[(b * c->key + j) * kv + head * c->width + n] += scale * ds * (double)get(qi, n);
        }
    }
}

static double *doubles(long n) { return handle_alloc((size_t)n * sizeof(double)); }

/* -infinity where nothing is seen. */
static void near_lse(const float *lse, const double *want, long rows)
{
    long wrong = 0;
    for (long i = 0; i < rows; i++)
        wrong += !((double)lse[i] == want[i] || fabs((double)lse[i] - want[i]) < 1e-5);
    check(!wrong, "attention lse", "rows differ", (double)wrong);
}

static void attention(Case c)
{
    long all = c.heads * c.width, nq = c.batch * c.query * all, nk = c.batch * c.key * all;
    long row = c.packed ? 3 * all : all, nb = c.heads * c.query * c.key, rows = c.batch * c.heads * c.query;
    real *q = reals(c.packed ? 3 * nq : nq), *k = c.packed ? q + all : reals(nk);
    real *v = c.packed ? q + 2 * all : reals(nk);
    real *bias = c.bias ? reals(nb) : NULL, *dy = reals(nq), *y = reals(nq), *dbias = c.bias ? reals(nb) : NULL;
    real *dq = reals(c.packed ? 3 * nq : nq), *dk = c.packed ? dq + all : reals(nk);
    real *dv = c.packed ? dq + 2 * all : reals(nk);
    int32_t *mask = c.mask ? handle_alloc((size_t)(c.batch * c.key) * 4) : NULL;
    for (long i = 0; mask && i < c.batch * c.key; i++)
        mask[i] = i / c.key ? i % 3 != 0 : c.mask == 1;         /* 2: the first sample sees nothing */
    float *lse = floats(rows);
    Values vals = { .step = 5, .seed = 42 };
    long size = c.packed ? 3 * nq : nq;
    Want w = { doubles(nq), doubles(rows), doubles(size), NULL, NULL, c.bias ? doubles(nb) : NULL };
    w.k = c.packed ? w.q + all : doubles(nk), w.v = c.packed ? w.q + 2 * all : doubles(nk);
    for (long r = 0; r < rows; r++)
        define_row(&w, &c, &vals, q, k, v, bias, mask, dy, row, r / c.query / c.heads, r / c.query % c.heads,
                   r % c.query);

#define FORWARD() (c.packed \
    ? attention_packed_forward(st, y, lse, q, bias, mask, &vals, 3, 0, c.batch, c.heads, c.query, c.width, c.causal, \
                               0.5f, c.drop, 77) \
    : attention_forward(st, y, lse, q, k, v, bias, mask, &vals, 3, 0, c.batch, c.heads, c.query, c.key, c.width, \
                        c.causal, 0.5f, c.drop, 77))
#define BACKWARD() (c.packed \
    ? attention_packed_backward(st, dq, dbias, dy, y, q, bias, mask, lse, NULL, &vals, 3, 0, c.batch, c.heads, \
                                c.query, c.width, c.causal, 0.5f, c.drop, 77) \
    : attention_backward(st, dq, dk, dv, dbias, dy, y, q, k, v, bias, mask, lse, NULL, &vals, 3, 0, c.batch, c.heads, \
                         c.query, c.key, c.width, c.causal, 0.5f, c.drop, 77))
    for (int threads = 3; threads >= 1; threads--) {
        stage.threads = threads;
        memset(&stage.handle, 0, sizeof stage.handle);
        open_attention_forward(st, 0, c.batch, c.heads, c.query, c.key, c.width, c.causal);
        open_attention_backward(st, 1, c.batch, c.heads, c.query, c.key, c.width, c.causal);
        if (threads < 3) {
            AGAIN("attention forward, other threads", y, (size_t)nq * sizeof(real), FORWARD());
            AGAIN("attention backward, other threads", dq, (size_t)size * sizeof(real), BACKWARD());
            continue;
        }
        FORWARD();
        near_real("attention y", y, w.y, nq);
        near_lse(lse, w.lse, rows);
        BACKWARD();
        near_real("attention dq", dq, w.q, size);
        if (!c.packed)
            near_real("attention dk", dk, w.k, nk), near_real("attention dv", dv, w.v, nk);
        if (c.bias)
            near_real("attention dbias", dbias, w.bias, nb);
    }
    stage.threads = 2;
}

/* ---- convolutions ------------------------------------------------------------------------------------------------ */
/* batch height width in; yheight ywidth out; kheight kwidth; stride top left dilate groups */
enum { B, H, W, C, Y, X, O, KH, KW, S, TOP, LEFT, D, G, SIZES };
#define CONV(d) d[B], d[H], d[W], d[C], d[Y], d[X], d[O], d[KH], d[KW], d[S], d[TOP], d[LEFT], d[D], d[G]

static const long convs[][SIZES] = {
    {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 0, 0, 1, 1}, {2, 7, 5, 3, 7, 5, 4, 3, 3, 1, 1, 1, 1, 1},
    {1, 9, 8, 5, 5, 4, 33, 3, 2, 2, 1, 0, 1, 1}, {2, 12, 10, 64, 12, 10, 32, 3, 3, 1, 1, 1, 1, 1},
    {2, 8, 11, 6, 3, 4, 9, 3, 3, 3, 1, 2, 1, 3},            /* groups */
    {1, 12, 10, 16, 8, 6, 16, 3, 3, 1, 0, 0, 2, 16},        /* dilated, depthwise */
    {2, 6, 6, 7, 3, 3, 5, 1, 1, 2, -1, -1, 1, 1},           /* begins one pixel further */
    {2, 9, 9, 5, 3, 3, 6, 3, 3, 2, -2, 0, 1, 1},            /* the same, in one axis, and a column left over */
    {1, 10, 9, 4, 3, 9, 3, 1, 1, 2, 0, 0, 1, 1},            /* whole strides left over */
    {1, 300, 1, 2, 149, 1, 3, 5, 1, 2, 1, 0, 1, 1},         /* positions: the width is 1 */
    {3, 14, 14, 48, 7, 7, 96, 1, 1, 2, 0, 0, 1, 1}, {2, 9, 7, 40, 9, 7, 24, 1, 1, 1, 0, 0, 1, 1},
    {2, 24, 24, 9, 24, 24, 20, 1, 1, 1, 0, 0, 1, 1},        /* more than 1024 pixels */
    {4, 14, 13, 24, 7, 7, 20, 3, 3, 2, 1, 1, 1, 1},         /* images in the library's own layout, in two pieces */
    {3, 11, 14, 24, 5, 5, 20, 3, 3, 2, -1, 0, 1, 1},        /* the same, where a part is read */
    {2, 48, 50, 6, 24, 25, 10, 1, 1, 2, 0, 0, 1, 1}, {2, 9, 7, 40, 8, 6, 24, 1, 1, 1, 0, 0, 1, 1},
    {1, 15, 13, 3, 7, 6, 4, 1, 1, 2, -1, -1, 1, 1}, {2, 15, 13, 5, 7, 6, 16, 1, 1, 2, -1, 0, 1, 1},
    {1, 15, 13, 3, 8, 6, 4, 1, 1, 2, 0, -1, 1, 1}, {2, 9, 7, 40, 8, 6, 24, 1, 1, 1, -1, -1, 1, 1},
    {1, 14, 12, 3, 7, 6, 4, 1, 1, 2, 0, 0, 1, 1}, {1, 14, 12, 5, 7, 6, 16, 1, 1, 2, 0, 0, 1, 1},
    {2, 9, 8, 8, 10, 9, 12, 2, 4, 1, 1, 3, 1, 2},           /* an even kernel, more in front than behind, groups */
    {2, 9, 9, 16, 9, 6, 24, 3, 2, 1, 2, -1, 2, 4},          /* dilated, begins one pixel further */
    {1, 6, 6, 5, 8, 8, 3, 1, 1, 1, 1, 1, 1, 1},             /* a pad as large as the kernel */
};

/* Each product of a pixel, a weight and an element of y: added to what is wanted of the three; v is what the gradient is of. */
static void define_conv(const long *d, const real *x, const real *w, const real *v, double *y, double *dx, double *dw)
{
    long in = d[C] / d[G], out = d[O] / d[G], taps = d[KH] * d[KW];
    for (long i = 0; i < d[B] * d[Y] * d[X] * d[O]; i++) {
        long o = i % d[O], column = i / d[O] % d[X], row = i / d[O] / d[X] % d[Y], sample = i / d[O] / d[X] / d[Y];
        for (long k = 0; k < in * taps; k++) {
            long r = row * d[S] - d[TOP] + k / d[KW] % d[KH] * d[D], c = column * d[S] - d[LEFT] + k % d[KW] * d[D];
            long from = ((sample * d[H] + r) * d[W] + c) * d[C] + o / out * in + k / taps, weight = o * in * taps + k;
            if (r < 0 || r >= d[H] || c < 0 || c >= d[W])
                continue;
            y[i] += (double)get(x, from) * (double)get(w, weight);
            dx[from] += (double)get(v, i) * (double)get(w, weight);
            dw[weight] += (double)get(v, i) * (double)get(x, from);
        }
    }
}

static void conv(const long *d)
{
    long nx = d[B] * d[H] * d[W] * d[C], ny = d[B] * d[Y] * d[X] * d[O], nw = d[O] * d[C] / d[G] * d[KH] * d[KW];
    real *x = reals(nx), *w = reals(nw), *b = reals(d[O]), *dy = reals(ny), *y = reals(ny), *dx = reals(nx);
    float *dw = floats(nw), *db = floats(d[O]);
    double *wy = doubles(ny), *wx = doubles(nx), *ww = doubles(nw), *wb = doubles(d[O]);
    define_conv(d, x, w, dy, wy, wx, ww);
    open_conv_forward(st, 0, CONV(d)), open_conv_backward_x(st, 1, CONV(d)), open_conv_backward_w(st, 2, CONV(d));
    conv_forward(st, y, x, w, NULL, 0, CONV(d));
    near_real("conv_forward", y, wy, ny);
    for (long i = 0; i < ny; i++)
        wy[i] += (double)get(b, i % d[O]), wb[i % d[O]] += (double)get(dy, i);
    conv_forward(st, y, x, w, b, 0, CONV(d));
    near_real("conv_forward with bias", y, wy, ny);
    AGAIN("conv_forward", y, (size_t)ny * sizeof *y, conv_forward(st, y, x, w, b, 0, CONV(d)));
    conv_backward_x(st, dx, dy, w, 1, CONV(d));
    near_real("conv_backward_x", dx, wx, nx);
    AGAIN("conv_backward_x", dx, (size_t)nx * sizeof *dx, conv_backward_x(st, dx, dy, w, 1, CONV(d)));
    for (int acc = 0; acc < 2; acc++) {
        for (long i = 0; i < nw && acc; i++)
            ww[i] += (double)dw[i];
        for (long i = 0; i < d[O] && acc; i++)
            wb[i] += (double)db[i];
        conv_backward_w(st, dw, db, dy, x, 2, acc, CONV(d));
        near_float(acc ? "conv_backward_w adds" : "conv_backward_w writes", dw, ww, nw);
        near_float(acc ? "conv bias gradient adds" : "conv bias gradient writes", db, wb, d[O]);
    }
    conv_backward_w(st, dw, NULL, dy, x, 2, 0, CONV(d));
    AGAIN("conv_backward_w", dw, (size_t)nw * 4, conv_backward_w(st, dw, NULL, dy, x, 2, 0, CONV(d)));
    conv_backward_w(st, NULL, db, dy, x, 2, 0, CONV(d));
    AGAIN("conv bias gradient alone", db, (size_t)d[O] * 4, conv_backward_w(st, NULL, db, dy, x, 2, 0, CONV(d)));
}

/* Scratch is counted: for each thread, in lines of 64 bytes, and the largest that was asked for. */
static void counted(void)
{
    Stage st = { .threads = 3 };
    int good = kernels_bytes(&st) == 0;
    scratch_open(&st, 1000);
    good &= kernels_bytes(&st) == 3 * 1024;
    scratch_open(&st, 64);
    good &= kernels_bytes(&st) == 3 * 1024;
    passed += good, failed += !good;
    if (!good)
        fprintf(stderr, "kernels_bytes: %zu\n", kernels_bytes(&st));
}

/* Three steps of one weight, as recur_forward has them, and then another weight. */
static void steps_of(long m, long k)
{
    long n = 4 * k;
    real *a = reals(m * k), *b = reals(k * n);
    float *c = floats(m * n);
    double *want = handle_alloc((size_t)(m * n) * sizeof *want);
    open_recur_forward(st, 30, m, 3, k, 0);
    for (int step = 0; step < 4; step++) {
        real *fresh = step % 3 ? a : b;
        for (long i = 0; i < (step % 3 ? m * k : k * n); i++)
            put(fresh, i, (float)uniform());
        for (long i = 0; i < m * n; i++) {
            want[i] = 0;
            for (long p = 0; p < k; p++)
                want[i] += (double)get(a, i / n * k + p) * (double)get(b, i % n * k + p);
        }
        steps_forward(st, 30, step % 3 == 0, c, a, b, m, n, k);
        near_float("steps_forward", c, want, m * n);
    }
}

/* Rows of a are longer than what is taken of them. */
static void steps(long m, long n, long k, long row)
{
    real *a = reals(m * row), *b = reals(k * n), *d = reals(k * m);
    float *c = floats(m * n);
    double *want = handle_alloc((size_t)(m * n) * sizeof *want);
    for (long i = 0; i < m * n; i++) {
        want[i] = 0;
        for (long p = 0; p < k; p++)
            want[i] += (double)get(a, i / n * row + p) * (double)get(b, p * n + i % n);
    }
    steps_back(st, c, a, row, b, m, n, k);
    near_float("steps_back", c, want, m * n);
    for (int acc = 0; acc < 2; acc++) {
        for (long i = 0; i < m * n; i++) {
            want[i] = acc ? (double)c[i] : 0;
            for (long p = 0; p < k; p++)
                want[i] += (double)get(d, p * m + i / n) * (double)get(b, p * n + i % n);
        }
        steps_gradient(st, c, d, b, acc, m, n, k);
        near_float("steps_gradient", c, want, m * n);
    }
}

int main(void)
{
    char why[256];
    if (kernels_start(2, why, sizeof why)) {
        fprintf(stderr, "skipped: %s\n", why);
        printf("unit_onednn: 0 passed, 0 failed\n");
        return 0;
    }
    counted();
    linear(5, 7, 3), linear(64, 96, 130), linear(1, 1, 1), linear(33, 200, 515);
    head(5, 7, 3, 3, 0), head(64, 24, 130, 48, 1), head(1, 1, 2, 1, 1), head(33, 40, 515, 200, 0);
    for (size_t i = 0; i < sizeof convs / sizeof *convs; i++)
        conv(convs[i]);
    for (int t = 0; t < 4; t++)
        matmul(1, 13, 9, 21, t & 1, t >> 1), matmul(3, 8, 40, 17, t & 1, t >> 1), matmul(2, 1, 1, 1, t & 1, t >> 1);
    steps_of(5, 13), steps_of(1, 1), steps_of(64, 96);
    steps(5, 13, 7, 11), steps(1, 1, 1, 1), steps(16, 96, 130, 400), steps(33, 70, 257, 257);
    attention((Case){ 2, 3, 7, 7, 5, .packed = 1, .causal = 1 });
    attention((Case){ 2, 2, 70, 70, 16, .packed = 1, .causal = 1 });
    attention((Case){ 1, 2, 130, 130, 40, .packed = 1, .drop = 0.25f, .causal = 1 });
    attention((Case){ 2, 2, 9, 70, 20, .bias = 1, .mask = 1 });
    attention((Case){ 3, 2, 66, 5, 72, .bias = 1, .drop = 0.5f });
    attention((Case){ 2, 1, 65, 129, 8, .mask = 2 });
    attention((Case){ 2, 2, 20, 20, 12, .packed = 1, .bias = 1, .mask = 2, .causal = 1, .drop = 0.1f });
    printf("unit_onednn: %d passed, %d failed\n", passed, failed);
    return failed != 0;
}
