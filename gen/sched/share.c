/* SPDX-License-Identifier: Apache-2.0
 *
 * share.c: which part of a gradient each row of replica.c adds up.
 *
 * Problem: a butterfly of whole gradients moves log2 r times their bytes; the least is 2 (r-1) / r times.
 *
 * Method: recursive halving and doubling.  A gradient is cut into r parts.  At level l of the tree, rows q and q xor 2^l hold
 * the sums of their subtrees over the same range.  Each sends the half that the other one keeps, and adds the half that it
 * keeps.  After log2 r levels each row has one part of the whole sum.  Every element was added in the order of the tree, so its
 * bits are those of a butterfly.  Then the levels are walked down: at each, two rows send each other all that they have.
 * The first level moves most bytes, between neighbours.
 *
 * Parts begin at multiples of a block: the blocks in which the norm of a gradient is added up (targets.def), as many together
 * as make whole cache lines.  With fewer blocks than rows, some parts are empty, and no message carries them.  Parameters take
 * turns in who has an empty one.
 *
 * Uses of a tied parameter go up the tree each by itself: what they add up to would otherwise depend on the number of rows.
 * At the top they are added, part by part, and the sum alone goes down.
 *
 * With train.shard: optimizer the way down is that of the parameters.  A row has the moments of its own part alone, and updates
 * that part behind the way up (ZeRO, stage 1).  Parameters that batches track are not sharded.  The devices of a stage that
 * share a parameter need all of its gradient for the norm: with clipping its sum goes down as that of ties does.  Its bytes are
 * 3/2 of what they were.
 *
 * With train.shard: gradients the last level adds a row's part where the other row's sum has arrived, not in the accumulator:
 * a+b is b+a.  Behind that the accumulator is free until the next backward of its chunk, and the part alone goes on (ZeRO,
 * stage 2).  Sums over the micro-batches of a row are made before those over rows, as the tree has it: added to other rows
 * after each micro-batch, a gradient would have other bits.  So an accumulator is whole while its chunk is in backward.  A
 * schedule that ends one chunk's backward before it begins another's, such as breadth-first, has few of them at once.
 *
 * With train.shard: parameters a row keeps its part of a parameter too.  The whole is in a room while computations of its chunk
 * read it: the row's part is put there, and the way down of a sum brings the others.  When that is, order.c says (ZeRO, stage
 * 3).
 *
 * Source: Rabenseifner, Optimization of Collective Reduction Operations, ICCS 2004; Thakur, Rabenseifner and Gropp,
 * Optimization of Collective Communication Operations in MPICH, 2005, section 4.4; Rajbhandari, Rasley, Ruwase and He, ZeRO:
 * Memory Optimizations Toward Training Trillion Parameter Models, SC 2020, sections 5.1 to 5.3; Lamy-Poirier,
 * Breadth-First Pipeline Parallelism, MLSys 2023.
 *
 * Cost: constant for each question, linear in the states for plan_joined().
 *
 * Not handled: ties of two pipelines in a replica, and with plan.widths (each use goes up and down the tree; the sums are added
 * behind it).
 */
#include "plan.h"

enum { LINE = 16 };             /* elements: a cache line of f32, and of bf16 half a one */

/* Part i of r begins there, in bytes of the state. */
static Bytes begins(const Plan *p, int s, int64_t i, int64_t r)
{
    const State *x = &p->g->state.at[s];
    int64_t size = type_bytes(x->type), n = x->bytes / size, unit = norm_block(p->m, n);
    while (unit % LINE)
        unit *= 2;
    int64_t units = (n + unit - 1) / unit, from = (units * i + x->param % r) / r * unit * size;
    return i == r || from > x->bytes ? x->bytes : from;
}

bool plan_sharded(const Plan *p, int param)
{
    return p->m->train.shard && plan_levels(p) > 0 && !p->g->state.at[param].tracked &&
        !p->g->state.at[param].frozen;
}

/* Of a divided gradient the team makes the norm, from all of what each device has: it goes down the tree too. */
static bool returns(const Plan *p, int param)
{
    return plan_sharded(p, param) && p->g->state.at[param].outer && p->m->train.clip != 0;
}

