/* SPDX-License-Identifier: Apache-2.0
 *
 * Checks of tables and products: Embedding, PositionEmbedding, RelativeBias, Linear, MatMul, Attention.  See opcheck.h.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "opcheck.h"
#include "rt/quantize.h"
#include "rt/philox.h"

/* ---- tables ------------------------------------------------------------------------------------------------------ */

static void ref_embedding(const Case *c, double *y)
{
    for (long i = 0; i < c->d[0]; i++)
        for (long j = 0; j < c->d[1]; j++)
            y[i * c->d[1] + j] = c->in[0]->v[c->ids[i] * c->d[1] + j];
}

static void embedding(void)
{
    const long shapes[][3] = {{1, 1, 1}, {7, 3, 5}, {300, 130, 11}, {513, 65, 257}, {40, 24, 1000}, {9000, 8, 2}, {60, 520, 9},
                              {20, 301, 40}, {4000, 8, 600}, {300, 16, 8000}};
    for (int s = 0; s < 10; s++) {
        const long *d = shapes[s];
        Tensor *w = operand(REAL, d[2] * d[1], -1, 1), *y = result(REAL, d[0] * d[1]), *dy = operand(REAL, y->n, -1, 1);
        Tensor *dw = result(FLOAT, w->n);
        Case c = {.d = {d[0], d[1], d[2]}, .ids = ids(d[0], 0, d[2]), .in = {w}};
        embedding_forward(stage, y->k, c.ids, w->k, d[0], d[1], d[2]);
        check_value("embedding_forward", y, ref_embedding, &c);
        embedding_backward(stage, dw->k, dy->k, c.ids, 0, d[0], d[1], d[2]);
        check_gradient("embedding_backward", dw, ref_embedding, &c, 0, dy);
        Tensor *again = filled(FLOAT, w->n, 0);
        memcpy(again->k, dw->k, (size_t)w->n * sizeof(float));
        embedding_backward(stage, again->k, dy->k, c.ids, 1, d[0], d[1], d[2]);
        check_accumulated("embedding_backward acc", dw, again);
        case_end();
    }
}

static void ref_position(const Case *c, double *y)
{
    long each = c->d[1] * c->d[2];
    for (long i = 0; i < c->d[0] * each; i++)
        y[i] = c->in[0]->v[i] + c->in[1]->v[i % each];
}

static void position(void)
{
    const long shapes[][4] = {{1, 1, 1, 1}, {3, 5, 7, 9}, {4, 33, 129, 40}, {3, 8, 16, 10}};
    for (int s = 0; s < 4; s++) {
        const long *d = shapes[s];
        Tensor *x = operand(REAL, d[0] * d[1] * d[2], -1, 1), *w = operand(REAL, d[3] * d[2], -1, 1);
        Tensor *y = result(REAL, x->n), *dy = operand(REAL, x->n, -1, 1), *dw = result(FLOAT, w->n);
        Case c = {.d = {d[0], d[1], d[2], d[3]}, .in = {x, w}};
        position_forward(stage, y->k, x->k, w->k, d[0], d[1], d[2]);
        check_value("position_forward", y, ref_position, &c);
        position_backward(stage, dw->k, dy->k, 0, d[0], d[1], d[2], d[3]);
        check_gradient("position_backward", dw, ref_position, &c, 1, dy);
        Tensor *again = filled(FLOAT, w->n, 0);
        memcpy(again->k, dw->k, (size_t)w->n * sizeof(float));
        position_backward(stage, again->k, dy->k, 1, d[0], d[1], d[2], d[3]);
        check_accumulated("position_backward acc", dw, again);
        case_end();
    }
}

/* The bucket as Hugging Face's T5 computes it, in float, truncated. */
static long t5_bucket(long ahead, long buckets, long distance, long both)
{
    long base = 0, n = -ahead;
    if (both) {
        buckets /= 2;
        base = ahead > 0 ? buckets : 0;
        n = labs(ahead);
    } else if (n < 0) {
        n = 0;
    }
    long exact = buckets / 2;
    if (n < exact)
        return base + n;
    float part = logf((float)n / (float)exact) / (float)log((double)distance / (double)exact);
    long large = exact + (long)(part * (float)(buckets - exact));
    return base + (large < buckets - 1 ? large : buckets - 1);
}

