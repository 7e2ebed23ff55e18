/* SPDX-License-Identifier: Apache-2.0
 *
 * unit.c: a graph of operators as a chain of layers.
 *
 * Problem: the published layer planners work on the modules of a framework; a graph of operators has no modules.
 *
 * Method: a unit ends behind every residual addition: an Add with an operand that has been read before, alone or joined to the
 * call before it.  A unit is then half a transformer layer; the 24 layers of BERT-large and its head make 49 units.  A model
 * with too few residual additions has its layers as units, and one with too few layers its operators.  A cut that the user asks
 * for is always a border; one that is forbidden is none.
 *
 * Repeated blocks, for planners that want equal ones, are read off the layer names h.0, h.1, ... that `repeat` in the YAML
 * made.  Blocks inside of blocks belong to the outermost.
 *
 * Source: the published plans for vPipe and for PipeDream by the authors of vPipe have this granularity (Zhao et al., vPipe,
 * 2022, and its repository).
 *
 * Cost: linear in the operands of the graph.  Not handled: units that are no run of the model's order.
 */
#include "rivals.h"
#include "planner.h"

typedef enum { BY_ADDITION, BY_LAYER, BY_OPERATOR, WAYS } Grouping;

/* By forward operator: does it add a tensor that another operator has read already? */
static bool *additions(const Graph *g)
{
    bool *read = alloc((size_t)g->tensor.n), *add = alloc((size_t)g->nf);
    for (int o = 0; o < g->nf; o++) {
        const Op *op = &g->op.at[o];
        for (EACH(const Arg, a, op->arg)) {
            if (a->kind != ARG_READ || a->state)
                continue;
            bool adds = op_is(op, TRAIT_SUM) || arg_role(a) == ROLE_ONTO;
            add[o] |= read[a->index] && g->tensor.at[a->index].kind == T_ACT && adds;
            read[a->index] = true;
        }
    }
    return add;
}

static bool border(const Graph *g, const char *cut, const bool *add, Grouping way, int o)
{
    if (o + 1 == g->nf || cut[o] != CUT_MAY)
        return o + 1 == g->nf || cut[o] == CUT_MUST;
    if (way == BY_ADDITION)
        return add[o];
    return way == BY_OPERATOR || strcmp(g->op.at[o].layer, g->op.at[o + 1].layer);
}

static int count(const Graph *g, const char *cut, const bool *add, Grouping way)
{
    int n = 0;
    for (int o = 0; o < g->nf; o++)
        n += border(g, cut, add, way, o);
    return n;
}

static void lay_out(Units *u, const Graph *g, const char *cut, int least)
{
    const bool *add = additions(g);
    Grouping way = BY_ADDITION;
    while (way < BY_OPERATOR && count(g, cut, add, way) < least)
        way++;
    size_t n = (size_t)count(g, cut, add, way);
    u->of = alloc(sizeof *u->of * (size_t)g->nf);
    u->last = alloc(sizeof *u->last * n);
    u->must = alloc(n);
    for (int o = 0; o < g->nf; o++) {
        u->of[o] = u->n;
        if (border(g, cut, add, way, o)) {
            u->must[u->n] = cut[o] == CUT_MUST;
            u->last[u->n++] = o;
        }
    }
}

static void take_tensors(Units *u, const Graph *g, const int *of)
{
    int *until = alloc(sizeof *until * (size_t)g->tensor.n);    /* last unit that reads it in forward */
    bool *back = alloc((size_t)g->tensor.n);
    for (int o = 0; o < g->nb; o++)
        for (EACH(const Arg, a, g->op.at[o].arg)) {
            if (a->kind != ARG_READ || a->state)
                continue;
            back[a->index] |= o >= g->nf;
            if (o < g->nf && of[o] > until[a->index])
                until[a->index] = of[o];
        }
    for (int t = 0; t < g->tensor.n; t++) {
        const Tensor *x = &g->tensor.at[t];
        if (x->op < 0 || x->op >= g->nf)
            continue;
        u->made[of[x->op]] += x->bytes;
        u->saved[of[x->op]] += back[t] ? x->bytes : 0;
        for (int k = of[x->op]; k < until[t]; k++)
            u->out[k] += x->bytes;
    }
}

