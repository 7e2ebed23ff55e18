/* SPDX-License-Identifier: Apache-2.0
 *
 * offload_choice.c: tensors of a run that wait in the host's memory, and tensors that are dropped besides.
 *
 * Problem: a tensor with copies that hide behind computing costs nothing to offload, until the link is full.  From there on the
 * device waits, and making something again may be cheaper.
 *
 * Method: tensors are put in order and the first n of them offloaded.  plan.memory_order chooses the order:
 *
 *   free_time           time between the last forward reader and the first one in backward, less both copies, most first:
 *                       Capuchin's rule for swapping
 *   saving_per_second   bytes saved over time of the copy, most first: the large ones
 *   auto                both, the better answer
 *
 * The fewest that fit are offloaded, if the link hides them.  If not, as many as it hides; dropping frees the rest, with the
 * same search as without offload.  Then two exchanges are tried, one tensor after another.  A dropped tensor is offloaded
 * instead if that adds less.  An offloaded tensor stays if it need not be moved.  The replay judges all of it, with windows
 * from the whole list.
 *
 * Source: Peng et al., Capuchin: Tensor-based GPU Memory Management for Deep Learning, 2020.  Capuchin decides tensor by tensor
 * against one iteration's measured times, and leaves the queue at the link to a correction at run time.  Here warm-up and
 * drain, when copies pile up, are in every judgement.
 *
 * Cost: two bisections over n, one search of the rest, one replay for each tensor at the end; times the orders.
 */
#include "hunt.h"
#include "budgets.h"

ORDER(by_worth, Rank, order_of(y->time, x->time), order_of(y->bytes, x->bytes), order_of(x->drop, y->drop))

/* The first n are offloaded, all else is kept. */
static Load try_first(Hunt *h, int n)
{
    hunt_keep(h);
    for (int i = 0; i < n; i++)
        h->fate[h->out[i].drop] = FATE_OFFLOAD;
    Load l = hunt_judge(h);
    hunt_take(h, &l);
    return l;
}

static int fewest_that_fit(Hunt *h)
{
    int low = 0, high = h->outs;
    while (high - low > 1) {
        int middle = low + (high - low) / 2;
        if (try_first(h, middle).need <= h->limit)
            high = middle;
        else
            low = middle;
    }
    return high;
}

/* The first n are offloaded; dropping frees the rest. */
static void drop_rest(Hunt *h, int n)
{
    Load l = try_first(h, n);
    hunt_items(h, true);
    if (h->n == 0 || l.need <= h->limit)
        return;
    seed_prefixes(h);
    seed_knapsack(h);
    improve(h, seed_patterns(h));
}

/* One tensor after another: offloaded instead of dropped, kept instead of offloaded. */
static void exchange(Hunt *h, Fate from, Fate to)
{
    for (int i = 0; i < h->outs && h->budget > 0; i++) {
        int t = h->out[i].drop;
        if (h->fate[t] != (int)from || (to == FATE_RECOMPUTE && !(h->may[t] & MAY_DROP)))
            continue;
        h->fate[t] = (int)to;
        Load l = hunt_judge(h);
        if (!hunt_take(h, &l))
            h->fate[t] = (int)from;
    }
}

static void send_by(Hunt *h, MemoryOrder way)
{
    /* Rank.drop is the tensor. */
    const char *matters = live_matters(h->live, h->first, h->last, h->may);
    hunt_keep(h);
    for (int i = 0; i < h->tensors; i++)
        if ((h->may[h->made[i]] & MAY_SEND) && matters[h->made[i]] == LIVE_READ)
            h->fate[h->made[i]] = FATE_OFFLOAD;
    hunt_judge(h);
    Ns time;
    h->outs = 0;
    for (int i = 0, t; (t = live_free(h->live, i, &time)) >= 0; i++)
        if (h->may[t] & MAY_SEND)
            h->out[h->outs++] = (Rank){t, way == ORDER_SAVING ? 0 : time, live_size(h->live, t)};
    SORT(h->out, h->outs, by_worth);
    if (h->outs == 0)
        return;
    int all = fewest_that_fit(h);
    if (h->spent && h->load.need <= h->limit)
        return;
    /* The most, up to n, that the link hides. */
    int low = 0, high = all + 1;
    while (high - low > 1) {
        int middle = low + (high - low) / 2;
        if (try_first(h, middle).stall == 0)
            low = middle;
        else
            high = middle;
    }
    int hidden = low;
    drop_rest(h, hidden);
    if (hidden > 1 && hidden < all)
        drop_rest(h, hidden / 2);
    hunt_back(h, h->best);
    exchange(h, FATE_RECOMPUTE, FATE_OFFLOAD);
    exchange(h, FATE_OFFLOAD, FATE_KEEP);
}

void send(Hunt *h)
{
    int budget = h->budget > 0 ? h->budget : 0;
    for (MemoryOrder way = ORDER_FREE_TIME; way <= ORDER_SAVING; way++) {
        h->budget = h->spent ? 0 : budget + 5 * LEAST_REPLAYS;
        if (h->spent && h->load.need <= h->limit)
            return;
        if (h->memory_order == ORDER_AUTO || h->memory_order == way)
            send_by(h, way);
    }
}