/* A sum that goes down the tree is wanted whole, and sums of several groups have slots that live for ever. */
bool plan_drops(const Plan *p, int state)
{
    const State *x = &p->g->state.at[state];
    return p->m->train.shard >= SHARD_GRADIENTS && x->kind == S_GRAD && plan_sharded(p, x->param) &&
        !returns(p, x->param) && order_accumulators(p, -1) == 1;
}

/* Not a tied parameter, which goes to its uses from home, and none of which the devices of a stage have parts. */
bool plan_parted(const Plan *p, int param)
{
    if (p->m->train.shard < SHARD_PARAMETERS || !plan_sharded(p, param) || p->g->state.at[param].outer)
        return false;
    for (int s = param; s < p->g->state.n; s++)
        if (p->g->state.at[s].param == param && p->g->state.at[s].kind == S_GRAD && p->g->state.at[s].use > 0)
            return false;
    return true;
}

bool plan_room(const Plan *p, int state)
{
    const State *x = &p->g->state.at[state];
    bool copied = x->kind == S_PARAM && state + 1 < p->g->state.n && x[1].kind == S_COPY;
    return (x->kind == S_COPY || (x->kind == S_PARAM && !copied)) && plan_parted(p, x->param);
}

static bool joins(const Plan *p, int param)
{
    bool alone = schedule_ways(schedule_of(p->schedule)) == 1 && !plan_uneven(p);
    return (!p->m->train.shard || returns(p, param)) && plan_levels(p) > 0 && alone && !p->g->state.at[param].tracked;
}

int plan_joins_op(const Plan *p, int op)
{
    const Op *o = &p->g->op.at[op];
    int param = o->phase == PH_U && plan_levels(p) > 0 && op_is(o, TRAIT_TIE) ? update_param(p->g, o) : -1;
    return param >= 0 && joins(p, param) ? param : -1;
}

bool *plan_joined(const Plan *p)
{
    const Graph *g = p->g;
    bool *tied = alloc((size_t)g->state.n + 1), *joined = alloc((size_t)g->state.n + 1);
    for (int o = g->nb; o < g->op.n && plan_levels(p) > 0; o++)
        if (plan_joins_op(p, o) >= 0)
            tied[plan_joins_op(p, o)] = true;
    for (int s = 0; s < g->state.n && plan_levels(p) > 0; s++)
        joined[s] = g->state.at[s].kind == S_GRAD && (tied[g->state.at[s].param] || returns(p, g->state.at[s].param));
    return joined;
}

/* With train.shard ties, norms, the update of each element; not what reads other parts too. */
int plan_cuts_op(const Plan *p, int op)
{
    const Op *o = &p->g->op.at[op];
    bool takes = row(o->row)->element || op_is(o, TRAIT_NARROW);
    int param = o->phase == PH_U && p->m->train.shard && takes ? update_param(p->g, o) : -1;
    if (param >= 0 && op_is(o, TRAIT_NARROW) && !plan_parted(p, param))
        return -1;
    return param >= 0 && plan_sharded(p, param) ? param : plan_joins_op(p, op);
}

/* Of the tree that the state goes up: that of its chunk, once there is one. */
static int levels_of(const Plan *p, int s)
{
    int op = p->g->state.at[s].op;
    return plan_uneven(p) && op >= 0 && p->chunk.n ? plan_depth(p, p->chunk.at[op]) : plan_levels(p);
}

Extent plan_own(const Plan *p, int row, int s)
{
    return plan_share(p, row, s, levels_of(p, s));
}

Extent plan_summed(const Plan *p, int row, int s)
{
    int param = p->g->state.at[s].param;
    return plan_sharded(p, param) || joins(p, param) ? plan_own(p, row, s) : (Extent){0, p->g->state.at[s].bytes};
}

Extent plan_piece(const Plan *p, int row, int s)
{
    const State *x = &p->g->state.at[s];
    return x->param >= 0 && plan_sharded(p, x->param) ? plan_own(p, row, s) : (Extent){0, x->bytes};
}

Extent plan_share(const Plan *p, int row, int s, int level)
{
    int levels = levels_of(p, s), part = 0;
    for (int l = 0; l < level; l++)
        part |= (row >> l & 1) << (levels - 1 - l);
    int64_t r = (int64_t)1 << levels;
    return (Extent){begins(p, s, part, r), begins(p, s, part + (1 << (levels - level)), r)};
}
