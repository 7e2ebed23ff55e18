/* SPDX-License-Identifier: Apache-2.0
 *
 * Checks of today's language models: Rotary, Gate, SoftCap, shared heads, norms and positions with an offset.  See opcheck.h.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "opcheck.h"
#include <stdbool.h>

/* ---- rotary ------------------------------------------------------------------------------------------------------ */

enum { BATCH, SEQ, HEADS, WIDTH, DIMS, ADJACENT, SCALING, ORIGINAL, SIZES };      /* Case.f: theta, factor, low, high */

static double turning(const Case *c, long pair)
{
    double f = (float)pow(c->f[0], -2.0 * (double)pair / (double)c->d[DIMS]), wave = 2 * 3.14159265358979323846 / f;
    if (c->in[1])
        return (float)(f / c->in[1]->v[pair]);
    if (c->d[SCALING] >= 3) {
        double bound[2], dims = (double)c->d[DIMS];
        for (int i = 0; i < 2; i++)
            bound[i] = dims * log((double)c->d[ORIGINAL] / (c->f[3 - i] * 2 * 3.14159265358979323846)) / 2 / log(c->f[0]);
        double from = fmax(c->d[SCALING] == 3 ? floor(bound[0]) : bound[0], 0);
        double to = fmin(c->d[SCALING] == 3 ? ceil(bound[1]) : bound[1], dims - 1);
        double share = fmin(fmax(((double)pair - from) / (to == from ? 0.001 : to - from), 0), 1);
        return (float)(f / c->f[1] * share + f * (1 - share));
    }
    double most = (double)c->d[ORIGINAL] / c->f[2], least = (double)c->d[ORIGINAL] / c->f[3];
    if (c->d[SCALING] == 1 || (c->d[SCALING] == 2 && wave > most))
        return (float)(f / c->f[1]);
    if (c->d[SCALING] == 0 || wave < least)
        return f;
    double smooth = ((double)c->d[ORIGINAL] / wave - c->f[2]) / (c->f[3] - c->f[2]);
    return (float)((1 - smooth) * f / c->f[1] + smooth * f);
}

/* How many of its own document stand in front of position t. */
static long place_of(const int32_t *documents, long t)
{
    long before = 0;
    for (long i = t; i-- > 0 && documents[i] == documents[t];)
        before++;
    return before;
}

/* Documents of 1 to 6 positions, the same number nowhere else in a sample. */
static int32_t *documents_of(long batch, long seq)
{
    int32_t *to = ids(batch * seq, 0, 6);
    for (long i = 0, left = 0; i < batch * seq; i++) {
        bool begins = i % seq == 0 || left == 0;
        left = begins ? to[i] : left - 1;
        to[i] = i % seq == 0 ? 40 : begins ? (to[i - 1] * 7 + 3) % 997 : to[i - 1];
    }
    return to;
}

static void ref_rotary(const Case *c, double *y)
{
    const long *d = c->d;
    for (long row = 0; row < d[BATCH] * d[SEQ] * d[HEADS]; row++) {
        const double *x = c->in[0]->v + row * d[WIDTH];
        long at = row / d[HEADS];
        double t = (double)(c->documents ? place_of(c->documents + at / d[SEQ] * d[SEQ], at % d[SEQ]) : at % d[SEQ]);
        double *to = y + row * d[WIDTH];
        memcpy(to, x, (size_t)d[WIDTH] * sizeof *y);
        for (long j = 0; j < d[DIMS] / 2; j++) {
            double angle = (float)((float)t * (float)turning(c, j));
            long a = d[ADJACENT] ? 2 * j : j, b = d[ADJACENT] ? 2 * j + 1 : j + d[DIMS] / 2;
            to[a] = x[a] * cos(angle) - x[b] * sin(angle);
            to[b] = x[b] * cos(angle) + x[a] * sin(angle);
        }
    }
}

