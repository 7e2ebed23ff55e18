/* SPDX-License-Identifier: Apache-2.0
 *
 * buckets.c: into how many pieces backward is cut, so that gradients leave for other replicas while it goes on.
 *
 * Problem: more pieces hide more of the exchange.  They also hold more of what arrives, and wait in the middle of backward.
 *
 * Method: finished plans are written once more with 2, 4, 8 .. pieces, up to plan.buckets: the best plan first, then those that
 * could become the best if their whole exchange vanished.  Cuts, fates and schedule stay.  The simulator decides, and a plan
 * that no longer fits is none.  Gradients that leave early may take less at the peak too, so where nothing fits, the plans that
 * were laid out and are too large are tried.
 *
 * The bounds of planners are over plans that exchange behind backward.  So nothing is proven of a plan with pieces.
 */
#include "search.h"
#include "budgets.h"

/* What of the step is between the begin of a device's exchange and its end, at most. */
static Ns exchange_of(const Plan *p)
{
    Ns most = 0;
    for (int d = 0; d < p->devices; d++) {
        const Actions *list = &p->dev.at[d].list;
        Ns from = -1, to = 0;
        for (int i = 0; i < list->n; i++) {
            const Action *k = &list->at[i];
            bool grad = k->state >= 0 && p->g->state.at[k->state].kind == S_GRAD && k->kind != K_GATHER;
            from = grad && from < 0 ? k->from : from;
            to = grad ? k->to : to;
        }
        most = to - from > most ? to - from : most;
    }
    return most;
}

/* The plan with so many pieces and a shorter step than `beat`; NULL: there is none. */
static Plan *with_pieces(const Candidate *k, const Plan *of, int pieces, Ns beat)
{
    Ask ask = of->ask;
    ask.choice.buckets = pieces;
    ask.effort.below_step = beat - 1;
    void *mark = mem_mark();
    Options quiet = *k->x;
    quiet.dump = NULL;
    purse_spend(ask.work, (int64_t)k->g->op.n * PASSES);
    Verdict why;
    Plan *p = run_again(&quiet, of, &ask, &why);
    if (why == PLANNED && p->step < beat)
        return p;
    mem_release(mark);
    return NULL;
}

/* The plan that pieces are tried of; NULL: there is none. */
static const Plan *plan_of(const Candidate *k)
{
    bool large = k->failed && k->failed->dev.n && k->failed->dev.at[0].arena > 0;
    return k->best ? k->best : large ? k->failed : NULL;
}

static bool try_pieces(Candidate *k, Ns best)
{
    bool found = false;
    const Ns step = k->best ? k->best->step : INT64_MAX;
    Ns beat = best > 0 && best < step ? best : step;
    int most = k->m->plan.buckets;
    for (int pieces = 2; pieces / 2 < most; pieces *= 2) {
        Plan *p = with_pieces(k, plan_of(k), pieces < most ? pieces : most, beat);
        if (!p)
            continue;
        k->best = p;
        beat = p->step;
        found = true;
    }
    return found;
}

bool buckets_try(Candidate *k, Ns best)
{
    const Plan *of = plan_of(k);
    bool open = of && (k->best || best == 0) && !k->report_only && plan_may_bucket(of);
    return open && (best == 0 || of->step - exchange_of(of) < best) && try_pieces(k, best);
}

void buckets_note(const Plan *p, Proof *proof)
{
    if (plan_buckets(p) == 1)
        return;
    const char *text = strf("gradients leave in %d buckets, while backward goes on", plan_buckets(p));
    proof->note = proof->note ? strf("%s; %s", text, proof->note) : text;
}
