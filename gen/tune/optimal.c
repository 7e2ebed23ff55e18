/* SPDX-License-Identifier: Apache-2.0
 *
 * optimal.c: the lists of `optimal`, for the cuts of a plan.
 *
 * Problem: which order of forwards, input gradients and weight gradients makes the step shortest, where stages are unequal and
 * memory is short.
 *
 * Method: the plan becomes a job shop (jobshop.c): the times of its prices, its messages, and bytes by micro-batch.  Bytes are
 * asked of the replay: one micro-batch after the other, then two in flight, then two that wait for W, each under the fates of
 * the plan.  The search in the shop begins with the lists of every plan at hand and with greedy ones.  Its answers are judged
 * by preview.c and priced anew, as in paces.c.  Where one does not fit, the room in the shop shrinks by what was lacking, and
 * the search runs again.
 *
 * The cuts of the answer are those of the plan.  list.c plans again with the lists.
 *
 * Cost: OPTIMAL_STEPS, and some thirty previews.  Not handled: packing; fates of other lists within the shop; chunks
 * of a device that need most at different times.
 */
#include "tune.h"
#include "exact/exact.h"

typedef struct {
    const Plan *p;              /* has the cuts */
    const Bytes *limit;
    int n, chunks, m;           /* stages, chunks and micro-batches of a replica */
    int *last;
    Bytes *share, *whole;       /* by device: the limit of each of its chunks, and of all together */
    Ns *time[JOBSHOP_KINDS], *down, *up, *tail;
    Bytes *held[2], *room, *need;       /* need: by device, of the lists judged last */
    int *device, *back;         /* by chunk; back: of the other direction, or NULL */
    bool *joint;
    JobShop jobshop;
    Ns value;                   /* of the best */
    const Actions *best;
} OptimalTuner;

/* ---- lists as actions and as computations ---------------------------------------------------------------------------- */

static Actions *actions_of(const OptimalTuner *x, const Ints *list)
{
    static const ActionKind kinds[] = {K_F, K_I, K_W};
    Actions *all = alloc(sizeof *all * (size_t)x->n);
    for (int d = 0; d < x->n; d++)
        for (int i = 0; i < list[d].n; i++) {
            int op = list[d].at[i], kind = jobshop_kind(&x->jobshop, op), c = jobshop_chunk(&x->jobshop, op);
            Action *k = PUSH(&all[d]), new = action_new(kind == JOBSHOP_I && x->joint[c] ? K_B : kinds[kind], 0,
                                                        jobshop_mb(&x->jobshop, op));
            new.chunk = c;
            *k = new;
        }
    return all;
}

/* The lists of a plan; joint follows them. */
static Ints *computations_of(OptimalTuner *x, const Plan *p)
{
    Ints *list = alloc(sizeof *list * (size_t)x->n);
    memset(x->joint, 0, (size_t)x->chunks);
    for (int d = 0; d < x->n; d++)
        for (EACH(const Action, k, p->dev.at[d].order)) {
            int kind = k->kind == K_F ? JOBSHOP_F : k->kind == K_W ? JOBSHOP_W : JOBSHOP_I;
            if (k->kind != K_F && k->kind != K_B && k->kind != K_I && k->kind != K_W)
                continue;
            x->joint[k->chunk] |= k->kind == K_B;
            *PUSH(&list[d]) = jobshop_op(&x->jobshop, kind, k->chunk, k->mb);
        }
    return list;
}

/* ---- the judge ------------------------------------------------------------------------------------------------------- */

static Plan *plan_with(const OptimalTuner *x, const Actions *lists)
{
    Ask ask = x->p->ask;
    ask.choice.lists = lists;
    return new_plan(x->p->g, x->p->c, x->p->m, x->n, x->p->schedule, &ask);
}

static int first_of(const OptimalTuner *x, int chunk)
{
    return chunk ? x->last[chunk - 1] + 1 : 0;
}

/* The step of these lists; INT64_MAX: they do not fit, and need says how much is lacking. */
static Ns step_of(OptimalTuner *x, const Actions *lists)
{
    void *mark = mem_mark();
    Plan *p = plan_with(x, lists);
    Ns step = INT64_MAX;
    if (!order(p)) {
        Question q = part_question(p, x->limit);
        const Price **price = alloc(sizeof *price * (size_t)x->chunks);
        Prices *prices = prices_open(q.p, price_whole(q.p, x->share));
        bool fits = true;
        memset(x->need, 0, sizeof *x->need * (size_t)x->n);
        for (int c = 0; c < x->chunks; c++) {
            price[c] = price_best(prices, first_of(x, c), x->last[c], c);
            x->need[x->device[c]] += price[c]->need;
        }
        for (int d = 0; d < x->n; d++)
            fits &= x->need[d] <= x->whole[d];
        if (fits)
            step = preview(preview_open(facts_of(&q)), x->last, price, x->value);
    }
    mem_release(mark);
    return step;
}

