/* SPDX-License-Identifier: Apache-2.0
 *
 * unit_cublaslt.c: the products of rt/op/cuda against their definition in double, over the double of cublasLt.
 *
 * Covers what is ours: which operand goes where, transposes, types, batches, the epilogue, accumulation, the prepared
 * algorithm, the workspace, and how a machine is refused.  An element may be wrong by its k roundings of f32 and, in a bf16
 * job, by one narrowing.  A GPU's library may do more: round a product before its bias or its Gelu, and add products of factors
 * of 8 bits in some 14 bits (DeepSeek-V3 Technical Report, section 3.3.2, of Hopper).  Build once with and once without
 * -DREAL_BF16; the suite is tests/cuda_host.sh.  With -DON_GPU it runs with the real library: tests/gpu/visit.sh.
 */
#include "tests/gpu/shared.h"
#include "rt/op/cuda/factor.h"
#include "rt/op/cuda/product.h"
#include "rt/op/cuda/start.h"
#include "rt/op/cuda/sums.h"
#include "rt/op/cuda/xent.h"
#include "rt/real.h"
#include "tests/eight.h"
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { MOST = GPU ? 1 << 19 : 1 << 15, WORKSPACE = GPU ? 32 << 20 : 1 << 20, GUARD = 4096 };
enum { F32 = sizeof(real) == sizeof(float), ROUGH = GPU ? 4 : 1 };    /* tensor cores cut where we round */
#ifdef TF32
enum { SHORT = 1 };         /* factors have 11 bits */
#else
enum { SHORT = 0 };
#endif
static int passed, failed, shortened;
static bool eights;                     /* factors have 8 bits */
static int biases, gelus;               /* calls of bias_gradient(), of gelu_forward() and gelu_backward() */
static int bias_adds;                   /* the last one adds to what was there */
static unsigned char *workspace;

/* ---- what the runtime gives -------------------------------------------------------------------------------------- */
void bias_gradient(Stage *s, float *dbias, const real *dy, int acc, long rows, long out)
{
    (void)s, (void)dy;
    dbias[0] = (float)(1000 * rows + out);
    biases++;
    bias_adds = acc;
}

static double d_gelu(double v) { return v * (1 + tanh(0.7978845608028654 * (v + 0.044715 * v * v * v))) / 2; }
static double d_slope(double v) { return (d_gelu(v + 1e-5) - d_gelu(v - 1e-5)) / 2e-5; }

void gelu_forward(Stage *s, real *to, const real *from, long n, long by_tanh)
{
    (void)s;
    settle();
    for (long i = 0; i < n; i++)
        put(to, i, by_tanh ? (float)d_gelu((double)get(from, i)) : 0);
    gelus++;
}

void gelu_backward(Stage *s, real *to, const real *d, const real *from, long n, long by_tanh)
{
    (void)s;
    settle();
    for (long i = 0; i < n; i++)
        put(to, i, by_tanh ? get(d, i) * (float)d_slope((double)get(from, i)) : 0);
    gelus++;
}

/* ---- comparison -------------------------------------------------------------------------------------------------- */
static void check(bool ok, const char *what, double by)
{
    ok ? passed++ : failed++;
    if (!ok)
        fprintf(stderr, "%s: %g\n", what, by);
}

static double uniform(void)
{
    static uint64_t state = 1;
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (double)(state >> 40) * 0x1p-24 - 0.5;
}

static void fill(real *x, long n)
{
    for (long i = 0; i < n; i++)
        put(x, i, (float)uniform());
}

/* x = sum over k of a(i, l) b(l, j), in double, and the sum of magnitudes, from operands with these strides. */
typedef struct { const real *at; long row, col; } Grid;
static void define(double *x, double *size, Grid a, Grid b, long m, long n, long k)
{
    for (long i = 0; i < m; i++)
        for (long j = 0; j < n; j++) {
            x[i * n + j] = size[i * n + j] = 0;
            for (long l = 0; l < k; l++) {
                double t = (double)get(a.at, i * a.row + l * a.col) * (double)get(b.at, l * b.row + j * b.col);
                x[i * n + j] += t;
                size[i * n + j] += fabs(t);
            }
        }
}

/* A stored matrix of rows x cols; turned, the transpose of one of cols x rows. */
static Grid grid(const real *at, long rows, long cols, bool turned)
{
    return turned ? (Grid){ at, 1, rows } : (Grid){ at, cols, 1 };
}

