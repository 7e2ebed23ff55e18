/* SPDX-License-Identifier: Apache-2.0
 *
 * grad.c: the backward half of the graph.
 *
 * Problem: for every parameter, the derivative of the loss, as operators that a plan can place, cut and time one by
 * one, and whose sums have one order in every plan.
 *
 * Method: reverse accumulation (Speelpenning, Compiling Fast Partial Derivatives of Functions Given by Algorithms,
 * 1980; Griewank and Walther, Evaluating Derivatives, 2nd edition 2008, chapter 3), operator by operator from the loss
 * downwards.  What an operator does is its row's I call (gradients of operands) and W call (gradients of parameters);
 * they stay apart, so that a schedule may delay W.
 *
 *   wanted    a tensor wants a gradient if its value depends on a parameter that learns.  A data input never does, nor does
 *             the result of a StopGradient.  Backward therefore ends where nothing in front of it learns.
 *   frozen    a parameter without gradient: its word in a call is 0, as that of an operand whose gradient nobody wants, and a
 *             call that then writes nothing is left out, so that what it would have read need not be kept.
 *   terms     a tensor with several readers gets one term from each, in descending order of readers, the order in which
 *             backward meets them; a reader that takes it twice gives two, in operand order.  The first term starts a
 *             running sum, every later one is added by an operator of its own, GradAdd, right behind the I calls of the
 *             reader: the sum so far is what crosses a cut, and the additions are the same wherever the cuts are.
 *   gathered  who reads the result of Gather gives its term to the operand: the device's part of it (rewrite/positions.c).
 *   aliases   `da = dy` makes no operator and no tensor: the gradient of the result is the term.
 *   names     d.X is the gradient of X.  If it has several terms, d.X.t2 is the second one, d.X.s2 the sum of the first
 *             two, and the last sum is d.X.  Where one of these is taken, `_` is put behind it.
 *   statistics    an operator that tracks has its W call, though no gradient comes to it.
 *   own dx    a W call may read the gradient of an operand that the I call of the same operator has made.
 *   uses      every use of a parameter has its own accumulator, PARAM.grad.0 the first: what tied uses add up to would
 *             otherwise depend on the plan.  update.c folds them.
 *
 * Order: the seed of the loss; then by descending forward operator its I calls, its additions, its W calls; then PH_U.
 *
 * needs   shapes, states, bound forward calls.  fills  op from nf on, nb, tensors of gradients, states but PARAM,
 * COPY, VALUES.  keeps   op 0 .. nf-1.  cost  linear in operators and operands, but for bind_call's search of states.
 * fails   with bad() for a parameter that the loss does not depend on, and for a result used that has no gradient rule.
 *
 * Not handled: second derivatives; two results of one operator that both have gradients where one of them may be
 * missing.
 */
#include "rewrite.h"

enum { MAX_TERMS = 16 };                /* of one operator; MAXINPUT operands are fewer */

typedef struct {
    Graph *g;
    Names taken;
    bool *wanted;               /* by tensor */
    int *terms, *have;          /* by tensor: terms that there will be, and are */
    int *sum;                   /* by tensor: sum of those, a tensor; -1 before the first */
    int fwd;                    /* forward operator at hand */
    Phase phase;                /* whose calls are bound */
    int term[MAX_TERMS];        /* by operand: its gradient from this operator; -1 none */
} Grad;

/* ---- calls as text ----------------------------------------------------------------------------------------------- */

/* Cuts the next part off a row's calls, "da = dy; f(db, dy, n)"; NULL at the end. */
static const char *next_call(const char **calls)
{
    *calls += strspn(*calls, "; ");
    size_t n = strcspn(*calls, ";");
    const char *text = n ? strf("%.*s", (int)n, *calls) : NULL;
    *calls += n;
    return text;
}

static bool is_word(char c)
{
    return c && !strchr(" ,;=()", c);
}

/* Is d<name> a word of these calls? */
static bool names_gradient(const char *calls, const char *name)
{
    const char *word = strf("d%s", name);
    size_t n = strlen(word);
    for (const char *p = calls; (p = strstr(p, word)); p += n)
        if (!is_word(p[n]) && p > calls && !is_word(p[-1]))
            return true;
    return !strncmp(calls, word, n) && !is_word(calls[n]);
}

/* Position of the operand whose gradient this word is; -1: none. */
static int gradient_of(const Operand *at, int n, const char *word)
{
    return word[0] == 'd' ? INDEX_OF(at, n, word + 1) : -1;
}

