/* SPDX-License-Identifier: Apache-2.0
 *
 * improve.c: a choice of fates, improved step by step until nothing helps or the budget is spent.
 *
 * Method: four kinds of steps.
 *
 *   keep again   each dropped operator, the dearest per byte first, is kept if it still fits: a family of choices drops some
 *                operators as one, where a limit in between need not
 *   drop more    while nothing fits: each kept operator is dropped if that needs less
 *   exchange     one dropped operator is kept and a cheaper one dropped instead
 *   trade        one more is dropped although that is worse, and the room it leaves is filled with dearer ones; or one is
 *                kept although it does not fit, and cheaper ones are dropped until it does
 *
 * The replay judges every step, and a step is taken only if it is better.  So the result is never worse than the start.  The
 * best choice met by anyone stays in the Hunt.  The budget is counted in replays: the same on every machine.
 *
 * Source: exchange is after Kernighan and Lin, An efficient heuristic procedure for partitioning graphs, 1970.
 *
 * Cost: a replay a step.  A step that cannot fit by the bytes of micro-batches at rest alone is not judged.
 */
#include "hunt.h"

static int dearest(const void *a, const void *b)
{
    const Rank *x = a, *y = b;
    if (hunt_cheaper(y->time, y->bytes, x->time, x->bytes))
        return -1;
    return hunt_cheaper(x->time, x->bytes, y->time, y->bytes) ? 1 : x->drop - y->drop;
}

/* The choice at hand becomes `now` if it is better, else it is undone. */
static bool step(Hunt *h, Load *now, const int *was)
{
    Load l = hunt_judge(h);
    if (!hunt_better(h, &l, now)) {
        hunt_back(h, was);
        return false;
    }
    *now = l;
    return true;
}

/* True if it cannot fit: the bytes that micro-batches at rest hold more are there at every moment. */
static bool hopeless(const Hunt *h, const Load *now, Bytes more)
{
    return now->need <= h->limit && now->states + h->others * (now->saved + more) > h->limit;
}

static bool keep_again(Hunt *h, Load *now)
{
    Rank *rank = h->rank;
    int n = 0;
    bool better = false;
    for (int d = 0; d < h->drops; d++)
        if (hunt_dropped(h, d))
            rank[n++] = (Rank){d, h->drop[d].time, h->drop[d].size};
    SORT(rank, n, dearest);
    for (int i = 0; i < n && h->budget > 0; i++) {
        if (hopeless(h, now, h->drop[rank[i].drop].bytes))
            continue;
        hunt_copy(h, h->was);
        hunt_set(h, rank[i].drop, FATE_KEEP);
        better |= step(h, now, h->was);
    }
    return better;
}

/* The first exchange that helps, for each dropped operator in turn. */
static bool exchange(Hunt *h, Load *now)
{
    bool better = false;
    for (int i = h->ordered; i-- > 0;) {
        int out = h->ranked[i];
        bool done = !hunt_dropped(h, out);
        for (int k = 0; !done && k < h->ordered && h->budget > 0; k++) {
            int in = h->ranked[k];
            const Drop *x = &h->drop[in];
            if (hunt_dropped(h, in) || (now->need <= h->limit && x->time >= h->drop[out].time)
                || hopeless(h, now, h->drop[out].bytes - x->bytes))
                continue;
            hunt_copy(h, h->was);
            hunt_set(h, out, FATE_KEEP);
            hunt_drop(h, in);
            done = step(h, now, h->was);
            better |= done;
        }
    }
    return better;
}

/* While nothing fits: drops every operator that makes the need smaller. */
static bool drop_more(Hunt *h, Load *now)
{
    bool better = false;
    for (int d = 0; d < h->drops && now->need > h->limit && h->budget > 0; d++) {
        if (hunt_dropped(h, d))
            continue;
        hunt_copy(h, h->was);
        hunt_drop(h, d);
        better |= step(h, now, h->was);
    }
    return better;
}

/* Drop one more, then keep again what fits; all of it is undone if the whole is no better. */
static bool trade_in(Hunt *h, Load *now)
{
    for (int i = 0; i < h->ordered && h->budget > 0; i++) {
        Load was = *now;
        if (hunt_dropped(h, h->ranked[i]))
            continue;
        hunt_copy(h, h->before);
        hunt_drop(h, h->ranked[i]);
        *now = hunt_judge(h);
        keep_again(h, now);
        if (hunt_better(h, now, &was))
            return true;
        hunt_back(h, h->before);
        *now = was;
    }
    return false;
}

/* Keep one, then drop the cheapest until it fits again or adds as much as before. */
static bool trade_out(Hunt *h, Load *now)
{
    for (int i = h->ordered; i-- > 0 && h->budget > 0;) {
        if (!hunt_dropped(h, h->ranked[i]))
            continue;
        hunt_copy(h, h->was);
        hunt_set(h, h->ranked[i], FATE_KEEP);
        Load l = hunt_judge(h);
        for (int k = 0; k < i && l.need > h->limit && l.again < now->again && h->budget > 0; k++)
            if (!hunt_dropped(h, h->ranked[k]) && l.again + h->drop[h->ranked[k]].time < now->again) {
                hunt_drop(h, h->ranked[k]);
                l = hunt_judge(h);
            }
        if (hunt_better(h, &l, now)) {
            *now = l;
            return true;
        }
        hunt_back(h, h->was);
    }
    return false;
}

void improve(Hunt *h, Load now)
{
    bool better = true;
    while (better && h->budget > 0) {
        better = drop_more(h, &now);
        better |= keep_again(h, &now);
        better |= exchange(h, &now);
        better = better || trade_out(h, &now) || trade_in(h, &now);
    }
    hunt_take(h, &now);
}
