/* SPDX-License-Identifier: Apache-2.0
 *
 * capuchin.c: tensors of a stage are offloaded or made again, one after another, until the stage fits.
 *
 * Problem: bring a stage under its limit for little time.
 *
 * Method: two rankings.
 *
 *   free time       the time of a tensor from its making to its first reader in backward, less the way out and back.  Over a
 *                   pipeline that is (k-1) periods, with k micro-batches in flight, and the rest of the stage's forward
 *                   and the begin of its backward.  Tensors with free time go to the host, most free time first, as
 *                   long as the copies of one period fit the link
 *   bytes a second  for the bytes still missing: the largest saving for the added time.  The time is that to make the tensor
 *                   again from what is there, or the part of its copy that does not hide.  A choice changes the price of
 *                   others, so all are priced anew after each
 *
 * A tensor is made again under dpgen's rebuild rule, once per backward.  So one more dropped tensor adds only the time of
 * operators that nothing else makes again already.  Capuchin may make a tensor several times, and counts it so often.
 *
 * The rankings give one order.  The answer is its shortest prefix that fits.  Needs fall and then rise along the order, since
 * rebuilt tensors live side by side.  So the prefix is looked for in strides of the root of its length before it is bisected.
 *
 * Source: Peng, Shi, Dai, Jin, Ma, Xiong, Yang, Qian, Capuchin: Tensor-based GPU Memory Management for Deep Learning, ASPLOS
 * 2020.  Three of these authors wrote DawnPiper.  Only the abstract of DawnPiper's own optimiser was at hand, so its ancestor
 * stands in for it.
 *
 * Cost: n choices among n candidates, and sqrt n + log n replays of the stage.  The time to make a candidate again is computed
 * anew only if a choice touched its inputs.
 *
 * Not handled, but by `fates.c`: a choice that later ones made needless is never taken back.  Free time knows of no other
 * stage's messages.
 */
#include "rivals.h"
#include "budgets.h"
#include "list/list.h"

typedef struct { int tensor; int fate; } Pick;
typedef struct { int tensor; Bytes bytes; Ns free, copy; } CapuchinItem;
typedef struct { CapuchinItem *item; int n; Pick *pick; int picks; Ns booked; } Queue;

struct Capuchin {
    const Question *q;
    Choices choices;
    Ns period;
    int *reader;                /* by tensor: last forward operator whose backward reads it: its first reader in backward */
    /* of the stage at hand */
    int first, last, chunk, device;
    Ns *before, *behind;        /* by operator: time of the stage's forward up to it; of its backward from the end to it */
    int *fate;                  /* the caller's */
    Operands operands;
    Rebuild back;               /* what is made again, as things stand */
    Queue queue;
    Ns *make;                   /* by tensor: the time to make it again, as things stand; -1: not known */
    Ints *known;                /* by operator: tensors whose time counts it */
    Ints *readers;              /* by tensor: forward operators */
};

Capuchin *capuchin_open(const Question *q, Ns period)
{
    const Graph *g = q->p->g;
    Capuchin *x = alloc(sizeof *x);
    *x = (Capuchin){.q = q, .choices = choices_of(q->p), .period = period};
    x->reader = alloc(sizeof(int) * (size_t)g->tensor.n);
    for (int o = g->nf; o < g->nb; o++)
        for (EACH(const Arg, a, g->op.at[o].arg)) {
            if (a->kind == ARG_READ && !a->state && g->op.at[o].fwd > x->reader[a->index])
                x->reader[a->index] = g->op.at[o].fwd;
        }
    x->before = alloc(sizeof(Ns) * (size_t)(g->nf + 1));
    x->behind = alloc(sizeof(Ns) * (size_t)(g->nf + 1));
    x->operands = operands_of(g);
    x->back = rebuild_open(g, &x->operands);
    x->queue.item = alloc(sizeof(CapuchinItem) * (size_t)g->tensor.n);
    x->queue.pick = alloc(sizeof(Pick) * (size_t)g->tensor.n);
    x->make = alloc(sizeof(Ns) * (size_t)g->tensor.n);
    x->known = alloc(sizeof(Ints) * (size_t)g->nf);
    x->readers = alloc(sizeof(Ints) * (size_t)g->tensor.n);
    for (int o = 0; o < g->nf; o++)
        for (int i = x->operands.op[o].read.from; i < x->operands.op[o].read.to; i++)
            *PUSH(&x->readers[x->operands.tensor.at[i]]) = o;
    return x;
}

