/* SPDX-License-Identifier: Apache-2.0
 *
 * sample.c: does the folder get the program `sample`?
 *
 * rt/sample/sample.c runs the evaluation forward and reads the scores behind the last token of a text.  So the job needs an
 * evaluation on a stream of tokens, one loss over the tokens that follow, and attention that sees nothing behind a position.
 * Not handled: whether other operators mix positions, as a model that trains on following tokens has no use for that.
 */
#include "emit.h"

static int next_input(const DataSet *d)
{
    for (int i = 0; i < d->role.n; i++)
        if (!strcmp(d->role.at[i], "next"))
            return d->input.at[i];
    return -1;
}

/* A loss whose targets are that input */
static bool scores(const Graph *g, const Op *o, int input)
{
    for (int i = 0; op_is(o, TRAIT_SCORES) && i < o->arg.n; i++) {
        const Arg *a = &o->arg.at[i];
        const Tensor *t = a->kind == ARG_READ && !a->state ? &g->tensor.at[a->index] : NULL;
        if (t && t->kind == T_INPUT && t->of == input)
            return true;
    }
    return false;
}

/* Sees an attention what stands behind, or goes an LSTM back? */
static bool looks_ahead(const Op *o)
{
    for (int i = 0; i < o->arg.n; i++) {
        ArgRole role = arg_role(&o->arg.at[i]);
        if (role == ROLE_CAUSAL || role == ROLE_REVERSE)
            return o->arg.at[i].i == (role == ROLE_REVERSE);
    }
    return false;
}

const char *emit_mute(const Plan *p, const char *prefix)
{
    const Graph *g = p->g;
    const DataSet *d = &p->m->eval;
    int losses = 0;
    if (!emit_program(prefix))
        return strf("this folder was made with --prefix: %s.o has no main to run", prefix);
    if (emit_paced(p))
        return "the kernels of a paced job compute nothing";
    if (!d->format)
        return "this job has no evaluation, and sample runs that: give the model file a data.eval, such as "
            "--set data.eval.files=FILE";
    if (!strcmp(d->format, "npy") || next_input(d) < 0)
        return "its data are no stream of tokens with the next one as target";
    for (int o = 0; o < g->nf; o++) {
        losses += scores(g, &g->op.at[o], next_input(d));
        if (looks_ahead(&g->op.at[o]))
            return strf("%s is not causal: it sees what is not written yet", g->op.at[o].name);
    }
    return losses == 1 ? NULL : strf("a language model has one loss over the next tokens, this one has %d", losses);
}
