/* SPDX-License-Identifier: Apache-2.0
 *
 * floor.c: a lower bound of the cost of a run of operators, from prefix sums.
 *
 * Problem: a planner looks at n*n/2 runs and can afford to price few of them.  It must be able to exclude the others.  Only a
 * bound that is never above the truth excludes with proof.
 *
 * Method: with k micro-batches in flight and `saved` bytes from forward to backward of each,
 *
 *     states + k saved <= limit   and   states + (k-1) saved + operands of the largest call <= limit
 *
 * must hold whatever else is alive.  In the update, gradients of uses elsewhere come home besides the states.
 *
 * If keeping everything saves more than that, the excess has to be dropped.  A dropped tensor that backward reads costs at
 * least its share of its operator: time over the bytes of all its results.  If tensors could be cut in pieces, the cheapest
 * way to free so many bytes would be to take them by price.  Prices are put into at most PRICE_CLASSES classes, each with
 * prefix sums.  Whole classes count at their own cost, the last one at its least price.  If tensors that must be kept exceed
 * the limit alone, the run is proven not to fit.
 *
 * A tensor is summed at the place of the first backward that reads it.  The sum over a run then counts tensors that it saves in
 * any case, its own or received, and no others.  Received ones cannot be dropped, but count here as if they could: the bound is
 * lower, never wrong.
 *
 * Where a list has W apart from I, fewer micro-batches may rest beside a W.  The largest call is then one of F or I.
 *
 * Offload is free up to the bytes that the link carries in the time of the run.  A time is possible if the bytes beyond that
 * can be dropped within it.  The least possible time is bisected, and the lower end is the bound.
 *
 * Source: Dantzig, Discrete-variable extremum problems, 1957.
 *
 * Cost: sorting the tensors once; then at most PRICE_CLASSES + 2 steps and a range maximum by a sparse table.
 *
 * Not handled, and the bound is only lower for it: rebuilt tensors, gradients, messages, chains of tensors that nobody reads.
 */
#include "walk.h"
#include "budgets.h"

enum { DEAR = 1000000000 };       /* ns a MiB: above all that is measured */

typedef struct { Bytes *bytes; Ns *time; int64_t least; } Class;        /* sums of 0..i-1; ns a MiB of the cheapest */
typedef struct {                /* of a class of devices that take equal times */
    Class class[PRICE_CLASSES];
    int n;
    Ns *base;                   /* of operators 0..i-1, forward and backward */
    Ns *apart;                  /* what operator i takes more where a run begins with it */
    Ns *read, *made;            /* what is dropped in any case, summed by its reader, by its maker */
} FloorTimes;

struct Floor {
    const Plan *p;
    const Live *live;
    States *states;             /* of operators 0..i-1, at home; gradients of every use */
    Visits visit;               /* the others */
    Bytes *held;                /* what is saved whatever is chosen */
    Bytes *may;                 /* what is saved and has a choice */
    Bytes *kept;                /* what is saved where nobody chooses */
    Bytes *send;                /* of it what may be offloaded */
    int64_t *link;              /* by device: bytes in 1024 ns of its link to the host, at most */
    Bytes **most;               /* [power][operator]: largest operands of a call of operators i .. i + 2^power - 1 */
    int *flight;                /* by chunk */
    FloorTimes *times;          /* by class of devices */
};

typedef struct { int tensor, at; int64_t price; Ns time; Bytes bytes; } FloorItem;

static int by_price(const void *a, const void *b)
{
    const FloorItem *x = a, *y = b;
    return x->price != y->price ? (x->price > y->price) - (x->price < y->price) : x->tensor - y->tensor;
}

/* Time for a mebibyte, rounded down; an overflow counts as dear. */
static int64_t per_mib(Ns time, Bytes bytes)
{
    return bytes <= 0 || time >= INT64_MAX / 1048576 ? INT64_MAX / 1048576 : time * 1048576 / bytes;
}