static void rotary(void)
{
    static const long sizes[][SIZES] = {
        {1, 1, 1, 2, 2, 0, 0, 8192},   {2, 9, 3, 8, 8, 0, 0, 8192}, {2, 70, 2, 10, 4, 0, 0, 8192},
        {1, 130, 1, 6, 6, 1, 0, 8192}, {2, 5, 2, 12, 8, 1, 1, 64},  {1, 33, 2, 64, 64, 0, 2, 64},
        {1, 40, 1, 16, 16, 0, 2, 8192}, {1, 2000, 1, 4, 4, 0, 0, 8192}, {1, 33, 2, 64, 64, 0, 3, 640},
        {2, 20, 1, 32, 24, 1, 4, 300},
        {2, 5, 2, 140, 140, 0, 0, 8192}, {1, 5, 2, 144, 140, 1, 0, 8192},      /* more than 64 pairs */
    };
    for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++) {
        const long *d = sizes[s];
        float theta = s % 2 ? 10000.0f : 500000.0f, factor = 8, low = 1, high = 4;
        Tensor *x = operand(REAL, d[BATCH] * d[SEQ] * d[HEADS] * d[WIDTH], -1, 1), *y = result(REAL, x->n);
        Tensor *dy = operand(REAL, x->n, -1, 1), *dx = result(REAL, x->n);
        Case c = {.in = {x}, .f = {theta, factor, low, high}};
        memcpy(c.d, d, sizeof *sizes);
        rotary_forward(stage, y->k, x->k, d[BATCH], d[SEQ], d[HEADS], d[WIDTH], d[DIMS], d[ADJACENT], theta, d[SCALING], factor,
                       low, high, d[ORIGINAL]);
        check_value("rotary_forward", y, ref_rotary, &c);
        rotary_backward(stage, dx->k, dy->k, d[BATCH], d[SEQ], d[HEADS], d[WIDTH], d[DIMS], d[ADJACENT], theta, d[SCALING],
                        factor, low, high, d[ORIGINAL]);
        check_gradient("rotary_backward", dx, ref_rotary, &c, 0, dy);
        c.documents = documents_of(d[BATCH], d[SEQ]);
        rotary_documents_forward(stage, y->k, x->k, c.documents, d[BATCH], d[SEQ], d[HEADS], d[WIDTH], d[DIMS], d[ADJACENT],
                                 theta, d[SCALING], factor, low, high, d[ORIGINAL]);
        check_value("rotary_documents_forward", y, ref_rotary, &c);
        rotary_documents_backward(stage, dx->k, dy->k, c.documents, d[BATCH], d[SEQ], d[HEADS], d[WIDTH], d[DIMS], d[ADJACENT],
                                  theta, d[SCALING], factor, low, high, d[ORIGINAL]);
        check_gradient("rotary_documents_backward", dx, ref_rotary, &c, 0, dy);
        Tensor *factors = operand(FLOAT, d[DIMS] / 2, 0.5, 40);
        c.in[1] = factors;
        c.documents = s % 2 ? c.documents : NULL;
        rotary_table_forward(stage, y->k, x->k, c.documents, factors->k, d[BATCH], d[SEQ], d[HEADS], d[WIDTH], d[DIMS],
                             d[ADJACENT], theta);
        check_value("rotary_table_forward", y, ref_rotary, &c);
        rotary_table_backward(stage, dx->k, dy->k, c.documents, factors->k, d[BATCH], d[SEQ], d[HEADS], d[WIDTH], d[DIMS],
                              d[ADJACENT], theta);
        check_gradient("rotary_table_backward", dx, ref_rotary, &c, 0, dy);
        case_end();
    }
}

/* ---- gates and caps ---------------------------------------------------------------------------------------------- */

enum { ACTS = 5 };
static double d_act(double x, long act)
{
    double u = sqrt(2 / 3.14159265358979323846) * (x + 0.044715 * x * x * x);
    return act == 0 ? x / (1 + exp(-x)) : act == 1 ? x * (1 + erf(x / sqrt(2))) / 2 : act == 2 ? x * (1 + tanh(u)) / 2
         : act == 3 ? fmax(x, 0) : 1 / (1 + exp(-x));
}

static void ref_gate(const Case *c, double *y)
{
    for (long i = 0; i < c->in[0]->n; i++)
        y[i] = d_act(c->in[0]->v[i], c->d[0]) * c->in[1]->v[i];
}

static void act_alone(long act, real *y, const real *x, long n)
{
    switch (act) {
    case 0: silu_forward(stage, y, x, n); break;
    case 1: case 2: gelu_forward(stage, y, x, n, act == 2); break;
    case 3: relu_forward(stage, y, x, n); break;
    default: sigmoid_forward(stage, y, x, n);
    }
}

