/* SPDX-License-Identifier: Apache-2.0
 *
 * dapple.c: DAPPLE's planner as a baseline.
 *
 * Problem: cut a chain so that a synchronous step, with its filling, its draining and the exchange of gradients, is shortest.
 *
 * Method: stages and the transfers between them stand in one row; a transfer is a stage without gradients.  With m
 * micro-batches, forward F, backward B and exchange R of each, the pivot stage Q sets the latency of a step:
 *
 *   warm-up   the sum of F up to Q
 *   steady    (m - 1) (F + B) of Q
 *   tail      the largest over stages s of R of s, and B of s .. Q if s is not behind Q, or less B of Q .. s if it is
 *
 * The latency is that of the pivot that makes it longest.  The paper finds the pivot by a walk from the last stage to the
 * first; a stage becomes the pivot if its steady phase is longer than that of the pivot and F + B of the stages between.  The
 * two differ by less than F + B of the pivots that the walk leaves; for equal stages both give (m + p - 1)(F + B).
 *
 * The dynamic program goes over prefixes: a state is the units taken and the stages made of them.  The paper keeps one value a
 * state.  Here a state has all labels that none of its others beats in warm-up, tail, steady phase so far and latency so far:
 * each of the four only grows the latency, so the answer is the optimum of the formula.  Labels above the latency of the
 * balanced cuts are dropped, and so are states that would be: a pivot waits for F and B in front of it, and the slowest of the
 * stages behind a state has at least their mean.
 *
 * Known are the formula and the prefix recursion.  Reconstructed are the pivot above and the labels.  Not carried by our frame:
 * a stage on more devices than its neighbour, and with it the placements fresh first, append first and scatter first.  Replicas
 * are those of the plan, and `replicas: auto` with `stages: auto` tries every depth and width; with `devices.order: free` every
 * order of devices is asked for.  Memory is not looked at: the plan may not fit.
 *
 * Source: Fan, Rong, Meng, Cao, Wang, Zheng, Wu, Long, Yang, Xia, Diao, Liu, Lin, DAPPLE: A Pipelined Data Parallel Approach
 * for Training Large Models, PPoPP 2021, section 4, and notes on the planner that its authors published.
 *
 * Cost: stages n n times the labels of a state, which are as many as there are different sums of transfers in front.
 * Not handled: recomputation and offload, which the planner does not choose.
 */
#include "fleet.h"

typedef struct { Ns forward, backward, reduce; } DappleStage;   /* a stage, or a transfer */
typedef struct { Ns warm, tail, steady, worst; int units, label; } Label;       /* units and label: of the stage in front */
typedef VEC(Label) Labels;

static DappleStage stage_part(const Fleet *l, int s, int from, int to)
{
    Ns forward = l->forward[s][to] - l->forward[s][from];
    return (DappleStage){forward, fleet_time(l, s, from, to) - forward, fleet_exchange(l, s, from, to)};
}

static Ns larger(Ns a, Ns b)
{
    return a > b ? a : b;
}

/* ---- the formula ------------------------------------------------------------------------------------------------- */

static Ns tail_of(const DappleStage *part, int n, int pivot)
{
    Ns tail = 0, back = 0;
    for (int s = pivot; s >= 0; s--) {
        back += part[s].backward;
        tail = larger(tail, part[s].reduce + back);
    }
    back = part[pivot].backward;
    for (int s = pivot + 1; s < n; s++) {
        back += part[s].backward;
        tail = larger(tail, part[s].reduce - back);
    }
    return tail;
}

Ns dapple_latency(const Fleet *l, const int *last, int *pivot)
{
    int n = 0;
    DappleStage *part = alloc(sizeof *part * (size_t)(2 * l->stages));
    Ns warm = 0, worst = -1;
    for (int s = 0; s < l->stages; s++) {
        Ns send = fleet_send(l, s, last[s] + 1) / 2;
        part[n++] = stage_part(l, s, s ? last[s - 1] + 1 : 0, last[s] + 1);
        part[n++] = (DappleStage){send, send, 0};
    }
    n--;
    for (int q = 0; q < n; q++) {
        warm += part[q].forward;
        Ns latency = warm + (l->micro - 1) * (part[q].forward + part[q].backward) + tail_of(part, n, q);
        if (latency > worst) {
            worst = latency;
            *pivot = q;
        }
    }
    return worst;
}

/* ---- the program ------------------------------------------------------------------------------------------------- */

