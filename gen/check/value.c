/* SPDX-License-Identifier: Apache-2.0
 *
 * value.c: what check.h promises.  Cost: the uses of a parameter, and once for a graph its states.
 */
#include "check.h"

CheckValue value_mix(CheckValue a, uint64_t b)
{
    a ^= b + 0x9e3779b97f4a7c15u + (a << 6) + (a >> 2);
    a *= 0xbf58476d1ce4e5b9u;
    return a ^ (a >> 29);
}

static CheckValue number(uint64_t kind, uint64_t what, uint64_t a, uint64_t b)
{
    return value_mix(value_mix(value_mix(value_mix(kind, what), a), b), kind);
}

CheckValue value_tensor(int t, int mb, int step)
{
    return number(1, (uint64_t)t, (uint64_t)(mb < 0 ? 0 : mb), (uint64_t)step);
}

CheckValue value_gradient(int state, ValueChain c, int step)
{
    return number(2, (uint64_t)state, (uint64_t)step, (uint64_t)c.from << 32 | (uint32_t)c.to);
}

CheckValue value_state(int state, int updates)
{
    return number(3, (uint64_t)state, (uint64_t)updates, 0);
}

CheckValue value_norm(int state, int partials, int step)
{
    return number(4, (uint64_t)state, (uint64_t)partials, (uint64_t)step);
}

CheckValue value_step(int step)
{
    return number(5, (uint64_t)step, 0, 0);
}

CheckValue value_predicted(int state, int updates, int ahead)
{
    return number(6, (uint64_t)state, (uint64_t)updates, (uint64_t)ahead);
}

/* Where part i of `rows` begins: of the blocks of the norm, with 64 bytes or a multiple in each bundle. */
static Bytes border(const Plan *p, int state, int rows, int i)
{
    const Blocks *rule = &library_of(&p->m->devices.at[0])->blocks;
    const State *x = &p->g->state.at[state];
    int64_t wide = x->type == BF16 ? 2 : 4, n = x->bytes / wide, block = n / rule->most + (n % rule->most > 0);
    while (block % rule->round)
        block++;
    block = block < rule->least ? rule->least : block;
    while (block & 15)
        block += block;
    int64_t at = ((n + block - 1) / block * i + x->param % rows) / rows * block;
    return at < n && i < rows ? at * wide : x->bytes;
}

/* Copies of the chunk of a state; chunk -1: of the model. */
static int copies(const Plan *p, int chunk)
{
    return plan_uneven(p) && chunk >= 0 ? p->m->plan.widths.at[plan_home(p, 0, chunk)] : plan_rows(p);
}

Kept value_kept(const Plan *p, int row, int state, int levels)
{
    int op = p->g->state.at[state].op, rows = copies(p, op < 0 ? -1 : p->chunk.at[op]), low = 0, high = rows;
    for (int l = 0; l < levels; l++)
        *(row >> l & 1 ? &low : &high) = (low + high) / 2;
    return (Kept){border(p, state, rows, low), border(p, state, rows, high)};
}

static ValueChain tree(int row, int level, int micro)
{
    int from = row >> level << level;
    return (ValueChain){from * micro, (from + (1 << level)) * micro};
}

ValueChain value_row(const Plan *p, int row)
{
    return tree(row, 0, plan_micro(p));
}

ValueChain value_subtree(const Plan *p, int device, int chunk, int level)
{
    int row = chunk < 0 ? plan_replica(p, device) : plan_row_of(p, device, chunk), each = plan_rows(p) / copies(p, chunk);
    return tree(row / each, level, each * plan_micro(p));
}

/* Where a replica has one pipeline.  Statistics that batches track are no sums over uses.  With train.shard those whose norm
 * wants all that a device of a stage has. */
bool value_joined(const Plan *p, int param)
{
    const State *s = &p->g->state.at[param];
    bool goes = !p->m->train.shard || (s->outer && !s->frozen && p->m->train.clip != 0);
    return goes && plan_rows(p) > 1 && plan_rows(p) == plan_replicas(p) && !plan_uneven(p) && !p->g->state.at[param].tracked;
}

/* Not one that the devices of a stage want whole; not one of several groups in a row. */
bool value_dropped(const Plan *p, int state)
{
    const State *s = &p->g->state.at[state], *of = s->param >= 0 ? &p->g->state.at[s->param] : s;
    return s->kind == S_GRAD && p->m->train.shard > SHARD_OPTIMIZER && plan_rows(p) > 1 && !of->tracked && !of->frozen &&
           !value_joined(p, s->param) && p->g->groups == plan_rows(p);
}

/* No tied one, and none that the devices of a stage divide. */
bool value_parted(const Plan *p, int param)
{
    const State *of = &p->g->state.at[param];
    bool parted = p->m->train.shard == SHARD_PARAMETERS && plan_rows(p) > 1 && !of->tracked && !of->frozen && !of->outer;
    for (int s = 0; parted && s < p->g->state.n; s++)
        parted = p->g->state.at[s].kind != S_GRAD || p->g->state.at[s].param != param || !p->g->state.at[s].use;
    return parted;
}

bool value_filled(const Plan *p, int state)
{
    const State *s = &p->g->state.at[state];
    bool first = s->kind == S_COPY;
    for (int i = 0; s->kind == S_PARAM && i < p->g->state.n; i++)
        first |= i != state && p->g->state.at[i].kind == S_COPY && p->g->state.at[i].param == state;
    return (s->kind == S_COPY || (s->kind == S_PARAM && !first)) && value_parted(p, s->param);
}

bool value_joins(const Plan *p, const Op *o)
{
    bool tie = o->phase == PH_U && op_is(o, TRAIT_TIE);
    return tie && value_joined(p, p->g->state.at[o->arg.at[0].index].param);
}

int value_cut(const Plan *p, const Op *o)
{
    bool shard = p->m->train.shard && plan_rows(p) > 1 && o->phase == PH_U && row(o->row)->element;
    if (o->phase == PH_U && op_is(o, TRAIT_NARROW) && value_parted(p, p->g->state.at[o->arg.at[0].index].param))
        return p->g->state.at[o->arg.at[0].index].param;
    if (!shard && !value_joins(p, o))
        return -1;
    const State *s = &p->g->state.at[o->arg.at[0].index];
    return s->param < 0 ? p->g->state.at[o->arg.at[1].index].param : s->param;
}

/* Gradients of one parameter stand on a list that begins at it. */
const int *value_uses(const Graph *g)
{
    size_t n = (size_t)g->state.n + 1;
    int *first = alloc(sizeof *first * n), *next = alloc(sizeof *next * n), *later = alloc(sizeof *later * n);
    for (int i = 0; i < g->state.n; i++) {
        int param = g->state.at[i].param;
        if (g->state.at[i].kind != S_GRAD)
            continue;
        next[i] = first[param];
        first[param] = i + 1;
    }
    for (int i = 0; i < g->state.n; i++) {
        const State *s = &g->state.at[i];
        later[i] = -1;
        for (int k = s->kind == S_GRAD ? first[s->param] : 0; k > 0; k = next[k - 1])
            if (g->state.at[k - 1].use == s->use + 1)
                later[i] = k - 1;
    }
    return later;
}

CheckValue value_tied(const int *uses, int state, ValueChain c, int step)
{
    CheckValue local = value_gradient(state, c, step);
    return uses[state] < 0 ? local : value_mix(local, value_tied(uses, uses[state], c, step));
}
