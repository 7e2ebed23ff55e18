/* SPDX-License-Identifier: Apache-2.0
 *
 * fuse.c: neighbours that become one call, and copies that become none.
 *
 * Problem: an addition reads the result of the call right before it, and nothing else reads that.  This happens at a residual
 * connection after Dropout, and in backward where the gradient of a norm joins the sum so far.  The tensor between them costs
 * a buffer and two passes over memory.
 *
 * Method: a call with the word `onto` in its row (ops.def) can add its result to another tensor itself.  If only the Add or
 * GradAdd right after it reads that result, the two become one operator: the call, in the place and under the name of the
 * addition.  The other operand is `onto`, and the result is that of the addition.  Later passes need not know.
 *
 *   bits     are those of two calls, in every kernel library: the result is rounded to the compute type before it is added, as
 *            the store did.  So fusing is no part of the numeric key.
 *   plans    only those that cut between the two are lost.  Backward never reads the missing tensor, so no plan kept it, and
 *            the operand it was computed from has as many bytes.
 * A Reshape and its way back are views: who read the result reads the operand, and there is no call.  It stays a call in three
 * cases.  Its operand is an input, which is loaded where it is read.  The gradient of its operand has other terms: their sum
 * stands in its place.  The gradient of its result is that of an addition behind it, and has the shape of the sum.
 *
 *   names    the operator's is the addition's, `with` is the other one.  An operator that a pattern in the section plan names,
 *            and not the addition, stays separate: the pattern decides the fate of its result, or a cut.
 *
 * needs   a whole graph, not timed.  fills  op->with.  keeps  the order of the other operators.  cost  linear, but for names
 * times the patterns of plan.
 *
 * On GPUs the first gradient of a Linear joins a sum so too, whatever plan.fuse says, and is added before it is rounded: bits
 * of their own, which the order of the key counts.  With sums in blocks it does not, as a device may have a part of them.
 *
 * Not joined: an addition and the norm after it.  Planners keep the sum and recompute the norm from it.  One call for both
 * could only be recomputed from both operands of the addition, which nobody keeps otherwise.  A product and the addition or
 * activation after it: libraries that do both round once where two calls round twice, so that the bits would differ.
 */
#include "rewrite.h"

typedef struct {
    Graph *g;
    int *reads;                 /* by tensor: how often */
    int *into;                  /* by operator: the one that does its work, mostly itself */
} Fuse;

/* ---- which ------------------------------------------------------------------------------------------------------- */

/* The first result of a call, which `onto` is added to; NULL where nobody wants that one. */
static Arg *result(const Op *o)
{
    for (int i = 0; i < o->arg.n && o->arg.at[i].kind != ARG_NONE; i++)
        if (o->arg.at[i].kind == ARG_WRITE)
            return &o->arg.at[i];
    return NULL;
}

static bool joins(const Fuse *f, const PlanSpec *p, const Op *o, const Op *add)
{
    const Arg *onto = op_arg(o, "onto");
    if (!onto || onto->kind != ARG_NONE || !result(o) || !op_is(add, TRAIT_SUM))
        return false;
    int t = result(o)->index, a = op_arg(add, "a")->index, b = op_arg(add, "b")->index;
    if ((a != t && b != t) || f->g->tensor.at[a == t ? b : a].op == f->g->tensor.at[t].op)
        return false;           /* the call does not read it, or makes both operands */
    return f->reads[t] == 1 && (o->phase == PH_F ? !match_apart(p, o, add) : o->fwd == add->fwd);
}

/* ---- views ------------------------------------------------------------------------------------------------------- */

static void read_instead(Graph *g, int was, int now)
{
    for (int i = 0; i < g->op.n; i++)
        for (EACH(Arg, a, g->op.at[i].arg))
            if (a->kind == ARG_READ && !a->state && a->index == was)
                a->index = now;
}

static void view(Fuse *f, const PlanSpec *p, int op)
{
    Graph *g = f->g;
    const Op *o = &g->op.at[op];
    int x = op_arg(o, "x")->index, y = result(o)->index, back = 0;
    for (int i = g->nf; i < g->nb; i++)         /* the one call of backward; -1: there are several, or another */
        if (g->op.at[i].fwd == op)
            back = back || g->op.at[i].row != o->row ? -1 : i;
    const Tensor *from = &g->tensor.at[x];
    if (back < 0 || from->kind != T_ACT || match_apart(p, o, &g->op.at[from->op]))
        return;
    if (back > 0 && g->tensor.at[op_arg(&g->op.at[back], "dy")->index].of != y)
        return;
    for (int t = 0; t < g->tensor.n; t++)
        if (g->tensor.at[t].kind == T_GRAD && g->tensor.at[t].of == y) {
            g->tensor.at[t].of = x;
            g->tensor.at[t].shape = from->shape;
        }
    read_instead(g, y, x);
    f->into[op] = op + 1;
    if (back > 0) {
        read_instead(g, result(&g->op.at[back])->index, op_arg(&g->op.at[back], "dy")->index);
        f->into[back] = back + 1;
    }
}

