/* SPDX-License-Identifier: Apache-2.0
 *
 * jobshop.c: lists of F, I and W for given times, messages and bytes: a step, better lists, and a bound.
 *
 * Problem: the rows of schedules.def are made for equal stages.  Where the times of F, I and W differ, or memory does, other
 * lists are shorter.  To choose the best ones is a job shop with memory, which is NP-hard.
 *
 * Method: threshold accepting.  One computation moves to another place of its list.  A move that makes the step longer by less
 * than a threshold is taken, and the threshold falls to nothing.  A list that needs more than the room of its device, or that
 * waits for ever, is not taken.  Numbers come from one fixed sequence, so the answer is the same everywhere.
 *
 * A list is legal if F, I and W of a chunk ascend in micro-batches and each micro-batch goes from F to I to W.
 *
 * Bound: the largest over devices of three.
 *
 *     begin + load                            the first F arrives after those of the chunks before; all W of it may end it
 *     begin + F and I + way back              the last I is followed by those of the chunks before, and by the W of the first
 *     back + load - forwards that fit         before its first I can begin, it does no more forwards than its room holds
 *     begin + m * held * way / room           each micro-batch holds its bytes while it goes to the end and comes back
 *
 * Source: threshold accepting is of Dueck and Scheuer, 1990.  The greedy lists follow Qi et al., Zero Bubble Pipeline
 * Parallelism, 2024, section 3.
 *
 * Cost: the steps of the caller.  Not handled: a sender or a receiver that is late for a message; one wire for several.
 */
#include "tune.h"

/* ---- the step of given lists ----------------------------------------------------------------------------------------- */

static Ns length(const JobShop *x, int kind, int chunk)
{
    return x->time[kind][chunk] + (kind == JOBSHOP_I && x->joint[chunk] ? x->time[JOBSHOP_W][chunk] : 0);
}

/* When all that a computation reads is there; -1: not known yet. */
static Ns ready_at(const JobShop *x, const Ns *end, int op)
{
    int kind = jobshop_kind(x, op), c = jobshop_chunk(x, op), mb = jobshop_mb(x, op);
    Ns before = kind == JOBSHOP_F ? 0 : end[jobshop_op(x, kind - 1, c, mb)], other = 0;
    if (kind == JOBSHOP_F && c > 0) {
        other = end[op - x->m];
        other += other < 0 ? 0 : x->down[c - 1];
    } else if (kind == JOBSHOP_I && c + 1 < x->chunks) {
        other = end[op + x->m];
        other += other < 0 ? 0 : x->up[c + 1];
    }
    return before < 0 || other < 0 ? -1 : before > other ? before : other;
}

typedef struct { Ns *end, *now; int *next; } JobshopRun; /* by computation; by device */

static JobshopRun run_new(const JobShop *x)
{
    size_t all = (size_t)(JOBSHOP_KINDS * x->chunks * x->m), n = (size_t)x->devices;
    return (JobshopRun){alloc(sizeof(Ns) * all), alloc(sizeof(Ns) * n), alloc(sizeof(int) * n)};
}

static void run_begin(const JobShop *x, JobshopRun *r)
{
    for (int i = 0; i < JOBSHOP_KINDS * x->chunks * x->m; i++)
        r->end[i] = -1;
    memset(r->now, 0, sizeof(Ns) * (size_t)x->devices);
    memset(r->next, 0, sizeof(int) * (size_t)x->devices);
}

static bool run_device(const JobShop *x, JobshopRun *r, const Ints *list, int d)
{
    int first = r->next[d];
    for (; r->next[d] < list->n; r->next[d]++) {
        int op = list->at[r->next[d]];
        Ns ready = ready_at(x, r->end, op);
        if (ready < 0)
            break;
        ready = ready > r->now[d] ? ready : r->now[d];
        r->now[d] = r->end[op] = ready + length(x, jobshop_kind(x, op), jobshop_chunk(x, op));
    }
    return r->next[d] > first;
}

static Ns run_all(const JobShop *x, JobshopRun *r, const Ints *list)
{
    Ns step = 0;
    run_begin(x, r);
    for (bool moved = true; moved;) {
        moved = false;
        for (int d = 0; d < x->devices; d++)
            moved |= run_device(x, r, &list[d], d);
    }
    for (int d = 0; d < x->devices; d++) {
        if (r->next[d] < list[d].n)
            return INT64_MAX;
        step = r->now[d] + x->tail[d] > step ? r->now[d] + x->tail[d] : step;
    }
    return step;
}