static void act_back(long act, real *dx, const real *dy, const real *x, const real *y, long n)
{
    switch (act) {
    case 0: silu_backward(stage, dx, dy, x, n); break;
    case 1: case 2: gelu_backward(stage, dx, dy, x, n, act == 2); break;
    case 3: relu_backward(stage, dx, dy, y, n); break;
    default: sigmoid_backward(stage, dx, dy, y, n);
    }
}

static void gate_case(long act, long n)
{
    Tensor *a = operand(REAL, n, -3, 3), *b = operand(REAL, n, -1, 1), *y = result(REAL, n), *dy = operand(REAL, n, -1, 1);
    Tensor *da = result(REAL, n), *db = result(REAL, n), *v = result(REAL, n), *two = result(REAL, n), *back = result(REAL, n);
    Case c = {.d = {act}, .in = {a, b}};
    for (long i = 0; i < n; i++)            /* away from the corner of relu */
        if (act == 3 && fabs(a->v[i]) < 0.02) {
            put(a->k, i, 1);
            a->v[i] = 1;
        }
    gate_forward(stage, y->k, a->k, b->k, n, act);
    check_value("gate_forward", y, ref_gate, &c);
    gate_backward(stage, da->k, db->k, dy->k, a->k, b->k, n, act);
    check_gradient("gate_backward", da, ref_gate, &c, 0, dy);
    check_gradient("gate_backward", db, ref_gate, &c, 1, dy);
    gate_backward(stage, two->k, NULL, dy->k, a->k, b->k, n, act);
    same_bits("gate_backward", act, da, two);
    gate_backward(stage, NULL, two->k, dy->k, a->k, b->k, n, act);
    same_bits("gate_backward", act, db, two);
    act_alone(act, v->k, a->k, n);
    mul_forward(stage, two->k, v->k, b->k, n, n);
    same_bits("gate_forward", act, y, two);
    mul_backward(stage, back->k, two->k, dy->k, v->k, b->k, n, n);
    same_bits("gate_backward", act, db, two);
    act_back(act, two->k, back->k, a->k, v->k, n);
    same_bits("gate_backward", act, da, two);
    case_end();
}

static void gate(void)
{
    for (long act = 0; act < ACTS; act++) {
        gate_case(act, 17);
        gate_case(act, act ? 301 : 20011);      /* the long one is split by threads */
    }
}

static void ref_softcap(const Case *c, double *y)
{
    for (long i = 0; i < c->in[0]->n; i++)
        y[i] = c->f[0] * tanh(c->in[0]->v[i] / c->f[0]);
}

static void softcap(void)
{
    static const float caps[] = {0.5f, 3, 30};
    for (int s = 0; s < 3; s++) {
        long n = s == 1 ? 20011 : 33;
        Tensor *x = operand(REAL, n, -5, 5), *y = result(REAL, n), *dy = operand(REAL, n, -1, 1), *dx = result(REAL, n);
        Case c = {.f = {caps[s]}, .in = {x}};
        softcap_forward(stage, y->k, x->k, n, caps[s]);
        check_value("softcap_forward", y, ref_softcap, &c);
        softcap_backward(stage, dx->k, dy->k, x->k, n, caps[s]);
        check_gradient("softcap_backward", dx, ref_softcap, &c, 0, dy);
        case_end();
    }
}

/* ---- shared heads: as attention_forward, with keys and values that are written out for every query head ----------- */

typedef struct { long batch, heads, own, query, key, width, causal; int bias, mask; float drop; } Shared;
static const Shared shared_cases[] = {
    {1, 2, 1, 1, 1, 1, 0, 0, 0, 0},    {2, 6, 2, 5, 5, 7, 1, 0, 0, 0},        {2, 4, 2, 35, 67, 9, 1, 1, 1, 0.25f},
    {1, 4, 1, 40, 33, 131, 0, 0, 1, 0}, {1, 6, 3, 70, 70, 16, 1, 1, 0, 0.1f}, {1, 3, 3, 9, 9, 4, 1, 0, 0, 0},
};

static Tensor *written_out(const Tensor *t, const Shared *s)
{
    long group = s->heads / s->own;
    Tensor *all = filled(REAL, t->n * group, 0);
    for (long i = 0; i < all->n; i++) {
        long j = i % s->width, head = i / s->width % s->heads, row = i / s->width / s->heads;
        all->v[i] = t->v[(row * s->own + head / group) * s->width + j];
        put(all->k, i, (float)all->v[i]);
    }
    return all;
}