/* got's distance from `want`, in units of what rounding may do; inside: what the library may narrow on the way. */
static double distance(double got, double want, double size, long k, bool narrow, double inside)
{
    double may = ROUGH * (double)(k + 2) * 0x1p-24 * size + (SHORT || (GPU && eights)) * 0x1p-10 * size + 1e-30;
    double by = fabs(got - want);
    may += narrow ? 0x1p-8 * (fabs(want) + (GPU ? fabs(inside) : 0)) : 0;
    return by == by ? by / may : INFINITY;
}

static void near_real(const char *what, const real *got, Grid at, const double *want, const double *size, long m, long n,
                      long k, const real *bias)
{
    double worst = 0, square = 0;
    settle();
    for (long i = 0; i < m * n; i++) {
        double x1 = (double)get(got, i / n * at.row + i % n * at.col), by = (x1 - want[i]) / (size[i] + 1e-30);
        double far = distance(x1, want[i], size[i], k, !F32, bias ? want[i] - (double)get(bias, i % n) : 0);
        if (far > 1 && far > worst)
            fprintf(stderr, "%s %ld x %ld x %ld: %g, not %g; terms %g\n", what, m, n, k, x1, want[i], size[i]);
        worst = fmax(worst, far);
        square += by * by;
    }
    check(worst <= 1, what, worst);
    square = sqrt(square / (double)(m * n));
    check(!F32 || SHORT || square <= 0x1p-21, "f32 was computed in a shorter type", square);
    shortened |= square > 0x1p-14;
}

static void room_for(long n)
{
    if (n > MOST)
        abort();
}

/* ---- calls ------------------------------------------------------------------------------------------------------- */
static double want[MOST], size[MOST];
static real *x, *w, *b, *dy, *y, *dx, *other;
static float *dw, *db, *sum, old[MOST];
enum { ROOM = 8 * MOST };
static void *room;                      /* scratch */

/* The double has the rarer epilogues where rows have whole units of 16 bytes, as the kernels of sm_90 want them; the library
 * may have them or not.  What is there is counted. */
static int epilogues, found;
static bool there(int h, int part, long row, long other_row)
{
    bool whole = row * (long)sizeof(real) % 16 == 0 && other_row * (long)sizeof(real) % 16 == 0;
    bool is = product_there(st, h, part);
    check(GPU || is == whole, "an epilogue of the double", (double)row);
    epilogues++, found += is;
    return is;
}

/* Behind the sums of a stage of several devices; here it is one. */
void sums_put(Stage *s, real *to, const float *sums, const real *bias, long rows, long out)
{
    (void)s;
    settle();
    for (long i = 0; i < rows * out; i++)
        put(to, i, sums[i] + (bias ? get(bias, i % out) : 0));
}

static void more(const real *term, long each, long n)
{
    for (long i = 0; term && i < n; i++)
        want[i] += (double)get(term, i % each), size[i] += fabs((double)get(term, i % each));
}

