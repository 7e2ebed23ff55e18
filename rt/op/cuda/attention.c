/* SPDX-License-Identifier: Apache-2.0
 *
 * attention.c: y = softmax(scale q k^T) v for each (sample, head), and its gradients.  It decides which calls are cuDNN's,
 * and which our own kernels' (attention_own.cu).
 *
 * Where query heads share keys, cuDNN writes dk and dv of every query head into scratch, and a kernel adds them, ascending.
 *
 * cuDNN does those in bf16 without bias, mask and dropout, with heads that are a multiple of 8 and at most 128 wide, on sm_90
 * 256, backward if all three gradients are wanted.  gen/cost/prepared.c has the same rule: a plan opens a handle for these
 * calls and no others.  Where the library then wants more memory than is planned, attention_graph.c says so.
 *
 * Packed operands are the same with longer rows.
 */
#include "attention.h"
#include "attention_own.h"
#include "../../cuda/device.h"
#include <math.h>

static const bool bf16 = sizeof(real) != sizeof(float);

/* ---- shapes ------------------------------------------------------------------------------------------------ */
static long up(long n, long to)
{
    return (n + to - 1) / to * to;
}

bool attention_fits(const Shape *s)
{
    return bf16 && s->width % 8 == 0 && s->width <= 256;
}

size_t attention_sums(const Shape *s)
{
    return (size_t)up(s->batch * s->heads * s->query * (long)sizeof(float), 64);
}

size_t attention_each(const Shape *s)
{
    return s->own == s->heads ? 0 : (size_t)up(s->batch * s->heads * s->key * s->width * (long)sizeof(real), 64);
}

size_t attention_front(const Shape *s)
{
    return attention_sums(s) + 2 * attention_each(s);
}

size_t attention_scratch(const Shape *s)
{
    return attention_front(s) + SHIFT + (size_t)(s->batch * s->heads * up(s->query, 64) * up(s->key, 128) * 2 + 256);
}

void *attention_workspace(const Shape *s, void *tmp)
{
    char *behind = (char *)tmp + attention_front(s);
    return behind + (256 - (uintptr_t)behind % 256) % 256;
}

Shape attention_shape(long batch, long heads, long own, long query, long key, long width, long causal, bool packed)
{
    long times = packed ? 3 : 1;
    return (Shape){ batch, heads, own, query, key, width, heads * width * times, own * width * times, causal };
}

/* ---- in a step --------------------------------------------------------------------------------------------- */
/* The operands of one call, as attention_own.h takes them. */
typedef struct {
    const real *q, *k, *v, *bias;
    const int32_t *mask;
    const Values *vals;
    int mb;
    Shape s;
    float scale, drop;
    int64_t site;
} Call;

/* The library's; NULL: the call is our own kernels'. */
static const Prepared *planned(const Stage *st, int h, const Call *c)
{
    if (!attention_fits(&c->s) || c->bias || c->mask || c->drop != 0)
        return NULL;
    const Prepared *p = st->handle[h];
    if (!p && c->s.width > 128)         /* a plan for another arch */
        return NULL;
    if (!p)
        device_check(st, cudaErrorNotReady, "attention that nothing has opened; this folder is not what dpgen wrote");
    return p->run ? p : NULL;
}

/* The library takes addresses of inputs without const; it reads them only. */
static void *input(const void *address)
{
    return (void *)(uintptr_t)address;
}

static void forward(Stage *st, int h, real *y, float *lse, const Call *c)
{
    const Shape *s = &c->s;
    const Prepared *p = planned(st, h, c);
    if (!p) {
        attention_own_forward(st, y, lse, c->q, c->k, c->v, s->qs, s->ks, c->bias, c->mask, c->vals, c->mb, s->batch, s->heads,
                              s->own, s->query, s->key, s->width, s->causal, c->scale, c->drop, c->site);
        return;
    }
    float scale = c->scale, hidden = -INFINITY;
    void *const address[] = { y, lse, input(c->q), input(c->k), input(c->v), &scale, &hidden };
    p->run(st, p, address, device_of(st)->workspace, "attention forward");
}

/* Gradients, and what they are made of. */
typedef struct {
    real *dq, *dk, *dv, *dbias;
    const real *dy, *y;
    const float *lse;
    void *tmp;
} Back;