static void ref_relative(const Case *c, double *y)
{
    long heads = c->d[0], query = c->d[1], key = c->d[2];
    for (long q = 0; q < query; q++)
        for (long k = 0; k < key; k++) {
            long bucket = t5_bucket(k - q, c->d[3], c->d[4], c->d[5]);
            for (long h = 0; h < heads; h++)
                y[(h * query + q) * key + k] = c->in[0]->v[bucket * heads + h];
        }
}

static void relative(void)
{
    const long shapes[][6] = {{1, 1, 1, 32, 128, 1}, {8, 300, 300, 32, 128, 1}, {8, 300, 300, 32, 128, 0}, {3, 7, 19,
                                                                                                            8, 20, 1}};
    for (int s = 0; s < 4; s++) {
        const long *d = shapes[s];
        Tensor *w = operand(REAL, d[3] * d[0], -1, 1), *y = result(REAL, d[0] * d[1] * d[2]);
        Tensor *dy = operand(REAL, y->n, -1, 1), *dw = result(FLOAT, w->n), *again = filled(FLOAT, w->n, 0);
        Case c = {.d = {d[0], d[1], d[2], d[3], d[4], d[5]}, .in = {w}};
        relative_bias_forward(stage, y->k, w->k, d[0], d[1], d[2], d[3], d[4], d[5]);
        check_value("relative_bias_forward", y, ref_relative, &c);
        relative_bias_backward(stage, dw->k, dy->k, 0, d[0], d[1], d[2], d[3], d[4], d[5]);
        check_gradient("relative_bias_backward", dw, ref_relative, &c, 0, dy);
        memcpy(again->k, dw->k, (size_t)w->n * sizeof(float));
        relative_bias_backward(stage, again->k, dy->k, 1, d[0], d[1], d[2], d[3], d[4], d[5]);
        check_accumulated("relative_bias_backward acc", dw, again);
        case_end();
    }
}

/* ---- products ---------------------------------------------------------------------------------------------------- */

void ref_linear(const Case *c, double *y)
{
    long in = c->d[1], out = c->d[2];
    for (long r = 0; r < c->d[0]; r++)
        for (long o = 0; o < out; o++) {
            double sum = c->in[2] ? c->in[2]->v[o] : 0;
            for (long i = 0; i < in; i++)
                sum += c->in[0]->v[r * in + i] * c->in[1]->v[o * in + i];
            y[r * out + o] = sum;
        }
}

static void ref_linear_add(const Case *c, double *y)
{
    ref_linear(c, y);
    for (long i = 0; i < c->d[0] * c->d[2]; i++)
        y[i] += c->in[3]->v[i];
}

/* The gradient dx of operands dy and weight, and a term. */
static void ref_linear_dx_add(const Case *c, double *dx)
{
    long in = c->d[1], out = c->d[2];
    for (long i = 0; i < c->d[0] * in; i++) {
        dx[i] = c->in[2]->v[i];
        for (long o = 0; o < out; o++)
            dx[i] += c->in[0]->v[i / in * out + o] * c->in[1]->v[o * in + i % in];
    }
}

/* A row's result may not depend on the rows beside it: the last row alone must have the same bits. */
static void last_row_alone(const Case *c, const Tensor *y, const void *bias)
{
    long rows = c->d[0], in = c->d[1], out = c->d[2];
    Tensor *alone = result(REAL, out);
    linear_forward(stage, alone->k, (const real *)c->in[0]->k + (rows - 1) * in, c->in[1]->k, bias, 0, 1, in, out);
    const real *last = (const real *)y->k + (rows - 1) * out;
    expect(!memcmp(alone->k, last, (size_t)out * sizeof(real)), "linear_forward: a row depends on its neighbours");
}

typedef struct { const double *a, *b; long as, bs, k; } Factors;

/* Terms [from, end) of k, in `blocks` blocks of `each`: a chain of fused steps each, and the tree of docs/bits.md. */
static float fused_sum(const Factors *f, long blocks, long each, long from)
{
    float sum = 0;
    if (blocks > 1) {
        long middle = from + blocks / 2 * each;
        sum = fused_sum(f, blocks / 2, each, from);
        return middle < f->k ? sum + fused_sum(f, blocks / 2, each, middle) : sum;
    }
    for (long p = from; p < f->k && p < from + each; p++)
        sum = fmaf((float)f->a[p * f->as], (float)f->b[p * f->bs], sum);
    return sum;
}

