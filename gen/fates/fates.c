/* SPDX-License-Identifier: Apache-2.0
 *
 * fates.c: tensors of a run are dropped, so that it fits and least time is added.
 *
 * Problem: choose the set of dropped tensors that adds the least time, with the bytes alive at every call under the limit.  A
 * dropped tensor is made again once per backward, with all its inputs that nobody keeps.
 *
 * Method: live_load judges every choice, by the same replay for all.  No estimate is believed.
 *
 *   up to 2^FATE_TENSORS choices, twelve tensors where nothing is offloaded: all of them, by depth first search.  A
 *   tensor counts if
 *     backward reads it, or if something that counts is made from it.  Two bounds cut the tree.  A tensor decided to be dropped
 *     that is read costs at least its operator once.  A tensor decided to be kept that is read is saved by every micro-batch at
 *     rest.  Equal times: the choice that moves least, then the lexicographically smallest one, with keep before recompute
 *     before offload
 *   above: operators are dropped or kept whole.  The search begins from several families of choices (seeds.c, knapsack.c,
 *     offload_choice.c).  Each is right somewhere; the best of them is improved step by step (improve.c)
 *
 * Keeping nothing is not the least memory: rebuilt tensors live beside gradients.  So where nothing seems to fit, the answer is
 * the least that was met.  Up to so many choices it is proven to be the least.
 *
 * Source: Checkmate (Jain et al., 2020) and MONeT (Shah et al., 2021) solve an integer program, exact and slow, with
 * rebuilding more than once.  rotor (Beaumont et al., 2019) is optimal for chains of blocks.  Capuchin (Peng et al., 2020) is
 * greedy by bytes per second.  A planner that compares thousands of runs needs microseconds, and a pipeline stage has few
 * candidates that are not equal to others.
 *
 * Cost: at most 2^FATE_TENSORS replays of a run that small; above, about HUNT_CALLS calls of replays, whatever the run.
 */
#include "hunt.h"
#include "budgets.h"

/* ---- which tensors matter ---------------------------------------------------------------------------------------- */

static void add_item(Hunt *h, HuntItem item)
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

/* Operands that only serve drop d: it reads them and backward does not.  Their own operands likewise. */
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