/* Takes lists that are better; false: they do not fit. */
static bool judge(OptimalTuner *x, const Ints *list)
{
    Actions *lists = actions_of(x, list);
    Ns step = step_of(x, lists);
    if (step < x->value) {
        x->value = step;
        x->best = lists;
    }
    return step < INT64_MAX;
}

/* ---- the shop of a plan ---------------------------------------------------------------------------------------------- */

/* One micro-batch after the other; two in flight; two that wait for W. */
typedef enum { PROBE_ONE, PROBE_FLIGHT, PROBE_LATE, PROBES } OptimalProbe;

/* One computation of each chunk of the device; backward from its last chunk on. */
static void put(const OptimalTuner *x, Ints *list, int device, int kind, int mb)
{
    for (int i = 0; i < x->chunks && mb >= 0 && mb < x->m; i++) {
        int c = kind == JOBSHOP_F ? i : x->chunks - 1 - i;
        if (x->device[c] == device)
            *PUSH(list) = jobshop_op(&x->jobshop, kind, c, mb);
    }
}

static Actions *probe_lists(const OptimalTuner *x, OptimalProbe what)
{
    Ints *list = alloc(sizeof *list * (size_t)x->n);
    for (int d = 0; d < x->n; d++)
        for (int k = -1; k <= x->m; k++) {
            put(x, &list[d], d, JOBSHOP_F, k + (what == PROBE_FLIGHT));
            put(x, &list[d], d, JOBSHOP_I, k);
            put(x, &list[d], d, JOBSHOP_W, k - (what == PROBE_LATE));
        }
    return actions_of(x, list);
}

/* What each chunk needs with these lists, under these fates. */
static void probe(const OptimalTuner *x, OptimalProbe what, const int *fate, Bytes *need)
{
    Plan *p = plan_with(x, probe_lists(x, what));
    if (order(p))
        die("optimal: no lists of a probe");
    Question q = part_question(p, x->limit);
    Prices *prices = prices_open(q.p, price_whole(q.p, x->limit));
    Ns time;
    for (int c = 0; c < x->chunks; c++)
        need[c] = price_need(prices, first_of(x, c), x->last[c], c, fate, &time);
}

static void set_held(OptimalTuner *x, const int *fate)
{
    Bytes *need[PROBES];
    memset(x->joint, 0, (size_t)x->chunks);
    for (int k = 0; k < PROBES; k++) {
        need[k] = alloc(sizeof(Bytes) * (size_t)x->chunks);
        probe(x, (OptimalProbe)k, fate, need[k]);
    }
    memcpy(x->room, x->whole, sizeof *x->room * (size_t)x->n);
    for (int c = 0; c < x->chunks; c++) {
        Bytes flight = need[PROBE_FLIGHT][c] - need[PROBE_ONE][c], late = need[PROBE_LATE][c] - need[PROBE_ONE][c];
        x->held[0][c] = flight > 0 ? flight : 0;
        x->held[1][c] = late > 0 ? late : 0;
        x->room[x->device[c]] -= need[PROBE_ONE][c] - x->held[0][c] - x->held[1][c];
    }
}

static void set_times(OptimalTuner *x, const Facts *f, int chunk, const Price *price)
{
    int first = first_of(x, chunk), last = x->last[chunk];
    const Ns *w = f->weight[f->class[chunk]], *u = f->update[f->class[chunk]];
    x->time[JOBSHOP_W][chunk] = w[last + 1] - w[first];
    x->time[JOBSHOP_F][chunk] = price->forward + f->load[last + 1] - f->load[first];
    x->time[JOBSHOP_I][chunk] = price->backward - x->time[JOBSHOP_W][chunk];
    x->tail[x->device[chunk]] += u[last + 1] - u[first];
    if (x->back)
        x->tail[x->back[chunk]] += u[last + 1] - u[first];
    if (chunk) {
        Link k = facts_link(f, chunk, first, last);
        x->down[chunk - 1] = k.there;
        x->up[chunk] = k.comm - k.there;
    }
}

