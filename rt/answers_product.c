/* SPDX-License-Identifier: Apache-2.0
 *
 * answers_product.c: an element of a product, of attention, or of LinearCrossEntropy, in f64 from the call's operands.
 *
 * The formulas are those of docs/operators.md.  Statistics of forward that backward is given, log sums and results, are
 * taken as they are: their own call has been checked.
 */
#include <math.h>
#include "fp8.h"
#include "philox.h"
#include "selftest.h"

static Answer no_answer(void) { return (Answer){0, 0}; }

static void plus(Answer *a, double x)
{
    a->value += x;
    a->terms += fabs(x);
}

/* The sum over j of x[x0 + j xs] y[y0 + j ys]. */
static Answer dot(const Operand *x, long x0, long xs, const Operand *y, long y0, long ys, long n)
{
    Answer a = no_answer();
    for (long j = 0; j < n; j++)
        plus(&a, old_at(x, x0 + j * xs) * old_at(y, y0 + j * ys));
    return a;
}

static Answer column(const Operand *x, long from, long step, long n)
{
    Answer a = no_answer();
    for (long j = 0; j < n; j++)
        plus(&a, old_at(x, from + j * step));
    return a;
}

static long of(const Call *c, const char *name) { return (long)number_of(c, name); }

/* ---- products ------------------------------------------------------------------------------------------------------ */

static Answer linear_y(const Call *c, long i)
{
    long in = of(c, "in"), out = of(c, "out");
    Answer a = dot(part_of(c, "x"), i / out * in, 1, part_of(c, "weight"), i % out * in, 1, in);
    plus(&a, old_of(c, "bias", i % out));
    return a;
}

static Answer linear_dx(const Call *c, long i)
{
    long in = of(c, "in"), out = of(c, "out");
    return dot(part_of(c, "dy"), i / in * out, 1, part_of(c, "weight"), i % in, in, out);
}

static Answer linear_dweight(const Call *c, long i)
{
    long in = of(c, "in");
    return dot(part_of(c, "dy"), i / in, of(c, "out"), part_of(c, "x"), i % in, in, of(c, "rows"));
}

static Answer linear_dbias(const Call *c, long i)
{
    return column(part_of(c, "dy"), i, of(c, "out"), of(c, "rows"));
}

static double half_gelu(double x) { return 0.5 + 0.5 * tanh(0.79788456080286535588 * (x + 0.044715 * x * x * x)); }

static Answer linear_gelu_y(const Call *c, long i)
{
    Answer a = linear_y(c, i);
    return (Answer){a.value * half_gelu(a.value), 1.13 * a.terms};
}

static Answer linear_gelu_dpre(const Call *c, long i)
{
    Answer a = linear_dx(c, i);
    double x = old_of(c, "pre", i), h = half_gelu(x), inner = 0.79788456080286535588 * (1 + 3 * 0.044715 * x * x);
    return (Answer){a.value * (h + 2 * x * h * (1 - h) * inner), 1.13 * a.terms + fabs(a.value * x)};
}

/* ---- factors of 8 bits --------------------------------------------------------------------------------------------- */

typedef struct { const Operand *p; int scale; Fp8 type; } Eight;

static Eight eight(const Call *c, const char *name, int which)
{
    const Operand *p = part_of(c, name), *amax = part_of(c, "amax");
    Fp8 type = which == FP8_DY ? E5M2 : E4M3;
    int bin = FP8_BINS - 1;
    while (bin >= 0 && !(old_at(amax, which * FP8_BINS + bin) > 0))
        bin--;
    return (Eight){p, fp8_scale(bin < 0 ? fp8_bin((float)p->most) : bin, type), type};
}

static Eight of_x(const Call *c) { return eight(c, "x", FP8_X); }
static Eight of_weight(const Call *c) { return eight(c, "weight", FP8_WEIGHT); }
static Eight of_dy(const Call *c) { return eight(c, "dy", FP8_DY); }

static double eight_at(const Eight *f, long i)
{
    return ldexp((double)fp8_float(float_fp8((float)ldexp(old_at(f->p, i), f->scale), f->type), f->type), -f->scale);
}

