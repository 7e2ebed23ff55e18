/* SPDX-License-Identifier: Apache-2.0
 *
 * twobw.c: PipeDream-2BW's planner as a baseline: equal blocks.
 *
 * Problem: choose depth d, width w, micro-batch b and recomputation for a model of equal blocks and a given global batch B.
 *
 * Method: stages get equal numbers of blocks, the remainder on the last stages.  Operators before the first block go to the
 * first stage, operators after the last block to the last.  Recomputation is all or nothing.  With m = B / (w b) >= d, weights
 * W, saved tensors A and inputs Ain of a stage:
 *
 *   bytes   2 W + d A + d Ain, or with recomputation 2 W + A + d Ain
 *   step    m times the slowest stage, forward once more with recomputation, and its messages; or the exchange of gradients
 *           among replicas, whichever is longer
 *
 * The bytes are the paper's, without gradients and optimiser state.  Bytes and step choose.  search.c goes through the grid,
 * shortest step first, and takes the first layout that dpgen's own memory model accepts.  In the grid w are powers of two that
 * the gradient groups can be dealt out to, d go up to what the devices allow, and b are powers of two.  The paper leaves the
 * exchange open.  Here it is dpgen's own, 2 (w-1)/w times the gradient over its wires.  Where depth, width and
 * micro-batch are given, only recomputation is left: without, then with.
 *
 * Blocks are the layers that `repeat` made.  A model without is "not applicable".  One with several repeats (T5) is taken as
 * one sequence of blocks.  The paper does not do that, so the note of such a plan says "generalised".
 *
 * Users complain that equal blocks are not equal stages: the head of GPT-2 is worth six blocks.  They also complain that all or
 * nothing recomputes where a little would do.
 *
 * Source: Narayanan, Phanishayee, Shi, Chen, Zaharia, Memory-Efficient Pipeline-Parallel DNN Training, ICML 2021, section 3.3.
 * Its published branch has the runtime and no planner.  Its formulas are as Piper's authors rebuilt them.
 *
 * Cost: linear for a layout.
 */
#include "twobw.h"
#include "fates/fates.h"
#include "rivals.h"

int twobw_blocks(int blocks, int depth, int s)
{
    return blocks / depth + (s >= depth - blocks % depth);
}

Bytes twobw_bytes(const Equal *s, int depth, bool recompute)
{
    return 2 * s->weights + (recompute ? 1 : depth) * s->saved + depth * s->input;
}

Ns twobw_time(const Equal *s, int stages, bool recompute, int64_t m)
{
    Ns worst = 0;
    for (int i = 0; i < stages; i++) {
        Ns time = m * (s[i].forward * (recompute ? 2 : 1) + s[i].backward + s[i].wire);
        time = time > s[i].exchange ? time : s[i].exchange;
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

/* The last operator of each stage.  False: a cut is not allowed there, or a cut inside a stage is demanded. */
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
        stage[s].exchange = units_exchange(q->p, s, u.grads[s], q->p->m->plan.replicas);
        stage[s].wire = cost_wire(q->p->c, 0, q->p->devices > 1, 2 * (in + out));
    }
    return stage;
}

static bool passes(const Question *q, const Equal *stage, bool recompute)
{
    bool fits = true;
    for (int s = 0; s < q->chunks; s++)
        fits &= twobw_bytes(&stage[s], q->chunks, recompute) <= q->share[s];
    return fits;
}

static bool accepted(const Question *q, const Answer *a)
{
    for (int s = 0; s < q->chunks; s++)
        if (!price_with(q->prices, s ? a->last[s - 1] + 1 : 0, a->last[s], s, a->fate).fits)
            return false;
    return true;
}

/* Without recomputation, which is faster, if the formula lets it pass and dpgen accepts it; else with.  A model file that
 * asks to make all or nothing again leaves no choice. */
static bool decide(const Question *q, Answer *a, const Equal *stage)
{
    Choices choices = choices_of(q->p);
    bool full = q->p->m->plan.recompute == RECOMPUTE_FULL;
    a->fate = alloc(sizeof *a->fate * (size_t)q->p->g->tensor.n);
    for (int again = full; again <= (choices.recompute || full); again++) {
        bool recompute = again;
        for (int t = 0; t < q->p->g->tensor.n; t++)
            a->fate[t] = choices.may[t] && recompute ? FATE_RECOMPUTE : choices.base[t];
        a->value = twobw_time(stage, q->chunks, again, q->p->g->micro);
        if (passes(q, stage, again) && accepted(q, a))
            return true;
    }
    return false;
}

/* The last operator of each stage; NULL: the note says why there are none. */
static int *equal_cuts(const Question *q, const char **note)
{
    int repeats, *last = alloc(sizeof *last * (size_t)q->chunks);
    Ints ends = blocks_of(q->p->g, &repeats);
    *note = ends.n == 0 ? "not applicable: the model has no repeated block"
        : q->p->g->micro < q->chunks ? "2BW needs as many micro-batches as stages"
        : repeats > 1 ? "generalised: several repeats are taken as one sequence of blocks" : NULL;
    return ends.n < q->chunks || q->p->g->micro < q->chunks || !cuts_of(q, &ends, last) ? NULL : last;
}

bool plan_twobw(const Question *q, Answer *a)
{
    a->last = equal_cuts(q, &a->note);
    return a->last && decide(q, a, stages_of(q, a->last));
}

/* ---- the grid ------------------------------------------------------------------------------------------------------ */

bool twobw_judge(const Question *q, bool recompute, Ns *step)
{
    const char *note;
    const int *last = equal_cuts(q, &note);
    const Equal *stage = last ? stages_of(q, last) : NULL;
    *step = stage ? twobw_time(stage, q->chunks, recompute, q->p->g->micro) : 0;
    return stage && passes(q, stage, recompute);
}

ORDER(by_step, Guess, order_of(x->step, y->step), order_of(x->depth * x->width, y->depth * y->width),
      order_of(x->depth, y->depth), order_of(y->batch, x->batch), order_of(x->recompute, y->recompute))

void twobw_sort(Guesses *all)
{
    SORT(all->at, all->n, by_step);
}

const char *twobw_note(const Guesses *all, int taken)
{
    const Guess *x = &all->at[taken];
    const char *refused = taken ? strf("; of those that it finds faster, dpgen's memory model refuses %d", taken) : "";
    return strf("depth %d, width %d, micro-batches of %" PRId64 "%s: a step of %.3f ms by its formulas, which let %d "
                "layouts pass%s", x->depth, x->width, x->batch, x->recompute ? ", everything made again" : "",
                (double)x->step / 1e6, all->n, refused);
}