/* Bits: element (i, j) of a product [.. n], of a(i, p) at a[i as + p ap] and b(j, p) at b[j bs + p bp]. */
static void fused_chains(const char *call, Tensor *got, long n, const Tensor *a, long as, long ap, const Tensor *b, long bs,
                         long bp, long k, long blocks)
{
    long wrong = 0, first = 0;
    read_back(got);
    blocks = blocks ? blocks : 1;
    for (long i = got->n - 1; i >= 0 && !hashing(); i--) {
        Factors f = {a->v + i / n * as, b->v + i % n * bs, ap, bp, k};
        float sum = fused_sum(&f, blocks, (k + blocks - 1) / blocks, 0);
        real stored[1];
        put(stored, 0, sum);
        float want = got->type == REAL ? get(stored, 0) : sum;
        if ((double)want != got->v[i] || !signbit(want) != !signbit(got->v[i]))
            wrong++, first = i;
    }
    expect(wrong == 0, "%s: %ld of %ld are not the chains of fused steps, the first is %ld", call, wrong, got->n, first);
}

/* got[width]: the sums over rows of terms[rows width], ascending, in the stage's blocks. */
static void column_chains(const char *call, Tensor *got, const Tensor *terms, long rows)
{
    if (!folds())
        fused_chains(call, got, 1, terms, 1, got->n, filled(REAL, 1, 1), 0, 0, rows, stage->blocks);
}

/* In the order of docs/bits.md: lane j adds terms j, j + 16, ..., and lanes are added in halves. */
static float lanes(const float *term, long n)
{
    float lane[16] = {0};
    for (long i = 0; i < n; i++)
        lane[i % 16] += term[i];
    for (int half = 8; half; half /= 2)
        for (int j = 0; j < half; j++)
            lane[j] += lane[j + half];
    return lane[0];
}

/* dweight adds terms over rows, dx has sums along them. */
void norm_bits(const char *call, Tensor *dx, Tensor *dw, Tensor *db, const Tensor *dy, const Tensor *x, const Tensor *w,
               const Tensor *mean, const Tensor *rstd, long rows, long width)
{
    Tensor *term = filled(FLOAT, rows * width, 0), *want = result(REAL, rows * width);
    float plain[2][8200];
    for (long r = 0; r < rows && !folds(); r++) {
        const float s = ((const float *)rstd->k)[r], m = mean ? ((const float *)mean->k)[r] : 0;
        for (long i = 0, at = r * width; i < width; i++, at++) {
            float u = ((float)x->v[at] - m) * s, d = (float)dy->v[at];
            term->v[at] = (double)(d * u);
            plain[0][i] = d * (float)w->v[i];
            plain[1][i] = plain[0][i] * u;
        }
        float sum = mean ? lanes(plain[0], width) / (float)width : 0, product = lanes(plain[1], width) / (float)width;
        for (long i = 0, at = r * width; i < width; i++, at++)
            put(want->k, at, s * (plain[0][i] - sum - ((float)x->v[at] - m) * s * product));
    }
    if (!folds())
        same_bits(call, width, dx, want);
    column_chains(call, dw, term, rows);
    if (db)
        column_chains(call, db, dy, rows);
}

static void linear_chains(void)
{
    if (folds())
        return;
    /* The last have many rows and few channels; products of small numbers vanish, and a chain ends at 0 or -0. */
    const long shapes[][3] = {{37, 700, 65}, {300, 35, 70}, {2, 830, 3}, {27, 770, 1100}, {1, 70, 300}, {70, 1, 33},
                              {800, 35, 70}, {800, 70, 35}};
    for (int s = 0; s < 8; s++) {
        const long m = shapes[s][0], in = shapes[s][1], out = shapes[s][2];
        double most = s == 7 ? 1e-24 : 1;
        Tensor *x = operand(REAL, m * in, -most, most), *w = operand(REAL, out * in, -most, most);
        Tensor *dy = operand(REAL, m * out, -most, most);
        Tensor *y = result(REAL, m * out), *dx = result(REAL, m * in), *dw = result(FLOAT, w->n), *db = result(FLOAT, out);
        Tensor *alone = result(FLOAT, out);
        linear_forward(stage, y->k, x->k, w->k, NULL, 0, m, in, out);
        linear_backward_x(stage, dx->k, dy->k, w->k, 0, m, in, out);
        linear_backward_w(stage, dw->k, db->k, dy->k, x->k, 0, 0, m, in, out);
        linear_backward_w(stage, NULL, alone->k, dy->k, x->k, 0, 0, m, in, out);
        fused_chains("linear_forward", y, out, x, in, 1, w, in, 1, in, stage->blocks);
        fused_chains("linear_backward_x", dx, in, dy, out, 1, w, 1, in, out, stage->blocks);
        fused_chains("linear_backward_w", dw, in, dy, 1, out, x, 1, in, m, stage->blocks);
        column_chains("linear_backward_w: bias", db, dy, m);
        same_bits("linear_backward_w: bias alone", s, alone, db);
        linear_backward_w(stage, dw->k, alone->k, dy->k, x->k, 0, 1, m, in, out);
        check_accumulated("linear_backward_w: bias acc", db, alone);
        case_end();
    }
}

