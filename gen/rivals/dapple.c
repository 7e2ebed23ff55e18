/* SPDX-License-Identifier: Apache-2.0
 *
 * dapple.c: DAPPLE's planner as a baseline.
 *
 * Problem: cut a chain, and give each stage its copies, so that a synchronous step, with its filling, its draining and the
 * exchange of gradients, is shortest.
 *
 * Method: stages and the transfers between them stand in one row; a transfer is a stage without gradients.  The copies of a
 * stage share each micro-batch, so F and B are those of one device over their number.  With m micro-batches, forward F,
 * backward B and exchange R of each, the pivot stage Q sets the latency of a step:
 *
 *   warm-up   the sum of F up to Q
 *   steady    (m - 1) (F + B) of Q
 *   tail      the largest over stages s of R of s, and B of s .. Q if s is not behind Q, or less B of Q .. s if it is
 *
 * The latency is that of the pivot that makes it longest.  The paper finds the pivot by a walk from the last stage to the
 * first; a stage becomes the pivot if its steady phase is longer than that of the pivot and F + B of the stages between.  The
 * two differ by less than F + B of the pivots that the walk leaves; for equal stages both give (m + p - 1)(F + B).
 *
 * The dynamic program goes over prefixes: a state is the units taken, the stages made of them, and the devices that these have.
 * The paper keeps one value a state, with all that is left as one stage behind it.  Here a state has all labels that none of
 * its others beats in warm-up, tail, steady phase so far and latency so far: each of the four only grows the latency, so the
 * answer is the optimum of the formula.  Labels above the latency of the balanced cuts are dropped, and so are states that
 * would be: a pivot waits for F and B in front of it, and the slowest of the stages behind a state has at least their mean.
 * So are labels that no stages behind can save.  Without exchanges these add one least number to a state, the optimum.
 *
 * Known are the formula and the recursion.  As in the published program, a transfer takes one link whatever copies there are.
 * Reconstructed are the pivot above and the labels.  Not carried by our frame: the placements fresh first, append first and
 * scatter first, since copies stand in one order; copies are powers of two.  With `plan.widths: auto` the copies and the number
 * of stages are its choice; else they are given, by plan.widths or replicas.  Memory is not looked at: the plan may not fit.
 *
 * Source: Fan, Rong, Meng, Cao, Wang, Zheng, Wu, Long, Yang, Xia, Diao, Liu, Lin, DAPPLE: A Pipelined Data Parallel Approach
 * for Training Large Models, PPoPP 2021, section 4, and notes on the planner that its authors published.
 *
 * Cost: stages n n times the labels of a state; with open copies, times devices and the numbers of copies.  Labels are as many
 * as there are different sums of transfers in front; few, without exchanges.  Of more than MOST_TRIED the one that takes
 * longest is dropped, and the answer may then not be the optimum.
 * Not handled: recomputation and offload, which the planner does not choose.
 */
#include "rivals.h"
#include "budgets.h"

typedef struct { Ns forward, backward, reduce; } DappleStage;   /* a stage, or a transfer */
/* units and label: of the stage in front; copies: of the last one */
typedef struct { Ns warm, tail, steady, worst; int units, label, copies; } Label;
typedef VEC(Label) Labels;

static DappleStage stage_part(const Fleet *l, int s, int from, int to, int copies)
{
    Ns forward = (l->forward[s][to] - l->forward[s][from] + copies - 1) / copies;
    return (DappleStage){forward, fleet_time(l, s, from, to, copies) - forward, fleet_exchange(l, s, from, to, copies)};
}

/* ---- the formula ------------------------------------------------------------------------------------------------- */

static Ns tail_of(const DappleStage *part, int n, int pivot)
{
    Ns tail = 0, back = 0;
    for (int s = pivot; s >= 0; s--) {
        back += part[s].backward;
        tail = max_of(tail, part[s].reduce + back);
    }
    back = part[pivot].backward;
    for (int s = pivot + 1; s < n; s++) {
        back += part[s].backward;
        tail = max_of(tail, part[s].reduce - back);
    }
    return tail;
}