static void backward(Stage *st, int h, const Back *r, const Call *c)
{
    const Shape *s = &c->s;
    const Prepared *p = r->dq && r->dk && r->dv ? planned(st, h, c) : NULL;
    if (!p) {
        attention_own_backward(st, r->dq, r->dk, r->dv, r->dbias, r->dy, r->y, c->q, c->k, c->v, s->qs, s->ks, c->bias, c->mask,
                               r->lse, r->tmp, c->vals, c->mb, s->batch, s->heads, s->own, s->query, s->key, s->width,
                               s->causal, c->scale, c->drop, c->site);
        return;
    }
    float scale = c->scale, one = 1, hidden = -INFINITY;
    bool shared = s->own < s->heads;
    real *dk = shared ? (real *)((char *)r->tmp + attention_sums(s)) : r->dk;
    real *dv = shared ? dk + attention_each(s) / sizeof *dk : r->dv;
    void *const address[] = { r->dq, dk, dv, input(r->dy), input(r->y), input(c->q), input(c->k), input(c->v),
                              input(r->lse), r->tmp, &scale, &one, &hidden };
    p->run(st, p, address, attention_workspace(s, r->tmp), "attention backward");
    if (shared)
        attention_own_group(st, r->dk, r->dv, dk, dv, s->batch * s->key * s->own, s->heads / s->own, s->width);
}

void attention_forward(Stage *st, real *y, float *lse, const real *q, const real *k, const real *v, const real *bias,
                       const int32_t *mask, const Values *vals, int mb, int h, long batch, long heads, long query,
                       long key, long width, long causal, float scale, float drop, int64_t site)
{
    Shape s = attention_shape(batch, heads, heads, query, key, width, causal, false);
    Call c = { q, k, v, bias, mask, vals, mb, s, scale, drop, site };
    forward(st, h, y, lse, &c);
}

void attention_backward(Stage *st, real *dq, real *dk, real *dv, real *dbias, const real *dy, const real *y,
                        const real *q, const real *k, const real *v, const real *bias, const int32_t *mask,
                        const float *lse, void *tmp, const Values *vals, int mb, int h, long batch, long heads,
                        long query, long key, long width, long causal, float scale, float drop, int64_t site)
{
    Shape s = attention_shape(batch, heads, heads, query, key, width, causal, false);
    Call c = { q, k, v, bias, mask, vals, mb, s, scale, drop, site };
    Back r = { dq, dk, dv, dbias, dy, y, lse, tmp };
    backward(st, h, &r, &c);
}

void attention_packed_forward(Stage *st, real *y, float *lse, const real *qkv, const real *bias, const int32_t *mask,
                              const Values *vals, int mb, int h, long batch, long heads, long query, long width,
                              long causal, float scale, float drop, int64_t site)
{
    long all = heads * width;
    Shape s = attention_shape(batch, heads, heads, query, query, width, causal, true);
    Call c = { qkv, qkv + all, qkv + 2 * all, bias, mask, vals, mb, s, scale, drop, site };
    forward(st, h, y, lse, &c);
}

void attention_packed_backward(Stage *st, real *dqkv, real *dbias, const real *dy, const real *y, const real *qkv,
                               const real *bias, const int32_t *mask, const float *lse, void *tmp, const Values *vals,
                               int mb, int h, long batch, long heads, long query, long width, long causal, float scale,
                               float drop, int64_t site)
{
    long all = heads * width;
    Shape s = attention_shape(batch, heads, heads, query, query, width, causal, true);
    Call c = { qkv, qkv + all, qkv + 2 * all, bias, mask, vals, mb, s, scale, drop, site };
    Back r = { dqkv, dqkv ? dqkv + all : NULL, dqkv ? dqkv + 2 * all : NULL, dbias, dy, y, lse, tmp };
    backward(st, h, &r, &c);
}

void attention_shared_forward(Stage *st, real *y, float *lse, const real *q, const real *k, const real *v, const real *bias,
                              const int32_t *mask, const Values *vals, int mb, int h, long batch, long heads, long kv_heads,
                              long query, long key, long width, long causal, float scale, float drop, int64_t site)
{
    Shape s = attention_shape(batch, heads, kv_heads, query, key, width, causal, false);
    Call c = { q, k, v, bias, mask, vals, mb, s, scale, drop, site };
    forward(st, h, y, lse, &c);
}

void attention_shared_backward(Stage *st, real *dq, real *dk, real *dv, real *dbias, const real *dy, const real *y,
                               const real *q, const real *k, const real *v, const real *bias, const int32_t *mask,
                               const float *lse, void *tmp, const Values *vals, int mb, int h, long batch, long heads,
                               long kv_heads, long query, long key, long width, long causal, float scale, float drop,
                               int64_t site)
{
    Shape s = attention_shape(batch, heads, kv_heads, query, key, width, causal, false);
    Call c = { q, k, v, bias, mask, vals, mb, s, scale, drop, site };
    Back r = { dq, dk, dv, dbias, dy, y, lse, tmp };
    backward(st, h, &r, &c);
}