static void matmul_chains(void)
{
    if (folds())
        return;
    enum { M = 45, N = 70, K = 300 };
    for (long turned = 0; turned < 4; turned++) {
        long ta = turned & 1, tb = turned >> 1;
        Tensor *a = operand(REAL, M * K, -1, 1), *b = operand(REAL, K * N, -1, 1), *y = result(REAL, M * N);
        matmul_forward(stage, y->k, a->k, b->k, 0, 1, M, N, K, ta, tb);
        fused_chains("matmul_forward", y, N, a, ta ? 1 : K, ta ? M : 1, b, tb ? K : 1, tb ? 1 : N, K, 1);
        case_end();
    }
}

static void linear(void)
{
    const long shapes[][3] = {{1, 1, 1}, {2, 3, 5}, {17, 129, 33}, {9, 16, 32}, {3, 3001, 7}, {261, 70, 65},
                             {31, 64, 31}, {13, 1024, 40}, {26, 24, 1024}};
    for (int s = 0; s < (int)(sizeof shapes / sizeof *shapes); s++) {
        const long *d = shapes[s];
        Tensor *x = operand(REAL, d[0] * d[1], -1, 1), *w = operand(REAL, d[2] * d[1], -1, 1);
        Tensor *b = s % 2 ? operand(REAL, d[2], -1, 1) : NULL, *y = result(REAL, d[0] * d[2]);
        Tensor *dy = operand(REAL, y->n, -1, 1);
        Tensor *dx = result(REAL, x->n), *dw = result(FLOAT, w->n), *db = result(FLOAT, d[2]);
        Tensor *again = filled(FLOAT, w->n, 0);
        Case c = {.d = {d[0], d[1], d[2]}, .in = {x, w, b}};
        linear_forward(stage, y->k, x->k, w->k, b ? b->k : 0, 0, d[0], d[1], d[2]);
        check_value("linear_forward", y, ref_linear, &c);
        last_row_alone(&c, y, b ? b->k : 0);
        Case more = {.d = {d[0], d[1], d[2]}, .in = {x, w, b, dy}};     /* dy is as good as another term */
        Tensor *sum = result(REAL, y->n);
        linear_add_forward(stage, sum->k, dy->k, x->k, w->k, b ? b->k : 0, 0, d[0], d[1], d[2]);
        check_value("linear_add_forward", sum, ref_linear_add, &more);
        linear_backward_x(stage, dx->k, dy->k, w->k, 0, d[0], d[1], d[2]);
        check_gradient("linear_backward_x", dx, ref_linear, &c, 0, dy);
        Case onto = {.d = {d[0], d[1], d[2]}, .in = {dy, w, x}};
        Tensor *total = result(REAL, x->n);
        linear_add_backward_x(stage, total->k, dy->k, w->k, x->k, 0, d[0], d[1], d[2]);
        check_value("linear_add_backward_x", total, ref_linear_dx_add, &onto);
        linear_backward_w(stage, dw->k, b ? db->k : 0, dy->k, x->k, 0, 0, d[0], d[1], d[2]);
        check_gradient("linear_backward_w", dw, ref_linear, &c, 1, dy);
        if (b)
            check_gradient("linear_backward_w", db, ref_linear, &c, 2, dy);
        memcpy(again->k, dw->k, (size_t)w->n * sizeof(float));
        Tensor *db2 = filled(FLOAT, d[2], 0);
        memcpy(db2->k, db->k, (size_t)d[2] * sizeof(float));
        linear_backward_w(stage, again->k, b ? db2->k : 0, dy->k, x->k, 0, 1, d[0], d[1], d[2]);
        check_accumulated("linear_backward_w acc", dw, again);
        if (b)
            check_accumulated("linear_backward_w acc", db, db2);
        case_end();
    }
}

