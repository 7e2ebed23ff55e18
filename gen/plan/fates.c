/* SPDX-License-Identifier: Apache-2.0
 *
 * fates.c: which tensors of a run are dropped, so that it fits and least time is added.
 *
 * Problem: choose the set of dropped tensors that adds the least time, such that the bytes alive at every call stay under
 * the limit.  A dropped tensor is made again once per backward, with everything it needs that nobody keeps.
 *
 * Method: every choice is judged by live_load, the same replay for all of them; nothing is believed of an estimate.
 *
 *   up to EXACT tensors that matter: all choices, by depth first search.  A tensor matters if backward reads it, or if
 *     something that matters is made from it.  Two things cut the tree, both bounds: what is decided to be dropped and is
 *     read costs at least its operator once; what is decided to be kept and is read is saved by every micro-batch at rest.
 *     Equal times: the lexicographically smallest choice, where keep comes before recompute
 *   above: operators are dropped or kept whole.  The search begins from several families of choices (seeds.c, knapsack.c),
 *     each of which is the right one somewhere, and improves the best of them step by step (polish.c)
 *
 * Keeping nothing is not the least memory: what is made again lives beside gradients.  So where nothing seems to fit, the
 * least that was met is the answer, and up to EXACT tensors it is proven to be the least.
 *
 * What others do: Checkmate (Jain et al., 2020) and MONeT (Shah et al., 2021) solve an integer program, exact and slow, with
 * rebuilding more than once; rotor (Beaumont et al., 2019) is optimal for chains of blocks; Capuchin (Peng et al., 2020) is
 * greedy by bytes per second.  A planner that compares thousands of runs needs microseconds, and a pipeline stage has few
 * candidates that are not equal to others.
 *
 * Cost: at most 2^EXACT replays of a run that small; above, WORK calls of replays, whatever the run.
 */
#include "hunt.h"

enum { EXACT = 12, WORK = 150000, LEAST = 60 };     /* tensors; calls replayed; replays at least */

/* ---- which tensors matter ---------------------------------------------------------------------------------------- */

static void add_item(Hunt *h, Item item)
{
    if (h->drops == 0 || h->drop[h->drops - 1].op != item.op)
        h->drop[h->drops++] = (Drop){.op = item.op, .item = h->n, .time = item.time};
    Drop *d = &h->drop[h->drops - 1];
    d->items++;
    d->bytes += item.read ? item.bytes : 0;
    d->size += item.bytes;
    h->of[item.tensor] = h->drops - 1;
    h->item[h->n++] = item;
}

/* Operands that only serve drop d: it reads them, backward does not; and theirs. */
static void find_operands(Hunt *h, int d)
{
    int from = h->operand.n;
    h->drop[d].operand = from;
    for (int at = from - 1; at < h->operand.n; at++) {
        int op = h->drop[at < from ? d : h->operand.at[at]].op, n;
        const int *read = live_reads(h->live, op, &n);
        for (int i = 0; i < n; i++) {
            int other = live_maker(h->live, read[i]) >= h->first ? h->of[read[i]] : -1;
            bool seen = other < 0 || h->drop[other].bytes > 0;
            for (int k = from; !seen && k < h->operand.n; k++)
                seen = h->operand.at[k] == other;
            if (!seen)
                *PUSH(&h->operand) = other;
        }
    }
    h->drop[d].operands = h->operand.n - from;
}

static void find_items(Hunt *h)
{
    int count;
    const int *made = live_made(h->live, h->first, h->last, &count);
    const Ns *time = live_times(h->live, h->chunk);
    const char *matters = live_matters(h->live, h->first, h->last, h->may);
    h->n = h->drops = h->operand.n = h->ordered = 0;
    for (int i = 0; i < count; i++) {
        int t = made[i], op = live_maker(h->live, t);
        h->of[t] = -1;
        if (matters[t] && h->may[t])
            add_item(h, (Item){t, op, matters[t] == LIVE_READ, live_size(h->live, t), time[op]});
    }
}

/* ---- the choice at hand, and the best ---------------------------------------------------------------------------- */

void hunt_set(Hunt *h, int drop, int fate)
{
    const Drop *d = &h->drop[drop];
    for (int i = d->item; i < d->item + d->items; i++)
        h->fate[h->item[i].tensor] = fate;
}

void hunt_all(Hunt *h, int fate)
{
    for (int i = 0; i < h->n; i++)
        h->fate[h->item[i].tensor] = fate;
}

void hunt_drop(Hunt *h, int drop)
{
    const Drop *d = &h->drop[drop];
    hunt_set(h, drop, FATE_RECOMPUTE);
    for (int i = 0; !d->alone && i < d->operands; i++)
        hunt_set(h, h->operand.at[d->operand + i], FATE_RECOMPUTE);
}

bool hunt_dropped(const Hunt *h, int drop)
{
    return h->fate[h->item[h->drop[drop].item].tensor] == FATE_RECOMPUTE;
}

Load hunt_judge(Hunt *h)
{
    h->budget--;
    return live_load(h->live, h->first, h->last, h->chunk, h->fate);
}