/* ---- one operator of two ----------------------------------------------------------------------------------------- */

/* The addition's place is taken by the call before it. */
static void join(Fuse *f, int op)
{
    Graph *g = f->g;
    Op *o = &g->op.at[op], *add = o + 1, both = *o;
    int t = result(o)->index;
    const Arg *other = op_arg(add, op_arg(add, "a")->index == t ? "b" : "a");
    both.name = add->name;
    both.layer = add->layer;
    both.with = o->phase == PH_F ? o->name : NULL;
    both.fwd = add->fwd;
    both.flop += add->flop;
    both.moved += add->moved - 2 * g->tensor.at[t].bytes;
    both.loc = add->loc;
    *op_arg(&both, "onto") = (Arg){.kind = ARG_READ, .token = "onto", .index = other->index};
    result(&both)->index = result(add)->index;
    for (int i = 0; i < both.arg.n; i++)
        if (both.arg.at[i].kind == ARG_WRITE && !both.arg.at[i].state)      /* a second result stays */
            g->tensor.at[both.arg.at[i].index].op = op + 1;
    *add = both;
    f->into[op] = op + 1;
}

bool fuse_joined(const Graph *g)
{
    for (int i = 0; i < g->nb; i++) {
        const Arg *onto = op_arg(&g->op.at[i], "onto");
        if (onto && onto->kind != ARG_NONE && !match_is(&g->op.at[i], "LinearOnto"))
            return true;
    }
    return chains_joined(g);
}

const char *const fuse_words[FORMS] = {[FUSE_AUTO] = "auto", [FUSE_NONE] = "none", [FUSE_SUMS] = "sums", [FUSE_MOST] = "most"};

const Model *fuse_as(const Model *m, int word)
{
    Model *with = COPY(m);
    with->plan.fuse = word;
    return with;
}

int fuse_forms(const Model *m, const Model *form[FORMS])
{
    bool fastest = m->plan.fuse == FUSE_FASTEST;
    int n = !fastest ? 1 : on_gpus(m) ? FORMS : FUSE_MOST;
    form[0] = m;
    for (int k = 0; fastest && k < n; k++)
        form[k] = fuse_as(m, k);
    if (m->plan.fuse == FUSE_AUTO)
        form[n++] = fuse_as(m, FUSE_SUMS);
    return n;
}

static Fuse open_fuse(Graph *g)
{
    return (Fuse){.g = g, .reads = graph_reads(g, 0, g->op.n), .into = match_all(g)};
}

/* The call that has `onto`, in front of its handle. */
static Op with_onto(const Op *o)
{
    Op both = *o;
    both.row = row_find("LinearOnto");
    both.call = "linear_add_backward_x";
    both.arg.at = NULL;
    both.arg.n = both.arg.cap = 0;
    for (int i = 0; i < o->arg.n; i++) {
        if (o->arg.at[i].kind == ARG_HANDLE)
            *PUSH(&both.arg) = (Arg){.kind = ARG_NONE, .token = "onto", .index = -1};
        *PUSH(&both.arg) = o->arg.at[i];
    }
    return both;
}

void join_onto(Graph *g, const Model *m)
{
    Fuse f = open_fuse(g);
    for (int i = g->nf; i + 1 < g->nb && on_gpus(m) && !g->blocks; i++) {
        Op *o = &g->op.at[i], alone = *o;
        if (o->phase != PH_I || !match_is(o, "Linear"))
            continue;
        *o = with_onto(o);
        if (joins(&f, &m->plan, o, o + 1))
            join(&f, i);
        else
            *o = alone;
    }
    match_drop(g, f.into);
}

void fuse(Graph *g, const Model *m)
{
    bool none = m->plan.fuse == FUSE_NONE;
    for (int i = 0; i < g->op.n; i++)
        g->op.at[i].in.n = g->op.at[i].out.n = 0;       /* as in a graph from a file: the calls say it */
    Fuse views = open_fuse(g);
    for (int i = 0; i < g->nf && !none; i++)
        if (match_is(&g->op.at[i], "Reshape"))
            view(&views, &m->plan, i);
    match_drop(g, views.into);
    Fuse f = open_fuse(g);
    for (int i = 0; i + 1 < g->nb && !none; i++)
        if (joins(&f, &m->plan, &g->op.at[i], &g->op.at[i + 1]))
            join(&f, i);
    match_drop(g, f.into);
}