static void take_states(Units *u, const Plan *p, const int *of)
{
    const Graph *g = p->g;
    bool *copied = alloc((size_t)g->state.n);
    for (int s = 0; s < g->state.n; s++)
        if (g->state.at[s].kind == S_COPY)
            copied[g->state.at[s].param] = true;
    for (int s = 0; s < g->state.n; s++) {
        const State *x = &g->state.at[s];
        if (x->param < 0 || copy_alone(g, s))
            continue;
        int grad = x->kind == S_GRAD, at = of[grad ? x->op : g->state.at[x->param].op];
        u->states[at] += x->bytes * (grad ? order_accumulators(p, -1) : 1);
        u->grads[at] += grad ? x->bytes : 0;
        if (x->kind == S_COPY || (x->kind == S_PARAM && !copied[s]))
            u->params[at] += x->bytes;
    }
}

Units units_of(const Plan *p, const char *cut, int least)
{
    const Graph *g = p->g;
    Units u = {0};
    lay_out(&u, g, cut, least);
    const int *of = u.of;
    size_t n = sizeof(int64_t) * (size_t)u.n;
    u.forward = alloc(n);
    u.time = alloc(n);
    u.out = alloc(n);
    u.made = alloc(n);
    u.saved = alloc(n);
    u.params = alloc(n);
    u.states = alloc(n);
    u.grads = alloc(n);
    for (int o = 0; o < g->nb; o++) {
        u.time[of[g->op.at[o].fwd]] += cost_op(p->c, 0, o);
        u.forward[of[g->op.at[o].fwd]] += o < g->nf ? cost_op(p->c, 0, o) : 0;
    }
    take_tensors(&u, g, of);
    take_states(&u, p, of);
    return u;
}

/* Copies are taken to stand where replicas do. */
Ns units_exchange(const Plan *p, int stage, Bytes bytes, int copies)
{
    const int device = stage_of(p, stage), end = p->m->devices.n - 1;
    Ns sum = 0;
    for (int away = 1; away < copies; away *= 2) {
        int other = device + away * p->devices < end ? device + away * p->devices : end;
        sum += 2 * cost_wire(p->c, device, other, bytes / (2 * away));
    }
    return sum;
}

/* ---- repeats ----------------------------------------------------------------------------------------------------- */

/* encoder.block.3.layer.1 -> 3, and the length of encoder.block; -1: no part of the name is a number */
static int number_of(const char *layer, int *prefix)
{
    for (const char *dot = strchr(layer, '.'); dot; dot = strchr(dot + 1, '.')) {
        size_t digits = strspn(dot + 1, "0123456789");
        if (digits == 0 || digits > 6 || (dot[1 + digits] && dot[1 + digits] != '.'))
            continue;
        *prefix = (int)(dot - layer);
        return atoi(dot + 1);
    }
    return -1;
}

/* Does operator o stand in repetition `number` of the blocks with this prefix of `length` bytes? */
static bool stands_in(const Graph *g, int o, const char *prefix, int length, int number)
{
    int other;
    const char *name = g->op.at[o].layer;
    return number_of(name, &other) == number && other == length && !strncmp(name, prefix, (size_t)length);
}

Repeats repeats_of(const Graph *g)
{
    Repeats all = {0};
    for (int o = 0, next; o < g->nf; o = next) {
        const char *layer = g->op.at[o].layer;
        Repeat r = {0};
        int length;
        next = o + 1;
        if (number_of(layer, &length) != 0)
            continue;
        for (next = o; next < g->nf && stands_in(g, next, layer, length, r.last.n);) {
            while (next + 1 < g->nf && stands_in(g, next + 1, layer, length, r.last.n))
                next++;
            *PUSH(&r.last) = next++;
        }
        if (r.last.n > 1)
            *PUSH(&all) = r;
    }
    return all;
}