static void linear(long rows, long in, long out)
{
    room_for(rows * in), room_for(in * out), room_for(rows * out);
    fill(x, rows * in), fill(w, out * in), fill(b, out), fill(dy, rows * out);
    open_linear_forward(st, 0, rows, in, out);
    open_linear_backward_x(st, 1, rows, in, out);
    open_linear_backward_w(st, 2, rows, in, out);
    define(want, size, grid(x, rows, in, 0), grid(w, in, out, 1), rows, out, in);
    linear_forward(st, y, x, w, NULL, 0, rows, in, out);
    near_real("linear_forward", y, grid(y, rows, out, 0), want, size, rows, out, in, NULL);
    more(b, out, rows * out);
    linear_forward(st, y, x, w, b, 0, rows, in, out);
    near_real("linear_forward with bias", y, grid(y, rows, out, 0), want, size, rows, out, in, b);
    void *tmp = sizeof(real) == sizeof(float) ? NULL : (void *)sum;
    open_linear_rows_forward(st, 20, rows, in, out);
    linear_rows_forward(st, y, x, w, b, tmp, 20, rows, in, out);
    near_real("linear_rows_forward", y, grid(y, rows, out, 0), want, size, rows, out, in, NULL);
    more(dy, rows * out, rows * out);
    open_linear_add_forward(st, 23, rows, in, out);
    linear_add_forward(st, y, dy, x, w, b, 23, rows, in, out);
    near_real("linear_add_forward", y, grid(y, rows, out, 0), want, size, rows, out, in, NULL);

    define(want, size, grid(dy, rows, out, 0), grid(w, out, in, 0), rows, in, out);
    linear_backward_x(st, dx, dy, w, 1, rows, in, out);
    near_real("linear_backward_x", dx, grid(dx, rows, in, 0), want, size, rows, in, out, NULL);
    open_linear_columns_backward_x(st, 21, rows, in, out, 1, out);
    linear_columns_backward_x(st, dx, dy, w, tmp, 21, rows, in, out, 1, out);
    near_real("linear_columns_backward_x", dx, grid(dx, rows, in, 0), want, size, rows, in, out, NULL);
    open_linear_pieces_backward_x(st, 22, rows, in, out, 1);
    linear_pieces_backward_x(st, dx, dy, w, 22, rows, in, out, 1);
    near_real("linear_pieces_backward_x", dx, grid(dx, rows, in, 0), want, size, rows, in, out, NULL);
    open_linear_add_backward_x(st, 24, rows, in, out);
    more(x, rows * in, rows * in);
    linear_add_backward_x(st, dx, dy, w, x, 24, rows, in, out);
    near_real("linear_add_backward_x", dx, grid(dx, rows, in, 0), want, size, rows, in, out, NULL);

    int before = biases;
    define(want, size, grid(dy, out, rows, 1), grid(x, rows, in, 0), out, in, rows);
    memset(dw, 0xff, MOST * sizeof *dw);    /* NaN: what is there may not be read */
    linear_backward_w(st, dw, NULL, dy, x, 2, 0, rows, in, out);
    settle();
    double worst = 0;
    for (long i = 0; i < out * in; i++)
        worst = fmax(worst, distance((double)dw[i], want[i], size[i], rows, false, 0));
    check(worst <= 1, "linear_backward_w", worst);
    check(biases == before, "a bias gradient that nobody wants", biases);
    bool same = true;
    for (long i = 0; i < out * in; i++) {
        sum[i] = dw[i];
        dw[i] = old[i] = 1000.0f * (float)uniform();
    }
    linear_backward_w(st, dw, db, dy, x, 2, 1, rows, in, out);
    settle();
    for (long i = 0; i < out * in; i++)
        same &= dw[i] == old[i] + sum[i];
    check(same, "linear_backward_w adds another sum than it writes", 0);
    check(biases == before + 1 && bias_adds && db[0] == (float)(1000 * rows + out), "the bias of linear_backward_w", biases);
    before = biases;
    linear_backward_w(st, NULL, db, dy, x, 2, 0, rows, in, out);
    linear_backward_x(st, NULL, dy, w, 1, rows, in, out);
    check(biases == before + 1 && !bias_adds && db[0] == (float)(1000 * rows + out), "a gradient that nobody wants", biases);
}

/* With the Gelu inside, where the library has such a product, and without: each way is right, and the operand of the Gelu is
 * there. */
static void with_gelu(long rows, long in, long out, bool biased)
{
    int before = gelus;
    double worst = 0;
    room_for(rows * in), room_for(in * out), room_for(rows * out);
    fill(x, rows * in), fill(w, out * in), fill(b, out), fill(dy, rows * in);
    open_linear_gelu_forward(st, 3, rows, in, out);
    open_linear_gelu_backward(st, 4, rows, out, in);    /* of a Linear from `out` back to `in` */
    bool inside = there(3, biased ? 3 : 2, in, out), back = there(4, 2, in, out);
    define(want, size, grid(x, rows, in, 0), grid(w, in, out, 1), rows, out, in);
    linear_gelu_forward(st, y, other, x, w, biased ? b : NULL, 3, rows, in, out);
    settle();
    for (long i = 0; i < rows * out; i++) {
        double pre = want[i] + (biased ? (double)get(b, i % out) : 0), stored = (double)get(other, i);
        double before = distance(stored, pre, size[i] + 1, in, !F32, want[i]);
        double behind = distance((double)get(y, i), d_gelu(inside ? pre : stored), 2 * size[i] + 2, in, !F32,
                                 inside ? 1.13 * (fabs(pre) + fabs(want[i])) : 0);
        if (fmax(before, behind) > fmax(worst, 1))
            fprintf(stderr, "linear_gelu_forward %ld x %ld x %ld, bias %d: [%ld] %g, stored %g: %g; gelu %g: %g\n", rows, out,
                    in, biased, i, pre, stored, before, (double)get(y, i), behind);
        worst = fmax(worst, fmax(before, behind));
    }
    check(worst <= 1, "linear_gelu_forward", worst);
    define(want, size, grid(dy, rows, in, 0), grid(w, in, out, 0), rows, out, in);
    linear_gelu_backward(st, dx, dy, w, other, 4, rows, out, in);
    settle();
    worst = 0;
    for (long i = 0; i < rows * out; i++)
        worst = fmax(worst, distance((double)get(dx, i), want[i] * d_slope((double)get(other, i)), 2 * size[i] + 1e-2, in,
                                     !F32, 1.13 * want[i]));
    check(worst <= (back || GPU ? 1 : 2), "linear_gelu_backward", worst);       /* apart, it is rounded twice */
    check(gelus == before + !inside + !back, "a Gelu of its own", gelus - before);
}