Ns jobshop_step(const JobShop *x, const Ints *list)
{
    JobshopRun r = run_new(x);
    return run_all(x, &r, list);
}

/* ---- memory ---------------------------------------------------------------------------------------------------------- */

/* What a computation takes when it begins, and what it leaves when it has ended. */
static Bytes takes(const JobShop *x, int op)
{
    int kind = jobshop_kind(x, op), c = jobshop_chunk(x, op);
    return kind == JOBSHOP_F ? x->held[0][c] : kind == JOBSHOP_I && !x->joint[c] ? x->held[1][c] : 0;
}

static Bytes leaves(const JobShop *x, int op)
{
    int kind = jobshop_kind(x, op), c = jobshop_chunk(x, op);
    return kind == JOBSHOP_I ? x->held[0][c] : kind == JOBSHOP_W ? x->held[1][c] : 0;
}

Bytes jobshop_peak(const JobShop *x, const Ints *list, int device)
{
    Bytes now = 0, peak = 0;
    for (int i = 0; i < list[device].n; i++) {
        int op = list[device].at[i];
        now += takes(x, op);
        peak = now > peak ? now : peak;
        now -= leaves(x, op);
    }
    return peak;
}

/* ---- better lists ---------------------------------------------------------------------------------------------------- */

typedef struct { int device, from, to; } Move;
typedef struct {
    const JobShop *x;
    Ints *list, *best;
    JobshopRun run;
    Ns value, least;            /* of list, of best */
    uint64_t seed;
    int64_t *steps, all;        /* computations of a step */
} Improver;

static int draw(Improver *k, int n)
{
    k->seed = k->seed * 6364136223846793005u + 1442695040888963407u;
    return (int)((k->seed >> 33) % (uint64_t)n);
}

/* Must a come before b, wherever they are? */
static bool before(const JobShop *x, int a, int b)
{
    if (jobshop_chunk(x, a) != jobshop_chunk(x, b))
        return false;
    int ka = jobshop_kind(x, a), kb = jobshop_kind(x, b), ma = jobshop_mb(x, a), mb = jobshop_mb(x, b);
    return ma == mb ? ka < kb : ma < mb && ka <= kb;
}

static void shift(Ints *list, int from, int to)
{
    int op = list->at[from];
    for (int i = from; i < to; i++)
        list->at[i] = list->at[i + 1];
    for (int i = from; i > to; i--)
        list->at[i] = list->at[i - 1];
    list->at[to] = op;
}

/* As far towards `to` as the order of the chunk allows. */
static int reach(const JobShop *x, const Ints *list, int from, int to)
{
    int at = from;
    while (at < to && !before(x, list->at[from], list->at[at + 1]))
        at++;
    while (at > to && !before(x, list->at[at - 1], list->at[from]))
        at--;
    return at;
}

static void try_move(Improver *k, Ns allowed)
{
    /* Most moves are short. */
    int d = draw(k, k->x->devices), n = k->list[d].n, from = n ? draw(k, n) : 0, most = draw(k, 4) ? 4 : n;
    int to = from + 1 + draw(k, most > 1 ? most : 1);
    if (draw(k, 2))
        to = 2 * from - to;
    to = to < 0 ? 0 : to >= n ? n - 1 : to;
    Move a = (Move){d, from, n ? reach(k->x, &k->list[d], from, to) : from};
    *k->steps -= 8;
    if (a.from == a.to)
        return;
    Ints *list = &k->list[a.device];
    shift(list, a.from, a.to);
    *k->steps -= list->n;
    Ns step = jobshop_peak(k->x, k->list, a.device) > k->x->room[a.device] ? INT64_MAX : run_all(k->x, &k->run, k->list);
    *k->steps -= step < INT64_MAX ? k->all : 0;
    if (step == INT64_MAX || step > k->value + allowed) {
        shift(list, a.to, a.from);
        return;
    }
    k->value = step;
    if (step >= k->least)
        return;
    k->least = step;
    for (int d = 0; d < k->x->devices; d++)
        memcpy(k->best[d].at, k->list[d].at, sizeof(int) * (size_t)k->list[d].n);
}

static Ns longest(const JobShop *x)
{
    Ns most = 0;
    for (int kind = 0; kind < JOBSHOP_KINDS; kind++)
        for (int c = 0; c < x->chunks; c++)
            most = x->time[kind][c] > most ? x->time[kind][c] : most;
    return most;
}