void hunt_items(Hunt *h, bool sent)
{
    const Ns *time = live_alone(h->live, h->chunk);
    const char *matters = live_matters(h->live, h->first, h->last, h->may);
    h->n = h->drops = h->operand.n = h->ordered = 0;
    for (int i = 0; i < h->tensors; i++) {
        int t = h->made[i], op = live_maker(h->live, t);
        char may = h->may[t];
        h->of[t] = -1;
        if (matters[t] && may && !(sent && (h->fate[t] == FATE_OFFLOAD || may == MAY_SEND)))
            add_item(h, (HuntItem){t, op, may, matters[t] == LIVE_READ, live_size(h->live, t), time[op]});
    }
    for (int d = 0; d < h->drops; d++)
        if (h->drop[d].bytes > 0)
            find_operands(h, d);
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

void hunt_keep(Hunt *h)
{
    for (int i = 0; i < h->tensors; i++)
        if (h->may[h->made[i]])
            h->fate[h->made[i]] = FATE_KEEP;
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

bool hunt_spent(const Hunt *h)
{
    return purse_left(h->work) <= 0;
}

void hunt_pay(Hunt *h, int64_t calls)
{
    purse_spend(h->work, calls);
}

static HuntLoad load_of(Hunt *h)
{
    const Load l = live_load(h->live, h->first, h->last, h->chunk, h->fate);
    return (HuntLoad){l, live_copies(h->live)};
}

/* Bytes that the host lacks count as if the device lacked them.  Windows are planned over the whole list: that costs more. */
static Load judge(Hunt *h, HuntLoad x)
{
    Bytes over = (h->others + 1) * x.load.moved - h->host;
    h->budget -= 1 + x.copies / h->calls;
    hunt_pay(h, h->calls + 4 * (int64_t)x.copies);
    x.load.need += over > 0 ? over : 0;
    return x.load;
}

Load hunt_judge(Hunt *h)
{
    return judge(h, load_of(h));
}

bool hunt_better(const Hunt *h, const Load *a, const Load *b)
{
    bool fits = a->need <= h->limit, other = b->need <= h->limit;
    Ns added = a->again + a->stall, than = b->again + b->stall;
    if (fits != other || !fits)
        return fits != other ? fits : a->need < b->need;
    return added != than ? added < than : a->moved < b->moved;
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
    for (int i = 0; i < h->tensors; i++)
        to[i] = h->fate[h->made[i]];
}

void hunt_back(Hunt *h, const int *from)
{
    for (int i = 0; i < h->tensors; i++)
        h->fate[h->made[i]] = from[i];
}

/* time / bytes < than / than_bytes, in whole numbers.  A choice that frees nothing is dearest. */
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

/* Sums over the items before i, which are decided: at least this is made again, saved and moved. */
typedef struct { Ns again; Bytes saved, moved; } Sum;

static int fates_of(const HuntItem *x)
{
    return 1 + ((x->may & MAY_DROP) > 0) + ((x->may & MAY_SEND) > 0);
}

static bool hopeless(const Hunt *h, const Sum *s, bool least)
{
    Bytes need = h->load.states + h->others * s->saved;
    Ns added = h->load.again + h->load.stall;
    if (h->load.need > h->limit)
        return least && need >= h->load.need;
    return need > h->limit || s->again > added || (s->again == added && s->moved >= h->load.moved);
}

/* Tries all choices of items i and on.  number: of the choices of those before.  least: look for the smallest need. */
static void every(Hunt *h, int i, int number, Sum s, bool least)
{
    if (hopeless(h, &s, least))
        return;
    if (i == h->n) {
        if (h->met[number].load.need < 0)
            h->met[number] = load_of(h);
        Load l = judge(h, h->met[number]);
        hunt_take(h, &l);
        return;
    }
    const HuntItem *x = &h->item[i];
    Bytes bytes = x->read ? x->bytes : 0;
    int *drops = &h->count[x->op - h->first], *fate = &h->fate[x->tensor];
    number *= fates_of(x);
    *fate = FATE_KEEP;
    every(h, i + 1, number++, (Sum){s.again, s.saved + bytes, s.moved}, least);
    if (x->may & MAY_DROP) {
        *fate = FATE_RECOMPUTE;
        *drops += x->read;
        every(h, i + 1, number++, (Sum){s.again + (x->read && *drops == 1 ? x->time : 0), s.saved, s.moved}, least);
        *drops -= x->read;
    }
    if (x->may & MAY_SEND) {
        *fate = FATE_OFFLOAD;
        every(h, i + 1, number, (Sum){s.again, s.saved, s.moved + bytes}, least);
    }
}

/* The number of choices; more than 2^FATE_TENSORS are not counted. */
static int choices(const Hunt *h)
{
    int n = 1;
    for (int i = 0; i < h->n && n <= 1 << FATE_TENSORS; i++)
        n *= fates_of(&h->item[i]);
    return n;
}

/* Where nothing fits, many choices are met twice, and loaded once. */
static void enumerate(Hunt *h)
{
    Sum s = {.saved = h->load.saved};
    for (int i = 0; i < h->n; i++)
        s.saved -= h->item[i].read ? h->item[i].bytes : 0;
    for (int o = h->first; o <= h->last; o++)
        h->count[o - h->first] = 0;
    const int n = choices(h);
    if (h->mets < n)
        h->met = alloc(sizeof *h->met * (size_t)(h->mets = n));
    for (int i = 0; i < n; i++)
        h->met[i].load.need = -1;
    every(h, 0, 0, s, false);
    if (h->load.need > h->limit)
        every(h, 0, 0, s, true);
}

/* ---- the answer -------------------------------------------------------------------------------------------------- */

/* If offload alone costs nothing, no other choice is cheaper and the search ends. */
static void search(Hunt *h)
{
    int budget = h->budget;
    send(h);
    if (h->spent && h->load.need <= h->limit)
        return;
    hunt_keep(h);
    hunt_items(h, true);
    if (h->n == 0 || (h->load.need <= h->limit && h->load.again + h->load.stall == 0))
        return;
    h->budget = budget;
    seed_prefixes(h);
    if (h->spent && h->load.need <= h->limit)
        return;
    seed_knapsack(h);
    h->budget = budget / 2;
    hunt_back(h, h->best);
    improve(h, h->load);
    h->budget = budget / 2;
    improve(h, seed_patterns(h));
}

char *fates_may(const Plan *p, const int *base)
{
    const PlanSpec *spec = &p->m->plan;
    Model free = *p->m;         /* but for plan.constraints */
    Plan with = *p;
    free.plan.recompute = RECOMPUTE_AUTO;
    free.plan.offload = OFFLOAD_NONE;
    free.plan.names = free.plan.away = (Strs){NULL, 0, 0};
    with.m = &free;
    const int *cheap = keep_fates(&with, true);
    bool overlap = order_overlap(p) > 0;
    char *may = alloc((size_t)p->g->tensor.n);
    for (int t = 0; t < p->g->tensor.n; t++) {
        if (cheap[t] == FATE_KEEP || base[t] == FATE_OFFLOAD)
            continue;
        if (spec->recompute == RECOMPUTE_AUTO)
            may[t] |= MAY_DROP;
        if (spec->offload == OFFLOAD_AUTO && !p->ask.choice.no_offload && !overlap &&
            (base[t] == FATE_KEEP || spec->recompute == RECOMPUTE_AUTO))
            may[t] |= MAY_SEND;
    }
    return may;
}

enum { LEAST_COPY = 4096 };     /* bytes: below, a copy is all latency */

Hunt *fates_open(Live *live, const char *may)
{
    Hunt *h = alloc(sizeof *h);
    size_t tensors = (size_t)live_tensors(live) + 1;
    const Plan *p = live_plan(live);
    int shared = p->m->hosts > 0 ? (p->m->devices.n + p->m->hosts - 1) / p->m->hosts : 1;
    char *of = alloc(tensors);          /* small tensors are not copied to the host */
    for (int t = 0; t < live_tensors(live); t++)
        of[t] = (char)(p->g->tensor.at[t].bytes < LEAST_COPY ? may[t] & ~MAY_SEND : may[t]);
    *h = (Hunt){.live = live, .may = of, .memory_order = p->m->plan.memory_order, .host = INT64_MAX,
                .work = p->ask.work};
    if (p->m->host_memory > 0 && !p->m->plan.disk)
        h->host = p->m->host_memory / shared;
    h->item = alloc(sizeof *h->item * tensors);
    h->drop = alloc(sizeof *h->drop * tensors);
    h->of = alloc(sizeof *h->of * tensors);
    h->ranked = alloc(sizeof *h->ranked * tensors);
    h->best = alloc(sizeof *h->best * tensors);
    h->heap = alloc(sizeof *h->heap * tensors);
    h->was = alloc(sizeof *h->was * tensors);
    h->out = alloc(sizeof *h->out * tensors);
    h->before = alloc(sizeof *h->before * tensors);
    h->rank = alloc(sizeof *h->rank * tensors);
    h->count = alloc(sizeof *h->count * tensors);
    h->width = alloc(sizeof *h->width * tensors);
    h->total = alloc(sizeof *h->total * tensors);
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
    h->made = live_made(h->live, first, last, &h->tensors);
    hunt_items(h, false);
    hunt_copy(h, h->best);
    h->calls = live_calls(h->live, first, last) + 1;
    h->spent = hunt_spent(h);
    h->budget = h->spent ? 0 : HUNT_CALLS / h->calls + LEAST_REPLAYS;
    if (choices(h) > 1 << FATE_TENSORS)
        search(h);
    else if (h->n > 0)
        enumerate(h);
    hunt_back(h, h->best);
    return h->load;
}