/* ---- what there will be ------------------------------------------------------------------------------------------ */

/* Does the loss depend on a result of this operator?  Complains where the way back is missing. */
static bool reached(const Grad *w, const Op *o)
{
    const Row *r = row(o->row);
    bool any = false;
    for (int k = 0; k < o->out.n; k++) {
        if (!w->terms[o->out.at[k]])
            continue;
        any = true;
        if (!names_gradient(r->call[PH_I], r->out.at[k].name) && !names_gradient(r->call[PH_W], r->out.at[k].name))
            bad(o->loc, "use another result", "%s: no gradient comes back through its result %s", o->name,
                r->out.at[k].name);
    }
    return any;
}

/* Its W call adds up statistics, whatever the loss depends on. */
static bool tracks(const Row *r)
{
    return r->par.n && r->par.at[0].tracked;
}

/* One accumulator a use, by ascending parameter and use.  `uses` is descending. */
static void make_accumulators(Grad *w, const Ints *uses)
{
    Graph *g = w->g;
    int params = g->state.n;
    bool stops = false;
    for (int i = 0; i < g->nf; i++)
        stops |= op_is(&g->op.at[i], TRAIT_STOP);
    for (int s = 0; s < params; s++) {
        if (g->state.at[s].kind != S_PARAM || g->state.at[s].frozen)
            continue;
        State p = g->state.at[s];
        if (!uses[s].n && stops)
            bad(p.loc, "name it in train.freeze, or use what is made of it", "no gradient reaches parameter %s", p.name);
        else if (!uses[s].n)
            bad(p.loc, "remove it, or use what is made of it", "the loss does not depend on parameter %s", p.name);
        for (int k = 0; k < uses[s].n; k++) {
            int op = uses[s].at[uses[s].n - 1 - k];
            Shape pairs = {2, {2, p.shape.d[0]}};
            *PUSH(&g->state) = (State){.name = grad_name(&w->taken, strf("%s.grad.%d", p.name, k)), .kind = S_GRAD,
                .type = F32, .shape = p.tracked ? pairs : p.shape, .bytes = p.tracked ? 2 * p.bytes : p.bytes, .param = s,
                .use = k, .op = op, .loc = g->op.at[op].loc};
        }
    }
}

/* ---- tensors and sums -------------------------------------------------------------------------------------------- */

const char *grad_name(Names *taken, const char *name)
{
    while (names_get(taken, name_as_c(name)) >= 0)
        name = strf("%s_", name);
    names_put(taken, name_as_c(name), 0);
    return name;
}

/* The tensor that its gradient is added to: whoever reads what was gathered gives a term to what it was gathered from. */
static int part_of(const Graph *g, int of)
{
    const Tensor *t = &g->tensor.at[of];
    return t->op >= 0 && op_is(&g->op.at[t->op], TRAIT_GATHER) ? g->op.at[t->op].in.at[0] : of;
}

static int new_like(Grad *w, int like, int of, const char *name)
{
    Graph *g = w->g;
    Tensor x = g->tensor.at[like];
    x.name = grad_name(&w->taken, name);
    x.kind = T_GRAD;
    x.op = g->op.n - 1;
    x.of = of;
    x.loc = g->op.at[w->fwd].loc;
    if (x.type == I32) {                /* codes of its own size */
        x.shape.d[x.shape.n - 1] = attr_int(&g->op.at[w->fwd], "back_words");
        x.bytes = shape_elements(&x.shape) * type_bytes(I32);
    }
    *PUSH(&g->tensor) = x;
    return g->tensor.n - 1;
}

static int new_gradient(Grad *w, int of, const char *name) { return new_like(w, of, of, name); }

static Op *new_op(Grad *w, int row, Phase phase)
{
    Op *o = PUSH(&w->g->op);
    const Op *f = &w->g->op.at[w->fwd];
    *o = (Op){.name = f->name, .layer = f->layer, .row = row, .phase = phase, .fwd = w->fwd, .loc = f->loc};
    return o;
}

static int add(Grad *w, int of, int a, int b, const char *name)
{
    const Op *made = &w->g->op.at[w->g->tensor.at[of].op];
    bool loss = false;          /* floats, whatever the compute type is */
    for (int k = 0; k < made->out.n; k++)
        loss |= made->out.at[k] == of && row(made->row)->out.at[k].type == 'f';
    Op *o = new_op(w, row_find(loss ? "LossAdd" : "GradAdd"), PH_I);
    int y = new_gradient(w, of, name);
    *PUSH(&o->in) = a;
    *PUSH(&o->in) = b;
    *PUSH(&o->out) = y;
    attr_set(o, "n", shape_elements(&w->g->tensor.at[y].shape));
    bind_forward(w->g, o);
    return y;
}