/* dk or dv of a shared head: the sum over its group, which the plain call rounds head by head. */
static void check_group(const char *call, Tensor *got, Tensor *each, const Shared *s)
{
    long group = s->heads / s->own;
    read_back(got);
    read_back(each);
    for (long i = 0; i < got->n && !hashing(); i++) {
        double sum = 0, size = 0;
        for (long h = 0; h < group; h++) {
            double v = each->v[(i / s->width * group + h) * s->width + i % s->width];
            sum += v;
            size += fabs(v);
        }
        double room = (sizeof(real) == 2 ? 0.01 : 1e-6) * (size + fabs(sum)) + 1e-6;
        expect(fabs(got->v[i] - sum) <= room, "%s: [%ld] is %g, not %g", call, i, got->v[i], sum);
    }
}

static void shared_case(const Shared *s)
{
    long n = s->batch * s->query * s->heads * s->width, m = s->batch * s->key * s->own * s->width;
    float scale = 0.7f / sqrtf((float)s->width);
    Values vals = {.seed = 77, .step = 5};
    Tensor *q = operand(REAL, n, -2, 2), *k = operand(REAL, m, -2, 2), *v = operand(REAL, m, -2, 2);
    Tensor *dy = operand(REAL, n, -1, 1);
    Tensor *bias = s->bias ? operand(REAL, s->heads * s->query * s->key, -1, 1) : NULL;
    int32_t *mask = s->mask ? ids(s->batch * s->key, 0, 3) : NULL;
    Tensor *y[2], *lse[2], *dq[2], *dk[2], *dv[2], *db[2], *tmp = result(FLOAT, s->batch * s->heads * s->query);
    Tensor *ks = written_out(k, s), *vs = written_out(v, s);
    for (int i = 0; i < 2; i++) {
        y[i] = result(REAL, n), dq[i] = result(REAL, n), lse[i] = result(FLOAT, tmp->n);
        dk[i] = result(REAL, i ? ks->n : m), dv[i] = result(REAL, i ? vs->n : m), db[i] = bias ? result(REAL, bias->n) : NULL;
    }
    const void *b = bias ? bias->k : 0;
    attention_shared_forward(stage, y[0]->k, lse[0]->k, q->k, k->k, v->k, b, mask, &vals, 2, 0, s->batch, s->heads, s->own,
                             s->query, s->key, s->width, s->causal, scale, s->drop, 1234);
    attention_forward(stage, y[1]->k, lse[1]->k, q->k, ks->k, vs->k, b, mask, &vals, 2, 0, s->batch, s->heads, s->query, s->key,
                      s->width, s->causal, scale, s->drop, 1234);
    same_bits("attention_shared_forward", s->heads, y[0], y[1]);
    attention_shared_backward(stage, dq[0]->k, dk[0]->k, dv[0]->k, b ? db[0]->k : 0, dy->k, y[0]->k, q->k, k->k, v->k, b, mask,
                              lse[0]->k, tmp->k, &vals, 2, 0, s->batch, s->heads, s->own, s->query, s->key, s->width, s->causal,
                              scale, s->drop, 1234);
    attention_backward(stage, dq[1]->k, dk[1]->k, dv[1]->k, b ? db[1]->k : 0, dy->k, y[1]->k, q->k, ks->k, vs->k, b, mask,
                       lse[1]->k, tmp->k, &vals, 2, 0, s->batch, s->heads, s->query, s->key, s->width, s->causal, scale,
                       s->drop, 1234);
    same_bits("attention_shared_backward dq", s->heads, dq[0], dq[1]);
    if (bias)
        same_bits("attention_shared_backward dbias", s->heads, db[0], db[1]);
    check_group("attention_shared_backward dk", dk[0], dk[1], s);
    check_group("attention_shared_backward dv", dv[0], dv[1], s);
    case_end();
}

static void shared(void)
{
    for (size_t i = 0; i < sizeof shared_cases / sizeof *shared_cases; i++)
        shared_case(&shared_cases[i]);
}

/* ---- windows and caps, from their definition ------------------------------------------------------------------------ */

enum { W_BATCH, W_HEADS, W_OWN, W_QUERY, W_KEY, W_WIDTH, W_CAUSAL, W_WINDOW };         /* Case.d; Case.f: scale, cap, alibi */