static Ns part_of(Ns time, Bytes part, Bytes whole)
{
    if (part == whole)
        return time;
    return time / whole * part + time % whole * (part / ALIGN) / (whole / ALIGN);
}

/* ---- once for a graph ------------------------------------------------------------------------------------------- */

static void sum_up(int64_t *sum, int n)
{
    for (int i = 0; i < n; i++)
        sum[i + 1] += sum[i];
}

static void find_most(Floor *x)
{
    const Graph *g = x->p->g;
    int powers = 1;
    while (1 << powers <= g->nf)
        powers++;
    x->most = alloc(sizeof *x->most * (size_t)powers);
    for (int k = 0; k < powers; k++)
        x->most[k] = alloc(sizeof(Bytes) * (size_t)g->nf);
    bool split = order_split(x->p);
    for (int o = 0; o < g->nb; o++) {
        if (split && g->op.at[o].phase == PH_W)
            continue;
        Bytes *most = &x->most[0][g->op.at[o].fwd], bytes = live_operands(x->live, o);
        *most = bytes > *most ? bytes : *most;
    }
    for (int k = 1; k < powers; k++)
        for (int i = 0; i + (1 << k) <= g->nf; i++) {
            Bytes left = x->most[k - 1][i], right = x->most[k - 1][i + (1 << (k - 1))];
            x->most[k][i] = left > right ? left : right;
        }
}

static Bytes most_of(const Floor *x, int first, int last)
{
    int k = 0;
    while (1 << (k + 1) <= last - first + 1)
        k++;
    Bytes left = x->most[k][first], right = x->most[k][last + 1 - (1 << k)];
    return left > right ? left : right;
}

static void sum_states(Floor *x)
{
    const Graph *g = x->p->g;
    x->states = alloc(sizeof *x->states * (size_t)(g->nf + 1));
    for (int o = 0; o < g->nf; o++) {
        States one = live_home(x->live, o), sum = x->states[o];
        x->states[o + 1] = (States){sum.once + one.once, sum.sums + one.sums, sum.version + one.version};
    }
}

/* Fills `item` with tensors that may be dropped and their shares of their operators' time on this class of devices. */
static int find_items(Floor *x, const int *reader, const char *may, const Ns *time, FloorItem *item)
{
    const Graph *g = x->p->g;
    Bytes *whole = alloc(sizeof *whole * (size_t)g->nf);
    int n = 0;
    for (int t = 0; t < g->tensor.n; t++)
        if ((may[t] & MAY_DROP) && reader[t] >= 0)
            whole[live_maker(x->live, t)] += live_size(x->live, t);
    for (int t = 0; t < g->tensor.n; t++) {
        int op = live_maker(x->live, t);
        if (!may[t] || reader[t] < 0)
            continue;
        Bytes bytes = live_size(x->live, t);
        if (bytes > 0 && (may[t] & MAY_DROP))
            item[n++] = (FloorItem){t, reader[t], per_mib(time[op], whole[op]), part_of(time[op], bytes, whole[op]), bytes};
        else if (bytes > 0)     /* it cannot be made again at any price */
            item[n++] = (FloorItem){t, reader[t], DEAR, bytes / 1048576 * DEAR + bytes % 1048576 * DEAR / 1048576, bytes};
    }
    return n;
}

/* Equal prices share a class; beyond PRICE_CLASSES prices, classes of about equal bytes. */
static void classify(Floor *x, FloorTimes *times, FloorItem *item, int n)
{
    size_t row = (size_t)(x->p->g->nf + 1);
    Bytes all = 0, now = 0;
    int prices = 0;
    if (n)
        qsort(item, (size_t)n, sizeof *item, by_price);
    for (int i = 0; i < n; i++) {
        all += item[i].bytes;
        prices += i == 0 || item[i].price != item[i - 1].price;
    }
    for (int i = 0; i < n; i++) {
        bool other = i == 0 || item[i].price != item[i - 1].price;
        if (times->n == 0 || (other && (prices <= PRICE_CLASSES || now >= all / PRICE_CLASSES * times->n))) {
            times->n += times->n < PRICE_CLASSES;
            Class *k = &times->class[times->n - 1];
            if (!k->bytes)
                *k = (Class){alloc(sizeof(Bytes) * row), alloc(sizeof(Ns) * row), item[i].price};
        }
        Class *k = &times->class[times->n - 1];
        k->bytes[item[i].at + 1] += item[i].bytes;
        k->time[item[i].at + 1] += item[i].time;
        now += item[i].bytes;
    }
    for (int k = 0; k < times->n; k++) {
        sum_up(times->class[k].bytes, x->p->g->nf);
        sum_up(times->class[k].time, x->p->g->nf);
    }
}

