/* SPDX-License-Identifier: Apache-2.0
 *
 * pairs.c: what an estimate saves where GPUs run several calls as one kernel.
 *
 * Problem: an operator's time by the roofline is that of a call by itself.  Some calls share a kernel with the one before them,
 * which reads a tensor once instead of twice.  Others are rows of one launch.
 *
 * Method: the second call of a pair costs no launch, and does not read again what it shares with the first.  A call that shares
 * launches pays its part of them.  Both follow from the graph alone, so times of operators add up.  Where a plan cuts in front
 * of the second call of a pair, or makes it again, that has a price of its own (cost_alone).  The gradient of the loss stands
 * behind the loss in some schedules only; they have a table of their own.
 *
 * Cost: linear in the operators and their operands.
 *
 * Not handled: pairs that a plan lays over each other's operands, for which emit/pair.c prints two calls, and a gradient of the
 * loss whose scores are made again.  Other pairs of backward cost two calls.  Measured times are those of single calls.
 */
#include "prof.h"

const CallPair call_pairs[CALL_PAIRS] = {
    [PAIR_LOSS] = {"xent_forward", "xent_backward", {"lse", "lse"}},
    [PAIR_LAYERNORM] = {"add_forward", "layernorm_forward", {"y", "x"}},
    [PAIR_RMSNORM] = {"add_forward", "rmsnorm_forward", {"y", "x"}},
    [PAIR_BATCH] = {"grad_add", "batchnorm_add_relu_backward", {"y", "dy"}},
    [PAIR_EIGHT] = {"linear_fp8_backward_x", "linear_fp8_backward_w", {"dy", "dy"}},
    [PAIR_BIAS] = {"layernorm_backward", "linear_backward_w", {"dx", "dy"}},
    [PAIR_SLOPE] = {"gelu_backward", "linear_fp8_backward_x", {"dx", "dy"}},
};

/* As many calls as a table has rows (rt/op/cuda/table.h) are so many launches. */
static const struct { const char *call; int launches, calls; } tables[] = {
    {"adamw_update", 1, 45}, {"nadamw_update", 1, 45}, {"norm_partial", 2, 99}, {"sgd_update", 1, 55}, {"batch_track", 1, 49},
};

static const Arg *operand(const Op *o, const char *token)
{
    const Arg *a = op_arg(o, token);
    return a && (a->kind == ARG_READ || a->kind == ARG_WRITE) ? a : NULL;
}

static bool are_pair(const CallPair *pair, const Op *first, const Op *second)
{
    if (strcmp(first->call, pair->first) || strcmp(second->call, pair->second))
        return false;
    const Arg *a = operand(first, pair->same[0]), *b = operand(second, pair->same[1]);
    return a && b && !a->state && !b->state && a->index == b->index;
}

/* Is operator o the second of a pair?  In forward it stands right behind the first. */
bool cost_joins(const Graph *g, int o, bool loss)
{
    const Op *second = &g->op.at[o];
    if (second->phase == PH_I && loss) {        /* of a loss that nothing else has a part in */
        const Arg *a = operand(second, "dloss");
        int seed = a && !a->state ? g->tensor.at[a->index].op : -1;
        return are_pair(&call_pairs[PAIR_LOSS], &g->op.at[second->fwd], second) && seed >= 0 &&
               op_is(&g->op.at[seed], TRAIT_SEED);
    }
    for (int i = PAIR_LOSS + 1; i < CALL_PAIRS && second->phase == PH_F && o > 0; i++)
        if (are_pair(&call_pairs[i], second - 1, second))
            return true;
    return false;
}

static Ns time_of(const Graph *g, const Device *d, int o, bool second)
{
    const Op *op = &g->op.at[o];
    if (second)
        return roof_op(d, g->compute, op, g->tensor.at[operand(op, "x")->index].bytes, 0, 1);
    for (size_t i = 0; i < sizeof tables / sizeof *tables; i++)
        if (!strcmp(op->call, tables[i].call))
            return roof_op(d, g->compute, op, 0, tables[i].launches, tables[i].calls);
    return roof_op(d, g->compute, op, 0, 1, 1);
}

void estimate(Cost *c, const Graph *g, const Device *d, int class, bool loss)
{
    for (int o = 0; o < g->op.n; o++) {
        bool second = target_of(d)->gpu && cost_joins(g, o, loss);
        c->ns[class][o] = target_of(d)->gpu ? time_of(g, d, o, second) : roof_op(d, g->compute, &g->op.at[o], 0, 1, 1);
        c->alone[class][o] = second && g->op.at[o].phase == PH_F ? time_of(g, d, o, false) : c->ns[class][o];
    }
}

const Cost *cost_with(const Cost *c, const Schedule *k)
{
    const Cost *with = k && k->adjoins ? c->adjoined : c->apart;
    return with ? with : c;
}