/* The score of query i and key j of a head, -infinity where it is hidden. */
static double score_of(const Case *c, long b, long head, long i, long j)
{
    const long *d = c->d, own = head / (d[W_HEADS] / d[W_OWN]);
    const double *q = c->in[0]->v + ((b * d[W_QUERY] + i) * d[W_HEADS] + head) * d[W_WIDTH];
    const double *k = c->in[1]->v + ((b * d[W_KEY] + j) * d[W_OWN] + own) * d[W_WIDTH];
    double s = 0;
    for (long p = 0; p < d[W_WIDTH]; p++)
        s += q[p] * k[p] * c->f[0];
    if ((d[W_CAUSAL] && j > i) || (d[W_WINDOW] && labs(i - j) >= d[W_WINDOW]) || (c->ids && !c->ids[b * d[W_KEY] + j]) ||
        (c->documents && c->documents[b * d[W_KEY] + i] != c->documents[b * d[W_KEY] + j]))
        return -INFINITY;
    double slope = exp2(-2 * (double)(head + 1));           /* of four heads; five and more: below */
    if (d[W_HEADS] == 6)
        slope = exp2(head < 4 ? -2 * (double)(head + 1) : 1 - 2 * (double)(head - 3));
    return (c->f[1] > 0 ? c->f[1] * tanh(s / c->f[1]) : s) - c->f[2] * slope * (double)labs(i - j) +
        (c->in[3] ? c->in[3]->v[(head * d[W_QUERY] + i) * d[W_KEY] + j] : 0);
}

/* lse: of each row, or NULL; one that sees no key has 0. */
static void window_all(const Case *c, double *y, double *lse)
{
    const long *d = c->d;
    double p[256];
    for (long r = 0; r < d[W_BATCH] * d[W_QUERY] * d[W_HEADS]; r++) {
        long head = r % d[W_HEADS], i = r / d[W_HEADS] % d[W_QUERY], b = r / d[W_HEADS] / d[W_QUERY];
        long own = head / (d[W_HEADS] / d[W_OWN]);
        double most = c->in[4] ? c->in[4]->v[b * d[W_HEADS] + head] : -INFINITY, sum = c->in[4] != NULL;     /* a sink */
        for (long j = 0; j < d[W_KEY]; j++)
            most = fmax(most, p[j] = score_of(c, b, head, i, j));
        for (long j = 0; j < d[W_KEY]; j++)
            sum += p[j] = p[j] == -INFINITY ? 0 : exp(p[j] - most);
        sum += c->in[4] ? exp(c->in[4]->v[b * d[W_HEADS] + head] - most) - 1 : 0;
        for (long w = 0; w < d[W_WIDTH]; w++) {
            double o = 0;
            for (long j = 0; j < d[W_KEY] && sum > 0; j++)
                o += p[j] / sum * c->in[2]->v[((b * d[W_KEY] + j) * d[W_OWN] + own) * d[W_WIDTH] + w];
            y[r * d[W_WIDTH] + w] = o;
        }
        if (lse)
            lse[r] = sum > 0 ? most + log(sum) : 0;
    }
}

static void ref_window(const Case *c, double *y) { window_all(c, y, NULL); }
static void ref_stored(const Case *c, double *y)
{
    window_all(c, y, y + c->d[W_BATCH] * c->d[W_QUERY] * c->d[W_HEADS] * c->d[W_WIDTH]);
}

typedef struct { long d[8]; int bias, mask; float cap, alibi; int sinks; } Window;
static const Window windows[] = {
    {{2, 2, 1, 9, 9, 8, 1, 2}, 0, 0, 0, 0, 0},    {{1, 4, 2, 70, 70, 24, 1, 33}, 0, 0, 0, 0, 0},
    {{2, 2, 2, 40, 67, 9, 1, 7}, 1, 1, 0, 0, 0},  {{1, 2, 1, 37, 37, 16, 1, 5}, 1, 1, 3, 0, 0},
    {{1, 2, 2, 20, 34, 5, 0, 0}, 1, 0, 0.5f, 0, 0}, {{1, 1, 1, 33, 33, 256, 1, 20}, 0, 0, 20, 0, 0},
};
static const Window generals[] = {
    {{2, 2, 1, 9, 9, 8, 0, 2}, 0, 0, 0, 0, 0},    {{1, 4, 2, 70, 70, 24, 0, 33}, 0, 1, 0, 0, 1},
    {{2, 4, 4, 37, 37, 9, 1, 0}, 1, 0, 0, 1, 0},  {{1, 6, 3, 70, 70, 16, 0, 7}, 1, 1, 3, 0.5f, 1},
    {{2, 2, 1, 20, 34, 5, 0, 0}, 0, 1, 0, 0, 1},  {{1, 4, 2, 101, 101, 160, 0, 11}, 0, 0, 0, 2, 1},
};

