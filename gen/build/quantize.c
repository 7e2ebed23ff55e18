/* SPDX-License-Identifier: Apache-2.0
 *
 * quantize.c: section `quantize`: frozen weights of Linear in 8 or 4 bits a number, as QLoRA has them (T. Dettmers et al.,
 * QLoRA: Efficient Finetuning of Quantized LLMs, 2023).
 *
 * Such a Linear becomes a LinearQuantized, which reads the copy of its weight.  The copy stands right behind the parameter, as
 * that of a bf16 job does, and is all that the arena has of it: rt/quantize.h.  A product makes it wide piece by piece.
 *
 * Only a weight that does not learn can be rounded once for all.  One that others share is read by rows that want it whole, so
 * a pattern that names either is refused.  Without patterns all are taken that can be.
 *
 * needs   all lines read, and State.frozen.  fills   rows, State.bits, copies.  fails   with bad(), at the pattern.
 */
#include "build.h"

/* Why its weight has all its bits; NULL: it need not. */
static const char *why_whole(const Builder *b, const Op *o, const char **remedy)
{
    int weight = o->par.at[0];
    const State *s = &b->g->state.at[weight];
    *remedy = "leave it out";
    if (s->adapter)
        return strf("%s is an adapter", s->name);
    *remedy = "freeze it: train.freeze, or adapt; or leave it out";
    if (!s->frozen)
        return strf("%s learns", s->name);
    *remedy = "leave it out; a shared table stays as it is";
    for (int i = 0; i < b->alias.n; i++)
        if (b->alias.at[i].value == weight)
            return strf("%s is shared with %s", s->name, b->alias.at[i].text);
    return NULL;
}

/* Copies of `bits` behind their parameters; what was behind moves on. */
static void give_copies(Graph *g)
{
    VEC(State) all = {0};
    int *now = alloc(sizeof *now * (size_t)(g->state.n + 1));
    for (int i = 0; i < g->state.n; i++) {
        State s = g->state.at[i];
        now[i] = all.n;
        if (s.kind == S_COPY && g->state.at[s.param].bits)
            continue;
        s.param = s.param < 0 ? -1 : now[s.param];
        *PUSH(&all) = s;
        State few = {.name = strf("%s.copy", s.name), .kind = S_COPY, .type = U8, .param = now[i], .op = s.op, .loc = s.loc};
        if (s.bits)
            *PUSH(&all) = few;
    }
    for (int i = 0; i < g->op.n; i++)
        for (int k = 0; k < g->op.at[i].par.n; k++)
            if (g->op.at[i].par.at[k] >= 0)
                g->op.at[i].par.at[k] = now[g->op.at[i].par.at[k]];
    g->state.n = 0;
    APPEND(&g->state, all);
}

void quantize(Builder *b)
{
    const QuantizeSpec *q = &b->m->quantize;
    int some = 0, faults = 0;
    if (!q->bits)
        return;
    linears_named(b, &q->match, q->loc, "quantize.match");
    for (EACH(Op, o, b->g->op)) {
        const char *taken = q->match.n ? match_any(&q->match, o->name) : "", *remedy;
        const char *pattern = strcmp(row(o->row)->name, "Linear") || o->par_name ? NULL : taken;
        const char *why = pattern ? why_whole(b, o, &remedy) : NULL;
        if (why && *pattern && !b->g->state.at[o->par.at[0]].adapter && !faults++)
            bad(mark_of(b->m, pattern, q->loc), remedy, "quantize.match: '%s' takes %s: %s, and has all its bits", pattern,
                o->name, why);
        if (!pattern || why)
            continue;
        o->row = row_find("LinearQuantized");
        attr_set(o, "bits", q->bits);
        b->g->state.at[o->par.at[0]].bits = q->bits;
        some++;
    }
    if (!some && !faults && !q->match.n)
        bad(q->loc, "freeze some: train.freeze, or adapt", "quantize: no Linear has a weight of its own that does not learn");
    give_copies(b->g);
}
