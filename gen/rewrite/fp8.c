/* SPDX-License-Identifier: Apache-2.0
 *
 * fp8.c: with precision.compute: fp8, the products of Linear get factors of 8 bits.
 *
 * Problem.  Factors of 8 bits need a scale for each tensor, from sizes that earlier steps have seen (P. Micikevicius et al.,
 * FP8 Formats for Deep Learning, 2022; "delayed scaling" of NVIDIA's Transformer Engine).  That history is part of a run.
 *
 * Method.  Once sizes are known, each Linear whose rows, operands and results are multiples of 16 becomes a LinearFp8: tensor
 * cores ask for that.  It has a state NAME.amax, tracked as the statistics of BatchNorm are.  Call W adds up what a micro-batch
 * has seen, and the update takes it in (rt/fp8.h).  Others stay Linear in bf16, and so do the Linear inside an LSTM; join_gelu
 * takes what is left.  The states stand before the step values, which are the last: grad counts on that.
 *
 * needs   sizes    fills   rows, states and calls of LinearFp8    fails   never
 */
#include "rewrite.h"
#include "rt/fp8.h"

static void convert(Graph *g, Op *o, Names *taken)
{
    int64_t rows = attr_int(o, "rows"), in = attr_int(o, "in"), out = attr_int(o, "out");
    State s = {.name = strf("%s.amax", o->name), .kind = S_PARAM, .type = F32, .shape = {1, {FP8_TENSORS * FP8_BINS}},
               .bytes = FP8_TENSORS * FP8_BINS * type_bytes(F32), .param = g->state.n, .op = o->fwd, .tracked = true,
               .init = {"zeros", INIT_ZEROS, 0, 0, FAN_NONE, NULL}, .loc = o->loc};
    while (names_get(taken, name_as_c(s.name)) >= 0)
        s.name = strf("%s_", s.name);
    names_put(taken, name_as_c(s.name), 0);
    *PUSH(&g->state) = s;
    int amax = s.param;
    *PUSH(&o->par) = amax;
    o->row = row_find("LinearFp8");
    attr_set(o, "tmp.F", rows * in + in * out + FP8_ROOM);
    attr_set(o, "idle", rows * out + rows * in);        /* of I: with that, it has room for W too (emit/pair.c) */
    ATTRS(o, {"tmp.I", attr_int(o, "idle") + rows * out + in * out + FP8_ROOM}, {"tmp.W", rows * out + rows * in + FP8_ROOM},
          {"history", FP8_HISTORY});
    bind_forward(g, o);
}

void fp8(Graph *g, const Model *m)
{
    if (!m->train.fp8)
        return;
    State values = g->state.at[g->vals];
    Names taken = {0};
    for (EACH(const Tensor, t, g->tensor))
        names_put(&taken, name_as_c(t->name), 0);
    for (EACH(const State, s, g->state))
        names_put(&taken, name_as_c(s->name), 0);
    g->state.n--;
    for (int i = 0; i < g->nf; i++) {
        static const char *const sizes[] = {"rows", "in", "out"};
        const Op *o = &g->op.at[i];
        bool fits = match_is(o, "Linear") && !o->par_name && !g->state.at[o->par.at[0]].frozen;
        for (int k = 0; k < 3 && fits; k++)
            fits = attr_int(o, sizes[k]) % FP8_MULTIPLE == 0;
        if (fits)
            convert(g, &g->op.at[i], &taken);
    }
    g->vals = g->state.n;
    *PUSH(&g->state) = values;
    for (int i = 0; i < g->nf; i++)
        for (int k = 0; k < g->op.at[i].arg.n; k++)
            if (g->op.at[i].arg.at[k].kind == ARG_VALS)
                g->op.at[i].arg.at[k].index = g->vals;
}

/* Which Linear have factors of 8 bits, and some of the others. */
const char *fp8_text(const Graph *g)
{
    enum { NAMED = 3 };
    static const char *const others[] = {"Linear", "LinearAdd", "LinearGelu", "GeluLinear", "GeluLinearAdd"};
    int all = 0, rest = 0;
    const char *names = "";
    for (int i = 0; i < g->nf; i++) {
        bool other = INDEX_OF(others, sizeof others / sizeof *others, row(g->op.at[i].row)->name) >= 0;
        all += other || row(g->op.at[i].row)->fp8;
        if (other && rest++ < NAMED)
            names = strf("%s%s%s", names, *names ? ", " : "", g->op.at[i].name);
    }
    return strf("%d of %d Linear%s%s%s", all - rest, all, rest ? "; in bf16, since 16 does not divide a size: " : "", names,
                rest > NAMED ? ", ..." : "");
}