/* Times and bytes as the plan has them. */
static void open_shop(OptimalTuner *x)
{
    Plan *p = plan_with(x, x->p->ask.choice.lists);
    if (order(p))
        die("optimal: no lists of a plan");
    Question q = part_question(p, x->limit);
    Prices *prices = prices_open(q.p, price_whole(q.p, x->share));
    const Facts *f = facts_of(&q);
    int *fate = keep_fates(q.p, false);
    for (int c = 0; c < x->chunks; c++) {
        const Price *price = price_best(prices, first_of(x, c), x->last[c], c);
        set_times(x, f, c, price);
        for (int i = 0; i < price->tensor.n; i++)
            fate[price->tensor.at[i]] = price->fate.at[i];
    }
    set_held(x, fate);
}

/* A plan that fits shows how its chunks share a device.  Their needs may add up to more than the limit, because they seldom
 * need most at the same time. */
static void set_limits(OptimalTuner *x)
{
    Bytes *most = alloc(sizeof *most * (size_t)x->n), *sum = alloc(sizeof *sum * (size_t)x->n);
    Bytes *need = alloc(sizeof *need * (size_t)x->chunks);
    keep_chunks(x->p, need);
    for (int c = 0; c < x->chunks; c++) {
        int d = x->device[c];
        most[d] = need[c] > most[d] ? need[c] : most[d];
        sum[d] += need[c];
    }
    for (int d = 0; d < x->n; d++) {
        x->whole[d] = sum[d] > x->limit[d] ? sum[d] : x->limit[d];
        x->share[d] = sum[d] > most[d] ? most[d] + (x->whole[d] - sum[d]) / 2 : x->limit[d];
    }
}

static OptimalTuner *tuner_new(const Plan *p, const Bytes *limit)
{
    OptimalTuner *x = alloc(sizeof *x);
    int n = plan_stages(p), chunks = plan_chunks(p);
    size_t bytes = sizeof(int64_t) * (size_t)chunks;
    *x = (OptimalTuner){.p = p, .limit = limit, .n = n, .chunks = chunks, .m = plan_micro(p), .last = part_last(p, chunks),
                        .value = INT64_MAX};
    for (int k = 0; k < JOBSHOP_KINDS; k++)
        x->time[k] = alloc(bytes);
    Bytes **all[] = {&x->down, &x->up, &x->tail, &x->held[0], &x->held[1], &x->room, &x->need, &x->share, &x->whole};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        *all[i] = alloc(bytes);
    x->device = alloc(bytes);
    x->joint = alloc((size_t)chunks);
    x->back = plan_ways(p) > 1 ? alloc(bytes) : NULL;
    for (int c = 0; c < chunks; c++) {
        x->device[c] = stage_of(p, c);
        if (x->back)
            x->back[c] = plan_home(p, 1, c);
    }
    x->jobshop = (JobShop){n, chunks, x->m, x->device, x->joint, {x->time[0], x->time[1], x->time[2]}, x->down, x->up, x->tail,
                           {x->held[0], x->held[1]}, x->room, x->back};
    if (x->last)
        set_limits(x);
    return x;
}

/* ---- the search ------------------------------------------------------------------------------------------------------ */

typedef struct { Ints *list; bool *joint; Ns step; } Start;
typedef VEC(Start) Starts;

/* Sorted by step; equal ones as they come. */
static void add_start(const OptimalTuner *x, Starts *all, Ints *list)
{
    Start s = {list, memcpy(alloc((size_t)x->chunks), x->joint, (size_t)x->chunks), jobshop_step(&x->jobshop, list)};
    for (EACH(const Start, b, *all)) {
        bool same = s.step == b->step && !memcmp(s.joint, b->joint, (size_t)x->chunks);
        for (int d = 0; d < x->n && same; d++)
            same = !memcmp(s.list[d].at, b->list[d].at, sizeof(int) * (size_t)s.list[d].n);
        if (same)
            return;
    }
    PUSH(all);
    int at = all->n - 1;
    for (; at > 0 && all->at[at - 1].step > s.step; at--)
        all->at[at] = all->at[at - 1];
    all->at[at] = s;
}

static Starts starts_of(OptimalTuner *x, const Plans *from)
{
    Starts all = {0};
    for (int i = 0; i < from->n; i++)
        add_start(x, &all, computations_of(x, from->at[i]));
    memset(x->joint, 0, (size_t)x->chunks);
    for (int ahead = -1; ahead < x->chunks; ahead++)
        for (int wait = 0; wait < 2; wait++) {
            Ints *list = alloc(sizeof *list * (size_t)x->n);
            if (ahead < 0)
                jobshop_single(&x->jobshop, list);
            if (ahead < 0 || jobshop_greedy(&x->jobshop, ahead, wait, list))
                add_start(x, &all, list);
        }
    return all;
}