static Answer eight_dot(Eight a, long a0, long as, Eight b, long b0, long bs, long n)
{
    Answer sum = no_answer();
    for (long j = 0; j < n; j++)
        plus(&sum, eight_at(&a, a0 + j * as) * eight_at(&b, b0 + j * bs));
    return sum;
}

static Answer linear_fp8_y(const Call *c, long i)
{
    long in = of(c, "in"), out = of(c, "out");
    Answer a = eight_dot(of_x(c), i / out * in, 1, of_weight(c), i % out * in, 1, in);
    plus(&a, old_of(c, "bias", i % out));
    return a;
}

static Answer linear_fp8_dx(const Call *c, long i)
{
    long in = of(c, "in"), out = of(c, "out");
    return eight_dot(of_dy(c), i / in * out, 1, of_weight(c), i % in, in, out);
}

static Answer linear_fp8_dweight(const Call *c, long i)
{
    long in = of(c, "in");
    return eight_dot(of_dy(c), i / in, of(c, "out"), of_x(c), i % in, in, of(c, "rows"));
}

/* One more in the bin of each tensor's largest; the weight is counted in the first micro-batch alone.  Behind the counts: 0. */
static Answer linear_fp8_damax(const Call *c, long i)
{
    static const char *const tensors[] = {[FP8_X] = "x", [FP8_WEIGHT] = "weight", [FP8_DY] = "dy"};
    long which = i / FP8_BINS;
    if (which >= FP8_TENSORS || (which == FP8_WEIGHT && of(c, "acc")))
        return no_answer();
    return (Answer){fp8_bin((float)part_of(c, tensors[which])->most) == i % FP8_BINS, 0};
}

/* Row and column steps of a stored rows x cols matrix, or of a turned one. */
typedef struct { const Operand *p; long at, row_step, col; } Matrix;

static Matrix matrix(const Call *c, const char *name, long batch, long rows, long cols, long turned)
{
    return (Matrix){part_of(c, name), batch * rows * cols, turned ? 1 : cols, turned ? rows : 1};
}

static Answer multiplied(Matrix a, long row, Matrix b, long col, long n)
{
    return dot(a.p, a.at + row * a.row_step, a.col, b.p, b.at + col * b.col, b.row_step, n);
}

static Matrix turned(Matrix m) { return (Matrix){m.p, m.at, m.col, m.row_step}; }

static Answer matmul_y(const Call *c, long i)
{
    long m = of(c, "m"), n = of(c, "n"), k = of(c, "k"), b = i / (m * n);
    return multiplied(matrix(c, "a", b, m, k, of(c, "ta")), i / n % m, matrix(c, "b", b, k, n, of(c, "tb")), i % n, k);
}

static Answer matmul_da(const Call *c, long i)
{
    long m = of(c, "m"), n = of(c, "n"), k = of(c, "k"), b = i / (m * k), e = i % (m * k);
    long row = of(c, "ta") ? e % m : e / k, col = of(c, "ta") ? e / m : e % k;
    return multiplied(matrix(c, "dy", b, m, n, 0), row, turned(matrix(c, "b", b, k, n, of(c, "tb"))), col, n);
}

static Answer matmul_db(const Call *c, long i)
{
    long m = of(c, "m"), n = of(c, "n"), k = of(c, "k"), b = i / (k * n), e = i % (k * n);
    long row = of(c, "tb") ? e % k : e / n, col = of(c, "tb") ? e / k : e % n;
    return multiplied(turned(matrix(c, "a", b, m, k, of(c, "ta"))), row, matrix(c, "dy", b, m, n, 0), col, m);
}

/* ---- attention ----------------------------------------------------------------------------------------------------- */

typedef struct {
    const Call *c;
    const Operand *q, *k, *v, *dy;
    long heads, group, query, key, width, ld, k_ld, k_at, v_at;     /* group: heads of queries for one of keys */
    long b, head;               /* of the element that is asked for */
    double scale;
} Heads;