static void sum_times(Floor *x, int class, const int *reader, const int *base, const char *may)
{
    const Graph *g = x->p->g;
    const Ns *time = x->p->c->ns[class], *alone = x->p->c->alone ? x->p->c->alone[class] : time;
    FloorTimes *times = &x->times[class];
    size_t row = sizeof(Ns) * (size_t)(g->nf + 1);
    int *first = alloc(sizeof *first * (size_t)g->nf);      /* by operator: first reader of what is dropped in any case, + 1 */
    times->base = alloc(row), times->apart = alloc(row), times->read = alloc(row), times->made = alloc(row);
    for (int o = 0; o < g->nb; o++)
        times->base[g->op.at[o].fwd + 1] += time[o];
    for (int t = 0; t < g->tensor.n; t++) {
        int op = live_maker(x->live, t);
        if (reader[t] >= 0 && base[t] == FATE_RECOMPUTE && (first[op] == 0 || reader[t] < first[op] - 1))
            first[op] = reader[t] + 1;
    }
    for (int o = 0; o < g->nf; o++)
        if (first[o]) {
            times->made[o + 1] += alone[o];
            times->read[first[o]] += alone[o];
        }
    for (int o = 0; o < g->nf; o++)
        times->apart[o] = alone[o] - time[o];
    sum_up(times->base, g->nf);
    sum_up(times->read, g->nf);
    sum_up(times->made, g->nf);
    FloorItem *item = alloc(sizeof *item * (size_t)(g->tensor.n + 1));
    classify(x, times, item, find_items(x, reader, may, alone, item));
}

Floor *floor_open(const Plan *p, const Live *live, const int *base, const char *may)
{
    const Graph *g = p->g;
    Floor *x = alloc(sizeof *x);
    int *reader = alloc(sizeof *reader * (size_t)g->tensor.n);      /* the first operator whose backward reads it; -1: none */
    *x = (Floor){.p = p, .live = live};
    x->held = alloc(sizeof(Bytes) * (size_t)(g->nf + 1));
    x->may = alloc(sizeof(Bytes) * (size_t)(g->nf + 1));
    x->send = alloc(sizeof(Bytes) * (size_t)(g->nf + 1));
    x->kept = alloc(sizeof(Bytes) * (size_t)(g->nf + 1));
    /* Upper bounds of the links' speed: no copy of any size is faster. */
    x->link = alloc(sizeof *x->link * (size_t)x->p->devices);
    for (int d = 0; d < x->p->devices; d++)
        for (Bytes bytes = 4096; bytes <= (Bytes)1 << 36; bytes *= 2) {
            Ns ns = cost_host(x->p->c, d, bytes);
            int64_t rate = ns > 0 ? bytes / ns * 1024 + bytes % ns * 1024 / ns + 1 : INT64_MAX;
            x->link[d] = rate > x->link[d] ? rate : x->link[d];
        }
    for (int t = 0; t < g->tensor.n; t++) {
        reader[t] = live_reader(live, t);
        if (reader[t] >= 0 && (may[t] || base[t] == FATE_KEEP))
            (may[t] ? x->may : x->held)[reader[t] + 1] += live_size(live, t);
        if (reader[t] >= 0 && base[t] == FATE_KEEP)
            x->kept[reader[t] + 1] += live_size(live, t);
        if (reader[t] >= 0 && (may[t] & MAY_SEND))
            x->send[reader[t] + 1] += live_size(live, t);
    }
    sum_up(x->send, g->nf);
    sum_up(x->held, g->nf);
    sum_up(x->kept, g->nf);
    sum_up(x->may, g->nf);
    sum_states(x);
    x->visit = live_visits(live);
    find_most(x);
    x->flight = alloc(sizeof(int) * (size_t)plan_chunks(p));
    for (int c = 0; c < plan_chunks(p); c++)
        x->flight[c] = order_flight(p, c);
    x->times = alloc(sizeof *x->times * (size_t)p->c->classes);
    for (int k = 0; k < p->c->classes; k++)
        sum_times(x, k, reader, base, may);
    return x;
}