/* What the kernels of xent.cu are given: scores go into y; their gradients come from dy. */
static long wide_rows, wide_out;        /* y and dy are [wide_rows wide_out] */
static void take_scores(const real *from, long at, long n)
{
    settle();
    for (long i = 0; i < wide_rows * n; i++)
        put(y, i / n * wide_out + at + i % n, get(from, i));
}

void scores_absorb(Stage *s, float *most, float *sums, float *hit, ScoreRows scores, const int32_t *targets, long rows,
                   int begin)
{
    (void)s, (void)most, (void)sums, (void)hit, (void)targets;
    check(rows == wide_rows && scores.pitch == scores.n, "rows of scores", (double)rows);
    check(begin == (scores.from == 0), "the first chunk begins", (double)scores.from);
    take_scores(scores.at, scores.from, scores.n);
}

/* Of stages of several devices: nobody calls these here. */
void scores_team(Stage *s, float *most, float *sums, float *hit, long rows)
{
    check(!s && most == sums && !hit, "scores_team", (double)rows);
}

void fill_zero(Stage *s, void *to, long bytes) { check(!s && !to, "fill_zero", (double)bytes); }

void scores_loss(Stage *s, float *loss, float *most, const float *sums, const float *hit, const int32_t *targets,
                 const Values *vals, long rows, long ignore, int count)
{
    (void)s, (void)most, (void)targets, (void)vals, (void)ignore;
    check(hit == sums + rows && count == 3, "the scratch of forward", count);
    *loss = 7;
}

void scores_back(Stage *s, real *to, const float *dloss, ScoreRows scores, const float *lse, const int32_t *targets,
                 const Values *vals, long rows, long ignore, int count)
{
    const long n = scores.n;
    (void)s, (void)dloss, (void)lse, (void)targets, (void)vals, (void)ignore, (void)count;
    check(rows == wide_rows && to == scores.at, "scores become their gradients in place", (double)rows);
    take_scores(scores.at, scores.from, n);
    for (long i = 0; i < rows * n; i++)
        put(to, i, get(dy, i / n * wide_out + scores.from + i % n));
}

/* `top`: behind the scratch of forward stand the target's score and what is ahead of it */
static int aimed, ahead_of, told;
static const float *aim_at;

void scores_aim(Stage *s, float *aim, float *ahead, const real *x, const real *weight, const real *bias,
                const int32_t *targets, const Values *vals, long rows, long in, long first, long out)
{
    (void)s, (void)x, (void)weight, (void)bias, (void)targets, (void)vals, (void)in, (void)out, (void)first;
    check(ahead == aim + rows && rows == wide_rows, "the scratch of hits", (double)rows);
    aimed++, aim_at = aim;
}

void scores_ahead(Stage *s, float *ahead, const float *aim, ScoreRows scores, const int32_t *targets, const Values *vals,
                  long rows)
{
    (void)s, (void)scores, (void)targets, (void)vals;
    check(aim == aim_at && ahead == aim + rows, "what is ahead", (double)rows);
    ahead_of++;
}

void scores_hits(Stage *s, Values *vals, const float *ahead, const int32_t *targets, long rows, long ignore, long top)
{
    (void)s, (void)vals, (void)targets, (void)rows, (void)ignore;
    check(ahead == aim_at + wide_rows && top == 2, "the share", (double)top);
    told++;
}