static Heads heads_of(const Call *c)
{
    const Operand *packed = part_of(c, "qkv");
    long heads = of(c, "heads"), width = of(c, "width"), all = heads * width, query = of(c, "query");
    long group = part_of(c, "kv_heads") ? heads / of(c, "kv_heads") : 1;
    return (Heads){c, packed ? packed : part_of(c, "q"), packed ? packed : part_of(c, "k"), packed ? packed : part_of(c, "v"),
                   part_of(c, "dy"), heads, group, query, packed ? query : of(c, "key"), width, packed ? 3 * all : all,
                   packed ? 3 * all : all / group, packed ? all : 0, packed ? 2 * all : 0, 0, 0, number_of(c, "scale")};
}

static long query_at(const Heads *h, long i) { return (h->b * h->query + i) * h->ld + h->head * h->width; }
static long key_at(const Heads *h, long j) { return (h->b * h->key + j) * h->k_ld + h->head / h->group * h->width; }
static long result_at(const Heads *h, long i) { return ((h->b * h->query + i) * h->heads + h->head) * h->width; }
static long row_of(const Heads *h, long i) { return (h->b * h->heads + h->head) * h->query + i; }

static double below_cap(const Heads *h, long i, long j)
{
    return h->scale * dot(h->q, query_at(h, i), 1, h->k, h->k_at + key_at(h, j), 1, h->width).value;
}

static double score(const Heads *h, long i, long j)
{
    const Operand *mask = part_of(h->c, "mask");
    long window = of(h->c, "window");
    if ((of(h->c, "causal") && j > i) || (mask && old_at(mask, h->b * h->key + j) == 0) || (window && i - j >= window))
        return -INFINITY;
    double cap = number_of(h->c, "cap"), s = below_cap(h, i, j);
    return (cap > 0 ? cap * tanh(s / cap) : s) + old_of(h->c, "bias", (h->head * h->query + i) * h->key + j);
}

/* What of a score's gradient goes through the cap. */
static double cap_slope(const Heads *h, long i, long j)
{
    double cap = number_of(h->c, "cap"), t = cap > 0 ? tanh(below_cap(h, i, j) / cap) : 0;
    return 1 - t * t;
}

static double kept(const Heads *h, long i, long j)
{
    double drop = number_of(h->c, "drop");
    const Values *vals = h->c->vals;
    float factor = 1;
    if (drop == 0 || vals->eval)
        return 1;
    Drop d = drop_of(vals, of(h->c, "mb") * of(h->c, "batch") + h->b, (float)drop, part_of(h->c, "site")->given.i);
    drop_factors(&factor, &d, (h->head * h->query + i) * h->key + j, 1);
    return factor;
}

/* Over the keys of a query: the largest score, the sum of exponentials, and that sum with element d of the values. */
static Answer attend(const Heads *h, long i, long d, double *lse)
{
    double most = -INFINITY, sum = 0;
    Answer a = no_answer();
    for (long j = 0; j < h->key; j++) {
        double s = score(h, i, j), top = s > most ? s : most;
        if (s == -INFINITY)
            continue;
        double shrink = exp(most - top), e = exp(s - top);
        sum = sum * shrink + e;
        a = (Answer){a.value * shrink, a.terms * shrink};
        plus(&a, e * kept(h, i, j) * old_at(h->v, h->v_at + key_at(h, j) + d));
        most = top;
    }
    *lse = most + log(sum);
    return sum > 0 ? (Answer){a.value / sum, a.terms / sum} : no_answer();
}

static Answer attention_y(const Call *c, long i)
{
    Heads h = heads_of(c);
    double lse;
    long row = i / (h.heads * h.width);
    h.b = row / h.query, h.head = i / h.width % h.heads;
    return attend(&h, row % h.query, i % h.width, &lse);
}

static Answer attention_lse(const Call *c, long i)
{
    Heads h = heads_of(c);
    double lse;
    h.b = i / (h.heads * h.query), h.head = i / h.query % h.heads;
    attend(&h, i % h.query, 0, &lse);
    return (Answer){lse, isfinite(lse) ? fabs(lse) + 1 : 0};
}