/* ---- the bound --------------------------------------------------------------------------------------------------- */

/* The least time that frees so many bytes. */
static Ns cheapest(const FloorTimes *times, int first, int last, Bytes free)
{
    Ns sum = 0;
    for (int k = 0; k < times->n && free > 0; k++) {
        const Class *c = &times->class[k];
        Bytes bytes = c->bytes[last + 1] - c->bytes[first];
        if (bytes <= free)
            sum += c->time[last + 1] - c->time[first];
        else
            sum += c->least * (free / 1048576) + c->least * (free % 1048576) / 1048576;
        free -= bytes;
    }
    return sum;
}

static Bytes states_of(const Floor *x, int first, int last, int chunk)
{
    States a = x->states[first], b = x->states[last + 1];
    Bytes guests = 0;
    for (EACH(const Visit, k, x->visit))
        guests += k->before < first && first <= k->op && k->op <= last ? k->guest : 0;
    return guests + live_states(x->live, chunk, (States){b.once - a.once, b.sums - a.sums, b.version - a.version});
}

/* Gradients that come home in the update. */
static Bytes visiting(const Floor *x, int first, int last)
{
    Bytes sum = 0;
    for (EACH(const Visit, k, x->visit))
        sum += first <= k->maker && k->maker <= last && last < k->op ? k->sum : 0;
    return sum;
}

Bytes floor_kept(const Floor *x, int first, int last)
{
    return x->kept[last + 1] - x->kept[first];
}

Bytes floor_need(const Floor *x, int first, int last, int chunk, Bytes saved)
{
    int rest = x->flight[chunk] > 0 ? x->flight[chunk] - 1 : 0;
    Bytes most = most_of(x, first, last);
    most = x->flight[chunk] > 0 && saved > most ? saved : most;
    Bytes beside = rest * saved + most, home = visiting(x, first, last);
    return states_of(x, first, last, chunk) + (home > beside ? home : beside);
}

/* Of bytes that may be sent, those that the link carries in that time, at most. */
static Bytes carried(int64_t link, Ns time, Bytes send)
{
    Bytes gone = time / 1024 + 1 < INT64_MAX / link ? (time / 1024 + 1) * link : send;
    return gone < send ? gone : send;
}

/* What a run may keep of each micro-batch, with all in flight and beside the largest call; false: proven not to fit. */
static bool allowed_of(const Floor *x, int first, int last, int chunk, Bytes limit, Bytes *all, Bytes *beside)
{
    Bytes room = limit - states_of(x, first, last, chunk), most = most_of(x, first, last);
    Bytes held = x->held[last + 1] - x->held[first], saved = held + x->may[last + 1] - x->may[first];
    int flight = x->flight[chunk];
    *all = flight > 0 ? room / flight : saved;
    *beside = flight > 1 ? (room - most) / (flight - 1) : saved;
    return room >= most && room >= visiting(x, first, last) && *all >= held && *beside >= held;
}

/* Each call once. */
static Ns once_of(const FloorTimes *times, int first, int last)
{
    return times->base[last + 1] - times->base[first] + times->apart[first];
}

