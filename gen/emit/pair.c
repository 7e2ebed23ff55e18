/* SPDX-License-Identifier: Apache-2.0
 *
 * pair.c: two calls that GPUs have one kernel for.
 *
 * The second call reads what the first has made, or what it has read too, so that one kernel reads it from memory once.  The
 * bits are those of two calls.  The plan is too: the pair has the buffers of both.
 *
 * A kernel takes rows in any order.  So it may write a row of the second call's result before it has read other rows of the
 * first call's operands, and a pair is printed only where these share no bytes, or each row of one lies on the same row of the
 * other.  The plan's checkers see two calls.  In an evaluation, mem/lives.c lets results of the second begin with the first.
 *
 * A sum of gradients stands in front of the gradient of a weight, and behind that the call that reads the sum.  The pair then
 * stands behind the call between, which may not touch what the sum reads.  The sum itself is not written, so nothing else may
 * read it.
 *
 * The gradient of a norm is that of a Linear too, where the norm reads the sum that the Linear adds to.  The kernel of the norm
 * adds up the bias, and the gradient of the weight comes forward, over the Linear's own gradient of x: it reads nothing that
 * this writes, and writes states.  Devices that share a stage have parts of that weight, and no such call.
 *
 * The gradient of a Gelu that only a Linear in fp8 reads is not written either.  Its codes, as many bytes, take its place.
 * The call has no use for the part of its scratch that would have them, and the rest may not lie on what the Gelu reads.
 */
#include "stage.h"

static const EmitPair pairs[CALL_PAIRS] = {
    [PAIR_LOSS] = {"xent_both",
     {"loss", "lse", "2dx", "2dloss", "x", "targets", "vals", "rows", "width", "ignore", "count"}},
    [PAIR_LAYERNORM] = {"add_layernorm_forward",
     {"y", "2y", "2mean", "2rstd", "a", "b", "2weight", "2bias", "2rows", "2width", "2eps"}},
    [PAIR_RMSNORM] = {"add_rmsnorm_forward", {"y", "2y", "2rstd", "a", "b", "2weight", "2rows", "2width", "2eps"}},
    [PAIR_BATCH] = {"add_batchnorm_relu_backward",
     {"2dx", "2dskip", "2dweight", "2dbias", "a", "b", "2y", "2x", "2mean", "2var", "2weight", "2onto", "2acc", "2rows",
      "2width", "2eps"}},
    [PAIR_EIGHT] = {"linear_fp8_backward",
     {"dx", "2dweight", "2dbias", "2damax", "dy", "2x", "weight", "amax", "tmp", "h", "2h", "2acc", "rows", "in", "out"}},
    [PAIR_BIAS] = {"layernorm_linear_backward",
     {"dx", "dweight", "dbias", "2dweight", "2dbias", "dy", "x", "2x", "weight", "mean", "rstd", "onto", "2h", "2acc", "2rows",
      "2in", "2out"}, .early = true},
    [PAIR_SLOPE] = {"gelu_linear_fp8_backward",
     {"2dx", "3dweight", "3dbias", "3damax", "dx", "dy", "x", "3x", "2weight", "2amax", "2tmp", "tanh", "2h", "3h", "3acc",
      "2rows", "2in", "2out"}, .three = true},
};

const char *pair_call(int pair)
{
    return pairs[pair].both;
}

int pair_word(const Op *o, const char *word)
{
    for (int i = 0; i < o->arg.n; i++)
        if (!strcmp(o->arg.at[i].token, word))
            return i;
    die("%s has no %s", o->call, word);
}

/* What action k of a routine has of b, beside another buffer.  Where steps overlap, slots turn: all of its pool, but for a
 * buffer of the same pool, of which a routine has one slot. */
static Extent bytes_of(const Plan *p, const Routine *r, const Action *k, const Buf *b, const Buf *other)
{
    const Pool *pool = b->pool < 0 ? NULL : &p->pool.at[b->pool];
    Extent at = {b->offset, b->offset + b->bytes};
    for (int i = 0; i < r->pool.n && !order_overlap(p); i++)
        if (r->pool.at[i] == b->pool)
            at = (Extent){at.from + k->slots.at[i] * pool->stride, at.until + k->slots.at[i] * pool->stride};
    if (pool && order_overlap(p) && b->pool != other->pool)
        at.until += (pool->count - 1) * pool->stride;
    return at;
}

/* In each action of the routine: no byte of a is one of b behind its first `skip`; or, where rows may lie on rows, each is that
 * of b at the same place. */
static bool apart(const Plan *p, const Routine *r, const Buf *a, const Buf *b, Bytes skip, bool rows)
{
    const Actions *list = r->eval ? &p->dev.at[r->device].eval : &p->dev.at[r->device].list;
    for (EACH(const Action, k, *list)) {
        if (k->routine != (int)(r - p->routine.at))
            continue;
        Extent x = bytes_of(p, r, k, a, b), y = bytes_of(p, r, k, b, a);
        bool same = x.from == y.from && x.until - x.from == a->bytes && y.until - y.from == a->bytes;
        if (!(rows && same) && x.until > y.from + skip && y.until > x.from)
            return false;
    }
    return true;
}

