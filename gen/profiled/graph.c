/* SPDX-License-Identifier: Apache-2.0
 *
 * graph.c: a Graph of opaque operators, so that the whole line runs on graphs that others have profiled.
 *
 * A node becomes two operators.  The forward operator reads the outputs of its sources, and writes its own output and the
 * tensor that it saves.  The backward operator reads the gradient of its output and the saved tensor, writes a term of the
 * gradient of each output it read, and adds to the gradient of its parameter.  Times are those of the file.  Sums of gradient
 * terms and updates, which the file does not know, take none.  Backward gives input and parameter gradients at once, so it
 * runs in phase I, like the inseparable operators of dpgen's own table.  A node with a weight has a third operator, in phase
 * W: it adds to the gradient of the parameter, in that share of the time of backward.
 *
 *   terms   as in grad.c: descending readers, the first starts the sum, GradAdd after each later reader
 *   bytes   f32, so rounded up to 4, and at least 4 for a tensor that is read; states follow the model's optimizer
 *   loss    the last node writes it next to its output
 *
 * Every edge carries a gradient back, as in PipeDream's cost of a cut, 2 bytes over bandwidth.  With plan.mode infer there is
 * no backward and no loss, and what nobody reads leaves the job.
 *
 * needs   nodes sorted.  fills   all of Graph, timed, Op.ns.  fails   bad() where the model wants other micro-batches than
 * the file has times for.
 */
#include "foreign.h"
#include "rewrite/rewrite.h"
#include "rt/rt.h"
#include <math.h>

typedef struct {
    const Foreign *f;
    Graph *g;
    Names taken;
    bool infers;
    int *output, *saved;        /* by node: tensors; saved -1: none */
    int *param, *grad;          /* by node: states; -1: none */
    int *sum, *have;            /* by node: sum of the terms of the gradient of its output so far, and their number */
} Maker;

static Shape words(Bytes bytes)
{
    Bytes n = bytes > 0 ? (bytes + 3) / 4 : 1;
    return (Shape){1, {n}};
}

static int new_tensor(Maker *x, const char *name, TensorKind kind, Bytes bytes, int of, Loc loc)
{
    Graph *g = x->g;
    Shape s = words(bytes);
    *PUSH(&g->tensor) = (Tensor){.name = grad_name(&x->taken, name), .kind = kind, .type = F32, .shape = s,
                                 .bytes = s.d[0] * 4, .op = g->op.n - 1, .of = of, .loc = loc};
    return g->tensor.n - 1;
}

static int new_state(Maker *x, const char *name, StateKind kind, Bytes bytes, int node)
{
    Graph *g = x->g;
    Shape s = words(bytes);
    *PUSH(&g->state) = (State){.name = grad_name(&x->taken, name), .kind = kind, .type = F32, .shape = s, .bytes = s.d[0] * 4,
                               .param = kind == S_PARAM ? g->state.n - 1 : -1, .op = node, .init = {.name = "weight"},
                               .loc = x->f->node.at[node].loc};
    return g->state.n - 1;
}

static void add_arg(Maker *x, const char *token, ArgKind kind, bool state, int index)
{
    Op *o = &x->g->op.at[x->g->op.n - 1];
    *PUSH(&o->arg) = (Arg){.kind = kind, .token = token, .state = state, .index = index};
}

/* What a phase of a node takes of its times. */
static Ns part_of(const ForeignNode *n, const ForeignTime *t, Phase phase)
{
    Ns weight = (Ns)floor(n->share * (double)t->backward + 0.5);
    return phase == PH_F ? t->forward : phase == PH_W ? weight : t->backward - weight;
}

static Op *new_op(Maker *x, int node, Phase phase, const char *row_name, const char *call)
{
    const ForeignNode *n = &x->f->node.at[node];
    Op *o = PUSH(&x->g->op);
    *o = (Op){.name = n->name, .layer = "", .row = row_find(row_name), .phase = phase, .call = call, .fwd = node,
              .loc = n->loc};
    if (call)
        o->ns = part_of(n, &n->time, phase);
    for (int k = 0; k < n->on.n && call; k++)
        *PUSH(&o->on) = part_of(n, &n->on.at[k], phase);
    return o;
}

static void make_states(Maker *x)
{
    Graph *g = x->g;
    int n = x->f->node.n;
    g->vals = 0;
    *PUSH(&g->state) = (State){.name = grad_name(&x->taken, "values"), .kind = S_VALUES, .type = F32, .param = -1, .op = -1,
                               .shape = {1, {(int64_t)sizeof(Values) / 4}}, .bytes = (Bytes)sizeof(Values)};
    for (int i = 0; i < n; i++) {
        const ForeignNode *node = &x->f->node.at[i];
        x->param[i] = node->params > 0 ? new_state(x, strf("%s.weight", node->name), S_PARAM, node->params, i) : -1;
    }
    for (int s = 0; s < g->state.n; s++)
        g->state.at[s].frozen = x->infers && g->state.at[s].kind == S_PARAM;
    for (int i = 0; i < n && !x->infers; i++) {
        const char *name = x->param[i] < 0 ? NULL : strf("%s.weight.grad.0", x->f->node.at[i].name);
        x->grad[i] = name ? new_state(x, name, S_GRAD, x->f->node.at[i].params, i) : -1;
        if (name)
            g->state.at[x->grad[i]].param = x->param[i];
    }
}