/* e^(s - lse), and what of the gradient reaches the score; both without dropout. */
static double weight_of(const Heads *h, long i, long j)
{
    double s = score(h, i, j);
    return s == -INFINITY ? 0 : exp(s - old_of(h->c, "lse", row_of(h, i)));
}

static Answer slope(const Heads *h, long i, long j)
{
    double p = weight_of(h, i, j), keep = kept(h, i, j);
    if (p == 0)
        return no_answer();
    Answer s = dot(h->dy, result_at(h, i), 1, h->v, h->v_at + key_at(h, j), 1, h->width);
    Answer delta = dot(h->dy, result_at(h, i), 1, part_of(h->c, "y"), result_at(h, i), 1, h->width);
    return (Answer){p * (keep * s.value - delta.value), p * (keep * s.terms + delta.terms)};
}

/* What slope and row of queries or keys add up to. */
static void plus_slope(Answer *a, Answer slope, double by)
{
    a->value += slope.value * by;
    a->terms += fabs(slope.terms * by);
}

static Answer dq(Heads *h, long i, long d)
{
    Answer a = no_answer();
    for (long j = 0; j < h->key; j++)
        plus_slope(&a, slope(h, i, j), h->scale * cap_slope(h, i, j) * old_at(h->k, h->k_at + key_at(h, j) + d));
    return a;
}

/* From the first of the heads that share these keys on. */
static Answer dk(Heads *h, long j, long d)
{
    Answer a = no_answer();
    for (long end = h->head + h->group; h->head < end; h->head++)
        for (long i = 0; i < h->query; i++)
            plus_slope(&a, slope(h, i, j), h->scale * cap_slope(h, i, j) * old_at(h->q, query_at(h, i) + d));
    return a;
}

static Answer dv(Heads *h, long j, long d)
{
    Answer a = no_answer();
    for (long end = h->head + h->group; h->head < end; h->head++)
        for (long i = 0; i < h->query; i++)
            plus(&a, weight_of(h, i, j) * kept(h, i, j) * old_at(h->dy, result_at(h, i) + d));
    return a;
}

/* Element i of [batch rows heads width]. */
static Answer of_heads(const Call *c, long i, bool queries, Answer (*gradient)(Heads *, long, long))
{
    Heads h = heads_of(c);
    long heads = queries ? h.heads : h.heads / h.group, row = i / (heads * h.width), rows = queries ? h.query : h.key;
    h.b = row / rows, h.head = i / h.width % heads * (queries ? 1 : h.group);
    return gradient(&h, row % rows, i % h.width);
}

static Answer attention_dq(const Call *c, long i) { return of_heads(c, i, true, dq); }
static Answer attention_dk(const Call *c, long i) { return of_heads(c, i, false, dk); }
static Answer attention_dv(const Call *c, long i) { return of_heads(c, i, false, dv); }

static Answer attention_dqkv(const Call *c, long i)
{
    Answer (*const which[])(Heads *, long, long) = {dq, dk, dv};
    long all = of(c, "heads") * of(c, "width"), part = i / all % 3;
    return of_heads(c, i / (3 * all) * all + i % all, part == 0, which[part]);
}

static Answer attention_dbias(const Call *c, long i)
{
    Heads h = heads_of(c);
    Answer a = no_answer();
    h.head = i / (h.query * h.key);
    for (h.b = 0; h.b < of(c, "batch"); h.b++)
        plus_slope(&a, slope(&h, i / h.key % h.query, i % h.key), 1);
    return a;
}

/* ---- LinearCrossEntropy -------------------------------------------------------------------------------------------- */

static double score_of(const Call *c, long row, long column)
{
    long in = of(c, "in");
    return dot(part_of(c, "x"), row * in, 1, part_of(c, "weight"), column * in, 1, in).value + old_of(c, "bias", column);
}