/* Better lists from these, in rooms that shrink until the better ones fit; a round of it takes `part` of the steps. */
static void improve(OptimalTuner *x, const Start *s, int64_t part, int64_t *steps)
{
    memcpy(x->joint, s->joint, (size_t)x->chunks);
    if (!judge(x, s->list))
        return;
    for (int d = 0; d < x->n; d++)
        x->room[d] = x->whole[d] - x->need[d] + jobshop_peak(&x->jobshop, s->list, d);
    for (int round = 0; round < ROUNDS; round++) {
        Ints *list = alloc(sizeof *list * (size_t)x->n);
        for (int d = 0; d < x->n; d++)
            APPEND(&list[d], s->list[d]);
        int64_t left = part;
        bool other = jobshop_improve(&x->jobshop, list, &left);
        *steps -= part - left;
        if (!other || judge(x, list))
            break;
        for (int d = 0; d < x->n; d++)
            x->room[d] -= x->need[d] > x->whole[d] ? x->need[d] - x->whole[d] : 0;
    }
}

const Actions *lists_of(const Plan *p, const Bytes *limit, const Plans *from)
{
    OptimalTuner *x = tuner_new(p, limit);
    if (!x->last)
        return NULL;
    x->value = step_of(x, p->ask.choice.lists);
    open_shop(x);
    Starts all = starts_of(x, from);
    int64_t steps = min_of(OPTIMAL_STEPS, (int64_t)OPTIMAL_MOVES * JOBSHOP_KINDS * x->m * x->chunks);
    const int64_t part = steps / (ROUNDS * ROUNDS);
    for (int i = 0; i < all.n && steps > 0; i++)
        improve(x, &all.at[i], part, &steps);
    return x->best;
}

/* ---- the bound ------------------------------------------------------------------------------------------------------- */

/* Are times and messages of the other direction those of the first? */
static bool is_mirrored(const OptimalTuner *x)
{
    const Cost *c = x->p->c;
    bool same = true;
    for (int k = 0; x->back && k < x->chunks; k++) {
        int from = x->device[k ? k - 1 : 0], to = x->device[k], of = x->back[k ? k - 1 : 0], at = x->back[k];
        same &= c->of.at[to] == c->of.at[at];
        for (Bytes bytes = 1; bytes <= INT32_MAX && from != to; bytes += INT32_MAX - 1)
            same &= cost_latency(c, from, to) == cost_latency(c, of, at) && cost_latency(c, to, from) == cost_latency(c, at, of)
                    && cost_wire(c, from, to, bytes) == cost_wire(c, of, at, bytes)
                    && cost_wire(c, to, from, bytes) == cost_wire(c, at, of, bytes);
    }
    return same;
}

Ns lists_bound(const Plan *p, const Bytes *limit)
{
    OptimalTuner *x = tuner_new(p, limit);
    Plan *plan = x->last ? plan_with(x, p->ask.choice.lists) : NULL;
    if (!plan || !is_mirrored(x) || order(plan))
        return 0;
    Question q = part_question(plan, limit);
    const Facts *f = facts_of(&q);
    /* The shop with base times, and with the bytes that no fates save. */
    Prices *prices = prices_open(q.p, price_whole(q.p, x->limit));
    int *fate = keep_fates(q.p, true);
    memcpy(x->room, x->limit, sizeof *x->room * (size_t)x->n);
    for (int c = 0; c < x->chunks; c++) {
        int first = first_of(x, c), last = x->last[c];
        Price least = price_with(prices, first, last, c, fate);
        least.forward = facts_forward(f, c, first, last);
        least.backward = facts_time(f, c, first, last) - least.forward;
        set_times(x, f, c, &least);
        x->time[JOBSHOP_F][c] = least.forward;
        x->held[0][c] = least.saved;
        x->room[x->device[c]] -= least.states;
        if (x->back)
            x->room[x->back[c]] -= least.states;
    }
    bool chain = true;
    for (int c = 1; c < x->chunks; c++)
        chain &= facts_link(f, c, first_of(x, c), x->last[c]).near >= first_of(x, c - 1);
    Ns closed = bound_closed(f), chained = chain ? jobshop_bound(&x->jobshop) : 0;
    return chained > closed ? chained : closed;
}
