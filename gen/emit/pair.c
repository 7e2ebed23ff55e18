/* SPDX-License-Identifier: Apache-2.0
 *
 * pair.c: two calls that GPUs have one kernel for.
 *
 * The second call reads what the first has made, or what it has read too, so that one kernel reads it from memory once.  The
 * bits are those of two calls.  The plan is too: the pair has the buffers of both.
 *
 * A kernel takes rows in any order.  So it may write a row of the second call's result before it has read other rows of the
 * first call's operands, and a pair is printed only where these share no bytes, or each row of one lies on the same row of the
 * other.  The checkers of the plan see two calls; which are printed as one is decided here alone.
 */
#include "pair.h"
#include <string.h>

static const EmitPair pairs[CALL_PAIRS] = {
    [PAIR_LOSS] = {"xent_both",
     {"loss", "lse", "2dx", "2dloss", "x", "targets", "vals", "rows", "width", "ignore", "count"}},
    [PAIR_LAYERNORM] = {"add_layernorm_forward",
     {"y", "2y", "2mean", "2rstd", "a", "b", "2weight", "2bias", "2rows", "2width", "2eps"}},
    [PAIR_RMSNORM] = {"add_rmsnorm_forward", {"y", "2y", "2rstd", "a", "b", "2weight", "2rows", "2width", "2eps"}},
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

static Bytes end_of(const Plan *p, const Buf *b)
{
    const Pool *pool = b->pool < 0 ? NULL : &p->pool.at[b->pool];
    return b->offset + b->bytes + (pool ? (pool->count - 1) * pool->stride : 0);
}

/* No byte of one, in any slot, is one of the other; or each is that of the other at the same place. */
static bool apart(const Plan *p, const Buf *a, const Buf *b)
{
    bool same = a->offset == b->offset && a->bytes == b->bytes;
    bool single = end_of(p, a) == a->offset + a->bytes && end_of(p, b) == b->offset + b->bytes;
    return (same && single) || end_of(p, a) <= b->offset || end_of(p, b) <= a->offset;
}

/* One kernel writes a row of the second call's result before it has read other rows of the first call's operands. */
static bool keeps_operands(const Plan *p, const Call *c)
{
    const Op *first = &p->g->op.at[c->op], *second = &p->g->op.at[c[1].op];
    for (int i = 0; i < first->arg.n; i++)
        for (int k = 0; k < second->arg.n; k++)
            if (first->arg.at[i].kind == ARG_READ && second->arg.at[k].kind == ARG_WRITE &&
                !apart(p, &p->buf.at[c->buf.at[i]], &p->buf.at[c[1].buf.at[k]]))
                return false;
    return true;
}

const EmitPair *pair_of(const Plan *p, const Call *c)
{
    const Op *first = &p->g->op.at[c->op], *second = &p->g->op.at[c[1].op];
    for (int i = 0; i < CALL_PAIRS && on_gpus(p->m) && !c->again; i++)
        if (!strcmp(first->call, call_pairs[i].first) && !strcmp(second->call, call_pairs[i].second) &&
            c->buf.at[pair_word(first, call_pairs[i].same[0])] == c[1].buf.at[pair_word(second, call_pairs[i].same[1])] &&
            keeps_operands(p, c))
            return &pairs[i];
    return NULL;
}
