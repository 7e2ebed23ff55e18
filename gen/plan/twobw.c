/* SPDX-License-Identifier: Apache-2.0
 *
 * twobw.c: PipeDream-2BW's planner as a baseline: equal blocks.
 *
 * Problem: choose width, depth, micro-batch and recomputation for a model of equal blocks.  Source: Narayanan,
 * Phanishayee, Shi, Chen, Zaharia, Memory-Efficient Pipeline-Parallel DNN Training, ICML 2021, section 3.3; its published
 * branch has the runtime and no planner, and its formulas are as Piper's authors rebuilt them.  Stages get equal numbers
 * of blocks, what is before the first block goes to the first stage, what follows the last to the last, the remainder of
 * blocks to the last stages.  Recomputation is all or nothing.  With depth d, weights W, saved tensors A and inputs Ain of a
 * stage:
 *
 *   bytes   2 W + d A + d Ain, or with recomputation 2 W + A + d Ain
 *   time    the slowest stage, forward once more with recomputation, and its messages; or the exchange of gradients among
 *           replicas shared by m micro-batches, whichever is longer
 *
 * The bytes are the paper's, without gradients and optimiser state; they choose, and dpgen's own memory model must accept;
 * where it refuses, recomputation is tried, and then there is no plan.  For a given depth and micro-batch this file
 * decides the rest; `stages: auto` and `batch.micro: auto` walk through those, width by `replicas`.
 *
 * Blocks are the layers that `repeat` made.  A model without is "not applicable"; one with several repeats (T5) is taken as
 * one sequence of blocks, which the paper does not do: the note of such a plan says "generalised".
 *
 * What its users complain of: equal blocks are not equal stages (the head of GPT-2 is worth six blocks), and all or nothing
 * recomputes where a little would do.  Cost: linear.
 */
#include "twobw.h"
#include "own.h"
#include "planner.h"
#include "unit.h"

int twobw_blocks(int blocks, int depth, int s)
{
    return blocks / depth + (s >= depth - blocks % depth);
}

Bytes twobw_bytes(const Equal *s, int depth, bool recompute)
{
    return 2 * s->weights + (recompute ? 1 : depth) * s->saved + depth * s->input;
}

Ns twobw_time(const Equal *s, int stages, bool recompute, Ns exchange, int64_t m)
{
    Ns worst = exchange / m;
    for (int i = 0; i < stages; i++) {
        Ns time = s[i].forward * (recompute ? 2 : 1) + s[i].backward + s[i].wire;
        worst = time > worst ? time : worst;
    }
    return worst;
}

/* The last operator of every block, repeats one after another. */
static Ints blocks_of(const Graph *g, int *repeats)
{
    Repeats all = repeats_of(g);
    Ints ends = {0};
    for (int r = 0; r < all.n; r++)
        for (int i = 0; i < all.at[r].last.n; i++)
            *PUSH(&ends) = all.at[r].last.at[i];
    *repeats = all.n;
    return ends;
}

/* Last operator of each stage; false: a cut is not allowed there, or one inside of a stage is demanded. */
static bool cuts_of(const Question *q, const Ints *ends, int *last)
{
    for (int s = 0, taken = 0; s < q->chunks; s++) {
        taken += twobw_blocks(ends->n, q->chunks, s);
        last[s] = s + 1 < q->chunks ? ends->at[taken - 1] : q->n - 1;
        if (q->cut[last[s]] == CUT_NEVER)
            return false;
        for (int o = s ? last[s - 1] + 1 : 0; o < last[s]; o++)
            if (q->cut[o] == CUT_MUST)
                return false;
    }
    return true;
}

/* The stages as the paper sees them, from units that end where stages do. */
static Equal *stages_of(const Question *q, const int *last)
{
    char *cut = alloc((size_t)q->n);            /* CUT_NEVER */
    for (int s = 0; s < q->chunks; s++)
        cut[last[s]] = CUT_MUST;
    Units u = units_of(q->p, cut, 1);
    Equal *stage = alloc(sizeof *stage * (size_t)q->chunks);
    for (int s = 0; s < q->chunks; s++) {
        Bytes in = s ? u.out[s - 1] : 0, out = s + 1 < q->chunks ? u.out[s] : 0;
        stage[s] = (Equal){.forward = u.forward[s], .backward = u.time[s] - u.forward[s], .weights = u.params[s],
                           .saved = u.saved[s], .input = in};
        stage[s].wire = cost_wire(q->p->c, 0, q->p->devices > 1, 2 * (in + out));
    }
    return stage;
}

static bool accepted(const Question *q, const Answer *a)
{
    for (int s = 0; s < q->chunks; s++)
        if (!price_with(q->prices, s ? a->last[s - 1] + 1 : 0, a->last[s], s, a->fate).fits)
            return false;
    return true;
}

static void set_fates(Answer *a, const Plan *p, const Own *own, bool recompute)
{
    for (int t = 0; t < p->g->tensor.n; t++)
        a->fate[t] = own->may[t] && recompute ? FATE_RECOMPUTE : own->base[t];
}

/* Without recomputation, the faster, if the formula lets it pass and dpgen accepts it; else with. */
static bool decide(const Question *q, Answer *a, const Equal *stage)
{
    Own own = own_of(q->p);
    a->fate = alloc(sizeof *a->fate * (size_t)q->p->g->tensor.n);
    for (int again = 0; again <= own.recompute; again++) {
        bool passes = true;
        for (int s = 0; s < q->chunks; s++)
            passes &= twobw_bytes(&stage[s], q->chunks, again) <= q->limit[q->p->chunk_device.at[s]];
        set_fates(a, q->p, &own, again);
        a->value = twobw_time(stage, q->chunks, again, 0, q->p->g->micro);
        if (passes && accepted(q, a))
            return true;
    }
    return false;
}

bool plan_twobw(const Question *q, Answer *a)
{
    int repeats;
    Ints ends = blocks_of(q->p->g, &repeats);
    a->note = ends.n == 0 ? "not applicable: the model has no repeated block"
        : repeats > 1 ? "generalised: several repeats are taken as one sequence of blocks" : NULL;
    if (ends.n < q->chunks)
        return false;
    a->last = alloc(sizeof *a->last * (size_t)q->chunks);
    return cuts_of(q, &ends, a->last) && decide(q, a, stages_of(q, a->last));
}