/* Those of GPUs differ, where the Gelu is inside a product: tests/unit_cublaslt.c. */
static void linear_gelu(void)
{
    const long shapes[][3] = {{1, 1, 1}, {17, 29, 33}, {9, 16, 32}};
    for (int s = 0; s < 3; s++) {
        const long *d = shapes[s];
        Tensor *x = operand(REAL, d[0] * d[1], -1, 1), *w = operand(REAL, d[2] * d[1], -1, 1);
        Tensor *b = s % 2 ? operand(REAL, d[2], -1, 1) : NULL, *dy = operand(REAL, d[0] * d[2], -1, 1), *want[4], *got[3];
        Tensor *pre = operand(REAL, x->n, -1, 1);
        for (int i = 0; i < 4; i++)
            want[i] = result(REAL, i < 2 ? dy->n : x->n);
        for (int i = 0; i < 3; i++)
            got[i] = result(REAL, i < 2 ? dy->n : x->n);
        linear_forward(stage, want[0]->k, x->k, w->k, b ? b->k : 0, 0, d[0], d[1], d[2]);
        gelu_forward(stage, want[1]->k, want[0]->k, dy->n, 1);
        linear_backward_x(stage, want[2]->k, dy->k, w->k, 0, d[0], d[1], d[2]);
        gelu_backward(stage, want[3]->k, want[2]->k, pre->k, x->n, 1);
        linear_gelu_forward(stage, got[1]->k, got[0]->k, x->k, w->k, b ? b->k : 0, 0, d[0], d[1], d[2]);
        linear_gelu_backward(stage, got[2]->k, dy->k, w->k, pre->k, 0, d[0], d[1], d[2]);
        alike("linear_gelu_forward pre", got[0], want[0]);
        alike("linear_gelu_forward", got[1], want[1]);
        alike("linear_gelu_backward", got[2], want[3]);
        case_end();
    }
}

static void ref_matmul(const Case *c, double *y)
{
    long m = c->d[1], n = c->d[2], k = c->d[3], ta = c->d[4], tb = c->d[5];
    for (long b = 0; b < c->d[0]; b++)
        for (long i = 0; i < m; i++)
            for (long j = 0; j < n; j++) {
                double sum = 0;
                for (long p = 0; p < k; p++)
                    sum += c->in[0]->v[b * m * k + (ta ? p * m + i : i * k + p)] *
                           c->in[1]->v[b * k * n + (tb ? j * k + p : p * n + j)];
                y[(b * m + i) * n + j] = sum;
            }
}

static void matmul(void)
{
    const long shapes[][4] = {{1, 1, 1, 1}, {3, 5, 7, 11}, {2, 33, 17, 130}, {2, 13, 65, 31}, {1, 260, 9, 8}};
    for (int s = 0; s < 5 * 4; s++) {
        const long *d = shapes[s / 4], ta = s & 1, tb = s >> 1 & 1;
        Tensor *a = operand(REAL, d[0] * d[1] * d[3], -1, 1), *b = operand(REAL, d[0] * d[3] * d[2], -1, 1);
        Tensor *y = result(REAL, d[0] * d[1] * d[2]), *dy = operand(REAL, y->n, -1, 1);
        Tensor *da = result(REAL, a->n), *db = result(REAL, b->n);
        Case c = {.d = {d[0], d[1], d[2], d[3], ta, tb}, .in = {a, b}};
        matmul_forward(stage, y->k, a->k, b->k, 0, d[0], d[1], d[2], d[3], ta, tb);
        check_value("matmul_forward", y, ref_matmul, &c);
        matmul_backward(stage, da->k, 0, dy->k, a->k, b->k, 0, d[0], d[1], d[2], d[3], ta, tb);
        matmul_backward(stage, 0, db->k, dy->k, a->k, b->k, 0, d[0], d[1], d[2], d[3], ta, tb);
        check_gradient("matmul_backward", da, ref_matmul, &c, 0, dy);
        check_gradient("matmul_backward", db, ref_matmul, &c, 1, dy);
        case_end();
    }
}

/* ---- attention --------------------------------------------------------------------------------------------------- */

enum { BATCH, HEADS, QUERY, KEY, WIDTH, CAUSAL, PACKED };       /* Case.d; Case.f: scale, drop */

static double at_head(const Case *c, int which, long b, long row, long rows, long head, long j)
{
    long all = c->d[HEADS] * c->d[WIDTH], at = head * c->d[WIDTH] + j;
    return c->d[PACKED] ? c->in[0]->v[(b * rows + row) * 3 * all + which * all + at]
                        : c->in[which]->v[(b * rows + row) * all + at];
}