/* The device's part of a term. */
static int cut(Grad *w, int of, int term)
{
    Op *o = new_op(w, row_find("GradPart"), PH_I);
    int y = new_like(w, part_of(w->g, of), of, strf("%s.part", w->g->tensor.at[term].name));
    *PUSH(&o->in) = term;
    *PUSH(&o->out) = y;
    ATTRS(o, {"n", shape_elements(&w->g->tensor.at[y].shape)}, {"whole", shape_elements(&w->g->tensor.at[term].shape)});
    bind_forward(w->g, o);
    return y;
}

/* ---- one operator ------------------------------------------------------------------------------------------------ */

/* Number of the term that operand k will be. */
static int term_number(const Grad *w, const Ints *in, int k)
{
    int of = part_of(w->g, in->at[k]), n = w->have[of] + 1;
    for (int i = 0; i < k; i++)
        n += in->at[i] >= 0 && part_of(w->g, in->at[i]) == of;
    return n;
}

/* The whole gradient of result k. */
static int result_gradient(const Grad *w, const Op *f, int k)
{
    int t = f->out.at[k];
    if (!w->terms[t] || w->have[t] != w->terms[t])
        die("%s: the gradient of its result %s has %d of %d terms", f->name, row(f->row)->out.at[k].name, w->have[t],
            w->terms[t]);
    return w->sum[t];
}

/* For bind_call: the tensor that a word such as dx or dy means here. */
static int gradient_tensor(void *ctx, const char *word, bool *write)
{
    Grad *w = ctx;
    const Op *f = &w->g->op.at[w->fwd];
    const Row *r = row(f->row);
    int k = gradient_of(r->in.at, r->in.n, word);
    if (k < 0)
        return result_gradient(w, f, gradient_of(r->out.at, r->out.n, word));
    int of = f->in.at[k];
    if (w->phase == PH_W) {
        if (w->term[k] < 0)
            die("%s: row %s reads %s in W, and I has not made it", f->name, r->name, word);
        return w->term[k];
    }
    *write = true;
    if (of < 0 || !w->wanted[of])
        return -1;
    const int to = part_of(w->g, of);
    const char *name = strf("d.%s", w->g->tensor.at[to].name);
    w->term[k] = new_gradient(w, of, w->terms[to] == 1 ? name : strf("%s.t%d", name, term_number(w, &f->in, k)));
    return w->term[k];
}

/* "da = dy" */
static void alias(Grad *w, const char *text)
{
    const Op *f = &w->g->op.at[w->fwd];
    const Row *r = row(f->row);
    const char *from = strchr(text, '=') + 1;
    from += strspn(from, " ");
    int k = gradient_of(r->in.at, r->in.n, strf("%.*s", (int)strcspn(text, " ="), text));
    int y = gradient_of(r->out.at, r->out.n, strf("%.*s", (int)strcspn(from, " "), from));
    if (k < 0 || y < 0)
        die("row %s: cannot read '%s'", r->name, text);
    if (f->in.at[k] >= 0 && w->wanted[f->in.at[k]])
        w->term[k] = result_gradient(w, f, y);
}

static bool writes(const Op *o)
{
    for (int i = 0; i < o->arg.n; i++)
        if (o->arg.at[i].kind == ARG_WRITE || o->arg.at[i].kind == ARG_ADD)
            return true;
    return false;
}

/* The calls of one phase; one that would make nothing anybody wants is taken back. */
static void bind_phase(Grad *w, Phase phase)
{
    const Row *r = row(w->g->op.at[w->fwd].row);
    const char *calls = r->call[phase], *text;
    w->phase = phase;
    while ((text = next_call(&calls))) {
        if (strchr(text, '=')) {
            alias(w, text);
            continue;
        }
        Op *o = new_op(w, w->g->op.at[w->fwd].row, phase);
        const Op *f = &w->g->op.at[w->fwd];
        bind_call(w->g, o, text, f, gradient_tensor, w);
        op_work(o, f, w->g->compute, r->flop[phase]);
        for (EACH(const Arg, a, o->arg))            /* without the gradient of a weight, its work */
            if (row(o->row)->product && a->kind == ARG_NONE && !strcmp(a->token, "dweight"))
                o->flop = max_of(o->flop - (f->flop - f->pass_flop), o->pass_flop);
        if (!writes(o))
            w->g->op.n--;
    }
}