void scores_narrow(Stage *s, real *to, const float *from, long n)
{
    (void)s;
    settle();
    for (long i = 0; i < n; i++)
        put(to, i, from[i]);
}

static void head_scores(const char *what, const real *bias, long rows, long in, long out)
{
    settle();
    define(want, size, grid(x, rows, in, 0), grid(w, in, out, 1), rows, out, in);
    more(bias, out, rows * out);
    near_real(what, y, grid(y, rows, out, 0), want, size, rows, out, in, NULL);
    memset(y, 0xff, MOST * sizeof *y);
}

static void head(long rows, long in, long out, long chunk)
{
    float loss = 0;
    int before = biases;
    room_for(rows * in), room_for(in * out), room_for(rows * out);
    wide_rows = rows, wide_out = out;
    fill(x, rows * in), fill(w, out * in), fill(b, out), fill(dy, rows * out);
    open_linear_xent_forward(st, 5, rows, in, out, chunk, -1, 3);
    open_linear_xent_backward(st, 6, rows, in, out, chunk, -1, 3);
    for (int biased = 0; biased < 2; biased++) {
        linear_xent_forward(st, &loss, NULL, x, w, biased ? b : NULL, NULL, room, NULL, 5, rows, in, out, chunk, -1, 3);
        head_scores(biased ? "linear_xent_forward with bias" : "linear_xent_forward", biased ? b : NULL, rows, in, out);
    }
    check(loss == 7, "linear_xent_forward ends with the loss", (double)loss);
    aimed = ahead_of = told = 0;
    open_linear_xent_hits_forward(st, 5, rows, in, out, chunk, -1, 3, 2);
    linear_xent_hits_forward(st, &loss, NULL, x, w, NULL, NULL, room, NULL, 5, rows, in, out, chunk, -1, 3, 2);
    head_scores("linear_xent_hits_forward", NULL, rows, in, out);
    check(aimed == 1 && ahead_of == (out + chunk - 1) / chunk && told == 1, "hits of each chunk", ahead_of);
    memset(dw, 0xff, MOST * sizeof *dw), memset(dx, 0xff, MOST * sizeof *dx), memset(room, 0xff, ROOM);
    linear_xent_backward(st, dx, dw, NULL, NULL, x, w, NULL, NULL, NULL, room, NULL, 6, 0, rows, in, out, chunk, -1, 3);
    head_scores("linear_xent_backward's scores", NULL, rows, in, out);
    define(want, size, grid(dy, rows, out, 0), grid(w, out, in, 0), rows, in, out);
    near_real("linear_xent_backward dx", dx, grid(dx, rows, in, 0), want, size, rows, in, out, NULL);
    define(want, size, grid(dy, out, rows, 1), grid(x, rows, in, 0), out, in, rows);
    double worst = 0;
    for (long i = 0; i < out * in; i++)
        worst = fmax(worst, distance((double)dw[i], want[i], size[i], rows, false, 0));
    check(worst <= 1, "linear_xent_backward dweight", worst);
    check(biases == before, "a bias gradient that nobody wants", biases);
    memcpy(sum, dw, (size_t)(out * in) * sizeof *dw);
    linear_xent_backward(st, NULL, dw, db, NULL, x, w, b, NULL, NULL, room, NULL, 6, 1, rows, in, out, chunk, -1, 3);
    head_scores("linear_xent_backward's scores with bias", b, rows, in, out);
    bool same = true;
    for (long i = 0; i < out * in; i++)
        same &= dw[i] == 2 * sum[i];
    check(same, "linear_xent_backward adds another sum than it writes", 0);
    for (long from = 0; from < out; from += chunk)
        check(db[from] == (float)(1000 * rows + (out - from < chunk ? out - from : chunk)), "bias_gradient of a chunk",
              (double)db[from]);
}