static double factor_of(const Case *c, long b, long head, long q, long k)
{
    if (c->f[1] == 0 || c->vals.eval)
        return 1;
    uint64_t e = (uint64_t)((head * c->d[QUERY] + q) * c->d[KEY] + k), site = (uint64_t)c->site;
    Philox at = {{(uint32_t)(e / 4), (uint32_t)(c->mb * c->d[BATCH] + b), (uint32_t)c->vals.step, 0}};
    Philox r = philox(at, (uint32_t)(c->vals.seed ^ site >> 32), (uint32_t)(c->vals.seed >> 32 ^ site));
    return (double)r.v[e % 4] / 4294967296.0 >= c->f[1] ? 1 / (1 - c->f[1]) : 0;
}

/* One row: probabilities into p; the log of the sum of exponentials. */
static double attention_row(const Case *c, long b, long h, long q, double *p)
{
    double most = -INFINITY, sum = 0;
    long key = c->d[KEY];
    for (long k = 0; k < key; k++) {
        p[k] = 0;
        for (long j = 0; j < c->d[WIDTH]; j++)
            p[k] += at_head(c, 0, b, q, c->d[QUERY], h, j) * at_head(c, 1, b, k, key, h, j);
        p[k] = p[k] * c->f[0] + (c->in[3] ? c->in[3]->v[(h * c->d[QUERY] + q) * key + k] : 0);
        if ((c->d[CAUSAL] && k > q) || (c->ids && !c->ids[b * key + k]))
            p[k] = -INFINITY;
        most = fmax(most, p[k]);
    }
    for (long k = 0; k < key; k++)
        sum += p[k] = p[k] == -INFINITY ? 0 : exp(p[k] - most);
    for (long k = 0; k < key; k++)
        p[k] = sum > 0 ? p[k] / sum * factor_of(c, b, h, q, k) : 0;
    return most + log(sum);
}

/* lse as the call has it, or `beside` the rows of y; there a row that sees no key has 0. */
static void attention_all(const Case *c, double *y, double *lse, int beside)
{
    double p[512];
    for (long b = 0; b < c->d[BATCH]; b++)
        for (long h = 0; h < c->d[HEADS]; h++)
            for (long q = 0; q < c->d[QUERY]; q++) {
                double l = attention_row(c, b, h, q, p);
                if (lse && !beside)
                    lse[(b * c->d[HEADS] + h) * c->d[QUERY] + q] = l;
                else if (lse)
                    lse[(b * c->d[QUERY] + q) * c->d[HEADS] + h] = isfinite(l) ? l : 0;
                for (long j = 0; y && j < c->d[WIDTH]; j++) {
                    double sum = 0;
                    for (long k = 0; k < c->d[KEY]; k++)
                        sum += p[k] * at_head(c, 2, b, k, c->d[KEY], h, j);
                    y[((b * c->d[QUERY] + q) * c->d[HEADS] + h) * c->d[WIDTH] + j] = sum;
                }
            }
}

static void ref_attention(const Case *c, double *y) { attention_all(c, y, 0, 0); }
static void ref_lse(const Case *c, double *lse) { attention_all(c, 0, lse, 0); }
static void ref_stored(const Case *c, double *y)
{
    attention_all(c, y, y + c->d[BATCH] * c->d[QUERY] * c->d[HEADS] * c->d[WIDTH], 1);
}

typedef struct { long d[6]; int bias, mask; double drop; int eval; } Setup;

static const Setup setups[] = {
    {{1, 1, 1, 1, 1, 0}, 0, 0, 0, 0},      {{2, 3, 5, 5, 7, 1}, 0, 0, 0, 0},      {{2, 2, 35, 35, 17, 1}, 0, 0, 0, 0},
    {{2, 2, 33, 67, 8, 0}, 1, 1, 0, 0},    {{3, 1, 9, 40, 5, 0}, 0, 1, 0.25, 0},  {{2, 2, 34, 34, 16, 1}, 1, 1, 0.4, 0},
    {{1, 1, 6, 70, 131, 0}, 1, 0, 0, 0},   {{2, 1, 3, 4, 4, 0}, 0, 0, 0.5, 1},    {{1, 2, 5, 37, 3, 1}, 0, 0, 0.1, 0},
    {{1, 1, 130, 100, 24, 1}, 1, 0, 0.2, 0}, {{1, 2, 70, 70, 80, 1}, 1, 1, 0.1, 0},
    {{1, 2, 130, 130, 8, 1}, 0, 1, 0, 0},  {{3, 2, 20, 36, 8, 0}, 1, 0, 0, 0},
};
enum { SETUPS = sizeof setups / sizeof *setups };