/* One kernel writes a row of the second call's result before it has read other rows of the first call's operands. */
static bool keeps_operands(const Plan *p, const Routine *r, const Call *c, const Call *next)
{
    const Op *first = &p->g->op.at[c->op], *second = &p->g->op.at[next->op];
    for (int i = 0; i < first->arg.n; i++)
        for (int k = 0; k < second->arg.n; k++)
            if (first->arg.at[i].kind == ARG_READ && second->arg.at[k].kind == ARG_WRITE &&
                !apart(p, r, &p->buf.at[c->buf.at[i]], &p->buf.at[next->buf.at[k]], 0, true))
                return false;
    return true;
}

/* The gradient of a weight, which adds to states and has no scratch: what the first call reads is still there behind it. */
static bool steps_aside(const Plan *p, const Call *c)
{
    const Op *o = &p->g->op.at[c->op];
    for (int i = 0; i < o->arg.n; i++)
        if (c->buf.at[i] >= 0 && o->arg.at[i].kind != ARG_READ && o->arg.at[i].kind != ARG_ADD && o->arg.at[i].kind != ARG_VALS)
            return false;
    return o->phase == PH_W;
}

/* Does a call read what the one before it makes? */
static bool follows(const Call *c, const Op *o, const Call *next, const Op *then)
{
    for (int i = 0; i < o->arg.n; i++)
        for (int k = 0; k < then->arg.n; k++)
            if (o->arg.at[i].kind == ARG_WRITE && then->arg.at[k].kind == ARG_READ && c->buf.at[i] == next->buf.at[k])
                return true;
    return false;
}

/* The second call of a pair is not behind the first: may the one between them stand in front of both, or else behind? */
static bool gives_way(const Plan *p, const Call *c, int pair)
{
    const Op *between = &p->g->op.at[c[1].op], *second = &p->g->op.at[c[2].op];
    if (!pairs[pair].early)
        return pair == PAIR_BATCH && steps_aside(p, c + 1);
    return steps_aside(p, c + 2) && !follows(c + 1, between, c + 2, second);
}

static bool are_pair(const Plan *p, const Routine *r, const Call *c, const Call *next, int i)
{
    const Op *first = &p->g->op.at[c->op], *second = &p->g->op.at[next->op];
    if (strcmp(first->call, call_pairs[i].first) || strcmp(second->call, call_pairs[i].second))
        return false;
    int a = pair_word(first, call_pairs[i].same[0]), b = pair_word(second, call_pairs[i].same[1]);
    if (c->buf.at[a] != next->buf.at[b] || !keeps_operands(p, r, c, next))
        return false;
    if (i == PAIR_BIAS)         /* the norm's rows are those of the Linear */
        return !p->g->team && second->arg.at[pair_word(second, "dbias")].kind == ARG_ADD &&
               first->arg.at[pair_word(first, "rows")].i == second->arg.at[pair_word(second, "rows")].i &&
               first->arg.at[pair_word(first, "width")].i == second->arg.at[pair_word(second, "out")].i;
    return i != PAIR_BATCH || (graph_reads(p->g, p->g->nf, p->g->nb)[first->arg.at[a].index] == 1 &&
                               second->arg.at[pair_word(second, "dx")].kind == ARG_WRITE);
}

/* A Gelu's gradient, and the pair that reads it. */
static bool are_three(const Plan *p, const Routine *r, const Call *c, int calls)
{
    const Op *gelu = &p->g->op.at[c->op], *linear = &p->g->op.at[c[1].op];
    int dx = pair_word(gelu, "dx"), reads[] = {pair_word(gelu, "dy"), pair_word(gelu, "x")};
    const int *used = graph_reads(p->g, p->g->nf, p->g->nb);
    if (calls < 3 || used[gelu->arg.at[dx].index] != 2 || !are_pair(p, r, c + 1, c + 2, PAIR_EIGHT))
        return false;
    const Buf *codes = &p->buf.at[c->buf.at[dx]], *tmp = &p->buf.at[c[1].buf.at[pair_word(linear, "tmp")]];
    bool all = true;
    for (int i = 0; i < 2; i++)
        all &= apart(p, r, &p->buf.at[c->buf.at[reads[i]]], codes, 0, false) &&
               apart(p, r, &p->buf.at[c->buf.at[reads[i]]], tmp, codes->bytes, false);
    return all;
}

Bytes pair_skip(const Plan *p, const EmitPair *pair, const Call *c, const char *word)
{
    return pair->three && !strcmp(word, "tmp") ? p->buf.at[c->buf.at[pair_word(&p->g->op.at[c->op], "dx")]].bytes : 0;
}

const EmitPair *pair_of(const Plan *p, const Routine *r, const Call *c, int calls, int *second)
{
    for (int i = 0; i < CALL_PAIRS && on_gpus(p->m) && !c->again; i++)
        for (*second = 1; *second < calls && *second <= 2; ++*second)
            if (are_pair(p, r, c, c + *second, i) && (*second == 1 || gives_way(p, c, i)) &&
                (!pairs[i].three || are_three(p, r, c, calls))) {
                *second += pairs[i].three;
                return &pairs[i];
            }
    *second = 0;
    return NULL;
}
