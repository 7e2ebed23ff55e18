/* SPDX-License-Identifier: Apache-2.0
 *
 * chains.c: operators behind each other become one row, as chains.def says: an activation and the BatchNorm before it, with an
 * addition between them or none; a Linear and the addition behind it.
 *
 * Problem: networks of images normalise, add a shortcut and pass a Relu, a Clip or a Silu.  Three calls write and read
 * memory twice more than one, and backward writes the masked gradient for the norm to read.
 *
 * Method.  Operators that stand one behind the other and read each other alone, and are those of a row of chains.def, become
 * that row, in the place and under the name of the last.  The pass runs before grad, which takes the backward call from the
 * row: it makes the gradient of the shortcut too.  `skip` is the first operand, so that terms of gradients keep their order:
 * the Add would have given its term before the norm.
 *
 *   bits     are those of the calls, in every kernel library: each result is rounded where a call of its own would store it.
 *            A product on GPUs adds before it rounds.  So a Linear and an Add are joined by plan.fuse: most alone, before the
 *            numeric key is taken, and on one device a stage.
 *   plans    only those that cut between them are lost.  Backward reads the result where there is a shortcut.
 *   names    an operator that a pattern in the section plan names stays separate, as in fuse.c.
 *
 * needs   shapes and bound forward calls.  fills  row, in, out, attr, with, the call.  keeps  every parameter and its order.
 * cost    linear, but for names times the patterns of plan.
 *
 * Not handled: chains of more than three, or with two additions.
 */
#include "rewrite.h"

enum { any, host, most, LONGEST = 3 };
#define CHAIN(row, rows, where) {#row, rows, where},
static const struct { const char *name, *rows; int where; } chains[] = {
#include "chains.def"
    {NULL, NULL, 0}
};

/* Operators, the first one first, and the tensor that an addition among them has besides; -1: there is none. */
typedef struct { int op[LONGEST], n, skip; const char *name; } ChainRun;

/* Does operator `op` make the tensor, for one reader? */
static bool makes(const Graph *g, const int *reads, int op, int tensor)
{
    return reads[tensor] == 1 && tensor != g->loss && g->tensor.at[tensor].op == op;
}

/* Is the last word of text the operator's row?  Its length, or 0. */
static size_t last_word(const Op *o, const char *text, size_t n)
{
    const char *name = row(o->row)->name;
    size_t length = strlen(name);
    bool ends = length <= n && !strncmp(text + n - length, name, length);
    return ends && (length == n || text[n - length - 1] == ' ') ? length : 0;
}

/* Operators that end with `last` are these rows. */
static bool finds(const Graph *g, const int *reads, int last, const char *rows, ChainRun *r)
{
    size_t left = strlen(rows), length;
    r->n = 0, r->skip = -1;
    for (int i = last; left; i--) {
        const Op *o = i < 0 ? NULL : &g->op.at[i];
        if (!o || r->n == LONGEST || !(length = last_word(o, rows, left)))
            return false;
        r->op[r->n++] = i;
        left -= length + (length < left);
        if (!left)
            break;
        int first = i > 0 && makes(g, reads, i - 1, o->in.at[0]);
        int second = i > 0 && op_is(o, TRAIT_SUM) && makes(g, reads, i - 1, o->in.at[1]);
        if (!first && !second)
            return false;
        if (op_is(o, TRAIT_SUM))
            r->skip = o->in.at[!second];
    }
    return true;
}

static bool apart(const Graph *g, const PlanSpec *p, const ChainRun *r)
{
    for (int i = 1; i < r->n; i++)
        if (match_apart(p, &g->op.at[r->op[i]], &g->op.at[r->op[0]]))
            return true;
    return false;
}

static void join(Graph *g, const ChainRun *r)
{
    const Op *norm = &g->op.at[r->op[r->n - 1]], *last = &g->op.at[r->op[0]];
    Op both = *norm;
    both.row = row_find(r->name);
    both.name = last->name;
    both.layer = last->layer;
    both.with = norm->name;
    both.fwd = r->op[0];
    both.loc = last->loc;
    both.in = (Ints){0};
    if (r->skip >= 0)
        *PUSH(&both.in) = r->skip;
    APPEND(&both.in, norm->in);
    both.out = last->out;
    both.attr.at = NULL;
    both.attr.n = both.attr.cap = 0;
    both.flop = 0;
    for (int i = r->n - 1; i >= 0; i--) {
        const Op *o = &g->op.at[r->op[i]];
        both.flop += o->flop;
        for (int k = 0; k < o->attr.n; k++)
            if (!attr_find(&both, o->attr.at[k].name))
                *PUSH(&both.attr) = o->attr.at[k];
    }
    both.arg.at = NULL;
    both.arg.n = both.arg.cap = 0;
    bind_call(g, &both, row(both.row)->call[PH_F], NULL, NULL, NULL);
    g->op.at[r->op[0]] = both;
}

bool chains_joined(const Graph *g)
{
    for (int i = 0; i < g->nf; i++)
        for (int k = 0; chains[k].name; k++)
            if (match_is(&g->op.at[i], chains[k].name))
                return true;
    return false;
}

int joined_operators(const Op *o)
{
    int n = 1 + (o->with && *o->with);
    for (int k = 0; chains[k].name; k++)
        if (match_is(o, chains[k].name)) {
            n = 1;
            for (const char *at = chains[k].rows; *at; at++)
                n += *at == ' ';
        }
    return n;
}

/* Of the rows of chains.def that `most` marks, or of the others. */
static void join_rows(Graph *g, const Model *m, bool marked)
{
    int *reads = match_reads(g, NULL), *into = match_all(g);
    for (int i = 0; i < g->op.n; i++)
        for (int k = 0; chains[k].name; k++) {
            ChainRun r = {.name = chains[k].name};
            bool here = (chains[k].where == most) == marked && !(chains[k].where == host && on_gpus(m));
            if (!here || !finds(g, reads, i, chains[k].rows, &r) || apart(g, &m->plan, &r))
                continue;
            join(g, &r);
            for (int j = 1; j < r.n; j++)
                into[r.op[j]] = i;
            break;
        }
    match_drop(g, into);
}

void join_products(Graph *g, const Model *m)
{
    if (m->plan.fuse == FUSE_MOST && on_gpus(m) && g->compute == BF16 && m->plan.tensor == 1)
        join_rows(g, m, true);
}

/* Backward of a joined row makes what stood between its parts again, from its parameters: those that forward read. */
void join_chains(Graph *g, const Model *m)
{
    const Schedule *s = schedule_of(m->plan.schedule);
    if (s->forward == s->backward && (m->plan.fuse == FUSE_AUTO || m->plan.fuse == FUSE_MOST))
        join_rows(g, m, false);
}