/* Forward and backward without a choice. */
static Ns base_of(const FloorTimes *times, int first, int last)
{
    Ns again = times->read[last + 1] - times->made[first];
    return once_of(times, first, last) + (again > 0 ? again : 0);
}

static const FloorTimes *times_of(const Floor *x, int chunk)
{
    return &x->times[x->p->c->of.at[stage_of(x->p, chunk)]];
}

static Bytes saved_of(const Floor *x, int first, int last)
{
    return x->held[last + 1] - x->held[first] + x->may[last + 1] - x->may[first];
}

Ns floor_time(const Floor *x, int first, int last, int chunk, Bytes limit)
{
    const FloorTimes *times = times_of(x, chunk);
    Bytes allowed, beside, send = x->send[last + 1] - x->send[first], all = saved_of(x, first, last);
    if (!allowed_of(x, first, last, chunk, limit, &allowed, &beside))
        return INT64_MAX;
    allowed = beside < allowed ? beside : allowed;
    int64_t link = x->link[stage_of(x->p, chunk)];
    Ns base = base_of(times, first, last), low = base, high = base + cheapest(times, first, last, all - allowed);
    if (send == 0)
        return high;
    for (int step = 0; step < HALVINGS && low < high; step++) {
        Ns middle = low + (high - low) / 2;
        Ns least = base + cheapest(times, first, last, all - allowed - carried(link, middle, send));
        if (least > middle)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* The time that the link has, at most, for what one micro-batch sends away.  At the first moment `here` of the micro-batches in
 * flight are saved and nothing has come back, and at the last one everything has left. */
static Ns span_of(const Passage *k, int here, bool half, Ns back, Ns again)
{
    int64_t rest = k->m - k->warm, all = rest + here;
    Ns w = k->window, f = k->forward, right = here == k->warm ? k->right : 0;
    if (k->warm == 0)
        return w / k->m / (half ? 2 : 1) + 1;
    Ns in = (w - here * f - right) / all, out = (w - here * back + again) / all;
    Ns before = (w - rest * f - all * back + again) / here, after = (w - all * f - rest * back - right) / here;
    Ns span = min_of(min_of(in, out), min_of(min_of(before, after), (w - rest * (f + back)) / 2 / here));
    span = half ? min_of(span, w / 2 / all) : span;
    return span < 0 ? 0 : span + 1;
}

/* The least that must be made again if `here` micro-batches must leave room for each other so.  Each round gives a time that is
 * needed at least, and takes it from the time of copies. */
static Ns again_of(const Floor *x, int first, int last, int chunk, Bytes excess, const Passage *k, int here)
{
    int d = stage_of(x->p, chunk);
    const FloorTimes *times = times_of(x, chunk);
    bool half = cost_host_half(x->p->c, d);
    Bytes send = x->send[last + 1] - x->send[first];
    Ns base = once_of(times, first, last), other = base_of(times, first, last) - base, again = 0;
    for (int round = 0; round < HALVINGS; round++) {
        Ns span = span_of(k, here, half, base - k->forward + other + again, other + again);
        Ns least = cheapest(times, first, last, excess - carried(x->link[d], span, send));
        if (least <= again || least > k->window)
            return least > again ? least : again;
        again = least;
    }
    return again;
}

Ns floor_within(const Floor *x, int first, int last, int chunk, Bytes limit, const Passage *k)
{
    Bytes allowed, beside, all = saved_of(x, first, last);
    if (!allowed_of(x, first, last, chunk, limit, &allowed, &beside))
        return INT64_MAX;
    Passage with = *k;
    with.warm = k->warm == x->flight[chunk] && k->warm <= k->m ? k->warm : 0;
    Ns least = again_of(x, first, last, chunk, all - allowed, &with, with.warm);
    Ns other = with.warm == 1 ? 0 : again_of(x, first, last, chunk, all - beside, &with, with.warm ? with.warm - 1 : 0);
    return base_of(times_of(x, chunk), first, last) + (other > least ? other : least);
}