static void matmul(long batch, long m, long n, long k, int ta, int tb)
{
    char name[64];
    room_for(batch * m * k), room_for(batch * k * n), room_for(batch * m * n);
    fill(x, batch * m * k), fill(w, batch * k * n), fill(dy, batch * m * n);
    open_matmul_forward(st, 3, batch, m, n, k, ta, tb);
    open_matmul_backward(st, 4, batch, m, n, k, ta, tb);
    matmul_forward(st, y, x, w, 3, batch, m, n, k, ta, tb);
    matmul_backward(st, dx, b, dy, x, w, 4, batch, m, n, k, ta, tb);
    settle();
    for (long i = 0; i < batch; i++) {
        const real *a1 = x + i * m * k, *b1 = w + i * k * n, *d1 = dy + i * m * n;
        real *y1 = y + i * m * n, *da = dx + i * m * k, *dB = b + i * k * n;
        snprintf(name, sizeof name, "matmul_forward ta %d tb %d", ta, tb);
        define(want, size, grid(a1, m, k, ta), grid(b1, k, n, tb), m, n, k);
        near_real(name, y1, grid(y1, m, n, 0), want, size, m, n, k, NULL);
        snprintf(name, sizeof name, "matmul_backward ta %d tb %d", ta, tb);
        define(want, size, grid(d1, m, n, 0), grid(b1, n, k, !tb), m, k, n);
        near_real(name, da, grid(da, m, k, ta), want, size, m, k, n, NULL);
        define(want, size, grid(a1, k, m, !ta), grid(d1, m, n, 0), k, n, m);
        near_real(name, dB, grid(dB, k, n, tb), want, size, k, n, m, NULL);
    }
    real old = dx[0];
    matmul_backward(st, NULL, NULL, dy, x, w, 4, batch, m, n, k, ta, tb);
    settle();
    check(!memcmp(&old, dx, sizeof old), "matmul_backward wrote what nobody wants", 0);
}

/* ---- factors of 8 bits: rt/op/cuda/factor.cu makes them, and opcheck_simt checks it ------------------------------------- */
enum { SCALE = 9, NOTE = 77 };          /* of e4m3, and of e5m2 twice as much: what stands in operands is exact then */

static void to_codes(Eight f, float *unit)
{
    settle();
    for (long i = 0; i < f.rows * f.cols; i++) {
        uint8_t *to = &f.to[f.turned ? i % f.cols * f.rows + i / f.cols : i];
        *to = (uint8_t)eight_code(ldexp((double)get(f.from, i), SCALE << (f.type == E5M2)), f.type == E5M2);
        if (f.straight)
            f.straight[i] = *to;
    }
    *unit = ldexpf(1, -(SCALE << (f.type == E5M2)));
}

Units factors_make(Stage *s, Eight a, Eight b, Eight c, float *to)
{
    to_codes(a, to), to_codes(b, to + 4), to_codes(c, to + 8);
    a.dbias ? bias_gradient(s, a.dbias, a.from, a.acc, a.rows, a.cols) : (void)s;
    return (Units){ to, to + 4, to + 8 };
}

void factors_note(Stage *s, float *damax, Eight of_dy, Eight of_x, Eight weight, float *to, int acc)
{
    (void)s, (void)to;
    check(of_dy.from == dy && of_x.from == x && weight.from == w && weight.rows * weight.cols > 0, "what is noted", acc);
    *damax = NOTE + (float)acc;
}

static void fill_eight(real *to, long n, int scale, int five)
{
    for (long i = 0; i < n; i++)
        put(to, i, (float)eight_rounded(uniform(), scale, five));
}

static void eight(long rows, long in, long out)
{
    float *amax = db, note = 0;
    int before = biases;
    double worst = 0;
    eights = true;
    fill_eight(x, rows * in, SCALE, 0), fill_eight(w, out * in, SCALE, 0), fill_eight(dy, rows * out, 2 * SCALE, 1);
    fill(b, out);
    open_linear_fp8_forward(st, 3, rows, in, out), open_linear_fp8_backward_x(st, 4, rows, in, out);
    open_linear_fp8_backward_w(st, 5, rows, in, out);
    define(want, size, grid(x, rows, in, 0), grid(w, in, out, 1), rows, out, in);
    for (int biased = 0; biased < 2; biased++) {
        more(biased ? b : NULL, out, rows * out);
        linear_fp8_forward(st, y, x, w, biased ? b : NULL, amax, room, 3, rows, in, out);
        settle();
        near_real("linear_fp8_forward", y, grid(y, rows, out, 0), want, size, rows, out, in, biased ? b : NULL);
    }
    define(want, size, grid(dy, rows, out, 0), grid(w, out, in, 0), rows, in, out);
    linear_fp8_backward_x(st, dx, dy, w, amax, room, 4, rows, in, out);
    near_real("linear_fp8_backward_x", dx, grid(dx, rows, in, 0), want, size, rows, in, out, NULL);
    define(want, size, grid(dy, out, rows, 1), grid(x, rows, in, 0), out, in, rows);
    memset(dw, 0xff, MOST * sizeof *dw), memset(dx, 0xff, MOST * sizeof *dx);
    for (int way = 0; way < 3; way++) {         /* written, added to, and written with dx */
        int acc = way == 1;
        way < 2 ? linear_fp8_backward_w(st, dw, NULL, &note, dy, x, w, amax, room, 5, acc, rows, in, out)
                : linear_fp8_backward(st, dx, dw, NULL, &note, dy, x, w, amax, room, 4, 5, acc, rows, in, out);
        settle();
        for (long i = 0; i < out * in; i++)
            worst = fmax(worst, distance((double)dw[i], (1 + acc) * want[i], 2 * size[i], rows, false, 0));
        check(worst <= 1 && note == NOTE + (float)acc, "linear_fp8_backward_w", worst);
    }
    define(want, size, grid(dy, rows, out, 0), grid(w, out, in, 0), rows, in, out);
    near_real("dx of linear_fp8_backward", dx, grid(dx, rows, in, 0), want, size, rows, in, out, NULL);
    eights = false;
    linear_fp8_backward_w(st, NULL, db, &note, dy, x, w, amax, room, 5, 0, rows, in, out);
    check(biases == before + 1 && db[0] == (float)(1000 * rows + out), "the bias of linear_fp8_backward_w", biases);
}