static void forward(Maker *x, int node)
{
    const ForeignNode *n = &x->f->node.at[node];
    bool last = node == x->f->node.n - 1 && !x->infers;
    new_op(x, node, PH_F, "Opaque", "opaque_forward");
    x->output[node] = new_tensor(x, n->name, T_ACT, n->output, -1, n->loc);
    add_arg(x, "y", ARG_WRITE, false, x->output[node]);
    x->saved[node] = n->saved == SAVED_OUTPUT ? x->output[node] : -1;
    if (n->saved > 0) {
        x->saved[node] = new_tensor(x, strf("%s.saved", n->name), T_ACT, n->saved, -1, n->loc);
        add_arg(x, "saved", ARG_WRITE, false, x->saved[node]);
    }
    if (last) {
        x->g->loss = new_tensor(x, "loss", T_ACT, 4, -1, n->loc);
        add_arg(x, "loss", ARG_WRITE, false, x->g->loss);
    }
    for (int i = 0; i < n->from.n; i++)
        add_arg(x, strf("x%d", i), ARG_READ, false, x->output[n->from.at[i]]);
    if (x->param[node] >= 0)
        add_arg(x, "weight", ARG_READ, true, x->param[node]);
}

/* b, the term of this reader, joins the sum of the gradient of a node's output. */
static void add_term(Maker *x, int reader, int node, int b)
{
    Graph *g = x->g;
    int of = x->output[node], a = x->sum[node], terms = x->f->node.at[node].to.n, n = ++x->have[node];
    x->sum[node] = b;
    if (n == 1)
        return;
    const char *whole = strf("d.%s", g->tensor.at[of].name);
    Op *o = new_op(x, reader, PH_I, "GradAdd", NULL);
    x->sum[node] = new_tensor(x, n == terms ? whole : strf("%s.s%d", whole, n), T_GRAD, g->tensor.at[of].bytes, of, o->loc);
    *PUSH(&o->in) = a;
    *PUSH(&o->in) = b;
    *PUSH(&o->out) = x->sum[node];
    attr_set(o, "n", g->tensor.at[of].shape.d[0]);
    bind_call(g, o, row(o->row)->call[PH_F], NULL, NULL, NULL);
}

/* The gradient of the node's output, and what its forward saved. */
static void read_saved(Maker *x, int node)
{
    if (x->sum[node] >= 0)
        add_arg(x, "dy", ARG_READ, false, x->sum[node]);
    if (x->saved[node] >= 0)
        add_arg(x, x->saved[node] == x->output[node] ? "y" : "saved", ARG_READ, false, x->saved[node]);
}

static void add_gradient(Maker *x, int node)
{
    add_arg(x, "dweight", ARG_ADD, true, x->grad[node]);
    add_arg(x, "acc", ARG_ACC, false, -1);
}

static void backward(Maker *x, int node)
{
    const ForeignNode *n = &x->f->node.at[node];
    int first = x->g->tensor.n;
    new_op(x, node, PH_I, "Opaque", "opaque_backward");
    for (int i = 0; i < n->from.n; i++) {
        const ForeignNode *source = &x->f->node.at[n->from.at[i]];
        int of = x->output[n->from.at[i]], number = x->have[n->from.at[i]] + 1;
        const char *name = strf("d.%s", x->g->tensor.at[of].name);
        add_arg(x, strf("dx%d", i), ARG_WRITE, false,
                new_tensor(x, source->to.n == 1 ? name : strf("%s.t%d", name, number), T_GRAD, x->g->tensor.at[of].bytes, of,
                           n->loc));
    }
    read_saved(x, node);
    if (x->param[node] >= 0)
        add_arg(x, "weight", ARG_READ, true, x->param[node]);
    if (x->param[node] >= 0 && !n->apart)
        add_gradient(x, node);
    for (int i = 0; i < n->from.n; i++)
        add_term(x, node, n->from.at[i], first + i);
    if (!n->apart)
        return;
    new_op(x, node, PH_W, "Opaque", "opaque_weight");
    read_saved(x, node);
    add_gradient(x, node);
}

/* What nobody reads is what the job is for. */
static void leave(Maker *x, int node, int number)
{
    Graph *g = x->g;
    Op *o = new_op(x, node, PH_F, "Output", NULL);
    o->name = strf("output.%d", number);
    o->fwd = g->op.n - 1;
    *PUSH(&o->in) = x->output[node];
    ATTRS(o, {"output", number}, {"n", g->tensor.at[x->output[node]].shape.d[0]});
    bind_call(g, o, row(o->row)->call[PH_F], NULL, NULL, NULL);
}

static int *numbers(int n, int value)
{
    int *list = alloc(sizeof *list * (size_t)(n + 1));
    for (int i = 0; i < n; i++)
        list[i] = value;
    return list;
}

Graph *foreign_graph(const Foreign *f, const Model *m)
{
    int n = f->node.n;
    Graph *g = alloc(sizeof *g);
    if (m->train.batch != f->batch)
        bad(f->head, strf("train.batch.micro=%" PRId64, f->batch), "times and bytes are those of %s a micro-batch, not of %"
            PRId64, count_text(f->batch, "sample"), m->train.batch);
    bad_stop();
    *g = (Graph){.name = m->name, .compute = F32, .batch = f->batch, .micro = m->train.micro, .groups = m->train.groups,
                 .nf = n, .loss = -1, .timed = true, .kind = f->kind};
    Maker x = {.f = f, .g = g, .infers = infers(m), .output = numbers(n, -1), .saved = numbers(n, -1), .param = numbers(n, -1),
               .grad = numbers(n, -1), .sum = numbers(n, -1), .have = numbers(n, 0)};
    make_states(&x);
    for (int i = 0; i < n; i++)
        forward(&x, i);
    for (int i = n - 1; i >= 0 && !x.infers; i--)
        backward(&x, i);
    for (int i = 0, k = 0; i < n && x.infers; i++)
        if (f->node.at[i].to.n == 0)
            leave(&x, i, k++);
    g->nf = x.infers ? g->op.n : n;
    g->nb = g->op.n;
    update(g, m, &x.taken);
    check_graph(g);
    return g;
}