bool hunt_better(const Hunt *h, const Load *a, const Load *b)
{
    bool fits = a->need <= h->limit, other = b->need <= h->limit;
    return fits != other ? fits : fits ? a->again < b->again : a->need < b->need;
}

bool hunt_take(Hunt *h, const Load *l)
{
    if (!hunt_better(h, l, &h->load))
        return false;
    h->load = *l;
    hunt_copy(h, h->best);
    return true;
}

void hunt_copy(const Hunt *h, int *to)
{
    for (int i = 0; i < h->n; i++)
        to[i] = h->fate[h->item[i].tensor];
}

void hunt_back(Hunt *h, const int *from)
{
    for (int i = 0; i < h->n; i++)
        h->fate[h->item[i].tensor] = from[i];
}

/* time / bytes < than / than_bytes, in whole numbers; what frees nothing is dearest. */
bool hunt_cheaper(Ns time, Bytes bytes, Ns than, Bytes than_bytes)
{
    if (bytes <= 0 || than_bytes <= 0)
        return bytes > 0;
    for (;;) {                  /* continued fractions: both quotients, then both remainders the other way round */
        int64_t a = time / bytes, b = than / than_bytes;
        if (a != b)
            return a < b;
        time %= bytes;
        than %= than_bytes;
        if (time == 0 || than == 0)
            return than > 0 && time == 0;
        int64_t swap = time;
        time = than_bytes, than_bytes = swap;
        swap = than;
        than = bytes, bytes = swap;
    }
}

/* ---- all choices ------------------------------------------------------------------------------------------------- */

/* Items i .. are open; `again` and `saved` are what the decided ones cost at least.  least: look for the smallest need. */
static void every(Hunt *h, int i, Ns again, Bytes saved, bool least)
{
    Bytes need = h->load.states + h->others * saved;
    if (h->load.need <= h->limit ? again >= h->load.again || need > h->limit : least && need >= h->load.need)
        return;
    if (i == h->n) {
        Load l = hunt_judge(h);
        hunt_take(h, &l);
        return;
    }
    const Item *x = &h->item[i];
    int *drops = &h->count[x->op - h->first], *fate = &h->fate[x->tensor];
    *fate = FATE_KEEP;
    every(h, i + 1, again, saved + (x->read ? x->bytes : 0), least);
    *fate = FATE_RECOMPUTE;
    *drops += x->read;
    every(h, i + 1, again + (x->read && *drops == 1 ? x->time : 0), saved, least);
    *drops -= x->read;
}

static void enumerate(Hunt *h)
{
    Bytes always = h->load.saved;
    for (int i = 0; i < h->n; i++)
        always -= h->item[i].read ? h->item[i].bytes : 0;
    for (int o = h->first; o <= h->last; o++)
        h->count[o - h->first] = 0;
    every(h, 0, 0, always, false);
    if (h->load.need > h->limit)
        every(h, 0, 0, always, true);
}

/* ---- the answer -------------------------------------------------------------------------------------------------- */

static void search(Hunt *h)
{
    for (int d = 0; d < h->drops; d++)
        if (h->drop[d].bytes > 0)
            find_operands(h, d);
    seed_prefixes(h);
    seed_knapsack(h);
    int left = h->budget;
    h->budget = left / 2;
    hunt_back(h, h->best);
    climb(h, h->load);
    h->budget += left - left / 2;
    climb(h, seed_patterns(h));
}

Hunt *fates_open(Live *live, const bool *may)
{
    Hunt *h = alloc(sizeof *h);
    size_t tensors = (size_t)live_tensors(live) + 1;
    *h = (Hunt){.live = live, .may = may};
    h->item = alloc(sizeof *h->item * tensors);
    h->drop = alloc(sizeof *h->drop * tensors);
    h->of = alloc(sizeof *h->of * tensors);
    h->order = alloc(sizeof *h->order * tensors);
    h->best = alloc(sizeof *h->best * tensors);
    h->heap = alloc(sizeof *h->heap * tensors);
    h->was = alloc(sizeof *h->was * tensors);
    h->before = alloc(sizeof *h->before * tensors);
    h->rank = alloc(sizeof *h->rank * tensors);
    h->count = alloc(sizeof *h->count * tensors);
    h->width = alloc(sizeof *h->width * tensors);
    h->total = alloc(sizeof *h->total * tensors);
    knapsack_open(h);
    return h;
}

Load fates_choose(Hunt *h, int first, int last, int chunk, Bytes limit, int *fate)
{
    h->first = first, h->last = last, h->chunk = chunk;
    h->limit = limit;
    h->fate = fate;
    h->load = live_load(h->live, first, last, chunk, fate);
    if (h->load.need <= limit)
        return h->load;
    h->others = live_others(h->live, chunk);
    find_items(h);
    hunt_copy(h, h->best);
    h->budget = WORK / (live_calls(h->live, first, last) + 1) + LEAST;
    if (h->n > EXACT)
        search(h);
    else if (h->n > 0)
        enumerate(h);
    hunt_back(h, h->best);
    return h->load;
}