/* ---- the algorithm and the workspace ----------------------------------------------------------------------------- */
enum { MEASURED = 7, UNKNOWN = 40 };    /* ids, of which the double has 7, 8 and 9 */

static void give(int id, int splitk, long bytes)
{
    open_product_algorithm(st, 0, 1, id, 15, 0, splitk, 0, 0, 0, 0, 0, bytes);
}

static void measured(void)
{
    fill(x, 64), fill(w, 64), fill(b, 8);
    open_linear_forward(st, 0, 8, 8, 8);
    linear_forward(st, y, x, w, b, 0, 8, 8, 8);
    give(MEASURED, 1, WORKSPACE);
    linear_forward(st, other, x, w, b, 0, 8, 8, 8);
    check(!memcmp(y, other, 64 * sizeof *other), "another result with the measured algorithm", 0);
}

/* What dpgen profile chooses from: all that the library guesses, of the part that ran, and each can be given back. */
static void choices(void)
{
    Choice list[16];
    open_linear_forward(st, 1, 8, 8, 8);
    check(product_choices(st, 1, 0, list, 16) == 0 && product_choices(st, 1023, 0, list, 16) == 0, "choices of nothing", 0);
    linear_forward(st, y, x, w, b, 1, 8, 8, 8);
    check(product_choices(st, 1, 0, list, 16) == 0, "choices of the part that did not run", 0);
    check(product_choices(st, 1, 1, list, 2) == 2, "no more choices than are wanted", 0);
    check(product_choices(st, 1, 1, list, 16) == 3, "all choices", 0);
    for (int i = 0; i < 3; i++) {
        Choice c = list[i];
        check(c.id == 7 + i && c.tile == 17 + i && c.stages == 27 + i && c.splitk == 1 && c.reduction == 0 && c.swizzle == 1 &&
              c.custom == 37 + i && c.inner == 2 && c.cluster == 7 + i, "the numbers of a choice", i);
        check(c.workspace == (i == 2 ? WORKSPACE / 2 : WORKSPACE), "the workspace of a choice", i);
        open_product_algorithm(st, 1, 1, c.id, c.tile, c.stages, c.splitk, c.reduction, c.swizzle, c.custom, c.inner, c.cluster,
                               c.workspace);
        linear_forward(st, y, x, w, b, 1, 8, 8, 8);
        check(!strcmp(in_use, i ? "cublasLt" : "cublasLtMatmul"), "another algorithm than was given", i);
    }
}

/* A product with a bias is refused only when there is one. */
static void no_epilogue(void)
{
    open_linear_forward(st, 9, 2, 3, 8191);
    linear_forward(st, y, x, w, NULL, 9, 2, 3, 8191);
    fputs("opened, ", stderr);
    linear_forward(st, y, x, w, b, 9, 2, 3, 8191);
}