/* ---- the stage at hand ------------------------------------------------------------------------------------------- */

static void enter(Capuchin *x, int first, int last, int chunk, int *fate)
{
    const Graph *g = x->q->p->g;
    const Cost *c = x->q->p->c;
    x->first = first;
    x->last = last;
    x->chunk = chunk;
    x->device = stage_of(x->q->p, chunk);
    x->fate = fate;
    rebuild_begin(&x->back, first, last, fate);
    for (int o = first; o <= last; o++)
        x->behind[o] = x->known[o].n = 0;
    for (int o = g->nf; o < g->nb; o++)
        if (g->op.at[o].fwd >= first && g->op.at[o].fwd <= last)
            x->behind[g->op.at[o].fwd] += cost_op(c, x->device, o);
    x->before[first] = x->behind[last + 1] = 0;
    for (int o = first; o <= last; o++)
        x->before[o + 1] = x->before[o] + cost_op(c, x->device, o);
    for (int o = last; o >= first; o--)
        x->behind[o] += x->behind[o + 1];
}

/* From the end of its maker to its first reader in backward. */
static Ns gap(const Capuchin *x, int t)
{
    int op = x->q->p->g->tensor.at[t].op, reader = x->reader[t] < x->last ? x->reader[t] : x->last;
    return (x->q->flight[x->chunk] - 1) * x->period + x->before[x->last + 1] - x->before[op + 1] + x->behind[reader + 1];
}

static Queue items(Capuchin *x)
{
    const Graph *g = x->q->p->g;
    Queue order = {.item = x->queue.item, .pick = x->queue.pick};
    for (int t = 0; t < g->tensor.n; t++) {
        const Tensor *v = &g->tensor.at[t];
        if (v->op < x->first || v->op > x->last)
            continue;
        x->fate[t] = x->choices.base[t];
        x->make[t] = -1;
        Ns copy = cost_host(x->q->p->c, x->device, v->bytes);
        if (x->choices.may[t])
            order.item[order.n++] = (CapuchinItem){t, v->bytes, gap(x, t) - 2 * copy, copy};
    }
    return order;
}

/* Operator o changed: all times that count it become unknown. */
static void forget(Capuchin *x, int o)
{
    if (o < x->first || o > x->last)
        return;
    for (int i = 0; i < x->known[o].n; i++)
        x->make[x->known[o].at[i]] = -1;
    x->known[o].n = 0;
}

/* The time of the operators that have to be made again besides if t is dropped. */
static Ns rebuilt(Capuchin *x, int t)
{
    Rebuild *r = &x->back;
    if (x->make[t] >= 0)
        return x->make[t];
    x->make[t] = r->lines = 0;
    rebuild_op(r, r->maker[t], 0);
    for (int i = 0; i < r->lines; i++) {
        x->make[t] += cost_op(x->q->p->c, x->device, r->line[i]);
        *PUSH(&x->known[r->line[i]]) = t;
        r->again[r->line[i]] = 0;
    }
    return x->make[t];
}

/* Drops t: its readers need it made, and tensors made for it are there for others. */
static void drop(Capuchin *x, int t)
{
    x->back.lines = 0;
    rebuild_op(&x->back, x->back.maker[t], 0);
    for (int i = 0; i < x->back.lines; i++)
        forget(x, x->back.line[i]);
    for (int i = 0; i < x->readers[t].n; i++)
        forget(x, x->readers[t].at[i]);
}