bool jobshop_improve(const JobShop *x, Ints *list, int64_t *steps)
{
    Improver k = {.x = x, .list = alloc(sizeof(Ints) * (size_t)x->devices), .best = list, .run = run_new(x), .seed = 1,
                  .steps = steps};
    for (int d = 0; d < x->devices; d++) {
        k.list[d] = (Ints){alloc(sizeof(int) * (size_t)(list[d].n + 1)), list[d].n, list[d].n};
        k.all += list[d].n;
    }
    Ns first = k.least = jobshop_step(x, list);
    /* The threshold falls from the longest computation to nothing, several times, each time from the best lists. */
    enum { FALLS = 8 };
    int64_t share = *k.steps / FALLS;
    Ns high = longest(k.x), bound = jobshop_bound(k.x);
    for (int fall = 0; fall < FALLS && k.least > bound; fall++) {
        int64_t end = *k.steps - share;
        for (int d = 0; d < k.x->devices; d++)
            memcpy(k.list[d].at, k.best[d].at, sizeof(int) * (size_t)k.list[d].n);
        k.value = k.least;
        while (*k.steps > end && k.least > bound)
            try_move(&k, high * ((*k.steps - end) * 64 / (share + 1)) / 64);
    }
    return k.least < first;
}

/* ---- lists from nothing ---------------------------------------------------------------------------------------------- */

typedef struct {
    const JobShop *x;
    JobshopRun run;
    int *done;                  /* [kind * chunks + chunk]: micro-batches */
    Bytes *now;                 /* by device */
    int ahead;
    bool wait;
} Greedy;
typedef struct { Ns at; int op; } JobshopChoice; /* op -1: none */

/* The next computation of this kind, if it can begin. */
static JobshopChoice next_of(const Greedy *k, int kind, int c)
{
    const JobShop *x = k->x;
    int d = x->device[c], mb = k->done[kind * x->chunks + c], op = jobshop_op(x, kind, c, mb);
    int flight = mb - k->done[JOBSHOP_I * x->chunks + c];
    if (mb == x->m || (kind == JOBSHOP_W && x->joint[c]) || k->now[d] + takes(x, op) > x->room[d] ||
        (kind == JOBSHOP_F && flight >= x->chunks - c + k->ahead))
        return (JobshopChoice){0, -1};
    Ns at = ready_at(x, k->run.end, op);
    return (JobshopChoice){at > k->run.now[d] ? at : k->run.now[d], at < 0 ? -1 : op};
}

/* Backward before forward, forward before W; but W where it ends before either can begin, or at once. */
static JobshopChoice choose(const Greedy *k, int d)
{
    static const int kinds[] = {JOBSHOP_I, JOBSHOP_F, JOBSHOP_W};
    const JobShop *x = k->x;
    JobshopChoice best = {INT64_MAX, -1};
    for (int i = 0; i < JOBSHOP_KINDS; i++)
        for (int c = x->chunks - 1; c >= 0; c--) {
            JobshopChoice a = x->device[c] == d ? next_of(k, kinds[i], c) : (JobshopChoice){0, -1};
            Ns gain = kinds[i] == JOBSHOP_W && k->wait ? x->time[JOBSHOP_W][c] - 1 : 0;
            if (a.op >= 0 && (best.op < 0 || a.at + gain < best.at))
                best = a;
        }
    return best;
}

bool jobshop_greedy(const JobShop *x, int ahead, bool wait, Ints *list)
{
    Greedy k = {.x = x, .run = run_new(x), .done = alloc(sizeof(int) * (size_t)(JOBSHOP_KINDS * x->chunks)),
                .now = alloc(sizeof(Bytes) * (size_t)x->devices), .ahead = ahead, .wait = wait};
    run_begin(x, &k.run);
    for (int d = 0; d < x->devices; d++)
        list[d].n = 0;
    for (;;) {
        JobshopChoice best = {INT64_MAX, -1};
        int at = -1;
        for (int d = 0; d < x->devices; d++) {
            JobshopChoice a = choose(&k, d);
            if (a.op >= 0 && a.at < best.at) {
                best = a;
                at = d;
            }
        }
        if (at < 0)
            break;
        int kind = jobshop_kind(x, best.op), c = jobshop_chunk(x, best.op);
        *PUSH(&list[at]) = best.op;
        k.done[kind * x->chunks + c]++;
        k.run.now[at] = k.run.end[best.op] = best.at + length(x, kind, c);
        k.now[at] += takes(x, best.op) - leaves(x, best.op);
    }
    bool all = true;
    for (int i = 0; i < JOBSHOP_KINDS * x->chunks; i++)
        all &= k.done[i] == x->m || (i >= JOBSHOP_W * x->chunks && x->joint[i - JOBSHOP_W * x->chunks]);
    return all;
}