/* documents: those are hidden besides; general: the calls that can do so. */
static void window_case(const Window *s, bool general, bool documents)
{
    const long *d = s->d, rows = d[W_BATCH] * d[W_QUERY] * d[W_HEADS], pairs = d[W_HEADS] * d[W_QUERY] * d[W_KEY];
    Values vals = {.seed = 7};
    Tensor *bias = s->bias ? operand(REAL, pairs, -1, 1) : NULL, *q = operand(REAL, rows * d[W_WIDTH], -2, 2);
    Tensor *k = operand(REAL, d[W_BATCH] * d[W_KEY] * d[W_OWN] * d[W_WIDTH], -2, 2);
    Tensor *v = operand(REAL, k->n, -2, 2), *dy = operand(REAL, q->n, -1, 1);
    Tensor *y = result(REAL, q->n), *lse = result(FLOAT, rows), *dq = result(REAL, q->n), *tmp = result(FLOAT, rows);
    Tensor *dk = result(REAL, k->n), *dv = result(REAL, v->n), *db = bias ? result(REAL, pairs) : NULL;
    Tensor *sinks = s->sinks ? operand(REAL, d[W_BATCH] * d[W_HEADS], -1, 2) : NULL;
    Tensor *ds = sinks ? result(REAL, sinks->n) : NULL;
    Case c = {.f = {(double)(0.7f / sqrtf((float)d[W_WIDTH])), (double)s->cap, (double)s->alibi}, .in = {q, k, v, bias, sinks},
              .ids = s->mask ? ids(d[W_BATCH] * d[W_KEY], 0, 3) : NULL,
              .documents = documents ? documents_of(d[W_BATCH], d[W_KEY]) : NULL};
    void *b = bias ? bias->k : NULL, *g = db ? db->k : NULL;
    long slopes = d[W_HEADS] == 6 ? 6 : 4;      /* two heads: the first of four */
    memcpy(c.d, d, sizeof s->d);
    if (general) {
        void *sink = sinks ? sinks->k : NULL;
        attention_general_forward(stage, y->k, lse->k, q->k, k->k, v->k, b, c.ids, sink, c.documents, &vals, 0, d[0], d[1],
                                  d[2], d[3], d[4], d[5], d[6], d[7], (float)c.f[0], s->cap, s->alibi, slopes, 0, 9);
        attention_general_backward(stage, dq->k, dk->k, dv->k, g, ds ? ds->k : NULL, dy->k, y->k, q->k, k->k, v->k, b, c.ids,
                                   sink, c.documents, lse->k, tmp->k, &vals, 0, d[0], d[1], d[2], d[3], d[4], d[5], d[6], d[7],
                                   (float)c.f[0], s->cap, s->alibi, slopes, 0, 9);
    } else {
        attention_window_forward(stage, y->k, lse->k, q->k, k->k, v->k, b, c.ids, &vals, 0, d[0], d[1], d[2], d[3], d[4], d[5],
                                 d[6], d[7], (float)c.f[0], s->cap, 0, 9);
        attention_window_backward(stage, dq->k, dk->k, dv->k, g, dy->k, y->k, q->k, k->k, v->k, b, c.ids, lse->k, tmp->k,
                                  &vals, 0, d[0], d[1], d[2], d[3], d[4], d[5], d[6], d[7], (float)c.f[0], s->cap, 0, 9);
    }
    static const char *const calls[2][6] = {
        {"attention_window_backward dq", "attention_window_backward dk", "attention_window_backward dv",
         "attention_window_backward dbias", "", "attention_window_forward"},
        {"attention_general_backward dq", "attention_general_backward dk", "attention_general_backward dv",
         "attention_general_backward dbias", "attention_general_backward dsinks", "attention_general_forward"},
    };
    Tensor *const got[] = {dq, dk, dv, db, ds};
    check_value(calls[general][5], y, ref_window, &c);
    const Tensor *all_dy = for_stored(ref_stored, &c, y, dy, d[W_WIDTH]);
    for (int i = 0; i < 5; i++)
        if (got[i])
            check_gradient(calls[general][i], got[i], ref_stored, &c, i, all_dy);
    case_end();
}