static void too_little(void)
{
    device.workspace_bytes = WORKSPACE - 1;
    open_linear_forward(st, 9, 8, 8, 8);
}
static void unknown_id(void) { give(UNKNOWN, 1, WORKSPACE); }
static void no_reduction(void) { give(MEASURED, 4, WORKSPACE); }
static void not_planned(void) { give(MEASURED, 1, WORKSPACE - 1); }
static void no_part(void)
{
    open_linear_backward_w(st, 9, 8, 8, 8);
    open_product_algorithm(st, 9, 1, MEASURED, 15, 8, 1, 0, 1, 5, 1, 4, WORKSPACE);
}

/* The call ends the program with 6 and one line that has these words. */
static void refused(void (*call)(void), const char *words, const char *more)
{
    int tube[2];
    char text[1024] = "";
    if (pipe(tube))
        abort();
    pid_t child = fork();
    if (!child) {
        dup2(tube[1], 2);
        call();
        _exit(0);
    }
    close(tube[1]);
    size_t n = 0;
    for (ssize_t k; n < sizeof text - 1 && (k = read(tube[0], text + n, sizeof text - 1 - n)) > 0;)
        n += (size_t)k;
    close(tube[0]);
    int status;
    waitpid(child, &status, 0);
    bool line = n && strchr(text, '\n') == text + n - 1;
    check(WIFEXITED(status) && WEXITSTATUS(status) == 6 && line && strstr(text, words) && strstr(text, more), words, status);
    if (!strstr(text, words) || !strstr(text, more) || !line)
        fprintf(stderr, "it said: %s\n", text);
}

static void open_memory(void)
{
    real **all[] = { &x, &w, &b, &dy, &y, &dx, &other };
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        *all[i] = shared(MOST * sizeof(real));
    dw = shared(MOST * sizeof *dw);
    db = shared(MOST * sizeof *db), sum = shared(MOST * sizeof *sum);
    room = shared(ROOM);
    device.workspace = workspace = (unsigned char *)shared(WORKSPACE + GUARD + 192) + 192;      /* as in an arena */
    device.workspace_bytes = WORKSPACE;
}

/* What the double knows, and a GPU does not show. */
static void doubled(void)
{
    check(!strcmp(in_use, "cublasLtMatmul"), "the name of what is queued", 0);
    measured();
    choices();
    refused(no_epilogue, "opened, linear_forward: a product of 2 x 3 by 3 x 8191 (batch 1): no algorithm", "dpgen profile");
    refused(too_little, "no algorithm", "dpgen profile");
    refused(unknown_id, "linear_forward: a product of 8 x 8 by 8 x 8", "the algorithm of the profile is not known");
    refused(no_reduction, "is not known", "cuBLAS 1");
    refused(no_part, "product 1 of a call that has none", "dpgen profile");
    refused(not_planned, "more workspace than is planned", "dpgen profile");
    check(workspace[0] == 0xa5 && workspace[WORKSPACE - 1] == 0xa5, "the workspace that was given", 0);
}

int main(void)
{
    const long shapes[][3] = { { 1, 1, 1 }, { 5, 3, 7 }, { 33, 65, 17 }, { 64, 8, 100 }, { 2, 300, 9 }, { 9, 24, 40 },
                               { 160, 384, 712 }, { 33, 64, 2003 } };      /* the last two: on a GPU alone */
    open_memory();
    for (size_t i = 0; i < (GPU ? 8 : 6); i++) {
        linear(shapes[i][0], shapes[i][1], shapes[i][2]);
        for (int t = 0; t < 4; t++)
            matmul(i ? 3 : 1, shapes[i][0], (shapes[i][1] - 1) % 64 + 1, shapes[i][2], t & 1, t >> 1);
    }
    with_gelu(33, 16, 64, true), with_gelu(5, 24, 8, false), with_gelu(33, 17, 64, true), with_gelu(5, 3, 7, true);
    if (!F32)                                   /* sm_89 and later */
        eight(16, 16, 16), eight(48, 32, 80), eight(16, 144, 64);
    head(5, 3, 7, 7), head(33, 24, 160, 64), head(17, 40, 96, 32);
    GPU ? head(160, 192, 2100, 512) : doubled();
    check(!SHORT || shortened, "f32 was computed in f32", 0);
    bool whole = true;
    for (int i = 0; i < GUARD; i++)
        whole &= !workspace[WORKSPACE + i];
    check(whole, "behind the workspace", 0);
    printf("epilogues: %d of %d are there\n", found, epilogues);
    printf("unit_cublaslt: %d passed, %d failed\n", passed, failed);
    return failed > 0;
}