static Answer linear_xent_lse(const Call *c, long row)
{
    double most = -INFINITY, sum = 0, size = 1;
    for (long j = 0; j < of(c, "out"); j++) {
        double s = score_of(c, row, j), top = s > most ? s : most;
        sum = sum * exp(most - top) + exp(s - top);
        most = top, size = fabs(s) > size ? fabs(s) : size;
    }
    return (Answer){most + log(sum), size};
}

static Answer linear_xent_loss(const Call *c, long i)
{
    int64_t valid = c->vals->valid[of(c, "count")];
    Answer a = no_answer();
    (void)i;
    for (long row = 0; row < of(c, "rows") && valid; row++) {
        long target = (long)old_of(c, "targets", row);
        if (target == of(c, "ignore"))
            continue;
        plus(&a, new_at(part_of(c, "lse"), row) / (double)valid);
        plus(&a, -score_of(c, row, target) / (double)valid);
    }
    return a;
}

/* (e^(s - lse) - [target]) dloss / valid */
static Answer score_slope(const Call *c, long row, long column)
{
    int64_t valid = c->vals->valid[of(c, "count")];
    long target = (long)old_of(c, "targets", row);
    if (!valid || target == of(c, "ignore"))
        return no_answer();
    double s = score_of(c, row, column), p = exp(s - old_of(c, "lse", row)), by = old_of(c, "dloss", 0) / (double)valid;
    return (Answer){(p - (target == column)) * by, (p * (1 + fabs(s)) + (target == column)) * fabs(by)};
}

/* Only an evaluation counts hits; the loss of the step stays. */
static Answer linear_xent_vals(const Call *c, long i) { return (void)i, (Answer){c->vals->loss, 0}; }

static Answer linear_xent_dx(const Call *c, long i)
{
    long in = of(c, "in");
    Answer a = no_answer();
    for (long j = 0; j < of(c, "out"); j++)
        plus_slope(&a, score_slope(c, i / in, j), old_of(c, "weight", j * in + i % in));
    return a;
}

static Answer linear_xent_dweight(const Call *c, long i)
{
    long in = of(c, "in");
    Answer a = no_answer();
    for (long row = 0; row < of(c, "rows"); row++)
        plus_slope(&a, score_slope(c, row, i / in), old_of(c, "x", row * in + i % in));
    return a;
}

static Answer linear_xent_dbias(const Call *c, long i)
{
    Answer a = no_answer();
    for (long row = 0; row < of(c, "rows"); row++)
        plus_slope(&a, score_slope(c, row, i), 1);
    return a;
}

#define LINEAR "y=rows*out x=rows*in weight=out*in bias=out dy=rows*out dx=rows*in dweight=out*in dbias=out"
#define EIGHT LINEAR " amax=384 damax=768"
#define MATMUL "y=batch*m*n a=batch*m*k b=batch*k*n dy=batch*m*n da=batch*m*k db=batch*k*n"
#define ATTENTION "y=batch*query*heads*width lse=batch*heads*query q=batch*query*heads*width k=batch*key*heads*width " \
    "v=batch*key*heads*width dy=batch*query*heads*width dq=batch*query*heads*width dk=batch*key*heads*width " \
    "dv=batch*key*heads*width bias=heads*query*key dbias=heads*query*key mask=batch*key"
#define PACKED "y=batch*query*heads*width lse=batch*heads*query qkv=3*batch*query*heads*width " \
    "dy=batch*query*heads*width dqkv=3*batch*query*heads*width bias=heads*query*query dbias=heads*query*query mask=batch*query"
#define SHARED "y=batch*query*heads*width lse=batch*heads*query q=batch*query*heads*width k=batch*key*kv_heads*width " \
    "v=batch*key*kv_heads*width dy=batch*query*heads*width dq=batch*query*heads*width dk=batch*key*kv_heads*width " \
    "dv=batch*key*kv_heads*width bias=heads*query*key dbias=heads*query*key mask=batch*key"
#define XENT "loss=1 lse=rows x=rows*in weight=out*in bias=out targets=rows dx=rows*in dweight=out*in dbias=out dloss=1"