/* q, k and v side by side have the bits of three tensors. */
static void pack(Tensor *to, const Tensor *from, long part, long row)
{
    size_t each = (size_t)row * sizeof(real);
    for (long i = 0; i < from->n / row; i++)
        memcpy((char *)to->k + (size_t)(3 * i + part) * each, (char *)from->k + (size_t)i * each, each);
}

static void packed_documents(long batch, long heads, long seq, long width, float drop)
{
    long row = heads * width, n = batch * seq * row;
    Values vals = {.seed = 7};
    int32_t *of = documents_of(batch, seq);
    Tensor *part[3], *all = result(REAL, 3 * n), *back = result(REAL, 3 * n), *want = result(REAL, 3 * n), *slope[3];
    for (int i = 0; i < 3; i++) {
        part[i] = operand(REAL, n, -2, 2);
        slope[i] = result(REAL, n);
        pack(all, part[i], i, row);
    }
    Tensor *y[2] = {result(REAL, n), result(REAL, n)}, *lse = result(FLOAT, batch * heads * seq);
    Tensor *tmp = result(FLOAT, lse->n), *dy = operand(REAL, n, -1, 1);
    attention_general_forward(stage, y[0]->k, lse->k, part[0]->k, part[1]->k, part[2]->k, 0, 0, 0, of, &vals, 0, batch, heads,
                              heads, seq, seq, width, 1, 0, 0.5f, 0, 0, heads, drop, 9);
    attention_packed_documents_forward(stage, y[1]->k, lse->k, all->k, 0, 0, of, &vals, 0, batch, heads, seq, width, 1, 0.5f,
                                       drop, 9);
    same_bits("attention_packed_documents_forward", seq, y[0], y[1]);
    attention_general_backward(stage, slope[0]->k, slope[1]->k, slope[2]->k, 0, 0, dy->k, y[0]->k, part[0]->k, part[1]->k,
                               part[2]->k, 0, 0, 0, of, lse->k, tmp->k, &vals, 0, batch, heads, heads, seq, seq, width, 1, 0,
                               0.5f, 0, 0, heads, drop, 9);
    attention_packed_documents_backward(stage, back->k, 0, dy->k, y[0]->k, all->k, 0, 0, of, lse->k, tmp->k, &vals, 0, batch,
                                        heads, seq, width, 1, 0.5f, drop, 9);
    for (int i = 0; i < 3; i++)
        pack(want, slope[i], i, row);
    same_bits("attention_packed_documents_backward", seq, want, back);
    case_end();
}

static void general(void)
{
    for (size_t i = 0; i < sizeof windows / sizeof *windows; i++)
        if (windows[i].d[W_QUERY] == windows[i].d[W_KEY])
            window_case(&windows[i], true, true);
    for (size_t i = 0; i < sizeof generals / sizeof *generals; i++)
        window_case(&generals[i], true, i % 4 == 3);
    packed_documents(2, 2, 70, 8, 0);
    packed_documents(1, 3, 33, 5, 0.2f);
}

static void window(void)
{
    for (size_t i = 0; i < sizeof windows / sizeof *windows; i++)
        window_case(&windows[i], false, false);
}

/* ---- offsets ------------------------------------------------------------------------------------------------------ */

static void ref_norm(const Case *c, double *y)
{
    long width = c->d[1];
    for (long r = 0; r < c->d[0]; r++) {
        const double *x = c->in[0]->v + r * width;
        double square = 0;
        for (long i = 0; i < width; i++)
            square += x[i] * x[i] / (double)width;
        for (long i = 0; i < width; i++)
            y[r * width + i] = x[i] / sqrt(square + c->f[0]) * (c->f[1] + c->in[1]->v[i]);
    }
}

