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
 * Source: Rabenseifner, Optimization of Collective Reduction Operations, ICCS 2004; Thakur, Rabenseifner and Gropp,
 * Optimization of Collective Communication Operations in MPICH, 2005, section 4.4.
 *
 * Cost: constant for each question.
 */
#include "plan.h"

enum { LINE = 16 };             /* elements: a cache line of f32, and of bf16 half a one */

int64_t share_block(const Plan *p, int64_t n)
{
    const Blocks *rule = &library_of(&p->m->devices.at[0])->blocks;
    int64_t each = (n + rule->most - 1) / rule->most;
    each = (each + rule->round - 1) / rule->round * rule->round;
    return each > rule->least ? each : rule->least;
}

/* Part i of r begins there, in bytes of the state. */
static Bytes begins(const Plan *p, int s, int64_t i, int64_t r)
{
    const State *x = &p->g->state.at[s];
    int64_t size = type_bytes(x->type), n = x->bytes / size, unit = share_block(p, n);
    while (unit % LINE)
        unit *= 2;
    int64_t units = (n + unit - 1) / unit, from = (units * i + x->param % r) / r * unit * size;
    return i == r || from > x->bytes ? x->bytes : from;
}

Extent plan_share(const Plan *p, int row, int s, int level)
{
    int levels = plan_levels(p), part = 0;
    for (int l = 0; l < level; l++)
        part |= (row >> l & 1) << (levels - 1 - l);
    int64_t r = (int64_t)1 << levels;
    return (Extent){begins(p, s, part, r), begins(p, s, part + (1 << (levels - level)), r)};
}