const Known known_products[] = {
    {"linear_forward", "y", LINEAR, linear_y, 0, 0},
    {"linear_gelu_forward", "pre", LINEAR " pre=rows*out", linear_y, 0, 0},
    {"linear_gelu_forward", "y", LINEAR " pre=rows*out", linear_gelu_y, 0, 1},
    {"linear_gelu_backward", "dpre", LINEAR " pre=rows*in dpre=rows*in", linear_gelu_dpre, 0, 1},
    {"linear_backward_x", "dx", LINEAR, linear_dx, 0, 0},
    {"linear_backward_w", "dweight", LINEAR, linear_dweight, 0, 0},
    {"linear_backward_w", "dbias", LINEAR, linear_dbias, 0, 0},
    {"linear_fp8_forward", "y", EIGHT, linear_fp8_y, 0, 0},
    {"linear_fp8_backward_x", "dx", EIGHT, linear_fp8_dx, 0, 0},
    {"linear_fp8_backward_w", "dweight", EIGHT, linear_fp8_dweight, 0, 0},
    {"linear_fp8_backward_w", "dbias", EIGHT, linear_dbias, 0, 0},
    {"linear_fp8_backward_w", "damax", EIGHT, linear_fp8_damax, 768, 0},
    {"matmul_forward", "y", MATMUL, matmul_y, 0, 0},
    {"matmul_backward", "da", MATMUL, matmul_da, 0, 0},
    {"matmul_backward", "db", MATMUL, matmul_db, 0, 0},
    {"attention_forward", "y", ATTENTION, attention_y, 0, 1},
    {"attention_forward", "lse", ATTENTION, attention_lse, 0, 0},
    {"attention_backward", "dq", ATTENTION, attention_dq, 0, 1},
    {"attention_backward", "dk", ATTENTION, attention_dk, 0, 1},
    {"attention_backward", "dv", ATTENTION, attention_dv, 0, 1},
    {"attention_backward", "dbias", ATTENTION, attention_dbias, 0, 1},
    {"attention_packed_forward", "y", PACKED, attention_y, 0, 1},
    {"attention_packed_forward", "lse", PACKED, attention_lse, 0, 0},
    {"attention_packed_backward", "dqkv", PACKED, attention_dqkv, 0, 1},
    {"attention_packed_backward", "dbias", PACKED, attention_dbias, 0, 1},
    {"attention_shared_forward", "y", SHARED, attention_y, 0, 1},
    {"attention_shared_forward", "lse", SHARED, attention_lse, 0, 0},
    {"attention_shared_backward", "dq", SHARED, attention_dq, 0, 1},
    {"attention_shared_backward", "dk", SHARED, attention_dk, 0, 1},
    {"attention_shared_backward", "dv", SHARED, attention_dv, 0, 1},
    {"attention_shared_backward", "dbias", SHARED, attention_dbias, 0, 1},
    {"attention_window_forward", "y", SHARED, attention_y, 0, 1},
    {"attention_window_forward", "lse", SHARED, attention_lse, 0, 0},
    {"attention_window_backward", "dq", SHARED, attention_dq, 0, 1},
    {"attention_window_backward", "dk", SHARED, attention_dk, 0, 1},
    {"attention_window_backward", "dv", SHARED, attention_dv, 0, 1},
    {"attention_window_backward", "dbias", SHARED, attention_dbias, 0, 1},
    {"linear_xent_forward", "lse", XENT, linear_xent_lse, 4, 1},
    {"linear_xent_forward", "loss", XENT, linear_xent_loss, 0, 1},
    {"linear_xent_hits_forward", "lse", XENT, linear_xent_lse, 4, 1},
    {"linear_xent_hits_forward", "loss", XENT, linear_xent_loss, 0, 1},
    {"linear_xent_hits_forward", "vals", XENT, linear_xent_vals, 0, 0},
    {"linear_xent_backward", "dx", XENT, linear_xent_dx, 4, 1},
    {"linear_xent_backward", "dweight", XENT, linear_xent_dweight, 4, 1},
    {"linear_xent_backward", "dbias", XENT, linear_xent_dbias, 4, 1},
    {NULL, NULL, NULL, NULL, 0, 0},
};