static void norm(void)
{
    static const long sizes[][2] = {{1, 2}, {5, 16}, {70, 33}, {3, 768}};
    for (int s = 0; s < 4; s++) {
        long rows = sizes[s][0], width = sizes[s][1];
        Tensor *x = operand(REAL, rows * width, -1, 3), *w = operand(FLOAT, width, -1, 1), *y = result(REAL, x->n);
        Tensor *dy = operand(REAL, x->n, -1, 1), *rstd = result(FLOAT, rows);
        Tensor *dx = result(REAL, x->n), *dw = result(FLOAT, width);
        Case c = {.d = {rows, width}, .f = {1e-2f, 1}, .in = {x, w}};
        rmsnorm_offset_forward(stage, y->k, rstd->k, x->k, w->k, rows, width, 1e-2f, 1);
        check_value("rmsnorm_offset_forward", y, ref_norm, &c);
        rmsnorm_offset_backward(stage, dx->k, dw->k, dy->k, x->k, w->k, rstd->k, 0, 0, rows, width, 1);
        check_gradient("rmsnorm_offset_backward", dx, ref_norm, &c, 0, dy);
        check_gradient("rmsnorm_offset_backward", dw, ref_norm, &c, 1, dy);
        Tensor *onto = operand(REAL, x->n, -1, 1), *sum = result(REAL, x->n), *want = result(REAL, x->n);
        rmsnorm_offset_backward(stage, sum->k, dw->k, dy->k, x->k, w->k, rstd->k, onto->k, 0, rows, width, 1);
        grad_add(stage, want->k, onto->k, dx->k, x->n);
        same_bits("rmsnorm_offset_backward onto", width, sum, want);
        case_end();
    }
}

enum { B, T, D, ROWS, FROM };
static void ref_position(const Case *c, double *y)
{
    for (long i = 0; i < c->in[0]->n; i++) {
        long t = i / c->d[D] % c->d[T], at = c->documents ? place_of(c->documents + i / c->d[D] / c->d[T] * c->d[T], t) : t;
        y[i] = c->in[0]->v[i] + c->in[1]->v[(at + c->d[FROM]) * c->d[D] + i % c->d[D]];
    }
}

static void position(void)
{
    static const long sizes[][5] = {{1, 1, 1, 2, 1}, {3, 5, 7, 9, 2}, {2, 40, 100, 45, 3}};
    for (int s = 0; s < 3; s++) {
        const long *d = sizes[s];
        Tensor *x = operand(REAL, d[B] * d[T] * d[D], -1, 1), *w = operand(REAL, d[ROWS] * d[D], -1, 1);
        Tensor *y = result(REAL, x->n);
        Tensor *dy = operand(REAL, x->n, -1, 1), *dw = result(FLOAT, w->n), *dw2 = filled(FLOAT, w->n, 0);
        Case c = {.d = {d[B], d[T], d[D], d[ROWS], d[FROM]}, .in = {x, w}};
        position_offset_forward(stage, y->k, x->k, w->k, d[B], d[T], d[D], d[FROM]);
        check_value("position_offset_forward", y, ref_position, &c);
        position_offset_backward(stage, dw->k, dy->k, 0, d[B], d[T], d[D], d[ROWS], d[FROM]);
        check_gradient("position_offset_backward", dw, ref_position, &c, 1, dy);
        memcpy(dw2->k, dw->k, (size_t)w->n * sizeof(float));
        position_offset_backward(stage, dw2->k, dy->k, 1, d[B], d[T], d[D], d[ROWS], d[FROM]);
        check_accumulated("position_offset_backward acc", dw, dw2);
        c.documents = documents_of(d[B], d[T]);
        position_documents_forward(stage, y->k, x->k, c.documents, w->k, d[B], d[T], d[D], d[FROM]);
        check_value("position_documents_forward", y, ref_position, &c);
        position_documents_backward(stage, dw->k, dy->k, c.documents, 0, d[B], d[T], d[D], d[ROWS], d[FROM]);
        check_gradient("position_documents_backward", dw, ref_position, &c, 1, dy);
        memcpy(dw2->k, dw->k, (size_t)w->n * sizeof(float));
        position_documents_backward(stage, dw2->k, dy->k, c.documents, 1, d[B], d[T], d[D], d[ROWS], d[FROM]);
        check_accumulated("position_documents_backward acc", dw, dw2);
        case_end();
    }
}

const Check language_checks[] = {
    {" rotary_forward rotary_backward rotary_documents_forward rotary_documents_backward "
     "rotary_table_forward rotary_table_backward ", rotary},
    {" gate_forward gate_backward ", gate},
    {" softcap_forward softcap_backward ", softcap},
    {" attention_shared_forward attention_shared_backward ", shared},
    {" attention_window_forward attention_window_backward ", window},
    {" rmsnorm_offset_forward rmsnorm_offset_backward ", norm},
    {" position_offset_forward position_offset_backward position_documents_forward position_documents_backward ", position},
    {" attention_general_forward attention_general_backward attention_packed_documents_forward "
     "attention_packed_documents_backward ", general},
    {NULL, NULL},
};