/* One stage or transfer more. */
static Label take(const Fleet *l, Label x, DappleStage k)
{
    x.tail = larger(x.tail, k.reduce) + k.backward;
    x.warm += k.forward;
    Ns steady = x.warm + (l->micro - 1) * (k.forward + k.backward);
    if (l->exchange) {
        x.worst = larger(x.worst, x.steady - k.backward + k.reduce);
        x.steady = larger(x.steady, steady) - k.backward;
    }
    x.worst = larger(x.worst, steady + x.tail);
    return x;
}

static bool beats(const Label *a, const Label *b)
{
    return a->warm <= b->warm && a->tail <= b->tail && a->steady <= b->steady && a->worst <= b->worst;
}

static void put(Labels *all, Label x)
{
    int n = 0;
    for (int i = 0; i < all->n; i++)
        if (beats(&all->at[i], &x))
            return;
    for (int i = 0; i < all->n; i++)
        if (!beats(&x, &all->at[i]))
            all->at[n++] = all->at[i];
    all->n = n;
    *PUSH(all) = x;
}

/* No answer takes longer than most; units 0 .. i-1 take at least least[i], a micro-batch. */
typedef struct { Ns most, *least; } DappleKnown;

static DappleKnown known_of(const Fleet *l, Ns most)
{
    DappleKnown x = {most, alloc(sizeof(Ns) * (size_t)(l->n + 1))};
    for (int i = 0; i < l->n; i++) {
        Ns one = fleet_time(l, 0, i, i + 1);
        for (int s = 1; s < l->stages; s++) {
            Ns there = fleet_time(l, s, i, i + 1);
            one = there < one ? there : one;
        }
        x.least[i + 1] = x.least[i] + one;
    }
    return x;
}

/* What a step takes at least with a pivot of this time behind the first units. */
static Ns at_least(const Fleet *l, const DappleKnown *k, int units, Ns pivot)
{
    return k->least[units] + l->micro * pivot;
}

/* The slowest of the stages behind s, which begin with unit `to`. */
static Ns rest(const Fleet *l, const DappleKnown *k, int s, int to)
{
    return s + 1 < l->stages ? (k->least[l->n] - k->least[to]) / (l->stages - 1 - s) : 0;
}

/* All stages s that end with unit to-1. */
static void fill(const Fleet *l, const Labels *front, int s, int to, const DappleKnown *k, Labels *all)
{
    if (at_least(l, k, to, rest(l, k, s, to)) > k->most)
        return;
    for (int from = to - 1; from >= 0 && fleet_joins(l, from, to); from--) {
        DappleStage stage = stage_part(l, s, from, to);
        if (at_least(l, k, from, stage.forward + stage.backward) > k->most)
            break;
        Ns send = s && from ? fleet_send(l, s - 1, from) / 2 : 0;
        for (int i = 0; i < front[from].n; i++) {
            Label x = front[from].at[i];
            x = take(l, s ? take(l, x, (DappleStage){send, send, 0}) : x, stage);
            x.units = from;
            x.label = i;
            if (x.worst <= k->most)
                put(all, x);
        }
    }
}

Ns dapple_cut(const Fleet *l, int *last)
{
    int pivot, width = l->n + 1;
    if (fleet_balance(l, fleet_time, last) < 0)
        return -1;
    DappleKnown known = known_of(l, dapple_latency(l, last, &pivot));
    Labels *cell = alloc(sizeof *cell * (size_t)((l->stages + 1) * width));
    *PUSH(&cell[0]) = (Label){.steady = INT64_MIN / 2, .worst = 0};
    for (int s = 0; s < l->stages; s++)
        for (int to = s + 1; to <= l->n; to++)
            fill(l, &cell[s * width], s, to, &known, &cell[(s + 1) * width + to]);
    const Labels *end = &cell[l->stages * width + l->n];
    int best = 0;
    for (int i = 1; i < end->n; i++)
        best = end->at[i].worst < end->at[best].worst ? i : best;
    Ns value = end->at[best].worst;
    for (int s = l->stages, to = l->n; s > 0; s--) {
        const Label *x = &cell[s * width + to].at[best];
        last[s - 1] = to - 1;
        to = x->units;
        best = x->label;
    }
    return value;
}

bool plan_dapple(const Question *q, Answer *a)
{
    Units u = units_of(q->p, q->cut, q->chunks);
    Fleet l = fleet_of(q, &u);
    int pivot = 0, *last = alloc(sizeof *last * (size_t)q->chunks);
    Ns latency = dapple_cut(&l, last);
    if (latency < 0)
        return false;
    fleet_answer(q, &u, &l, last, a);
    dapple_latency(&l, last, &pivot);
    const char *what = pivot % 2 ? "the transfer behind" : "at";
    a->note = fleet_note(&l, last, strf("a step of %.3f ms by DAPPLE's formula, pivot %s stage %d", (double)latency / 1e6, what,
                                        pivot / 2));
    return true;
}