void jobshop_single(const JobShop *x, Ints *list)
{
    for (int d = 0; d < x->devices; d++)
        list[d].n = 0;
    for (int mb = 0; mb < x->m; mb++)
        for (int i = 0; i < 2 * x->chunks; i++) {
            int c = i < x->chunks ? i : 2 * x->chunks - 1 - i;
            *PUSH(&list[x->device[c]]) = jobshop_op(x, i < x->chunks ? JOBSHOP_F : JOBSHOP_I, c, mb);
            if (i >= x->chunks && !x->joint[c])
                *PUSH(&list[x->device[c]]) = jobshop_op(x, JOBSHOP_W, c, mb);
        }
}

/* ---- the bound ------------------------------------------------------------------------------------------------------- */

/* From the end of F of a chunk to the begin of its I, at least. */
static Ns way_on(const JobShop *x, int chunk)
{
    Ns way = 0;
    for (int c = chunk + 1; c < x->chunks; c++)
        way += x->down[c - 1] + x->time[JOBSHOP_F][c] + x->time[JOBSHOP_I][c] + x->up[c];
    return way;
}

static Ns way_to(const JobShop *x, int chunk)
{
    Ns way = 0;
    for (int c = 0; c < chunk; c++)
        way += x->time[JOBSHOP_F][c] + x->down[c];
    return way;
}

/* The device of a chunk, of the first pipeline or the second. */
static int home_in(const JobShop *x, int way, int chunk)
{
    return way ? x->back[chunk] : x->device[chunk];
}

/* From the end of I of a chunk to the end of the step. */
static Ns way_home(const JobShop *x, int pipe, int chunk)
{
    Ns way = x->time[JOBSHOP_W][0] + x->tail[home_in(x, pipe, 0)];
    for (int c = 0; c < chunk; c++)
        way += x->up[c + 1] + x->time[JOBSHOP_I][c];
    return max_of(way, x->time[JOBSHOP_W][chunk] + x->tail[home_in(x, pipe, chunk)]);
}

/* All micro-batches pass a chunk that holds so many of them at once. */
static Ns crowd(const JobShop *x, int pipe, int chunk)
{
    Bytes held = x->held[0][chunk], fit = held > 0 ? x->room[home_in(x, pipe, chunk)] / held : 0;
    return fit > 0 && fit < x->m ? x->m * way_on(x, chunk) / fit : 0;
}

Ns jobshop_bound(const JobShop *x)
{
    Ns worst = 0;
    for (int d = 0; d < x->devices; d++) {
        Ns load = 0, both = 0, most = 0, begin = INT64_MAX, home = INT64_MAX, back = INT64_MAX, held = 0;
        Bytes least = INT64_MAX;
        for (int i = 0; i < x->chunks * (x->back ? 2 : 1); i++) {
            int pipe = i / x->chunks, c = i % x->chunks;
            if (home_in(x, pipe, c) != d)
                continue;
            Ns fi = x->time[JOBSHOP_F][c] + x->time[JOBSHOP_I][c], first = way_to(x, c) + x->time[JOBSHOP_F][c] + way_on(x, c);
            both += x->m * fi;
            load += x->m * (fi + x->time[JOBSHOP_W][c]);
            most = max_of(most, x->time[JOBSHOP_F][c]);
            begin = way_to(x, c) < begin ? way_to(x, c) : begin;
            home = way_home(x, pipe, c) < home ? way_home(x, pipe, c) : home;
            back = first < back ? first : back;
            held = max_of(held, way_to(x, c) + crowd(x, pipe, c));
            least = x->held[0][c] < least ? x->held[0][c] : least;
        }
        if (begin == INT64_MAX)
            continue;
        int64_t fit = least > 0 ? x->room[d] / least : x->chunks * (int64_t)x->m;
        Ns gap = fit < x->chunks * (int64_t)x->m ? max_of(0, back - begin - fit * most) : 0;
        worst = max_of(worst, max_of(begin + gap + max_of(load + x->tail[d], both + home), held));
    }
    return worst;
}