static void backward(Grad *w)
{
    for (int i = w->g->nf - 1; i >= 0; i--) {
        const Op *f = &w->g->op.at[i];
        Ints in = f->in;
        if (in.n > MAX_TERMS)
            die("%s has %d operands", f->name, in.n);
        bool back = reached(w, f);
        if (!back && !tracks(row(f->row)))
            continue;
        w->fwd = i;
        memset(w->term, -1, sizeof w->term);
        if (back) {
            bind_phase(w, PH_I);
            /* Add the terms of the operator at hand, in operand order. */
            for (int k = 0; k < in.n; k++) {
                if (in.at[k] < 0 || w->term[k] < 0)
                    continue;
                int of = part_of(w->g, in.at[k]), n = ++w->have[of];
                int term = of == in.at[k] ? w->term[k] : cut(w, in.at[k], w->term[k]);
                const char *whole = strf("d.%s", w->g->tensor.at[of].name);
                w->sum[of] = n == 1 ? term
                    : add(w, of, w->sum[of], term, n == w->terms[of] ? whole : strf("%s.s%d", whole, n));
            }
        }
        bind_phase(w, PH_W);
    }
}

/* ---- the pass ---------------------------------------------------------------------------------------------------- */

void grad(Graph *g, const Model *m)
{
    if (infers(m))
        return;
    size_t n = (size_t)g->tensor.n;
    Grad w = {.g = g, .wanted = alloc(n * sizeof(bool)), .terms = alloc(n * sizeof(int)),
              .have = alloc(n * sizeof(int)),
              .sum = alloc(n * sizeof(int))};
    Ints *uses = alloc((size_t)g->state.n * sizeof *uses);
    memset(w.sum, -1, n * sizeof *w.sum);
    for (int i = 0; i < w.g->tensor.n; i++)
        names_put(&w.taken, name_as_c(w.g->tensor.at[i].name), 0);
    for (int i = 0; i < w.g->state.n; i++)
        names_put(&w.taken, name_as_c(w.g->state.at[i].name), 0);
    for (int i = 0; i < w.g->nf; i++) {
        const Op *o = &w.g->op.at[i];
        bool depends = false;
        for (int k = 0; k < o->par.n; k++)
            depends |= o->par.at[k] >= 0 && !row(o->row)->par.at[k].tracked && !w.g->state.at[o->par.at[k]].frozen;
        for (int k = 0; k < o->in.n; k++)
            depends |= o->in.at[k] >= 0 && w.wanted[o->in.at[k]];
        for (int k = 0; k < o->out.n; k++)
            w.wanted[o->out.at[k]] = depends && !op_is(o, TRAIT_STOP) &&
                (row(o->row)->out.at[k].type != 'i' || op_is(o, TRAIT_CODE));
    }
    /* Terms of every tensor, and the uses of every parameter that get a gradient, or of statistics. */
    w.terms[w.g->loss] = w.wanted[w.g->loss];
    for (int i = w.g->nf - 1; i >= 0; i--) {
        const Op *o = &w.g->op.at[i];
        const Row *r = row(o->row);
        bool back = reached(&w, o);
        if (!back && !tracks(r))
            continue;
        for (int k = 0; back && k < o->in.n; k++) {
            if (o->in.at[k] < 0 || !w.wanted[o->in.at[k]] || r->in.at[k].fixed)
                continue;
            if (!names_gradient(r->call[PH_I], r->in.at[k].name))
                die("%s: row %s gives no gradient of %s", o->name, r->name, r->in.at[k].name);
            w.terms[part_of(g, o->in.at[k])]++;
        }
        for (int k = 0; k < o->par.n; k++)
            if (o->par.at[k] >= 0 && !g->state.at[o->par.at[k]].frozen)
                *PUSH(&uses[o->par.at[k]]) = i;
    }
    make_accumulators(&w, uses);
    bad_stop();
    w.fwd = w.g->tensor.at[w.g->loss].op;
    Op *o = new_op(&w, row_find("LossSeed"), PH_I);
    int y = new_gradient(&w, w.g->loss, strf("d.%s", w.g->tensor.at[w.g->loss].name));
    *PUSH(&o->out) = y;
    bind_forward(w.g, o);
    w.sum[w.g->loss] = y;
    w.have[w.g->loss] = 1;
    backward(&w);
    g->nb = g->op.n;
    update(g, m, &w.taken);
}