Ns dapple_latency(const Fleet *l, int stages, const int *last, const int *copies, int *pivot)
{
    int n = 0;
    DappleStage *part = alloc(sizeof *part * (size_t)(2 * stages));
    Ns warm = 0, worst = -1;
    for (int s = 0; s < stages; s++) {
        Ns send = fleet_send(l, s, last[s] + 1) / 2;
        part[n++] = stage_part(l, s, s ? last[s - 1] + 1 : 0, last[s] + 1, copies[s]);
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
    x.tail = max_of(x.tail, k.reduce) + k.backward;
    x.warm += k.forward;
    Ns steady = x.warm + (l->micro - 1) * (k.forward + k.backward);
    if (l->exchange) {
        x.worst = max_of(x.worst, x.steady - k.backward + k.reduce);
        x.steady = max_of(x.steady, steady) - k.backward;
    }
    x.worst = max_of(x.worst, steady + x.tail);
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
    if (all->n <= MOST_TRIED)
        return;
    int longest = 0;
    for (int i = 1; i < all->n; i++)
        longest = all->at[i].worst >= all->at[longest].worst ? i : longest;
    all->at[longest] = all->at[--all->n];
}

/* No answer takes longer than most; units 0 .. i-1 take at least least[i], a micro-batch on one device.  Where stages s .. have
 * units i .., their pivots add at least ahead[s (n+1) + i] to warm-up and tail.  room: of counts of devices, told apart. */
typedef struct { const Fleet *l; Ns most, *least, *ahead; int room; Labels *cell; } Dapple;

static Labels *cell_at(const Dapple *x, int s, int units, int used)
{
    return &x->cell[((size_t)s * (size_t)(x->l->n + 1) + (size_t)units) * (size_t)x->room + (size_t)used];
}

/* Devices of stages s and behind: at most, where they are open. */
static int left(const Fleet *l, int s, int used)
{
    int sum = l->copies ? 0 : l->devices - used;
    for (int i = s; l->copies && i < l->stages; i++)
        sum += l->copies[i];
    return sum;
}

/* What a step takes at least with a pivot of this time behind the first units. */
static Ns at_least(const Dapple *x, int units, Ns pivot)
{
    return x->least[units] / x->l->most + x->l->micro * pivot;
}

/* All stages s of so many copies that end with unit to-1. */
static void fill(const Dapple *x, int s, int to, int used, int copies)
{
    const Fleet *l = x->l;
    const int front = l->copies ? 0 : used - copies, behind = left(l, s + 1, used);
    Labels *all = cell_at(x, s + 1, to, used);
    if (front < 0 || (behind && at_least(x, to, (x->least[l->n] - x->least[to]) / behind) > x->most))
        return;
    for (int from = to - 1; from >= 0 && fleet_joins(l, from, to); from--) {
        DappleStage stage = stage_part(l, s, from, to, copies);
        if (at_least(x, from, stage.forward + stage.backward) > x->most)
            break;
        Ns send = s && from ? fleet_send(l, s - 1, from) / 2 : 0;
        const Labels *known = cell_at(x, s, from, front);
        for (int i = 0; i < known->n; i++) {
            Label y = known->at[i];
            y = take(l, s ? take(l, y, (DappleStage){send, send, 0}) : y, stage);
            y.units = from, y.label = i, y.copies = copies;
            if (max_of(y.worst, y.warm + y.tail + x->ahead[(size_t)(s + 1) * (size_t)(l->n + 1) + (size_t)to]) <= x->most)
                put(all, y);
        }
    }
}

/* The same program from the last stage on, which needs no labels without exchanges: of given copies it is the optimum. */
static Ns *ahead_of(const Fleet *l, int least)
{
    const size_t row = (size_t)(l->n + 1), n = row * (size_t)(l->stages + 1);
    Ns *ahead = alloc(sizeof *ahead * n);
    for (size_t i = 0; i < n; i++)
        ahead[i] = i % row == row - 1 && i / row >= (size_t)least ? 0 : INT64_MAX / 4;
    for (int s = l->stages - 1; s >= 0; s--)
        for (int from = l->n - 1; from >= 0; from--) {
            Ns *now = &ahead[(size_t)s * row + (size_t)from], send = s && from ? fleet_send(l, s - 1, from) / 2 * 2 : 0;
            for (int to = from + 1; to <= l->n && (to == from + 1 || fleet_joins(l, to - 2, to)); to++) {
                const Ns time = fleet_time(l, s, from, to, l->copies ? l->copies[s] : l->most);
                const Ns all = max_of(l->micro * time, time + ahead[(size_t)(s + 1) * row + (size_t)to]);
                if (send + l->micro * time >= *now)
                    break;
                *now = min_of(*now, max_of(l->micro * send, send + all));
            }
        }
    return ahead;
}

static Dapple dapple_of(const Fleet *l, int least, Ns most)
{
    Dapple x = {l, most, alloc(sizeof(Ns) * (size_t)(l->n + 1)), ahead_of(l, least), l->copies ? 1 : l->devices + 1, NULL};
    x.most = l->exchange || !l->copies ? most : x.ahead[0];
    x.cell = alloc(sizeof *x.cell * (size_t)(l->stages + 1) * (size_t)(l->n + 1) * (size_t)x.room);
    for (int i = 0; i < l->n; i++) {
        Ns one = fleet_time(l, 0, i, i + 1, 1);
        for (int s = 1; s < l->stages; s++) {
            Ns there = fleet_time(l, s, i, i + 1, 1);
            one = there < one ? there : one;
        }
        x.least[i + 1] = x.least[i] + one;
    }
    return x;
}

/* Of so many stages on so many devices; NULL: there is none. */
static const Label *best_label(const Labels *all, int *at)
{
    for (int i = *at = 0; i < all->n; i++)
        *at = all->at[i].worst < all->at[*at].worst ? i : *at;
    return all->n ? &all->at[*at] : NULL;
}

Ns dapple_cut(const Fleet *l, int *stages, int *last, int *copies)
{
    const FleetTable *even = fleet_balance(l, fleet_time, NULL);
    int pivot, label = 0, used = 0, found = 0, least = *stages;
    Ns best = -1;
    for (int s = least; s <= l->stages; s++) {
        Ns value = fleet_take(even, s, last, copies) < 0 ? -1 : dapple_latency(l, s, last, copies, &pivot);
        best = value >= 0 && (best < 0 || value < best) ? value : best;
    }
    if (best < 0)
        return -1;
    const Dapple x = dapple_of(l, least, best);
    *PUSH(cell_at(&x, 0, 0, 0)) = (Label){.steady = INT64_MIN / 2, .worst = 0};
    for (int s = 0; s < l->stages; s++)
        for (int to = s + 1; to <= l->n; to++)
            for (int u = 0; u < x.room; u++)
                for (int w = 1; w <= l->most; w++)
                    if (fleet_may(l, s, w))
                        fill(&x, s, to, u, w);
    for (int s = least; s <= l->stages; s++)
        for (int u = 0, at; u < x.room; u++) {
            const Label *one = best_label(cell_at(&x, s, l->n, u), &at);
            if (one && (!found || one->worst < best))
                best = one->worst, found = s, used = u, label = at;
        }
    for (int s = *stages = found, to = l->n; s > 0; s--) {
        const Label *y = &cell_at(&x, s, to, used)->at[label];
        last[s - 1] = to - 1;
        copies[s - 1] = y->copies;
        used -= l->copies ? 0 : y->copies;
        to = y->units, label = y->label;
    }
    return best;
}

void dapple_copies(const Question *q, int least, WidthLists *all)
{
    Units u = units_of(q->p, q->cut, least);
    Fleet l = fleet_open(q, &u);
    int stages = least, *last = alloc(sizeof *last * (size_t)q->chunks), *copies = alloc(sizeof *copies * (size_t)q->chunks);
    if (dapple_cut(&l, &stages, last, copies) >= 0)
        *PUSH(all) = (Ints){copies, stages, stages};
}

bool plan_dapple(const Question *q, Answer *a)
{
    Units u = units_of(q->p, q->cut, q->chunks);
    Fleet l = fleet_of(q, &u);
    int pivot = 0, stages = q->chunks, *last = alloc(sizeof *last * (size_t)q->chunks);
    int *copies = alloc(sizeof *copies * (size_t)q->chunks);
    Ns latency = dapple_cut(&l, &stages, last, copies);
    if (latency < 0)
        return false;
    fleet_answer(q, &u, &l, last, a);
    dapple_latency(&l, stages, last, copies, &pivot);
    const char *what = pivot % 2 ? "the transfer behind" : "at";
    a->note = fleet_note(&l, last, strf("a step of %.3f ms by DAPPLE's formula, pivot %s stage %d", (double)latency / 1e6, what,
                                        pivot / 2));
    return true;
}