/* ---- the order --------------------------------------------------------------------------------------------------- */

ORDER(by_free_time, CapuchinItem, order_of(y->free, x->free), order_of(x->tensor, y->tensor))

static void choose(Capuchin *x, Queue *order, int i, int fate)
{
    CapuchinItem item = order->item[i];
    x->fate[item.tensor] = fate;
    if (fate == FATE_RECOMPUTE)
        drop(x, item.tensor);
    else
        order->booked += item.copy;
    order->pick[order->picks++] = (Pick){item.tensor, fate};
    for (; i + 1 < order->n; i++)
        order->item[i] = order->item[i + 1];
    order->n--;
}

static void free_swaps(Capuchin *x, Queue *order)
{
    SORT(order->item, order->n, by_free_time);
    for (int i = 0; i < order->n;) {
        bool hides = order->item[i].free >= 0 && order->booked + order->item[i].copy <= x->period;
        if (hides)
            choose(x, order, i, FATE_OFFLOAD);
        else
            i++;
    }
}

/* The time that offloading adds: the part of its copies that does not hide, and the part that the link has no time for. */
static Ns stall(const Capuchin *x, const Queue *order, const CapuchinItem *i)
{
    Ns late = i->free < 0 ? -i->free : 0, full = order->booked + i->copy - x->period;
    return late + (full > 0 ? full : 0);
}

static void paid(Capuchin *x, Queue *order)
{
    while (order->n) {
        int best = -1, fate = FATE_KEEP;
        Ns least = 0;           /* a mebibyte */
        for (int i = 0; i < order->n; i++) {
            const CapuchinItem *item = &order->item[i];
            Ns make = x->choices.recompute ? rebuilt(x, item->tensor) : INT64_MAX;
            Ns move = x->choices.offload ? stall(x, order, item) : INT64_MAX;
            Ns price = rivals_rate(make <= move ? make : move, item->bytes);
            if (best >= 0 && price >= least)
                continue;
            best = i;
            least = price;
            fate = make <= move ? FATE_RECOMPUTE : FATE_OFFLOAD;
        }
        choose(x, order, best, fate);
    }
}

/* ---- the answer -------------------------------------------------------------------------------------------------- */

static void set_prefix(Capuchin *x, const Queue *order, int n)
{
    for (int i = 0; i < order->picks; i++)
        x->fate[order->pick[i].tensor] = i < n ? order->pick[i].fate : FATE_KEEP;
}

static bool prefix_fits(Capuchin *x, const Queue *order, int n)
{
    Ns time;
    set_prefix(x, order, n);
    return price_need(x->q->prices, x->first, x->last, x->chunk, x->fate, &time) <= x->q->share[x->chunk];
}

static Price prefix(Capuchin *x, const Queue *order, int n)
{
    set_prefix(x, order, n);
    return price_with(x->q->prices, x->first, x->last, x->chunk, x->fate);
}

Price capuchin(Capuchin *x, int first, int last, int chunk, int *fate)
{
    enter(x, first, last, chunk, fate);
    Queue order = items(x);
    bool fits = prefix_fits(x, &order, 0);
    if (fits || order.n == 0)
        return prefix(x, &order, 0);
    if (x->choices.offload)
        free_swaps(x, &order);
    paid(x, &order);
    int low = 0, high = 0, stride = 1;
    while (stride * stride < order.picks)
        stride++;
    while (!fits && high < order.picks) {
        low = high;
        high = high + stride < order.picks ? high + stride : order.picks;
        fits = prefix_fits(x, &order, high);
    }
    while (fits && high - low > 1) {
        int middle = low + (high - low) / 2;
        if (prefix_fits(x, &order, middle))
            high = middle;
        else
            low = middle;
    }
    return prefix(x, &order, high);
}