static Case setup(const Setup *s)
{
    Case c = {.site = 0x1234567890abcdef, .mb = 3};
    memcpy(c.d, s->d, sizeof s->d);
    c.f[0] = (double)(float)(0.7 / sqrt((double)s->d[WIDTH]));
    c.f[1] = (double)(float)s->drop;
    c.vals = (Values){.seed = 0xfedcba9876543210, .step = 77, .eval = s->eval};
    if (s->bias)
        c.in[3] = operand(REAL, s->d[HEADS] * s->d[QUERY] * s->d[KEY], -1, 1);
    if (s->mask) {
        int32_t *mask = ids(s->d[BATCH] * s->d[KEY], 0, 3);
        for (long k = 0; k < s->d[KEY]; k++)
            mask[k] = 0;                        /* sample 0 sees nothing */
        c.ids = mask;
    }
    return c;
}

static void attention(void)
{
    for (int s = 0; s < SETUPS; s++) {
        Case c = setup(&setups[s]);
        const long *d = c.d, all = d[HEADS] * d[WIDTH];
        float scale = (float)c.f[0], drop = (float)c.f[1];
        Tensor *q = operand(REAL, d[BATCH] * d[QUERY] * all, -2, 2), *k = operand(REAL, d[BATCH] * d[KEY] * all, -2, 2);
        Tensor *v = operand(REAL, k->n, -2, 2), *y = result(REAL, q->n), *dy = operand(REAL, q->n, -1, 1);
        Tensor *lse = result(FLOAT, d[BATCH] * d[HEADS] * d[QUERY]), *tmp = result(FLOAT, lse->n);
        Tensor *dq = result(REAL, q->n), *dk = result(REAL, k->n), *dv = result(REAL, v->n);
        const void *bias = c.in[3] ? c.in[3]->k : 0;
        Tensor *dbias = bias ? result(REAL, c.in[3]->n) : NULL;
        c.in[0] = q, c.in[1] = k, c.in[2] = v;
        attention_forward(stage, y->k, lse->k, q->k, k->k, v->k, bias, c.ids, &c.vals, c.mb, 0, d[BATCH], d[HEADS],
                          d[QUERY], d[KEY], d[WIDTH], d[CAUSAL], scale, drop, c.site);
        check_value("attention_forward", y, ref_attention, &c);
        check_value("attention_forward lse", lse, ref_lse, &c);
        attention_backward(stage, dq->k, dk->k, dv->k, dbias ? dbias->k : 0, dy->k, y->k, q->k, k->k, v->k, bias, c.ids,
                           lse->k, tmp->k, &c.vals, c.mb, 0, d[BATCH], d[HEADS], d[QUERY], d[KEY], d[WIDTH], d[CAUSAL],
                           scale, drop, c.site);
        const Tensor *all_dy = for_stored(ref_stored, &c, y, dy, d[WIDTH]);
        check_gradient("attention_backward dq", dq, ref_stored, &c, 0, all_dy);
        check_gradient("attention_backward dk", dk, ref_stored, &c, 1, all_dy);
        check_gradient("attention_backward dv", dv, ref_stored, &c, 2, all_dy);
        if (dbias)
            check_gradient("attention_backward dbias", dbias, ref_stored, &c, 3, all_dy);
        for (int which = 0; s == SETUPS - 1 && which < 2; which++) {         /* a gradient that is wanted alone */
            Tensor *alone = result(REAL, k->n);
            attention_backward(stage, 0, which ? 0 : alone->k, which ? alone->k : 0, 0, dy->k, y->k, q->k, k->k, v->k, bias,
                               c.ids, lse->k, tmp->k, &c.vals, c.mb, 0, d[BATCH], d[HEADS], d[QUERY], d[KEY], d[WIDTH],
                               d[CAUSAL], scale, drop, c.site);
            same_bits("attention_backward, one gradient", which, alone, which ? dv : dk);
        }
        case_end();
    }
}

static void attention_packed(void)
{
    for (int s = 0; s < SETUPS; s++) {
        Case c = setup(&setups[s]);
        const long *d = c.d, rows = d[BATCH] * d[QUERY], all = d[HEADS] * d[WIDTH];
        if (d[QUERY] != d[KEY]) {
            case_end();
            continue;
        }
        c.d[PACKED] = 1;
        float scale = (float)c.f[0], drop = (float)c.f[1];
        Tensor *qkv = operand(REAL, rows * 3 * all, -2, 2), *y = result(REAL, rows * all);
        Tensor *dy = operand(REAL, y->n, -1, 1), *lse = result(FLOAT, rows * d[HEADS]), *tmp = result(FLOAT, lse->n);
        Tensor *dqkv = result(REAL, qkv->n);
        const void *bias = c.in[3] ? c.in[3]->k : 0;
        Tensor *dbias = bias ? result(REAL, c.in[3]->n) : NULL;
        c.in[0] = qkv;
        attention_packed_forward(stage, y->k, lse->k, qkv->k, bias, c.ids, &c.vals, c.mb, 0, d[BATCH], d[HEADS],
                                 d[QUERY], d[WIDTH], d[CAUSAL], scale, drop, c.site);
        check_value("attention_packed_forward", y, ref_attention, &c);
        check_value("attention_packed_forward lse", lse, ref_lse, &c);
        attention_packed_backward(stage, dqkv->k, dbias ? dbias->k : 0, dy->k, y->k, qkv->k, bias, c.ids, lse->k, tmp->k,
                                  &c.vals, c.mb, 0, d[BATCH], d[HEADS], d[QUERY], d[WIDTH], d[CAUSAL], scale, drop, c.site);
        const Tensor *all_dy = for_stored(ref_stored, &c, y, dy, d[WIDTH]);
        check_gradient("attention_packed_backward", dqkv, ref_stored, &c, 0, all_dy);
        if (dbias)
            check_gradient("attention_packed_backward dbias", dbias, ref_stored, &c, 3, all_dy);
        case_end();
    }
}

/* The bits of Linear whose weight is the wide one; unit_math.c asks what that is. */
static void linear_few(void)
{
    const long shapes[][3] = {{1, 1, 1}, {2, 3, 5}, {17, 129, 33}, {9, 64, 32}, {3, 3001, 7}, {261, 70, 65}, {31, 448, 300}};
    for (int s = 0; s < 14 && !folds(); s++) {         /* GPUs have none */
        const long *d = shapes[s / 2];
        int bits = s % 2 ? 4 : 8;
        long each = quantized_each(bits, d[1]), record = quantized_record(bits, d[1]);
        Tensor *x = operand(REAL, d[0] * d[1], -1, 1), *w = operand(REAL, d[2] * d[1], -1, 1);
        Tensor *b = s % 3 ? operand(REAL, d[2], -1, 1) : NULL, *y = result(REAL, d[0] * d[2]), *want = result(REAL, y->n);
        Tensor *dy = operand(REAL, y->n, -1, 1), *dx = result(REAL, x->n), *want_dx = result(REAL, x->n);
        unsigned char *few = calloc((size_t)(w->n / each + 2), (size_t)record);
        float *wide = malloc((size_t)w->n * sizeof *wide);
        for (long i = 0; i < w->n; i++)
            wide[i] = (float)w->v[i];
        for (long i = 0; i < w->n; i += each)
            quantize_record(few + i / each * record, bits, wide + i, i + each < w->n ? each : w->n - i);
        quantized_read(wide, few, bits, d[1], 0, w->n);
        for (long i = 0; i < w->n; i++)
            put(w->k, i, wide[i]);
        linear_forward(stage, want->k, x->k, w->k, b ? b->k : 0, 0, d[0], d[1], d[2]);
        linear_backward_x(stage, want_dx->k, dy->k, w->k, 0, d[0], d[1], d[2]);
        linear_quantized_forward(stage, y->k, x->k, few, b ? b->k : 0, d[0], d[1], d[2], bits);
        linear_quantized_backward_x(stage, dx->k, dy->k, few, d[0], d[1], d[2], bits);
        same_bits("linear_quantized_forward", s, y, want);
        same_bits("linear_quantized_backward_x", s, dx, want_dx);
        free(few);
        free(wide);
        case_end();
    }
}

const Check product_checks[] = {
    {" embedding_forward embedding_backward ", embedding},
    {" position_forward position_backward ", position},
    {" relative_bias_forward relative_bias_backward ", relative},
    {" linear_forward linear_add_forward linear_backward_x linear_add_backward_x linear_backward_w ", linear},
    {" linear_forward linear_backward_x linear_backward_w ", linear_chains},
    {" matmul_forward ", matmul_chains},
    {" linear_gelu_forward linear_gelu_backward ", linear_gelu},
    {" linear_quantized_forward linear_quantized_backward_x ", linear_few},
    {" matmul_forward matmul_backward ", matmul},
    {" attention_forward attention_backward ", attention},
    {" attention_packed_forward attention_packed_backward ", attention_packed},
    {0, 0},
};
